"""The words of Piston (/api/v2): execute and runtimes, with every field, status and error."""

import base64
import json
import signal

import pytest

from cli import ROOT
from keys import Keys, bearer
from web import Web

JSON = {'Content_Type': 'application/json'}
STAGE = {'stdout', 'stderr', 'output', 'code', 'signal', 'message', 'status', 'cpu_time', 'wall_time', 'memory'}


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('piston'), '--set', 'ceilings.wall_ms=20s', '--set', 'ceilings.cpu_ms=20s', '--set', 'ceilings.memory_bytes=1GiB')
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='runtimes', scope='module')
def runtimes_of(web):
    return {one['language']: one for one in web.ask('GET', '/api/v2/runtimes')[2]}


def ask(web, code, language='python', version='*', **more):
    body = {'language': language, 'version': version, 'files': [{'content': code}], **more}
    status, _, answer = web.ask('POST', '/api/v2/execute', body, **JSON)
    assert status == 200, answer
    assert set(answer) == {'language', 'version', 'run'} and set(answer['run']) == STAGE
    return answer['run']


def refused(web, status=400, **body):
    body = {'language': 'python', 'version': '*', 'files': [{'content': 'print(1)'}], **body}
    got, _, answer = web.ask('POST', '/api/v2/execute', {name: value for name, value in body.items() if value is not ...}, **JSON)
    assert got == status and set(answer) == {'message'}, answer
    return answer['message']


# ---- runtimes ----

def test_the_languages_and_the_versions_of_their_interpreters(web, runtimes):
    assert set(runtimes) == {'python', 'javascript', 'typescript', 'bash'}
    assert web.run('import platform; print(platform.python_version())', 'python')['stdout'].strip() == runtimes['python']['version']
    assert web.run('console.log(process.versions.node)', 'javascript')['stdout'].strip() == runtimes['javascript']['version']
    assert web.run('echo $BASH_VERSION')['stdout'].startswith(runtimes['bash']['version'])
    assert runtimes['javascript']['runtime'] == runtimes['typescript']['runtime'] == 'node' and 'js' in runtimes['javascript']['aliases']


def test_the_first_who_ask_wait_for_the_interpreters(tmp_path):
    web = Web(tmp_path)
    connections = [web.open() for _ in range(3)]
    for connection in connections:
        connection.request('GET', '/api/v2/runtimes')
    connections.pop().close()
    answers = [json.loads(connection.getresponse().read()) for connection in connections]
    assert answers[0] == answers[1] and len(answers[0]) == 4
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_daemon_that_ends_while_somebody_waits(tmp_path):
    web = Web(tmp_path)
    connection = web.open()
    connection.request('GET', '/api/v2/runtimes')
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('kind',
                         ['*', 'x', '{a}', '{a}.x', '{a}.{b}', '{a}.{b}.x', '{a}.{b}.*', '{a}.{b}.{c}', 'v{a}.{b}.{c}', '={a}.{b}.{c}', '^{a}.0.0', '^{a}',
                                  '~{a}.{b}', '~{a}.{b}.0', '~{a}', '>={a}', '>= {a}.0.0', '>0.1', '<99', '<={a}', '<={a}.{b}.{c}', '>=1.0.0 <99.0.0',
                                  '99.x || {a}.x',
                                  '99||98||{a}', ' {a} '])
def test_a_version_that_is_in_a_range(web, runtimes, kind):
    for language, code in (('python', 'print(1)'), ('bash', 'echo 1')):
        version = runtimes[language]['version']
        a, b, c = version.split('.')
        body = {'language': language, 'version': kind.format(a=a, b=b, c=c), 'files': [{'content': code}]}
        status, _, answer = web.ask('POST', '/api/v2/execute', body, **JSON)
        assert (status, answer.get('language'), answer.get('version'), answer.get('run', {}).get('stdout')) == (200, language, version, '1\n'), body


@pytest.mark.parametrize('kind',
                         ['99', '2.7.18', '{a}.{b}.999', '{a}.99', '^{a}.99.0', '~{a}.99', '<{a}', '<{a}.{b}.{c}', '>{a}', '>{a}.{b}', '>{a}.{b}.{c}', '>=99',
                                  '{a}.{b}.{c}-beta', '>1 <2', '99 || 98', 'latest', '{a}.{b}.{c}.0', '|', '| {a}', '{a} |', '>*', '-1', '1e3', '1' * 400])
