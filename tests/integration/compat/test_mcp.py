"""The Model Context Protocol at /mcp and by caisson mcp: what is no message, who may, and that nobody reaches what is another's.

What a client does that behaves is in tests/compat/mcp, by the protocol's own suite and clients.
"""

import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from cli import BUILD, caisson
from daemon import until
from web import Web

MODERN = '2026-07-28'
META = {'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {}}
JSON = {'Content-Type': 'application/json', 'Accept': 'application/json, text/event-stream'}
NAMED = {'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri'}


def message(method, params=None, number=1):
    return {'jsonrpc': '2.0', 'id': number, 'method': method, **({'params': params} if params is not None else {})}


def events(text):
    return [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith('data: ')]


class Mcp(Web):
    """Requests in the newer revision, and sessions of the older one."""

    def post(self, body, **headers):
        """(status, headers, all messages)."""
        connection = self.open()
        connection.request('POST', '/mcp', body if isinstance(body, bytes) else json.dumps(body), {**JSON, **{k.replace('_', '-'): v for k, v in headers.items()}})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.headers['Content-Type'] == 'text/event-stream':
            return answer.status, answer.headers, events(text)
        return answer.status, answer.headers, [json.loads(text)] if text else []

    def modern(self, method, params=None, meta=(), **headers):
        params = {**(params or {}), '_meta': {**META, **dict(meta)}}
        head = {'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, **({'Mcp-Name': params[NAMED[method]]} if params.get(NAMED.get(method)) else {})}
        return self.post(message(method, params), **{**head, **headers})

    def result(self, method, params=None, **headers):
        status, _, messages = self.modern(method, params, **headers)
        assert status == 200, messages
        return messages[-1]['result']

    def call(self, name, arguments, **headers):
        return self.result('tools/call', {'name': name, 'arguments': arguments}, **headers)

    def begin(self, **headers):
        """A session of the older revision."""
        status, head, messages = self.post(message('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 't', 'version': '1'}}),
                                           **headers)
        assert status == 200 and messages[0]['result']['protocolVersion'] == '2025-11-25', messages
        return head['Mcp-Session-Id']


@pytest.fixture(name='web', scope='module')
def opened(tmp_path_factory):
    web = Mcp(tmp_path_factory.mktemp('mcp'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='keyed', scope='module')
def opened_with_keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp('mcp-keys')

    def make(name, *options):
        done = caisson('keys', 'create', '--name', name, '--set', f'engine.state_dir={folder}', *options)
        assert done.status == 0, done.err
        return {'Authorization': f'Bearer {done.out.strip()}'}

    keys = {'alice': make('a', '--tenant', 'alice', '--scopes', 'run,read,files,sandboxes'), 'mallory': make('m', '--tenant', 'mallory', '--scopes', 'run,files,sandboxes'),
            'reader': make('r', '--tenant', 'alice', '--scopes', 'read'), 'meter': make('x', '--tenant', 'alice', '--scopes', 'metrics')}
    web = Mcp(folder, keyless=False)
    web.keys = keys
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- what is no message ----

@pytest.mark.parametrize('body, code', [
    (b'', -32700), (b'{', -32700), (b'\xff\xfe', -32700), (b'null', -32700), (b'[' * 100000, -32700), (b'{"a":1,"a":2}', -32700),
    (b'[]', -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'{}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"' + b'x' * 300 + b'"}', -32600),
])
def test_what_is_no_message_is_refused_with_its_code(web, body, code):
    status, _, messages = web.post(body)
    assert status == 400 and messages[0]['error']['code'] == code, messages


def test_a_refusal_has_the_id_where_it_could_be_read(web):
    assert web.post(b'{"jsonrpc":"2.0","id":"seven","method":7}')[2][0]['id'] == 'seven'
    assert 'id' not in web.post(b'{')[2][0]


@pytest.mark.parametrize('kind', ['text/plain', 'application/jsonx', 'application/x-www-form-urlencoded', ''])
def test_a_body_that_is_not_json_by_its_type_is_refused(web, kind):
    assert web.post(message('ping'), Content_Type=kind)[0] == 415


def test_a_body_that_is_too_long_is_refused(web):
    answer = web.raw(b'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n')
    assert answer.startswith(b'HTTP/1.1 413'), answer[:200]


def test_other_methods_of_http_are_not_there(web):
    for method in ('GET', 'PUT', 'PATCH'):
        status, headers, _ = web.ask(method, '/mcp')
        assert (status, headers['Allow']) == (405, 'POST, DELETE')


# ---- the newer revision ----

def test_each_request_says_which_revision_it_is_of(web):
    for meta, code in (({}, -32602), ({**META, 'io.modelcontextprotocol/clientCapabilities': 7}, -32602),
                       ({**META, 'io.modelcontextprotocol/logLevel': 'loud'}, -32602)):
        status, _, messages = web.post(message('tools/list', {'_meta': meta}), MCP_Protocol_Version=MODERN, Mcp_Method='tools/list')
        assert (status, messages[0]['error']['code']) == (400, code), messages
    status, _, messages = web.modern('tools/list', meta={'io.modelcontextprotocol/protocolVersion': '2099-01-01'}, MCP_Protocol_Version='2099-01-01')
    assert (status, messages[0]['error']['code'], messages[0]['error']['data']) == (400, -32022, {'supported': [MODERN], 'requested': '2099-01-01'})


@pytest.mark.parametrize('headers', [{'Mcp_Method': 'tools/call'}, {'Mcp_Method': 'TOOLS/LIST'}, {'Mcp_Method': ''}, {'MCP_Protocol_Version': '2025-11-25'},
                                     {'MCP_Protocol_Version': ''}])
def test_headers_have_to_say_what_the_message_says(web, headers):
    params = {'_meta': META}
    status, _, messages = web.post(message('tools/list', params), **{'MCP_Protocol_Version': MODERN, 'Mcp_Method': 'tools/list', **headers})
    assert (status, messages[0]['error']['code']) == (400, -32020), messages


def test_names_in_headers_may_be_coded(web):
    call = {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo 1'}}
    for name, good in (('=?base64?cnVuX2NvZGU=?=', True), ('  run_code  ', True), ('=?base64?cnVuX2NvZGY=?=', False), ('=?base64?!!?=', False), ('kill_sandbox', False)):
        assert (web.modern('tools/call', call, **{'Mcp-Name': name})[0] == 200) == good, name


def test_methods_of_the_older_revision_are_not_there(web):
    for method in ('initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'no/such'):
        status, _, messages = web.modern(method)
        assert (status, messages[0]['error']['code']) == (404, -32601)


def test_log_messages_come_only_to_who_asks(web):
    call = {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo out; echo err >&2'}}
    assert [one.get('method') for one in web.modern('tools/call', call)[2]] == [None]
    told = [one['params'] for one in web.modern('tools/call', call, meta={'io.modelcontextprotocol/logLevel': 'warning'})[2][:-1]]
    assert told == [{'level': 'warning', 'logger': 'stderr', 'data': 'err\n'}]


# ---- sessions of the older one ----

def test_a_session_begins_once_and_ends_by_delete(web):
    session = web.begin()
    assert web.post(message('ping'), Mcp_Session_Id=session)[2][0]['result'] == {}
    assert web.post(message('initialize', {'protocolVersion': '2025-11-25'}), Mcp_Session_Id=session)[2][0]['error']['code'] == -32600
    assert web.post(message('server/discover'), Mcp_Session_Id=session)[2][0]['error']['code'] == -32601
    assert web.ask('DELETE', '/mcp', Mcp_Session_Id=session)[0] == 204
    assert web.post(message('ping'), Mcp_Session_Id=session)[0] == 404
    assert web.ask('DELETE', '/mcp', Mcp_Session_Id=session)[0] == 404
    assert web.ask('DELETE', '/mcp')[0] == 400


def test_without_a_session_there_is_nothing(web):
    assert web.post(message('tools/list'))[0] == 400
    for bad in ('x', '0' * 32, '../' * 20, "' or 1 = 1"):
        assert web.post(message('tools/list'), Mcp_Session_Id=bad)[0] == 404


def test_an_initialize_that_fails_leaves_no_session(web):
    status, headers, messages = web.post(message('initialize', {}))
    assert status == 200 and messages[0]['error']['code'] == -32602
    assert web.post(message('ping'), Mcp_Session_Id=headers['Mcp-Session-Id'])[0] == 404


def test_an_unknown_revision_gets_ours(web):
    messages = web.post(message('initialize', {'protocolVersion': '1999-01-01'}))[2]
    assert messages[0]['result']['protocolVersion'] == '2025-11-25'
    assert web.post(message('initialize', {'protocolVersion': '2025-06-18'}))[2][0]['result']['protocolVersion'] == '2025-06-18'


def test_there_are_not_endlessly_many_sessions(web):
    first = web.begin()
    for _ in range(1000):
        last = web.begin()
    assert web.post(message('ping'), Mcp_Session_Id=first)[0] == 404     # the one that rested longest has made room
    assert web.post(message('ping'), Mcp_Session_Id=last)[0] == 200


def slow(web, session, number, seconds=90):
    arguments = {'language': 'bash', 'code': f'echo on; sleep {seconds}', 'limits': {'wall_ms': 100000}}
    return web.post(message('tools/call', {'name': 'run_code', 'arguments': arguments}, number), Mcp_Session_Id=session)


def test_an_id_that_is_in_use_is_refused_and_cancelling_ends_the_program(web):
    session, other = web.begin(), web.begin()
    cancel = {'jsonrpc': '2.0', 'method': 'notifications/cancelled', 'params': {'requestId': 5}}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = pool.submit(slow, web, session, 5)
        until(web.runs)
        assert web.post(message('ping', number=5), Mcp_Session_Id=session)[2][0]['error']['code'] == -32600
        assert web.post(message('ping', number='5'), Mcp_Session_Id=session)[2][0]['result'] == {}
        for where, what in ((other, cancel), (session, {**cancel, 'params': {'requestId': '5'}}), (session, {**cancel, 'params': {}})):
            assert web.post(what, Mcp_Session_Id=where)[0] == 202     # neither another session's, nor another id
        time.sleep(0.3)
        assert web.runs() and not running.done()
        assert web.post(cancel, Mcp_Session_Id=session)[0] == 202
        assert [one.get('method') for one in running.result(50)[2]] == ['notifications/message']     # and no answer
    until(lambda: not web.runs())


def test_the_end_of_a_session_ends_what_goes_on_in_it(web):
    session = web.begin()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(slow, web, session, 1)
        until(web.runs)
        assert web.ask('DELETE', '/mcp', Mcp_Session_Id=session)[0] == 204
        assert 'error' in running.result(50)[2][-1]
    until(lambda: not web.runs())


@pytest.mark.parametrize('meta', [{}, {'progressToken': 1}])
def test_a_client_that_goes_takes_its_program_along(web, meta):
    body = json.dumps(message('tools/call', {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo on; sleep 90', 'limits': {'wall_ms': 100000}},
                                             '_meta': {**META, **meta}})).encode()
    head = f'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream, application/json\r\nMCP-Protocol-Version: {MODERN}\r\n'
    with socket.create_connection(('127.0.0.1', web.port)) as connection:
        connection.sendall(f'{head}Mcp-Method: tools/call\r\nMcp-Name: run_code\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
        until(web.runs)
    until(lambda: not web.runs())


def test_a_session_has_so_many_requests_at_once(web):
    session = web.begin()
    with concurrent.futures.ThreadPoolExecutor(70) as pool:
        jobs = [pool.submit(slow, web, session, number, 8) for number in range(70)]
        answers = [job.result(120)[2][-1] for job in jobs]
    refused = [one for one in answers if 'may not have more' in one.get('error', {}).get('message', '')]
    assert 0 < len(refused) <= 6, answers


# ---- tools ----

@pytest.mark.parametrize('name, arguments, word', [
    ('run_code', {'code': 7}, '/code'), ('run_code', {'code': 'x', 'bla': 1}, 'bla'), ('run_code', {'code': 'x', 'language': 'cobol'}, 'cobol'),
    ('run_code', {'code': 'x', 'aliases': True}, 'aliases'), ('run_code', {'code': 'x', 'language': 'bash', 'files': [{'name': 'a', 'path': '/etc/passwd'}]}, 'path'),
    ('run_code', {'code': 'x', 'language': 'bash', 'limits': {'wall_ms': 10 ** 12}}, 'wall_ms'), ('run_code', {'code': 'x', 'context': 'ctx_nope'}, 'ctx_nope'),
    ('kill_sandbox', {}, 'sandbox'), ('kill_sandbox', {'sandbox': ''}, 'no id'), ('kill_sandbox', {'sandbox': '../../v1/files'}, 'no id'),
    ('kill_sandbox', {'sandbox': 'sbx_%2e'}, 'no id'), ('kill_sandbox', {'sandbox': 'x' * 65}, 'no id'), ('kill_sandbox', {'sandbox': ['a']}, 'text'),
    ('read_file', {'sandbox': 'sbx_a', 'path': 'a\0b'}, 'NUL'), ('list_files', {'sandbox': 'sbx_a', 'depth': 'x'}, 'depth'),
    ('write_file', {'sandbox': 'sbx_a', 'path': 'a', 'content_base64': '!'}, 'base64'),
])
def test_arguments_that_are_wrong_come_back_as_a_result(web, name, arguments, word):
    result = web.call(name, arguments)
    assert result['isError'] and word in result['content'][0]['text'], result


def test_schemas_require_what_a_call_needs(web):
    required = {tool['name']: set(tool['inputSchema']['required']) for tool in web.result('tools/list')['tools']}
    assert required['run_code'] == required['check_code'] == {'code', 'language'} and required['grade_code'] == {'code'}
    assert required['create_context'] == {'sandbox'} and required['create_sandbox'] == set()   # a context is Python's where nothing is said
    for name in ('run_code', 'check_code', 'grade_code'):
        for missing in required[name]:
            result = web.call(name, {key: 'python' if key == 'language' else '1' for key in required[name] - {missing}})
            text = result['content'][0]['text']
            assert result['isError'] and missing in text and ' -' not in text, result


@pytest.mark.parametrize('params', [{}, {'name': 'rm'}, {'name': 7}, {'name': 'run_code', 'arguments': []}, {'name': 'run_code', 'arguments': 'x'}])
def test_what_is_no_tool_is_an_error(web, params):
    body = message('tools/call', {**params, '_meta': META})
    name = params.get('name')
    _, _, messages = web.post(body, MCP_Protocol_Version=MODERN, Mcp_Method='tools/call', **({'Mcp-Name': name} if isinstance(name, str) else {}))
    assert messages[0]['error']['code'] == -32602, messages


def test_what_a_program_prints_cannot_look_like_a_message(web):
    code = r"""printf 'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\nevent: message\r\r\n\0\xff\n'"""
    messages = web.modern('tools/call', {'name': 'run_code', 'arguments': {'language': 'bash', 'code': code}}, meta={'io.modelcontextprotocol/logLevel': 'debug'})[2]
    assert {one['method'] for one in messages[:-1]} == {'notifications/message'} and [one['id'] for one in messages if 'id' in one] == [1]
    assert messages[-1]['result']['structuredContent']['status'] == 'completed'


@pytest.mark.parametrize('arguments, said', [
    ({'language': 'python', 'code': '6*7'}, ['42']), ({'language': 'javascript', 'code': '({ a: 6 * 7 })'}, ['{"a":42}']), ({'language': 'python', 'code': '"x"'}, ['"x"']),
    ({'language': 'python', 'code': 'print(1)\nset'}, ['1\n', "<class 'set'>"]), ({'language': 'python', 'code': 'print(1)'}, ['1\n']),
    ({'language': 'python', 'code': 'None'}, ['\n'])])
def test_the_last_expression_is_seen(web, arguments, said):
    assert [one['text'] for one in web.call('run_code', arguments)['content']] == said


def test_the_last_expression_of_a_context_is_seen(web):
    sandbox = web.call('create_sandbox', {})['structuredContent']['id']
    context = web.call('create_context', {'sandbox': sandbox, 'language': 'python'})['structuredContent']['id']
    assert [one['text'] for one in web.call('run_code', {'context': context, 'code': 'x = 6\nx * 7'})['content']] == ['42']
    web.call('kill_sandbox', {'sandbox': sandbox})


def test_the_folder_of_a_list_of_files_is_home_if_none_is_named(web):
    sandbox = web.call('create_sandbox', {})['structuredContent']['id']
    web.call('write_file', {'sandbox': sandbox, 'path': 'a.txt', 'content': 'x'})
    assert [one['name'] for one in web.call('list_files', {'sandbox': sandbox})['structuredContent']['entries']] == ['a.txt']
    web.call('kill_sandbox', {'sandbox': sandbox})


def test_a_flood_of_output_is_cut_as_it_is_everywhere(web):
    arguments = {'language': 'bash', 'code': 'head -c 30000000 /dev/zero | tr "\\0" x', 'limits': {'wall_ms': 200000}}
    result = web.call('run_code', arguments)
    assert result['structuredContent']['truncated']['stdout_total_bytes'] == 30000000
    assert 'x\n... (output truncated)\nx' in result['content'][0]['text']
    messages = web.modern('tools/call', {'name': 'run_code', 'arguments': arguments}, meta={'progressToken': 'a'})[2]
    assert messages[-1]['result']['structuredContent']['truncated']['stdout_total_bytes'] == 30000000


def test_an_answer_may_be_longer_than_what_waits_for_a_reader(web):
    code = 'head -c 12000000 /dev/zero | tr "\\0" x'
    for meta in ({}, {'progressToken': 'a'}):
        arguments = {'language': 'bash', 'code': code, 'limits': {'output_bytes': 20000000}}
        result = web.modern('tools/call', {'name': 'run_code', 'arguments': arguments}, meta=meta)[2][-1]['result']
        assert len(result['content'][0]['text']) == 12000001 and len(result['structuredContent']['stdout']) == 12000000


def test_a_file_that_says_it_is_an_image_is_looked_at(web):
    result = web.call('run_code', {'language': 'bash', 'code': "echo '<script>' > a.png; printf '\\x89PNG\\r\\n\\x1a\\n' > b.png"})
    assert [one['name'] for one in result['content'] if one['type'] == 'resource_link'] == ['a.png', 'b.png']
    assert [one['data'] for one in result['content'] if one['type'] == 'image'] == ['iVBORw0KGgo=']


def test_a_file_without_an_end_is_cut_off(web):
    box = web.call('create_sandbox', {'ttl_ms': 60000})['structuredContent']['id']
    for path in ('/dev/zero', '/proc/kmsg', '/home/user', '/nope'):
        assert web.call('read_file', {'sandbox': box, 'path': path})['isError'], path
    web.call('run_command', {'sandbox': box, 'command': 'head -c 80000000 /dev/zero > big'})
    result = web.call('read_file', {'sandbox': box, 'path': 'big'})
    assert result['isError'] and 'longer than' in result['content'][0]['text']
    web.call('kill_sandbox', {'sandbox': box})


# ---- resources ----

@pytest.mark.parametrize('uri', ['file:///etc/passwd', 'sandbox:', 'sandbox:/v1/runs/x', 'sandbox:/v1/files/', 'sandbox:/v1/files/nope', 'sandbox:/v1/files/../../metrics',
                                 'sandbox:/v1/files/%2e%2e', 'sandbox:/v1/files/a?b', 'sandbox:/v1/sandboxes/x', 'sandbox:/v1/sandboxes/x/files/',
                                 'sandbox:/v1/sandboxes/../files/a', 'sandbox:/v1/sandboxes/x/files/%00', 'sandbox:/v1/sandboxes/x/files/%zz', 'sandbox:/healthz', ''])
def test_what_is_no_resource_is_not_found(web, uri):
    _, _, messages = web.post(message('resources/read', {'uri': uri, '_meta': META}), MCP_Protocol_Version=MODERN, Mcp_Method='resources/read', Mcp_Name=uri)
    assert messages[0]['error']['code'] == -32602, messages
    old = web.post(message('resources/read', {'uri': uri}), Mcp_Session_Id=web.begin())[2]
    assert old[0]['error']['code'] == -32002, old


def test_resources_come_in_pages(web):
    for number in range(105):
        assert web.ask('POST', f'/v1/files?name=page{number}.txt', f'{number}')[0] == 201
    first = web.result('resources/list')
    second = web.result('resources/list', {'cursor': first['nextCursor']})
    uris = [one['uri'] for one in first['resources'] + second['resources']]
    assert len(first['resources']) == 100 and len(set(uris)) == len(uris) >= 105
    assert web.modern('resources/list', {'cursor': 7})[2][0]['error']['code'] == -32602


# ---- who may ----

def test_pages_of_others_are_refused(web):
    for origin, host, good in (('http://evil.example', None, False), ('null', None, False), ('http://localhost.evil.example', None, False), ('file://', None, False),
                               ('http://localhost:3000', None, True), ('http://127.0.0.1', None, True), ('http://localhost:1', 'evil.example', False)):
        status = web.modern('server/discover', Origin=origin, **({'Host': host} if host else {}))[0]
        assert (status == 200) == good and status in (200, 403), (origin, host, status)
    assert web.ask('GET', '/v1/profiles', Origin='http://localhost:3000')[0] == 403     # that is this protocol's alone


def test_pages_are_looked_at_with_a_key_too(keyed):
    for origin, host, status in (('https://evil.example', 'here.example', 403), ('https://here.example', 'here.example', 200), ('http://localhost:1', 'here.example', 200)):
        assert keyed.modern('server/discover', Origin=origin, Host=host, **keyed.keys['alice'])[0] == status


def test_a_key_is_needed_and_says_which_tools_there_are(keyed):
    assert keyed.modern('server/discover')[0] == 401
    assert keyed.modern('server/discover', Authorization='Bearer csn_no')[0] == 401
    assert keyed.modern('server/discover', **keyed.keys['meter'])[0] == 403
    tools = {who: {one['name'] for one in keyed.result('tools/list', **keyed.keys[who])['tools']} for who in ('alice', 'reader')}
    assert {'run_code', 'grade_code', 'create_sandbox'} <= tools['alice'] and 'check_code' not in tools['alice']
    assert tools['reader'] == {'list_sandboxes', 'list_contexts', 'list_files', 'read_file'}
    result = keyed.call('run_code', {'language': 'bash', 'code': 'true'}, **keyed.keys['reader'])
    assert result['isError'] and 'scope' in result['content'][0]['text']


def test_nobody_reaches_what_is_anothers(keyed):
    alice, mallory = keyed.keys['alice'], keyed.keys['mallory']
    session = keyed.begin(**alice)
    assert keyed.post(message('ping'), Mcp_Session_Id=session, **mallory)[0] == 404
    assert keyed.ask('DELETE', '/mcp', Mcp_Session_Id=session, **mallory)[0] == 404
    assert keyed.post(message('ping'), Mcp_Session_Id=session, **alice)[0] == 200
    kept = keyed.call('run_code', {'language': 'bash', 'code': 'echo secret > a.txt'}, **alice)
    uri = next(one['uri'] for one in kept['content'] if one['type'] == 'resource_link')
    assert keyed.result('resources/read', {'uri': uri}, **alice)['contents'][0]['text'] == 'secret\n'
    assert keyed.modern('resources/read', {'uri': uri}, **mallory)[2][0]['error']['code'] == -32602
    assert keyed.result('resources/list', **mallory)['resources'] == []
    box = keyed.call('create_sandbox', {'ttl_ms': 60000}, **alice)['structuredContent']['id']
    for name, arguments in (('kill_sandbox', {}), ('read_file', {'path': '.bashrc'}), ('run_command', {'command': 'id'}), ('create_context', {})):
        assert keyed.call(name, {'sandbox': box, **arguments}, **mallory)['isError']
    assert keyed.call('list_sandboxes', {}, **mallory)['structuredContent']['sandboxes'] == []
    assert not keyed.call('kill_sandbox', {'sandbox': box}, **alice)['isError']


def test_runs_are_in_the_audit_and_counted_for_their_tenant(keyed):
    before = len(keyed.result('tools/list', **keyed.keys['alice'])['tools'])
    record = keyed.call('run_code', {'language': 'bash', 'code': 'true'}, **keyed.keys['alice'])['structuredContent']
    assert before
    rows = until(lambda: [row for row in json.loads(caisson('runs', '--json', '--set', f'engine.state_dir={keyed.folder}').out or '[]') if record['id'] in row.values()])
    assert rows[0]['tenant'] == 'alice'


def test_settings_that_are_loaded_again_are_told_to_who_listens(tmp_path):
    config = tmp_path / 'caisson.yaml'
    config.write_text('limits:\n  wall_ms: 7s\n')
    web = Mcp(tmp_path, '--config', str(config))
    answer = web.stream('POST', '/mcp', message('subscriptions/listen', {'notifications': {'toolsListChanged': True, 'promptsListChanged': True}, '_meta': META}, 'l'),
                        **JSON, MCP_Protocol_Version=MODERN, Mcp_Method='subscriptions/listen')
    lines = (json.loads(line[6:]) for line in answer if line.startswith(b'data: '))
    first = next(lines)
    assert (first['method'], first['params']['notifications']) == ('notifications/subscriptions/acknowledged', {'toolsListChanged': True})
    assert '7s of time' in web.result('tools/list')['tools'][0]['description']
    config.write_text('limits:\n  wall_ms: 9s\n')
    web.daemon.process.send_signal(signal.SIGHUP)
    second = next(lines)
    assert second['method'] == 'notifications/tools/list_changed' and second['params']['_meta'] == {'io.modelcontextprotocol/subscriptionId': 'l'}
    assert '9s of time' in web.result('tools/list')['tools'][0]['description']
    began = time.monotonic()
    assert web.daemon.stop(signal.SIGTERM) == 0     # which does not wait for who listens
    assert time.monotonic() - began < 20 and next(lines, None) is None


# ---- caisson mcp ----

def environment():
    return {**{name: value for name, value in os.environ.items() if not name.startswith(('CAISSON_', 'XDG_'))}, 'HOME': '/nonexistent'}


def spoken(lines, *options):
    done = subprocess.run([BUILD / 'caisson', 'mcp', *options], input=''.join((line if isinstance(line, str) else json.dumps(line)) + '\n' for line in lines),
                          capture_output=True, text=True, timeout=90, env=environment(), check=False)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_lines_are_answered_in_both_revisions_and_the_end_is_clean(web):
    daemon = ['--daemon', 'always', '--set', f'engine.socket={web.daemon.path}']
    call = {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo 1'}}
    done, messages = spoken([message('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}}, 1), {'jsonrpc': '2.0', 'method': 'notifications/initialized'},
                             message('tools/call', call, 2), 'garbage', '', '[]', message('server/discover', {'_meta': META}, 3),
                             message('no/such', {'_meta': META}, 'four'), {'jsonrpc': '2.0', 'id': 9, 'result': {}}], *daemon)
    assert done.returncode == 0 and done.stderr == '', done.stderr
    answers = {one['id']: one for one in messages if 'id' in one}
    assert answers[1]['result']['protocolVersion'] == '2025-11-25' and answers[2]['result']['content'][0]['text'] == '1\n'
    assert answers[3]['result']['supportedVersions'] == [MODERN] and answers['four']['error']['code'] == -32601
    assert sorted(one['error']['code'] for one in messages if 'id' not in one and 'error' in one) == [-32700, -32600]
    assert set(answers) == {1, 2, 3, 'four'}


@pytest.mark.parametrize('own', [False, True])
@pytest.mark.parametrize('legacy', [False, True])
def test_the_end_of_the_input_ends_the_programs_that_go_on(web, own, legacy):
    options = ['--daemon', 'never'] if own else ['--daemon', 'always', '--set', f'engine.socket={web.daemon.path}']
    meta = {} if legacy else {'_meta': {**META, 'io.modelcontextprotocol/logLevel': 'info'}}
    process = subprocess.Popen([BUILD / 'caisson', 'mcp', *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    call = {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo on; sleep 90', 'limits': {'wall_ms': 100000}}, **meta}
    begin = [message('initialize', {'protocolVersion': '2025-11-25', 'capabilities': {}}, 1)] if legacy else []
    process.stdin.write(''.join(json.dumps(one) + '\n' for one in [*begin, message('tools/call', call, 2)]))
    process.stdin.flush()
    assert any('"on\\n"' in process.stdout.readline() for _ in range(2))
    start = time.monotonic()
    process.stdin.close()
    last = json.loads(process.stdout.read().splitlines()[-1])
    assert process.wait(60) == 0 and time.monotonic() - start < 10      # of 90 s
    assert last['id'] == 2 and 'the input has ended' in last['error']['message']
    until(lambda: not web.runs())


def test_what_is_asked_at_once_is_answered_though_the_input_has_ended(web):
    calls = [message('tools/call', {'name': 'run_code', 'arguments': {'language': 'bash', 'code': f'echo {n}'}, '_meta': META}, n) for n in range(12)]
    text = '\n'.join(map(json.dumps, calls))      # the last line has no end
    done = subprocess.run([BUILD / 'caisson', 'mcp', '--daemon', 'always', '--set', f'engine.socket={web.daemon.path}'], input=text, capture_output=True,
                          text=True, timeout=90, env=environment(), check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [one for one in answers if 'error' in one], done.stderr
    assert {one['id']: one['result']['content'][0]['text'] for one in answers} == {n: f'{n}\n' for n in range(12)}


def test_a_daemon_of_its_own_ends_with_it(tmp_path):
    done, messages = spoken([message('tools/list', {'_meta': META})], '--set', 'limits.wall_ms=6s')
    assert done.returncode == 0 and '6s of time' in messages[0]['result']['tools'][0]['description'], done.stderr
    before = set(Path('/tmp').glob('caisson-mcp-??????'))
    process = subprocess.Popen([BUILD / 'caisson', 'mcp', '--daemon', 'never'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    process.stdin.write(json.dumps(message('tools/call', {'name': 'run_code', 'arguments': {'language': 'bash', 'code': 'echo on; sleep 90', 'limits': {'wall_ms': 100000}},
                                                          '_meta': {**META, 'io.modelcontextprotocol/logLevel': 'info'}})) + '\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())['params']['data'] == 'on\n'
    folder = (set(Path('/tmp').glob('caisson-mcp-??????')) - before).pop()
    child = int(Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()[0])
    process.terminate()
    assert process.wait(60) == 0
    assert not folder.exists()
    with contextlib.suppress(FileNotFoundError):
        assert 'caissond' not in Path(f'/proc/{child}/cmdline').read_text()


def test_what_cannot_be_is_said(tmp_path):
    for options, status, word in ((['--daemon', 'sometimes'], 64, 'auto, never or always'), (['x'], 64, 'options only'),
                                  (['--daemon', 'always', '--set', f'engine.socket={tmp_path}/none'], 125, 'daemon'), (['--set', 'no.such=1'], 78, 'no.such')):
        done, messages = spoken([], *options)
        assert (done.returncode, messages) == (status, []) and word in done.stderr, done


# ---- caisson describe ----

def test_the_description_is_of_this_profile_here_and_now():
    plain = caisson('describe').out
    assert 'Languages: python' in plain and '30s of time, 512 MiB of memory' in plain and 'Network: none' in plain and 'sandbox of its own' in plain
    other = caisson('describe', '--set', 'limits.wall_ms=7s', '--set', 'limits.memory_bytes=64MiB', '--session', 'interpreter').out
    assert '7s of time, 64 MiB of memory' in other and 'Variables and files last' in other


def test_what_a_policy_refuses_is_told(tmp_path):
    (tmp_path / 'p.yaml').write_text('policy: linx\nnetwork: allow\nallow: [example.org]\n')
    text = caisson('describe', '--profile', 'p', '--set', f'engine.profiles_dir={tmp_path}').out
    assert 'source policy linx' in text and 'subprocess.*' in text and 'eval' in text and 'these hosts alone: example.org' in text


def test_what_a_policy_allows_alone_is_told_and_each_name_once(tmp_path):
    (tmp_path / 'k.yaml').write_text('policy: kodeagent\nallow_imports: [json]\n')
    text = caisson('describe', '--profile', 'k', '--set', f'engine.profiles_dir={tmp_path}').out
    lines = dict(line.split(': ', 1) for line in text.splitlines() if ': ' in line)
    assert lines['Of modules these alone may be imported'] == 'ast, operator, re, time, random, json.'
    assert lines['Python libraries beside the standard library'] == 'none. Nothing can be installed.'
    refused = lines['Programs with one of these are refused before they run (source policy kodeagent)'].rstrip('.').split(', ')
    assert '*' not in refused and len(refused) == len(set(refused)) and 'eval' in refused, refused


def test_libraries_are_those_of_the_image_and_packages_those_of_the_index(tmp_path):
    """S3-68: with an index something can be installed, and an image has not the libraries of the host."""
    def libraries(*settings):
        lines = caisson('describe', *[word for one in settings for word in ('--set', one)]).out.splitlines()
        return next(line.split(': ', 1)[1] for line in lines if line.startswith('Python libraries'))
    assert libraries().endswith('. Nothing can be installed.')
    index = 'packages.python.index_url=https://index.example/simple'
    assert libraries(index).endswith('. Others can be installed: name them in `packages`.') and 'Nothing' not in libraries(index)
    assert libraries('images.python=tiny', index) == 'those of the image tiny. Others can be installed: name them in `packages`.'
    (tmp_path / 'i.yaml').write_text('image: tiny\n')
    text = caisson('describe', '--profile', 'i', '--set', f'engine.profiles_dir={tmp_path}').out
    assert 'those of the image tiny. Nothing' in text


def test_tools_that_a_profile_grants_are_told(tmp_path):
    (tmp_path / 't.yaml').write_text('tools: {allow: ["home.*", add], deny: [home.burn]}\n')
    text = caisson('describe', '--profile', 't', '--set', f'engine.profiles_dir={tmp_path}').out
    assert 'tool NAME --name value in Bash: home.*, add, but not home.burn. tools.list_tools()' in text
    assert 'tools.' not in caisson('describe').out


def test_names_of_files_cannot_look_like_sentences():
    text = caisson('describe', '--file', 'a"b\nNetwork: everything.', '--file', 'ü.csv').out
    assert r'"a\"b\nNetwork: everything."' in text and '"\\u00fc.csv"' in text.lower() and '\nNetwork: everything' not in text


def test_the_formats_are_definitions_of_a_tool():
    def ask(name):
        return json.loads(caisson('describe', '--format', name).out)

    openai, anthropic, mcp = ask('openai')['function'], ask('anthropic'), ask('mcp')
    assert openai['parameters'] == anthropic['input_schema'] == mcp['inputSchema']
    assert openai['description'] == anthropic['description'] == mcp['description'] == caisson('describe').out
    assert mcp['inputSchema']['required'] == ['code', 'language'] and mcp['inputSchema']['additionalProperties'] is False


@pytest.mark.parametrize('options', [['--format', 'x'], ['--profile', 'x'], ['--session', 'x'], ['x'], ['--bla']])
def test_what_cannot_be_described_is_said(options):
    done = caisson('describe', *options)
    assert done.status == 64 and done.err.startswith('caisson: '), done
