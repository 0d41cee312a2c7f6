"""What watches the daemon: /v1/me, /v1/events, /v1/metrics/series and /v1/keys; and that no tenant sees another's things there."""

import concurrent.futures
import contextlib
import http.client
import json
import re
import signal
import socket
import sqlite3
import time

import pytest

from daemon import until
from keys import Keys, bearer
from steps import Probed, steps_of
from web import Web

BEATS = {'run.started', 'run.finished', 'sandbox.created', 'sandbox.paused', 'sandbox.resumed', 'sandbox.ended', 'context.created', 'context.ended'}


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    """A daemon, and keys of two tenants and of an administrator."""
    folder = tmp_path_factory.mktemp('watch')
    keys = Keys(folder)
    keys.alice = keys.make('a', '--tenant', 'alice', '--scopes', 'run,read,sandboxes', '--running', '7')
    keys.mallory = keys.make('m', '--tenant', 'mallory', '--scopes', 'run,read,sandboxes')
    keys.builder = keys.make('b', '--tenant', 'alice', '--scopes', 'sandboxes')
    keys.meter = keys.make('metrics', '--tenant', 'alice', '--scopes', 'metrics')
    keys.admin = keys.make('admin', '--tenant', 'ops', '--scopes', 'admin')
    keys.web = Web(folder, keyless=False)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


class Stream:
    """A stream of events."""

    def __init__(self, web, key, query='', **headers):
        self.connection = http.client.HTTPConnection('127.0.0.1', web.port, timeout=30)
        self.connection.request('GET', '/v1/events' + query, headers={**({'Authorization': f'Bearer {key}'} if key else {}), **headers})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def line(self):
        return self.answer.readline().decode()

    def next(self):
        """(id, event, data); None: the stream has ended."""
        fields = {}
        while line := self.line():
            if line == '\n' and fields:
                data = json.loads(fields['data'])
                assert data['type'] == fields['event']
                return fields.get('id'), fields['event'], data
            if line != '\n' and not line.startswith(':'):
                name, value = line.rstrip('\n').split(': ', 1)
                fields[name] = value
        return None

    def until(self, kind):
        found = []
        while not found or found[-1][1] != kind:
            found.append(self.next())
        return found

    def close(self):
        self.connection.close()


def run(place, key, code='true', **more):
    status, _, record = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more}, **bearer(key))
    assert status == 200, record
    return record


# ---- who asks ----

def test_each_key_is_told_what_it_may_do(place):
    me = place.web.ask('GET', '/v1/me', **bearer(place.alice))[2]
    assert (me['tenant'], me['admin'], me['key']['name'], me['scopes']) == ('alice', False, 'a', ['run', 'read', 'sandboxes'])
    assert me['quotas']['running_max'] == 7 and me['quotas']['cpu_ms_per_day'] == 0 and me['used']['stored_bytes'] >= 0
    assert place.alice not in json.dumps(me)
    may = {name for name, value in me['may'].items() if value}
    assert may == {'run', 'grade', 'sandboxes', 'contexts', 'layers', 'images', 'events', 'audit', 'usage'}
    admin = place.web.ask('GET', '/v1/me', **bearer(place.admin))[2]
    assert admin['admin'] and all(admin['may'].values())


def test_what_me_says_is_what_happens(place):
    asked = {'metrics': ('GET', '/v1/metrics/series'), 'keys': ('GET', '/v1/keys'), 'logs': ('GET', '/v1/logs'), 'audit': ('GET', '/v1/runs?history=true'),
             'images': ('GET', '/v1/images'), 'volumes': ('GET', '/v1/volumes'), 'files': ('GET', '/v1/files'), 'sandboxes': ('GET', '/v1/sandboxes')}
    for key in (place.alice, place.meter, place.admin):
        may = place.web.ask('GET', '/v1/me', **bearer(key))[2]['may']
        for name, (method, path) in asked.items():
            assert (place.web.ask(method, path, **bearer(key))[0] != 403) == may[name], (name, path)