def test_a_version_that_is_not(web, runtimes, kind):
    a, b, c = runtimes['python']['version'].split('.')
    version = kind.format(a=a, b=b, c=c)
    assert refused(web, version=version) == f'python-{version[:100]} runtime is unknown'


# ---- programs ----

@pytest.mark.parametrize('alias, code', [('py', 'print(input())'), ('js', 'console.log(require("fs").readFileSync(0, "utf8").trim())'),
                                         ('ts', 'const a: string = require("fs").readFileSync(0, "utf8").trim(); console.log(a)'), ('sh', 'read a; echo $a')])
def test_a_program_in_each_language(web, alias, code):
    run = ask(web, code, alias, stdin='in')
    assert (run['stdout'], run['stderr'], run['output']) == ('in\n', '', 'in\n')
    assert (run['code'], run['signal'], run['message'], run['status']) == (0, None, None, None)
    assert run['cpu_time'] > 0 and run['wall_time'] > 0 and run['memory'] > 100000


def test_what_it_reads_ends_with_a_line_and_arguments_are_arguments(web):
    code = 'import sys; print(repr(sys.stdin.read()), sys.argv[1:])'
    assert ask(web, code, stdin='a\n', args=['-x', 'b c', '$(id)'])['stdout'] == "'a\\n' ['-x', 'b c', '$(id)']\n"
    assert ask(web, code, stdin='a')['stdout'] == ask(web, code, stdin='a', args=None)['stdout'] == "'a\\n' []\n"
    assert ask(web, code)['stdout'] == ask(web, code, stdin=None)['stdout'] == "'\\n' []\n"


def test_both_streams_in_their_order(web):
    # A stream is written to when what came before, on the other, has been taken: two that have something are read in any order.
    run = ask(web, '''
import fcntl, os, termios, time
def write(fd, text):
    os.write(fd, text)
    while any(fcntl.ioctl(fd, termios.FIONREAD, bytes(4))): time.sleep(.001)
for i in b'123':
    write(1, b'out%c\\n' % i)
    write(2, b'err%c\\n' % i)
''', run_timeout=15000)
    assert run['output'] == 'out1\nerr1\nout2\nerr2\nout3\nerr3\n' and run['stdout'] == 'out1\nout2\nout3\n' and run['stderr'] == 'err1\nerr2\nerr3\n'


@pytest.mark.parametrize('code, want', [
    ('exit 3', (3, None, 'Exited with error status 3', 'RE')), ('kill -SEGV $$', (None, 'SIGSEGV', 'Caught fatal signal 11', 'SG')),
    ('kill -KILL $$', (None, 'SIGKILL', 'Caught fatal signal 9', 'SG'))])
def test_a_program_that_fails(web, code, want):
    run = ask(web, code, 'bash')
    assert (run['code'], run['signal'], run['message'], run['status']) == want


def test_a_text_that_does_not_parse(web):
    run = ask(web, 'def f(:')
    assert (run['code'], run['status']) == (1, 'RE') and 'SyntaxError' in run['stderr']


@pytest.mark.parametrize('code, options, message', [
    ('import time; time.sleep(60)', {'run_timeout': 700}, 'Time limit exceeded (wall clock)'),
    ('while True: pass', {'run_timeout': 15000, 'run_cpu_time': 500}, 'Time limit exceeded'),
    ('import time; time.sleep(60)', {}, 'Time limit exceeded (wall clock)')], ids=['wall', 'cpu', 'default'])
def test_times_are_milliseconds(web, code, options, message):
    run = ask(web, code, **options)
    assert (run['code'], run['signal'], run['status'], run['message']) == (None, 'SIGKILL', 'TO', message)
    if 'run_cpu_time' in options:
        assert 500 <= run['cpu_time'] < 10000
    else:
        assert options.get('run_timeout', 3000) <= run['wall_time'] < options.get('run_timeout', 3000) + 12000


def test_a_memory_limit_is_in_bytes(web):
    code = 'x = bytearray(100 * 2**20); print(1)'
    assert ask(web, code, run_memory_limit=400 << 20)['stdout'] == ask(web, code, run_memory_limit=-1, compile_memory_limit=-1)['stdout'] == '1\n'
    run = ask(web, code, run_memory_limit=60 << 20)
    assert run['stdout'] == '' and run['status'] in ('SG', 'RE') and (run['signal'] == 'SIGKILL' or run['code'])


