"""Long answers of the fronts: they are made outside of the event loop, and say the same as short ones."""

import base64
import http.client
import json
import signal

import pytest

from daemon import until
from steps import Probed, TRIES, place, steps_of
from web import Web

JSON = {'Content_Type': 'application/json'}
MODERN = '2026-07-28'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('answers')) as web:
        yield web


# ---- results of gradings ----

CASES = [{'name': f'{number} ' + 'n' * 300, 'args': [number], 'expected': number} for number in range(10_000)]
GRADING = {'code': 'def f(x:\n', 'function': 'f', 'cases': CASES}     # no case runs: the submission is no program


def check_grading(result):
    assert [case['name'] for case in result['cases']] == [case['name'] for case in CASES]
    assert {case['status'] for case in result['cases']} == {'not_run'} and result['status'] == 'syntax_error'


def grade(web):
    status, _, result = web.ask('POST', '/v1/grade', GRADING)
    assert status == 200
    check_grading(result)


def grade_lines(web):
    answer = web.stream_raw('POST', '/v1/grade', f'{json.dumps(GRADING)}\n' * 2, **{'Content-Type': 'application/x-ndjson'})
    lines = [json.loads(line) for line in answer.read().splitlines()]
    assert sorted(line['line'] for line in lines) == [1, 2]
    for line in lines:
        check_grading(line['result'])


@pytest.mark.parametrize('work', [grade, grade_lines])
def test_no_step_is_long_for_the_result_of_a_grading(web, work):
    steps_of(web, lambda: work(web), at='native.c')      # the end of the sandbox ends the grading


def begin_grading(web, lines, seconds):
    connection = web.open(seconds)
    kind = 'application/x-ndjson' if lines else 'application/json'
    connection.request('POST', '/v1/grade', json.dumps(GRADING), {'Content-Type': kind})
    return connection


@pytest.mark.parametrize('lines', [False, True], ids=['one', 'lines'])
def test_a_client_goes_while_the_result_of_a_grading_is_made(web, lines):
    for number in range(8):
        connection = begin_grading(web, lines, 0.1 + 0.05 * number)
        with pytest.raises(TimeoutError):
            connection.getresponse().read()
            raise TimeoutError
        connection.close()
    until(lambda: not web.runs())
    grade(web)


@pytest.mark.parametrize('lines', [False, True], ids=['one', 'lines'])
def test_the_daemon_stops_while_the_result_of_a_grading_is_made(tmp_path, lines):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=1s')
    connections = [begin_grading(web, lines, 60) for _ in range(8)]
    until(lambda: web.runs())
    web.daemon.process.send_signal(signal.SIGTERM)
    for connection in connections:      # the daemon waits for clients that read their answers
        try:
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        connection.close()
    assert web.daemon.process.wait(60) == 0
    assert 'Sanitizer' not in web.log.read_text()


# ---- the Model Context Protocol ----

NAMED = {'tools/call': 'name', 'resources/read': 'uri'}


