"""What is done to a daemon: steps that a worker takes one after another, each of which checks what it gets.

A step leaves nothing behind that the daemon would keep for a while because it was not told otherwise: runs that can be
asked for are forgotten, sandboxes are ended or have a short life.  So what is left when all is over was forgotten by the
daemon and not by us.
"""

import contextlib
import http.client
import io
import json
import random
import socket
import tarfile
import time
from collections import Counter

WAIT = 120      # seconds that an answer may take: the machine may be busy with other things
POLL = 0.02
LATER = 20      # longer than anything lasts that no step waits for


class Wrong(Exception):
    """The daemon did not do what it has to."""


def must(condition, *facts):
    if not condition:
        raise Wrong(' '.join(str(fact)[:600] for fact in facts) or 'not what was expected')


class Client:
    """Of one tenant; one connection that is kept, and others where a step needs one of its own."""

    def __init__(self, port, key, number):
        self.port, self.key, self.random = port, key, random.Random(number)
        self.kept, self.later = None, []

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=WAIT)

    def headers(self, more):
        return {'Authorization': f'Bearer {self.key}', **{name.replace('_', '-'): value for name, value in more.items()}}

    def ask(self, method, path, body=None, expect=(200,), **headers):
        """What came as JSON, or bytes where it is none."""
        self.kept = self.kept or self.connect()
        try:
            self.kept.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body, self.headers(headers))
            answer = self.kept.getresponse()
            got = answer.read()
        except OSError:
            self.close()
            raise
        if answer.headers.get('Connection') == 'close':
            self.close()
        kind = answer.headers.get('Content-Type', '')
        document = json.loads(got) if got and kind.startswith(('application/json', 'application/problem')) else got
        must(answer.status in expect, method, path, 'gave', answer.status, document)
        return document

    def stream(self, method, path, body=None, **headers):
        """(connection, answer) of a connection of its own."""
        connection = self.connect()
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, self.headers(headers))
        answer = connection.getresponse()
        must(answer.status == 200, method, path, 'gave', answer.status)
        return connection, answer

    def raw(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=WAIT)

    def until(self, condition, what):
        deadline = time.monotonic() + WAIT
        while not (got := condition()):
            must(time.monotonic() < deadline, 'it did not happen:', what() if callable(what) else what)
            time.sleep(POLL)
        return got

    def close(self):
        if self.kept:
            self.kept.close()
        self.kept = None

    # ---- what steps share ----

    def run(self, code, language='bash', **more):
        return self.ask('POST', '/v1/runs', {'language': language, 'code': code, **more})

    def start(self, path, request):
        """Its id, of what goes on."""
        return self.ask('POST', path, request, expect=(202,), Prefer='respond-async')['id']

    def record(self, run):
        def over():
            got = self.ask('GET', f'/v1/runs/{run}', expect=(200, 202))
            return got if 'status' in got else None
        return self.until(over, f'the end of {run}')

    def forget(self, run):
        self.record(run)
        self.ask('DELETE', f'/v1/runs/{run}', expect=(204,))

    def program(self, place, request):
        """The path of a program that was started in a sandbox; its record goes when the step is long over."""
        path = f'{place}/processes/{self.start(f"{place}/processes", request)}'
        self.forget_later(path)
        return path

    def forget_later(self, path):
        self.later.append((time.monotonic() + LATER, path))

    def forget_now(self, all_of_them=False):
        while self.later and (all_of_them or self.later[0][0] < time.monotonic()):
            self.ask('DELETE', self.later.pop(0)[1], expect=(204, 404))

    @contextlib.contextmanager
    def sandbox(self, **request):
        made = self.ask('POST', '/v1/sandboxes', {'ttl_ms': 300_000, 'limits': {'memory_bytes': 256 << 20}, **request}, expect=(201,))['id']
        try:
            yield f'/v1/sandboxes/{made}'
        finally:
            self.ask('DELETE', f'/v1/sandboxes/{made}', expect=(204,))


STEPS = []


def step(weight):
    def note(function):
        STEPS.append((weight, function))
        return function
    return note


# ---- runs ----

