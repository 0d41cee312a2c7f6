"""The words of SandboxFusion (POST /run_code): every field, every status, and what its clients make of the answers."""

import base64
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from cli import ROOT
from daemon import until
from keys import Keys, bearer
from web import Web

RUNS_HERE = {'python': 'print("out"); import sys; print("err", file=sys.stderr)', 'nodejs': 'console.log("out"); console.error("err")',
             'typescript': 'const a: string = "out"; console.log(a); console.error("err" as string)', 'bash': 'echo out; echo err >&2'}


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('fusion'), '--set', 'ceilings.wall_ms=90s')
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def ask(web, code, language='python', **more):
    status, headers, answer = web.ask('POST', '/run_code', {'code': code, 'language': language, **more})
    assert status == 200 and headers['Content-Type'] == 'application/json', answer
    assert set(answer) == {'status', 'message', 'compile_result', 'run_result', 'executor_pod_name', 'files'}
    assert answer['compile_result'] is None and answer['executor_pod_name'] is None
    return answer


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


# ---- programs ----

@pytest.mark.parametrize('language', RUNS_HERE)
def test_a_program_in_each_language(web, language):
    answer = ask(web, RUNS_HERE[language], language)
    run = answer['run_result']
    assert (answer['status'], answer['message'], answer['files']) == ('Success', '', {})
    assert set(run) == {'status', 'execution_time', 'return_code', 'stdout', 'stderr'}
    assert (run['status'], run['return_code'], run['stdout'], run['stderr']) == ('Finished', 0, 'out\n', 'err\n')
    assert 0 < run['execution_time'] < 20


def test_what_it_reads(web):
    code = 'import sys; print(repr(sys.stdin.read()))'
    assert ask(web, code, stdin='1 2\nä')['run_result']['stdout'] == "'1 2\\nä'\n"
    assert ask(web, code, stdin=None)['run_result']['stdout'] == ask(web, code)['run_result']['stdout'] == "''\n"


@pytest.mark.parametrize('code, return_code, text', [
    ('import sys; sys.exit(3)', 3, ''), ('1/0', 1, 'ZeroDivisionError'), ('def f(:', 1, 'SyntaxError'), ('import os; os.kill(os.getpid(), 11)', -11, '')])
def test_a_program_that_fails_is_an_answer(web, code, return_code, text):
    answer = ask(web, code)
    run = answer['run_result']
    assert (answer['status'], answer['message']) == ('Failed', '')
    assert (run['status'], run['return_code']) == ('Finished', return_code) and text in run['stderr']


@pytest.mark.parametrize('code', ['print(1, flush=True)\nwhile True: pass', 'import time; print(1, flush=True); time.sleep(60)'], ids=['busy', 'asleep'])
def test_seconds_are_seconds(web, code):
    answer = ask(web, code, run_timeout=3, compile_timeout=1)
    run = answer['run_result']
    assert (answer['status'], run['status'], run['return_code'], run['stdout']) == ('Failed', 'TimeLimitExceeded', None, '1\n')
    assert 3 <= run['execution_time'] < 30      # what others compute in the meantime does not count


def test_no_time_at_all(web):
    assert ask(web, 'import time; time.sleep(5)', run_timeout=0)['run_result']['status'] == 'TimeLimitExceeded'
    assert ask(web, 'import time; time.sleep(5)', run_timeout=-1)['run_result']['status'] == 'TimeLimitExceeded'


def test_a_memory_limit_is_in_mebibytes(web):
    code = 'x = bytearray(150 * 2**20); print(len(x))'
    assert ask(web, code, memory_limit_MB=400)['run_result']['stdout'] == '157286400\n'
    assert ask(web, code, memory_limit_MB=-1)['status'] == 'Success'
    answer = ask(web, code, memory_limit_MB=100)
    assert (answer['status'], answer['run_result']['status'], answer['run_result']['stdout']) == ('Failed', 'Finished', '')
    assert answer['run_result']['return_code'] != 0 and 'Memory limit of 100MiB' in answer['message']


@pytest.mark.parametrize('stream', ['stdout', 'stderr'])
def test_output_that_was_cut_is_no_success(web, stream):
    answer = ask(web, f'import sys; print("a" * 2000000 + "z", file=sys.{stream})')
    run = answer['run_result']
    assert (answer['status'], run['status'], run['return_code']) == ('Failed', 'Finished', 0) and 'was cut' in answer['message']
    assert 0 < len(run[stream]) <= 2**20 and run[stream].startswith('aaa') and run[stream].endswith('z\n')
    assert ask(web, f'import sys; print("a" * 900000, file=sys.{stream})')['status'] == 'Success'


