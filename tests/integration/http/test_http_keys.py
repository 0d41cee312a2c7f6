"""The HTTP interface with keys: who gets in, what a key allows, and that no tenant reaches what is another's."""

import concurrent.futures
import contextlib
import json
import re
import signal
import sqlite3
import time

import pytest

from daemon import Daemon, until
from keys import Keys, bearer
from web import KEYLESS, Web


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    """A daemon, and keys of two tenants."""
    folder = tmp_path_factory.mktemp('keys')
    keys = Keys(folder)
    keys.alice = keys.make('a', '--tenant', 'alice', '--scopes', 'run,check,read,metrics')
    keys.alice2 = keys.make('a2', '--tenant', 'alice', '--scopes', 'run,read')
    keys.mallory = keys.make('m', '--tenant', 'mallory', '--scopes', 'run,check,read')
    (folder / 'profiles').mkdir()
    (folder / 'profiles/adm.yaml').write_text('tools: {allow: ["s.*"], deny: ["s.env"], ask: ["s.add"], calls: 2}\n')
    keys.web = Web(folder, '--set', f'engine.profiles_dir={folder}/profiles', keyless=False)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


def run(place, key, code, **more):
    status, _, record = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more}, **bearer(key))
    assert status == 200, record
    return record


# ---- who gets in ----

def test_a_key_is_needed_and_two_headers_carry_it(place):
    status, headers, problem = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'})
    assert (status, headers['WWW-Authenticate'], problem['code']) == (401, 'Bearer', 'unauthorized')
    assert run(place, place.alice, 'echo 1')['stdout'] == '1\n'
    assert place.web.ask('GET', '/v1/profiles', X_API_Key=place.alice)[0] == 200
    for path in ('/healthz', '/readyz', '/openapi.json', '/docs'):
        assert place.web.ask('GET', path)[0] == 200


@pytest.mark.parametrize('bad', ['', 'x', 'csn_', 'csn_' + 'A' * 16 + '_' + 'B' * 43, 'csn_' + 'x' * 5000, 'Basic abc', '\xe9'])
def test_what_is_no_key_is_told_the_same(place, bad):
    _, _, first = place.web.ask('GET', '/v1/profiles', **bearer('csn_wrong'))
    status, _, problem = place.web.ask('GET', '/v1/profiles', **bearer(bad))
    assert status == 401 and problem['detail'] == first['detail']


def test_half_a_key_is_none(place):
    wrong = place.alice[:-1] + ('A' if place.alice[-1] != 'A' else 'B')
    mixed = place.alice.rsplit('_', 1)[0] + '_' + place.mallory.rsplit('_', 1)[1]
    for key in (wrong, mixed, place.alice + 'A', place.alice.upper(), ' '.join(place.alice)):
        assert place.web.ask('GET', '/v1/profiles', **bearer(key))[0] == 401


def test_a_key_allows_what_its_scopes_say(place):
    reader = place.make('r', '--tenant', 'alice', '--scopes', 'read')
    status, _, problem = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, **bearer(reader))
    assert (status, problem['code']) == (403, 'permission_denied') and 'scope run' in problem['detail']
    assert place.web.ask('GET', '/v1/runs', **bearer(reader))[0] == 200
    assert place.web.ask('GET', '/metrics', **bearer(reader))[0] == 403 and place.web.ask('GET', '/metrics', **bearer(place.alice))[0] == 200
    admin = place.make('root', '--scopes', 'admin')
    assert place.web.ask('GET', '/metrics', **bearer(admin))[0] == 200


def test_a_key_that_is_revoked_or_over_is_none(place):
    gone = place.make('gone', '--tenant', 'alice', '--scopes', 'read')
    assert place.web.ask('GET', '/v1/runs', **bearer(gone))[0] == 200
    assert place.ask('keys', 'revoke', gone.split('_')[1]).status == 0
    assert place.web.ask('GET', '/v1/runs', **bearer(gone))[0] == 401
    short = place.make('short', '--tenant', 'alice', '--scopes', 'read', '--expires', '1s')
    until(lambda: place.web.ask('GET', '/v1/runs', **bearer(short))[0] == 401)


def test_web_pages_and_other_names_are_answered_where_they_have_a_key(place):
    assert place.web.ask('GET', '/v1/runs', Origin='http://a.example', **bearer(place.alice))[0] == 200
    assert place.web.ask('GET', '/v1/runs', Host='caisson.example', **bearer(place.alice))[0] == 200


