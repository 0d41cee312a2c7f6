"""Contexts and sessions over HTTP: interpreters that live on in a persistent sandbox."""

import base64
import concurrent.futures
import http.client
import json
import os
import signal
import time

import jsonschema
import pytest

from cli import caisson
from daemon import supervisors, until
from web import Web

LANGUAGES = {'python': ('x = 6', 'x * 7', 42), 'javascript': ('const x = 6', 'x * 7', 42), 'typescript': ('const x: number = 6', 'x * 7', 42)}


@pytest.fixture(name='sandbox')
def made(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {})
    assert status == 201
    yield sandbox['id']
    web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')


def is_a(web, name, answer):
    """The answer is what /openapi.json promises."""
    schemas = web.ask('GET', '/openapi.json')[2]['components']['schemas']
    resolver = jsonschema.RefResolver('', {'components': {'schemas': schemas}})
    jsonschema.validate(answer, schemas[name], resolver=resolver)
    return answer


def context_in(web, sandbox, **request):
    status, headers, context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', request)
    assert status == 201, context
    assert headers['Location'] == f'/v1/contexts/{context["id"]}' and context['state'] == 'idle'
    return context['id']


@pytest.fixture(name='python')
def python_context(web, sandbox):
    return context_in(web, sandbox)


def execute(web, context, code, **more):
    status, _, record = web.ask('POST', f'/v1/contexts/{context}/runs', {'code': code, **more})
    assert status == 200, record
    return record


def started(web, context, code, **more):
    """An execution that goes on; its id."""
    status, _, state = web.ask('POST', f'/v1/contexts/{context}/runs', {'code': code, **more}, Prefer='respond-async')
    assert status == 202, state
    return state['id']


def record_of(web, run):
    return until(lambda: (lambda status, _, record: record if status == 200 else None)(*web.ask('GET', f'/v1/runs/{run}')))


# ---- integers of more than 64 bits ----

LARGE = [-2 ** 63 - 1, 2 ** 64, 10 ** 40, -10 ** 40, 2 ** 63 - 1]


def events_of(web, path, body):
    answer = web.stream('POST', path, body, Accept='text/event-stream', Content_Type='application/json')
    return [json.loads(line[6:]) for line in answer.read().decode().splitlines() if line.startswith('data: ')]


def test_large_integers_are_values_of_executions(web, sandbox):
    python, node = context_in(web, sandbox), context_in(web, sandbox, language='javascript')
    assert execute(web, python, repr(LARGE))['result']['value'] == LARGE
    assert execute(web, python, f'{{"n": {2 ** 64}}}')['result'] == {'type': 'dict', 'value': {'n': 2 ** 64}, 'data': {'text/plain': "{'n': 18446744073709551616}"}}
    assert execute(web, node, f'[{", ".join(f"{n}n" for n in LARGE)}]')['result']['value'] == LARGE
    assert execute(web, node, '({ n: 2 ** 64 })')['result']['value'] == {'n': 18446744073709552000}


def test_large_integers_are_displayed(web, sandbox):
    python, node = context_in(web, sandbox), context_in(web, sandbox, language='javascript')
    for context, code in (python, f'display({{"application/json": {LARGE}}}, raw=True)'), (node, f'display({{ "application/json": [{", ".join(f"{n}n" for n in LARGE)}] }})'):
        display, = execute(web, context, code)['displays']
        assert json.loads(display['data']['application/json']) == LARGE
        told = [event for event in events_of(web, f'/v1/contexts/{context}/runs', {'code': code}) if event['type'] == 'display']
        assert [event['data']['application/json'] for event in told] == [LARGE]
    display, = execute(web, python, f'display({{"application/json": {2 ** 64}}}, raw=True)')['displays']
    assert display['data'] == {'application/json': str(2 ** 64)}


@pytest.mark.parametrize('language, code', [('python', repr(LARGE)), ('javascript', f'[{", ".join(f"{n}n" for n in LARGE)}]')])
def test_large_integers_are_values_of_runs(web, language, code):
    assert web.run(code, language)['result']['value'] == LARGE
    *_, last = events_of(web, '/v1/runs', {'language': language, 'code': code})
    assert last['record']['result']['value'] == LARGE
    state = web.ask('POST', '/v1/runs', {'language': language, 'code': code}, Prefer='respond-async')[2]
    assert record_of(web, state['id'])['result']['value'] == LARGE
    for options in (), ('--daemon', 'never'):
        done = caisson('run', '--json', *options, '-l', language, '-c', code)
        assert json.loads(done.out)['result']['value'] == LARGE


