"""The audit of the workers in the store of the gateway (gateway.keys = gateway).

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_audit.py
"""

import json
import time
import urllib.parse

import pytest

from cli import caisson
from daemon import until
from fleet import FakeWorker, Fleet, Gateway
from gateway import SECRET, id_of
from keys import Keys

QUICK = ('--set', 'gateway.keys=gateway', '--set', 'gateway.heartbeat=100ms', '--set', 'gateway.down_after=1s')


def audit_of(gateway, *words):
    done = caisson('runs', '--json', '--limit', '1000', *words, '--set', f'engine.state_dir={gateway.folder}')
    assert done.status == 0, done.err
    return json.loads(done.out)


def row(number, tag, **more):
    now = int(time.time() * 1000)
    return {'number': number, 'id': id_of(SECRET, tag), 'tenant': 't', 'key': 'k', 'task_id': f'n{number}', 'user': '', 'language': 'bash', 'profile': '',
            'policy': '', 'code_sha256': 'c', 'status': 'completed', 'exit_code': 0, 'verdict': '', 'boundary': '', 'started_ms': now - 5, 'finished_ms': now,
            'cpu_ms': 1, 'wall_ms': 5, 'memory_peak_bytes': 4096, 'trace_id': '', **more}


class AuditedWorker(FakeWorker):
    """A scripted worker with rows."""

    def __init__(self, n=0):
        super().__init__(lambda worker, request, connection: worker.send(connection, 404, {}))
        self.rows, self.asked = [], []
        self.add(n)

    def add(self, n):
        last = self.rows[-1]['number'] if self.rows else 0
        self.rows += [row(last + 1 + i, self.tag) for i in range(n)]

    def answer_own(self, request, connection):
        path, _, query = request['target'].partition('?')
        newest = self.rows[-1]['number'] if self.rows else 0
        if path == '/v1/gateway/status':
            self.send(connection, 200, {'tag': self.tag, 'boot': self.boot, 'version': '0', 'ready': True, 'why': '', 'draining': False, 'running': 0,
                                        'queued': 0, 'slots': 8, 'sandboxes': 0, 'tier': 'host', 'missing': [], 'audit': newest})
        elif path == '/v1/gateway/audit':
            given = {name: int(values[0]) for name, values in urllib.parse.parse_qs(query).items()}
            self.asked.append(given)
            rows = [one for one in self.rows if one['number'] > given['after']][:given['limit']]
            self.send(connection, 200, {'rows': rows, 'newest': newest})
        else:
            return super().answer_own(request, connection)
        return True


@pytest.fixture(name='scripted')
def a_maker(tmp_path):
    made = []

    def make(worker):
        made.append(worker)
        gateway = Gateway(tmp_path, [worker.url], *QUICK, name=f'gateway{len(made)}')
        made.append(gateway)
        gateway.wait_ready(1)
        return gateway
    yield make
    for one in made:
        one.stop()


def test_rows_come_in_bounded_parts_and_once(scripted):
    worker = AuditedWorker(120)
    gateway = scripted(worker)
    until(lambda: len(audit_of(gateway)) == 120)
    assert worker.asked == [{'after': after, 'limit': 50} for after in (0, 50, 100)]
    worker.add(2)
    until(lambda: len(audit_of(gateway)) == 122)
    assert worker.asked[3:] == [{'after': 120, 'limit': 50}]
    rows = audit_of(gateway, '--task-id', 'n122')
    assert [(one['id'], one['tenant'], one['key'], one['status'], one['exit_code'], one['wall_ms']) for one in rows] == [
        (worker.rows[-1]['id'], 't', 'k', 'completed', 0, 5)]


def test_a_gateway_goes_on_where_it_was(scripted, tmp_path):
    worker = AuditedWorker(3)
    gateway = scripted(worker)
    until(lambda: len(audit_of(gateway)) == 3)
    assert gateway.stop() == 0
    worker.add(1)
    again = Gateway(tmp_path, [worker.url], *QUICK, name='gateway1')
    until(lambda: len(audit_of(again)) == 4)
    assert again.stop() == 0 and worker.asked == [{'after': 0, 'limit': 50}, {'after': 3, 'limit': 50}]