# ---- one tenant and another ----

def test_nobody_reaches_what_is_anothers(place):
    _, headers, state = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo secret; sleep 1000'}, Prefer='respond-async',
                                      **bearer(place.alice))
    where = headers['Location']
    events = place.web.stream('GET', where + '/events', Accept='application/x-ndjson', **bearer(place.alice))
    assert [json.loads(events.readline())['type'] for _ in range(2)] == ['start', 'stdout']
    events.close()
    for method, path in (('GET', where), ('GET', where + '/events'), ('DELETE', where)):
        status, _, problem = place.web.ask(method, path, **bearer(place.mallory))
        nothing = place.web.ask(method, path.replace(state['id'], 'run_' + '0' * 32), **bearer(place.mallory))[2]
        assert status == 404 and problem['detail'].replace(state['id'], '') == nothing['detail'].replace('run_' + '0' * 32, '')
    assert state['id'] not in json.dumps(place.web.ask('GET', '/v1/runs', **bearer(place.mallory))[2])
    assert place.web.ask('GET', where, **bearer(place.alice2))[0] == 202          # a key of the same tenant
    assert place.web.ask('DELETE', where, **bearer(place.alice2))[0] == 202
    record = until(lambda: (lambda got: got[0] == 200 and got[2])(place.web.ask('GET', where, **bearer(place.alice))))
    assert (record['status'], record['stdout']) == ('cancelled', 'secret\n')


def test_who_asks_for_much_does_not_keep_others_waiting(tmp_path):
    keys = Keys(tmp_path)
    busy, calm = keys.make('b', '--tenant', 'busy', '--scopes', 'run,read'), keys.make('c', '--tenant', 'calm', '--scopes', 'run,read')
    web = Web(tmp_path, '--set', 'engine.running_max=2', keyless=False)
    for _ in range(40):
        web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1'}, Prefer='respond-async', **bearer(busy))
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo me'}, **bearer(calm))
    waiting = [one for one in web.ask('GET', '/v1/runs', **bearer(busy))[2]['runs'] if one['state'] == 'waiting']
    assert status == 200 and record['stdout'] == 'me\n' and len(waiting) > 20
    assert web.daemon.stop(signal.SIGTERM, signal.SIGTERM) == 0


# ---- quotas ----