@pytest.mark.parametrize('stream, status', [('stdout', 'OL'), ('stderr', 'EL')])
def test_too_much_output_ends_it(web, stream, status):
    run = ask(web, f'import sys\nwhile True: sys.{stream}.write("x" * 10000)', run_timeout=15000)
    assert (run['status'], run['signal'], run['code'], run['message']) == (status, 'SIGKILL', None, f'{stream} length exceeded')
    assert run[stream].startswith('xxx') and run['output'].startswith('xxx')


def test_bytes_that_are_no_text(web):
    assert ask(web, "printf 'a\\377b'", 'bash')['output'] == 'a\ufffdb'


# ---- files ----

def test_files_in_each_encoding(web):
    files = [{'name': 'data.bin', 'content': base64.b64encode(b'\x00\xff').decode(), 'encoding': 'base64'}, {'name': 'main.py', 'content':
             'import helper, os; print(helper.a, open("data.bin", "rb").read(), open("d/h", "rb").read(), sorted(os.listdir()), __file__)'},
             {'name': 'helper.py', 'content': 'a = "é"', 'encoding': 'utf8'}, {'name': 'd/h', 'content': '00fFa1', 'encoding': 'hex'},
             {'content': 'x', 'encoding': 'what'}]
    run = ask(web, '', files=files)
    assert run['stdout'].startswith("é b'\\x00\\xff' b'\\x00\\xff\\xa1' ['d', 'data.bin', 'file4.code', 'helper.py'"), run
    assert run['stdout'].endswith('main.py\n')


def test_the_program_has_the_name_that_it_is_given(web):
    assert ask(web, '', files=[{'name': 'my prog.py', 'content': 'print(__file__)'}])['stdout'].endswith('/my prog.py\n')
    assert ask(web, '', 'js', files=[{'name': 'a.mjs', 'content': 'import fs from "fs"; console.log(typeof fs)'}])['stdout'] == 'object\n'


@pytest.mark.parametrize('files, message', [
    (..., 'files is required as an array'), ('x', 'files is required as an array'), ([], 'files must include at least one utf8 encoded file'),
    ([{}], 'files[0].content is required as a string'), ([{'content': 'x'}, {'content': 1}], 'files[1].content is required as a string'),
    ([5], 'files[0].content is required as a string'),
    ([{'content': 'eA==', 'encoding': 'base64'}], 'files must include at least one utf8 encoded file'),
    ([{'content': 'x', 'name': 1}], 'files[0].name must be a string'),
    ([{'content': '1'}, {'content': 'xyz', 'encoding': 'hex'}], 'files[1].content is no hex'),
    ([{'content': '1'}, {'content': '*', 'encoding': 'base64'}], 'base64'),
    ([{'content': '1'}, {'content': '1', 'name': '../a'}], '../a'), ([{'content': '1', 'name': 'a/b.py'}], 'a/b.py'),
    ([{'content': '1', 'name': 'a'}, {'content': '1', 'name': 'a'}], 'two input files')], ids=range(13))
def test_files_that_are_none(web, files, message):
    assert message in refused(web, files=files)


# ---- what is wrong ----

@pytest.mark.parametrize('body, message', [
    ({'language': ...}, 'language is required as a string'), ({'language': 5}, 'language is required as a string'),
    ({'language': ''}, 'language is required as a string'),
    ({'version': ...}, 'version is required as a string'), ({'version': 3}, 'version is required as a string'),
    ({'language': 'cobol'}, 'cobol-* runtime is unknown'),
    ({'run_timeout': 'x'}, 'If specified, run_timeout must be a number'), ({'compile_cpu_time': [1]}, 'If specified, compile_cpu_time must be a number'),
    ({'run_timeout': 20001}, 'run_timeout cannot exceed the configured limit of 20000'),
    ({'compile_timeout': 20001}, 'compile_timeout cannot exceed the configured limit of 20000'),
    ({'run_cpu_time': 20001}, 'run_cpu_time cannot exceed the configured limit of 20000'),
    ({'run_memory_limit': 2**30 + 1}, 'run_memory_limit cannot exceed the configured limit of 1073741824'),
    ({'compile_memory_limit': 2**40}, 'compile_memory_limit cannot exceed the configured limit of 1073741824'),
    ({'run_timeout': -1}, 'run_timeout must be non-negative'), ({'args': 'x'}, 'args must be an array'), ({'args': ['a', 1]}, 'args[1] must be a string'),
    ({'stdin': 5}, 'stdin must be a string')], ids=range(17))
def test_a_wrong_value_is_a_message(web, body, message):
    assert refused(web, **body) == message


def test_a_limit_of_nothing_is_none_and_what_is_unknown_is_ignored(web):
    assert ask(web, 'print(1)', run_timeout=0, compile_timeout=None, run_memory_limit='', run_cpu_time=False, more=1)['stdout'] == '1\n'