def test_an_integer_with_too_many_digits_is_text(web):
    result = web.run('10 ** 5000', 'python')['result']
    assert result['type'] == 'int' and 'value' not in result and int(result['repr'], 16) == 10 ** 5000


# ---- executions ----

@pytest.mark.parametrize('language', LANGUAGES)
def test_variables_last(web, sandbox, language):
    first, second, value = LANGUAGES[language]
    context = context_in(web, sandbox, language=language)
    assert execute(web, context, first)['status'] == 'completed'
    record = execute(web, context, second)
    assert (record['status'], record['language'], record['result']['value']) == ('completed', language, value)
    assert record['result']['data']['text/plain'] == str(value)


def test_a_shell_lives_on(web, sandbox):
    context = context_in(web, sandbox, language='bash')
    execute(web, context, 'x=6; cd /tmp; f() { echo "f $1"; }')
    record = execute(web, context, 'echo $((x * 7)); pwd; f a')
    assert (record['status'], record['stdout']) == ('completed', '42\n/tmp\nf a\n')
    record = execute(web, context, 'false')
    assert (record['status'], record['error']['type']) == ('failed', 'ExitStatus')
    assert execute(web, context, 'if')['status'] == 'syntax_error'
    record = execute(web, context, 'echo before; sleep 1000', limits={'wall_ms': 1500})
    assert (record['status'], record['stdout']) == ('timeout', 'before\n')
    assert execute(web, context, 'echo $x')['stdout'] == '6\n'


def test_the_record_of_an_execution_is_one(web, python):
    record = execute(web, python, 'import sys; print("out"); print("err", file=sys.stderr); [1, 2]', task_id='t')
    jsonschema.validate(record, json.loads(caisson('schema', 'result').out))
    assert (record['stdout'], record['stderr'], record['result']['value'], record['task_id']) == ('out\n', 'err\n', [1, 2], 't')
    assert record['boundary']['seccomp'] and record['boundary']['isolation'] == 'full' and record['usage']['cpu_ms'] >= 0
    assert record['exit_code'] == 0 and record['files'] == []


def test_an_exception_ends_the_execution_and_not_the_context(web, python):
    execute(web, python, 'x = 1')
    record = execute(web, python, '\n1/0')
    assert (record['status'], record['exit_code'], record['error']['type'], record['error']['line']) == ('failed', 1, 'ZeroDivisionError', 2)
    record = execute(web, python, 'def f(:')
    assert (record['status'], record['error']['line']) == ('syntax_error', 1)
    assert execute(web, python, 'x')['result']['value'] == 1


def test_an_interpreter_comes_warm_and_with_the_walls_of_the_sandbox(web, python):
    assert web.ask('GET', f'/v1/contexts/{python}')[2]['warm']
    code = 'print([line.split(":")[1].strip() for line in open("/proc/self/status") if line.startswith(("Seccomp:", "CapEff", "NoNewPrivs", "Uid"))])'
    assert execute(web, python, code)['stdout'] == "['1000\\t1000\\t1000\\t1000', '0000000000000000', '1', '2']\n"


def test_displays(web, python):
    record = execute(web, python, 'display({"a": 1})\nclass Page:\n  def _repr_html_(self): return "<b>x</b>"\nPage()')
    assert record['displays'] == [{'data': {'text/plain': "{'a': 1}"}}]
    assert record['result']['data']['text/html'] == '<b>x</b>'


def test_figures(web, python):
    pytest.importorskip('matplotlib')
    record = execute(web, python, 'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nplt.figure(); plt.bar([1], [2])', svg=True)
    assert len(record['displays']) == 2
    for display in record['displays']:
        assert base64.b64decode(display['data']['image/png']).startswith(b'\x89PNG') and '<svg' in display['data']['image/svg+xml']
    assert 'image/svg+xml' not in execute(web, python, 'plt.plot([1]); plt.show()')['displays'][0]['data']
    chart = json.loads(record['displays'][0]['data']['application/vnd.caisson.chart+json'])
    assert (chart['type'], chart['elements']) == ('line', [{'label': 'Line 0', 'points': [[0.0, 1.0], [1.0, 2.0]]}])
    code = 'from PIL import Image\nImage.new("RGB", (1, 1)).save("a.png")'
    assert execute(web, python, code)['displays'] == []
    assert 'image/png' in execute(web, python, code, show_saved=True)['displays'][0]['data']
    failed = execute(web, python, '1/0', quiet_errors=True)
    assert (failed['stderr'], failed['error']['type']) == ('', 'ZeroDivisionError')