PROGRAMS = {
    'python': ('import sys\nprint(6 * 7)\nsys.stderr.write("e")\n{"a": [1, 2]}', '42\n'),
    'javascript': ('console.log(6 * 7)', '42\n'),
    'typescript': ('const x: number = 42\nconsole.log(x)', '42\n'),
    'bash': ('echo $((6 * 7)); echo e >&2', '42\n'),
}
FAILING = [
    ('python', '1/0', 'failed'), ('python', 'def f(:', 'syntax_error'), ('python', 'import os; os.kill(os.getpid(), 11)', 'crashed'),
    ('javascript', 'throw new Error("x")', 'failed'), ('typescript', 'const x: = 1', 'syntax_error'), ('bash', 'exit 3', 'failed'),
    ('bash', 'if', 'syntax_error'), ('bash', 'kill -9 $$', 'crashed'), ('cobol', 'x', 'unsupported_language'),
]


@step(12)
def a_run(client):
    language = client.random.choice(list(PROGRAMS))
    code, out = PROGRAMS[language]
    record = client.run(code, language)
    must((record['status'], record['stdout']) == ('completed', out), record)


@step(5)
def a_run_that_fails(client):
    language, code, status = client.random.choice(FAILING)
    record = client.ask('POST', '/v1/runs', {'language': language, 'code': code}, expect=(200, 422))
    must(record.get('status') == status or record['code'] == status, status, record)


@step(2)
def a_run_that_takes_too_long(client):
    language, code = client.random.choice([('python', 'while True: pass'), ('bash', 'while :; do :; done'), ('javascript', 'for (;;);'), ('bash', 'sleep 100')])
    record = client.run(code, language, limits={'wall_ms': client.random.randint(50, 300)})
    must(record['status'] == 'timeout', record)


@step(1)
def a_run_that_wants_too_much(client):
    record = client.run('x = bytearray(1 << 30)', 'python', limits={'memory_bytes': 64 << 20})
    must(record['status'] in ('memory_exceeded', 'failed'), record)
    record = client.run('head -c 3000000 /dev/zero', limits={'output_bytes': 1000, 'output_action': 'kill'})
    must(record['status'] == 'output_limit', record)


@step(2)
def a_run_with_files(client):
    files = [{'name': f'in/{n}', 'content': 'x' * client.random.randint(0, 50_000)} for n in range(5)]
    record = client.run('cat in/* | wc -c; head -c 100000 /dev/urandom > out; mkdir d; echo a > d/b', files=files, stdin='y' * 10_000)
    must(record['stdout'].strip() == str(sum(len(file['content']) for file in files)) and len(record['files']) == 2, record)


@step(3)
def a_run_asked_for_later(client):
    run = client.start('/v1/runs', {'language': 'python', 'code': 'import time; time.sleep(0.05); print(1)'})
    must(client.record(run)['stdout'] == '1\n')
    client.ask('DELETE', f'/v1/runs/{run}', expect=(204,))
    client.ask('GET', f'/v1/runs/{run}', expect=(404,))


@step(2)
def a_cancelled_run(client):
    run = client.start('/v1/runs', {'language': 'bash', 'code': 'trap "" TERM; sleep 100 & sleep 100'})
    time.sleep(client.random.random() / 5)
    client.ask('DELETE', f'/v1/runs/{run}', expect=(202,))
    must(client.record(run)['status'] == 'cancelled')
    client.forget(run)


