"""The words of Judge0: submissions and batches, waited for or asked for by token; every field, status and error; two tenants."""

import base64
import datetime
import json
import re
import signal
import time

import pytest

from cli import ROOT
from daemon import until
from keys import Keys, bearer
from web import Web

PYTHON, NODE, TYPESCRIPT, BASH = 71, 63, 74, 46
USUAL = {'token', 'time', 'memory', 'stdout', 'stderr', 'compile_output', 'message', 'status'}
NAMES = {1: 'In Queue', 2: 'Processing', 3: 'Accepted', 4: 'Wrong Answer', 5: 'Time Limit Exceeded', 6: 'Compilation Error', 7: 'Runtime Error (SIGSEGV)',
         8: 'Runtime Error (SIGXFSZ)', 9: 'Runtime Error (SIGFPE)', 10: 'Runtime Error (SIGABRT)', 11: 'Runtime Error (NZEC)', 12: 'Runtime Error (Other)',
         13: 'Internal Error', 14: 'Exec Format Error'}


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('judge0'), '--set', 'ceilings.wall_ms=90s', '--set', 'ceilings.cpu_ms=15s', '--set', 'ceilings.memory_bytes=1GiB')
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def submit(web, code, language=PYTHON, query='', **more):
    status, _, answer = web.ask('POST', f'/submissions?wait=true{query}', {'source_code': code, 'language_id': language, **more})
    assert status == 201, answer
    return answer


def judged(web, code, language=PYTHON, **more):
    answer = submit(web, code, language, '&fields=*', **more)
    assert answer['status'] == {'id': answer['status_id'], 'description': NAMES[answer['status_id']]}
    return answer


def refused(web, **body):
    status, _, answer = web.ask('POST', '/submissions', {'source_code': 'print(1)', 'language_id': PYTHON, **body})
    assert status == 422, answer
    return answer


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


# ---- what one looks at before ----

def test_statuses(web):
    assert web.ask('GET', '/statuses')[::2] == (200, [{'id': n, 'description': name} for n, name in NAMES.items()])


def test_languages(web):
    languages = {one['id']: one['name'] for one in web.ask('GET', '/languages')[2]}
    assert {PYTHON, NODE, TYPESCRIPT, BASH, 92, 100, 109} <= set(languages) and 54 not in languages and 72 not in languages
    assert web.ask('GET', '/languages/71')[2]['name'] == languages[71] and web.ask('GET', '/languages/71')[2]['is_archived'] is False
    for nothing in ('54', '0', 'x', '-71', '71.0'):
        assert web.ask('GET', f'/languages/{nothing}')[::2] == (404, {'status': 404, 'error': 'Not Found'})


def test_the_configuration_is_what_is_in_force(web):
    config = web.ask('GET', '/config_info')[2]
    assert (config['max_wall_time_limit'], config['max_cpu_time_limit'], config['max_memory_limit']) == (90, 15, 2**20)
    assert (config['wall_time_limit'], config['cpu_time_limit'], config['max_submission_batch_size']) == (10, 5, 20)
    assert config['enable_wait_result'] and config['enable_batched_submissions'] and not config['enable_callbacks'] and not config['enable_additional_files']
    assert web.ask('GET', '/about')[2]['version'] == '1.13.1'


# ---- programs ----

@pytest.mark.parametrize('language, code', [(PYTHON, 'print(input())'), (NODE, 'console.log(require("fs").readFileSync(0, "utf8").trim())'),
                                            (TYPESCRIPT, 'const a: string = require("fs").readFileSync(0, "utf8").trim(); console.log(a)'),
                                            (BASH, 'read a; echo $a'),
                                            ('92', 'print(input())'), (113, 'print(input())')])
def test_a_program_in_each_language(web, language, code):
    answer = submit(web, code, language, stdin='in')
    assert set(answer) == USUAL
    assert (answer['status'], answer['stdout'], answer['stderr'], answer['compile_output'], answer['message']) == ({'id': 3, 'description': 'Accepted'},
                                                                                                                   'in\n', None, None, None)
    assert re.fullmatch(r'\d+\.\d{3}', answer['time']) and 100 < answer['memory'] < 2**20