def test_events_of_an_execution(web, python):
    answer = web.stream('POST', f'/v1/contexts/{python}/runs', {'code': 'print(1); display(2); 3'}, Accept='application/x-ndjson')
    events = [json.loads(line) for line in answer if line.strip()]
    assert [event['type'] for event in events if event['type'] != 'stdout'] == ['start', 'display', 'end']
    assert ''.join(event.get('text', '') for event in events) == '1\n' and events[-1]['record']['result']['value'] == 3


def test_a_time_out_is_an_interrupt(web, python):
    execute(web, python, 'x = 1')
    record = execute(web, python, 'print("before", flush=True)\nwhile True: pass', limits={'wall_ms': 1500})
    assert (record['status'], record['stdout']) == ('timeout', 'before\n')
    assert execute(web, python, 'x')['result']['value'] == 1


def test_who_does_not_heed_an_interrupt_is_replaced(web, python):
    execute(web, python, 'x = 1')
    code = 'import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint("before", flush=True)\nwhile True: pass'
    record = execute(web, python, code, limits={'wall_ms': 1500})
    assert (record['status'], record['stdout']) == ('timeout', 'before\n')
    record = execute(web, python, 'x')
    assert record['error']['type'] == 'NameError'
    assert [warning['code'] for warning in record['warnings']] == ['context_restarted']


@pytest.mark.parametrize('code, status', [('import os; os._exit(3)', 'failed'), ('import os; os.kill(os.getpid(), 9)', 'crashed'),
                                          ('import ctypes; ctypes.string_at(0)', 'crashed')])
def test_an_interpreter_that_ends_has_another_after_it(web, python, code, status):
    assert execute(web, python, f'print("before", flush=True)\n{code}')['status'] == status
    assert web.ask('GET', f'/v1/contexts/{python}')[2]['state'] == 'dead'
    assert execute(web, python, '1')['result']['value'] == 1


def test_memory_is_the_sandbox_s_and_its_lack_ends_the_interpreter(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {'limits': {'memory_bytes': 200_000_000}})[2]['id']
    context = context_in(web, sandbox)
    record = execute(web, context, 'x = bytearray(10**9)')
    assert record['status'] == 'memory_exceeded', record
    assert execute(web, context, '1')['result']['value'] == 1
    assert web.ask('GET', f'/v1/sandboxes/{sandbox}/metrics')[2]['oom_kills'] >= 1
    web.ask('DELETE', f'/v1/sandboxes/{sandbox}')


def test_what_ended_an_execution_is_known_however_late_the_supervisor_counts(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {'limits': {'memory_bytes': 200_000_000}})[2]['id']
    context = context_in(web, sandbox)
    supervisor, = supervisors(web.daemon.process.pid)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        run = started(web, context, 'x = bytearray(10**9)')
        time.sleep(1)       # without being asked for anything, an interpreter would have been killed by now
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert record_of(web, run)['status'] == 'memory_exceeded'
    web.ask('DELETE', f'/v1/sandboxes/{sandbox}')


@pytest.mark.parametrize('how', ['interrupt', 'cancel'])
def test_one_that_waits_for_the_supervisor_can_be_ended_all_the_same(web, python, how):
    execute(web, python, 'x = 5')
    supervisor, = supervisors(web.daemon.process.pid)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        run = started(web, python, 'import time\ntime.sleep(1000)')
        if how == 'interrupt':
            assert web.ask('POST', f'/v1/contexts/{python}/interrupt')[0] == 200
        else:
            assert web.ask('DELETE', f'/v1/runs/{run}')[0] == 202
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert record_of(web, run)['status'] == ('failed' if how == 'interrupt' else 'cancelled')
    assert execute(web, python, 'x')['result']['value'] == 5


def test_interrupt(web, python):
    run = started(web, python, 'print("go", flush=True)\nimport time\ntime.sleep(1000)')
    until(lambda: web.ask('GET', f'/v1/contexts/{python}')[2]['state'] == 'busy')
    answer = web.stream('GET', f'/v1/runs/{run}/events', Accept='application/x-ndjson')
    until(lambda: 'go' in json.loads(answer.readline()).get('text', ''))
    assert web.ask('POST', f'/v1/contexts/{python}/interrupt')[0] == 200
    record = record_of(web, run)
    assert (record['status'], record['error']['type']) == ('failed', 'KeyboardInterrupt')
    assert execute(web, python, '5')['result']['value'] == 5


def test_a_cancelled_execution(web, python):
    run = started(web, python, 'import time\ntime.sleep(1000)')
    until(lambda: web.ask('GET', f'/v1/contexts/{python}')[2]['state'] == 'busy')
    waiting = started(web, python, '6')
    third = started(web, python, '7')
    assert web.ask('DELETE', f'/v1/runs/{third}')[0] == 202
    assert web.ask('DELETE', f'/v1/runs/{run}')[0] == 202
    assert [record_of(web, one)['status'] for one in (run, waiting, third)] == ['cancelled', 'completed', 'cancelled']


