"""Where a worker fails in the middle of a request: what the client gets, and how often the request is sent."""

import http.client
import json
import secrets
import socket
import struct
import threading
import time

import pytest

from daemon import until
from fleet import FakeWorker, Gateway
from gateway import SECRET, id_of
from kube_stub import make_certificate

BODY = {'language': 'bash', 'code': ':'}


def answer_well(worker, request, connection):
    worker.admit(request)
    worker.send(connection, 200, {'worker': worker.port, 'body': request['body'].decode()})


def close_unseen(worker, request, connection):
    """As a worker that closes a connection before it reads the request."""
    return 'close'


def close_seen(worker, request, connection):
    worker.admit(request)
    return 'close'


def reset_unseen(worker, request, connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    return 'close'


def answer(status, *headers):
    def act(worker, request, connection):
        worker.send(connection, status, {'code': status, 'worker': worker.port}, *headers)
    return act


def raw(data, close=True):
    def act(worker, request, connection):
        worker.admit(request)
        connection.sendall(data)
        return 'close' if close else None
    return act


class Pair:
    """A gateway before two workers of which the first fails.  `wanted`: requests go on until the first has had one."""

    def __init__(self, folder, act, *options):
        self.bad, self.good = FakeWorker(act), FakeWorker(answer_well)
        self.gateway = Gateway(folder, [self.bad.url, self.good.url], *options).wait_ready(2)

    def until_bad(self, *words, **headers):
        """The answer to the first request that the failing worker got."""
        for _ in range(100):
            got = self.gateway.ask(*words, **headers)
            if self.bad.requests:
                return got
        raise AssertionError('the choice never fell on the worker')

    def sent(self):
        return len(self.bad.requests) + len(self.good.requests)

    def stop(self):
        assert self.gateway.stop() == 0
        self.bad.stop()
        self.good.stop()


@pytest.fixture
def pair(tmp_path):
    made = []

    def make(act, *options):
        made.append(Pair(tmp_path, act, *options))
        return made[0]
    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize('act', [close_unseen, reset_unseen, answer(429), answer(503, 'Retry-After: 1')])
def test_what_a_worker_did_not_accept_goes_to_the_next(pair, act):
    one = pair(act)
    status, headers, body = one.until_bad('POST', '/v1/runs', BODY)
    assert status == 200 and body['worker'] == one.good.port and json.loads(body['body']) == BODY, body
    assert headers['Caisson-Worker'] == f'127.0.0.1:{one.good.port}'


@pytest.mark.parametrize('act, words', [
    (close_seen, 'worker_lost'), (raw(b'garbage\r\n\r\n'), 'worker_lost'), (raw(b'HTTP/1.1 200 OK\r\nContent-Le'), 'worker_lost'),
    (raw(b'HTTP/1.1 200 OK\r\n' + b'X-A: ' + 40000 * b'a' + b'\r\n\r\n'), 'worker_lost'),
    (raw(b'HTTP/1.1 200 OK\r\n' + b''.join(b'X-%d: 1\r\n' % n for n in range(300)) + b'\r\n'), 'worker_lost'),
    (raw(20 * b'HTTP/1.1 100 Continue\r\n\r\n'), 'worker_lost'),
    (raw(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'), 'worker_lost'),
])
def test_what_a_worker_may_have_begun_is_not_sent_again(pair, act, words):
    one = pair(act)
    status, _, record = one.until_bad('POST', '/v1/runs', BODY)
    assert status == 502 and record['error']['code'] == words, record
    assert len(one.bad.requests) == 1 and not [request for request in one.good.requests
                                               if request['headers']['x-request-id'] == one.bad.requests[0]['headers']['x-request-id']]


def test_a_half_answer_is_cut(pair):
    one = pair(raw(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"half'))
    with pytest.raises(Exception, match='IncompleteRead|closed|end of data|Remote end'):
        one.until_bad('POST', '/v1/runs', BODY)
        one.until_bad('POST', '/v1/runs', BODY)


def half_stream(kind, frame, restarts):
    head = f'HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n'.encode()

    def act(worker, request, connection):
        worker.admit(request)
        connection.sendall(head + b'%x\r\n' % len(frame) + frame + b'\r\n')
        worker.boot = secrets.token_hex(16) if restarts else worker.boot
        return 'close'
    return act


FRAMES = [('text/event-stream', b'id: 1\nevent: start\ndata: {"id":"run_x"}\n\n'), ('application/x-ndjson', b'{"a": 1}\n')]


@pytest.mark.parametrize('kind, frame', FRAMES)
def test_a_stream_of_a_restarted_worker_has_a_last_event(pair, kind, frame):
    one = pair(half_stream(kind, frame, restarts=True))
    status, _, text = one.until_bad('POST', '/v1/runs', BODY)
    last = text.strip().splitlines()[-1].removeprefix(b'data: ')
    assert status == 200 and text.startswith(frame) and json.loads(last)['error'] == 'worker_lost', text


@pytest.mark.parametrize('kind, frame', FRAMES)
def test_a_stream_that_a_living_worker_cuts_is_cut(pair, kind, frame):
    one = pair(half_stream(kind, frame, restarts=False))
    with pytest.raises(http.client.IncompleteRead) as cut:
        for _ in range(100):
            one.gateway.ask('POST', '/v1/runs', BODY)
    assert cut.value.partial == frame


def test_all_refuse_and_the_refusal_is_passed_on(tmp_path):
    workers = [FakeWorker(answer(429, 'Retry-After: 7')) for _ in range(3)]
    gateway = Gateway(tmp_path, [worker.url for worker in workers]).wait_ready(3)
    status, headers, body = gateway.ask('POST', '/v1/runs', BODY)
    assert status == 429 and headers['Retry-After'] == '7' and body['code'] == 429
    assert [len(worker.requests) for worker in workers] == [1, 1, 1]
    assert gateway.stop() == 0


def test_tries_are_bounded(tmp_path):
    workers = [FakeWorker(close_unseen) for _ in range(6)]
    gateway = Gateway(tmp_path, [worker.url for worker in workers], '--set', 'gateway.tries=2', '--set', 'gateway.wait=0').wait_ready(6)
    status, _, problem = gateway.ask('POST', '/v1/runs', BODY)
    assert status == 503 and problem['retryable'] and sum(len(worker.requests) for worker in workers) == 2
    assert gateway.stop() == 0


def test_a_request_by_id_is_refused_by_its_worker_alone(tmp_path):
    """429 of a sandbox is its answer, and no other worker is asked."""
    workers = [FakeWorker(answer(429)) for _ in range(2)]
    gateway = Gateway(tmp_path, [worker.url for worker in workers]).wait_ready(2)
    for worker in workers:
        assert gateway.ask('GET', '/v1/runs/' + id_of(SECRET, worker.tag))[2]['worker'] == worker.port
    assert [len(worker.requests) for worker in workers] == [1, 1]
    assert gateway.ask('GET', '/v1/runs/' + id_of(SECRET, '00000000'))[2]['error']['code'] == 'worker_lost'
    assert gateway.ask('GET', '/v1/sandboxes/' + id_of(SECRET, '00000000', 'sbx_'))[0] == 410
    assert gateway.stop() == 0


def test_a_waiting_connection_that_the_worker_closes(tmp_path):
    """The worker ends kept connections at once: each request is answered all the same, and sent to the handler once."""
    def act(worker, request, connection):
        answer_well(worker, request, connection)
        threading.Timer(0.001, connection.close).start()
    worker = FakeWorker(act)
    gateway = Gateway(tmp_path, [worker.url]).wait_ready(1)
    for n in range(200):
        status, _, body = gateway.ask('POST', '/v1/runs', BODY)
        assert status == 200, (n, body)
    assert len(worker.requests) == 200 and gateway.stop() == 0


def test_a_slow_client_holds_the_worker_and_not_the_gateway(tmp_path):
    """64 MiB for a client that does not read: the gateway keeps a bounded part of it."""
    def act(worker, request, connection):
        worker.admit(request)
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % (64 << 20))
        for _ in range(64):
            connection.sendall(bytes(1 << 20))
    worker = FakeWorker(act)
    gateway = Gateway(tmp_path, [worker.url]).wait_ready(1)
    connection = gateway.connect()
    connection.request('POST', '/v1/runs', json.dumps(BODY))
    answer_ = connection.getresponse()
    time.sleep(1)
    pages = int(open(f'/proc/{gateway.process.pid}/statm', encoding='ascii').read().split()[1])
    assert pages * 4096 < 48 << 20
    assert len(answer_.read()) == 64 << 20 and gateway.stop() == 0


def test_headers_of_gateways_are_not_for_clients_to_set(tmp_path):
    worker = FakeWorker(answer_well)
    gateway = Gateway(tmp_path, [worker.url]).wait_ready(1)
    gateway.ask('POST', '/v1/runs', BODY, Caisson_Gateway='v1 0 - forged', Caisson_Attempt=32 * 'a', traceparent='x', Connection='X-Evil', X_Evil='1')
    headers = worker.requests[0]['headers']
    assert 'forged' not in headers['caisson-gateway'] and headers['caisson-attempt'] != 32 * 'a' and 'x-evil' not in headers
    assert gateway.stop() == 0


def test_requests_wait_for_a_worker(tmp_path):
    gateway = Gateway(tmp_path, ['http://127.0.0.1:1'], '--set', 'gateway.waiting_max=2', '--set', 'gateway.wait=2s')
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(gateway.ask('POST', '/v1/runs', BODY)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) >= 2)         # those beyond waiting_max, at once
    assert gateway.ask('GET', '/metrics')[2].decode().split('\ncaisson_gateway_waiting ')[1].split('\n')[0] == '2'
    for thread in threads:
        thread.join()
    assert answers == [503] * 4 and gateway.stop() == 0


def test_a_connection_that_outlives_its_worker_is_given_up(tmp_path):
    """As after the loss of a host: another process answers at the address, and nobody closes the old connections."""
    over = threading.Event()

    def act(worker, request, _):
        worker.admit(request)
        worker.boot = worker.boot[::-1]
        over.wait(60)
    worker = FakeWorker(act)
    gateway = Gateway(tmp_path, [worker.url]).wait_ready(1)
    status, _, record = gateway.ask('POST', '/v1/runs', BODY, timeout=30)
    assert status == 502 and record['error']['code'] == 'worker_lost' and 'Restarted' in record['error']['message']
    over.set()
    assert gateway.stop() == 0
    worker.stop()


def test_a_name_waits_for_its_worker(tmp_path):
    """A worker that does not answer may have it, so no other worker gets it meanwhile."""
    workers = [FakeWorker(answer_well) for _ in range(2)]
    gateway = Gateway(tmp_path, [worker.url for worker in workers], '--set', 'gateway.wait=300ms').wait_ready(2)
    homes = {}
    for i in range(20):
        homes[f'key{i}'] = gateway.ask('POST', '/v1/runs', BODY, Idempotency_Key=f'key{i}')[2]['worker']
    assert set(homes.values()) == {worker.port for worker in workers}
    gone, other = workers
    gone.silence()
    until(lambda: gateway.workers()[f'127.0.0.1:{gone.port}']['state'] == 'down')
    for key, home in homes.items():
        status, _, answer_ = gateway.ask('POST', '/v1/runs', BODY, Idempotency_Key=key)
        assert (status, answer_['worker']) == (200, home) if home == other.port else status == 503 and str(gone.port) in answer_['detail'], answer_
    assert gateway.stop() == 0
    other.stop()


@pytest.mark.parametrize('kind, lines', [
    ('application/x-ndjson', ['{"type":"start","id":"run_1"}\n', '{"type":"end","rec', 'ord":null}\n']),
    ('text/event-stream', ['event: start\ndata: {"type":"start","id":"run_1"}\n\n', 'event: end\ndata: {"ty', 'pe":"end","record":null}\n'])])
@pytest.mark.parametrize('whole', [True, False])
def test_a_run_has_one_end_though_its_worker_is_lost_after_it(tmp_path, kind, lines, whole):
    def act(worker, request, connection):
        worker.admit(request)
        connection.sendall(f'HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n'.encode())
        for line in lines if whole else lines[:1]:
            connection.sendall(f'{len(line):x}\r\n{line}\r\n'.encode())
            time.sleep(0.05)
        worker.boot = secrets.token_hex(16)
        return 'close'
    worker = FakeWorker(act)
    gateway = Gateway(tmp_path, [worker.url]).wait_ready(1)
    text = gateway.ask('POST', '/v1/runs', BODY, Accept=kind)[2].decode()
    assert ('"type":"end"' in text, '"type":"error"' in text) == (whole, not whole), text
    assert kind != 'text/event-stream' or text.endswith('\n\n')
    assert gateway.stop() == 0
    worker.stop()


def test_a_worker_with_tls(tmp_path):
    """The certificate has to be signed by gateway.tls_ca, for the address of the worker."""
    for name in 'own', 'other':
        (tmp_path / name).mkdir()
    authority, context = make_certificate(tmp_path / 'own')
    stranger, _ = make_certificate(tmp_path / 'other')
    worker = FakeWorker(answer_well, tls=context)
    gateway = Gateway(tmp_path, [worker.url], '--set', f'gateway.tls_ca={authority}').wait_ready(1)
    body = {**BODY, 'code': 'x' * 1_000_000}
    for _ in range(3):
        assert json.loads(gateway.ask('POST', '/v1/runs', body)[2]['body']) == body
    assert gateway.stop() == 0
    gateway = Gateway(tmp_path, [worker.url], '--set', f'gateway.tls_ca={stranger}', '--set', 'gateway.wait=200ms', name='second')
    down = until(lambda: [one for one in gateway.workers().values() if one['state'] == 'down'])[0]
    assert 'certificate' in down['why'] and gateway.ask('POST', '/v1/runs', body)[0] == 503
    assert len(worker.requests) == 3 and gateway.stop() == 0
    plain = FakeWorker(answer_well)
    gateway = Gateway(tmp_path, [plain.url.replace('http:', 'https:')], '--set', f'gateway.tls_ca={authority}', '--set', 'gateway.wait=200ms',
                      name='third')
    until(lambda: [one for one in gateway.workers().values() if one['state'] == 'down'])
    assert gateway.stop() == 0


def test_a_name_of_another_host_is_not_the_worker(tmp_path):
    (tmp_path / 'own').mkdir()
    authority, context = make_certificate(tmp_path / 'own')
    worker = FakeWorker(answer_well, tls=context)
    gateway = Gateway(tmp_path, [f'https://127.0.0.2:{worker.port}'], '--set', f'gateway.tls_ca={authority}')
    down = until(lambda: [one for one in gateway.workers().values() if one['state'] == 'down'])[0]
    assert down['why'] and not worker.requests and gateway.stop() == 0