@pytest.mark.parametrize('language, code, status, message, exit_code, exit_signal', [
    (BASH, 'exit 3', 11, 'Exited with error status 3', 3, None), (BASH, 'kill -SEGV $$', 7, 'Caught fatal signal 11', None, 11),
    (BASH, 'kill -XFSZ $$', 8, 'Caught fatal signal 25', None, 25), (BASH, 'kill -FPE $$', 9, 'Caught fatal signal 8', None, 8),
    (BASH, 'kill -ABRT $$', 10, 'Caught fatal signal 6', None, 6), (BASH, 'kill -KILL $$', 12, 'Caught fatal signal 9', None, 9),
    (PYTHON, '1/0', 11, 'Exited with error status 1', 1, None), (PYTHON, 'def f(:', 11, 'Exited with error status 1', 1, None),
    (BASH, 'true', 3, None, 0, None)])
def test_how_a_program_ended(web, language, code, status, message, exit_code, exit_signal):
    answer = judged(web, code, language)
    assert (answer['status_id'], answer['message'], answer['exit_code'], answer['exit_signal']) == (status, message, exit_code, exit_signal)


def test_what_does_not_compile(web):
    answer = judged(web, 'const a: = 3', TYPESCRIPT)
    assert answer['status_id'] == 6 and 'SyntaxError' in answer['compile_output']
    for name in ('stdout', 'stderr', 'message', 'time', 'wall_time', 'memory', 'exit_code', 'exit_signal'):
        assert answer[name] is None
    assert judged(web, 'throw 1', TYPESCRIPT)['status_id'] == 11


def test_the_wall_clock_is_in_seconds(web):
    answer = judged(web, 'import time; print(1, flush=True); time.sleep(60)', wall_time_limit=3)
    assert (answer['status_id'], answer['message'], answer['stdout'], answer['exit_code']) == (5, 'Time limit exceeded (wall clock)', '1\n', None)
    assert 3 <= float(answer['wall_time']) < 15 and float(answer['time']) < 2


def test_cpu_time_is_in_seconds(web):
    answer = judged(web, 'while True: pass', cpu_time_limit=.5, cpu_extra_time='0.2', wall_time_limit=15)
    assert (answer['status_id'], answer['message']) == (5, 'Time limit exceeded')
    assert .7 <= float(answer['time']) < 10


def test_extra_time_lets_a_program_end_and_counts_all_the_same(web):
    code = 'import time\nwhile time.process_time() < 1.2: pass\nprint("done")'
    answer = judged(web, code, cpu_time_limit=.5, cpu_extra_time=5)
    assert (answer['status_id'], answer['stdout'], answer['message'], answer['exit_code']) == (5, 'done\n', 'Time limit exceeded', None)
    assert judged(web, code, cpu_time_limit=4, cpu_extra_time=0)['status_id'] == 3
    assert judged(web, code, cpu_time_limit=0)['status_id'] == 3


def test_a_memory_limit_is_in_kilobytes(web):
    code = 'x = bytearray(100 * 2**20); print(1)'
    assert judged(web, code, memory_limit=400000)['status_id'] == 3
    answer = judged(web, code, memory_limit=60000)
    assert answer['status_id'] in (11, 12) and answer['stdout'] is None
    assert judged(web, 'true', BASH, memory_limit=2048)['memory_limit'] == 2048


def test_output_has_the_limit_of_a_file(web):
    answer = judged(web, 'import sys\nwhile True: sys.stdout.write("x" * 10000)', max_file_size=64)
    assert (answer['status_id'], answer['exit_signal'], answer['message']) == (8, 25, 'Caught fatal signal 25')
    assert answer['stdout'].startswith('xxx') and len(answer['stdout']) <= 64 * 1024
    assert judged(web, 'print("x" * 60000)', max_file_size=64)['status_id'] == 3


