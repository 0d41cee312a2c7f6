"""The forms of a record as text: a golden file for each form, with each outcome of a run.

Rows of the checklist: S0-17, S0-51, S0-93, S0-94 (kodeagent), S1-02 (brief), S1-13, S1-17, S1-23, S1-29, S1-44, S1-56 (agentos),
S2-38 to S2-40, S2-66 (linx), S3-26 to S3-30, S3-71 to S3-73 (codemie), S4-04, S4-06, S4-08, S4-09, S4-12 (mcp-light), U-06.
CAISSON_GOLDEN=1 writes the files again.
"""

import os
import re
import signal
from pathlib import Path

import pytest

from cli import schema, write
from daemon import until
from web import Web

FOLDER = Path(__file__).parent / 'texts'
FORMS = ['plain', 'brief', 'kodeagent', 'agentos', 'linx', 'codemie', 'mcp-light']
LONG = {'limits': {'output_bytes': 40}}
# name: (language, code, more of the request)
OUTCOMES = {
    'ok': ('python', 'print("Hello, World!")', {}),
    'no output': ('python', 'x = 1', {}),
    'value': ('python', 'print("a")\n6 * 7', {}),
    'standard error': ('bash', 'echo out; echo warning >&2', {}),
    'exception': ('python', 'print("before")\nprint(undefined_variable)', {}),
    'exit status': ('bash', 'echo before; exit 3', {}),
    'exit status and standard error': ('bash', 'echo before; echo trouble >&2; exit 3', {}),
    'syntax error': ('python', 'x = 1\ndef f(:\n', {}),
    'time limit': ('python', 'import sys, time\nprint("partial")\nprint("late", file=sys.stderr)\nwhile True: time.sleep(1)', {'limits': {'wall_ms': 1500}}),
    'time limit without output': ('bash', 'sleep 60', {'limits': {'wall_ms': 1000}}),
    'memory limit': ('python', 'print("before", flush=True)\nx = bytearray(200_000_000)', {'limits': {'memory_bytes': 67108864}}),
    'output is cut': ('bash', 'for i in $(seq 100 140); do echo "line $i"; done', LONG),
    'files': ('python', 'open("output.csv", "w").write("a,b\\n")\nprint("File created")', {'exports': [{'pattern': 'output.csv'}, {'pattern': '../x'}, {'pattern': '*.png'}]}),
    'files of a failed program': ('python', 'open("output.csv", "w").write("a,b\\n")\n1 / 0', {'exports': [{'pattern': 'output.csv'}]}),
    'refused': ('bash', 'echo hi', {'backend': 'nowhere'}),
    'blocked by kodeagent: import': ('python', 'import os\nimport socket\n', {'policy': 'kodeagent'}),
    'blocked by kodeagent: builtin': ('python', 'x = 1\neval("2")\n', {'policy': 'kodeagent'}),
    'blocked by kodeagent: pattern': ('python', 'cmd = "rm -rf /"\n', {'policy': 'kodeagent'}),
    'blocked by agentos': ('python', 'import subprocess\neval("1")\n', {'policy': 'agentos'}),
    'blocked by linx': ('python', 'import os\nos.system("rm -rf /")\n', {'policy': 'linx'}),
    'blocked by codemie': ('python', 'import os\nimport subprocess\neval("1")\n', {'policy': 'codemie'}),
    'blocked by mcp-light': ('python', 'import os\nos.system("id")\nopen("x")\n', {'policy': 'mcp-light'}),
}


@pytest.fixture(scope='module')
def web(tmp_path_factory):
    with_daemon = Web(tmp_path_factory.mktemp('texts'))
    yield with_daemon
    assert with_daemon.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(scope='module')
