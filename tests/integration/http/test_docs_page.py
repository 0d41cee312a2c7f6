"""The examples of /docs, as somebody copies them into a shell."""

import html
import os
import re
import signal
import subprocess

import pytest

from cli import caisson
from daemon import until
from image_archives import shell_root, write
from sandboxes import Sandbox
from web import Web

REFUSED = {'/list_ids', '/get_prompts', '/get_prompt_by_id', '/get_metrics', '/get_metrics_function'}    # there are no data sets here
UNCONFIGURED = {('post', '/v1/layers'): 422, ('get', '/v1/layers/{id}'): 404, ('delete', '/v1/layers/{id}'): 404}    # there is no package index here
OPERATION = re.compile(r'<h3 id="(\w+)"><span class=m>(\w+)</span> (.*?)</h3>(?:(?!<h3 ).)*?<h4>Example</h4><pre>(.*?)</pre>', flags=re.S)


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('docs'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def kept_run(web, **more):
    return web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'import time; time.sleep(60)', **more}, Prefer='respond-async')[2]['id']


def waiting_run(web):
    """One that waits for an answer to its first call of a tool, and that call."""
    run = kept_run(web, code='print(tools.add(a=1))', tools={'client': [{'name': 'add'}]})

    def called():
        lines = web.ask('GET', f'/v1/runs/{run}/events?follow=false', Accept='application/x-ndjson')[2].decode()
        return 'tool_call' in lines
    until(called)
    return run


def variables(web, path):
    """What stands for $ID and its like, made for this example alone."""
    if path.startswith('/v1/runs/'):
        return {'ID': waiting_run(web) if path.endswith('tool-results') else kept_run(web)}
    if path.startswith('/v1/sandboxes/{id}'):
        sandbox = Sandbox(web)
        sandbox.good('PUT', '/files?path=notes.txt', b'text')
        number = sandbox.good('POST', '/processes', {'command': 'cat', 'stdin': True, 'terminal': path.endswith('/size')}, Prefer='respond-async')['id']
        if path.endswith('/resume'):
            sandbox.good('POST', '/pause')
        return {'ID': sandbox.id, 'NUMBER': str(number)}
    if path.startswith(('/v1/contexts', '/v1/sessions/')):
        sandbox = Sandbox(web)
        return {'ID': sandbox.good('POST', '/contexts', {'language': 'python'})['id'] if 'contexts' in path else
                web.ask('POST', '/v1/sessions', {'language': 'python'})[2]['id']}
    if path.startswith('/v1/files/'):
        return {'ID': web.ask('POST', '/v1/files?name=a', b'text')[2]['id']}
    if path.startswith('/v1/workspaces/'):
        assert web.ask('PUT', '/v1/workspaces/mine/file?path=notes.txt', b'text')[0] == 201
        return {'NAME': 'mine'}
    if path.startswith('/v1/idempotency-keys/'):
        assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Idempotency_Key='mine')[0] == 200
        return {'IDEMPOTENCY_KEY': 'mine'}
    if path.startswith('/submissions'):
        return {'TOKEN': web.ask('POST', '/submissions', {'language_id': 71, 'source_code': 'print(1)'}, Content_Type='application/json')[2]['token']}
    if path.startswith('/v1/volumes/'):
        assert web.ask('POST', '/v1/volumes', {'name': 'mine', 'size_bytes': 16 << 20})[0] in (201, 409)     # for GET, and then for DELETE
        return {'NAME': 'mine'}
    if path.startswith('/v1/problems/'):
        assert web.ask('PUT', '/v1/problems/mine', b'{"id": 1, "function": "f"}')[0] in (200, 201)
        return {'SET': 'mine'}
    if path.startswith('/sessions/'):
        assert web.ask('POST', '/execute', {'generated_code': '1'}, X_Session_ID='mine')[0] == 200
        return {'ID': 'mine'}
    if path.startswith('/v1/previews/'):
        place, signature = web.ask('POST', '/v1/previews', {'html': '42'})[2]['url'].split('?sig=')
        return {'ID': place.rsplit('/', 1)[1], 'SIG': signature}
    if path.startswith('/v1/images/'):
        done = caisson('image', 'import', write(web.folder / 'tools.tar', shell_root()), *web.state)
        assert done.status == 0, done.err
        return {'NAME': 'tools'}
    if path.startswith('/librechat/') and '{session_id}' in path:
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\ntext\r\n--b--\r\n'
        made = web.ask('POST', '/librechat/v1/upload', form, Content_Type='multipart/form-data; boundary=b')[2]
        return {'SESSION_ID': made['session_id'], 'FILE_ID': made['files'][0]['fileId']}
    if path == '/mcp':
        begin = {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {'protocolVersion': '2025-11-25', 'capabilities': {},
                                                                              'clientInfo': {'name': 'test', 'version': '1'}}}
        return {'SESSION': web.ask('POST', '/mcp', begin, Content_Type='application/json', Accept='application/json, text/event-stream')[1]['Mcp-Session-Id']}
    return {'NAME': 'standard' if 'profiles' in path else 'linx', 'ID': '71'}


def test_every_operation_has_an_example_that_works(web, tmp_path):
    page = web.ask('GET', '/docs')[2].decode()
    described = web.ask('GET', '/openapi.json')[2]['paths']
    examples = OPERATION.findall(page)
    assert {(method, html.unescape(path)) for _, method, path, _ in examples} == {(method, path) for path, one in described.items() for method in one}
    (tmp_path / 'notes.txt').write_text('text\n')
    (tmp_path / 'requests.jsonl').write_text('{"id": 1, "language": "python", "code": "print(1)"}\n')
    for _, method, path, example in examples:
        command = html.unescape(example).replace('curl -s', "curl -s -m 3 -o answer -w '%{http_code}'", 1)
        env = {**os.environ, **variables(web, path), 'URL': f'http://127.0.0.1:{web.port}', 'KEY': ''}
        command = command.replace(' -H "Authorization: Bearer $KEY"', '')      # a daemon that asks for no key knows none
        done = subprocess.run(['bash', '-euc', command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        status = int(done.stdout or 0)
        where = f'{method} {path}: {status}\n{command}\n{(tmp_path / "answer").read_bytes()[:600]}'
        assert str(status) in described[path][method]['responses'], where
        if path in REFUSED:
            assert status == 400, where
        elif (method, path) in UNCONFIGURED:
            assert status == UNCONFIGURED[method, path], where
        elif path == '/v1/logs':
            assert status in (200, 404), where       # where the log is no file of the daemon's
        else:
            assert 200 <= status < 300, where
        for sandbox in web.ask('GET', '/v1/sandboxes')[2]['sandboxes']:
            web.ask('DELETE', '/v1/sandboxes/' + sandbox['id'])


def test_bounds_are_true(web):
    page = web.ask('GET', '/docs')[2].decode()
    assert not re.findall(r': 0 to 0\b|18446744073709551615|: -1\b', page)
    limits = re.search(r'<h3 id="limits">.*?</table>', page, flags=re.S)[0]
    assert re.search(r'<td>wall_ms<td>number: 1ms to 24h\b|<td>wall_ms<td>number: 1ms to 86400s', limits), limits
    assert '<td>cpu_milli<td>number: ' in limits