def test_processes(web):
    code = 'import subprocess; print(len([subprocess.Popen(["sleep", "1"]) for _ in range(20)]))'
    assert judged(web, code, max_processes_and_or_threads=60)['stdout'] == '20\n'
    assert judged(web, code, max_processes_and_or_threads=5)['status_id'] == 11


@pytest.mark.parametrize('line, want',
                         [('a b', ['a', 'b']), ("'a b' \"c d\" e\\ f", ['a b', 'c d', 'e f']), ('a$b;c|d&e<f>g`h`', ['abcdefgh']), ("''", ['']), ('', []),
                                        ('  -x   --y=1  ', ['-x', '--y=1']), ('"a\'b" \'c"d\'', ["a'b", 'c"d']), ('*', ['*']), ('$(id)', ['(id)']),
                                        ('é\\', ['é\\']), ("'open", ['open']), ('\\$x', ['x'])])
def test_arguments_as_a_shell_splits_them(web, line, want):
    answer = judged(web, 'import sys, json; print(json.dumps(sys.argv[1:]))', command_line_arguments=line)
    assert json.loads(answer['stdout']) == want and (answer['command_line_arguments'] or '') == line


# ---- expected output ----

@pytest.mark.parametrize('expected, output, same', [
    ('1', '1\n', True), ('1\n\n\n', '1', True), ('a  \nb\t\n', 'a\nb', True), ('a\nb', 'a   \nb \n \n', True), ('a\n\nb', 'a\n\nb\n', True), ('', '', True),
    (' \n', '', True),
    ('a\r\nb\r\n', 'a\nb\n', True), ('1', '2', False), ('a\nb', 'a\n\nb', False), (' a', 'a', False), ('a', 'A', False), ('a b', 'a  b', False),
    ('a', 'a\nb', False), ('a\nb', 'a', False),
    ('', 'x', False), ('é', 'é\n', True)])
def test_output_is_compared_but_for_white_space_at_ends(web, expected, output, same):
    answer = judged(web, f'import sys; sys.stdout.write({output!r})', expected_output=expected)
    assert answer['status_id'] == (3 if same else 4) and answer['expected_output'] == expected


def test_what_failed_is_not_compared(web):
    assert judged(web, 'echo 1; exit 1', BASH, expected_output='1')['status_id'] == 11


# ---- base64 ----

def test_texts_in_base64(web):
    code = 'import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); sys.stderr.buffer.write(d[::-1]); sys.exit(2)'
    answer = submit(web, b64(code),
                    query='&base64_encoded=true', stdin=b64(b'\xff\x00'))
    assert (answer['stdout'], answer['stderr'], base64.b64decode(answer['message'])) == (b64(b'\xff\x00'), b64(b'\x00\xff'), b'Exited with error status 2')
    code = base64.encodebytes(b'print(open(0).read())  # ' + b'x' * 100).decode()
    answer = submit(web, code, query='&base64_encoded=true&fields=*', stdin=b64('é'), expected_output=b64('é'))
    assert answer['status_id'] == 3 and answer['expected_output'] == answer['stdin'] == b64('é')
    assert base64.b64decode(answer['source_code']).startswith(b'print')


def test_bytes_that_are_no_text_need_it(web):
    body = {'source_code': 'import sys; sys.stdout.buffer.write(b"\\xff")', 'language_id': PYTHON}
    status, _, answer = web.ask('POST', '/submissions?wait=true', body)
    assert status == 201 and set(answer) == {'error', 'token'} and 'base64_encoded=true' in answer['error']
    token = answer['token']
    status, _, answer = web.ask('GET', f'/submissions/{token}')
    assert status == 400 and 'base64_encoded=true' in answer['error']
    assert web.ask('GET', f'/submissions/batch?tokens={token}')[0] == 400
    assert web.ask('GET', f'/submissions/{token}?fields=status,time')[2]['status']['id'] == 3
    assert web.ask('GET', f'/submissions/{token}?base64_encoded=true')[2]['stdout'] == '/w=='


