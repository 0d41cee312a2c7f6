"""Checks by way of the daemon: the CHECK frame, and caisson check when there is one."""

import contextlib
import json
import os
import signal

import pytest

from cli import caisson
from daemon import CHECK, CHECKED, ERROR, Daemon, alive, command_line, until

BROKEN = 'x = 1\ndef f(:\n    pass\n'


@pytest.fixture(name='daemon')
def running(tmp_path):
    daemon = Daemon(tmp_path).ready()
    yield daemon
    daemon.stop(signal.SIGTERM)


def ask(client, number=1, **request):
    client.send(CHECK, number, request)
    got, answer = client.next(CHECKED)
    assert got == number
    return answer


def test_a_check_is_answered(daemon):
    with daemon.client() as client:
        answer = ask(client, 7, id='mine', language='py', code='x = 1\neval("1")', policy='linx')
        assert (answer['id'], answer['verdict'], answer['language'], answer['findings'][0]['line']) == ('mine', 'deny', 'python', 2)
        assert ask(client, 7, language='bash', code='echo 1')['verdict'] == 'allow'


@pytest.mark.parametrize('request_, code, field', [
    ({'code': 'x'}, 'bad_request', '/language'), ({'language': 'cobol', 'code': 'x'}, 'unsupported_language', None),
    ({'language': 'python'}, 'bad_request', '/code'), ({'language': 'python', 'code': 'x', 'policy': 'nope'}, 'bad_request', '/policy'),
    ({'language': 'python', 'code': 'x', 'colour': 'red'}, 'bad_request', '/colour')])
def test_a_check_that_cannot_be_made_says_why(daemon, request_, code, field):
    with daemon.client() as client:
        answer = ask(client, **request_)
        assert answer['verdict'] == 'deny' and answer['error']['code'] == code and field in (None, answer['error']['field'])
        assert ask(client, language='python', code='x = 1')['verdict'] == 'allow'


def test_many_checks_at_once(daemon):
    with daemon.client() as client:
        for number in range(1, 201):
            client.send(CHECK, number, {'language': 'python', 'code': 'eval("1")' if number % 2 else 'x = 1'})
        answers = dict(client.next(CHECKED) for _ in range(200))
    assert {number: answer['verdict'] for number, answer in answers.items()} \
        == {number: 'deny' if number % 2 else 'allow' for number in range(1, 201)}


def workers(daemon):
    return {pid for pid in daemon.tree() if command_line(pid).startswith(b'caisson-policy')}


def test_a_long_program_holds_up_no_short_one(daemon):
    """The worker of long programs stands still, and short ones are answered and run meanwhile."""
    with daemon.client() as client, daemon.client() as other:
        ask(client, language='python', code='x = 1')
        short = workers(daemon)
        other.send(CHECK, 1, {'language': 'python', 'code': 'x = 1\n' * 100000})
        long, = until(lambda: workers(daemon) - short)
        os.kill(long, signal.SIGSTOP)
        try:
            for number in range(2, 5):
                assert ask(client, number, language='python', code='eval("1")')['verdict'] == 'deny'
            assert daemon.caisson('run', '-l', 'bash', '-c', 'echo 1').out == '1\n'
        finally:
            with contextlib.suppress(ProcessLookupError):     # one that is stopped for 5 s is replaced
                os.kill(long, signal.SIGCONT)
        assert other.next(CHECKED)[1]['language'] == 'python'
        assert len(workers(daemon)) == 2


def test_the_words_are_the_interpreters_and_nothing_is_run(daemon):
    with daemon.client() as client:
        error = ask(client, language='python', code=BROKEN)['error']
        assert (error['type'], error['message'], error['line']) == ('SyntaxError', 'invalid syntax', 2)
        assert not daemon.runs()


def test_an_id_that_is_live_cannot_be_used_again(daemon):
    with daemon.client() as client:
        client.run(5, 'sleep 10')
        client.send(CHECK, 5, {'language': 'python', 'code': 'x'})
        client.ended('protocol_error', '5')