def test_a_key_has_so_many_running_and_the_others_wait(place):
    key = place.make('two', '--tenant', 'two', '--scopes', 'run,read', '--running', '2', '--queued', '3')
    body, states, refused = {'language': 'bash', 'code': 'sleep 1000'}, [], []
    for number in range(7):
        status, headers, answer = place.web.ask('POST', '/v1/runs', body, Prefer='respond-async', Idempotency_Key=f'q{number}', **bearer(key))
        (states if status == 202 else refused).append((status, headers, answer))
    states = [headers['Location'] for _, headers, _ in states]
    runs = until(lambda: (lambda all_: [r['state'] for r in all_].count('running') == 2 and all_)(
        place.web.ask('GET', '/v1/runs', **bearer(key))[2]['runs']))
    assert [one['state'] for one in runs].count('waiting') == 3 and len(runs) == len(states) == 5
    for status, headers, problem in refused:
        assert (status, problem['code'], problem['retryable']) == (429, 'capacity', True) and '3 waiting, 2 running; try again when' in problem['detail']
        wanted = {'quota': 'queued_max', 'limit': 3, 'current': 3, 'remaining': 0, 'running': 2, 'queued': 3, 'retry_after_s': 1}
        assert wanted.items() <= problem.items()
        assert [headers[name] for name in ('RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'Retry-After')] == ['3', '0', '1', '1']
    line = place.web.stream_raw('POST', '/v1/runs/bulk', json.dumps(body).encode(), **bearer(key)).read()
    assert json.loads(line)['record']['status'] == 'capacity'
    assert run(place, place.alice, 'echo other')['stdout'] == 'other\n'
    for one in states:
        place.web.ask('DELETE', one, **bearer(key))
    until(lambda: all(place.web.ask('GET', one, **bearer(key))[0] == 200 for one in states))
    # What was refused has left no name behind.
    status, headers, _ = place.web.ask('POST', '/v1/runs', {**body, 'code': 'true'}, Idempotency_Key='q6', **bearer(key))
    assert status == 200 and 'Idempotency-Replayed' not in headers


def test_too_many_for_the_engine(tmp_path):
    keys = Keys(tmp_path)
    one, other = keys.make('a', '--tenant', 'one', '--scopes', 'run'), keys.make('b', '--tenant', 'other', '--scopes', 'run')
    web = Web(tmp_path, '--set', 'engine.running_max=1', '--set', 'engine.queue_max=1', keyless=False)
    body = {'language': 'bash', 'code': 'sleep 1000'}
    web.ask('POST', '/v1/runs', body, Prefer='respond-async', **bearer(one))
    until(lambda: [run['state'] for run in web.runs()] == ['running'])
    assert web.ask('POST', '/v1/runs', body, Prefer='respond-async', **bearer(one))[0] == 202
    status, headers, problem = web.ask('POST', '/v1/runs', body, **bearer(other))
    assert status == 429 and headers['RateLimit-Limit'] == '1'
    assert {'quota': 'queue_max', 'limit': 1, 'current': 1, 'remaining': 0, 'running': 1, 'queued': 1}.items() <= problem.items()
    assert web.daemon.stop(signal.SIGTERM, signal.SIGTERM) == 0


def test_one_owner_cannot_fill_the_queue(tmp_path):
    keys = Keys(tmp_path)
    one, other = keys.make('a', '--tenant', 'one', '--scopes', 'run'), keys.make('b', '--tenant', 'other', '--scopes', 'run')
    web = Web(tmp_path, '--set', 'engine.running_max=1', '--set', 'engine.queue_max=32', keyless=False)
    body = {'language': 'bash', 'code': 'sleep 1000'}

    def send(key):
        return web.ask('POST', '/v1/runs', body, Prefer='respond-async', **bearer(key))[0]
    assert send(one) == 202
    until(lambda: [run['state'] for run in web.runs()] == ['running'])
    assert [send(one) for _ in range(29)] == [202] * 28 + [429]      # an eighth of the queue is left to others
    assert [send(other) for _ in range(5)] == [202] * 4 + [429]
    assert web.daemon.stop(signal.SIGTERM, signal.SIGTERM) == 0


def test_cpu_time_of_a_day(place):
    key = place.make('cpu', '--tenant', 'cpu', '--scopes', 'run', '--cpu-per-day', '50ms')
    run(place, key, 'for ((i = 0; i < 200000; i++)); do :; done')
    status, headers, problem = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, **bearer(key))
    assert (status, problem['code'], problem['retryable']) == (429, 'capacity', True)
    assert 'CPU time' in problem['detail'] and (problem['quota'], problem['limit'], problem['remaining']) == ('cpu_ms_per_day', 50, 0)
    assert problem['current'] >= 50 and 'running' not in problem
    # The run is of this minute or the one before, which counts until it is a day old.
    assert 86400 - 120 < problem['retry_after_s'] <= 86400 + 60 and headers['Retry-After'] == headers['RateLimit-Reset'] == str(problem['retry_after_s'])
    assert (headers['RateLimit-Limit'], headers['RateLimit-Remaining']) == ('50', '0')


BURN = 'import time\nwhile time.process_time() < {}: pass\n'


def cpu_used(place, tenant):
    with contextlib.closing(sqlite3.connect(f'file:{place.folder}/caisson.db?mode=ro', uri=True)) as db:
        return db.execute('SELECT coalesce(sum(cpu_ms), 0) FROM cpu_used WHERE tenant = ?', [tenant]).fetchone()[0]


def test_who_keeps_much_loses_what_is_his(tmp_path):
    keys = Keys(tmp_path)
    alice, mallory = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read')) for name in ('alice', 'mallory'))
    web = Web(tmp_path, '--set', 'engine.kept_bytes=1MiB', keyless=False)

    def kept(key, size):
        """Where a run is whose record and events have twice that, when it is over."""
        _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': f"printf '%0{size}d' 1"}, Prefer='respond-async', **key)
        until(lambda: web.ask('GET', headers['Location'], **key)[0] == 200)
        return headers['Location']

    def has_events(where, key):
        status, _, _ = web.ask('GET', f'{where}/events?after=1000', **key)
        return status == 200

    first = kept(alice, 100)
    big = [kept(mallory, 100_000) for _ in range(12)]
    assert has_events(first, alice) and has_events(big[-1], mallory) and not has_events(big[0], mallory)
    # What goes first is what was there first; records are in the store.
    states = [has_events(where, mallory) for where in big]
    assert states == sorted(states) and web.ask('GET', big[0], **mallory)[0] == 200
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_cpu_time_of_programs_in_sandboxes_counts(place):
    key = bearer(place.make('cell', '--tenant', 'cell', '--scopes', 'run,sandboxes,read', '--cpu-per-day', '900ms'))
    status, _, sandbox = place.web.ask('POST', '/v1/sandboxes', {}, **key)
    assert status == 201
    processes = f'/v1/sandboxes/{sandbox["id"]}/processes'
    status, _, done = place.web.ask('POST', processes, {'args': ['/usr/bin/python3', '-c', BURN.format(30)]}, **key)
    assert (status, done['signal'], done['limit']) == (200, 9, 'cpu_ms_per_day')
    until(lambda: cpu_used(place, 'cell') >= 900)
    for path, body in ((processes, {'args': ['/bin/true']}), ('/v1/sandboxes', {}), ('/v1/sessions', {}), ('/v1/runs', {'language': 'bash', 'code': 'true'})):
        status, _, problem = place.web.ask('POST', path, body, **key)
        assert (status, problem['quota'], problem['limit']) == (429, 'cpu_ms_per_day', 900), path
    status, _, problem = place.web.ask('POST', '/sandboxes', {'templateID': 'base'}, X_API_Key=key['Authorization'].split()[1])
    assert (status, problem['code']) == (429, 429) and 'CPU time' in problem['message']
    assert place.web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}', **key)[0] == 204
    assert place.web.ask('GET', '/v1/sandboxes', **key)[2]['sandboxes'] == []