@pytest.mark.parametrize('field', ['source_code', 'stdin', 'expected_output'])
def test_what_is_no_base64(web, field):
    body = {'source_code': 'MQ==', 'language_id': PYTHON, 'stdin': 'MQ==', 'expected_output': 'MQ==', field: '*'}
    status, _, answer = web.ask('POST', '/submissions?base64_encoded=true', body)
    assert status == 422 and list(answer) == [field]


# ---- tokens ----

def test_a_submission_is_asked_for_by_its_token(web):
    status, _, answer = web.ask('POST', '/submissions', {'source_code': 'import time; time.sleep(3); print(7)', 'language_id': PYTHON, 'stdin': 'x'})
    assert status == 201 and set(answer) == {'token'}
    path = f'/submissions/{answer["token"]}'
    status, _, early = web.ask('GET', path)
    assert status == 200 and set(early) == USUAL and early['status']['id'] in (1, 2) and early['stdout'] is None
    until(lambda: web.ask('GET', path)[2]['status']['id'] == 2)
    assert web.ask('GET', path + '?fields=*')[2]['stdin'] == 'x'
    done = until(lambda: (lambda got: got['status']['id'] > 2 and got)(web.ask('GET', path + '?fields=*')[2]))
    assert (done['status_id'], done['stdout'], done['token'], done['language']['id']) == (3, '7\n', answer['token'], PYTHON)
    begun, ended = (datetime.datetime.strptime(done[name], '%Y-%m-%dT%H:%M:%S.%fZ') for name in ('created_at', 'finished_at'))
    assert ended - begun >= datetime.timedelta(seconds=3)
    assert web.ask('GET', f'/v1/runs/{answer["token"]}')[2]['stdout'] == '7\n'


def test_one_that_waits_is_in_the_queue(tmp_path):
    web = Web(tmp_path, '--set', 'engine.running_max=1')
    body = {'source_code': 'sleep 9', 'language_id': BASH}
    tokens = [web.ask('POST', '/submissions', body)[2]['token'] for _ in range(2)]
    until(lambda: web.ask('GET', f'/submissions/{tokens[0]}')[2]['status']['id'] == 2)
    assert web.ask('GET', f'/submissions/{tokens[1]}')[2]['status'] == {'id': 1, 'description': 'In Queue'}
    for token in tokens:
        web.ask('DELETE', f'/v1/runs/{token}')
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_submission_outlives_the_daemon(tmp_path):
    web = Web(tmp_path)
    done = web.ask('POST', '/submissions?wait=true&fields=*', {'source_code': 'print(7)', 'language_id': PYTHON, 'expected_output': '7'})[2]
    assert web.daemon.stop(signal.SIGTERM) == 0
    (tmp_path / 'log').unlink()
    web = Web(tmp_path)
    assert web.ask('GET', f'/submissions/{done["token"]}?fields=*')[::2] == (200, done)
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_what_was_ended_is_an_internal_error(web):
    token = web.ask('POST', '/submissions', {'source_code': 'sleep 15', 'language_id': BASH})[2]['token']
    assert web.ask('DELETE', f'/v1/runs/{token}')[0] in (202, 204)
    answer = until(lambda: (lambda got: got['status']['id'] > 2 and got)(web.ask('GET', f'/submissions/{token}')[2]))
    assert answer['status']['id'] == 13 and answer['message']


@pytest.mark.parametrize('fields, names', [('status,stdout', {'status', 'stdout'}), ('token', {'token'}), ('', USUAL), ('*', None), ('stdout,*', None)])
def test_fields_are_chosen(web, fields, names):
    answer = submit(web, 'print(1)', query=f'&fields={fields}')
    assert set(answer) == names if names else len(answer) == 35
    assert web.ask('GET', f'/submissions/batch?tokens=x&fields={fields}')[::2] == (200, {'submissions': [None]})