def test_keys_are_listed_for_an_administrator_alone_and_without_their_secrets(place):
    for key in (place.alice, place.meter):
        assert place.web.ask('GET', '/v1/keys', **bearer(key))[0] == 403
    listed = place.web.ask('GET', '/v1/keys', **bearer(place.admin))[2]['keys']
    assert [one['name'] for one in listed] == ['admin', 'metrics', 'b', 'm', 'a']
    assert [one['name'] for one in place.web.ask('GET', '/v1/keys?tenant=mallory', **bearer(place.admin))[2]['keys']] == ['m']
    text = json.dumps(listed)
    assert not [key for key in (place.alice, place.mallory, place.admin) if key in text or key.split('_')[2] in text]
    page = place.web.ask('GET', '/v1/keys?limit=2', **bearer(place.admin))[2]
    rest = place.web.ask('GET', f'/v1/keys?cursor={page["next"]}', **bearer(place.admin))[2]
    assert page['keys'] + rest['keys'] == listed and 'next' not in rest


# ---- events ----

def test_begins_and_ends_are_told_in_their_order(place):
    stream = Stream(place.web, place.alice)
    record = run(place, place.alice, 'exit 3')
    sandbox = place.web.ask('POST', '/v1/sandboxes', {}, **bearer(place.alice))[2]['id']
    context = place.web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'bash'}, **bearer(place.alice))[2]['id']
    place.web.ask('POST', f'/v1/sandboxes/{sandbox}/pause', {}, **bearer(place.alice))
    place.web.ask('POST', f'/v1/sandboxes/{sandbox}/resume', {}, **bearer(place.alice))
    place.web.ask('DELETE', f'/v1/sandboxes/{sandbox}', **bearer(place.alice))
    found = stream.until('sandbox.ended')
    assert [kind for _, kind, _ in found] == ['run.started', 'run.finished', 'sandbox.created', 'context.created', 'sandbox.paused', 'sandbox.resumed',
                                             'context.ended', 'sandbox.ended']
    assert [data['id'] for _, _, data in found] == [record['id']] * 2 + [sandbox, context, sandbox, sandbox, context, sandbox]
    ended = found[1][2]
    assert (ended['status'], ended['exit_code'], ended['language'], ended['tenant']) == ('failed', 3, 'bash', 'alice')
    assert ended['key_id'] == place.alice.split('_')[1] and ended['total_ms'] > 0 and found[3][2]['sandbox'] == sandbox
    ids = [int(number) for number, _, _ in found]
    assert ids == sorted(set(ids))
    stream.close()


def test_no_tenant_sees_what_another_one_does(place):
    streams = {name: Stream(place.web, getattr(place, name), query) for name, query in
               (('alice', ''), ('mallory', ''), ('builder', ''), ('admin', '?tenant=*'))}
    own = Stream(place.web, place.admin)
    first, second = run(place, place.alice)['id'], run(place, place.mallory)['id']
    assert {data['id'] for _, _, data in streams['alice'].until('run.finished')} == {first}
    assert {data['id'] for _, _, data in streams['mallory'].until('run.finished')} == {second}
    seen = streams['admin'].until('run.finished') + streams['admin'].until('run.finished')
    assert {data['id'] for _, kind, data in seen if kind.startswith('run.')} == {first, second}
    mine = place.web.ask('POST', '/v1/sandboxes', {}, **bearer(place.alice))[2]['id']
    theirs = place.web.ask('POST', '/v1/sandboxes', {}, **bearer(place.mallory))[2]['id']
    assert [data['id'] for _, _, data in streams['builder'].until('sandbox.created')] == [mine]     # a key for sandboxes shows no run
    assert [data['id'] for _, _, data in streams['mallory'].until('sandbox.created')] == [theirs]
    for sandbox, key in ((mine, place.alice), (theirs, place.mallory)):
        place.web.ask('DELETE', f'/v1/sandboxes/{sandbox}', **bearer(key))
    record = run(place, place.admin)
    assert [data['id'] for _, kind, data in own.until('run.finished') if kind.startswith('run.')] == [record['id']] * 2
    for path in ('/v1/events?tenant=mallory', '/v1/events?tenant=*', '/v1/runs?tenant=*', '/v1/runs?history=true&tenant=mallory'):
        status, _, problem = place.web.ask('GET', path, **bearer(place.alice))
        assert status == 403 and 'admin' in problem['detail'], path
    for stream in (*streams.values(), own):
        stream.close()