BUSY = 'import time\nwhile time.process_time() < %s: pass\nprint(1)'


def at_once(number, function):
    """What the function gave, for so many numbers at the same time."""
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(function, range(number)))


def post(web, path, body):
    """The answer, however long it takes."""
    with closing(web.open(timeout=600)) as connection:
        connection.request('POST', path, json.dumps(body), {'Content-Type': 'application/json'})
        return json.load(connection.getresponse())


@pytest.mark.parametrize('number, cpu_s', [(16, 0.5), (128, 0.1)])
def test_a_time_limit_does_not_count_what_others_compute(web, number, cpu_s):
    answers = at_once(number, lambda _: post(web, '/run_code', {'code': BUSY % cpu_s, 'language': 'python', 'run_timeout': 3}))
    assert {(answer['status'], answer['run_result']['status'], answer['run_result']['stdout']) for answer in answers} == {('Success', 'Finished', '1\n')}


@pytest.mark.alone('machine')
def test_a_time_limit_counts_what_the_program_does_itself(web):
    programs = ['import time; time.sleep(30)', 'while True: pass', 'import os\nfor _ in range(3): os.fork()\nwhile True: pass', 'import select; select.select([], [], [], 30)']
    answers = at_once(16, lambda number: ask(web, programs[number % len(programs)], run_timeout=1))
    assert {answer['run_result']['status'] for answer in answers} == {'TimeLimitExceeded'}
    assert max(answer['run_result']['execution_time'] for number, answer in enumerate(answers) if number % len(programs) in (0, 3)) < 2


def test_a_time_limit_that_does_not_count_others_at_the_other_fronts(web):
    def piston(_):
        return post(web, '/api/v2/execute', {'language': 'python', 'version': '*', 'files': [{'content': BUSY % 0.3}], 'run_timeout': 2000})['run']['code']

    def judge0(_):
        return post(web, '/submissions?wait=true', {'language_id': 71, 'source_code': BUSY % 0.3, 'wall_time_limit': 2, 'cpu_time_limit': 2})['status']['id']

    assert set(at_once(16, piston)) == {0} and set(at_once(16, judge0)) == {3}


def test_bytes_that_are_no_text(web):
    run = ask(web, 'import sys; sys.stdout.buffer.write(b"a\\xff\\x00b"); sys.stderr.buffer.write(b"\\xc3")')['run_result']
    assert (run['stdout'], run['stderr']) == ('a\ufffd\x00b', '\ufffd')


def test_numbers_may_be_texts_and_what_is_unknown_is_ignored(web):
    assert ask(web, 'print(1)', run_timeout='5', memory_limit_MB='300', more={'a': 1}, run_timout=1)['status'] == 'Success'
    assert ask(web, 'import sys; print(sys.argv[1:])', args=['-k', 'x'])['run_result']['stdout'] == '[]\n'    # they are pytest's alone


# ---- files ----

def test_files_in_and_out(web):
    code = '''
import os
assert open('in/a.bin', 'rb').read() == b'\\x00\\xff' and open('dot.txt').read() == 'dot'
assert not os.path.exists('none') and not os.path.exists('x_IGNORE_THIS_FILE')
os.makedirs('out', exist_ok=True)
open('out/new.bin', 'wb').write(bytes(range(256)))
open('changed', 'a').write('!')
os.remove('gone')
open('[a]*?.txt', 'w').write('glob')
open('empty', 'w')
os.symlink('/etc/passwd', 'link')
'''
    files = {'in/a.bin': b64(b'\x00\xff'), './dot.txt': b64('dot'), 'none': None, 'x_IGNORE_THIS_FILE': b64('x'), 'changed': b64('is'), 'same': b64('same'),
             'gone': b64('x'), 'lines': base64.encodebytes(b'x' * 100).decode()}
    names = ['out/new.bin', 'changed', 'same', 'lines', './dot.txt', '[a]*?.txt', 'empty', 'gone', 'none', 'missing', 'link', '../x', '/etc/passwd', 'out',
             'new.bin']
    answer = ask(web, code, files=files, fetch_files=names)
    assert answer['status'] == 'Success', answer
    assert {name: base64.b64decode(text) for name, text in answer['files'].items()} == {
        'out/new.bin': bytes(range(256)), 'changed': b'is!', 'same': b'same', 'lines': b'x' * 100, './dot.txt': b'dot', '[a]*?.txt': b'glob', 'empty': b''}