def test_fields_that_are_none(web):
    for ask in (('POST', '/submissions?wait=true&fields=a,stdout,b', {'source_code': '1', 'language_id': PYTHON}), ('GET', '/submissions/x?fields=a,stdout,b'),
                ('GET', '/submissions/batch?tokens=x&fields=a,stdout,b')):
        assert web.ask(*ask)[::2] == (400, {'error': 'invalid fields: [a, b]'})


def test_a_run_that_is_no_submission_and_one_that_is_none(web):
    run = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1', 'labels': {'a': 'b'}}, Prefer='respond-async')[2]['id']
    lies = [web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1', 'labels': {'judge0': text}}, Prefer='respond-async')[2]['id']
            for text in ('', '[]', '{', 'null', '{"source_code": 5, "expected_output": "*", "cpu_time_limit": "x", "language_id": {}, "stdin": []}')]
    until(lambda: not web.runs())
    for token in (run, *lies[:-1], 'nothing', 'run_' + '0' * 32):
        assert web.ask('GET', f'/submissions/{token}')[::2] == (404, {'status': 404, 'error': 'Not Found'})
    assert web.ask('GET', f'/submissions/{lies[-1]}?fields=*')[2]['source_code'] is None


# ---- batches ----

def test_a_batch(web):
    bodies = [{'source_code': f'print({n})', 'language_id': PYTHON, 'expected_output': '1'} for n in range(3)]
    status, _, answer = web.ask('POST', '/submissions/batch', {'submissions': [*bodies, {'language_id': 9999}, 'x']})
    assert status == 201 and [set(one) for one in answer] == [{'token'}] * 3 + [{'source_code', 'language_id'}] * 2
    tokens = [one['token'] for one in answer[:3]]
    path = '/submissions/batch?tokens=' + ','.join([*tokens, 'nothing'])
    done = until(lambda: (lambda got: all(one['status']['id'] > 2 for one in got[:3]) and got)(web.ask('GET',
                                                                                                       path + '&fields=stdout,status,token')[2]['submissions']))
    assert [(one['token'], one['stdout'], one['status']['id']) for one in done[:3]] == [(tokens[0], '0\n', 4), (tokens[1], '1\n', 3), (tokens[2], '2\n', 4)]
    assert done[3] is None
    assert set(web.ask('GET', path)[2]['submissions'][0]) == USUAL
    assert web.ask('GET', '/submissions/batch?base64_encoded=true', tokens=tokens[1])[2]['submissions'][0]['stdout'] == b64('1\n')


def test_a_batch_in_base64(web):
    answer = web.ask('POST', '/submissions/batch?base64_encoded=true', {'submissions': [{'source_code': b64('print(5)'), 'language_id': PYTHON}]})[2]
    path = '/submissions/batch?tokens=' + answer[0]['token']
    assert until(lambda: web.ask('GET', path)[2]['submissions'][0]['stdout']) == '5\n'


def test_batches_that_are_none(web):
    few, many = 'there should be at least one submission in a batch', 'number of submissions in a batch should be less than or equal to 20'
    one = {'source_code': '1', 'language_id': PYTHON}
    for body, error in (({'submissions': []}, few), ({}, few), ({'submissions': 'x'}, few), ({'submissions': [one] * 21}, many)):
        assert web.ask('POST', '/submissions/batch', body)[::2] == (400, {'error': error})
    assert web.ask('GET', '/submissions/batch')[::2] == web.ask('GET', '/submissions/batch?tokens=')[::2] == (400, {'error': few})
    assert web.ask('GET', '/submissions/batch?tokens=' + ','.join('x' * 21))[::2] == (400, {'error': many})
    status, _, answer = web.ask('POST', '/submissions/batch', {'submissions': [{}, {'source_code': 'x'}]})
    assert status == 422 and answer == [{'source_code': ["can't be blank"], 'language_id': ["can't be blank"]}, {'language_id': ["can't be blank"]}]


# ---- what is wrong ----

