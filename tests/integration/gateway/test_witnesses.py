"""Idempotency-Keys whose worker is gone: other workers have noted where the key was sent.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_witnesses.py
"""

import struct
import threading
import time

import pytest

from daemon import until
from fleet import FakeWorker, Gateway
from gateway import attempt
from killed_pods import PodFleet

BODY = {'language': 'bash', 'code': ':'}
QUICK = ('--set', 'gateway.heartbeat=100ms', '--set', 'gateway.down_after=1s')


def answer_well(worker, request, connection):
    worker.admit(request)
    worker.keys.add(request['headers'].get('idempotency-key'))
    worker.send(connection, 200, {'worker': worker.port})


def refuse(status, *headers):
    def act(worker, request, connection):
        worker.send(connection, status, {'code': status}, *headers)
    return act


class Scripted:
    """A gateway before scripted workers."""

    def __init__(self, folder, acts, *options):
        self.workers = [FakeWorker(act) for act in acts]
        self.folder, self.options = folder, options
        self.gateways = [self.another('gateway')]

    def another(self, name, workers=None):
        gateway = Gateway(self.folder, [worker.url for worker in workers or self.workers], *QUICK, *self.options, name=name)
        return gateway.wait_ready(len(workers or self.workers))

    def post(self, key='k', gateway=None, **more):
        return (gateway or self.gateways[0]).ask('POST', '/v1/runs', {**BODY, **more}, Idempotency_Key=key)

    def get(self, key='k', gateway=None):
        return (gateway or self.gateways[0]).ask('GET', f'/v1/idempotency-keys/{key}')

    def requests(self):
        return [request for worker in self.workers for request in worker.requests]

    def target(self):
        """The worker that had the only request."""
        found = [worker for worker in self.workers if worker.requests]
        assert len(found) == 1, [len(worker.requests) for worker in self.workers]
        return found[0]

    def witnesses(self):
        return [worker for worker in self.workers if worker.notes]

    def note(self, tag, key='k', age_ms=5000, **more):
        """A note at the first worker, made by a gateway that is gone."""
        made = {'tag': tag, 'attempt': attempt(), 'pod': '', 'uid': '', 'hash': '0', 'made': time.monotonic() - age_ms / 1000, **more}
        self.workers[0].notes[key] = made
        return made['attempt']

    def stop(self):
        for gateway in self.gateways:
            assert gateway.stop() == 0
        for worker in self.workers:
            worker.stop()


@pytest.fixture(name='scripted')
def a_maker(tmp_path):
    made = []

    def make(acts, *options):
        made.append(Scripted(tmp_path, acts, *options))
        return made[0]
    yield make
    for one in made:
        one.stop()


def hashed(data):
    """hash_text() of src/base/hex.c."""
    number = 14695981039346656037
    for byte in data:
        number = (number ^ byte) * 1099511628211 % (1 << 64)
    return number ^ number >> 29


def rank(worker, name):
    return hashed(struct.pack('<QQ', hashed(worker.encode()), hashed(name.encode())))


def is_home(fleet, key):
    """Whether the second of two workers is the home of the key: rendezvous hashing as in src/gateway/fleet/choose.c."""
    home, worker = f'/idempotency_key/{key}', [f'127.0.0.1:{worker.port}' for worker in fleet.workers]
    return rank(worker[1], home) > rank(worker[0], home)


# ---- notes ----

@pytest.mark.parametrize('n, witnesses', [(1, 0), (2, 1), (3, 2), (5, 2)])
def test_two_other_workers_note_a_new_key_before_it_is_sent(scripted, n, witnesses):
    noted = []

    def act(worker, request, connection):
        noted.append([(note['tag'], note['attempt']) for one in fleet.workers for note in one.notes.values()])
        answer_well(worker, request, connection)
    fleet = scripted([act] * n)
    assert fleet.post()[0] == 200
    target = fleet.target()
    sent = target.requests[0]['headers']['caisson-attempt']
    assert noted == [witnesses * [(target.tag, sent)]] and not target.notes
    assert len(fleet.witnesses()) == witnesses


