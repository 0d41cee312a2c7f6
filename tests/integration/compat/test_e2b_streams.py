"""E2B's words, by clients and programs that mean no good: what they may not do to the daemon.

    /usr/bin/python3 -m pytest -q tests/integration/compat/test_e2b_streams.py
"""

import json
import os
import select
import signal
import socket
import time
import zlib

import pytest
from daemon import supervisors, until
from web import Web

KEY = 'e2b_' + '0' * 40


@pytest.fixture(scope='module')
def web(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('server'), '--set', 'engine.sandboxes_owner_max=50')
    yield web
    assert web.ask('GET', '/health')[0] == 200, 'the daemon is there to the end'
    assert web.daemon.stop(15) == 0


class Sandbox:
    """One of E2B's, asked with its own token unless a test says otherwise."""

    def __init__(self, web, **wish):
        self.web = web
        status, _, made = web.ask('POST', '/sandboxes', {'templateID': 'base', 'timeout': 300, 'secure': True, **wish}, X_API_Key=KEY)
        assert status == 201, made
        self.id, self.token, self.traffic = made['sandboxID'], made['envdAccessToken'], made.get('trafficAccessToken')

    def control(self, method, below='', body=None):
        return self.web.ask(method, f'/sandboxes/{self.id}{below}', body, X_API_Key=KEY, Content_Type='application/json')

    def words(self, port=49983, token=True):
        return {'E2b-Sandbox-Id': self.id, 'E2b-Sandbox-Port': str(port)} | ({'X-Access-Token': self.token} if token else {})

    def ask(self, method, path, body=None, port=49983, token=True, **headers):
        return self.web.ask(method, path, body, **{name.replace('-', '_'): value for name, value in (self.words(port, token) | headers).items()})

    def begin(self, method, path, *lines, port=49983, token=True):
        """A connection on which a head was sent, and no body yet."""
        connection = socket.create_connection(('127.0.0.1', self.web.port), timeout=60)
        head = [f'{method} {path} HTTP/1.1', 'Host: x', *(f'{name}: {value}' for name, value in self.words(port, token).items()), *lines]
        connection.sendall('\r\n'.join(head).encode('latin-1') + b'\r\n\r\n')
        return connection

    def state(self):
        return self.control('GET')[2]['state']

    def envelope(self, message):
        self.body = b'\0' + len(json.dumps(message).encode()).to_bytes(4, 'big') + json.dumps(message).encode()
        return [f'Content-Length: {len(self.body)}']