@pytest.mark.parametrize('body, field, message', [
    ({'source_code': None}, 'source_code', "can't be blank"), ({'source_code': ''}, 'source_code', "can't be blank"),
    ({'source_code': 5}, 'source_code', 'is not a text'),
    ({'language_id': None}, 'language_id', "can't be blank"), ({'language_id': 54}, 'language_id', "language with id 54 doesn't exist"),
    ({'language_id': 'x'}, 'language_id', 'is not a number'), ({'language_id': 71.5}, 'language_id', "language with id 71.5 doesn't exist"),
    ({'stdin': 5}, 'stdin', 'is not a text'), ({'expected_output': []}, 'expected_output', 'is not a text'),
    ({'command_line_arguments': {}}, 'command_line_arguments', 'is not a text'),
    ({'command_line_arguments': 'x' * 513}, 'command_line_arguments', 'is too long (maximum is 512 characters)'),
    ({'cpu_time_limit': 15.1}, 'cpu_time_limit', 'must be less than or equal to 15'),
    ({'cpu_time_limit': -1}, 'cpu_time_limit', 'must be greater than or equal to 0'),
    ({'cpu_time_limit': 'x'}, 'cpu_time_limit', 'is not a number'), ({'cpu_extra_time': 6}, 'cpu_extra_time', 'must be less than or equal to 5'),
    ({'wall_time_limit': 0.5}, 'wall_time_limit', 'must be greater than or equal to 1'),
    ({'wall_time_limit': 91}, 'wall_time_limit', 'must be less than or equal to 90'),
    ({'memory_limit': 2047}, 'memory_limit', 'must be greater than or equal to 2048'),
    ({'memory_limit': 2**20 + 1}, 'memory_limit', 'must be less than or equal to 1048576'),
    ({'memory_limit': []}, 'memory_limit', 'is not a number'), ({'stack_limit': 128001}, 'stack_limit', 'must be less than or equal to 128000'),
    ({'max_processes_and_or_threads': 0}, 'max_processes_and_or_threads', 'must be greater than or equal to 1'),
    ({'max_file_size': -1}, 'max_file_size', 'must be greater than or equal to 0'),
    ({'number_of_runs': 2}, 'number_of_runs', 'must be less than or equal to 1'),
    ({'compiler_options': '-O2'}, 'compiler_options', 'setting compiler options is not allowed'),
    ({'callback_url': 'http://localhost'}, 'callback_url', 'setting callback is not allowed'),
    ({'additional_files': 'UEs='}, 'additional_files', 'setting additional files is not allowed'),
    ({'enable_network': True}, 'enable_network', 'enabling network is not allowed'),
    ({'redirect_stderr_to_stdout': 'true'}, 'redirect_stderr_to_stdout', 'this option cannot be enabled'),
    ({'enable_per_process_and_thread_time_limit': 1}, 'enable_per_process_and_thread_time_limit', 'this option cannot be enabled'),
    ({'enable_per_process_and_thread_memory_limit': True}, 'enable_per_process_and_thread_memory_limit', 'this option cannot be enabled')], ids=range(31))
def test_a_wrong_value_is_told_as_theirs_is(web, body, field, message):
    assert refused(web, **body) == {field: [message]}


def test_a_program_that_is_too_long(web):
    assert list(refused(web, source_code='#' * (1 << 20) + '\n')) == ['source_code']


def test_what_says_nothing_and_what_is_unknown_is_ignored(web):
    more = {'cpu_time_limit': None, 'wall_time_limit': '', 'enable_network': False, 'redirect_stderr_to_stdout': None, 'callback_url': '',
            'additional_files': None,
            'compiler_options': '', 'number_of_runs': 1, 'stack_limit': 64000, 'what': {'a': 1}}
    assert judged(web, 'print(1)', **more)['status_id'] == 3
    assert web.ask('GET', '/statuses?x=1')[0] == web.ask('GET', '/submissions/batch?tokens=x&page=2')[0] == 200


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'language_id=71&source_code=1', b'[' * 100000])
def test_a_body_that_is_no_object(web, body):
    for path in ('/submissions', '/submissions?wait=true', '/submissions/batch'):
        status, _, answer = web.ask('POST', path, body)
        assert status == 400 and answer['status'] == 400 and answer['error']