def test_cpu_time_of_executions_in_sandboxes_counts_once(place):
    key = bearer(place.make('once', '--tenant', 'once', '--scopes', 'run,sandboxes,read'))
    sandbox = place.web.ask('POST', '/v1/sandboxes', {}, **key)[2]['id']
    context = place.web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'python'}, **key)[2]['id']
    told = sum(place.web.ask('POST', f'/v1/contexts/{context}/runs', {'code': BURN.format(n)}, **key)[2]['usage']['cpu_ms'] for n in (.5, 1))
    assert told >= 900
    before = cpu_used(place, 'once')
    assert place.web.ask('POST', f'/v1/sandboxes/{sandbox}/processes', {'args': ['/usr/bin/python3', '-c', BURN.format(1)]}, **key)[0] == 200
    until(lambda: cpu_used(place, 'once') >= before + 1000)
    assert place.web.ask('DELETE', f'/v1/sandboxes/{sandbox}', **key)[0] == 204
    # What is neither's own is the start of the sandbox and of its interpreter.
    assert told + 1000 <= cpu_used(place, 'once') < told + 1000 + 700


# ---- Idempotency-Key ----

def test_a_request_that_is_sent_again_is_not_carried_out_again(place):
    body = {'language': 'bash', 'code': 'echo $RANDOM$RANDOM$RANDOM'}
    first = place.web.ask('POST', '/v1/runs', body, Idempotency_Key='one', **bearer(place.alice))
    second = place.web.ask('POST', '/v1/runs', body, Idempotency_Key='one', **bearer(place.alice2))
    assert first[2] == second[2] and second[1]['Idempotency-Replayed'] == 'true' and 'Idempotency-Replayed' not in first[1]
    other = place.web.ask('POST', '/v1/runs', body, Idempotency_Key='one', **bearer(place.mallory))
    assert other[2]['id'] != first[2]['id']
    status, _, problem = place.web.ask('POST', '/v1/runs', {**body, 'code': 'echo 2'}, Idempotency_Key='one', **bearer(place.alice))
    assert status == 422 and 'another request' in problem['detail'] and problem['field'] == 'Idempotency-Key'
    for bad in ('', 'x' * 300):
        assert place.web.ask('POST', '/v1/runs', body, Idempotency_Key=bad, **bearer(place.alice))[0] == 422


def test_the_same_body_at_another_path_is_another_request(place):
    key = bearer(place.make('paths', '--tenant', 'paths', '--scopes', 'run,sandboxes'))
    sandbox = place.web.ask('POST', '/v1/sandboxes', {}, **key)[2]['id']
    contexts = [place.web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'bash'}, **key)[2]['id'] for _ in range(2)]
    body = {'language': 'bash', 'code': 'echo $RANDOM$RANDOM$RANDOM'}
    first = place.web.ask('POST', f'/v1/contexts/{contexts[0]}/runs', body, Idempotency_Key='path', **key)
    again = place.web.ask('POST', f'/v1/contexts/{contexts[0]}/runs', body, Idempotency_Key='path', **key)
    assert first[0] == again[0] == 200 and first[2] == again[2], first
    for path in (f'/v1/contexts/{contexts[1]}/runs', '/v1/runs'):
        status, _, problem = place.web.ask('POST', path, body, Idempotency_Key='path', **key)
        assert status == 422 and 'another request' in problem['detail'], path
    place.web.ask('DELETE', f'/v1/sandboxes/{sandbox}', **key)


