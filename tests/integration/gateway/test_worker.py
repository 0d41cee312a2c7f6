"""A caissond as the worker of a gateway: who may call it, whose a call is, and what it tells the gateway."""

import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from cli import caisson
from daemon import Daemon, until
from gateway import SECRET, Worker, attempt, claims_of, coded, sign, tag_of
from keys import Keys
from web import Web

OTHER = 'another-secret-of-this-test-0123456789'


@pytest.fixture(name='worker', scope='module')
def running(tmp_path_factory):
    worker = Worker(tmp_path_factory.mktemp('worker'))
    worker.wait_ready()
    yield worker
    assert worker.daemon.stop(signal.SIGTERM) == 0


def refused(worker, *args, **more):
    """The text of a refusal of a call, which has no load."""
    status, headers, problem = worker.call(*args, **more)
    assert status == 403 and headers['Content-Type'] == 'application/problem+json', (status, problem)
    assert 'Caisson-Load' not in headers and problem['code'] == 'permission_denied'
    return problem['detail']


# ---- who may call ----

@pytest.mark.parametrize('method, path', [
    ('GET', '/v1/runs'), ('POST', '/v1/runs'), ('GET', '/openapi.json'), ('GET', '/docs'), ('GET', '/metrics'), ('GET', '/nothing'),
    ('GET', '/v1/gateway/status'), ('POST', '/v1/gateway/find'), ('POST', '/v1/gateway/witness'), ('GET', '/v1/gateway/audit'), ('POST', '/run_code'), ('POST', '/submissions'), ('POST', '/mcp'),
    ('POST', '/healthz'), ('DELETE', '/readyz'), ('OPTIONS', '/v1/runs'), ('GET', '/healthz/'), ('GET', '//healthz')])
def test_a_caller_without_a_signature_is_refused(worker, method, path):
    assert 'gateway' in refused(worker, method, path, value='')


def test_probes_need_no_signature(worker):
    status, _, health = worker.call('GET', '/healthz', value='')
    assert status == 200 and health['status'] == 'ok'
    status, _, ready = worker.call('GET', '/readyz', value='')
    assert status == 200 and ready['status'] == 'ready'
    assert re.fullmatch("host|[A-F]'?", ready['tier']) and isinstance(ready['missing'], list)
    assert worker.call('GET', '/healthz', value='v1 nonsense')[0] == 200
    assert worker.call('HEAD', '/healthz', value='')[0] == 200


def test_fronts_refuse_in_their_formats(worker):
    for headers in ({}, {'X-API-Key': 'e2b_00'}):
        status, _, error = worker.call('GET', '/v2/sandboxes', value='', headers=headers)
        assert status == 403 and error['code'] == 403 and 'gateway' in error['message']
    status, _, error = worker.call('POST', '/sandboxes', {'templateID': 'base'}, value='')
    assert status == 403 and error['code'] == 403
    status, _, _ = worker.call('GET', '/health', value='', headers={'Host': '49983-i0123456789abcdefghij.localhost'})
    assert status == 403


def test_a_signature_is_for_one_request(worker):
    value = sign(SECRET, 'GET', '/v1/runs', claims_of())
    assert worker.call('GET', '/v1/runs', value=value)[0] == 200
    for method, target in (('GET', '/v1/runs?limit=1'), ('GET', '/v1/sandboxes'), ('DELETE', '/v1/runs'), ('GET', '/v1//runs'),
                           ('GET', '/v1/run%73'), ('HEAD', '/v1/runs')):
        status = worker.call(method, target, value=value)[0]
        assert status == 403, (method, target)


def test_a_signature_is_for_one_minute(worker):
    now = int(time.time() * 1000)
    for at_ms in (now - 61000, now + 62000, 0, 10**15, 10**16 - 1):
        assert 'time' in refused(worker, 'GET', '/v1/runs', value=sign(SECRET, 'GET', '/v1/runs', claims_of(), at_ms))
    for at_ms in (now - 55000, now + 55000):
        assert worker.call('GET', '/v1/runs', value=sign(SECRET, 'GET', '/v1/runs', claims_of(), at_ms))[0] == 200


def test_a_signature_by_another_secret_is_refused(worker):
    assert 'key' in refused(worker, 'GET', '/v1/runs', secret=OTHER)