@step(1)
def a_key_used_twice(client):
    name = f'soak-{client.random.getrandbits(64)}'
    first, second = (client.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo $RANDOM'}, Idempotency_Key=name) for _ in range(2))
    must(first == second)
    client.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'}, expect=(422,), Idempotency_Key=name)


@step(2)
def a_run_as_sandbox_fusion(client):
    got = client.ask('POST', '/run_code', {'language': 'python', 'code': 'open("a/b", "a").write("!"); print(1)', 'files': {'a/b': 'eA==', 'c': 'Yw=='},
                                           'fetch_files': ['a/b', 'c', 'd']})
    must((got['status'], got['run_result']['stdout'], got['files']) == ('Success', '1\n', {'a/b': 'eCE=', 'c': 'Yw=='}), got)
    must(client.ask('POST', '/run_code', {'language': 'cpp', 'code': 'x'})['status'] == 'SandboxError')
    client.ask('POST', '/run_code', {'code': 1}, expect=(422,))
    test = {'input': {'stdin': '4'}, 'output': {'stdout': '8'}}
    config = {'dataset_type': 'CommonOJDataset', 'language': 'python', 'provided_data': {'test': [test, test]}}
    submission = {'dataset': 'x', 'id': 1, 'completion': '```python\nprint(2 * int(input()))\n```'}
    must(client.ask('POST', '/submit', {**submission, 'config': config})['accepted'])
    client.ask('POST', '/submit', {**submission, 'config': {}}, expect=(400,))


@step(2)
def a_run_as_piston(client):
    body = {'language': 'bash', 'version': '*', 'files': [{'content': 'echo 1; echo 2 >&2; exit 3'}]}
    run = client.ask('POST', '/api/v2/execute', body, Content_Type='application/json')['run']
    must((run['stdout'], run['stderr'], run['code'], run['status']) == ('1\n', '2\n', 3, 'RE'), run)
    must(client.ask('GET', '/api/v2/runtimes'))
    client.ask('POST', '/api/v2/execute', {**body, 'version': '0.1'}, expect=(400,), Content_Type='application/json')


@step(2)
def tools_as_librechat(client):
    root, typed = '/librechat/v1', {'Content_Type': 'application/json'}
    made = client.ask('POST', f'{root}/exec', {'lang': 'bash', 'code': 'echo 1 | tee a'}, **typed)
    must(made['stdout'] == '1\n' and made['files'] == [], made)       # the key keeps no files
    client.ask('GET', f'{root}/files/{made["session_id"]}', expect=(403,))
    body = {'code': 'print(await f(a=1))', 'tools': [{'name': 'f'}]}
    asked = client.ask('POST', f'{root}/exec/programmatic', body, **typed)
    body = {'continuation_token': asked['continuation_token'], 'tool_results': [{'call_id': 'call_001', 'result': 2}]}
    must(client.ask('POST', f'{root}/exec/programmatic', body, **typed)['stdout'] == '2\n')
    client.ask('POST', f'{root}/exec/programmatic', body, expect=(404,), **typed)


@step(2)
def submissions_as_judge0(client):
    body = {'language_id': 71, 'source_code': 'print(input())', 'stdin': 'a', 'expected_output': 'a'}
    done = client.ask('POST', '/submissions?wait=true', body, expect=(201,))
    must(done['status']['id'] == 3, done)
    tokens = [one['token'] for one in client.ask('POST', '/submissions/batch', {'submissions': [body, body]}, expect=(201,))]
    path = '/submissions/batch?fields=*&tokens=' + ','.join(tokens)
    client.until(lambda: all(one['status_id'] == 3 for one in client.ask('GET', path)['submissions']), 'the end of two submissions')
    for token in (done['token'], *tokens):
        client.ask('DELETE', f'/v1/runs/{token}', expect=(204,))
    client.ask('POST', '/submissions', {**body, 'language_id': 0}, expect=(422,))


@step(2)
def a_tool_of_a_model(client):
    meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
    call = {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo 42', 'exports': []}}
    head = {'Content_Type': 'application/json', 'Accept': 'application/json, text/event-stream'}
    modern = {**head, 'MCP_Protocol_Version': '2026-07-28', 'Mcp_Method': 'tools/call', 'Mcp_Name': 'run_code'}
    body = {'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {**call, '_meta': meta}}
    must(client.ask('POST', '/mcp', body, **modern)['result']['content'][0]['text'] == '42\n')
    told = client.ask('POST', '/mcp', {**body, 'params': {**call, '_meta': {**meta, 'progressToken': 1}}}, **modern)
    must(b'notifications/progress' in told and b'42\\n' in told, told)
    client.ask('POST', '/mcp', {**body, 'method': 'no/such'}, expect=(400,), **modern)


@step(1)
def a_session_of_a_model(client):
    connection = client.connect()

    def post(method, number, headers, **params):
        body = json.dumps({'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params})
        connection.request('POST', '/mcp', body, client.headers({'Content_Type': 'application/json', 'Accept': 'application/json, text/event-stream', **headers}))
        answer = connection.getresponse()
        return answer, answer.read()

    with contextlib.closing(connection):
        answer, _ = post('initialize', 1, {}, protocolVersion='2025-11-25', capabilities={})
        must(answer.headers['Mcp-Session-Id'], 'initialize gave', answer.status)
        session = {'Mcp_Session_Id': answer.headers['Mcp-Session-Id']}
        _, told = post('tools/call', 2, session, name='run_code', arguments={'language': 'bash', 'code': 'echo 42', 'exports': []})
        must(b'notifications/message' in told and b'"isError":false' in told, told)
        client.ask('DELETE', '/mcp', expect=(204,), **session)


@step(2)
def many_runs(client):
    lines = [{'id': n, 'language': client.random.choice(['python', 'bash']), 'code': 'print(1)' if n % 3 else 'sleep 100'} for n in range(12)]
    lines += [{'cancel': n} for n in range(0, 12, 3)] + [{'id': 'bad', 'nonsense': 1}]
    answer = client.ask('POST', '/v1/runs/bulk', '\n'.join(map(json.dumps, lines)), Content_Type='application/x-ndjson')
    got = [json.loads(line) for line in answer.splitlines()]
    must(sorted(str(one.get('id')) for one in got) == sorted([*map(str, range(12)), 'bad']), got)


@step(1)
def many_runs_that_nobody_waits_for(client):
    lines = ''.join(json.dumps({'language': 'bash', 'code': 'sleep 100'}) + '\n' for _ in range(5))
    with client.raw() as connection:
        connection.sendall((f'POST /v1/runs/bulk HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Length: {len(lines) + 10}\r\n\r\n' + lines).encode())
        time.sleep(0.2)


# ---- streams ----

@step(2)
def events_of_the_daemon(client):
    connection, answer = client.stream('GET', '/v1/events?types=run.finished', Accept='application/x-ndjson')
    run = client.run('echo 1')['id']
    while json.loads(answer.readline().strip() or b'{}').get('id') != run:      # other clients of the tenant run programs, too
        pass
    if client.random.random() < 0.5:
        time.sleep(0.3)                                                          # lost with events that nobody reads
    connection.close()
    must(run in [one['id'] for one in client.ask('GET', '/v1/runs?history=true&limit=200')['runs']])
    must(client.ask('GET', '/v1/metrics/series?name=running')['step_s'] == 10 and client.ask('GET', '/v1/me')['may']['events'])


@step(1)
def a_preview(client):
    text = 'x' * client.random.randrange(1, 1 << 20)
    link = client.ask('POST', '/v1/previews', {'html': text}, expect=(201,))['url']
    must(client.ask('GET', link) == text.encode())
    client.ask('GET', link[:-4] + 'zzzz', expect=(404,))


CHATTER = 'for i in range(400): print("line", i, "é" * 50, flush=True)'


@step(3)
def a_stream_that_is_cut(client):
    connection, answer = client.stream('POST', '/v1/runs', {'language': 'python', 'code': CHATTER}, Accept='text/event-stream')
    begin = answer.readline() + answer.readline() + answer.readline()
    run = json.loads(begin.split(b'data: ')[1])['id']
    for _ in range(client.random.randint(0, 200)):
        answer.readline()
    connection.close()
    after = client.random.choice([0, 1, 5, 10 ** 6])
    connection, answer = client.stream('GET', f'/v1/runs/{run}/events?after={after}', Accept='application/x-ndjson')
    events = [json.loads(line) for line in answer if line.strip()]
    connection.close()
    must(after > 0 or events[-1]['type'] == 'end' and events[-1]['record']['status'] == 'completed', events[-1:])
    client.forget(run)


ANSWER = {'server': 'home', 'tool': 'answer', 'arguments': {}, 'result': 42}


@step(3)
def calls_of_tools(client):
    language, code = client.random.choice([('python', 'print([tools.answer() for _ in range(20)])'), ('bash', 'for i in 1 2 3; do tool answer; done; tool nope'),
                                           ('javascript', 'for (let i = 0; i < 20; i++) tools.sync.answer(); console.log(tools.sync.nope());')])
    record = client.run(code, language, tools={'replay': [ANSWER] * 20, 'record': True})
    must(record['tools']['calls'] in (3, 20) and record['tools']['calls'] == len(record['tools']['list']), record)


@step(2)
def a_client_that_serves_tools(client):
    """And one in three that goes away in the middle."""
    calls = 'from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(4) as pool: print(sum(pool.map(lambda i: tools.double(i=i), range(12))))'
    connection, answer = client.stream('POST', '/v1/runs', {'language': 'python', 'code': calls, 'tools': {'client': [{'name': 'double'}], 'decode': True, 'call_ms': 60000}, 'limits': {'wall_ms': 60000}},
                                       Accept='application/x-ndjson')
    leaves, run, record = client.random.random() < 0.3, None, None
    for line in filter(bytes.strip, answer):
        event = json.loads(line)
        run, record = run or event.get('id'), event.get('record')
        if event['type'] == 'tool_call':
            if leaves:
                break
            client.ask('POST', f'/v1/runs/{run}/tool-results', {'results': [{'call': event['call'], 'result': event['arguments']['i'] * 2}]})
    connection.close()
    must(leaves or record['stdout'] == '132\n', record)
    if leaves:
        client.ask('DELETE', f'/v1/runs/{run}', expect=(200, 202, 204))
    else:
        client.forget(run)


@step(1)
def a_reader_that_is_slow(client):
    code = 'import os\nfor _ in range(60): os.write(1, b"\\xff" * 65536 if _ % 2 else b"x" * 65536)'
    connection, answer = client.stream('POST', '/v1/runs', {'language': 'python', 'code': code}, Accept='application/x-ndjson')
    run = json.loads(answer.readline())['id']
    for _ in range(5):
        time.sleep(0.05)
        answer.read(20_000)
    connection.close()
    client.forget(run)


@step(2)
def a_client_that_goes(client):
    request = json.dumps({'language': 'bash', 'code': 'sleep 100 & sleep 100'}).encode()
    head = f'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Length: {len(request)}\r\n\r\n'.encode()
    whole = head + request
    with client.raw() as connection:
        connection.sendall(whole[:client.random.choice([20, len(head) - 5, len(head), len(whole) - 5, len(whole), len(whole)])])
        time.sleep(client.random.random() / 5)


# ---- what is refused ----

@step(3)
def bad_requests(client):
    ask = client.ask
    ask('POST', '/v1/runs', client.random.choice(['{', '[]', '{"code": 1}', '{"nonsense": 1}', '', '\0', '"\\ud800"', '[' * 10_000]), expect=(422,))
    ask('GET', client.random.choice(['/v1/nothing', '/v1/runs/none', '/v1/sandboxes/none', '/v1/contexts/none', '/v1/sandboxes/none/processes/1']), expect=(404,))
    ask('PUT', '/v1/runs', expect=(405,))
    ask('GET', '/v1/runs?nonsense=1', expect=(422,))
    ask('GET', '/v1/logs', expect=(403,))
    ask('GET', '/v1/runs', expect=(401,), Authorization='Bearer csn_' + 'A' * 60)
    with client.raw() as connection:
        connection.sendall(client.random.choice([b'\0' * 100, b'GET\r\n\r\n', b'POST /v1/runs HTTP/1.1\r\nContent-Length: x\r\n\r\n', b'GET / HTTP/1.1\r\nX: ' + b'a' * 60_000]))
        connection.settimeout(1)
        with contextlib.suppress(OSError):
            connection.recv(100)


GRADED = [
    ({'code': 'def f(x): return x * 2', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}, {'args': [3], 'expected': 5}]}, 1),
    ({'code': 'import os\ndef f(x):\n    os._exit(0)', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}] * 3}, 0),
    ({'code': 'def f(x):\n    while x: pass\n    return x', 'function': 'f', 'cases': [{'args': [0], 'expected': 0}, {'args': [1], 'expected': 1}], 'case_cpu_ms': 100}, 1),
    ({'code': 'def f(x): return x', 'tests': 'assert f(1) == 1\nassert f(1) == 2\n'}, 1),
    ({'code': 'import os\ndef f(x): os._exit(0)', 'tests': 'assert f(1) == 1\n'}, 0),
    ({'code': 'exports.f = (x) => x', 'language': 'javascript', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]}, 1),
    ({'code': 'cat', 'language': 'bash', 'cases': [{'stdin': 'a', 'expected_stdout': 'a'}, {'stdin': 'a', 'expected_stdout': 'b'}]}, 1),
]