def test_a_name_that_would_be_ignored_is_refused(place):
    routes = [path for path, kinds in place.web.ask('GET', '/openapi.json')[2]['paths'].items() if 'post' in kinds]
    ignored = [path for path in routes if path not in ('/v1/runs', '/v1/contexts/{id}/runs', '/v1/sessions/{id}/runs')]
    assert len(routes) == len(ignored) + 3 and '/v1/sandboxes' in ignored and '/api/v2/execute' in ignored
    admin = bearer(place.make('ignored', '--scopes', 'admin'))
    for path in ignored:
        status, _, problem = place.web.ask('POST', re.sub('{[a-z]+}', 'x', path), '{}', Idempotency_Key='one', **admin)
        if path.startswith('/librechat/'):      # errors in the words of LibreChat
            assert status == 400 and 'an Idempotency-Key is for' in problem['message'], (path, problem)
        else:
            assert (status, problem['field']) == (422, 'Idempotency-Key'), (path, problem)


def test_the_same_request_at_the_same_time(place):
    body = {'language': 'bash', 'code': 'sleep 2; echo $RANDOM$RANDOM'}
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: place.web.ask('POST', '/v1/runs', body, Idempotency_Key='race', **bearer(place.alice)), range(5)))
    assert sorted(status for status, _, _ in answers) == [200, 409, 409, 409, 409]
    assert place.web.ask('POST', '/v1/runs', body, Idempotency_Key='race', **bearer(place.alice))[0] == 200


def test_a_run_whose_answer_was_lost_goes_on(place):
    body = {'language': 'bash', 'code': 'sleep 2; echo done'}
    connection = place.web.open()
    connection.request('POST', '/v1/runs', json.dumps(body), {'Idempotency-Key': 'lost', **bearer(place.alice)})
    until(place.web.runs)
    connection.close()
    status, headers, record = until(lambda: (answer := place.web.ask('POST', '/v1/runs', body, Idempotency_Key='lost', **bearer(place.alice)))[0] != 409 and answer)
    assert status == 200 and headers['Idempotency-Replayed'] == 'true' and (record['status'], record['stdout']) == ('completed', 'done\n')


def test_a_started_run_is_found_again(place):
    body = {'language': 'bash', 'code': 'true'}
    first = place.web.ask('POST', '/v1/runs', body, Idempotency_Key='later', Prefer='respond-async', **bearer(place.alice))
    second = place.web.ask('POST', '/v1/runs', body, Idempotency_Key='later', Prefer='respond-async', **bearer(place.alice))
    assert (first[0], second[0]) == (202, 202) and first[2]['id'] == second[2]['id']


# ---- the audit, and what outlives the daemon ----

def test_the_audit_has_who_and_what_and_no_code(place):
    code = 'echo very-private-words'
    record = run(place, place.alice, code, task_id='t1', user='u1')
    row = next(row for row in json.loads(place.ask('runs', '--json', '--limit', '9', '--tenant', 'alice').out) if row['id'] == record['id'])
    assert (row['tenant'], row['task_id'], row['user'], row['status']) == ('alice', 't1', 'u1', 'completed')
    assert len(row['code_sha256']) == 64
    for path in place.folder.glob('caisson.db*'):
        assert b'very-private-words' not in path.read_bytes()
    for key in (place.alice, place.mallory):
        assert all(key.rsplit('_', 1)[1].encode() not in path.read_bytes() for path in place.folder.glob('caisson.*'))
    assert 'very-private-words' not in place.web.log.read_text() and place.alice not in place.web.log.read_text()