STREAMS = [["""
import os, sys, time
for number in range(4):
    for stream in (1, 2):
        os.write(stream, b'%s %d\\n' % (b' oe'[stream:stream + 1], number))
        time.sleep({pause})
""", 'python'], ["""
for n in 0 1 2 3; do echo o $n; sleep {pause}; echo e $n >&2; sleep {pause}; done
""", 'bash'], ["""
for (let n = 0; n < 4; n++)
    for (const [stream, name] of [[1, 'o'], [2, 'e']]) {
        require('fs').writeSync(stream, `${name} ${n}\\n`);
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, {pause} * 1000);
    }
""", 'javascript']]


@pytest.mark.parametrize('code, language', STREAMS, ids=lambda value: value if ' ' not in value else '')
def test_lines_that_are_20_ms_apart_are_in_the_order_of_writing(web, code, language):
    output = ask(web, code.replace('{pause}', '0.02'), language)['output']
    assert output == ''.join(f'o {number}\ne {number}\n' for number in range(4))


@pytest.mark.parametrize('code, language', STREAMS, ids=lambda value: value if ' ' not in value else '')
def test_lines_without_a_pause_keep_the_order_of_their_stream(web, code, language):
    for _ in range(5):
        lines = ask(web, code.replace('{pause}', '0'), language)['output'].splitlines()
        assert [line for line in lines if line[0] == 'o'] == [f'o {number}' for number in range(4)]
        assert [line for line in lines if line[0] == 'e'] == [f'e {number}' for number in range(4)] and len(lines) == 8


def test_no_line_of_the_output_is_broken(web):
    """Parts of lines of both streams in turn, far enough apart to arrive alone; lines that are longer than a pipe; ends without a line end."""
    parts = 'import os, time\nfor part in (b"a", b"b", b"c\\n", b"d"):\n    for stream in (1, 2):\n        os.write(stream, part)\n        time.sleep(0.02)\n'
    assert ask(web, parts)['output'] == 'abc\nabc\ndd'
    long = 'import os, threading\ndef write(stream, name):\n    for _ in range(3):\n        os.write(stream, name * 200000 + b"\\n")\n' \
           'threads = [threading.Thread(target=write, args=one) for one in ((1, b"o"), (2, b"e"))]\n[one.start() for one in threads]\n[one.join() for one in threads]'
    lines = ask(web, long)['output'].splitlines()
    assert sorted(lines) == ['e' * 200000] * 3 + ['o' * 200000] * 3


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'"x"', b'[' * 100000])
def test_a_body_that_is_no_object(web, body):
    status, _, answer = web.ask('POST', '/api/v2/execute', body, **JSON)
    assert status == 400 and answer['message']


def test_a_body_of_another_type(web):
    status, _, answer = web.ask('POST', '/api/v2/execute', b'{}', Content_Type='text/plain')
    assert (status, answer) == (415, {'message': 'requests must be of type application/json'})
    assert web.ask('POST', '/api/v2/execute', b'{}')[0] == 415
    assert web.ask('POST', '/api/v2/execute', b'{}', Content_Type='application/json; charset=utf-8')[0] == 400


def test_keys_and_scopes(tmp_path):
    keys = Keys(tmp_path)
    runner, reader = keys.make('a', '--tenant', 'a', '--scopes', 'run'), keys.make('r', '--tenant', 'r', '--scopes', 'read')
    web = Web(tmp_path, keyless=False)
    body = {'language': 'bash', 'version': '*', 'files': [{'content': 'echo 1'}]}
    assert web.ask('POST', '/api/v2/execute', body, **JSON)[0] == web.ask('GET', '/api/v2/runtimes')[0] == 401
    assert web.ask('POST', '/api/v2/execute', body, **JSON, **bearer(reader))[0] == web.ask('GET', '/api/v2/runtimes', **bearer(runner))[0] == 403
    assert web.ask('POST', '/api/v2/execute', body, **JSON, **bearer(runner))[2]['run']['stdout'] == '1\n'
    assert web.ask('GET', '/api/v2/runtimes', **bearer(reader))[0] == 200
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_the_page_has_an_example_that_works(web):
    page = (ROOT / 'docs' / 'use' / 'compat.md').read_text()
    body = page.split('/api/v2/execute')[1].split("-d '")[1].split("'")[0]
    assert web.ask('POST', '/api/v2/execute', body, **JSON)[2]['run']['code'] == 0