@step(4)
def a_grading(client):
    request, passed = client.random.choice(GRADED)
    result = client.ask('POST', '/v1/grade', request)
    must(result['status'] == 'completed' and result['passed'] == passed, result)


@step(2)
def checks(client):
    found = client.ask('POST', '/v1/check', {'language': 'python', 'code': 'import os\nos.system("x")', 'policy': client.random.choice(['linx', 'kodeagent', 'off'])})
    must('verdict' in found, found)
    record = client.run('import subprocess\nsubprocess.run(["id"])', 'python', policy='linx')
    must(record['status'] == 'blocked', record)


@step(2)
def questions(client):
    for path in ('/v1/runs', '/v1/sandboxes', '/v1/sessions', '/v1/profiles', '/v1/policies/linx', '/v1/languages', '/metrics', '/openapi.json', '/healthz', '/readyz'):
        client.ask('GET', path)


# ---- sandboxes ----

@step(1)
def a_sandbox_that_is_forgotten(client):
    """Its time ends it, with what goes on in it."""
    made = client.ask('POST', '/v1/sandboxes', {'ttl_ms': 5000}, expect=(201,))['id']
    client.program(f'/v1/sandboxes/{made}', {'command': 'sleep 100'})
    client.ask('POST', f'/v1/sandboxes/{made}/contexts', {}, expect=(201,))