def test_another_worker_that_starts_is_waited_for(scripted):
    fleet = scripted([answer_well] * 2)
    fleet.workers[0].silence()
    until(lambda: fleet.gateways[0].ask('GET', '/healthz')[2]['workers_ready'] == 1)
    key = next(key for key in 'abcdefghijklmnop' if is_home(fleet, key))
    began = time.monotonic()
    threading.Timer(0.7, setattr, [fleet.workers[0], 'silent', False]).start()
    assert fleet.post(key)[0] == 200 and 0.5 < time.monotonic() - began < 2.5 and key in fleet.workers[0].notes


def test_a_worker_that_does_not_come_is_waited_for_3_seconds(scripted):
    fleet = scripted([answer_well] * 2)
    fleet.workers[0].silence()
    until(lambda: fleet.gateways[0].ask('GET', '/healthz')[2]['workers_ready'] == 1)
    key = next(key for key in 'abcdefghijklmnop' if is_home(fleet, key))
    began = time.monotonic()
    assert fleet.post(key)[0] == 200 and 2.5 < time.monotonic() - began < 8 and not fleet.witnesses()


def test_requests_without_a_key_and_repeated_ones_are_not_noted(scripted):
    fleet = scripted([answer_well] * 3)
    assert fleet.gateways[0].ask('POST', '/v1/runs', BODY)[0] == 200
    assert fleet.gateways[0].ask('POST', '/v1/volumes', {'name': 'v'}, Idempotency_Key='v')[0] == 200
    assert not fleet.witnesses()
    assert fleet.post()[0] == 200 and fleet.post()[0] == 200 and fleet.get()[0] == 200
    assert sum(len(worker.noted) for worker in fleet.workers) == 2


@pytest.mark.parametrize('status', [400, 403, 413, 429, 503])
def test_a_note_of_a_refused_request_is_taken_back(scripted, status):
    fleet = scripted([refuse(status)] * 3)
    assert fleet.post()[0] == status
    until(lambda: not fleet.witnesses())


def test_a_note_of_a_worker_that_is_not_reached_is_taken_back(scripted):
    def close(worker, request, connection):
        return 'close'
    fleet = scripted([close] * 3, '--set', 'gateway.wait=1s')
    status, _, problem = fleet.post()
    assert status == 503, problem
    assert any(worker.noted for worker in fleet.workers)
    until(lambda: not fleet.witnesses())


def test_without_an_answer_of_a_witness_the_other_one_is_enough(scripted):
    fleet = scripted([answer_well] * 3)
    for worker in fleet.workers:
        take = worker.witness
        worker.witness = lambda given, take=take: time.sleep(3) or take(given)
    fleet.workers[0].witness = fleet.workers[1].witness = lambda given: 200
    for key in 'abcdef':
        began = time.monotonic()
        assert fleet.post(key)[0] == 200
        assert time.monotonic() - began < 2.5


def test_a_witness_of_an_older_version_is_gone_without(scripted):
    fleet = scripted([answer_well] * 2)
    for worker in fleet.workers:
        worker.witness = lambda given: 404
    assert fleet.post()[0] == 200


# ---- what the notes mean ----

def test_a_request_that_did_not_arrive_is_barred_and_sent_anew(scripted):
    fleet = scripted([answer_well] * 3)
    old = fleet.note(fleet.workers[1].tag)
    status, _, answer = fleet.post()
    assert status == 200, answer
    assert old in fleet.workers[1].barred and len(fleet.requests()) == 1
    target = fleet.target()
    assert {note['tag'] for worker in fleet.workers for note in worker.notes.values()} == {target.tag}


def test_a_question_bars_the_request_too(scripted):
    def act(worker, request, connection):
        worker.send(connection, 404, {})
    fleet = scripted([act] * 2)
    old = fleet.note(fleet.workers[1].tag)
    assert fleet.get()[0] == 404 and old in fleet.workers[1].barred


def test_a_young_note_is_waited_for(scripted):
    """The request may be on its way still: it is not barred."""
    fleet = scripted([answer_well] * 2)
    old = fleet.note(fleet.workers[1].tag, age_ms=100)
    fleet.workers[1].admitted.add(old)
    threading.Timer(0.5, fleet.workers[1].keys.add, ['k']).start()
    status, _, answer = fleet.post()
    assert (status, answer['worker']) == (200, fleet.workers[1].port) and not fleet.workers[1].barred and not fleet.workers[0].requests