def test_the_number_of_rows_is_limited(scripted, tmp_path):
    worker = AuditedWorker(120)
    gateway = scripted(worker)
    until(lambda: len(audit_of(gateway)) == 120)
    assert gateway.stop() == 0
    again = Gateway(tmp_path, [worker.url], *QUICK, '--set', 'gateway.audit_max=50', name='gateway1')
    until(lambda: len(audit_of(again)) == 50)
    assert [one['task_id'] for one in audit_of(again)] == [f'n{i}' for i in range(120, 70, -1)] and again.stop() == 0


def test_numbers_that_begin_again_are_read_again(scripted):
    worker = AuditedWorker(5)
    gateway = scripted(worker)
    until(lambda: len(audit_of(gateway)) == 5)
    worker.rows = [row(1, worker.tag, task_id='new')]
    until(lambda: audit_of(gateway, '--task-id', 'new'))
    assert len(audit_of(gateway)) == 6 and worker.asked[-1] == {'after': 0, 'limit': 50}


@pytest.mark.parametrize('more', [{'id': ''}, {'id': 1}, {'tenant': None}, {'exit_code': 'x'}, {'code_sha256': 65 * 'a'}], ids=str)
def test_an_audit_that_cannot_be_read_is_told(scripted, more):
    worker = AuditedWorker()
    worker.rows = [row(1, worker.tag, **more)]
    gateway = scripted(worker)
    until(lambda: 'cannot be read' in gateway.log.read_text())
    assert not audit_of(gateway)


def test_a_status_of_a_newer_worker_is_kept_as_an_error(scripted):
    worker = AuditedWorker()
    worker.rows = [row(1, worker.tag, status='from_the_future')]
    gateway = scripted(worker)
    assert until(lambda: audit_of(gateway))[0]['status'] == 'engine_error'


def test_runs_of_a_worker_that_is_gone_are_listed(tmp_path):
    fleet = Fleet(tmp_path, 2, keys='gateway', gateway_options=QUICK)
    gateway = fleet.gateway
    gateway.key = Keys(gateway.folder).make('test', '--scopes', 'run,read', '--tenant', 'one')
    other = Keys(gateway.folder).make('test', '--scopes', 'run,read', '--tenant', 'two')
    try:
        records = [gateway.run(f'echo {i}', task_id=f't{i}') for i in range(12)]
        until(lambda: len(audit_of(gateway)) == 12)
        assert {(one['id'], one['tenant'], one['status'], one['task_id']) for one in audit_of(gateway)} == {
            (record['id'], 'one', 'completed', f't{i}') for i, record in enumerate(records)}
        assert gateway.ask('GET', '/v1/runs')[2]['runs'] == []
        gone, left = fleet.workers
        lost = {record['id'] for record in records if record['id'][4:12] == gone.status()['tag']}
        assert 0 < len(lost) < 12
        assert gateway.stop() == 0
        gateway.log.unlink()               # it has the port of the first gateway
        gateway = Gateway(tmp_path, [f'http://127.0.0.1:{left.port}'], *QUICK)
        gateway.key = fleet.gateway.key
        fleet.gateway = gateway.wait_ready(1)
        listed = gateway.ask('GET', '/v1/runs')[2]['runs']
        assert {one['id'] for one in listed} == lost and {one['state'] for one in listed} == {'over'}
        assert len(gateway.ask('GET', '/v1/runs?limit=1')[2]['runs']) == 1
        assert gateway.ask('GET', '/v1/runs', Authorization=f'Bearer {other}')[2]['runs'] == []
        assert gateway.ask('GET', listed[0]['url'])[2]['error']['code'] == 'worker_lost'
        assert len(audit_of(gateway)) == 12
    finally:
        fleet.stop()