@step(1)
def a_sandbox_that_stands_still(client):
    with client.sandbox() as place:
        for what in ('pause', 'resume'):
            client.ask('POST', f'{place}/{what}')
        client.ask('PATCH', place, {'ttl_ms': 60_000})
        must('memory_bytes' in client.ask('GET', f'{place}/metrics'))


CONTEXTS = {'python': ('x = 6', 'x * 7'), 'javascript': ('var x = 6', 'x * 7'), 'typescript': ('var x: number = 6', 'x * 7'), 'bash': ('x=6', 'echo $((x * 7))')}


@step(3)
def a_context(client):
    with client.sandbox() as place:
        language = client.random.choice(list(CONTEXTS))
        context = '/v1/contexts/' + client.ask('POST', f'{place}/contexts', {'language': language}, expect=(201,))['id']
        first, second = CONTEXTS[language]
        client.ask('POST', f'{context}/runs', {'code': first})
        record = client.ask('POST', f'{context}/runs', {'code': second})
        must(record['stdout'].strip() == '42' if language == 'bash' else record['result']['value'] == 42, record)
        if client.random.random() < 0.5:
            client.ask('DELETE', context, expect=(204,))


@step(2)
def an_interrupted_context(client):
    with client.sandbox() as place:
        context = '/v1/contexts/' + client.ask('POST', f'{place}/contexts', {}, expect=(201,))['id']
        run = client.start(f'{context}/runs', {'code': 'import time\nprint("go", flush=True)\ntime.sleep(100)'})
        connection, answer = client.stream('GET', f'/v1/runs/{run}/events', Accept='application/x-ndjson')
        client.until(lambda: b'"go' in answer.readline(), 'the first output')
        client.ask('POST', f'{context}/{client.random.choice(["interrupt", "restart"])}')
        connection.close()
        must(client.record(run)['status'] in ('failed', 'cancelled'))
        client.forget(run)
        must(client.ask('POST', f'{context}/runs', {'code': 'display({"a": 1})\nimport os; os._exit(1)'})['status'] == 'failed')


