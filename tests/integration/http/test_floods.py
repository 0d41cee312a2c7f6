"""The HTTP interface and the daemon's socket while one client opens all connections that it can, or sends as slowly as it can.

The daemons here may have few files, so that tens of connections are as many as thousands elsewhere.
"""

import concurrent.futures
import contextlib
import json
import select
import signal
import socket
import time

import pytest

from daemon import ERROR, Client, frame, until
from web import Web

FILES = 256                                # of a daemon here, 65 of which are for connections of HTTP and 31 for those of each Unix socket
FLOOD = 150
HALF = b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: '
WHOLE = b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('floods'), '--set', 'engine.http_head_ms=1000', '--set', 'engine.running_max=1',
              command=['prlimit', f'--nofile={FILES}'])
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='patient', scope='module')
def running_with_time(tmp_path_factory):
    """A daemon that gives a head as long as these tests take, so that nothing but a flood closes a connection."""
    web = Web(tmp_path_factory.mktemp('patient'), '--set', 'engine.http_head_ms=600000', command=['prlimit', f'--nofile={FILES}'])
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@contextlib.contextmanager
def flood(address, data, answered=False):
    """Connections that send this and then nothing; with `answered`, each after one whole request."""
    family, connections = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, []
    try:
        for _ in range(FLOOD):
            connection = socket.socket(family)
            connections.append(connection)
            connection.settimeout(20)
            connection.connect(address)
            with contextlib.suppress(OSError):     # some are closed meanwhile for others
                if answered:
                    connection.sendall(WHOLE)
                    connection.recv(4096)
                connection.sendall(data)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def metric(web, name):
    return next(float(line.split()[-1]) for line in web.ask('GET', '/metrics')[2].decode().splitlines() if line.startswith(name))


def asks(address):
    """Whether a new client is answered at once."""
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as connection:
        connection.settimeout(20)
        connection.connect(address)
        connection.sendall(WHOLE)
        return connection.recv(100).startswith(b'HTTP/1.1 200 ')


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(65536) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True


# ---- more connections than there may be ----

@pytest.mark.parametrize('data, answered', [(HALF, False), (b'', False), (HALF, True), (b'', True)],
                         ids=['half heads', 'nothing', 'half heads behind a request', 'idle behind a request'])
def test_a_flood_of_connections_locks_nobody_out(patient, data, answered):
    address = ('127.0.0.1', patient.port)
    before = metric(patient, 'caisson_http_closed_total{reason="full"}')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        busy = pool.submit(patient.run, 'sleep 3; echo done')      # its connection is not closed for others
        until(patient.runs)
        with flood(address, data, answered) as connections:
            assert all(asks(address) for _ in range(10))
            assert metric(patient, 'caisson_http_closed_total{reason="full"}') > before
            assert not is_closed(connections[-1])                  # the oldest go, and the newest stays
            assert patient.run('echo still')['stdout'] == 'still\n'
        assert busy.result(60)['stdout'] == 'done\n'


def test_a_flood_locks_nobody_out_of_the_sockets_for_users(patient):
    """Neither of HTTP nor of frames; and a flood of one is none of the other."""
    frames, http = str(patient.daemon.path), f'{patient.daemon.path}.http'
    with flood(http, HALF):
        assert all(asks(http) for _ in range(10)) and asks(('127.0.0.1', patient.port))
        with flood(frames, frame(1, 1, b'{"lang', length=1000)):
            assert asks(http)
            for _ in range(10):
                with Client(frames, 20) as client:
                    client.run(1, 'echo frames')
                    assert client.results(1)[1][1] == b'frames\n'


def test_a_tenant_has_at_most_half_of_the_connections_for_requests_in_progress(patient):
    """The others are answered that there are too many, with the limit and the use of it; and a client without a tenant is served."""
    body = json.dumps({'language': 'bash', 'code': 'sleep 100'}).encode()
    request = b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s' % (len(body), body)
    connections = []
    try:
        for _ in range(60):
            connections.append(socket.create_connection(('127.0.0.1', patient.port), timeout=20))
            connections[-1].sendall(request)
        refused = until(lambda: select.select(connections, [], [], 1)[0])
        answer = refused[0].recv(65536)
        assert answer.startswith(b'HTTP/1.1 429 '), answer
        problem = json.loads(answer.split(b'\r\n\r\n', 1)[1])
        assert problem['quota'] == 'requests' and problem['code'] == 'capacity' and 'tenant local' in problem['detail'], problem
        assert problem['current'] >= problem['limit'] > 20 and b'\r\nRetry-After: ' in answer
        assert asks(('127.0.0.1', patient.port))
    finally:
        for connection in connections:
            connection.close()
    until(lambda: not patient.runs())