def test_claims_are_part_of_the_signature(worker):
    version, now, claims, mac = sign(SECRET, 'GET', '/v1/runs', claims_of()).split()
    for other in (coded(claims_of(tenant='admin')), coded(claims_of(scopes=255)), '-', claims + 'A', claims[:-1]):
        refused(worker, 'GET', '/v1/runs', value=' '.join((version, now, other, mac)))
    refused(worker, 'GET', '/v1/runs', value=' '.join((version, str(int(now) + 1), claims, mac)))
    refused(worker, 'GET', '/v1/runs', value=' '.join(('v2', now, claims, mac)))
    refused(worker, 'GET', '/v1/runs', value=' '.join((version, now, claims, mac.upper())))


@pytest.mark.parametrize('value', ['v1', 'v1 ', 'v1 1 - ', 'v1  1 - 0', '-', 'v1 x - 0', 'v1 -1 - 0', 'v1 1 - ' + '0' * 64, 'v1 ' + '1 ' * 900, '0' * 8000])
def test_a_header_of_another_form_is_refused(worker, value):
    refused(worker, 'GET', '/v1/runs', value=value)


def test_a_header_is_there_once(worker):
    value = sign(SECRET, 'GET', '/v1/runs', claims_of())
    for second in (value, sign(SECRET, 'GET', '/v1/runs', claims_of('other')), 'x', ''):
        answer = worker.raw(f'GET /v1/runs HTTP/1.1\r\nHost: x\r\nCaisson-Gateway: {value}\r\ncaisson-gateway: {second}\r\n'
                            'Connection: close\r\n\r\n'.encode())
        assert answer.startswith(b'HTTP/1.1 403 ') and b'2 times' in answer
    answer = worker.raw(f'GET /v1/runs HTTP/1.1\r\nHost: x\r\nCaisson-Gateway: {value}\r\nConnection: close\r\n\r\n'.encode())
    assert answer.startswith(b'HTTP/1.1 200 ')


def test_a_refused_body_begins_no_further_request(worker):
    inner = b'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
    answer = worker.raw(b'POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s' % (len(inner), inner))
    assert answer.startswith(b'HTTP/1.1 403 ') and answer.count(b'HTTP/1.1 ') == 1


@pytest.mark.parametrize('claims', [
    claims_of(tenant=''), claims_of(tenant='a b'), claims_of(tenant='a' * 65), claims_of(tenant='../x'), claims_of(key=''), claims_of(key='a' * 17),
    claims_of(key='a/b'), claims_of(scopes=0), claims_of(scopes=256), claims_of(scopes=1 << 40), claims_of(scopes=-1), claims_of(running_max=-1),
    {**claims_of(), 'more': 1}, {name: value for name, value in claims_of().items() if name != 'stored_bytes'}, {}, [], 'tenant',
    {**claims_of(), 'scopes': '1'}, {**claims_of(), 'scopes': 1.0}, {**claims_of(), 'tenant': None}, {**claims_of(), 'tenant': 'a\0b'}], ids=str)
def test_claims_that_no_store_has_are_refused(worker, claims):
    assert 'claims' in refused(worker, 'GET', '/v1/runs', value=sign(SECRET, 'GET', '/v1/runs', coded(claims)))


@pytest.mark.parametrize('claims', ['e30', 'e', '!!!!', '====', 'W10', 'eyJ0ZW5hbnQiOiJhIiwidGVuYW50IjoiYiJ9'])
def test_claims_that_are_no_json_object_are_refused(worker, claims):
    assert 'claims' in refused(worker, 'GET', '/v1/runs', value=sign(SECRET, 'GET', '/v1/runs', claims))


def test_the_local_socket_needs_no_signature(worker):
    done = worker.daemon.caisson('run', '-l', 'bash', '-c', 'echo here')
    assert (done.status, done.out) == (0, 'here\n')


# ---- whose a call is ----

def test_claims_are_the_key_of_a_request(worker):
    one, other = claims_of('one'), claims_of('other')
    status, _, kept = worker.call('POST', '/v1/runs', {'language': 'bash', 'code': 'echo mine'}, one, headers={'Prefer': 'respond-async'})
    assert status == 202
    record = until(lambda: (lambda answer: answer[2] if answer[0] == 200 else None)(worker.call('GET', kept['url'], claims=one)))
    assert record['stdout'] == 'mine\n'
    assert worker.call('GET', kept['url'], claims=other)[0] == 404


def test_a_call_without_claims_has_no_key(worker):
    status, headers, problem = worker.call('GET', '/v1/runs', claims=None)
    assert status == 401 and problem['code'] == 'unauthorized' and 'Caisson-Load' in headers
    assert worker.call('GET', '/v2/sandboxes', claims=None)[0] == 401