def message(method, events=False, **params):
    """Path, body and headers."""
    meta = {'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {}}
    meta |= {'progressToken': 1} if events else {}
    body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': {**params, '_meta': meta}}
    return '/mcp', json.dumps(body), {'Accept': 'application/json, text/event-stream', 'MCP_Protocol_Version': MODERN, 'Mcp_Method': method,
                                      'Mcp_Name': params[NAMED[method]], **JSON}


def mcp(web, method, **params):
    path, body, headers = message(method, **params)
    status, _, answer = web.ask('POST', path, body, **headers)
    assert status == 200, answer
    if isinstance(answer, bytes):          # a stream of events, of which the last one is the answer
        answer = json.loads(answer.decode().strip().splitlines()[-1].removeprefix('data: '))
    return answer['result']


def call(web, tool, events=False, **arguments):
    return mcp(web, 'tools/call', events=events, name=tool, arguments=arguments)


@pytest.fixture(name='sandbox', scope='module')
def with_files(web):
    one = call(web, 'create_sandbox')['structuredContent']['id']
    command = "head -c 10000000 /dev/zero | tr '\\0' x > text; (printf '\\377'; cat text) > bytes; (printf '\\211PNG\\r\\n\\032\\n'; head -c 3000000 text) > image"
    assert call(web, 'run_command', sandbox=one, command=f'cd /home/user; {command}')['structuredContent']['exit_code'] == 0
    yield one
    call(web, 'kill_sandbox', sandbox=one)


OUTPUT, VALUES = 600_000, 100_000
IMAGE = b'\x89PNG\r\n\x1a\n' + b'x' * 3_000_000
IMAGES = "for number in range(3):\n    open(f'{number}.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 3_000_000)"


def run_output(web, events):
    result = call(web, 'run_code', events, language='bash', code=f"head -c {OUTPUT} /dev/zero | tr '\\0' '\\1'", limits={'output_bytes': 2 * OUTPUT})
    assert result['structuredContent']['stdout'] == result['content'][0]['text'].strip('\n') == '\1' * OUTPUT


def run_value(web, events):
    """A record that is among the events, and one that is longer than an event."""
    for n in (VALUES // 2, 4 * VALUES):
        result = call(web, 'run_code', events, language='python', code=f'[[n] for n in range({n})]', limits={'value_bytes': 16_000_000, 'memory_bytes': 1 << 30})
        assert result['structuredContent']['result']['value'] == json.loads(result['content'][-1]['text']) == [[n] for n in range(n)]
        assert result['isError'] is False


def run_images(web, events):
    result = call(web, 'run_code', events, language='python', code=IMAGES, limits={'disk_bytes': 20_000_000})
    links = [block['name'] for block in result['content'] if block['type'] == 'resource_link']
    images = [base64.b64decode(block['data']) for block in result['content'] if block['type'] == 'image']
    assert links == ['0.png', '1.png', '2.png'] and images == [IMAGE] * 3


@pytest.mark.parametrize('events', [False, True], ids=['answer', 'events'])
@pytest.mark.parametrize('work', [run_output, run_value, run_images])
def test_no_step_is_long_for_the_record_of_a_tool(web, work, events):
    steps_of(web, lambda: work(web, events), at='internal_request.c')


def read_text(web, sandbox):
    assert call(web, 'read_file', sandbox=sandbox, path='text')['content'] == [{'type': 'text', 'text': 'x' * 10_000_000}]


def read_image(web, sandbox):
    block, = call(web, 'read_file', sandbox=sandbox, path='/home/user/image')['content']
    assert base64.b64decode(block['data']) == IMAGE and block['mimeType'] == 'image/png'


def read_bytes(web, sandbox):
    block, = call(web, 'read_file', sandbox=sandbox, path='/home/user/bytes')['content']
    content, = mcp(web, 'resources/read', uri=block['resource']['uri'])['contents']
    assert content == block['resource'] and base64.b64decode(content['blob']) == b'\xff' + b'x' * 10_000_000
    assert content['uri'] == f'sandbox:/v1/sandboxes/{sandbox}/files//home/user/bytes'


@pytest.mark.parametrize('work', [read_text, read_image, read_bytes])
def test_no_step_is_long_for_a_file_that_is_read(web, sandbox, work):
    steps_of(web, lambda: work(web, sandbox), at='internal_request.c')


def test_a_client_goes_while_its_answer_is_made(web, sandbox):
    for body in (message('tools/call', name='read_file', arguments={'sandbox': sandbox, 'path': 'bytes'}),
                 message('tools/call', name='run_code', arguments={'language': 'python', 'code': f'[[n] for n in range({VALUES})]'}),
                 message('tools/call', name='run_code', arguments={'language': 'python', 'code': IMAGES, 'limits': {'disk_bytes': 20_000_000}})):
        for seconds in (0.05, 0.2, 0.4):
            connection = web.open(seconds)
            connection.request('POST', body[0], body[1], {name.replace('_', '-'): value for name, value in body[2].items()})
            with pytest.raises(TimeoutError):
                connection.getresponse().read()
                raise TimeoutError
            connection.close()
    assert web.run('echo there')['stdout'] == 'there\n'


# ---- displays and output of contexts ----

IMAGE_SIZE, LISTS = 5_000_000, 100_000
SHOW = f"""
print('before', flush=True)
display({{'image/png': 'A' * {IMAGE_SIZE}, 'text/plain': 'image'}}, raw=True)
print('between', flush=True)
display({{'application/json': [[1]] * {LISTS}, 'text/plain': 'lists'}}, raw=True)
print('after', flush=True)
"""
DISPLAYS = [{'image/png': 'A' * IMAGE_SIZE, 'text/plain': 'image'}, {'application/json': [[1]] * LISTS, 'text/plain': 'lists'}]


@pytest.fixture(name='context', scope='module')
def opened(web):
    sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
    yield web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'python'})[2]['id']
    web.ask('DELETE', f'/v1/sandboxes/{sandbox}')