def rest(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b''.join(parts)


@pytest.fixture
def sandbox(web):
    one = Sandbox(web)
    yield one
    one.control('DELETE')


def memory_mib(web):
    with open(f'/proc/{web.daemon.process.pid}/status') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmRSS')) // 1024


def chunk(data):
    return b'%x\r\n%s\r\n' % (len(data), data)


def part(name):
    return b'--b\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\ncontent\r\n' % name


# ---- a sandbox goes while something of it is on its way ----

@pytest.mark.parametrize('how', ['killed', 'paused'])
def test_a_sandbox_goes_between_two_files_of_an_upload(web, how):
    one = Sandbox(web)
    upload = one.begin('POST', '/files', 'Content-Type: multipart/form-data; boundary=b', 'Transfer-Encoding: chunked')
    upload.sendall(chunk(part(b'/tmp/one') + b'--b\r\n'))
    until(lambda: one.ask('GET', '/files?path=/tmp/one')[0] == 200)
    time.sleep(0.3)
    if how == 'killed':
        assert one.control('DELETE')[0] == 204
    else:
        assert one.control('POST', '/pause', {'memory': False})[0] == 204
    upload.sendall(chunk(part(b'/tmp/two')[5:] + b'--b--\r\n') + b'0\r\n\r\n')
    assert b' 502 ' in upload.recv(65536)
    assert web.ask('GET', '/health')[0] == 200
    one.control('DELETE')


def test_a_client_goes_while_its_context_begins_in_a_paused_sandbox(web, sandbox):
    body = b'{"language": "javascript"}'
    opening = sandbox.begin('POST', '/contexts', 'Content-Type: application/json', f'Content-Length: {len(body)}', port=49999)
    opening.sendall(body)
    until(lambda: len(sandbox.ask('GET', '/contexts', port=49999)[2]) == 3)
    assert sandbox.control('POST', '/pause', {})[0] == 204
    opening.close()
    time.sleep(0.3)
    assert sandbox.control('POST', '/connect', {'timeout': 300})[0] in (200, 201)
    until(lambda: sandbox.ask('POST', '/execute', {'code': '1 + 1', 'language': 'javascript'}, port=49999)[0] == 200)
    time.sleep(1)
    assert web.ask('GET', '/health')[0] == 200


def test_one_that_is_being_killed_is_not_there_any_more(web):
    one = Sandbox(web)
    held = supervisors(web.daemon.process.pid)
    for pid in held:
        os.kill(pid, signal.SIGSTOP)       # who would end it
    try:
        killing = socket.create_connection(('127.0.0.1', web.port), timeout=60)
        killing.sendall(f'DELETE /sandboxes/{one.id} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\n\r\n'.encode())
        until(lambda: one.ask('GET', '/health')[0] == 502)
        assert one.control('GET')[0] == 404
        assert one.control('POST', '/timeout', {'timeout': 60})[0] == 404
        assert one.control('POST', '/connect', {'timeout': 60})[0] == 404
        assert one.id not in json.dumps(web.ask('GET', '/v2/sandboxes', X_API_Key=KEY)[2])
    finally:
        for pid in held:
            os.kill(pid, signal.SIGCONT)
    assert b' 204 ' in killing.recv(65536)
    killing.close()


# ---- programs inside that answer what is no HTTP ----

PROGRAM = '''
import socket
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(('127.0.0.1', 3000))
server.listen(20)
print('listens')
while True:
    client, _ = server.accept()
    try:
        head = b''
        while b'\\r\\n\\r\\n' not in head:
            head += client.recv(65536)
        %s
    except OSError:
        pass
    client.close()
'''


@pytest.fixture
def program(sandbox):
    """Starts a server in the sandbox that does this with `client`, whose head it has read."""
    kept = []

    def start(what):
        code = PROGRAM % what.replace('\n', '\n        ')
        connection = sandbox.begin('POST', '/process.Process/Start', 'Content-Type: application/connect+json',
                                   *sandbox.envelope({'process': {'cmd': '/usr/bin/python3', 'args': ['-u', '-c', code]}}))
        connection.sendall(sandbox.body)
        got = b''
        while b'bGlzdGVucw' not in got:
            got += connection.recv(65536)
        kept.append(connection)
    yield start
    for connection in kept:
        connection.close()


def test_answers_that_never_begin_cost_no_memory(web, sandbox, program):
    program("one = b'HTTP/1.1 103 Early Hints\\r\\nX: ' + b'x' * 20000 + b'\\r\\n\\r\\n'\nfor _ in range(20000):\n    client.sendall(one)\nclient.recv(1)")
    before = memory_mib(web)
    asked = sandbox.begin('GET', '/', port=3000)
    asked.settimeout(60)
    assert b' 502 ' in asked.recv(65536)
    assert memory_mib(web) - before < 60


def test_a_few_early_hints_are_passed_over(sandbox, program):
    program("client.sendall(b'HTTP/1.1 103 Early Hints\\r\\nX: x\\r\\n\\r\\n' * 10 + b'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nlate')")
    assert sandbox.ask('GET', '/', port=3000)[2] == b'late'


ECHO = "client.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(head) + head)"


def test_a_body_has_one_length_on_its_way(sandbox, program):
    program(ECHO)
    asked = sandbox.begin('POST', '/', 'Content-Length: 5', 'Transfer-Encoding: chunked', 'Connection: close', port=3000)
    asked.sendall(b'0\r\n\r\n')
    head = rest(asked).lower()
    assert (b'transfer-encoding: chunked' in head and b'content-length: 5' not in head) or b' 400 ' in head


def test_keys_and_what_is_for_one_connection_stay_here(sandbox, program):
    program(ECHO)
    asked = sandbox.begin('GET', '/', 'X-API-Key: secret-key', 'X-Own: mine', 'X-Hop: hop', 'Connection: close, X-Hop', port=3000)
    head = rest(asked)
    assert b'X-Own: mine' in head
    for word in (b'secret-key', sandbox.token.encode(), b'X-Hop', b'x-hop'):
        assert word not in head


@pytest.mark.parametrize('path, line', [('/a b', 'X-Own: mine'), ('/', 'X-Own: mi\rne'), ('/', 'X-Own: mi\x01ne')])
def test_what_a_program_could_read_in_two_ways_is_refused(sandbox, program, path, line):
    program(ECHO)
    asked = sandbox.begin('GET', path, line, 'Connection: close', port=3000)
    assert b' 400 ' in rest(asked).split(b'\r\n')[0]


# ---- who may ----

def test_no_body_is_taken_for_a_sandbox_that_is_not_there(web):
    for port, path in ((49983, '/filesystem.Filesystem/Stat'), (49999, '/execute'), (3000, '/')):
        head = f'POST {path} HTTP/1.1\r\nHost: {port}-inothere.e2b.test\r\nContent-Type: application/json\r\nContent-Length: 50000000\r\n\r\n'
        with socket.create_connection(('127.0.0.1', web.port), timeout=60) as connection:
            connection.sendall(head.encode())
            answer = connection.recv(65536)
        assert b' 502 ' in answer and b'The sandbox was not found' in answer and b'"sandboxId":"inothere"' in answer


def test_no_code_is_taken_without_the_token(sandbox):
    asked = sandbox.begin('POST', '/execute', 'Content-Type: application/json', 'Content-Length: 50000000', port=49999, token=False)
    asked.settimeout(60)
    answer = asked.recv(65536)
    assert b' 401 ' in answer and b'Unauthorized' in answer


def test_only_who_may_wakes_a_sandbox(web):
    one = Sandbox(web, autoPause=True, autoResume={'enabled': True})
    assert one.control('POST', '/pause', {})[0] == 204
    until(lambda: one.state() == 'paused')
    for path, status in (('/files?path=/tmp/x', 401), ('/files?path=/tmp/x&signature=v1_wrong', 401), ('/health', 502)):
        assert one.ask('GET', path, token=False)[0] == status
        assert one.state() == 'paused'
    assert one.ask('POST', '/execute', {'code': '1'}, port=49999, token=False)[0] == 401
    assert one.state() == 'paused'
    assert one.ask('GET', '/files?path=/tmp/x')[0] == 404
    assert one.state() == 'running'
    one.control('DELETE')


# ---- what is sent costs what it is ----

@pytest.mark.parametrize('port, path', [(49983, '/filesystem.Filesystem/Stat'), (49999, '/execute'), (0, '/sandboxes')])
def test_json_of_many_parts_is_refused(web, sandbox, port, path):
    body = b'{"a":[' + b'{},' * 60_000 + b'{}]}'
    before = memory_mib(web)
    if port:
        status, _, answer = sandbox.ask('POST', path, body, port, **{'Content-Type': 'application/json'})
    else:
        status, _, answer = web.ask('POST', path, body, X_API_Key=KEY, Content_Type='application/json')
    assert status in (400, 422), answer
    assert 'values and names' in json.dumps(answer)
    assert memory_mib(web) - before < 100


def test_json_that_is_deep_is_refused(sandbox):
    body = b'{"a":' + b'[' * 1000 + b']' * 1000 + b'}'
    status, _, answer = sandbox.ask('POST', '/filesystem.Filesystem/Stat', body, **{'Content-Type': 'application/json'})
    assert status == 400 and 'deeper' in answer['message']


def test_an_upload_for_nobody_stops_nobody_and_has_an_end(web, sandbox):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = packer.compress(b'--b\r\nContent-Disposition: form-data; name="nobody"\r\n\r\n')
    zeros = b'\0' * (8 << 20)
    body += b''.join(packer.compress(zeros) for _ in range(160))       # 1.25 GiB
    body += packer.compress(b'\r\n--b--\r\n') + packer.flush()
    upload = sandbox.begin('POST', '/files', 'Content-Type: multipart/form-data; boundary=b', 'Content-Encoding: gzip', f'Content-Length: {len(body)}')
    upload.sendall(body)
    others = 0
    while not select.select([upload], [], [], 0)[0] and others < 10:
        assert web.ask('GET', '/health')[0] == 200
        others += 1
    assert others == 10, 'they have their turn before it is over'
    upload.settimeout(200)
    assert b' 413 ' in upload.recv(65536)


def test_a_compressed_file_of_many_megabytes_is_written_whole(sandbox):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = packer.compress(b'x' * (20 << 20)) + packer.flush()
    status, _, answer = sandbox.ask('POST', '/files?path=/tmp/large', body, **{'Content-Type': 'application/octet-stream', 'Content-Encoding': 'gzip'})
    assert status == 200, answer
    status, headers, _ = sandbox.ask('GET', '/files?path=/tmp/large', Range='bytes=0-0')
    assert headers['Content-Range'].endswith(f'/{20 << 20}')


# ---- the guest's own /proc ----

OWN = ('environ', 'mem', 'maps', 'fd', 'fd/0', 'root/etc/passwd', 'cwd', 'exe', 'task/1/environ', 'status', 'map_files')
WAYS = [f'{top}/{name}' for top in ('/proc/self', '/proc/1', '/proc/thread-self', '/proc/self/task/1', '/proc/self/root/proc/1') for name in OWN] + \
    ['/dev/fd/0', '/dev/fd', '/dev/stdin', '/proc/self', '/proc/1', '/proc/thread-self', '/proc//./self/environ', '/tmp/../proc/self/environ']
LINKS = {'direct': '/proc/self/environ', 'folder': '/proc/self', 'fd': '/dev/fd', 'mem': '/proc/1/mem', 'twice': '/tmp/links/direct', 'root': '/proc/self/root'}


def process(sandbox, command):
    """Its status as root, by envd's process.Process/Start."""
    message = {'process': {'cmd': '/bin/bash', 'args': ['-c', command]}}
    body = json.dumps(message).encode()
    connection = sandbox.web.open()
    connection.request('POST', '/process.Process/Start', b'\0' + len(body).to_bytes(4, 'big') + body,
                       {**sandbox.words(), 'Content-Type': 'application/connect+json', 'Authorization': 'Basic cm9vdDo='})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize('user', ['root', 'user'])
def test_the_file_api_does_not_open_the_guest_itself(sandbox, user):
    """The kernel lets a process open its own memory; the guest, which serves the files, must not be asked to."""
    status, text = process(sandbox, 'mkdir -p /tmp/links; cd /tmp/links; ' + '; '.join(f'ln -sfn {target} {name}' for name, target in LINKS.items()) +
                           '; chmod -R 777 /tmp/links')
    assert status == 200 and b'"exited":true' in text, text
    linked = [f'/tmp/links/{name}' for name in ('direct', 'mem', 'twice')] + [f'/tmp/links/folder/{name}' for name in OWN] + \
        ['/tmp/links/fd/0', '/tmp/links/root/proc/1/environ']
    for path in WAYS + linked:
        status, _, answer = sandbox.ask('GET', f'/files?path={path}&username={user}')
        assert status >= 400, (path, status, answer[:200] if isinstance(answer, bytes) else answer)
    for path in ('/proc/self/mem', '/proc/1/mem', '/tmp/links/mem', '/proc/self/fd/1', '/proc/self/oom_score_adj', '/proc/self/cwd/new'):
        part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n1\r\n--x--\r\n'
        status, _, answer = sandbox.ask('POST', f'/files?path={path}&username={user}', part, Content_Type='multipart/form-data; boundary=x')
        assert status >= 400, (path, answer)
    for path in ('/proc/self', '/proc/1', '/proc/self/fd', '/dev/fd', '/tmp/links/folder', '/proc/thread-self'):
        status, _, answer = sandbox.ask('POST', '/filesystem.Filesystem/ListDir', json.dumps({'path': path, 'depth': 1}), Content_Type='application/json',
                                        Authorization='Basic ' + {'root': 'cm9vdDo=', 'user': 'dXNlcjo='}[user])
        assert status >= 400, (path, answer)


def test_other_files_of_proc_and_links_are_still_read(sandbox):
    for path, words in (('/proc/cpuinfo', b''), ('/proc/meminfo', b'MemTotal'), ('/etc/hostname', b''), ('/proc/sys/kernel/ostype', b'Linux')):
        status, _, answer = sandbox.ask('GET', f'/files?path={path}&username=root')
        assert status == 200 and words in (answer if isinstance(answer, bytes) else b''), (path, status, answer)
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\ncontent\r\n--x--\r\n'
    for path in ('/home/user/new/folder/file', '/root/file'):
        status, _, answer = sandbox.ask('POST', f'/files?path={path}&username=root', part, Content_Type='multipart/form-data; boundary=x')
        assert status == 200, answer
        assert sandbox.ask('GET', f'/files?path={path}&username=root')[2] == b'content'