def test_files_of_a_program_that_failed(web):
    answer = ask(web, 'open("log", "w").write("so far"); raise SystemExit(2)', fetch_files=['log'])
    assert (answer['status'], answer['files']) == ('Failed', {'log': b64('so far')})


def test_one_name_in_two_folders(web):
    code = 'import os\nfor d in "ab":\n  os.mkdir(d)\n  open(d + "/f", "w").write(d)'
    assert ask(web, code, fetch_files=['b/f', 'a/f', 'f'])['files'] == {'b/f': b64('b'), 'a/f': b64('a')}


def test_what_is_fetched_has_a_ceiling(web):
    code = 'open("big", "wb").write(os.urandom(1) * (40 << 20)); open("big2", "wb").write(b"x" * (40 << 20))'
    answer = ask(web, 'import os; ' + code, fetch_files=['big', 'big2'], run_timeout=20)
    assert answer['status'] == 'Success' and set(answer['files']) == {'big'}
    assert len(base64.b64decode(answer['files']['big'])) == 40 << 20


@pytest.mark.parametrize('files, text', [({'a': '*'}, 'base64'), ({'../a': 'YQ=='}, '../a'), ({'/etc/x': 'YQ=='}, '/etc/x'), ({'a/' * 40: 'YQ=='}, 'a/a/')])
def test_files_that_cannot_be(web, files, text):
    answer = ask(web, 'print(1)', files=files)
    assert (answer['status'], answer['run_result']) == ('SandboxError', None) and text in answer['message']


# ---- what is wrong ----

def test_a_language_that_is_theirs_and_not_ours(web):
    answer = ask(web, 'int main() {}', 'cpp')
    assert (answer['status'], answer['run_result']) == ('SandboxError', None)
    assert 'cpp' in answer['message'] and 'python' in answer['message']
    assert ask(web, 'x', 'pytest')['status'] == 'SandboxError'


def test_more_than_the_administrator_allows(web):
    answer = ask(web, 'print(1)', run_timeout=100)
    assert (answer['status'], answer['run_result']) == ('SandboxError', None) and 'ceilings.wall_ms' in answer['message']


@pytest.mark.parametrize('body, kind, place', [
    ({'language': 'python'}, 'missing', ['body', 'code']), ({'code': '1'}, 'missing', ['body', 'language']),
    ({'code': 1, 'language': 'python'}, 'string_type', ['body', 'code']), ({'code': None, 'language': 'python'}, 'string_type', ['body', 'code']),
    ({'code': '1', 'language': 'zig'}, 'literal_error', ['body', 'language']), ({'code': '1', 'language': []}, 'string_type', ['body', 'language']),
    ({'code': '1', 'language': 'python', 'run_timeout': 'soon'}, 'float_type', ['body', 'run_timeout']),
    ({'code': '1', 'language': 'python', 'run_timeout': None}, 'float_type', ['body', 'run_timeout']),
    ({'code': '1', 'language': 'python', 'run_timeout': 'inf'}, 'float_type', ['body', 'run_timeout']),
    ({'code': '1', 'language': 'python', 'compile_timeout': []}, 'float_type', ['body', 'compile_timeout']),
    ({'code': '1', 'language': 'python', 'memory_limit_MB': 1.5}, 'int_type', ['body', 'memory_limit_MB']),
    ({'code': '1', 'language': 'python', 'stdin': 5}, 'string_type', ['body', 'stdin']),
    ({'code': '1', 'language': 'python', 'files': []}, 'dict_type', ['body', 'files']),
    ({'code': '1', 'language': 'python', 'files': {'a': 1}}, 'string_type', ['body', 'files', 'a']),
    ({'code': '1', 'language': 'python', 'fetch_files': 'a'}, 'list_type', ['body', 'fetch_files']),
    ({'code': '1', 'language': 'python', 'fetch_files': ['a', 2]}, 'string_type', ['body', 'fetch_files', 1]),
    ({'code': '1', 'language': 'python', 'fetch_files': ['a'] * 1001}, 'too_long', ['body', 'fetch_files']),
    ({'code': '1', 'language': 'python', 'args': {}}, 'list_type', ['body', 'args']),
    (b'{', 'json_invalid', ['body']), (b'[]', 'json_invalid', ['body']), (b'', 'json_invalid', ['body']), (b'[' * 100000, 'json_invalid', ['body'])],
    ids=range(22))