def test_keys_of_the_worker_do_not_count(worker):
    text = Keys(worker.folder).make('own', '--scopes', 'run,read')
    assert worker.call('GET', '/v1/runs', claims=None, headers={'Authorization': f'Bearer {text}'})[0] == 401
    assert worker.call('GET', '/v1/runs', headers={'Authorization': 'Bearer csn_wrong'})[0] == 200


def test_scopes_of_claims_are_checked(worker):
    reader = claims_of(scopes=('read',))
    assert worker.call('GET', '/v1/runs', claims=reader)[0] == 200
    status, _, problem = worker.call('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, reader)
    assert status == 403 and 'scope run' in problem['detail']
    assert worker.call('GET', '/v1/logs', claims=reader)[0] == 403
    assert worker.call('GET', '/v1/logs', claims=claims_of(scopes=('admin',)))[0] == 200


def test_quotas_of_claims_are_enforced(worker):
    claims = claims_of('busy', 'busykey', running_max=1, queued_max=1)
    ask = lambda: worker.call('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1'}, claims)[0]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = sorted(pool.map(lambda _: ask(), range(6)))
    assert answers[:2] == [200, 200] and answers[2:] == [429] * 4


def test_the_audit_has_the_key_of_the_claims(worker):
    record = worker.run('echo audited', claims=claims_of('audited', 'auditkey'))
    rows = json.loads(caisson('runs', '--json', *worker.state).out)
    row = [one for one in (rows['runs'] if isinstance(rows, dict) else rows) if one['id'] == record['id']][0]
    assert row['tenant'] == 'audited' and row['key'] == 'auditkey'


def test_a_record_has_the_tier_of_the_worker(worker):
    status, boundary = worker.status(), worker.run(':')['boundary']
    assert boundary['tier'] == status['tier'] and boundary['missing'] == [name for name in status['missing'] if name != 'cgroup']


def test_a_name_is_the_gateways_matter_and_a_page_the_workers(tmp_path):
    worker = Worker(tmp_path, keys='workers', keyless=True)
    name, page = {'Host': 'workers.example.org'}, {'Origin': 'https://page.example.org'}
    assert worker.call('GET', '/v1/runs', claims=None, headers=name)[0] == 200
    assert worker.call('GET', '/v1/runs', claims=None, headers={**name, **page})[0] == 403
    assert worker.call('GET', '/v1/runs', value='', headers=name)[0] == 403
    assert worker.daemon.stop(signal.SIGTERM) == 0


def test_with_keys_of_workers_claims_are_ignored(tmp_path):
    text = Keys(tmp_path).make('own', '--scopes', 'run,read')
    worker = Worker(tmp_path, keys='workers')
    assert worker.call('GET', '/v1/runs', claims=claims_of(scopes=255))[0] == 401
    assert worker.call('GET', '/v1/runs', claims=claims_of('other'), headers={'Authorization': f'Bearer {text}'})[0] == 200
    assert worker.call('GET', '/v1/runs', value='', headers={'Authorization': f'Bearer {text}'})[0] == 403
    assert worker.daemon.stop(signal.SIGTERM) == 0


# ---- ids ----