def test_pools_are_shown_to_keys_for_metrics_alone(place):
    status, _, problem = place.web.ask('GET', '/v1/events?types=pool.*', **bearer(place.alice))
    assert status == 403 and 'metrics' in problem['detail']
    status, _, problem = place.web.ask('GET', '/v1/events?types=run.*', **bearer(place.meter))
    assert status == 403 and 'read' in problem['detail']
    stream = Stream(place.web, place.meter)
    time.sleep(1.2)                                                              # the pools were looked at once
    run(place, place.alice, 'true', limits={'memory_bytes': 77 << 20})           # a pool of its own
    data = stream.next()[2]
    assert data['type'] == 'pool.changed' and {'ready', 'making', 'target'} <= set(data) and 'tenant' not in data
    stream.close()


def test_types_are_chosen_and_others_are_refused(place):
    stream = Stream(place.web, place.alice, '?types=run.finished,context.*')
    run(place, place.alice)
    assert stream.next()[1] == 'run.finished'
    stream.close()
    for types, field in (('run', 'types'), ('run.', 'types'), ('ru*', 'types'), ('', 'types'), ('run.*,', 'types'), ('run.*,x', 'types'), ('x' * 9000, 'types')):
        status, _, problem = place.web.ask('GET', f'/v1/events?types={types}', **bearer(place.alice))
        assert (status, problem['field']) == (422, field), types
    many = ','.join(['run.*'] * 4000)
    stream = Stream(place.web, place.alice, '?types=' + many)
    assert run(place, place.alice)['id'] == stream.next()[2]['id']
    stream.close()


def test_a_reader_that_comes_back_gets_what_it_missed(place):
    stream = Stream(place.web, place.alice, '?types=run.*')
    run(place, place.alice)
    last = stream.until('run.finished')[-1][0]
    stream.close()
    missed = [run(place, place.alice)['id'] for _ in range(3)]
    run(place, place.mallory)
    stream = Stream(place.web, place.alice, '?types=run.finished', **{'Last-Event-ID': last})
    assert [stream.next()[2]['id'] for _ in range(3)] == missed
    stream.close()
    lines = Stream(place.web, place.alice, '?types=run.finished', **{'Last-Event-ID': last, 'Accept': 'application/x-ndjson'})
    assert lines.line() == '\n' and [json.loads(lines.line())['id'] for _ in range(3)] == missed
    lines.close()
    old = Stream(place.web, place.alice, '?types=run.finished', **{'Last-Event-ID': '5'})
    number, kind, data = old.next()
    assert (number, kind) == (None, 'lost') and 'lists' in data['message'] and old.next()[1] == 'run.finished'
    old.close()
    for bad in ('x', '-1', '1x'):
        status, _, problem = place.web.ask('GET', '/v1/events', **bearer(place.alice), Last_Event_ID=bad)
        assert (status, problem['field']) == (422, 'Last-Event-ID')