def test_a_wrong_value_is_told_as_fastapi_tells_it(web, body, kind, place):
    status, _, answer = web.ask('POST', '/run_code', body)
    assert status == 422
    flaw, = answer['detail']
    assert (flaw['type'], flaw['loc']) == (kind, place) and flaw['msg']


def test_all_that_is_wrong_is_told(web):
    answer = web.ask('POST', '/run_code', {'language': 5, 'run_timeout': 'x', 'files': 1})[2]
    assert {flaw['loc'][1] for flaw in answer['detail']} == {'code', 'language', 'run_timeout', 'files'}


def test_a_program_that_is_too_long(web):
    answer = ask(web, '#' * (1 << 20) + '\n')
    assert answer['status'] == 'SandboxError' and 'code' in answer['message']


def test_who_goes_ends_the_run(web):
    connection = web.open()
    connection.request('POST', '/run_code', json.dumps({'code': 'import time; time.sleep(80)', 'language': 'python', 'run_timeout': 80}))
    until(web.runs)
    connection.close()
    until(lambda: not web.runs())


# ---- tests that come with a request ----

def grade(web, completion, tests, language='python', status=200, extra=None, **config):
    data = {'id': 1, 'content': 'x', 'labels': {}, 'test': [{'input': {'stdin': given}, 'output': {'stdout': wanted}} for given, wanted in tests]}
    config = {'dataset_type': 'CommonOJDataset', 'language': language, 'provided_data': data, 'extra': extra or {}, **config}
    got, _, answer = web.ask('POST', '/submit', {'dataset': 'mine', 'id': 'q1', 'completion': completion, 'config': config})
    assert got == status, answer
    return answer


DOUBLE = 'Here you are:\n\n```python\nfor n in range(int(input())):\n    print(2 * int(input()))\n```\nIt doubles.'


def test_an_answer_that_passes_its_tests(web):
    answer = grade(web, DOUBLE, [('2\n1\n2\n', '2\n4\n'), ('1\n5', '10')])
    assert set(answer) == {'id', 'accepted', 'extracted_code', 'full_code', 'test_code', 'tests', 'extracted_type', 'extra'}
    assert answer['id'] == 'q1' and answer['accepted'] is True and answer['extracted_code'] == 'for n in range(int(input())):\n    print(2 * int(input()))'
    assert [test['passed'] for test in answer['tests']] == [True, True]
    assert answer['tests'][1]['test_info'] == {'input': {'stdin': '1\n5'}, 'output': {'stdout': '10'}}
    assert answer['tests'][1]['exec_info']['run_result']['stdout'] == '10\n' and answer['tests'][1]['exec_info']['status'] == 'Success'


def test_the_first_that_fails_ends_it_unless_all_are_wanted(web):
    tests = [('1\n1', '2'), ('1\n1', '3'), ('1\nx', '2'), ('1\n2', '4')]
    answer = grade(web, DOUBLE, tests)
    assert answer['accepted'] is False and [test['passed'] for test in answer['tests']] == [True, False]
    answer = grade(web, DOUBLE, tests, extra={'run_all_cases': True})
    assert answer['accepted'] is False and [test['passed'] for test in answer['tests']] == [True, False, False, True]
    assert answer['tests'][2]['exec_info']['status'] == 'Failed'


@pytest.mark.parametrize('output, wanted, same', [
    ('1\n', '1', True), ('  a \n b\n\n', 'a\nb', True), ('YES', 'yes', True), ('0.3333333', '0.333333', True), ('1e3', '1000.0', True), ('', '', True),
    ('\n', '', True),
    ('1 2', '1  2', False), ('0.3334', '0.3333', False), ('0x10', '16', False), ('a\nb', 'a', False), ('a', 'a\nb', False), ('a\n\nb', 'a\nb', False),
    ('', '0', False),
    ('nan', 'nan', True), ('nan', '1', False), ('a\r\nb', 'a\nb', True), ('1', '', False)])