@step(2)
def a_session(client):
    session = client.ask('POST', '/v1/sessions', {'mode': client.random.choice(['files', 'interpreter'])}, expect=(201,))['id']
    for n in range(3):
        record = client.ask('POST', f'/v1/sessions/{session}/runs', {'code': 'with open("log", "a") as log: log.write("x")\nprint(open("log").read())'})
        must(record['stdout'].strip() == 'x' * (n + 1), record)
    client.ask('DELETE', f'/v1/sessions/{session}', expect=(204,))


# ---- programs in sandboxes ----

def over(client, process):
    return client.until(lambda: (lambda got: got if got['state'] == 'over' else None)(client.ask('GET', process)), 'the end of a process')


@step(2)
def programs(client):
    with client.sandbox() as place:
        done = client.ask('POST', f'{place}/processes', {'command': 'echo out; echo err >&2; exit 3'})
        must((done['stdout'], done['stderr'], done['exit_code']) == ('out\n', 'err\n', 3), done)
        client.forget_later(f'{place}/processes/{done["id"]}')
        reader = client.program(place, {'args': ['wc', '-c'], 'stdin': True})
        for _ in range(3):
            client.ask('POST', f'{reader}/stdin', b'x' * 300_000, expect=(204,))
        client.ask('POST', f'{reader}/stdin?end=true', b'', expect=(204,))
        must(over(client, reader)['stdout'].strip() == '900000')
        sleeper = client.program(place, {'command': 'sleep 100'})
        client.ask('POST', f'{sleeper}/signal', {'signal': 'TERM'}, expect=(204,))
        must(over(client, sleeper)['signal'] == 15)
        if client.random.random() < 0.5:
            client.ask('DELETE', sleeper, expect=(204,))