def shown(record):
    return [{name: json.loads(text) if name == 'application/json' and isinstance(text, str) else text for name, text in display['data'].items()}
            for display in record['displays']]


def show(web, context):
    record = web.run(SHOW, context=context, language='python')
    assert record['stdout'] == 'before\nbetween\nafter\n' and shown(record) == DISPLAYS, record.get('warnings')


def show_as_events(web, context):
    events = web.stream('POST', '/v1/runs', {'context': context, 'code': SHOW}, Accept='application/x-ndjson')
    events = [json.loads(line) for line in events if line.strip()]
    kinds = [event.get('text', '').strip() or event.get('data', {}).get('text/plain') or event['type'] for event in events[1:] if event.get('text') != '\n']
    assert kinds == ['before', 'lost', 'between', 'lists', 'after', 'end']
    assert [event['data'] for event in events if event['type'] == 'display'] == DISPLAYS[1:]


def print_much(web, context):
    events = web.stream('POST', '/v1/runs', {'context': context, 'code': "print('\\x01' * 4_000_000)", 'limits': {'output_bytes': 5_000_000}}, Accept='application/x-ndjson')
    events = [json.loads(line) for line in events if line.strip()]
    assert sum(len(event['text']) for event in events if event['type'] == 'stdout') > 100_000 and events[-1]['type'] == 'end'


@pytest.mark.parametrize('work', [show, show_as_events, print_much])
def test_no_step_is_long_for_what_a_context_shows(web, context, work):
    steps_of(web, lambda: work(web, context), at='guest_call.c')


def test_an_interpreter_that_ends_has_shown_what_it_showed(web, context):
    record = web.run(SHOW + 'import os; os._exit(3)', context=context, language='python')
    assert record['exit_code'] == 3 and shown(record) == DISPLAYS


def test_a_client_or_a_sandbox_goes_while_a_display_is_read(web):
    for seconds in (0.05, 0.1, 0.2, 0.3):
        sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
        context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'python'})[2]['id']
        web.run('1', context=context, language='python')
        connections = [web.open(seconds), web.open(60)]
        for connection in connections:
            connection.request('POST', '/v1/runs', json.dumps({'context': context, 'code': SHOW * 5}), {'Content-Type': 'application/json'})
        try:
            connections[0].getresponse().read()
        except TimeoutError:
            pass
        connections[0].close()
        assert web.ask('DELETE', f'/v1/sandboxes/{sandbox}')[0] == 204
        assert connections[1].getresponse().read()
        connections[1].close()
    assert web.run('echo there')['stdout'] == 'there\n'


# ---- E2B ----

KEY = 'e2b_' + '0' * 40


class Sandbox:
    def __init__(self, web):
        status, _, made = web.ask('POST', '/sandboxes', {'templateID': 'base', 'timeout': 300}, X_API_Key=KEY)
        assert status == 201, made
        self.web, self.id = web, made['sandboxID']

    def ask(self, path, body, port=49983, kind='application/json'):
        return self.web.ask('POST', path, body, E2b_Sandbox_Id=self.id, E2b_Sandbox_Port=str(port), Content_Type=kind)

    def execute(self, **body):
        status, _, answer = self.ask('/execute', json.dumps(body), port=49999)
        return status, [json.loads(line) for line in answer.splitlines()] if status == 200 else answer

    def call(self, method, message, stream=False):
        """What comes of a call of Connect RPC: an object, or a list of them."""
        text = json.dumps(message).encode()
        if not stream:
            return self.ask(method, text)[2]
        answer, messages = self.ask(method, b'\0' + len(text).to_bytes(4, 'big') + text, kind='application/connect+json')[2], []
        while answer:
            size = int.from_bytes(answer[1:5], 'big')
            messages.append(json.loads(answer[5:5 + size]))
            answer = answer[5 + size:]
        return messages

    def end(self):
        self.web.ask('DELETE', f'/sandboxes/{self.id}', X_API_Key=KEY)


@pytest.fixture(name='e2b', scope='module')
def made(web):
    one = Sandbox(web)
    one.execute(code='1')
    yield one
    one.end()


def execute_long(e2b):
    status, lines = e2b.execute(code="'é' + '''" + 'x' * 1_000_000 + "'''[:1]", env_vars={'long': 'x'})
    assert status == 200 and lines[1]['text'] == 'éx', lines