def test_restart(web, python):
    execute(web, python, 'x = 1')
    run = started(web, python, 'import time\ntime.sleep(1000)')
    until(lambda: web.ask('GET', f'/v1/contexts/{python}')[2]['state'] == 'busy')
    status, _, context = web.ask('POST', f'/v1/contexts/{python}/restart')
    assert (status, context['state']) == (200, 'idle')
    assert record_of(web, run)['status'] == 'cancelled'
    assert execute(web, python, 'x')['error']['type'] == 'NameError'


def test_executions_of_one_context_go_on_one_after_another(web, python):
    execute(web, python, 'n, most = 0, 0')
    code = 'import time\nn += 1; most = max(n, most); time.sleep(0.01); n -= 1'
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        assert all(record['status'] == 'completed' for record in pool.map(lambda _: execute(web, python, code), range(10)))
    assert execute(web, python, 'most')['result']['value'] == 1


def test_contexts_of_one_sandbox_share_files_and_not_variables(web, sandbox):
    one, two = context_in(web, sandbox), context_in(web, sandbox)
    execute(web, one, 'x = 1; open("shared", "w").write("text")')
    assert execute(web, two, 'open("shared").read()')['result']['value'] == 'text'
    assert execute(web, two, 'x')['error']['type'] == 'NameError'
    assert execute(web, one, 'import os; os.getppid()')['status'] == 'completed'


def test_folder_and_environment(web, sandbox):
    context = context_in(web, sandbox, cwd='/tmp', env={'A': 'of the context'})
    read = 'import os; [os.getcwd(), os.environ["A"]]'
    assert execute(web, context, read)['result']['value'] == ['/tmp', 'of the context']
    assert execute(web, context, read, env={'A': 'of one execution'}, cwd='/home/user')['result']['value'] == ['/home/user', 'of one execution']
    assert execute(web, context, read)['result']['value'] == ['/home/user', 'of the context']


def test_a_fresh_interpreter_for_each_execution(web, sandbox):
    context = context_in(web, sandbox, fresh=True)
    execute(web, context, 'x = 1; open("f", "w").write("kept")')
    record = execute(web, context, 'print(open("f").read()); x')
    assert (record['stdout'], record['error']['type'], record['warnings']) == ('kept\n', 'NameError', [])


def test_what_is_printed_between_executions_belongs_to_the_next(web, sandbox, python):
    code = ('import os, threading, time\ndef late():\n  while not os.path.exists("go"): time.sleep(0.01)\n  os.write(1, b"late\\n")\n'
            'threading.Thread(target=late).start()')
    assert execute(web, python, code)['stdout'] == ''
    assert web.ask('PUT', f'/v1/sandboxes/{sandbox}/files?path=go', b'')[0] == 201
    printed = until(lambda: execute(web, python, '1')['stdout'])
    assert printed == 'late\n'


def test_a_policy_looks_at_executions_too(web, python):
    record = execute(web, python, 'eval("1")', policy='kodeagent')
    assert record['status'] == 'blocked' and record['findings']


def test_answers_are_what_the_description_says(web, sandbox, python):
    path = f'/v1/sandboxes/{sandbox}'
    is_a(web, 'sandbox_info', web.ask('GET', path)[2])
    is_a(web, 'sandbox_list', web.ask('GET', '/v1/sandboxes')[2])
    is_a(web, 'sandbox_usage', web.ask('GET', f'{path}/metrics')[2])
    is_a(web, 'context_info', web.ask('GET', f'/v1/contexts/{python}')[2])
    is_a(web, 'context_list', web.ask('GET', f'{path}/contexts')[2])
    is_a(web, 'process_info', web.ask('POST', f'{path}/processes', {'command': 'echo 1; exit 3'})[2])
    is_a(web, 'process_info', web.ask('POST', f'{path}/processes', {'command': 'kill -9 $$'})[2])
    is_a(web, 'process_list', web.ask('GET', f'{path}/processes')[2])
    is_a(web, 'entry_info', web.ask('PUT', f'{path}/files?path=a/b', b'text')[2])
    is_a(web, 'entry_list', web.ask('GET', f'{path}/entries?path=.&depth=3')[2])
    is_a(web, 'run_result', execute(web, python, 'display(1); 2'))
    execute(web, python, 'import os; os._exit(0)')
    is_a(web, 'context_info', web.ask('GET', f'/v1/contexts/{python}')[2])
    session = is_a(web, 'session_info', web.ask('POST', '/v1/sessions', {'sandbox': {'user': 'u', 'labels': {'a': 'b'}}})[2])
    is_a(web, 'session_list', web.ask('GET', '/v1/sessions')[2])
    web.ask('DELETE', f'/v1/sessions/{session["id"]}')