@step(2)
def a_terminal(client):
    with client.sandbox() as place:
        connection, answer = client.stream('POST', f'{place}/processes', {'args': ['bash', '--norc'], 'terminal': True}, Accept='application/x-ndjson')
        process = f'{place}/processes/{json.loads(answer.readline())["id"]}'
        client.forget_later(process)
        # At its start readline sets the size that it has read before.
        client.until(lambda: 'bash' in client.ask('GET', process)['stdout'], 'a prompt')
        client.ask('POST', f'{process}/size', {'rows': 40, 'columns': 100}, expect=(204,))
        client.ask('POST', f'{process}/stdin', b'stty size; sleep 100 &\n', expect=(204,))
        client.until(lambda: '40 100' in client.ask('GET', process)['stdout'], lambda: f'40 100 in {client.ask("GET", process)}')
        if client.random.random() < 0.5:
            client.ask('POST', f'{process}/stdin', b'exit 5\n', expect=(204,))
            must(over(client, process)['exit_code'] == 5)
        connection.close()


# ---- files of sandboxes ----

@step(3)
def files(client):
    with client.sandbox() as place:
        content = client.random.randbytes(client.random.choice([0, 1000, 3_000_000]))
        client.ask('PUT', f'{place}/files?path=a/b/c', content, expect=(201, 204))
        must(client.ask('GET', f'{place}/files?path=a/b/c') == content)
        if content:
            must(client.ask('GET', f'{place}/files?path=a/b/c', expect=(206,), Range='bytes=10-19') == content[10:20])
        client.ask('PATCH', f'{place}/files?path=a/b/c', {'action': 'rename', 'to': 'a/d'}, expect=(200, 204))
        must(len(client.ask('GET', f'{place}/entries?path=a&depth=3')['entries']) == 2)
        client.ask('GET', f'{place}/files?path=none', expect=(404,))
        connection, answer = client.stream('GET', f'{place}/files?path=a/d')    # one that is not read to its end
        answer.read(10)
        connection.close()
        client.ask('DELETE', f'{place}/files?path=a', expect=(200, 204))