def execute_wrong(e2b):
    for wrong, name in (({'code': ['x' * 1_000_000]}, 'code'), ({'code': '1', 'env_vars': [1] * 40_000}, 'env_vars'),
                        ({'code': '1', 'language': [1] * 40_000}, 'language'), ({'padding': 'x' * 1_000_000}, 'code')):
        status, answer = e2b.execute(**wrong)
        assert status == 422 and answer['detail'][0]['loc'] == ['body', name]


def execute_shows(e2b):
    status, lines = e2b.execute(code=SHOW)
    results = [line for line in lines if line['type'] == 'result']
    assert status == 200 and results[0]['png'] == 'A' * IMAGE_SIZE and results[1]['json'] == [[1]] * LISTS
    assert ''.join(line['text'] for line in lines if line['type'] == 'stdout') == 'before\nbetween\nafter\n'


def call_short(e2b):
    junk = {f'member{i}': i for i in range(20_000)}
    assert e2b.call('/filesystem.Filesystem/Stat', {'path': '/tmp', 'junk': junk})['entry']['name'] == 'tmp'
    assert e2b.call('/filesystem.Filesystem/Stat', {'path': 'x' * 1_000_000})['code'] == 'invalid_argument'
    assert e2b.call('/filesystem.Filesystem/Stat', {'path': [1] * 60_000})['code'] == 'invalid_argument'


def call_stream(e2b):
    program = {'cmd': '/bin/bash', 'args': ['-c', 'echo ${#x}'], 'envs': {'x': 'é' * 60_000}}
    events = e2b.call('/process.Process/Start', {'process': program, 'junk': [1] * 40_000}, stream=True)
    assert ''.join(base64.b64decode(event['event']['data']['stdout']).decode() for event in events if 'data' in event.get('event', {})) == '60000\n'
    for envs in ({f'n{i}': 'v' for i in range(20_000)}, {'x': 'x' * 900_000}):
        answer, = e2b.call('/process.Process/Start', {'process': {**program, 'envs': envs}}, stream=True)
        assert answer['error']['code'] == 'invalid_argument' and '160 KiB' in answer['error']['message']


@pytest.mark.parametrize('work', [execute_long, execute_wrong, execute_shows, call_short, call_stream])
def test_no_step_is_long_for_a_request_of_e2b(web, e2b, work):
    steps_of(web, lambda: work(e2b), at='server.c')
    steps_of(web, lambda: work(e2b), at='worker.c')
    steps_of(web, lambda: work(e2b), at='guest_call.c')


@pytest.mark.parametrize('text, words', [(b'', 'incomplete envelope'), (b'\1\0\0\0\0', 'flags'), (b'\0\0\0\0\1', 'promises 1 bytes'), (b'\0\0\0\0\1{', 'no JSON object'),
                                         (b'\0\0\0\1\0' + b'{' * 256, 'nested deeper'), (b'\0\0\1\0\0' + b'x' * 65536, 'no JSON object')])
def test_a_stream_refuses_a_wrong_envelope(e2b, text, words):
    answer = e2b.ask('/process.Process/Start', text, kind='application/connect+json')[2]
    assert words in json.loads(answer[5:])['error']['message']


# ---- descriptions of the interface ----

PATHS = ['/openapi.json', '/docs', '/problems']


def described(web, paths=PATHS):
    """A description of the interface that each client of these tests has, too: its answers are checked against it."""
    answers = {path: web.ask('GET', path)[2] for path in paths}
    assert answers['/openapi.json'] == web.description.document
    assert answers['/docs'].startswith(b'<!doctype html>') and b'/v1/grade' in answers['/docs']
    assert answers['/problems'].startswith(b'<!doctype html>') and b'bad_request' in answers['/problems']


@pytest.mark.parametrize('first', PATHS)
def test_no_step_is_long_for_the_first_description(web, tmp_path, first):
    long = []
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Probed(folder) as fresh:
            described(fresh, sorted(PATHS, key=first.__ne__))
            described(fresh)
            fresh.ask('GET', '/healthz')
            long = [(us, at) for us, address in fresh.steps() if 'server.c' in (at := place(address))]
        if not long:
            return
    raise AssertionError(long)


def test_clients_go_while_descriptions_are_made(web, tmp_path):
    with Probed(tmp_path) as fresh:
        connections = [fresh.open(60) for _ in range(12)]
        for number, connection in enumerate(connections):
            connection.request('GET', PATHS[number % 3])
            if number % 2:
                connection.close()
        for connection in connections[::2]:
            assert connection.getresponse().status == 200
            connection.close()
        described(fresh)
