"""Runs with a source policy: what is refused does not start, and the record says why."""

import signal

import pytest

from cli import caisson, checked
from daemon import Daemon


def record(*words, **more):
    done = caisson('run', '--json', '-l', 'python', *words, **more)
    return checked(done.out), done.status


def test_a_program_that_passes_runs():
    got, code = record('--policy', 'linx', '-c', 'print(6 * 7)')
    assert (got['status'], got['stdout'], got['findings'], code) == ('completed', '42\n', [], 0)


def test_a_program_that_does_not_pass_is_blocked_before_anything_starts():
    got, code = record('--policy', 'linx', '-c', 'open("made", "w")\nx = 1\neval("2")')
    assert (got['status'], code, got['exit_code'], got['boundary']) == ('blocked', 126, None, None)
    assert got['error']['message'] == 'Security validation failed: Dangerous function call: eval'
    finding = next(one for one in got['findings'] if one['rule'] == 'dynamic_code')
    assert (finding['line'], finding['column'], finding['text'], finding['severity']) == (3, 1, 'eval("2")', 'HIGH')
    assert any(line.startswith('Line 3: ') for line in got['feedback']) and finding['advice'] in got['feedback']


def test_people_see_why():
    done = caisson('run', '-l', 'python', '--policy', 'linx', '-c', 'eval("2")')
    assert done.status == 126 and done.out == ''
    assert 'blocked: Security validation failed' in done.err and '1:1: Dangerous function call: eval. ' in done.err


def test_advice_blocks_nothing():
    got, code = record('--policy', 'linx', '--advise', '-c', 'print(eval("2"))')
    assert (got['status'], got['stdout'], code) == ('completed', '2\n', 0)
    assert [one['rule'] for one in got['findings']] == ['dynamic_code']


def test_modules_may_be_allowed():
    assert record('--policy', 'kodeagent', '-c', 'import json')[0]['status'] == 'blocked'
    assert record('--policy', 'kodeagent', '--allow-import', 'json', '-c', 'import json')[0]['status'] == 'completed'


def test_modules_of_a_request_join_those_of_its_profile():
    """S0-19 and S0-20: the caller's list is added to that of the system; only names of the union pass."""
    code = 'import datetime, typing, mimetypes, re, json'
    assert record('--profile', 'kodeagent', '--allow-import', 'json', '-c', code)[0]['status'] == 'completed'
    got, _ = record('--profile', 'kodeagent', '--allow-import', 'json', '-c', code + ', os')
    assert got['error']['message'].splitlines()[1:2] == ['os'] and 'datetime, json, mimetypes' in got['error']['message']


def test_the_union_of_modules_has_a_bound():
    many = [f'--allow-import=m{n}' for n in range(998)]
    got, code = record('--profile', 'kodeagent', *many, '-c', '1')
    assert (got['status'], got['error']['field'], code) == ('bad_request', '/allow_imports', 64)
    assert '1001 modules together with those of the profile; at most 1000' in got['error']['message']
    assert record('--profile', 'kodeagent', *many[1:], '-c', '1')[0]['status'] == 'completed'


def test_what_does_not_parse_is_told_in_the_words_of_the_interpreter():
    got, code = record('--policy', 'linx', '-c', 'x = 1\ndef f(:\n    pass')
    assert (got['status'], code) == ('syntax_error', 1)
    assert (got['error']['type'], got['error']['line'], got['error']['text']) == ('SyntaxError', 2, 'def f(:')


@pytest.mark.parametrize('policy', ['nope', ''])
def test_a_policy_that_is_not_there_is_named(policy):
    got, code = record('--policy', policy, '-c', 'print(1)')
    assert (got['status'], got['error']['field'], code) == ('bad_request', '/policy', 64)
    assert 'linx-strict' in got['error']['message']


def test_a_program_that_is_too_much_for_its_check_is_blocked(tmp_path):
    (tmp_path / 'main.py').write_text('def ' * 250_000)
    got, code = record('--policy', 'linx', str(tmp_path / 'main.py'))
    assert (got['status'], code) == ('blocked', 126)


@pytest.fixture(name='broken')
def broken_policies(tmp_path):
    """A file of the administrator's that is no policy: nothing can be checked."""
    (tmp_path / 'mine.yaml').write_text('policy: mine\nrules: 3\n')
    return {'env': {'CAISSON_ENGINE_POLICIES_DIR': str(tmp_path)}}


def test_nothing_is_run_where_nobody_could_look(broken):
    got, code = record('--policy', 'linx', '-c', 'print(1)', **broken)
    assert (got['status'], code, got['stdout']) == ('engine_error', 125, '') and 'mine.yaml:2' in got['error']['message']


def test_advice_does_not_block_where_nobody_could_look(broken):
    got, code = record('--policy', 'linx', '--advise', '-c', 'print(1)', **broken)
    assert (got['status'], got['stdout'], code) == ('completed', '1\n', 0)
    assert [one['code'] for one in got['warnings']] == ['not_checked'] and 'mine.yaml:2' in got['warnings'][0]['text']


def test_a_profile_may_choose_one(tmp_path):
    (tmp_path / 'careful.yaml').write_text('policy: linx\n')
    more = {'env': {'CAISSON_ENGINE_PROFILES_DIR': str(tmp_path)}}
    assert record('--profile', 'careful', '-c', 'eval("1")', **more)[0]['status'] == 'blocked'
    assert record('--profile', 'careful', '--policy', 'off', '-c', 'eval("1")', **more)[0]['status'] == 'completed'


def test_the_daemon_checks_too(tmp_path):
    daemon = Daemon(tmp_path).ready()
    try:
        with daemon.client() as client:
            for number in range(1, 101):
                client.run(number, 'eval("1")' if number % 2 else 'print(1)', language='python', policy='linx')
            results = client.results(100)
        for number in range(1, 101):
            assert results[number][0]['status'] == ('blocked' if number % 2 else 'completed')
    finally:
        daemon.stop(signal.SIGTERM)


def test_a_run_that_is_being_checked_can_be_cancelled(tmp_path):
    daemon = Daemon(tmp_path).ready()
    try:
        with daemon.client() as client:
            client.run(1, 'x = [' + '1, ' * 200000 + ']', language='python', policy='linx')
            client.send(2, 1)
            assert client.results(1)[1][0]['status'] in ('cancelled', 'completed')
        with daemon.client() as client:
            client.run(1, 'x = [' + '1, ' * 200000 + ']', language='python', policy='linx')
        with daemon.client() as client:
            client.run(1, 'print(1)', language='python', policy='linx')
            assert client.results(1)[1][0]['status'] == 'completed'
    finally:
        daemon.stop(signal.SIGTERM)
