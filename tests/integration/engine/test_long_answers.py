"""Long answers of the fronts: they are made outside of the event loop, and say the same as short ones."""

import base64
import json

import pytest

from steps import Probed, steps_of

JSON = {'Content_Type': 'application/json'}
MODERN = '2026-07-28'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('answers')) as web:
        yield web


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