# ---- slow ones ----

def drip(web, begin, piece, seconds=20):
    """What is answered while a byte comes every tenth of a second, and how long it took."""
    started = time.monotonic()
    with socket.create_connection(('127.0.0.1', web.port)) as connection:
        connection.sendall(begin)
        while time.monotonic() - started < seconds:
            if select.select([connection], [], [], .1)[0]:
                try:
                    return connection.recv(65536), time.monotonic() - started
                except ConnectionError:
                    return b'', time.monotonic() - started
            with contextlib.suppress(ConnectionError):
                connection.sendall(piece)
    return None, seconds


@pytest.mark.parametrize('begin, piece', [
    (HALF, b'x'), (b'GET /hea', b'l'), (b'\r\n', b'\r\n'), (b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n', b'x'),
    (b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n', b'1\r\nx\r\n'),
    (b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;', b'x'),
    (b'POST /v1/runs/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n', b'x')],
    ids=['head', 'request line', 'empty lines', 'body', 'chunks', 'extension', 'lines'])
def test_who_sends_too_slowly_is_answered_and_cut(web, begin, piece):
    answer, took = drip(web, begin, piece)
    assert answer is not None and took < 15, (answer, took)
    assert answer.startswith(b'HTTP/1.1 408 ') and b'request_timeout' in answer, answer


@pytest.mark.parametrize('begin', [frame(1, 1)[:5], frame(1, 1, length=100000), frame(1, 1, length=100000) + b'{' * 500], ids=['header', 'payload', 'part'])
def test_a_frame_that_comes_too_slowly_ends_its_connection(web, begin):
    started = time.monotonic()
    with Client(web.daemon.path, 30) as client:
        client.socket.sendall(begin)
        while not select.select([client.socket], [], [], .1)[0]:
            assert time.monotonic() - started < 15
            if len(begin) > 12:
                client.socket.sendall(b'x')
        kind, number, payload = client.get()
        assert (kind, number) == (ERROR, 0) and json.loads(payload)['text'].endswith('more slowly than 1024 bytes a second'), payload
        with contextlib.suppress(ConnectionError):
            assert client.get() is None


def test_frames_and_pauses_between_them_are_not_slow(web):
    request = json.dumps({'language': 'bash', 'code': 'echo on', 'stdin': 'x' * 9000}).encode()
    whole = frame(1, 1, request)
    with Client(web.daemon.path, 60) as client:
        for _ in range(2):
            time.sleep(1.5)
            for at in range(0, len(whole), 3000):
                client.socket.sendall(whole[at:at + 3000])
                time.sleep(0.7)
            assert client.results(1)[1][0]['stdout'] == 'on\n'


def test_a_head_after_a_request_has_the_idle_time_too(web):
    with socket.create_connection(('127.0.0.1', web.port), timeout=20) as connection:
        for _ in range(3):
            connection.sendall(WHOLE)
            assert connection.recv(65536).startswith(b'HTTP/1.1 200 ')
            time.sleep(1.5)
        connection.sendall(WHOLE[:20])
        time.sleep(1.5)
        connection.sendall(WHOLE[20:])
        assert connection.recv(65536).startswith(b'HTTP/1.1 200 ')


def test_a_body_that_the_daemon_itself_does_not_read_is_not_slow(web):
    """Lines are read only while few of them go on (here one at a time), and their sender is not to blame."""
    lines = b''.join(b'%s\n' % json.dumps({'id': number, 'language': 'bash', 'code': 'sleep .02'}).encode() for number in range(320))
    answer = web.stream_raw('POST', '/v1/runs/bulk', lines, Content_Type='application/x-ndjson')
    records = [json.loads(line) for line in answer.read().splitlines()]
    assert len(records) == 320 and all(one['record']['status'] == 'completed' for one in records)


def test_an_answer_that_is_awaited_for_long_is_not_cut(web):
    assert web.run('sleep 4; echo late')['stdout'] == 'late\n'