def test_a_request_that_goes_on_is_waited_for(scripted):
    fleet = scripted([answer_well] * 2, '--set', 'gateway.wait=1s')
    fleet.workers[1].admitted.add(fleet.note(fleet.workers[1].tag))
    fleet.workers[1].over = False
    status, headers, problem = fleet.post()
    assert status == 503 and headers['Retry-After'] and 'carries out' in problem['detail'] and not fleet.requests()


def test_a_worker_that_is_down_is_waited_for(scripted):
    fleet = scripted([answer_well] * 3, '--set', 'gateway.wait=1s')
    fleet.note(fleet.workers[1].tag)
    fleet.workers[1].silence()
    until(lambda: fleet.gateways[0].ask('GET', '/healthz')[2]['workers_ready'] == 2)
    status, _, problem = fleet.post()
    assert status == 503 and 'does not answer' in problem['detail'] and not fleet.requests()


def test_the_worker_that_is_gone_may_have_run_it(scripted):
    fleet = scripted([answer_well] * 3)
    assert fleet.post()[0] == 200
    target, others = fleet.target(), [worker for worker in fleet.workers if not worker.requests]
    second = fleet.another('second', others)
    fleet.gateways.append(second)
    for status, _, record in (fleet.get(gateway=second), fleet.post(gateway=second)):
        assert (status, record['status'], record['error']['code']) == (200, 'engine_error', 'worker_lost'), record
    assert fleet.get(gateway=second)[2]['id'] == record['id'] and record['id'][4:12] == target.tag
    assert len(fleet.requests()) == 1 and fleet.get('other', second)[0] != 404
    status, _, record = fleet.post(gateway=second, retry='safe')
    assert status == 200 and record['worker'] in [worker.port for worker in others], record


def test_another_request_with_the_key_of_a_lost_run_is_refused(scripted):
    fleet = scripted([answer_well] * 2)
    fleet.note('00000000')
    status, _, problem = fleet.post(code='echo other')
    assert status == 422 and 'another request' in problem['detail'] and not fleet.requests()


def test_of_two_gateways_with_a_new_key_one_sends_it(scripted):
    def act(worker, request, connection):
        time.sleep(0.1)
        answer_well(worker, request, connection)
    fleet = scripted([act] * 3)
    fleet.gateways.append(fleet.another('second'))
    began = time.monotonic()
    for i in range(10):
        threads = [threading.Thread(target=fleet.post, args=[f'k{i}', gateway]) for gateway in fleet.gateways]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        requests = [request for request in fleet.requests() if request['headers']['idempotency-key'] == f'k{i}']
        assert len([worker for worker in fleet.workers if any(request in requests for request in worker.requests)]) == 1
    assert time.monotonic() - began < 20


def test_a_barred_attempt_is_sent_anew(scripted):
    answers = [(409, 'Caisson-Attempt: barred')]

    def act(worker, request, connection):
        if answers:
            worker.send(connection, answers[0][0], {}, answers.pop()[1])
        else:
            answer_well(worker, request, connection)
    fleet = scripted([act] * 2)
    assert fleet.post()[0] == 200
    assert len({request['headers']['caisson-attempt'] for request in fleet.requests()}) == 2


# ---- pods ----

@pytest.fixture(name='pods')
def some_pods(tmp_path):
    settings = ('engine.pool_min=1', 'engine.pool_max=2')
    with PodFleet(tmp_path, 2, worker_settings=settings, gateway_settings=('gateway.heartbeat=300ms', 'gateway.down_after=1500ms')) as fleet:
        yield fleet


def rows_of(fleet, task):
    return [row for worker in fleet.workers for row in worker.rows() if row.get('task_id') == task]


def test_the_key_of_a_deleted_pod_is_lost_and_runs_once(pods):
    body, key = {'language': 'bash', 'code': 'echo 1', 'task_id': 't1'}, {'Idempotency-Key': 'k1'}
    status, headers, record = pods.gateways[0].ask('POST', '/v1/runs', body, key)
    assert status == 200 and record['stdout'] == '1\n', record
    pods.stub.delete_pod(headers['Caisson-Worker'], grace=0)
    pods.gateways[0].kill()
    until(lambda: pods.gateways[1].ask('GET', '/v1/idempotency-keys/k1')[0] == 200, 30)
    for method, path, given in (('GET', '/v1/idempotency-keys/k1', None), ('POST', '/v1/runs', body)):
        status, _, record = pods.gateways[1].ask(method, path, given, key)
        assert (status, record['error']['code']) == (200, 'worker_lost'), record
    assert len(rows_of(pods, 't1')) == 1
    status, _, record = pods.gateways[1].ask('POST', '/v1/runs', {**body, 'retry': 'safe'}, key)
    assert status == 200 and record['stdout'] == '1\n' and len(rows_of(pods, 't1')) == 2, record