# ---- two tenants ----

@pytest.fixture(name='place', scope='module')
def with_keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp('judge0_keys')
    keys = Keys(folder)
    keys.alice = keys.make('a', '--tenant', 'alice', '--scopes', 'run,read')
    keys.mallory = keys.make('m', '--tenant', 'mallory', '--scopes', 'run,read')
    keys.reader = keys.make('r', '--tenant', 'alice', '--scopes', 'read')
    keys.busy = keys.make('b', '--tenant', 'bob', '--scopes', 'run,read', '--running', '1', '--queued', '2')
    keys.web = Web(folder, keyless=False)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


def test_nobody_sees_the_tokens_of_another(place):
    body = {'source_code': 'print("secret")', 'language_id': PYTHON}
    token = place.web.ask('POST', '/submissions?wait=true', body, **bearer(place.alice))[2]['token']
    assert place.web.ask('GET', f'/submissions/{token}', **bearer(place.reader))[2]['stdout'] == 'secret\n'
    assert place.web.ask('GET', f'/submissions/{token}', **bearer(place.mallory))[::2] == (404, {'status': 404, 'error': 'Not Found'})
    assert place.web.ask('GET', f'/submissions/batch?tokens={token}', **bearer(place.mallory))[2] == {'submissions': [None]}
    live = place.web.ask('POST', '/submissions', {'source_code': 'sleep 2', 'language_id': BASH}, **bearer(place.alice))[2]['token']
    assert place.web.ask('GET', f'/submissions/{live}', **bearer(place.mallory))[0] == 404


def test_judge0_has_a_header_of_its_own(place):
    body = {'source_code': 'print(1)', 'language_id': PYTHON}
    assert place.web.ask('POST', '/submissions', body)[0] == place.web.ask('GET', '/languages')[0] == 401
    assert place.web.ask('POST', '/submissions', body, X_Auth_Token='wrong')[0] == 401
    assert place.web.ask('POST', '/submissions', body, X_Auth_Token=place.reader)[0] == 403
    assert place.web.ask('POST', '/submissions', body, X_Auth_Token=place.alice)[0] == 201
    assert place.web.ask('GET', '/languages', X_Auth_Token=place.reader)[0] == 200


def test_quotas_are_those_of_v1(place):
    one = {'source_code': 'sleep 9', 'language_id': BASH}
    status, _, answer = place.web.ask('POST', '/submissions/batch', {'submissions': [one] * 6}, **bearer(place.busy))
    assert status == 201 and [set(each) for each in answer] == [{'token'}] * 3 + [{'error'}] * 3
    status, headers, problem = place.web.ask('POST', '/submissions', one, **bearer(place.busy))
    assert status == 429 and headers['Retry-After'] and problem['detail']
    assert place.web.ask('POST', '/submissions?wait=true', one, **bearer(place.busy))[0] == 429
    for each in answer[:3]:
        place.web.ask('DELETE', f'/v1/runs/{each["token"]}', **bearer(place.busy))


def test_who_goes_ends_the_run(web):
    until(lambda: not web.runs())
    connection = web.open()
    connection.request('POST', '/submissions?wait=true', json.dumps({'source_code': 'sleep 80', 'language_id': BASH, 'wall_time_limit': 80}))
    until(web.runs)
    time.sleep(.2)
    connection.close()
    until(lambda: not web.runs())


def test_the_page_has_an_example_that_works(web):
    page = (ROOT / 'docs' / 'use' / 'compat.md').read_text()
    body = page.split('/submissions?wait=true')[1].split("-d '")[1].split("'")[0]
    assert web.ask('POST', '/submissions?wait=true', body)[2]['status'] == {'id': 3, 'description': 'Accepted'}
