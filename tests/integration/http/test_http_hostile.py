"""The HTTP interface of caissond, asked by hostile clients."""

import contextlib
import gzip
import re
import resource
import signal
import socket
import subprocess
import time

import pytest

from daemon import memory_of, until
from web import Web

# libmicrohttpd 1.0 refuses more by itself, in its own words or without any; 0.9 leaves that to src/front/http/head.c.
STRICT = not subprocess.run(['pkg-config', '--modversion', 'libmicrohttpd'], capture_output=True, text=True, check=False).stdout.startswith('0.')


def is_refused(answer, status=b'400'):
    """One answer, and the connection ends: no byte behind the head is read as a request."""
    if STRICT and (not answer or answer.startswith(b'HTTP/1.1 400 ')):
        return b'HTTP/1.1 200 ' not in answer
    return answer.startswith(b'HTTP/1.1 %s ' % status) and answer.count(b'HTTP/1.1 ') == 1 and b'Connection: close' in answer


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('hostile'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- those who mean harm ----

def test_web_pages_are_not_answered(web):
    assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, Origin='http://evil.example')[0] == 403
    assert web.ask('GET', '/v1/profiles', Host='evil.example')[0] == 403
    for host in ('evil.localhost.example:80', '[::1]evil.example', '[::1].evil.example:80', '[::1]:80.evil.example', 'localhost:80:80', '[::1'):
        assert web.ask('GET', '/v1/profiles', Host=host)[0] == 403, host
    for host in ('localhost', f'127.0.0.1:{web.port}', '[::1]:80', 'LOCALHOST:1'):
        assert web.ask('GET', '/v1/profiles', Host=host)[0] == 200