def test_how_output_is_compared(web, output, wanted, same):
    assert grade(web, f'```python\nimport sys; sys.stdout.write({output!r})\n```', [('', wanted)])['accepted'] is same


@pytest.mark.parametrize('completion, language, code', [
    ('```python\na\n```\n```bash\nb\n```', 'bash', 'b'), ('```python\na\n```\n```bash\nb\n```', 'typescript', 'a'),
    ('```\na\n```\n``` py \nb\n```', 'python', 'b'),
    ('```js\na\n\n  ```', 'nodejs', 'a'), ('x\n```sh\na\nb', 'bash', 'a\nb'), ('```python a```', 'python', ''), ('```python\n```', 'python', '```'),
    ('text\n\nimport os\nfrom a import b\n\ndef f():\n\n  return 1\n\nf()', 'python', 'import os\nfrom a import b\ndef f():\n  return 1\n'),
    ('def f(): pass\nclass A:\n  x = 1', 'python', 'class A:\n  x = 1\n'), ('print(1)', 'python', ''), ('print(1)', 'nodejs', ''),
    ('echo 1\n\necho 2', 'bash', 'echo 1\necho 2\n'),
    ('', 'python', ''), ('```python\na\n``` ```python\nb\n```', 'python', 'a'), ('````python\na\n````', 'python', 'a'), ('```', 'python', ''),
    ('```\n', 'bash', '')], ids=range(17))
def test_the_program_in_an_answer(web, completion, language, code):
    assert grade(web, completion, [('', 'no such output')], language)['extracted_code'] == code


def test_answers_that_would_take_long_to_look_through(web):
    for part in ('```\n', '\n', '```python\n\n', '```x\n\n \n', 'def f(\n', '`', 'import a\n', ' \n'):
        begin = time.monotonic()
        grade(web, part * 400000, [('', 'no')])
        assert time.monotonic() - begin < 40, part


def test_tests_may_be_a_text_as_tables_have_them(web):
    test = json.dumps([{'input': {'stdin': '1\n4'}, 'output': {'stdout': '8'}}])
    assert grade(web, DOUBLE, [], provided_data={'test': test})['accepted'] is True


def test_a_test_that_takes_too_long(web):
    answer = grade(web, '```python\nwhile True: pass\n```', [('', '1'), ('', '2')], run_timeout=1)
    assert answer['tests'][0]['exec_info']['run_result']['status'] == 'TimeLimitExceeded' and len(answer['tests']) == 1


def test_who_goes_ends_the_tests(web):
    until(lambda: not web.runs())
    connection = web.open()
    data = {'test': [{'input': {'stdin': ''}, 'output': {'stdout': ''}}] * 50}
    config = {'dataset_type': 'CommonOJDataset', 'language': 'bash', 'provided_data': data}
    connection.request('POST', '/submit', json.dumps({'dataset': 'x', 'id': 1, 'completion': '```bash\nsleep 2\n```', 'config': config}))
    until(web.runs)
    connection.close()
    until(lambda: not web.runs())
    time.sleep(1)
    assert not web.runs()


@pytest.mark.parametrize('config, text', [
    ({}, 'no eval class found for dataset mine'), ({'dataset_type': 'HumanEvalDataset'}, 'eval class HumanEvalDataset not found'),
    ({'dataset_type': 'CommonOJDataset'}, 'config.language field must exist'),
    ({'dataset_type': 'CommonOJDataset', 'language': 'python'}, 'provided_data should be a dict'),
    ({'dataset_type': 'CommonOJDataset', 'language': 'python', 'provided_data': []}, 'provided_data should be a dict'),
    ({'dataset_type': 'CommonOJDataset', 'language': 'cpp', 'provided_data': {'test': []}}, 'cpp'),
    ({'dataset_type': 'CommonOJDataset', 'language': 'python', 'provided_data': {}, 'custom_extract_logic': 'x'}, 'custom_extract_logic'),
    *(({'dataset_type': 'CommonOJDataset', 'language': 'python', 'provided_data': {'test': test}}, 'provided_data.test') for test in
      (None, [], 'x', '[]', {}, [1], [{'input': {}, 'output': {}}], [{'input': {'stdin': ''}, 'output': {'stdout': 1}}],
       [{'input': {'stdin': ''}, 'output': {'stdout': ''}}] * 1001))],
    ids=range(16))