def test_a_key_outlives_all_pods_that_had_notes_of_it(pods):
    """The gateway that made the notes answers from its own copy, and gives it to new pods, so that the other gateways know."""
    body, key = {'language': 'bash', 'code': 'echo 1', 'task_id': 't3'}, {'Idempotency-Key': 'k3'}
    first, second = pods.gateways[:2]
    status, _, record = first.ask('POST', '/v1/runs', body, key)
    assert status == 200 and record['stdout'] == '1\n', record
    for pod in pods.stub.pods():
        pods.stub.delete_pod(pod['metadata']['name'], grace=0)
    for ask in (lambda: first.ask('POST', '/v1/runs', body, key), lambda: second.ask('GET', '/v1/idempotency-keys/k3')):
        lost = until(lambda ask=ask: (lambda answer: answer[0] == 200 and answer[2]['error'])(ask()), 30)
        assert lost['code'] == 'worker_lost' and len(rows_of(pods, 't3')) == 1, lost


def test_a_gateway_that_starts_later_asks_the_api_server(pods):
    """It has never seen the pod."""
    status, headers, _ = pods.gateways[0].ask('POST', '/v1/runs', BODY, {'Idempotency-Key': 'k2'})
    assert status == 200
    for gateway in pods.gateways:
        gateway.kill()
    pods.stub.delete_pod(headers['Caisson-Worker'], grace=0)
    pods.gateways[1].start().ready().has_ready(1)
    status, _, record = pods.gateways[1].ask('POST', '/v1/runs', BODY, {'Idempotency-Key': 'k2'})
    assert (status, record['error']['code']) == (200, 'worker_lost'), record


def test_notes_outlive_the_process_of_the_witness(pods):
    status, headers, _ = pods.gateways[0].ask('POST', '/v1/runs', BODY, {'Idempotency-Key': 'k3'})
    assert status == 200
    for pod in pods.stub.pods():
        if pod['metadata']['name'] != headers['Caisson-Worker']:
            pods.kubelet.kill(pod['metadata']['name'], 'Error')
    pods.stub.delete_pod(headers['Caisson-Worker'], grace=0)
    until(lambda: pods.gateways[1].ask('GET', '/readyz')[0] == 200, 30)
    status, _, record = pods.gateways[1].ask('POST', '/v1/runs', BODY, {'Idempotency-Key': 'k3'})
    assert (status, record['error']['code']) == (200, 'worker_lost'), record


# ---- notes that are given on ----

def test_a_note_at_one_worker_is_given_to_another(scripted):
    """The worker of the note is down and may come back, so the key is not free; its one witness may be the next to go."""
    fleet = scripted([answer_well] * 4, '--set', 'gateway.wait=1s')
    fleet.workers[3].silence()
    until(lambda: fleet.gateways[0].ask('GET', '/healthz')[2]['workers_ready'] == 3)
    made = fleet.note(fleet.workers[3].tag)
    assert fleet.get()[0] == 503
    until(lambda: len(fleet.witnesses()) == 2)
    assert {note['attempt'] for worker in fleet.witnesses() for note in worker.notes.values()} == {made}
    assert not fleet.workers[3].notes and not fleet.requests()


def test_a_request_that_waits_remembers_a_note_whose_witness_goes(scripted):
    """In a fleet of nine no worker that is down is waited for without a note."""
    fleet = scripted([answer_well] * 9, '--set', 'gateway.wait=3s')
    fleet.workers[8].silence()
    until(lambda: fleet.gateways[0].ask('GET', '/healthz')[2]['workers_ready'] == 8)
    fleet.note(fleet.workers[8].tag)
    threading.Timer(0.8, lambda: [worker.notes.clear() for worker in fleet.workers]).start()
    assert fleet.post()[0] == 503 and not fleet.requests()