# ---- what is refused ----

@pytest.mark.parametrize('request_, field', [({'code': '1', 'files': [{'name': 'a', 'content': 'b'}]}, '/context'), ({'code': '1', 'stdin': 'x'}, '/context'),
                                             ({'code': '1', 'language': 'bash'}, '/language'), ({}, '/code'), ({'code': '1', 'context': 'ctx_other'}, '/context')])
def test_what_an_execution_cannot_have(web, python, request_, field):
    _, _, answer = web.ask('POST', f'/v1/contexts/{python}/runs', request_)
    assert (answer['error'] if isinstance(answer['status'], str) else answer)['field'] == field


def test_what_there_is_not(web, sandbox):
    for method, path in (('GET', ''), ('DELETE', ''), ('POST', '/interrupt'), ('POST', '/restart')):
        status, _, problem = web.ask(method, f'/v1/contexts/ctx_none{path}')
        assert (status, problem['code']) == (404, 'not_found')
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'cobol'})[2]['code'] == 'unsupported_language'
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'languages': 'x'})[0] == 422
    assert web.ask('POST', '/v1/runs', {'code': '1', 'context': 'ctx_none'})[2]['error']['field'] == '/context'


def test_no_more_contexts_than_there_may_be(web, sandbox):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {})[0], range(18)))
    assert found.count(201) == 16 and found.count(409) == 2
    assert len(web.ask('GET', f'/v1/sandboxes/{sandbox}/contexts')[2]['contexts']) == 16


def test_a_context_that_is_closed_is_gone_with_its_process(web, sandbox, python):
    pid = execute(web, python, 'import os; os.getpid()')['result']['value']
    assert web.ask('DELETE', f'/v1/contexts/{python}')[0] == 204
    assert web.ask('GET', f'/v1/contexts/{python}')[0] == 404
    look = {'command': f'test -e /proc/{pid}'}
    until(lambda: web.ask('POST', f'/v1/sandboxes/{sandbox}/processes', look)[2]['exit_code'] == 1)


def test_a_paused_sandbox_executes_nothing(web, sandbox, python):
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/pause')[0] == 200
    status, headers, problem = web.ask('POST', f'/v1/contexts/{python}/runs', {'code': '1'})
    assert (status, problem['code'], headers['Retry-After']) == (503, 'capacity', '1') and 'paused' in problem['detail']
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/resume')[0] == 200
    assert execute(web, python, '1')['result']['value'] == 1


def test_the_channel_is_no_way_to_lie(web, python):
    """A program that writes frames of its own loses its interpreter, and nothing else."""
    record = execute(web, python, 'import os\nos.write(3, b"garbage")\nimport time; time.sleep(10)')
    assert record['status'] in ('crashed', 'failed')
    assert execute(web, python, '1')['result']['value'] == 1


@pytest.mark.parametrize('language', [*LANGUAGES, 'bash'])
def test_a_context_has_to_begin_in_a_folder_that_is_there(web, sandbox, language):
    web.ask('POST', f'/v1/sandboxes/{sandbox}/processes', {'command': 'mkdir -m 0 /tmp/shut'})
    for cwd, why in (('/nope', 'No such file'), ('/usr/bin/env', 'Not a directory'), ('/tmp/shut', 'Permission denied')):
        status, _, problem = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': language, 'cwd': cwd})
        assert (status, problem['code'], problem['field']) == (422, 'bad_request', '/cwd'), problem
        assert cwd in problem['detail'] and why in problem['detail']
    assert web.ask('GET', f'/v1/sandboxes/{sandbox}/contexts')[2]['contexts'] == []
    context = context_in(web, sandbox, language=language, cwd='/var/../tmp')
    code = {'python': 'import os; print(os.getcwd())', 'bash': 'pwd -P'}.get(language, 'console.log(process.cwd())')
    assert execute(web, context, code)['stdout'] == '/tmp\n'


# ---- limits ----

@pytest.fixture(name='bounded')
def made_with_limits(web):
    request = {'limits': {'wall_ms': 60_000, 'cpu_ms': 1000, 'output_bytes': 100, 'memory_bytes': 200_000_000, 'pids': 50}, 'profile': 'data'}
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', request)
    assert status == 201
    yield sandbox
    web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')