def test_what_cannot_be_graded_is_said(web, config, text):
    status, _, answer = web.ask('POST', '/submit', {'dataset': 'mine', 'id': 1, 'completion': 'x', 'config': config})
    assert status == 400 and text in answer['detail'], answer


@pytest.mark.parametrize('body, place',
                         [({}, 'dataset'), ({'dataset': 1}, 'dataset'), ({'id': []}, 'id'), ({'completion': None}, 'completion'), ({'config': 'x'}, 'config')])
def test_a_submission_that_is_none(web, body, place):
    status, _, answer = web.ask('POST', '/submit', {'dataset': 'x', 'id': 1, 'completion': 'x', 'config': {}, **body} if body else {})
    assert status == 422 and place in [flaw['loc'][1] for flaw in answer['detail']]
    assert web.ask('POST', '/submit', b'x')[0] == 422


# ---- data sets ----

@pytest.mark.parametrize('path', ['/get_prompts', '/get_prompt_by_id', '/list_ids', '/get_metrics', '/get_metrics_function'])
def test_there_are_no_data_sets_and_that_is_said(web, path):
    assert web.ask('GET', '/list_datasets')[::2] == (200, [])
    status, _, answer = web.ask('POST', path, {'dataset': 'humaneval_python', 'id': 1, 'config': {}})
    assert status == 400 and answer['detail'].startswith('no eval class found for dataset humaneval_python') and '/run_code' in answer['detail']
    assert web.ask('POST', path, {})[2]['detail'][0]['loc'] == ['body', 'dataset']
    assert web.ask('POST', path, b'x')[0] == 422


def test_it_answers(web):
    assert web.ask('GET', '/v1/ping')[::2] == (200, 'pong')


# ---- who may ----

@pytest.fixture(name='place', scope='module')
def with_keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp('fusion_keys')
    keys = Keys(folder)
    keys.alice = keys.make('a', '--tenant', 'alice', '--scopes', 'run')
    keys.reader = keys.make('r', '--tenant', 'alice', '--scopes', 'read')
    keys.busy = keys.make('b', '--tenant', 'bob', '--scopes', 'run', '--running', '1', '--queued', '1')
    keys.web = Web(folder, keyless=False)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


def test_the_keys_are_those_of_v1(place):
    body = {'code': 'print(1)', 'language': 'python', 'fetch_files': ['x']}     # files that are fetched are not kept
    assert place.web.ask('POST', '/run_code', body)[0] == 401
    assert place.web.ask('POST', '/run_code', body, **bearer(place.reader))[0] == 403
    assert place.web.ask('POST', '/run_code', body, **bearer(place.alice))[2]['status'] == 'Success'


def test_a_client_that_has_a_url_alone(place):
    """requests and curl make this header of http://KEY@host and http://user:KEY@host."""
    body = {'code': 'print(1)', 'language': 'python'}
    for text, status in ((f'trainer:{place.alice}', 200), (f':{place.alice}', 200), (f'{place.alice}:', 401), ('trainer:wrong', 401), (place.alice, 401),
                         ('', 401)):
        assert place.web.ask('POST', '/run_code', body, Authorization='Basic ' + b64(text))[0] == status, text
    assert place.web.ask('POST', '/run_code', body, Authorization='Basic *')[0] == 401
    assert place.web.ask('GET', '/v1/profiles', Authorization='basic  ' + b64(f'x:{place.reader}'))[0] == 200


def test_quotas_are_those_of_v1(place):
    connections = []
    for _ in range(2):
        connections.append(place.web.open())
        connections[-1].request('POST', '/run_code', json.dumps({'code': 'import time; time.sleep(8)', 'language': 'python'}), bearer(place.busy))
        time.sleep(.5)
    status, headers, problem = place.web.ask('POST', '/run_code', {'code': '1', 'language': 'python'}, **bearer(place.busy))
    assert status == 429 and headers['Retry-After'] and problem['detail']
    for connection in connections:
        connection.close()


def test_the_page_has_an_example_that_works(web):
    page = (ROOT / 'docs' / 'use' / 'compat.md').read_text()
    body = page.split("/run_code -d '")[1].split("'")[0]
    assert web.ask('POST', '/run_code', body)[2]['status'] == 'Success'
    body = page.split("/submit -d '")[1].split("'")[0]
    assert web.ask('POST', '/submit', body)[2]['accepted'] is True