def test_a_client_that_goes_takes_its_checks_with_it(daemon):
    client = daemon.client()
    for number in range(1, 50):
        client.send(CHECK, number, {'language': 'python', 'code': BROKEN})
    client.close()
    with daemon.client() as other:
        assert ask(other, language='python', code='x = 1')['verdict'] == 'allow'
    until(lambda: not daemon.runs())
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_text_that_takes_long_keeps_nobody_else_waiting_for_more_than_itself(daemon):
    slow = 'def ' * 250_000
    with daemon.client() as hostile, daemon.client() as client:
        for number in range(1, 6):
            hostile.send(CHECK, number, {'language': 'python', 'code': slow})
        assert ask(client, language='python', code='x = 1')['verdict'] == 'allow'
        assert hostile.next(CHECKED)[1]['verdict'] == 'deny'      # by its time here, by that of its parser on a slower machine


def test_the_end_of_the_daemon_is_the_end_of_its_worker(daemon):
    with daemon.client() as client:
        ask(client, language='python', code='x = 1')
        tree = daemon.tree()
        assert daemon.stop(signal.SIGTERM) == 0
        assert client.get() is None
    until(lambda: not any(alive(pid) for pid in tree))


# ---- the command ----

def test_the_command_asks_the_daemon(daemon, tmp_path):
    (tmp_path / 'a.py').write_text('eval("1")\n')
    (tmp_path / 'b.py').write_text(BROKEN)
    (tmp_path / 'c.sh').write_bytes(b'echo \xff\n')
    files = [tmp_path / name for name in ('a.py', 'b.py', 'c.sh')]
    here = caisson('check', '--json', *files)
    there = daemon.caisson('check', '--json', *files)
    assert (there.status, there.out) == (here.status, here.out) and there.status == 3
    assert caisson('check', *files).out == daemon.caisson('check', *files).out
    line = json.dumps({'id': 'a', 'language': 'python', 'code': 'import cv2'})
    assert json.loads(daemon.caisson('check', '--jsonl', stdin=line.encode()).out)['imports'] == ['cv2']
    assert daemon.caisson('check', '--imports', '-l', 'python', '-c', 'import cv2').out == 'opencv-python\n'


def test_it_is_really_the_daemon_that_answers(daemon, tmp_path):
    (tmp_path / 'mine.yaml').write_text('policy: mine\nextends: linx\n')
    code = ['-l', 'python', '-c', 'x = 1', '--policy', 'mine']
    option = f'--set=engine.policies_dir={tmp_path}'
    assert caisson('check', *code, option).status == 0
    assert daemon.caisson('check', *code).status == 64
    done = daemon.caisson('check', *code, option)
    assert done.status == 64 and 'engine.policies_dir' in done.err
    assert daemon.caisson('check', *code, option, '--daemon', 'auto').status == 0


def test_without_a_daemon_it_is_checked_here(tmp_path):
    code = ['check', '-l', 'python', '-c', 'eval("1")']
    gone = {'CAISSON_ENGINE_SOCKET': str(tmp_path / 'nobody')}
    assert caisson(*code, env=gone).status == 2
    assert caisson(*code, '--daemon', 'always', env=gone).status == 125
    assert caisson(*code, '--daemon', 'perhaps').status == 64


def test_a_program_that_is_too_long(daemon, tmp_path):
    (tmp_path / 'long.py').write_text('#' * (1 << 20) + '\n')
    done = daemon.caisson('check', '--json', tmp_path / 'long.py')
    assert done.status == 2 and 'longer than 1048576 bytes' in json.loads(done.out)['reason']


def test_errors_of_frames_are_told(daemon):
    with daemon.client() as client:
        client.send(CHECK, 0, {'language': 'python', 'code': 'x'})
        assert client.next(ERROR)[0] == 0