def test_runs_of_the_socket_are_in_the_audit_too(place):
    done = place.web.daemon.caisson('run', '--json', '-l', 'bash', '-c', 'true')
    assert json.loads(done.out)['id'] in place.ask('runs', '--json', '--limit', '9').out


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGKILL])
def test_records_and_names_outlive_the_daemon(tmp_path, how):
    keys = Keys(tmp_path)
    key = keys.make('k', '--tenant', 't', '--scopes', 'run,read')
    web = Web(tmp_path, keyless=False)
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo kept'}, Prefer='respond-async', **bearer(key))
    until(lambda: web.ask('GET', headers['Location'], **bearer(key))[0] == 200)
    body = {'language': 'bash', 'code': 'echo $RANDOM$RANDOM'}
    first = web.ask('POST', '/v1/runs', body, Idempotency_Key='n', **bearer(key))[2]
    web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1000'}, Prefer='respond-async', Idempotency_Key='cut', **bearer(key))
    web.daemon.stop(*[how] * (2 if how == signal.SIGTERM else 1))
    web = Web(tmp_path, keyless=False)
    assert web.ask('GET', headers['Location'], **bearer(key))[2]['stdout'] == 'kept\n'
    assert web.ask('POST', '/v1/runs', body, Idempotency_Key='n', **bearer(key))[2] == first
    other = keys.make('o', '--tenant', 'o', '--scopes', 'run,read')
    assert web.ask('GET', headers['Location'], **bearer(other))[0] == 404
    assert web.ask('DELETE', headers['Location'], **bearer(key))[0] == 204 and web.ask('GET', headers['Location'], **bearer(key))[0] == 404
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- what is old ----

