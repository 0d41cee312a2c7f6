"""POST /v1/grade: one submission, many over one connection, quotas, cancellation, tenants."""

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from daemon import commands, supervisors, until
from grading import check, statuses
from web import Web

GOOD = {'code': 'def f(x):\n    return x * 2\n', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}, {'args': ['a'], 'expected': 'aa'}]}
SLOW = {'code': 'import time\ndef f(x):\n    time.sleep(100)\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}], 'case_cpu_ms': 60000}


def judges(web):
    """The pids on the host of what is in the judge's sandbox: no other has that much memory."""
    found = []
    for root, folders, _ in os.walk('/sys/fs/cgroup/memory'):
        for folder in (Path(root, name) for name in folders if f'caisson-{supervisors(web.daemon.process.pid)[0]}-' in root):
            try:
                if int((folder / 'memory.limit_in_bytes').read_text()) == 1 << 30:
                    found += [int(pid) for pid in (folder / 'cgroup.procs').read_text().split()]
            except OSError:     # it has just gone
                pass
    return found


def kill(pid, number=signal.SIGKILL):
    """Whether the process was still there: a process may end with another one, or by its supervisor."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def submissions(web):
    return [run for run in web.runs() if run['owner'] != 'judge']


def over(web, language):
    """How many runs in this language have ended."""
    text = web.ask('GET', '/metrics')[2].decode()
    return sum(map(int, re.findall(rf'^caisson_executions_total{{language="{language}",.*}} (\d+)$', text, flags=re.M)))


def lines(web, text):
    answer = web.stream_raw('POST', '/v1/grade', text, **{'Content-Type': 'application/x-ndjson'})
    assert answer.status == 200 and answer.headers['Content-Type'] == 'application/x-ndjson'
    return [json.loads(line) for line in answer.read().splitlines()]


def many(web, *requests):
    return lines(web, ''.join(json.dumps(request) + '\n' for request in requests))


def test_one_submission(web):
    status, headers, result = web.ask('POST', '/v1/grade', {'id': 'mine', **GOOD})
    assert status == 200 and headers['Content-Type'] == 'application/json' and check(result)['all_passed']
    assert result['id'] == 'mine' and result['grade_id'].startswith('grade_') and result['boundary']['isolation'] == 'full'


def test_records_of_data_sets(web):
    record = {'format': 'lcb', 'completion': 'So:\n```python\nprint(2 * int(input()))\n```\n', 'input_output': json.dumps({'inputs': ['2'], 'outputs': ['4']})}
    status, _, result = web.ask('POST', '/v1/grade', record)
    assert status == 200 and check(result)['all_passed']
    status, _, problem = web.ask('POST', '/v1/grade', {**record, 'input_output': '{'})
    assert status == 422 and problem['code'] == 'record_invalid' and problem['field'] == '/input_output', problem
    status, _, problem = web.ask('POST', '/v1/grade', {**record, 'format': 'nose'})
    assert status == 422 and problem['code'] == 'format_unknown' and 'skyrl' in problem['message'], problem
    answers = many(web, {'id': 'a', **record}, {'id': 'b', **record, 'input_output': []}, {'id': 'c', **record, 'completion': 'no'})
    found = {answer['id']: answer for answer in answers}
    assert found['a']['result']['all_passed'] and found['c']['result']['error']['code'] == 'no_code_block'
    assert found['b']['line'] == 2 and found['b']['error']['code'] == 'record_invalid', found['b']


def test_a_reference_runs_once_for_a_batch_and_for_each_tenant(web):
    problem = {'code': 'def f(x):\n    return x\n', 'reference': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [[1]]}]}
    runs = [answer['result']['runs'] for answer in many(web, *({'id': str(i), **problem} for i in range(8)))]
    assert sorted(runs) == [1] * 7 + [2]
    assert web.ask('POST', '/v1/grade', problem)[2]['runs'] == 1


@pytest.mark.parametrize('more, expected', [
    ({'cases': [{'args': [2], 'expected': 5}]}, ['failed']),
    ({'code': 'while True: pass', 'limits': {'wall_ms': 500}}, ['not_run', 'not_run']),
    ({'cases': [], 'tests': 'assert f(1) == 2\nassert f(1) == 3'}, ['passed', 'failed']),
    ({'language': 'bash', 'code': 'cat', 'cases': [{'stdin': 'a', 'expected_stdout': 'a'}]}, ['passed']),
])
def test_a_submission_that_fails_is_an_answer(web, more, expected):
    status, _, result = web.ask('POST', '/v1/grade', {**GOOD, **more})
    assert status == 200 and statuses(check(result)) == expected, result


@pytest.mark.parametrize('body, code, words', [
    (b'{', 'bad_request', 'not JSON'), (b'[]', 'bad_request', 'object'), (b'{"code": "1", "casess": []}', 'bad_request', 'casess'), (b'{"cases": []}', 'bad_request', 'code'),
])
def test_wrong_bodies(web, body, code, words):
    status, _, problem = web.ask('POST', '/v1/grade', body)
    assert status == 422 and problem['code'] == code and words in problem['message'], problem


def test_names_of_older_systems_come_on_request(web):
    """S1-01 by HTTP; test_grade_rows.py has the rest."""
    status, _, result = web.ask('POST', '/v1/grade', {**GOOD, 'aliases': True})
    assert status == 200 and result['aliases']['success'] and result['aliases']['test_results'][0]['detail'] == 'OK', result
    assert 'aliases' not in web.ask('POST', '/v1/grade', GOOD)[2]


def test_paths_of_the_host_are_not_for_http(web):
    _, _, result = web.ask('POST', '/v1/grade', {**GOOD, 'files': [{'path': '/etc/passwd'}]})
    assert result['status'] == 'bad_request' and 'path' in result['error']['message'], result


def test_many_over_one_connection(web):
    requests = [{'id': n, **GOOD, 'cases': [{'args': [n], 'expected': 2 * n if n % 3 else -1}]} for n in range(60)]
    answers = many(web, *requests)
    assert sorted(answer['id'] for answer in answers) == list(range(60)) and sorted(answer['line'] for answer in answers) == list(range(1, 61))
    for answer in answers:
        assert check(answer['result'])['all_passed'] is (answer['id'] % 3 != 0)


def test_lines_that_are_wrong_are_answered(web):
    answers = lines(web, b'x\n{"id": "a", "code": 1}\n' + json.dumps({'id': 'b', **GOOD}).encode() + b'\n')
    assert 'error' in answers[0] and answers[0]['line'] == 1 and answers[1]['id'] == 'a' and answers[1]['error']['field'] == '/code'
    assert answers[2]['result']['all_passed']


def test_one_of_many_can_be_cancelled(web):
    answers = many(web, {'id': 'slow', **SLOW}, {'id': 'good', **GOOD}, {'cancel': 'slow'})
    assert {answer['id']: answer['result']['status'] for answer in answers} == {'slow': 'cancelled', 'good': 'completed'}


def test_who_goes_away_is_graded_no_further(web):
    connection = web.open()
    connection.request('POST', '/v1/grade', json.dumps(SLOW))
    until(lambda: submissions(web))
    connection.close()
    until(lambda: not submissions(web))


def test_the_judge_goes_when_nobody_needs_it(web):
    assert web.ask('POST', '/v1/grade', GOOD)[2]['all_passed']
    assert [run for run in web.runs() if run['owner'] == 'judge']
    until(lambda: not web.runs(), 30)
    assert web.ask('POST', '/v1/grade', GOOD)[2]['all_passed']


def test_a_judge_that_is_killed_is_replaced_and_no_verdict_is_lost(web):
    done = []
    thread = threading.Thread(target=lambda: done.extend(many(web, *({'id': n, **GOOD} for n in range(200)))))
    thread.start()
    killed = 0
    while thread.is_alive():
        time.sleep(0.2 if killed == 0 else 0.6)
        for pid in judges(web) if killed < 2 else ():
            killed += kill(pid)
    assert killed and len(done) == 200 and [answer for answer in done if not answer['result']['all_passed']] == []


def test_a_judge_that_has_ended_and_nobody_knows_yet(web):
    """Who would tell it is stopped: another judge is asked.  Node's end is told by another."""
    request = {'language': 'javascript', 'code': 'function f(x) { return 2 * x; }', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}]}
    assert web.ask('POST', '/v1/grade', GOOD)[2]['all_passed']
    answers, before = [], over(web, 'javascript')
    thread = threading.Thread(target=lambda: answers.append(web.ask('POST', '/v1/grade', request)[2]))
    all_judges = [pid for pid in judges(web) if 'init' not in commands([pid])]
    parents = {int(Path(f'/proc/{judge}/stat').read_text().rpartition(')')[2].split()[1]) for judge in all_judges}
    parents.difference_update(supervisors(web.daemon.process.pid))      # of a judge that no zygote made; without it no run begins
    for parent in parents:
        kill(parent, signal.SIGSTOP)
    try:
        for judge in all_judges:
            kill(judge)
        thread.start()
        until(lambda: over(web, 'javascript') > before)
    finally:
        for parent in parents:
            kill(parent, signal.SIGCONT)
    thread.join()
    assert answers[0]['all_passed'], answers


def test_runs_of_gradings_are_in_the_audit(tmp_path):
    web = Web(tmp_path)
    assert web.ask('POST', '/v1/grade', {'id': 'audited', **GOOD})[2]['all_passed']
    assert web.daemon.stop(signal.SIGTERM) == 0
    done = web.daemon.caisson('runs', '--json', *web.state)
    rows = [json.loads(line) for line in done.out.splitlines()] if done.out.startswith('{') and '\n{' in done.out else json.loads(done.out)
    assert 'audited' in json.dumps(rows)


def test_a_daemon_that_ends_finishes_what_it_grades(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=60s')
    answers = []
    body = {**GOOD, 'code': 'import time\ntime.sleep(1)\ndef f(x):\n    return x * 2\n'}
    thread = threading.Thread(target=lambda: answers.append(web.ask('POST', '/v1/grade', body)))
    thread.start()
    until(web.runs)
    assert web.daemon.stop(signal.SIGTERM) == 0
    thread.join()
    assert answers[0][0] == 200 and answers[0][2]['all_passed']