def test_ids_name_the_worker(worker):
    tag, claims = worker.status()['tag'], claims_of()
    found = {'run': worker.run('echo x > out.txt', exports=[{'pattern': 'out.txt'}])['id']}
    found['sandbox'] = worker.call('POST', '/v1/sandboxes', {})[2]['id']
    found['context'] = worker.call('POST', f'/v1/sandboxes/{found["sandbox"]}/contexts', {'language': 'bash'})[2]['id']
    found['session'] = worker.call('POST', '/v1/sessions', {'language': 'bash'})[2]['id']
    found['file'] = worker.call('POST', '/v1/files?name=a.txt', b'content', headers={'Content-Type': 'text/plain'})[2]['id']
    found['e2b'] = worker.call('POST', '/sandboxes', {'templateID': 'base'}, claims)[2]['sandboxID']
    found['judge0'] = worker.call('POST', '/submissions', {'language_id': 46, 'source_code': 'echo 1'})[2]['token']
    found['mcp'] = worker.call('POST', '/mcp', {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
        'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}},
        headers={'Accept': 'application/json, text/event-stream'})[1]['Mcp-Session-Id']
    found['snapshot'] = worker.call('POST', f'/sandboxes/{found["e2b"]}/snapshots', {'name': 'kept'})[2]['snapshotID'].split(':')[0]
    built = worker.call('POST', '/v3/templates', {'name': 'mine'})[2]
    found['build'] = built['buildID']
    for name, identifier in found.items():
        assert tag_of(SECRET, identifier) == tag, (name, identifier)
    assert not tag_of(OTHER, found['run'])
    url = worker.call('GET', f'/templates/{built["templateID"]}/files/{"0" * 64}')[2]['url']
    assert tag_of(SECRET, url.rsplit('upload=', 1)[1]) == tag
    for path in (f'/v1/sandboxes/{found["sandbox"]}', f'/v1/sessions/{found["session"]}', f'/sandboxes/{found["e2b"]}'):
        assert worker.call('DELETE', path)[0] == 204


def test_the_tag_stays_and_the_boot_id_does_not(tmp_path):
    seen = []
    for _ in range(2):
        worker = Worker(tmp_path)
        seen.append(worker.status())
        assert worker.daemon.stop(signal.SIGTERM) == 0
    assert seen[0]['tag'] == seen[1]['tag'] == (tmp_path / 'worker.id').read_text().strip()
    assert seen[0]['boot'] != seen[1]['boot'] and re.fullmatch('[0-9a-f]{32}', seen[0]['boot'])
    (tmp_path / 'worker.id').write_text('nonsense\n')
    worker = Worker(tmp_path)
    assert re.fullmatch('[0-9a-f]{8}', worker.status()['tag']) and worker.status()['tag'] == (tmp_path / 'worker.id').read_text().strip()
    assert worker.daemon.stop(signal.SIGTERM) == 0


# ---- the file of keys ----

@pytest.mark.parametrize('content', ['', 'short', f'{SECRET}\n{OTHER}\n{SECRET}-3', 'a' * 257, f'{SECRET} {OTHER}'])
def test_a_wrong_file_of_keys_is_told_at_the_start(tmp_path, content):
    (tmp_path / 'key').write_text(content)
    daemon = Daemon(tmp_path, '--set', f'engine.state_dir={tmp_path}', '--set', 'engine.http=127.0.0.1:0', '--set', f'gateway.key_file={tmp_path}/key')
    assert daemon.process.wait(60) == 78 and 'gateway.key_file' in (tmp_path / 'log').read_text()


def test_a_secret_is_replaced_while_requests_go_on(tmp_path):
    worker = Worker(tmp_path)
    stop, bad = [], []

    def ask():
        while not stop:
            secret = worker.secret
            status = worker.call('GET', '/v1/runs', secret=secret)[0]
            if status != 200:
                bad.append(status)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(ask)
        for old, new in ((SECRET, OTHER), (OTHER, SECRET)):
            for lines, signer in (((old, new), old), ((new, old), new), ((new,), new)):
                worker.replace_keys(*lines)
                time.sleep(1.2)         # gateways have read the file
                worker.secret = signer
                time.sleep(0.3)
        stop.append(True)
    assert not bad
    worker.replace_keys(OTHER)
    assert worker.call('GET', '/v1/runs', secret=OTHER)[0] == 200
    assert worker.call('GET', '/v1/runs', secret=SECRET)[0] == 403
    assert tag_of(OTHER, worker.call('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, secret=OTHER)[2]['id'])
    assert SECRET not in worker.log.read_text() and OTHER not in worker.log.read_text()
    assert worker.daemon.stop(signal.SIGTERM) == 0


def test_a_mounted_secret_is_read_again_through_its_links(tmp_path):
    """As the kubelet does: key leads to ..data/key, and ..data to a folder of a new name for each content."""
    folder = tmp_path / 'keys'
    for name, secret in (('..1', SECRET), ('..2', OTHER)):
        (folder / name).mkdir(parents=True)
        (folder / name / 'key').write_text(secret)
    (folder / '..data').symlink_to('..1')
    (folder / 'link').symlink_to('..data/key')
    worker = Worker(tmp_path, '--set', f'gateway.key_file={folder}/link')
    assert worker.call('GET', '/v1/runs')[0] == 200
    (folder / '..tmp').symlink_to('..2')
    (folder / '..tmp').rename(folder / '..data')
    assert worker.call('GET', '/v1/runs', secret=OTHER)[0] == 200
    assert worker.call('GET', '/v1/runs')[0] == 403
    assert worker.daemon.stop(signal.SIGTERM) == 0


def test_without_a_file_of_keys_nothing_is_signed(tmp_path):
    web = Web(tmp_path)
    assert web.ask('GET', '/v1/gateway/status')[0] == 404
    assert web.ask('POST', '/v1/gateway/find', {'tenant': 'x', 'volume': 'y'})[0] == 404
    status, headers, _ = web.ask('GET', '/v1/runs', Caisson_Gateway=sign(SECRET, 'GET', '/v1/runs', claims_of()))
    assert status == 200 and 'Caisson-Load' not in headers
    assert not (tmp_path / 'worker.id').exists()
    assert not [path for path in web.ask('GET', '/openapi.json')[2]['paths'] if 'gateway' in path]
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- what a gateway asks ----

def test_status_during_load(worker):
    code = {'language': 'bash', 'code': 'sleep 2'}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(worker.call, 'POST', '/v1/runs', code) for _ in range(4)]
        status = until(lambda: (lambda seen: seen if seen['running'] == 4 else None)(worker.status()))
        headers = worker.call('GET', '/v1/runs')[1]
        assert [one.result()[0] for one in runs] == [200] * 4
    assert status['ready'] and not status['draining'] and status['slots'] > 0 and status['why'] == ''
    assert status['version'] and isinstance(status['missing'], list) and status['tier']
    assert headers['Caisson-Load'] == f'4 0 {status["slots"]}'
    assert worker.call('GET', '/v1/runs/none')[1]['Caisson-Load'] == f'0 0 {status["slots"]}'


def test_status_counts_sandboxes(worker):
    before = worker.status()['sandboxes']
    identifier = worker.call('POST', '/v1/sandboxes', {})[2]['id']
    assert worker.status()['sandboxes'] == before + 1
    assert worker.call('DELETE', f'/v1/sandboxes/{identifier}')[0] == 204


def test_an_attempt_is_known_before_its_handler_begins(worker):
    one = attempt()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(worker.call, 'POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1'}, headers={'Caisson-Attempt': one})
        until(lambda: worker.status()['running'] == 1)
        assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[::2] == (200, {'admitted': True, 'over': False})
        assert run.result()[0] == 200
    assert until(lambda: worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[2]['over'])


def test_an_attempt_is_carried_out_once(worker):
    one, body = attempt(), {'language': 'bash', 'code': ':'}
    assert worker.call('POST', '/v1/runs', body, headers={'Caisson-Attempt': one})[0] == 200
    status, _, problem = worker.call('POST', '/v1/runs', body, headers={'Caisson-Attempt': one})
    assert status == 409 and 'attempt' in problem['detail']
    assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[::2] == (200, {'admitted': True, 'over': True})


def test_an_attempt_that_its_gateway_leaves_is_over(worker):
    one, body = attempt(), json.dumps({'language': 'bash', 'code': 'sleep 3'}).encode()
    head = (f'POST /v1/runs HTTP/1.1\r\nHost: x\r\nCaisson-Gateway: {sign(SECRET, "POST", "/v1/runs", claims_of())}\r\nCaisson-Attempt: {one}\r\n'
            f'Idempotency-Key: left\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n').encode()
    with socket.create_connection(('127.0.0.1', worker.port)) as gateway:
        gateway.sendall(head + body)
        until(lambda: worker.status()['running'] == 1)
    assert until(lambda: worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[2]['over'])
    found = {'tenant': 'tenant', 'idempotency_key': 'left'}
    assert worker.call('POST', '/v1/gateway/find', found, None)[2]['found']


def test_a_barred_attempt_says_so(worker):
    one = attempt()
    assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[0] == 404
    status, headers, _ = worker.call('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, headers={'Caisson-Attempt': one})
    assert status == 409 and headers['Caisson-Attempt'] == 'barred'


def note(worker, key, tenant='tenant', tag='0badcafe', one=None, **more):
    """The status of a note at this witness."""
    given = {'tenant': tenant, 'idempotency_key': key, 'tag': tag, 'attempt': one or attempt(), 'hash': 'abc', 'pod': 'w-1', 'uid': 'u-1', **more}
    return worker.call('POST', '/v1/gateway/witness', given, None)[0]


def sent(worker, key, tenant='tenant'):
    return worker.call('POST', '/v1/gateway/find', {'tenant': tenant, 'idempotency_key': key}, None)[2].get('sent')


def test_a_witness_tells_where_a_key_was_sent(worker):
    one, two, three = attempt(), attempt(), attempt()
    assert sent(worker, 'n-1') is None
    assert note(worker, 'n-1', one=one) == 200 and note(worker, 'n-1', one=one) == 200
    told = sent(worker, 'n-1')
    assert 0 <= told.pop('age_ms') < 60000
    assert told == {'tag': '0badcafe', 'attempt': one, 'hash': 'abc', 'pod': 'w-1', 'uid': 'u-1'} and sent(worker, 'n-1', 'other') is None
    assert note(worker, 'n-1', one=two) == 409 and note(worker, 'n-1', one=two, replaces=[three]) == 409 and sent(worker, 'n-1')['attempt'] == one
    assert note(worker, 'n-1', one=two, replaces=[three, one]) == 200 and sent(worker, 'n-1')['attempt'] == two
    for left, is_there in ((one, True), (two, False)):
        assert worker.call('POST', '/v1/gateway/witness', {'tenant': 'tenant', 'idempotency_key': 'n-1', 'attempt': left, 'withdraw': True}, None)[0] == 200
        assert bool(sent(worker, 'n-1')) == is_there


def test_a_worker_with_a_key_notes_no_other_worker(worker):
    assert worker.call('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, headers={'Idempotency-Key': 'n-2'})[0] == 200
    assert note(worker, 'n-2') == 409 and note(worker, 'n-2', 'other') == 200


@pytest.mark.parametrize('more', [
    {'idempotency_key': ''}, {'idempotency_key': 256 * 'k'}, {'idempotency_key': 1}, {'tag': ''}, {'tag': '123456789'}, {'attempt': 'x'}, {'attempt': None},
    {'hash': ''}, {'hash': 65 * 'a'}, {'pod': 254 * 'p'}, {'uid': 40 * 'u'}, {'replaces': 'x'}, {'replaces': ['x']}, {'replaces': 65 * ['0' * 32]},
    {'tenant': None}], ids=str)
def test_a_wrong_note_is_refused(worker, more):
    given = {'tenant': 'tenant', 'idempotency_key': 'n-3', 'tag': '0badcafe', 'attempt': attempt(), 'hash': 'abc', **more}
    assert worker.call('POST', '/v1/gateway/witness', given, None)[0] == 422 and not sent(worker, 'n-3')


def test_the_number_and_the_time_of_notes_are_limited(tmp_path):
    worker = Worker(tmp_path, '--set', 'gateway.witness_max=100', '--set', 'gateway.witness_ttl=60s')
    worker.wait_ready()
    try:
        for i in range(101):
            assert note(worker, f'n-{i}') == 200
        assert not sent(worker, 'n-0') and all(sent(worker, f'n-{i}') for i in (1, 2, 100))
        worker.daemon.stop()
        database = sqlite3.connect(tmp_path / 'caisson.db')
        assert database.execute('SELECT count(*), min(expires_ms - at_ms), max(expires_ms - at_ms) FROM witnesses').fetchone() == (100, 60000, 60000)
        database.close()
    finally:
        worker.daemon.stop()


def test_a_denied_attempt_is_never_admitted(worker):
    """The bytes of the request are in a buffer of the kernel when the gateway asks and sends the request elsewhere."""
    one, body = attempt(), json.dumps({'language': 'bash', 'code': ':'}).encode()
    value = sign(SECRET, 'POST', '/v1/runs', claims_of())
    head = (f'POST /v1/runs HTTP/1.1\r\nHost: x\r\nCaisson-Gateway: {value}\r\nCaisson-Attempt: {one}\r\n'
            f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n').encode()
    with socket.create_connection(('127.0.0.1', worker.port)) as late:
        late.sendall(head + body[:5])
        time.sleep(0.2)
        assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[0] == 404
        late.sendall(body[5:])
        assert late.recv(1000).startswith(b'HTTP/1.1 409 ')
    assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[0] == 404


def test_refused_requests_are_no_attempts(worker):
    one, two = attempt(), attempt()
    assert worker.call('POST', '/v1/runs', {}, claims_of(scopes=('read',)), headers={'Caisson-Attempt': one})[0] == 403
    assert worker.call('POST', '/v1/runs', b'{}', secret=OTHER, headers={'Caisson-Attempt': two})[0] == 403
    for identifier in (one, two, attempt(), 'x', 'A' * 32):
        assert worker.call('GET', f'/v1/gateway/attempts/{identifier}', claims=None)[0] == 404


@pytest.mark.parametrize('one', ['', 'x', '0' * 31, '0' * 33, 'G' * 32, '0123456789ABCDEF' * 2])
def test_an_attempt_has_32_digits(worker, one):
    assert worker.call('GET', '/v1/runs', headers={'Caisson-Attempt': one})[0] == 400


def test_names_are_found_for_their_tenant(worker):
    def found(tenant='tenant', **names):
        status, _, answer = worker.call('POST', '/v1/gateway/find', {'tenant': tenant, **names}, None)
        assert status == 200, answer
        return answer['found']
    assert not found(workspace='w') and not found(idempotency_key='k-1') and not found(template='named') and not found(layer='none')
    worker.run('echo 1 > f', workspace='w')
    worker.run('echo 1 > f', workspace='w2', user='u')
    assert found(workspace='w') and not found('other', workspace='w') and not found(workspace='w', user='u')
    assert found(workspace='w2', user='u') and not found(workspace='w2')
    workspaces = worker.call('GET', '/v1/workspaces')[2]['workspaces']
    assert all(found(workspace=one['id']) for one in workspaces)
    assert worker.call('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, headers={'Idempotency-Key': 'k-1'})[0] == 200
    assert found(idempotency_key='k-1') and not found('other', idempotency_key='k-1')
    template = worker.call('POST', '/v3/templates', {'name': 'named'})[2]
    assert found(template='named') and found(template=template['templateID']) and not found('other', template='named')
    status, _, answer = worker.call('POST', '/v1/gateway/find', {'tenant': 't', 'template': 'base'}, None)
    assert answer == {'found': True, 'everywhere': True}
    if worker.call('POST', '/v1/volumes', {'name': 'v', 'size_bytes': 64 << 20})[0] == 201:
        assert found(volume='v') and not found('other', volume='v')
        assert worker.call('DELETE', '/v1/volumes/v')[0] == 204
    assert not found(volume='v')


def test_the_audit_is_told_from_a_row_on(worker):
    def audit(query):
        return worker.call('GET', f'/v1/gateway/audit{query}', claims=None)
    for i in range(3):
        assert worker.call('POST', '/v1/runs', {'language': 'bash', 'code': f'exit {i}', 'task_id': f'audit-{i}'})[0] == 200
    status, _, told = audit('')
    assert status == 200 and told['newest'] == told['rows'][-1]['number'] == worker.status()['audit']
    assert [(row['task_id'], row['exit_code'], row['tenant'], row['key']) for row in told['rows'][-3:]] == [
        (f'audit-{i}', i, 'tenant', 'key1') for i in range(3)]
    after = told['rows'][-3]['number']
    assert audit(f'?after={after}')[2] == {'rows': told['rows'][-2:], 'newest': told['newest']}
    assert audit(f'?after={after}&limit=1')[2]['rows'] == told['rows'][-2:-1]
    assert audit(f'?after={told["newest"]}')[2]['rows'] == []
    for query in ('?after=-1', '?after=x', '?limit=0', '?limit=501', '?after=99999999999999999999', '?limit=', '?other=1'):
        assert audit(query)[0] in (400, 422), query


@pytest.mark.parametrize('body', [b'', b'{', {}, [], {'tenant': 't'}, {'workspace': 'w'}, {'tenant': 't', 'workspace': 'w', 'volume': 'v'},
                                  {'tenant': 't', 'workspace': 1}, {'tenant': 't', 'workspace': 'w', 'more': 1}, {'tenant': 't', 'workspace': 'w', 'user': 1}], ids=str)
def test_a_wrong_question_is_refused(worker, body):
    assert worker.call('POST', '/v1/gateway/find', body, None)[0] == 422


def test_programs_behind_ports_see_no_signature(worker):
    made = worker.call('POST', '/sandboxes', {'templateID': 'base'})[2]
    host = f'8000-{made["sandboxID"]}.localhost'
    code = ("import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(self):\n  text = str(self.headers).encode()\n"
            "  self.send_response(200)\n  self.send_header('Content-Length', str(len(text)))\n  self.end_headers()\n  self.wfile.write(text)\n"
            "http.server.HTTPServer(('', 8000), H).serve_forever()\n")
    access = {'Host': f'49999-{made["sandboxID"]}.localhost', 'X-Access-Token': made.get('envdAccessToken') or ''}
    connection = http.client.HTTPConnection('127.0.0.1', worker.port, timeout=60)
    body = json.dumps({'code': f'import subprocess, sys\nopen("/tmp/s.py", "w").write({code!r})\nsubprocess.Popen([sys.executable, "/tmp/s.py"])'})
    connection.request('POST', '/execute', body, {**access, 'Content-Type': 'application/json',
                                                  'Caisson-Gateway': sign(SECRET, 'POST', '/execute', None)})
    assert connection.getresponse().read() is not None
    answer = until(lambda: (lambda seen: seen[2] if seen[0] == 200 else None)(
        worker.call('GET', '/', claims=None, headers={'Host': host, 'Caisson-Attempt': attempt()})))
    assert b'Host:' in answer and b'caisson' not in answer.lower()
    assert worker.call('DELETE', f'/sandboxes/{made["sandboxID"]}')[0] == 204


# ---- answers by their Idempotency-Key ----

def test_an_answer_is_found_by_its_idempotency_key(worker):
    body = {'language': 'bash', 'code': 'sleep 1; echo once'}
    path = '/v1/idempotency-keys/named-run'
    assert worker.call('GET', path)[0] == 404
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(worker.call, 'POST', '/v1/runs', body, headers={'Idempotency-Key': 'named-run'})
        status, _, state = until(lambda: (lambda seen: seen if seen[0] != 404 else None)(worker.call('GET', path)))
        assert status == 202 and state['state']
        record = run.result()[2]
    assert state.get('id') in (None, record['id'])
    status, headers, again = worker.call('GET', path)
    assert status == 200 and again == record and headers['Idempotency-Replayed'] == 'true'
    assert worker.call('GET', path, claims=claims_of('other'))[0] == 404
    assert worker.call('GET', path, claims=claims_of(scopes=('run',)))[0] == 403


def test_a_long_answer_is_found_by_its_idempotency_key(worker):
    body = {'language': 'bash', 'code': 'head -c 3000000 /dev/zero | tr "\\0" a', 'limits': {'output_bytes': 4 << 20}}
    record = worker.call('POST', '/v1/runs', body, headers={'Idempotency-Key': 'long-run'})[2]
    status, _, again = worker.call('GET', '/v1/idempotency-keys/long-run')
    assert status == 200 and again['id'] == record['id'] and len(again['stdout']) == len(record['stdout'])


# ---- the end ----

def test_a_worker_drains_on_sigterm(tmp_path):
    worker = Worker(tmp_path, '--set', 'engine.shutdown_ms=20s')
    worker.wait_ready()
    body = {'language': 'bash', 'code': 'sleep 3; echo done'}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(worker.call, 'POST', '/v1/runs', body)
        until(lambda: worker.status()['running'] == 1)
        worker.daemon.process.send_signal(signal.SIGTERM)
        status = until(lambda: (lambda seen: seen if seen['draining'] else None)(worker.status()))
        assert not status['ready'] and 'draining' in status['why']
        code, _, problem = worker.call('GET', '/readyz', value='')
        assert code == 503 and 'draining' in problem['detail']
        assert worker.call('GET', '/healthz', value='')[0] == 200
        one = attempt()
        assert worker.call('POST', '/v1/runs', body, headers={'Caisson-Attempt': one})[0] == 503
        assert worker.call('GET', f'/v1/gateway/attempts/{one}', claims=None)[0] == 404
        assert worker.call('POST', '/v1/gateway/find', {'tenant': 't', 'volume': 'v'}, None)[2]['found'] is False
        code, _, record = run.result()
    assert code == 200 and record['stdout'] == 'done\n'
    assert worker.daemon.process.wait(20) == 0


# ---- what the host gives ----

WITHOUT_CGROUPS = ['unshare', '--mount', 'sh', '-c', 'while umount -R -l /sys/fs/cgroup 2>/dev/null; do :; done; exec "$@"', 'sh']


def has_unshare():
    return subprocess.run([*WITHOUT_CGROUPS, 'true'], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not has_unshare(), reason='needs root: mount namespaces')
def test_a_missing_feature_is_named(tmp_path):
    worker = Worker(tmp_path, command=WITHOUT_CGROUPS)
    assert 'cgroup' in worker.wait_ready()['missing']
    assert 'cgroup' in worker.call('GET', '/readyz', value='')[2]['missing']
    assert worker.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.skipif(not has_unshare(), reason='needs root: mount namespaces')
def test_a_worker_refuses_to_be_less_than_its_configuration(tmp_path):
    worker = Worker(tmp_path, '--set', 'engine.cgroup=require', command=WITHOUT_CGROUPS)
    status, _, problem = worker.call('GET', '/readyz', value='')
    assert status == 503 and problem['code'] == 'isolation_unavailable' and 'cgroup' in problem['detail']
    seen = worker.status()
    assert not seen['ready'] and 'cgroup' in seen['why']
    assert worker.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root: other users')
def test_the_tier_follows_from_what_the_pod_has(tmp_path):
    """Each command takes something away; KUBERNETES_SERVICE_HOST says that this is a pod."""
    no_users = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    commands = {'F': [], 'D': ['unshare', '--user', '--map-root-user'],
                'E': ['unshare', '--user', '--map-root-user', 'sh', '-c', no_users, 'sh']}
    for tier, command in commands.items():
        if command and subprocess.run([*command, 'true'], check=False, capture_output=True).returncode:
            continue
        folder = tmp_path / tier
        folder.mkdir()
        worker = Worker(folder, '--set', 'engine.confine=false', command=command, env={'KUBERNETES_SERVICE_HOST': 'x'})
        seen = worker.status()
        assert seen['tier'] == tier, seen
        assert ('user_namespaces' in seen['missing']) == (tier == 'E'), seen
        worker.daemon.stop(signal.SIGTERM)