def test_the_audit_is_kept_for_as_long_as_was_said(tmp_path):
    """The first look is at the start, and what is new stays, whatever the clock of the row above it says."""
    keys = Keys(tmp_path)
    key = keys.make('k', '--tenant', 't', '--scopes', 'run')
    now, day = int(time.time() * 1000), 86400000
    with contextlib.closing(sqlite3.connect(tmp_path / 'caisson.db', timeout=10)) as base, base:
        for name, age in (('hour', day // 24), ('two_days', 2 * day), ('year', 365 * day)):
            base.execute("INSERT INTO runs (id, tenant, key, task_id, user, language, profile, policy, code_sha256, status, exit_code, verdict, boundary, "
                         "started_ms, finished_ms, cpu_ms, wall_ms, memory_peak_bytes) VALUES (?, 't', '', '', '', 'bash', '', '', '', 'completed', 0, '', '', "
                         "?, ?, 0, 0, 0)", (name, now - age, now - age))

    def ids():
        return {run['id'] for run in json.loads(keys.ask('runs', '--json').out)}

    # For ever; then the default, which is 90 days; then one day.
    for setting, left in ((['--set', 'engine.audit_retention_ms=0'], {'hour', 'two_days', 'year'}), ([], {'hour', 'two_days'}),
                          (['--set', 'engine.audit_retention_ms=1d'], {'hour'})):
        web = Web(tmp_path, *setting, keyless=False)
        before = ids()
        record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, **bearer(key))[2]
        until(lambda: ids() & {'hour', 'two_days', 'year'} == left)
        assert record['id'] in ids() and before - ids() <= {'two_days', 'year'}
        assert web.daemon.stop(signal.SIGTERM) == 0
        assert ids() & {'hour', 'two_days', 'year'} == left
    done = keys.ask('runs', '--set', 'engine.audit_retention_ms=3651d')
    assert done.status == 78 and 'engine.audit_retention_ms' in done.err and '315360000s' in done.err


# ---- its beginning ----

def test_without_keys_and_without_being_told_so_it_does_not_start(tmp_path):
    state = ['--set', f'engine.state_dir={tmp_path}']
    for options, words in ((['--set', 'engine.http=127.0.0.1:0'], 'caisson keys create'), (['--set', 'engine.http=0.0.0.0:0'], 'caisson keys create'),
                           ([*KEYLESS, '--set', 'engine.http=0.0.0.0:0'], 'which others can reach')):
        daemon = Daemon(tmp_path, *state, *options)
        assert daemon.process.wait(60) == 78 and words in (tmp_path / 'log').read_text()
        daemon.stop()
    Keys(tmp_path).make('k')
    daemon = Daemon(tmp_path, *state, '--set', 'engine.http=0.0.0.0:0').ready()
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_store_that_is_none_stops_the_start(tmp_path):
    (tmp_path / 'caisson.db').write_bytes(b'precious' * 1000)
    daemon = Daemon(tmp_path, '--set', f'engine.state_dir={tmp_path}', '--set', 'engine.http=127.0.0.1:0', *KEYLESS)
    assert daemon.process.wait(60) == 78 and 'caisson.db' in (tmp_path / 'log').read_text()
    assert (tmp_path / 'caisson.db').read_bytes() == b'precious' * 1000
    daemon.stop()


def test_the_store_is_whole_after_all_this(place):
    base = sqlite3.connect(f'file:{place.folder}/caisson.db?mode=ro', uri=True)
    assert base.execute('PRAGMA integrity_check').fetchone() == ('ok',)


def test_tools_of_the_daemon_need_a_scope(place):
    without, with_it = place.make('nt', '--tenant', 'alice', '--scopes', 'run,sandboxes'), place.make('wt', '--tenant', 'alice', '--scopes', 'run,sandboxes,tools')
    body = {'language': 'python', 'code': 'print(tools.list_tools())', 'tools': {'allow': ['*'], 'enabled': True}}
    for path, request in (('/v1/runs', body), ('/v1/sandboxes', {'tools': body['tools']}), ('/v1/sessions', {'sandbox': {'tools': body['tools']}})):
        status, _, problem = place.web.ask('POST', path, request, **bearer(without))
        assert status == 403 and problem['code'] == 'permission_denied', problem
    status, _, record = place.web.ask('POST', '/v1/runs', body, **bearer(with_it))
    assert (status, record['stdout']) == (200, '[]\n')
    line = json.dumps({'id': 1, **body}) + '\n'
    answer = place.web.ask('POST', '/v1/runs/bulk', line, **bearer(without))[2]
    assert b'scope tools' in (answer if isinstance(answer, bytes) else json.dumps(answer).encode())


@pytest.mark.parametrize('tools, field', [
    ({'deny': []}, 'deny'), ({'deny': ['s.other']}, 'deny'), ({'ask': []}, 'ask'), ({'calls': 3}, 'calls'), ({'payload_bytes': 200001}, 'payload_bytes'),
    ({'concurrent': 17}, 'concurrent'), ({'call_ms': 30001}, 'call_ms'), ({'ask_ms': 300001}, 'ask_ms'), ({'allow': ['*']}, 'allow'), ({'allow': ['add']}, 'allow'),
    ({'allow': ['s.a*'], 'deny': ['*'], 'ask': ['s.*'], 'calls': 1, 'payload_bytes': 200000}, None)])
def test_what_a_profile_grants_of_tools_is_narrowed_with_any_key_and_widened_with_the_scope(place, tools, field):
    without, with_it = place.make('nt', '--tenant', 'alice', '--scopes', 'run,sandboxes'), place.make('wt', '--tenant', 'alice', '--scopes', 'run,sandboxes,tools')
    run = {'profile': 'adm', 'language': 'bash', 'code': 'true', 'tools': tools}
    sandbox = {'profile': 'adm', 'tools': tools}
    session = {'sandbox': sandbox}
    for path, request, good in (('/v1/runs', run, 200), ('/v1/sandboxes', sandbox, 201), ('/v1/sessions', session, 201)):
        status, _, answer = place.web.ask('POST', path, request, **bearer(without))
        if field:
            assert status == 403 and answer['code'] == 'permission_denied' and answer['field'] == f'/tools/{field}', answer
            assert f'tools.{field}' in answer['detail'] and 'profile adm' in answer['detail'] and 'scope tools' in answer['detail'], answer
        else:
            assert status == good, answer
        status, _, answer = place.web.ask('POST', path, request, **bearer(with_it))
        assert status == good and answer.get('status') in ('completed', 'ready', None), answer
        if 'id' in answer and path != '/v1/runs':
            place.web.ask('DELETE', f'{path}/{answer["id"]}', **bearer(with_it))
    line = place.web.ask('POST', '/v1/runs/bulk', json.dumps({'id': 1, **run}) + '\n', **bearer(without))[2]
    assert (b'scope tools' in (line if isinstance(line, bytes) else json.dumps(line).encode())) == bool(field)


def test_a_client_that_serves_its_own_tools_chooses_its_numbers(place):
    key = place.make('own', '--tenant', 'alice', '--scopes', 'run')
    assert run(place, key, 'true', tools={'enabled': True, 'calls': 10000, 'call_ms': 60000})['status'] == 'completed'
    status, _, problem = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'profile': 'tools', 'tools': {'calls': 201}}, **bearer(key))
    assert status == 403 and 'tools.calls is 201; the profile tools allows at most 200' in problem['detail']
