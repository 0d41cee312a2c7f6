"""ScaleBox: POST /common_evaluate_batch, with the requests of its documentation and the shapes of its answers."""

import json
import signal
import threading
from contextlib import closing

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web

STREAM = {'type': 'stdin_stdout', 'input': ['1 2', '3 4'], 'output': ['3', '7'], 'fn_name': None}
CALL = {'type': 'function_call', 'input': [[1, 2], [3, 4]], 'output': [[3], [7]], 'fn_name': 'add', 'json_input': False}
PRINT = '```python\na, b = map(int, input().split())\nprint(a + b)\n```'
ADD = '```python\ndef add(a, b):\n    return a + b\n```'
JUDGE = '''import sys
a, b = map(int, open("answer.txt").read().split())
sys.exit(0 if a + b == int(open("stdin.txt").read()) and open("stdout.txt").read() else 1)
'''


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('scalebox'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def ask(web, completion, cases, status=200, language='python', extra=None, **more):
    got, _, answer = web.ask('POST', '/common_evaluate_batch', {
        'completion': completion, 'config': {'language': language, 'provided_data': {'test_cases': cases}, 'extra': {'run_all_cases': True, **(extra or {})}, **more}})
    assert got == status, answer
    return answer


def passed(answer):
    return [test['passed'] for test in answer['tests']]


def test_the_example_with_standard_input(web):
    answer = ask(web, PRINT, STREAM, run_timeout=10)
    assert {name: answer[name] for name in answer if name != 'tests'} == {
        'id': 0, 'accepted': True, 'extracted_code': 'a, b = map(int, input().split())\nprint(a + b)', 'full_code': None, 'test_code': None, 'extracted_type': None, 'extra': None}
    assert [test['test_info'] for test in answer['tests']] == [{'input': {'stdin': '1 2'}, 'output': {'stdout': '3'}}, {'input': {'stdin': '3 4'}, 'output': {'stdout': '7'}}]
    for test, output in zip(answer['tests'], ['3', '7']):
        run = test['exec_info'].pop('run_result')
        assert test['passed'] and test['exec_info'] == {'status': 'Success', 'message': '', 'compile_result': None, 'executor_pod_name': None, 'files': {}}
        assert 0 <= run.pop('execution_time') < 10 and run == {'status': 'Finished', 'return_code': 0, 'stdout': output, 'stderr': ''}


def test_the_example_with_a_function(web):
    answer = ask(web, ADD, CALL, extra={'total_timeout': 100})
    assert answer['accepted'] and passed(answer) == [True, True] and answer['extracted_code'] == 'def add(a, b):\n    return a + b'
    assert answer['tests'][0]['test_info'] == {'type': 'function_call', 'fn_name': 'add', 'input': [1, 2], 'output': [3]}
    assert answer['tests'][0]['exec_info']['status'] == 'Success' and answer['tests'][0]['exec_info']['run_result']['return_code'] == 0


def test_one_json_value_a_line(web):
    cases = {'type': 'function_call', 'input': ['1\n2', '"a"\n"b"', '[1]\n[2]'], 'output': ['3', '"ab"', '[1, 2]'], 'fn_name': 'add', 'json_input': True}
    assert passed(ask(web, ADD, cases)) == [True, True, True]
    assert passed(ask(web, ADD, {**cases, 'json_input': False})) == [True, True, True]


def test_asserts(web):
    cases = {'type': 'assert', 'test': 'def check(candidate):\n    assert candidate(1, 2) == 3\n', 'entry_point': 'add'}
    assert ask(web, ADD, cases)['accepted'] and not ask(web, ADD.replace('+', '-'), cases)['accepted']
    assert ask(web, ADD, {'type': 'assert', 'tests': 'assert add(1, 2) == 3'})['accepted']


def test_a_special_judge(web):
    cases = {'type': 'stdin_stdout', 'input': ['3', '7'], 'output': ['1 2', '3 4'], 'fn_name': None}
    extra = {'special_judge_program': JUDGE, 'special_judge_language': 'python'}
    assert passed(ask(web, '```python\nc = int(input())\nprint(c - 1, 1)\n```', cases, extra=extra)) == [True, True]
    assert passed(ask(web, '```python\nprint(2, 1)\n```', cases, extra=extra)) == [True, False]


@pytest.mark.parametrize('code, status, run, return_code, text', [
    ('print(1)', 'Success', 'Finished', 0, ''), ('1/0', 'Failed', 'Finished', 1, 'ZeroDivisionError'), ('def f(:', 'Failed', 'Finished', 1, 'SyntaxError'), ('while True: pass', 'Failed', 'TimeLimitExceeded', None, '')])
def test_a_program_that_fails_is_an_answer(web, code, status, run, return_code, text):
    answer = ask(web, f'```python\n{code}\n```', {**STREAM, 'input': ['1 2'], 'output': ['3']}, run_timeout=1)
    info = answer['tests'][0]['exec_info']
    assert not answer['accepted'] and passed(answer) == [False] and info['status'] == status, answer
    assert (info['run_result']['status'], info['run_result']['return_code']) == (run, return_code) and text in info['run_result']['stderr'], info


def test_the_first_failed_case_is_the_last_without_run_all_cases(web):
    cases = {**STREAM, 'input': ['1 2', '0 0', '3 4'], 'output': ['3', '1', '7']}
    assert passed(ask(web, PRINT, cases)) == [True, False, True]
    assert passed(ask(web, PRINT, cases, extra={'run_all_cases': False}))[:2] == [True, False]


def test_an_answer_without_a_program(web):
    answer = ask(web, 'I cannot.', STREAM)
    assert (answer['accepted'], answer['extracted_code'], passed(answer)) == (False, '', [False, False])


def test_other_languages(web):
    assert ask(web, '```bash\nread a b; echo $((a + b))\n```', STREAM, language='bash')['accepted']
    assert ask(web, '```javascript\nconst [a, b] = require("fs").readFileSync(0, "utf8").split(" ").map(Number); console.log(a + b)\n```', STREAM, language='javascript')['accepted']


def test_the_id_comes_back(web):
    for name in (7, 'mine'):
        status, _, answer = web.ask('POST', '/common_evaluate_batch', {'id': name, 'completion': PRINT, 'config': {'language': 'python', 'provided_data': {'test_cases': STREAM}}})
        assert status == 200 and answer['id'] == name and answer['accepted']


# ---- what is wrong ----

@pytest.mark.parametrize('body, place', [({}, 'completion'), ({'completion': 1, 'config': {}}, 'completion'), ({'completion': ''}, 'config'), ({'completion': '', 'config': []}, 'config'), ({'completion': '', 'config': {}, 'id': []}, 'id')])
def test_members_of_the_wrong_type_are_422(web, body, place):
    status, _, answer = web.ask('POST', '/common_evaluate_batch', body)
    assert status == 422 and ['body', place] in [flaw['loc'] for flaw in answer['detail']], answer


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'[' * 100000, b'\0'])
def test_hostile_bodies(web, body):
    status, _, answer = web.ask('POST', '/common_evaluate_batch', body)
    assert status == 422 and answer['detail'][0]['type'] == 'json_invalid', answer