@pytest.mark.parametrize('data', [
    b'\0' * 100 + b'\r\n\r\n', b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n',
    b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n',
    b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n',
    b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n',
    b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ' + b'a' * 100000 + b'\r\n\r\n',
    b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n',
    b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n' + b''.join(b'X-%d: 1\r\n' % n for n in range(5000)) + b'\r\n'], ids=range(10))
def test_what_is_no_http_harms_nobody(web, data):
    first = b''
    with socket.create_connection(('127.0.0.1', web.port), timeout=2) as connection:
        with contextlib.suppress(OSError):      # reset, or it waits for more until its idle time is over
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            first = connection.recv(65536)
    assert not first or re.match(rb'HTTP/1\.[01] [45]', first), first[:300]
    assert web.ask('GET', '/healthz')[0] == 200


@pytest.mark.parametrize('framing, status', [
    (b'Content-Length: 0\r\nContent-Length: 48\r\n\r\n', 400), (b'Content-Length: 5\r\nContent-Length: 0\r\n\r\n', 400),
    (b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400), (b'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n', 400),
    (b'Transfer-Encoding: gzip\r\n\r\n', 501), (b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 501),
    (b'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 501)], ids=range(7))
def test_where_a_body_ends_is_said_once(web, framing, status):
    """What stands behind it is never answered as a request of its own."""
    answer = web.raw(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n' + framing + b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert is_refused(answer, b'%d' % status), answer


RUN = b'{"language": "bash", "code": "true"}'
CHUNKED = b'Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n' % (len(RUN), RUN)


@pytest.mark.parametrize('data', [
    b'GET /healthz HTTP/1.1\r\n\r\n', b'GET /healthz HTTP/1.1\r\nX-Host: localhost\r\n\r\n',
    b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', b'GET /healthz HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n',
    b'GET /healthz\0x HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET /healthz?a=\0x HTTP/1.1\r\nHost: localhost\r\n\r\n',
    b'GET /healthz  HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET /v1/runs?a b HTTP/1.1\r\nHost: localhost\r\n\r\n',
    *(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n' + name + b': %d\r\n\r\n' % len(RUN) + RUN
      for name in (b'Content-Length ', b'Content-Length\t', b' Content-Length', b'Content-Length\x0b', b'Content Length', b'Content-Length\xa0', b'"X"')),
    b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n' + CHUNKED.replace(b':', b' :', 1),
    b'POST /v1/runs HTTP/1.0\r\nHost: localhost\r\n' + CHUNKED,
    *(b'GET /healthz HTTP/1.1\r\n' + lines + b'\r\n\r\n' for lines in (
        b'Host: localhost\r\nX: a\0b', b'X: a\0b\r\nHost: localhost', b'X: \0\r\nHost: localhost', b'Host: localhost\0', b'Host: localhost\0\0evil',
        b'Host: localhost\r\nX: a\r\n b', b'X: a\r\n\tb\r\nHost: localhost', b'Host: local\r\n host', b'Host: localhost\r\nX:\r\n a',
        b'Host: localhost\r\nX: a\rb', b'Host: localhost\r\nX: a\x01b', b'Host: localhost\r\nX: a\x7f', b'Host: localhost\r\nX: a\x1b[2J',
        b'Host: localhost\nX: a', b'X: a\nHost: localhost', b' X: a\r\nHost: localhost')),
    b'GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n', b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n', b'GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n',
    b'GET /healthz HTTP/1.1\nHost: localhost\n\n', b'GET /healthz HTTP/1.0\n\n', b'G"T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    b'GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
    b'GET http://localhost:1/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET http://localhost/healthz HTTP/1.0\r\n\r\n',
    b'GET http://u@localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET http://u@localhost/healthz HTTP/1.1\r\nHost: u@localhost\r\n\r\n'],
    ids=range(45))
def test_a_head_that_could_be_read_in_two_ways_is_refused(web, data):
    """One answer, and the connection ends: what stands behind it is never answered as a request of its own."""
    answer = web.raw(data + b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert is_refused(answer), answer


@pytest.mark.parametrize('version', [b'HTTP/1.2', b'HTTP/1.9', b'HTTP/2.0', b'HTTP/0.9'])
def test_other_versions_are_refused(web, version):
    answer = web.raw(b'GET /healthz ' + version + b'\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert answer.startswith(b'HTTP/1.1 505 ') and answer.count(b'HTTP/1.1 505 ') == 1 and b'HTTP/1.1 200 ' not in answer, answer


def chunks(*lines):
    return b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' + b''.join(lines)


BEHIND = b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.mark.parametrize('data', [
    chunks(b'%x\n' % len(RUN), RUN, b'\r\n0\r\n\r\n'), chunks(b'%x;a=b\n' % len(RUN), RUN, b'\r\n0\r\n\r\n'),
    chunks(b'2\r\n', RUN[:2], b'\n%x\r\n' % (len(RUN) - 2), RUN[2:], b'\r\n0\r\n\r\n'),
    chunks(b'4\r\n', RUN[:3], b'\r\n%x\r\n' % (len(RUN) - 3), RUN[3:], b'\r\n0\r\n\r\n'),      # the CR is the chunk's, so LF is alone
    *(chunks(line % len(RUN), RUN, b'\r\n0\r\n\r\n') for line in (
        b'+%x\r\n', b'-%x\r\n', b' %x\r\n', b'%x \r\n', b'0x%x\r\n', b'%xg\r\n', b'%x;\0\r\n', b'%x;\rb\r\n', b'%x\r\r\n', b'fffffffffffffffff%x\r\n',
        *([] if STRICT else [b'0' * 40 + b'%x\r\n'])))])
def test_a_chunk_whose_size_could_be_read_in_two_ways_is_refused(web, data):
    answer = web.raw(data + BEHIND)
    assert re.match(rb'HTTP/1\.1 4(00|13) ', answer) and answer.count(b'HTTP/1.1 ') == 1, answer


@pytest.mark.parametrize('end', [b'\r\n0\r\n\r\n', b'\r\n0\n\r\n', b'\r\n0\r\n\n', b'\r\n0\r\nX: y\n\r\n', b'\r\n0;a\n\r\n'], ids=range(5))
def test_nothing_behind_a_body_in_chunks_is_a_request(web, end):
    """Libmicrohttpd takes LF alone at the end of such a body, where a proxy may see something else."""
    answer = web.raw(chunks(b'%x\r\n' % len(RUN), RUN, end) + BEHIND)
    assert (answer.startswith(b'HTTP/1.1 200 ') and answer.count(b'HTTP/1.1 ') == 1 and b'Connection: close' in answer) or (STRICT and is_refused(answer)), answer


@pytest.mark.parametrize('sizes', [[1], [2], [3, 1, 7], [100]], ids=range(4))
def test_chunks_are_read_wherever_they_are_cut(web, sizes):
    parts = b''.join(b'%x%s\r\n%s\r\n' % (len(part), b';a="b"' * (at % 2), part) for at in range(0, len(RUN), 2) if (part := RUN[at:at + 2]))
    data = chunks(parts, b'0\r\n\r\n')
    with socket.create_connection(('127.0.0.1', web.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        at = 0
        while at < len(data):
            for size in sizes:
                connection.sendall(data[at:at + size])
                at += size
                time.sleep(.001)
        assert connection.recv(100).startswith(b'HTTP/1.1 200 ')


def test_heads_that_can_be_read_in_one_way_are_read(web):
    for data in (b'GET /healthz HTTP/1.0\r\n\r\n', b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
                 b'GET /healthz HTTP/1.1\r\nHost:\r\nX!#$%&\'*+-.^_`|~9: \r\nConnection: close\r\n\r\n',
                 b'GET /healthz HTTP/1.1\r\nHost: localhost  \r\nX:\t\ta\tb \t\r\nY: \xc3\xa4\xff\r\nCookie: a=b; c=d\r\nConnection: close\r\n\r\n',
                 *([] if STRICT else [b'\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n']),
                 b'GET http://localhost/healthz HTTP/1.1\r\nHost: LocalHost\r\nConnection: close\r\n\r\n',
                 b'GET HTTP://localhost:1/healthz HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n',
                 b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' + CHUNKED):
        assert web.raw(data).startswith(b'HTTP/1.1 200 '), data


@pytest.mark.parametrize('length', ['+%d', '%d,%d', '%d, %d', '-%d', '0x%x', '%d 1', '%dx', '', '%d\0', '\0%d', '%d\r\n 1'])
def test_a_length_that_is_no_number_ends_the_connection(web, length):
    value = (length % ((len(RUN),) * length.count('%'))).encode()
    answer = web.raw(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: ' + value + b'\r\n\r\n' + RUN + b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert answer.startswith(b'HTTP/1.1 400 ') and b'HTTP/1.1 200' not in answer, answer


@pytest.mark.parametrize('size', [200, 4000, 15000, 16300, 16384, 16400, 24000, 30000])
@pytest.mark.parametrize('step', [700, 100000])
def test_long_heads_are_read_whatever_way_they_come(web, size, step):
    """Libmicrohttpd moves its buffer on the way; the form of the head is looked at where it ended up."""
    head = b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
    while len(head) < size - 100:
        head += b'X-%d: ' % len(head) + b'v' * min(1000, size - 100 - len(head)) + b'\r\n'
    data = head + b'Content-Length: %d\r\n\r\n' % len(RUN) + RUN
    with socket.create_connection(('127.0.0.1', web.port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            connection.sendall(data[at:at + step])
            time.sleep(.002)
        assert connection.recv(100).startswith(b'HTTP/1.1 200 ')


def cpu_ticks(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as stat:
        return sum(map(int, stat.read().rsplit(')', 1)[1].split()[11:13]))


@pytest.mark.parametrize('path', ['/v1/runs', '/v1/runs/bulk'])
def test_a_chunk_extension_longer_than_the_buffer_is_refused_and_does_not_spin(web, path):
    """Also one that fills the buffer of 32 KiB to the last byte; one that fits is waited for."""
    head = f'POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'.encode()
    sizes = [*range(32500, 32780, 8), *range(32560, 32600), 40000, 400000]
    pid, connections = web.daemon.process.pid, [socket.create_connection(('127.0.0.1', web.port), timeout=10) for _ in sizes]
    for size, connection in zip(sizes, connections):
        connection.sendall(head + b'5;' + b'a' * size)
    if not STRICT:          # 1.0 refuses all extensions of a whole size line, and cuts or keeps such connections
        assert all(connection.recv(100).startswith(b'HTTP/1.1 400 ') for connection in connections[-2:])
    time.sleep(1)
    before = cpu_ticks(pid)
    time.sleep(1)
    assert cpu_ticks(pid) - before < 20
    for connection in connections:
        connection.close()
    small = web.raw(head + b'%x;' % len(RUN) + b'a' * 1000 + b'\r\n' + RUN + b'\r\n0;a=b\r\nX: y\r\n\r\n')
    assert small.startswith(b'HTTP/1.1 200 ') or (STRICT and is_refused(small)), small


def test_bodies_with_a_coding_are_refused(web):
    """Every route that takes a body, and none of them says that the body is not what it should be."""
    routes = [path for path, kinds in web.ask('GET', '/openapi.json')[2]['paths'].items() if 'requestBody' in kinds.get('post', {}) and '{' not in path]
    assert len(routes) > 10
    for path in routes:
        for coding in ('gzip', 'br', 'identity, gzip'):
            status, headers, _ = web.ask('POST', path, gzip.compress(RUN), Content_Encoding=coding, Content_Type='application/json')
            assert (status, headers['Accept-Encoding']) == (415, 'identity'), path
    for coding in ('identity', 'Identity'):
        assert web.ask('POST', '/v1/runs', RUN, Content_Encoding=coding)[0] == 200


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(web):
    answer = web.raw(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\nConnection: close\r\n\r\n')
    assert b'413' in answer.split(b'\r\n')[0] and b'too_large' in answer


def test_a_body_that_has_no_end_is_cut(web):
    piece = b'%x\r\n%s\r\n' % (1 << 20, b' ' * (1 << 20))
    sent = 0
    with socket.create_connection(('127.0.0.1', web.port), timeout=60) as connection:
        connection.sendall(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
        with pytest.raises(ConnectionError):
            for sent in range(400):
                connection.sendall(piece)
    assert 64 < sent < 200      # 64 MiB, as many again for an answer at its end, and what the sockets hold
    assert web.run('echo still')['stdout'] == 'still\n'


def test_heads_that_are_too_long_are_refused(web):
    for data, status in ((b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ' + b'a' * 40000 + b'\r\n\r\n', b'431'),
                         (b'GET /' + b'a' * 40000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n', b'414')):
        assert web.raw(data).split(b' ')[1] == status


def test_ten_thousand_idle_connections_harm_nobody(web):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 12000:
        pytest.skip(f'needs 12000 descriptors: there are {hard} at the most')
    pid, idle = web.daemon.process.pid, []
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        web.run('true')
        before = memory_of(pid)
        for number in range(10000):
            idle.append(socket.create_connection(('127.0.0.1', web.port)))
            if number % 2:
                idle[-1].sendall(b'GET /healthz HTTP/1.1\r\nHost: loc')      # half of them have begun
        until(lambda: re.search(r'^caisson_http_connections 1000\d$', web.ask('GET', '/metrics')[2].decode(), flags=re.M))
        assert web.run('echo still')['stdout'] == 'still\n'
        assert memory_of(pid) - before < 10000 * 16384
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: re.search(r'^caisson_http_connections \d$', web.ask('GET', '/metrics')[2].decode(), flags=re.M))


def test_connections_that_do_nothing_do_not_harm_others(web):
    idle = [socket.create_connection(('127.0.0.1', web.port)) for _ in range(300)]
    for number, connection in enumerate(idle):
        connection.sendall(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{'[:number % 60])
    assert web.run('echo still')['stdout'] == 'still\n'
    for connection in idle:
        connection.close()
    until(lambda: web.run('echo again')['stdout'] == 'again\n')


def test_a_stream_that_is_left_leaves_nothing(web):
    for _ in range(20):
        answer = web.stream('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep .1; echo x'}, Accept='text/event-stream')
        answer.readline()
        answer.close()
    until(lambda: not web.runs())
    assert web.run('echo fine')['stdout'] == 'fine\n'