def records(web):
    """The id of a finished run for each outcome."""
    ids = {}
    for name, (language, code, more) in OUTCOMES.items():
        status, _, state = web.ask('POST', '/v1/runs', {'language': language, 'code': code, **more}, Prefer='respond-async')
        assert status == 202, state
        ids[name] = state['id']
    for run_id in ids.values():
        until(lambda run_id=run_id: web.ask('GET', f'/v1/runs/{run_id}')[0] == 200)
    return ids


def masked(text):
    """Without what differs from run to run."""
    text = re.sub(r'duration: \d+\.\d\ds, memory: \d+\.\d MB', 'duration: Ds, memory: M MB', text)
    text = re.sub(r'CPU time used: \d+\.\d s|The peak was [\d.]+MiB', 'FIGURE', text)
    return re.sub(r'file_[0-9a-f]+', 'file_ID', text)


def text_of(web, run_id, form):
    status, headers, text = web.ask('GET', f'/v1/runs/{run_id}?format={form}')
    assert status == 200 and headers['Content-Type'] == 'text/plain; charset=utf-8', text
    return masked(text.decode())


@pytest.mark.parametrize('form', FORMS)
def test_each_outcome_has_the_text_of_the_form(web, records, form):
    path = FOLDER / f'{form}.txt'
    text = ''.join(f'==== {name}\n{text_of(web, run_id, form)}' for name, run_id in records.items())
    if os.environ.get('CAISSON_GOLDEN'):
        path.write_text(text)
    assert text == path.read_text(), form


HELLO = {'language': 'python', 'code': 'print("hi")\n1 / 0'}
TEXT = 'text/plain; charset=utf-8'


@pytest.mark.parametrize('path, headers, form', [
    ('/v1/runs?format=linx', {}, 'linx'), ('/v1/runs?brief=1', {}, 'brief'), ('/v1/runs', {'Accept': 'text/plain'}, 'plain'),
    ('/v1/runs?format=codemie', {'Accept': 'application/json'}, 'codemie'),
])
def test_a_run_is_answered_with_text(web, path, headers, form):
    """S1-02: `?brief=1` renders the caps; S3-73: text forms by HTTP."""
    begin = {'linx': 'Code execution failed:\nTraceback', 'brief': 'status: failed, exit_code: 1, ', 'plain': 'hi\nSTDERR: Traceback', 'codemie': 'Code execution failed.\n\nhi\n'}
    status, got, text = web.ask('POST', path, HELLO, **headers)
    assert status == 200 and got['Content-Type'] == TEXT and text.decode().startswith(begin[form]), text


def test_without_a_wish_the_answer_is_json(web):
    for accept in ({}, {'Accept': '*/*'}, {'Accept': 'application/json, text/plain, */*'}):
        status, got, body = web.ask('POST', '/v1/runs', {**HELLO, 'format': 'linx'}, **accept)
        assert status == 200 and got['Content-Type'] == 'application/json' and body['format'] == 'linx', accept


def test_text_has_the_form_of_the_request_or_of_its_profile(tmp_path):
    write(tmp_path / 'profiles/seed.yaml', 'extends: standard\nlanguage: python\nformat: codemie\n')
    web = Web(tmp_path, '--set', f'engine.profiles_dir={tmp_path}/profiles', '--set', 'engine.profile=seed')
    empty, done = {'code': 'x = 1'}, b'Code executed successfully with no output.\n'
    assert web.ask('POST', '/v1/runs', empty, Accept='text/plain')[2] == done
    assert web.ask('POST', '/v1/runs', {**empty, 'format': 'linx'}, Accept='text/plain')[2] == b'Code executed successfully (no output)\n'
    state = web.ask('POST', '/v1/runs', empty, Prefer='respond-async')[2]
    found = until(lambda: (answer := web.ask('GET', f'/v1/runs/{state["id"]}', Accept='text/plain'))[0] == 200 and answer)
    assert found[1]['Content-Type'] == TEXT and found[2] == done
    # MCP has no other way to say it.
    meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
    head = {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_code'}
    call = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {'name': 'run_code', 'arguments': empty, '_meta': meta}}
    status, _, answer = web.ask('POST', '/mcp', call, Accept='application/json, text/event-stream', Content_Type='application/json', **head)
    assert 'Code executed successfully with no output.' in str(answer), (status, answer)
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_an_unknown_form_is_refused_with_the_known_ones(web):
    assert schema('request')['properties']['format']['enum'] == FORMS
    status, _, problem = web.ask('POST', '/v1/runs?format=nosuch', HELLO)
    assert status == 422 and 'format' in problem['detail'] and all(form in problem['detail'] for form in FORMS), problem
    status, _, problem = web.ask('POST', '/v1/runs?brief=2', HELLO)
    assert status == 422 and 'brief' in problem['detail']