@pytest.mark.parametrize('config, words', [
    ({}, 'language'), ({'language': 'cobol', 'provided_data': {'test_cases': STREAM}}, 'cobol'), ({'language': 'python'}, 'test_cases'), ({'language': 'python', 'provided_data': []}, 'test_cases'),
    ({'language': 'python', 'provided_data': {'test_cases': 7}}, 'test_cases'), ({'language': 'python', 'provided_data': {'test_cases': {'type': 'x', 'input': [], 'output': []}}}, 'type'),
    ({'language': 'python', 'provided_data': {'test_cases': {**STREAM, 'output': ['3']}}}, 'output'), ({'language': 'python', 'provided_data': {'test_cases': {**CALL, 'fn_name': None}}}, 'fn_name'),
    ({'language': 'python', 'run_timeout': 'x', 'provided_data': {'test_cases': STREAM}}, 'run_timeout'), ({'language': 'python', 'extra': {'total_timeout': []}, 'provided_data': {'test_cases': STREAM}}, 'total_timeout'),
    ({'language': 'python', 'extra': {'special_judge_program': 7}, 'provided_data': {'test_cases': STREAM}}, 'special_judge_program'),
    ({'language': 'python', 'custom_extract_logic': 'x', 'provided_data': {'test_cases': STREAM}}, 'custom_extract_logic')])
def test_a_config_that_is_wrong_is_400_with_the_reason(web, config, words):
    status, _, answer = web.ask('POST', '/common_evaluate_batch', {'completion': PRINT, 'config': config})
    assert status == 400 and words in answer['detail'], answer


# ---- who asks ----

def test_a_daemon_that_ends_says_that_it_has_no_verdict(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=1s')
    answers = []
    body = {'completion': '```python\nimport time\ntime.sleep(100)\n```', 'config': {'language': 'python', 'run_timeout': 100, 'provided_data': {'test_cases': STREAM}}}
    thread = threading.Thread(target=lambda: answers.append(web.ask('POST', '/common_evaluate_batch', body)))
    thread.start()
    until(web.runs)
    assert web.daemon.stop(signal.SIGTERM) == 0
    thread.join()
    status, headers, answer = answers[0]
    assert status == 503 and headers['Retry-After'] == '1' and not answer['accepted'], answer
    assert {test['exec_info']['status'] for test in answer['tests']} == {'SandboxError'} and not any(passed(answer))


def test_a_client_that_goes_is_graded_no_further(web):
    body = {'completion': '```python\nimport time\ntime.sleep(100)\n```', 'config': {'language': 'python', 'run_timeout': 100, 'provided_data': {'test_cases': STREAM}}}
    connection = web.open()
    connection.request('POST', '/common_evaluate_batch', json.dumps(body))
    until(lambda: [run for run in web.runs() if run['owner'] != 'judge'])
    connection.close()
    until(lambda: not [run for run in web.runs() if run['owner'] != 'judge'])


def test_long_bodies(web):
    cases = {**CALL, 'input': [[n, 'x' * 500] for n in range(3000)], 'output': [['x' * 500] for _ in range(3000)]}
    with closing(web.open(600)) as connection:
        connection.request('POST', '/common_evaluate_batch', json.dumps({'completion': '```python\ndef add(a, b): return b\n```', 'config': {'language': 'python', 'provided_data': {'test_cases': cases}, 'extra': {'run_all_cases': True}}}))
        answer = connection.getresponse()
        result = json.load(answer)
        assert answer.status == 200 and result['accepted'] and len(result['tests']) == 3000
        assert result['tests'][2999]['test_info']['input'] == [2999, 'x' * 500]


def test_keys(tmp_path):
    keys = Keys(tmp_path)
    run, read = keys.make('run', '--tenant', 'a', '--scopes', 'run'), keys.make('read', '--tenant', 'a', '--scopes', 'read')
    web = Web(tmp_path, keyless=False)
    body = {'completion': PRINT, 'config': {'language': 'python', 'provided_data': {'test_cases': STREAM}}}
    assert [web.ask('POST', '/common_evaluate_batch', body, **(bearer(key) if key else {}))[0] for key in (None, read, run)] == [401, 403, 200]
    assert web.daemon.stop(signal.SIGTERM) == 0