def test_an_execution_has_the_limits_of_its_sandbox(web, bounded):
    context = context_in(web, bounded['id'])
    record = execute(web, context, 'print("x" * 5000)')
    assert record['limits'] == bounded['limits'] and record['profile'] == 'data'
    assert (len(record['stdout']), record['truncated']['stdout_total_bytes']) == (100, 5001)
    record = execute(web, context, 'print("begun", flush=True)\nwhile True: pass')
    assert (record['status'], record['stdout']) == ('timeout', 'begun\n') and 'CPU time limit of 1 second' in record['error']['message']
    assert 900 <= record['usage']['cpu_ms']
    assert execute(web, context, '1')['result']['value'] == 1
    record = execute(web, context, 'while True: pass', limits={'wall_ms': 1500, 'cpu_ms': 900})
    assert (record['limits']['wall_ms'], record['limits']['cpu_ms'], record['limits']['output_bytes']) == (1500, 900, 100)
    assert record['status'] == 'timeout'


def test_who_waits_uses_no_cpu_time(web, bounded):
    context = context_in(web, bounded['id'], language='bash')
    record = execute(web, context, 'sleep 2; echo done')
    assert (record['status'], record['stdout']) == ('completed', 'done\n')


@pytest.mark.parametrize('path', ['sandboxes', 'sessions'])
def test_time_that_a_sandbox_was_made_with_ends_an_execution(web, path):
    request = {'limits': {'wall_ms': 1500}}
    made = web.ask('POST', f'/v1/{path}', request if path == 'sandboxes' else {'sandbox': request})[2]
    runs = f'/v1/sessions/{made["id"]}/runs' if path == 'sessions' else f'/v1/contexts/{context_in(web, made["id"])}/runs'
    status, _, record = web.ask('POST', runs, {'code': 'import time; time.sleep(1000)'})
    assert (status, record['status'], record['limits']['wall_ms']) == (200, 'timeout', 1500)
    web.ask('DELETE', f'/v1/{path}/{made["id"]}')


@pytest.mark.parametrize('more, field, words', [
    ({'limits': {'wall_ms': 61_000}}, '/limits/wall_ms', ['61s', '60s']), ({'limits': {'cpu_ms': 2000}}, '/limits/cpu_ms', ['2s', '1s']),
    ({'limits': {'cpu_ms': 0}}, '/limits/cpu_ms', ['1s']), ({'limits': {'output_bytes': 101}}, '/limits/output_bytes', ['101', '100']),
    ({'limits': {'memory_bytes': 8_000_000}}, '/limits/memory_bytes', ['8000000', '200000000']), ({'limits': {'pids': 51}}, '/limits/pids', ['51', '50']),
    ({'limits': {'cpu_milli': 100}}, '/limits/cpu_milli', ['100', '2000']), ({'limits': {'disk_bytes': 100_000}}, '/limits/disk_bytes', ['100000']),
    ({'network': 'public'}, '/network', ['public', 'none']), ({'network': 'allow', 'allow': ['example.org']}, '/network', ['allow', 'none']),
    ({'image': 'small'}, '/image', ['small', 'data']), ({'landlock': 'require'}, '/landlock', ['require', 'prefer']),
    ({'strict_proc': True}, '/strict_proc', ['true', 'false']), ({'backend': 'host'}, '/backend', ['host', 'native'])], ids=str)
def test_an_execution_cannot_have_more_than_its_sandbox_nor_what_is_its_sandbox_s(web, bounded, more, field, words):
    record = execute(web, context_in(web, bounded['id']), 'print(1)', **more)
    assert (record['status'], record['error']['field'], record['stdout']) == ('bad_request', field, '')
    assert all(word in record['error']['message'] for word in [*words, field[1:].replace('/', '.')])


def test_what_a_sandbox_has_an_execution_may_name(web, bounded):
    own = {name: bounded['limits'][name] for name in ('memory_bytes', 'pids', 'cpu_milli', 'disk_bytes', 'wall_ms', 'output_bytes')}
    record = execute(web, context_in(web, bounded['id']), '6 * 7', limits=own, network='none', landlock='prefer', strict_proc=False, image='data')
    assert (record['result']['value'], record['limits']) == (42, bounded['limits'])


def test_the_record_tells_what_is_in_force_in_the_sandbox(web, bounded):
    record = execute(web, context_in(web, bounded['id']), 'x = bytearray(10**9)')
    assert record['status'] == 'memory_exceeded' and 'memory_bytes=200000000' in record['error']['hint']
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'network': 'public', 'profile': 'strict'})
    assert status == 201
    record = execute(web, context_in(web, sandbox['id']), '1', profile='lightweight')
    assert record['boundary'] == sandbox['boundary'] and record['boundary']['network'] == 'proxy' and record['limits'] == sandbox['limits']
    assert record['profile'] == 'lightweight'
    web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')