def test_a_reader_that_does_not_read_is_told_so_and_ended(tmp_path):
    web = Web(tmp_path)
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.connect(('127.0.0.1', web.port))
    lazy.sendall(b'GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
    quick = Stream(web, None, '?types=run.finished')
    lines = ''.join(json.dumps({'language': 'bash', 'code': ':', 'policy': 'off', 'backend': 'nothing'}) + '\n' for _ in range(700))
    done = 0
    while done < 9000:                                                            # each line is refused, with two events: more than the ring has
        status, _, text = web.ask('POST', '/v1/runs/bulk', lines.encode(), Content_Type='application/x-ndjson')
        assert status == 200
        done += 700
        for _ in range(700):
            assert quick.next()[1] == 'run.finished'
    lazy.settimeout(20)
    received = b''
    while part := lazy.recv(1 << 20):
        received += part
        if received.endswith(b'0\r\n\r\n'):
            break
    assert b'event: lagged\n' in received[-2000:] and received.count(b'event: run.') < 17000
    run_after = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'})[2]
    assert run_after['stdout'] == '1\n'
    lazy.close()
    quick.close()
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_streams_are_counted_and_do_not_keep_the_daemon_from_its_end(tmp_path):
    web = Web(tmp_path)
    streams = [Stream(web, None) for _ in range(300)]
    metrics = web.ask('GET', '/metrics')[2].decode()
    assert re.search(r'caisson_share_used\{resource="event_readers"\} 300\b', metrics)
    record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'})[2]
    assert {stream.next()[2]['id'] for stream in streams} == {record['id']}
    for stream in streams[100:]:
        stream.close()
    until(lambda: re.search(r'caisson_share_used\{resource="event_readers"\} 100\b', web.ask('GET', '/metrics')[2].decode()))
    assert web.ask('HEAD', '/v1/events')[0] == 200
    began = time.monotonic()
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 10
    while streams[0].next():                                                      # the streams end as answers do, and are not cut
        pass


# ---- series ----

def test_the_last_hour_is_told_in_steps(tmp_path):
    web = Web(tmp_path)
    for _ in range(3):
        web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'})
    web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'exit 1'})
    web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'import socket', 'forbidden_modules': ['socket']})
    began = time.time()
    until(lambda: web.ask('GET', '/v1/metrics/series')[2]['series']['runs_per_s'][-1:] > [[began]])
    series = web.ask('GET', '/v1/metrics/series')[2]
    values = {name: max((value for _, value in pairs if value is not None), default=None) for name, pairs in series['series'].items()}
    assert series['step_s'] == 10 and all(len(pairs) == len(series['series']['running']) for pairs in series['series'].values())
    assert set(values) >= {'runs_per_s', 'latency_p50_ms', 'latency_p99_ms', 'queue_depth', 'running', 'pool_ready', 'memory_bytes', 'denials_per_s', 'errors_per_s'}
    moment = series['series']['runs_per_s'][-1][0]
    assert moment % 10 == 0 and abs(moment - time.time()) < 20
    assert 0 < values['latency_p50_ms'] <= values['latency_p99_ms'] < 60000 and values['pool_ready'] >= 0
    assert values['runs_per_s'] > 0 and values['failures_per_s'] > 0 and values['denials_per_s'] > 0 and values['errors_per_s'] == 0
    chosen = web.ask('GET', '/v1/metrics/series?name=running,queue_depth,running')[2]
    assert set(chosen['series']) == {'running', 'queue_depth'}
    assert web.ask('GET', '/v1/metrics/series?since=2999-01-01T00:00:00Z')[2]['series']['running'] == []
    for since in ('1h', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z', '2026-01-01T05:00:00%2B05:00', '2026-01-01T00:00:00-11:30'):
        assert web.ask('GET', f'/v1/metrics/series?name=running&since={since}')[2]['series']['running'], since
    for query, field in (('name=x', 'name'), ('name=', 'name'), ('name=running,', 'name'), ('name=' + 'running,' * 3000 + 'y', 'name'), ('since=x', 'since'),
                         ('since=2026-01-01', 'since'), ('since=2026-01-01T00:00:00', 'since'), ('since=2026-01-01T00:00:00%2B25:00', 'since'), ('since=', 'since')):
        status, _, problem = web.ask('GET', f'/v1/metrics/series?{query}')
        assert (status, problem['field']) == (422, field), query
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_figures_of_all_are_not_for_keys_of_tenants(place):
    assert place.web.ask('GET', '/v1/metrics/series', **bearer(place.alice))[0] == 403
    assert place.web.ask('GET', '/v1/metrics/series', **bearer(place.meter))[0] == 200


# ---- runs ----

def test_a_run_whose_client_waits_is_listed_and_ended_by_another_request(place):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(run, place, place.alice, 'sleep 60')
        going = until(lambda: place.web.ask('GET', '/v1/runs?history=true&status=running', **bearer(place.alice))[2]['runs'])
        assert [one['id'] for one in going] == [going[0]['id']] and place.web.ask('GET', '/v1/runs', **bearer(place.alice))[2]['runs'] == []
        path = '/v1/runs/' + going[0]['id']
        assert place.web.ask('DELETE', path, **bearer(place.mallory))[0] == 404 and not waiting.done()
        assert place.web.ask('DELETE', path, **bearer(place.alice))[0] == 202
        assert waiting.result(30)['status'] == 'cancelled'


def test_the_history_of_runs_is_filtered_and_is_the_tenants(place):
    made = [run(place, place.alice, f'exit {number % 2}', task_id=f't{number}')['id'] for number in range(6)]
    other = run(place, place.mallory)['id']

    def listed(query, key=place.alice):
        status, _, page = place.web.ask('GET', '/v1/runs?history=true' + query, **bearer(key))
        assert status == 200, page
        return [one['id'] for one in page['runs']]

    assert listed('&limit=6') == made[::-1] and other not in listed('') and listed('', place.mallory)[0] == other
    assert listed('&status=failed&limit=3') == made[5::-2] and listed('&language=python') == [] and listed('&profile=nothing') == []
    assert listed('&key=' + place.alice.split('_')[1] + '&limit=2') == made[:3:-1] and listed('&key=' + place.mallory.split('_')[1]) == []
    assert {other, made[0]} <= set(listed('&tenant=*', place.admin)) and other in listed('&tenant=mallory', place.admin) and not listed('&tenant=nobody', place.admin)
    going = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 60'}, **bearer(place.alice), Prefer='respond-async')[2]['id']
    assert listed('&limit=1') == [going] and listed('&status=running') == [going] and listed('&status=running', place.mallory) == []
    pages, cursor = [], ''
    while cursor is not None:
        page = place.web.ask('GET', f'/v1/runs?history=true&limit=2{cursor}', **bearer(place.alice))[2]
        pages += [one['id'] for one in page['runs']]
        cursor = f'&cursor={page["next"]}' if 'next' in page else None
    assert pages[:7] == [going] + made[::-1] and len(pages) == len(set(pages))
    place.web.ask('DELETE', f'/v1/runs/{going}', **bearer(place.alice))
    for query, field in (('status=x', 'status'), ('status=', 'status'), ('history=x', 'history'), ('limit=0', 'limit'), ('cursor=x', 'cursor')):
        status, _, problem = place.web.ask('GET', f'/v1/runs?{query}', **bearer(place.alice))
        assert (status, problem['field']) == (422, field), query


# ---- steps of the loop ----

def fill_audit(web, rows):
    """Many rows of one tenant, like the first one but for their ids."""
    assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'})[0] == 200
    with contextlib.closing(sqlite3.connect(web.folder / 'caisson.db', timeout=30)) as base:
        names = [row[1] for row in base.execute('PRAGMA table_info(runs)') if row[1] != 'number']
        first = dict(zip(names, base.execute(f'SELECT {", ".join(names)} FROM runs').fetchone()))
        values = ([{**first, 'id': f'run_{number:032x}'}[name] for name in names] for number in range(rows))
        base.executemany(f'INSERT INTO runs ({", ".join(names)}) VALUES ({", ".join("?" * len(names))})', values)
        base.commit()


def test_searches_and_many_readers_make_no_long_step(tmp_path):
    with Probed(tmp_path) as web:
        fill_audit(web, 30000)

        def asked(query, most):
            page = web.ask('GET', f'/v1/runs?history=true{query}')[2]
            assert len(page['runs']) == most and 'next' in page

        steps_of(web, lambda: asked('', 200))
        steps_of(web, lambda: asked('&language=none', 0))
        steps_of(web, lambda: asked('&tenant=*&status=timeout', 0))
        steps_of(web, lambda: web.ask('GET', '/v1/metrics/series'))
        streams = [Stream(web, None) for _ in range(400)]
        steps_of(web, lambda: [web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}) for _ in range(5)], at='feed.c')
        for stream in streams:
            stream.close()


def test_a_search_finds_rare_runs_page_by_page(tmp_path):
    web = Web(tmp_path)
    fill_audit(web, 9000)
    rare = web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'pass'})[2]['id']
    fill_rest = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'})[2]['id']
    found, cursor, pages = [], '', 0
    while cursor is not None:
        page = web.ask('GET', f'/v1/runs?history=true&language=python{cursor}')[2]
        found += [one['id'] for one in page['runs']]
        pages += 1
        cursor = f'&cursor={page["next"]}' if 'next' in page else None
    assert found == [rare] and fill_rest not in found and 4 <= pages <= 6
    assert web.daemon.stop(signal.SIGTERM) == 0
