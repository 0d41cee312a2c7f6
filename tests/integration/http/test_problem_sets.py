"""PUT /v1/problems/{set}, and gradings that name a stored problem: limits, tenants, errors with their line, gradings over one connection."""

import json
import signal
import threading

import pytest

from daemon import until
from grading import check, one
from keys import Keys, bearer
from web import Web

DOUBLE = {'id': 'double', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}, {'args': ['a'], 'expected': 'aa'}]}
ECHO = {'id': 'echo', 'cases': [{'stdin': 'ä\n', 'expected_stdout': 'ä\n'}]}
CODE = 'def f(x):\n    return x * 2\n'
LCB = {'question_id': 'q/1', 'input_output': json.dumps({'inputs': ['1\n2', '3\n4'], 'outputs': ['3', '7'], 'fn_name': 'add'})}


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('sets'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def lines(*problems):
    return '\n'.join(json.dumps(problem) for problem in problems)


def put(web, name, body, query='', **headers):
    return web.ask('PUT', f'/v1/problems/{name}{query}', body.encode() if isinstance(body, str) else body, **headers)


def grade(web, problem, **more):
    return web.ask('POST', '/v1/grade', {'problem': problem, **more})


def many(web, *requests):
    answer = web.stream_raw('POST', '/v1/grade', ''.join(json.dumps(request) + '\n' for request in requests), **{'Content-Type': 'application/x-ndjson'})
    return [json.loads(line) for line in answer.read().splitlines()]


# ---- storing ----

@pytest.mark.parametrize('body', [lines(DOUBLE, ECHO), lines(DOUBLE, ECHO) + '\n\n', json.dumps([DOUBLE, ECHO]), ' \n[\n' + json.dumps(DOUBLE, indent=2) + ' ,\n' + json.dumps(ECHO) + '\n]\n',
                                  '\n\n' + lines(DOUBLE, ECHO)], ids=['lines', 'feeds', 'array', 'indented', 'blank'])
def test_a_set_comes_as_lines_or_as_an_array(web, body):
    status, _, info = put(web, 'both', body)
    assert status in (200, 201) and (info['name'], info['format'], info['problems']) == ('both', 'caisson', 2), info
    assert grade(web, 'both/double', code=CODE)[2]['all_passed'] and grade(web, 'both/echo', language='bash', code='cat')[2]['all_passed']


def test_a_set_is_replaced_and_removed(web):
    assert put(web, 'twice', lines(DOUBLE))[0] == 201
    assert put(web, 'twice', lines(ECHO))[0] == 200
    assert web.ask('GET', '/v1/problems/twice')[2]['problems'] == 1
    assert grade(web, 'twice/double', code=CODE)[0] == 422 and grade(web, 'twice/echo', language='bash', code='cat')[2]['all_passed']
    assert [one['name'] for one in web.ask('GET', '/v1/problems')[2]['problem_sets']].count('twice') == 1
    assert web.ask('DELETE', '/v1/problems/twice')[0] == 204
    assert web.ask('DELETE', '/v1/problems/twice')[0] == web.ask('GET', '/v1/problems/twice')[0] == 404
    status, _, problem = grade(web, 'twice/echo', code='')
    assert status == 422 and problem['field'] == '/problem' and 'twice' in problem['detail']


def test_a_set_has_a_format(web):
    status, _, info = put(web, 'live', lines(LCB), '?format=lcb')
    assert status == 201 and info['format'] == 'lcb', info
    assert grade(web, 'live/q/1', completion='```python\ndef add(a, b):\n    return a + b\n```')[2]['all_passed']
    assert grade(web, 'live/q/1', completion='```python\ndef add(a, b):\n    return a - b\n```')[2]['score'] == 0


def test_ids_are_texts_or_numbers_by_any_of_the_usual_names(web):
    problems = [{**DOUBLE, 'id': 7}, *({name: f'{name}-1', **{key: value for key, value in DOUBLE.items() if key != 'id'}} for name in ('task_id',)), {**DOUBLE, 'id': 'HumanEval/0'}]
    assert put(web, 'ids', lines(*problems))[0] == 201
    for name in ('7', 'task_id-1', 'HumanEval/0'):
        assert grade(web, f'ids/{name}', code=CODE)[2]['all_passed'], name


def test_a_set_of_many(web):
    """The index is searched, and pieces of the body end within problems."""
    problems = [{'id': f'p{n}', 'function': 'f', 'cases': [{'args': [n], 'expected': n + 1, 'name': 'ü' * (n % 50)}]} for n in range(5000)]
    for body in (lines(*problems), json.dumps(problems, indent=1, ensure_ascii=False)):
        status, _, info = put(web, 'many', body)
        assert status in (200, 201) and info['problems'] == 5000, info
        answers = many(web, *({'id': n, 'problem': f'many/p{n}', 'code': 'def f(x):\n    return x + 1\n'} for n in (0, 1, 17, 2500, 4998, 4999)), {'id': 'none', 'problem': 'many/p5000', 'code': ''})
        assert {answer['id']: answer['result']['all_passed'] for answer in answers if 'result' in answer} == dict.fromkeys((0, 1, 17, 2500, 4998, 4999), True)
        assert [answer['error']['field'] for answer in answers if 'error' in answer] == ['/problem']
    web.ask('DELETE', '/v1/problems/many')


# ---- what is wrong ----

@pytest.mark.parametrize('body, field, words', [
    ('', '', 'no problem'), ('[]', '', 'no problem'), ('[', '', 'no end'), ('[{"id": 1}', '', 'no end'), ('[1]', '', 'problem 1'), ('[{"id": "a"}, 7]', '', 'problem 2'),
    ('[' + json.dumps(DOUBLE) + '] x', '', 'problem 2'),
    ('x', '', 'line 1'), (lines(DOUBLE) + '\n{', '', 'line 2'), (lines(DOUBLE, {'function': 'f'}), '/id', 'line 2'), (lines(DOUBLE, ECHO, {**DOUBLE, 'function': 'g'}), '/id', 'line 1'),
    (lines(DOUBLE, {**ECHO, 'casess': 1}), '/casess', 'line 2'), ('\n\n' + lines({**ECHO, 'cases': [{'weight': 'x'}]}), '/cases/0/weight', 'line 3'), (lines({**DOUBLE, 'id': ''}), '/id', 'line 1'),
    (lines({**DOUBLE, 'id': 'x' * 257}), '/id', 'line 1'), (lines({**DOUBLE, 'problem': 'a/b'}), '/problem', 'line 1'), ('[' * 100 + ']' * 100, '', 'problem 1'), ('{"a":' * 100 + '1' + '}' * 100, '', 'line 1'),
    ('\0', '', 'line 1'), ('[\0]', '', 'problem 1')])
def test_a_problem_that_is_wrong_is_named_by_its_line_and_field(web, body, field, words):
    assert put(web, 'wrong', lines(DOUBLE))[0] in (200, 201)
    status, _, problem = put(web, 'wrong', body)
    assert status == 422 and problem.get('field', '') == field and words in problem['detail'], problem
    assert grade(web, 'wrong/double', code=CODE)[2]['all_passed']       # the earlier set is still there


@pytest.mark.parametrize('name', ['.a', '-a', 'a%2Fb', 'a' * 65, '%C3%A4', 'a%00b'])
def test_names_of_sets(web, name):
    status, _, problem = put(web, name, lines(DOUBLE))
    assert status in (400, 404, 422), problem


@pytest.mark.parametrize('problem', ['', 'none', '/x', 'both/', 7, None, [], '../x/y', 'both/' + 'x' * 300])
def test_names_of_problems(web, problem):
    status, _, answer = grade(web, problem, code='')
    assert status == 422 and answer['field'] == '/problem', answer


def test_an_unknown_format_is_refused_before_the_body(web):
    status, _, problem = put(web, 'x', lines(DOUBLE), '?format=nothing')
    assert status == 422 and problem['field'] == '/format' and 'codecontests' in problem['detail'], problem


def test_members_of_the_request_come_before_those_of_the_problem(web):
    assert put(web, 'over', lines({**DOUBLE, 'code': 'def f(x): return 0', 'show_expected': False}))[0] == 201
    result = check(grade(web, 'over/double', id='mine', completion='```python\ndef f(x):\n    return x\n```', show_expected=True)[2])
    assert (result['id'], result['passed']) == ('mine', 0) and result['cases'][0]['expected'] == '4'
    assert grade(web, 'over/double', code=CODE, cases=[{'args': [1], 'expected': 2}])[2]['total'] == 1
    status, _, problem = grade(web, 'over/double', code=CODE, casess=[])
    assert status == 422 and problem['field'] == '/casess'


def test_the_file_of_a_set_is_gone_with_the_set(tmp_path):
    web = Web(tmp_path)
    files = tmp_path / 'files'
    assert put(web, 'a', lines(DOUBLE))[0] == 201 and put(web, 'a', lines(ECHO))[0] == 200 and put(web, 'a', 'x')[0] == 422
    assert len(list(files.iterdir())) == 1
    web.daemon.process.kill()
    web.daemon.process.wait()
    (files / ('problems_' + '0' * 32)).write_text('left')
    web = Web(tmp_path)
    until(lambda: len(list(files.iterdir())) == 1)
    assert grade(web, 'a/echo', language='bash', code='cat')[2]['all_passed']
    next(files.iterdir()).write_text('cut')
    assert grade(web, 'a/echo', code='')[0] == 422 and web.ask('GET', '/v1/problems')[2] == {'problem_sets': []}
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- limits and tenants ----

def test_limits_of_sets_are_settings(tmp_path):
    web = Web(tmp_path, '--set', 'problems.set_bytes=1MiB', '--set', 'problems.set_count=3', '--set', 'problems.tenant_sets=2')
    status, _, problem = put(web, 'a', lines(*({**DOUBLE, 'id': n} for n in range(4))))
    assert status == 413 and 'problems.set_count' in problem['detail'] and 'line 4' in problem['detail'], problem
    status, _, problem = put(web, 'a', lines(*({**DOUBLE, 'id': n, 'setup': 'x = "' + 'y' * 600000 + '"'} for n in range(2))))
    assert status == 413 and 'problems.set_bytes' in problem['detail'] and 'line 2' in problem['detail'], problem
    assert put(web, 'a', lines(DOUBLE))[0] == put(web, 'b', lines(DOUBLE))[0] == 201
    status, _, problem = put(web, 'c', lines(DOUBLE))
    assert status == 507 and 'problems.tenant_sets' in problem['detail'], problem
    assert put(web, 'b', lines(ECHO))[0] == 200
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_one_problem_has_at_most_16_mebibytes(web):
    status, _, problem = put(web, 'long', lines({**DOUBLE, 'setup': 'x' * (17 << 20)}))
    assert status == 413 and '16 MiB' in problem['detail'], problem


def test_tenants_keys_and_stored_bytes(tmp_path):
    keys = Keys(tmp_path)
    run = keys.make('run', '--tenant', 'a', '--scopes', 'run')
    files = keys.make('files', '--tenant', 'a', '--scopes', 'run,files')
    other = keys.make('other', '--tenant', 'b', '--scopes', 'run,files')
    small = keys.make('small', '--tenant', 'c', '--scopes', 'run,files', '--stored', '20000')
    web = Web(tmp_path, keyless=False)
    assert put(web, 'set', lines(DOUBLE))[0] == 401 and put(web, 'set', lines(DOUBLE), **bearer(run))[0] == 403
    assert put(web, 'set', lines(DOUBLE), **bearer(files))[0] == 201
    assert grade(web.with_key(run), 'set/double', code=CODE)[2]['all_passed']
    assert grade(web.with_key(other), 'set/double', code=CODE)[0] == 422
    assert web.ask('GET', '/v1/problems/set', **bearer(other))[0] == web.ask('DELETE', '/v1/problems/set', **bearer(other))[0] == 404
    assert put(web, 'set', lines(ECHO), **bearer(other))[0] == 201
    assert put(web, 'set', lines({**DOUBLE, 'setup': '#' * 5000}), **bearer(small))[0] == 201
    status, _, problem = put(web, 'more', lines({**DOUBLE, 'setup': '#' * 16000}), **bearer(small))
    assert status == 507 and problem['field'] == 'stored_bytes', problem
    assert web.ask('DELETE', '/v1/problems/set', **bearer(small))[0] == 204 and put(web, 'more', lines({**DOUBLE, 'setup': '#' * 16000}), **bearer(small))[0] == 201
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_client_that_goes_leaves_nothing(tmp_path):
    web = Web(tmp_path)
    body = lines(*({**DOUBLE, 'id': n} for n in range(20000))).encode()
    connection = web.open()
    connection.putrequest('PUT', '/v1/problems/half')
    connection.putheader('Content-Length', str(len(body)))
    connection.endheaders()
    connection.send(body[:len(body) // 2])
    until(lambda: any(path.stat().st_size for path in (tmp_path / 'files').glob('new.*')))
    connection.close()
    until(lambda: not list((tmp_path / 'files').iterdir()))
    assert web.ask('GET', '/v1/problems')[2] == {'problem_sets': []}
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- gradings ----

def test_many_over_one_connection(web):
    put(web, 'line', lines(DOUBLE, ECHO))
    requests = [{'id': n, 'problem': 'line/double', 'code': CODE if n % 3 else 'def f(x): return 0'} for n in range(60)]
    answers = many(web, *requests, {'id': 'none', 'problem': 'none/double', 'code': CODE}, {'id': 'type', 'problem': 'line/double', 'code': 7})
    assert {answer['id']: answer['result']['all_passed'] for answer in answers if 'result' in answer} == {n: n % 3 != 0 for n in range(60)}
    assert {answer['id']: answer['error']['field'] for answer in answers if 'error' in answer} == {'none': '/problem', 'type': '/code'}


def test_a_line_with_a_problem_can_be_cancelled(web):
    put(web, 'slow', lines({**DOUBLE, 'case_cpu_ms': 60000}))
    answers = many(web, {'id': 'slow', 'problem': 'slow/double', 'code': 'import time\ndef f(x):\n    time.sleep(100)\n'}, {'cancel': 'slow'})
    assert answers[0]['result']['status'] == 'cancelled' and answers[0]['result']['mask'] and answers[0]['result']['score'] is None


def test_a_reward_names_a_stored_problem(web):
    put(web, 'reward', lines(DOUBLE))
    ask = {'prompt': '', 'response': f'```python\n{CODE}```', 'label': 'reward/double'}
    assert web.ask('POST', '/reward/slime', ask)[2] == 1
    assert web.ask('POST', '/reward/openrlhf', {'query': [ask['response'], 'no'], 'prompts': ['', ''], 'labels': ['reward/double'] * 2})[2] == {'rewards': [1, 0]}
    status, _, problem = web.ask('POST', '/reward/slime', {**ask, 'label': 'reward/none'})
    assert status == 400 and problem['field'] == '/label', problem


def test_a_set_is_replaced_while_it_is_used(web):
    put(web, 'busy', lines(DOUBLE))
    answers = []
    thread = threading.Thread(target=lambda: answers.extend(many(web, *({'id': n, 'problem': 'busy/double', 'code': CODE} for n in range(100)))))
    thread.start()
    for _ in range(20):
        assert put(web, 'busy', lines(DOUBLE, ECHO))[0] == 200
    thread.join()
    assert len(answers) == 100 and all(answer['result']['all_passed'] for answer in answers), answers


def test_a_problem_of_a_data_set_is_no_name(web):
    """A record may have a member `problem` of its own: the statement."""
    record = {'format': 'lcb', 'problem': 'Add two numbers.', 'code': 'def add(a, b): return a + b', **LCB}
    assert web.ask('POST', '/v1/grade', record)[2]['all_passed']


def test_the_command_line_has_no_sets():
    result = one(problem='a/b', code='')
    assert result['status'] == 'bad_request' and result['error']['field'] == '/problem' and 'POST /v1/grade' in result['error']['message'], result


# ---- single gradings without a verdict ----

def test_a_single_grading_without_a_verdict_is_503_with_its_result(web):
    request = {'language': 'cobol', 'code': '', 'cases': [{'stdin': '', 'expected_stdout': ''}]}
    status, headers, result = web.ask('POST', '/v1/grade', request)
    assert status == 503 and headers['Retry-After'] == '1' and headers['Content-Type'] == 'application/json'
    assert (result['mask'], result['score'], result['reward'], result['status']) == (True, None, None, 'unsupported_language')
    answer = many(web, {'id': 1, **request})[0]
    assert answer['result']['mask'] and answer['result']['score'] is None