# ---- sessions ----

@pytest.mark.parametrize('mode, kept', [('interpreter', True), ('files', False)])
def test_a_session(web, mode, kept):
    status, headers, session = web.ask('POST', '/v1/sessions', {'mode': mode, 'sandbox': {'labels': {'a': 'b'}}})
    assert status == 201 and headers['Location'] == f'/v1/sessions/{session["id"]}'
    assert (session['mode'], session['sandbox']['labels'], session['sandbox']['idle_ms']) == (mode, {'a': 'b'}, 300000)
    path = f'/v1/sessions/{session["id"]}'
    web.ask('POST', f'{path}/runs', {'code': 'x = 1; open("f", "w").write("kept")'})
    record = web.ask('POST', f'{path}/runs', {'code': 'print(open("f").read()); x'})[2]
    assert record['stdout'] == 'kept\n' and (record['status'] == 'completed') == kept
    assert [one['id'] for one in web.ask('GET', '/v1/sessions')[2]['sessions']] == [session['id']]
    assert web.ask('DELETE', path)[0] == 204
    until(lambda: web.ask('GET', path)[0] == 404)
    assert web.ask('POST', f'{path}/runs', {'code': '1'})[0] == 404


def test_calls_of_one_session_are_served_one_after_another(web):
    session = web.ask('POST', '/v1/sessions', {})[2]['id']
    code = 'import time\nn = globals().get("n", 0) + 1\ntime.sleep(0.05)\nn'
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        values = [record['result']['value'] for record in pool.map(lambda _: web.ask('POST', f'/v1/sessions/{session}/runs', {'code': code})[2], range(5))]
    assert sorted(values) == [1, 2, 3, 4, 5]
    web.ask('DELETE', f'/v1/sessions/{session}')


def test_a_session_ends_when_nobody_uses_it(web):
    session = web.ask('POST', '/v1/sessions', {'sandbox': {'idle_ms': 2000}})[2]['id']
    path = f'/v1/sessions/{session}'
    begun = time.monotonic()
    while time.monotonic() - begun < 3:          # it is used, so it stays
        assert web.ask('POST', f'{path}/runs', {'code': '1'})[0] == 200
    until(lambda: web.ask('GET', path)[0] == 404)
    assert session.removeprefix('ses_') not in str(web.ask('GET', '/v1/sandboxes')[2])


def test_a_session_without_state_is_none(web):
    status, _, problem = web.ask('POST', '/v1/sessions', {'mode': 'none'})
    assert (status, problem['field']) == (422, '/mode')


def test_a_display_that_is_too_long_for_the_events_is_told_as_lost(web, python):
    run = started(web, python, 'display({"text/plain": "x" * 5_000_000}, raw=True)', limits={'value_bytes': 10_000_000})
    assert len(record_of(web, run)['displays'][0]['data']['text/plain']) == 5_000_000
    answer = web.stream('GET', f'/v1/runs/{run}/events', Accept='application/x-ndjson')
    events = [json.loads(line) for line in answer if line.strip()]
    assert [event['type'] for event in events] == ['start', 'lost', 'end'] and events[1]['events'] == 1
    answer = web.stream('GET', f'/v1/runs/{run}/events?after=1', Accept='text/event-stream')
    assert answer.read().startswith(b'id: 2\nevent: lost\ndata: {"type":"lost","events":1}\n\nid: 3\nevent: end\n')


# ---- what is long, what stands still, what ends meanwhile ----