def test_a_request_that_is_sent_again_gets_its_text_again(web):
    ask = lambda path, **headers: web.ask('POST', path, {**HELLO, 'code': 'import time; print(time.time_ns())'}, Idempotency_Key='text-1', **headers)
    record = ask('/v1/runs')[2]
    status, headers, text = ask('/v1/runs', Accept='text/plain')
    assert status == 200 and headers['Idempotency-Replayed'] == 'true' and headers['Content-Type'] == TEXT
    assert text.decode() == record['stdout']
    assert ask('/v1/runs?format=brief')[2].decode().startswith('status: completed')
    assert ask('/v1/runs')[2] == record


def test_a_long_record_becomes_text_in_a_helper_thread(web):
    code = 'print("x" * 300000)\nprint("end")'
    state = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code}, Prefer='respond-async')[2]
    path = f'/v1/runs/{state["id"]}?format=plain'
    status, headers, text = until(lambda: (answer := web.ask('GET', path))[0] == 200 and answer)
    assert status == 200 and headers['Content-Type'] == TEXT and text == b'x' * 300000 + b'\nend\n'
    assert web.ask('POST', '/v1/runs?format=plain', {'language': 'python', 'code': code})[2] == text


def test_names_of_files_cannot_look_like_lines(web):
    """S3-73: a name is the program's to choose."""
    code = "open(\"a'\\nFile 'b': sandbox:x\", 'w').write('1')"
    text = web.ask('POST', '/v1/runs?format=codemie', {'language': 'python', 'code': code, 'exports': [{'pattern': '*'}]})[2].decode()
    assert text.count('\n') == 2 and "File 'a\\'\\x0aFile \\'b\\': sandbox:x': sandbox:/v1/files/file_" in text


def test_exported_files_have_ids_of_their_own_and_a_type(web):
    """S3-71, S3-72, S3-74, U-30: also of a program that failed."""
    request = {'language': 'python', 'code': "open('a.csv', 'w').write('1')\nopen('b.unknown', 'w').write('2')\n1 / 0", 'exports': [{'pattern': '*'}]}
    first, second = (web.ask('POST', '/v1/runs', request)[2]['files'] for _ in range(2))
    assert [(file['name'], file['mime']) for file in first] == [('a.csv', 'text/csv'), ('b.unknown', 'application/octet-stream')]
    urls = [file['url'] for file in first + second]
    assert len(set(urls)) == 4 and all(re.fullmatch(r'sandbox:/v1/files/file_[0-9a-f]{32}', url) for url in urls)
    assert web.ask('GET', urls[0].removeprefix('sandbox:'))[2] == b'1'


def test_runs_of_a_session_have_texts_and_are_extracted(web):
    session = web.ask('POST', '/v1/sessions', {'language': 'python'})[2]
    path = f'/v1/sessions/{session["id"]}/runs?format=linx'
    assert web.ask('POST', path, {'code': 'So:\n```python\nx = 6\n```\n', 'extract': 'last_fence'})[2] == b'Code executed successfully (no output)\n'
    assert web.ask('POST', path, {'code': 'x * 7'})[2] == b'Code executed successfully:\n42\n'