@step(2)
def tar_both_ways(client):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode='w') as tar:
        for n in range(20):
            about = tarfile.TarInfo(f'folder/{n}')
            about.size = 10_000
            tar.addfile(about, io.BytesIO(bytes([n]) * about.size))
    with client.sandbox() as place:
        client.ask('PATCH', f'{place}/files?path=there', {'action': 'folder'}, expect=(200, 204))
        client.ask('PUT', f'{place}/files?path=there&format=tar', packed.getvalue(), expect=(200, 201, 204))
        got = client.ask('GET', f'{place}/files?path=there&format=tar')
        with tarfile.open(fileobj=io.BytesIO(got)) as tar:
            must(sum(member.size for member in tar) == 200_000)
        client.ask('PUT', f'{place}/files?path=there&format=tar', b'this is no archive' * 100, expect=(400, 422))


@step(2)
def many_files(client):
    parts = [b'--part\r\nContent-Disposition: form-data; name="f"; filename="%d"\r\n\r\n' % n + b'x' * (n * 10_000) + b'\r\n' for n in range(5)]
    body = b''.join(parts) + b'--part--\r\n'
    with client.sandbox() as place:
        got = client.ask('POST', f'{place}/files?path=.', body, expect=(200, 201), Content_Type='multipart/form-data; boundary=part')
        must(len(got['entries']) == 5, got)
        with client.raw() as connection:        # one that is cut
            head = f'POST {place}/files?path=cut HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Length: {len(body)}\r\n'
            connection.sendall(head.encode() + b'Content-Type: multipart/form-data; boundary=part\r\n\r\n' + body[:client.random.randrange(len(body))])


@step(2)
def a_watch(client):
    with client.sandbox() as place:
        connection, answer = client.stream('GET', f'{place}/watch?path=.&depth=4', Accept='application/x-ndjson')
        must(json.loads(answer.readline())['type'] == 'start')
        client.ask('PUT', f'{place}/files?path=new', b'x', expect=(201, 204))
        must(b'path' in answer.readline())
        if client.random.random() < 0.5:
            connection.close()
    connection.close()


@step(1)
def what_is_anothers(client):
    with client.sandbox() as place:
        client.ask('GET', place, expect=(404,), Authorization=f'Bearer {client.other}')
        client.ask('DELETE', place, expect=(404,), Authorization=f'Bearer {client.other}')


# ---- all together ----

class Worker:
    """Takes steps by chance until it is told to stop; counts them, and what was wrong."""

    def __init__(self, port, keys, number):
        self.client = Client(port, keys[number % len(keys)], number)
        self.client.other = keys[(number + 1) % len(keys)]
        self.taken, self.wrong = Counter(), []

    def take(self, function):
        try:
            function(self.client)
        except (Wrong, OSError, http.client.HTTPException, ValueError, KeyError, IndexError) as error:
            self.wrong.append(f'{function.__name__}: {type(error).__name__}: {error}')
        self.taken[function.__name__] += 1

    def forget(self, all_of_them=False):
        try:
            self.client.forget_now(all_of_them)
        except (Wrong, OSError, http.client.HTTPException) as error:
            self.wrong.append(f'to forget a program: {error}')

    def work(self, stop):
        weights, functions = zip(*STEPS)
        # Each once and in another order, so that a short soak has had them all; then by chance.
        for function in self.client.random.sample(functions, len(functions)):
            if not stop.is_set():
                self.take(function)
        while not stop.is_set():
            self.take(self.client.random.choices(functions, weights)[0])
            self.forget()
        self.forget(all_of_them=True)
        self.client.close()


def tidy(port, keys):
    """End what steps that went wrong have left."""
    for number, key in enumerate(keys):
        client = Client(port, key, number)
        for kind in ('sessions', 'sandboxes'):
            for one in client.ask('GET', f'/v1/{kind}')[kind]:
                client.ask('DELETE', f'/v1/{kind}/{one["id"]}', expect=(204, 404))
        for one in client.ask('GET', '/v1/runs')['runs']:
            client.ask('DELETE', f'/v1/runs/{one["id"]}', expect=(202, 204, 404))
            client.record(one['id']) if one['state'] != 'over' else None
        client.close()