@pytest.mark.parametrize('language, comment', [('python', '#'), ('javascript', '//'), ('bash', '#')])
def test_a_program_of_a_megabyte_is_executed(web, sandbox, language, comment):
    context = context_in(web, sandbox, language=language)
    line = comment + 'x' * 62 + '\n'
    code = line * ((1 << 20) // len(line) - 2) + ('echo 42' if language == 'bash' else '6 * 7')
    for _ in range(3):
        record = execute(web, context, code)
        assert record['status'] == 'completed' and '42' in json.dumps(record['result']) + record['stdout']


def test_the_clock_of_an_execution_stands_while_its_sandbox_is_paused(web, sandbox, python):
    code = 'import os, time\nwhile not os.path.exists("go"): time.sleep(0.01)\n42'
    execution = started(web, python, code, limits={'wall_ms': 3500})
    until(lambda: web.ask('GET', f'/v1/contexts/{python}')[2]['state'] == 'busy')
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/pause')[0] == 200
    time.sleep(4)
    assert web.ask('GET', f'/v1/runs/{execution}')[0] == 202
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/resume')[0] == 200
    assert web.ask('PUT', f'/v1/sandboxes/{sandbox}/files?path=go', b'')[0] == 201
    record = record_of(web, execution)
    assert record['status'] == 'completed' and record['result']['value'] == 42, record
    assert record['timings']['run_ms'] < 3500


def test_what_waits_for_a_context_goes_on_when_its_sandbox_does(web, sandbox):
    fresh = context_in(web, sandbox, fresh=True)
    execute(web, fresh, '1')
    first, second = [started(web, fresh, f'import time\ntime.sleep(.3)\n{n}') for n in (1, 2)]
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/pause')[0] == 200
    time.sleep(1)
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/resume')[0] == 200
    assert [record_of(web, one)['result']['value'] for one in (first, second)] == [1, 2]


def test_a_context_is_not_restarted_while_its_sandbox_is_paused(web, sandbox, python):
    execute(web, python, 'x = 6')
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/pause')[0] == 200
    status, _, problem = web.ask('POST', f'/v1/contexts/{python}/restart')
    assert status == 409 and 'paused' in problem['detail']
    assert web.ask('POST', f'/v1/sandboxes/{sandbox}/resume')[0] == 200
    assert execute(web, python, 'x * 7')['result']['value'] == 42


def test_sandboxes_that_end_while_contexts_begin_in_them_hold_up_nobody(web):
    """The guest's last packets are read when the sandbox is gone."""
    def one(n):
        _, _, sandbox = web.ask('POST', '/v1/sandboxes', {})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            contexts = [pool.submit(web.ask, 'POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {}) for _ in range(3)]
            time.sleep(n % 10 / 500)
            assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204
        return [context.result()[0] for context in contexts]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        statuses = [status for some in pool.map(one, range(40)) for status in some]
    assert len(statuses) == 120 and set(statuses) <= {201, 404, 409, 429, 499, 500, 503}, statuses
    assert web.ask('GET', '/v1/sandboxes')[0] == 200


def test_a_context_that_is_closed_or_restarted_ends_all_that_waits_there(web, sandbox):
    for end in ('restart', None):
        context = context_in(web, sandbox)
        executions = [started(web, context, 'import time\ntime.sleep(60)') for _ in range(5)]
        assert web.ask('POST' if end else 'DELETE', f'/v1/contexts/{context}' + (f'/{end}' if end else ''))[0] in (200, 204)
        assert {record_of(web, one)['status'] for one in executions} == {'cancelled'}


def test_a_daemon_that_ends_while_sessions_begin_ends_in_order(tmp_path):
    other = Web(tmp_path, '--set', 'engine.shutdown_ms=0')
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(other.ask, 'POST', '/v1/sessions', {}) for _ in range(4)]
        until(lambda: other.ask('GET', '/v1/sessions')[2]['sessions'])
        assert other.daemon.stop(signal.SIGTERM) == 0
        for answer in answers:
            try:
                answer.result()
            except (OSError, EOFError, http.client.HTTPException):
                pass


def test_a_display_of_too_many_parts_is_left_out(web, python):
    """Each part of a JSON document costs the daemon much more than the two bytes that it has."""
    code = ('import os, stat, struct\n'
            'fd = [fd for fd in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{fd}") and stat.S_ISSOCK(os.fstat(fd).st_mode)][-1]\n'
            'body = b\'{"data":{"a":[\' + b"0," * %d + b"0]}}"\n'
            'for i in range(0, len(body), 65524):\n'
            '  piece = body[i:i + 65524]\n'
            '  os.write(fd, b"CSN1" + bytes([8, i + len(piece) < len(body), 0, 0]) + struct.pack("<I", len(piece)) + piece)\n')
    assert execute(web, python, code % 1000)['displays'][0]['data']['a'].count('0') == 1001
    record = execute(web, python, code % 2000000)
    assert record['status'] == 'completed' and not record.get('displays')
    assert 'display_lost' in {warning['code'] for warning in record['warnings']}


def test_after_its_end_was_asked_for_nothing_of_a_session_is_there(web):
    for _ in range(5):
        session = web.ask('POST', '/v1/sessions', {'sandbox': {}})[2]
        path, context = f'/v1/sessions/{session["id"]}', session['context']['id']
        assert web.ask('DELETE', path)[0] == 204
        for method, where, body in (('POST', f'{path}/runs', {'code': '1'}), ('GET', path, None), ('DELETE', path, None),
                                    ('POST', f'/v1/contexts/{context}/runs', {'code': '1'}), ('GET', f'/v1/sandboxes/{session["sandbox"]["id"]}', None)):
            assert web.ask(method, where, body)[0] == 404, where
        assert session['id'] not in [one['id'] for one in web.ask('GET', '/v1/sessions')[2]['sessions']]
