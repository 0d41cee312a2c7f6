"""caisson keys and caisson runs, with a store of the test's own."""

import contextlib
import json
import os
import re
import sqlite3
import stat
import subprocess
import threading

import pytest

from cli import CAISSON, caisson, environment

KEY = re.compile(r'csn_[A-Za-z0-9]{16}_[A-Za-z0-9]{43}')
SHOWN = {'id', 'name', 'tenant', 'scopes', 'created_at', 'expires_at', 'used_at', 'revoked_at', 'running_max', 'queued_max', 'cpu_ms_per_day',
         'stored_bytes', 'review_budget_usd'}


class Store:
    def __init__(self, folder):
        self.folder, self.path = folder, folder / 'caisson.db'

    def __call__(self, *args, **more):
        return caisson(*args, env={'CAISSON_ENGINE_STATE_DIR': str(self.folder)}, **more)

    def json(self, *args):
        done = self(*args, '--json')
        assert done.status == 0, done.err
        return json.loads(done.out)

    def add(self, **columns):
        """A run, as the daemon would add it."""
        row = {'id': 'run_1', 'tenant': 'default', 'key': '', 'task_id': '', 'user': '', 'language': 'python', 'profile': 'standard', 'policy': '',
               'code_sha256': 'ab' * 32, 'status': 'completed', 'exit_code': 0, 'verdict': '', 'boundary': '{"backend":"native"}',
               'started_ms': 1772323199007, 'finished_ms': 1772323200007, 'cpu_ms': 500, 'wall_ms': 1000, 'memory_peak_bytes': 1 << 20, **columns}
        self.sql(f'INSERT INTO runs ({", ".join(row)}) VALUES ({", ".join("?" * len(row))})', *row.values())

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.path, timeout=10)) as db, db:
            return db.execute(text, values).fetchall()


@pytest.fixture
def store(tmp_path):
    one = Store(tmp_path / 'state' / 'caisson')
    assert one('keys', 'list').status == 0
    return one


def refused(done, *words, status=64):
    assert done.status == status and done.out == '' and done.err.startswith('caisson: '), (done.status, done.err)
    for word in words:
        assert word in done.err, done.err


# ---- keys ----

def test_a_key_stands_alone_and_is_shown_once(store):
    done = store('keys', 'create', '--name', 'CI')
    assert done.status == 0 and KEY.fullmatch(done.out.strip()) and done.out.count('\n') == 1
    assert 'not shown again' in done.err
    secret = done.out.strip()[21:]
    for args in (('list',), ('list', '--json')):
        shown = store('keys', *args)
        assert done.out[4:20] in shown.out and secret not in shown.out
    for path in store.folder.iterdir():
        assert secret.encode() not in path.read_bytes() and stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_all_that_was_given_is_shown(store):
    plain = store.json('keys', 'create', '--name', 'plain')
    assert set(plain) == SHOWN | {'key'} and KEY.fullmatch(plain['key']) and plain['id'] == plain['key'][4:20]
    assert (plain['tenant'], plain['scopes'], plain['expires_at'], plain['running_max']) == ('default', ['run', 'check', 'read'], None, 0)
    full = store.json('keys', 'create', '--name', 'Änne', '--tenant', 'acme', '--scopes', 'metrics,run', '--expires', '30d', '--running', '4',
                      '--queued', '5', '--cpu-per-day', '1.5h', '--stored', '1GiB', '--review-budget', '0.25')
    assert (full['name'], full['tenant'], full['scopes']) == ('Änne', 'acme', ['run', 'metrics'])
    assert (full['running_max'], full['queued_max'], full['cpu_ms_per_day'], full['stored_bytes']) == (4, 5, 5400000, 1 << 30)
    assert (plain['review_budget_usd'], full['review_budget_usd']) == (None, '0.250000000')
    listed = store.json('keys', 'list')
    assert [set(key) for key in listed] == [SHOWN, SHOWN]
    assert listed == [{name: key[name] for name in SHOWN} for key in (plain, full)]
    created, expires = full['created_at'], full['expires_at']
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', expires) and created < expires
    table = store('keys', 'list').out.splitlines()
    assert table[0].split() == ['ID', 'NAME', 'TENANT', 'SCOPES', 'CREATED', 'EXPIRES', 'USED', 'REVOKED']
    assert f'{created[:10]} {created[11:16]} {expires[:10]} {expires[11:16]} -' in table[2]


def test_a_revoked_key_is_shown_as_such(store):
    key = store.json('keys', 'create', '--name', 'x')['id']
    done = store('keys', 'revoke', key)
    assert (done.status, done.out, done.err) == (0, '', '')
    revoked = store.json('keys', 'list')[0]['revoked_at']
    assert revoked and store('keys', 'revoke', key).status == 0
    assert store.json('keys', 'list')[0]['revoked_at'] == revoked


@pytest.mark.parametrize('args,words', [
    ((), ['create', 'list', 'revoke']), (('dance',), ['create', 'list', 'revoke']), (('list', 'x'), ['keys list', 'x']),
    (('create',), ['--name']), (('create', '--name'), ['--name', 'needs a value']), (('create', '--name', ''), ['--name', '1 to 100']),
    (('create', '--name', 'x' * 101), ['--name', '1 to 100']), (('create', '--name', 'a\nb'), ['--name', 'control']),
    (('create', '--name', 'x', 'y'), ['keys create', 'y']), (('create', '--name', 'x', '--nosuch'), ['--nosuch']),
    (('create', '--name', 'x', '--tenant', 'a b'), ['--tenant', '"a b"', 'letters']),
    (('create', '--name', 'x', '--tenant', ''), ['--tenant', '""']),
    (('create', '--name', 'x', '--scopes', 'run,dance'), ['--scopes', '"dance"', 'run,check,read']),
    (('create', '--name', 'x', '--scopes', ''), ['--scopes', '""', 'run,check,read']),
    (('create', '--name', 'x', '--expires', 'soon'), ['--expires', '"soon"', '30d']),
    (('create', '--name', 'x', '--expires', '0'), ['--expires', '"0"', '30d']),
    (('create', '--name', 'x', '--expires', '36501d'), ['--expires', '36500d']),
    (('create', '--name', 'x', '--running', '0'), ['--running', '"0"', '1 to 1000000']),
    (('create', '--name', 'x', '--queued', '1e3'), ['--queued', '"1e3"', '1 to 1000000']),
    (('create', '--name', 'x', '--running', '99999999999999999999'), ['--running', '1 to 1000000']),
    (('create', '--name', 'x', '--cpu-per-day', '-1h'), ['--cpu-per-day', '"-1h"', '12h']),
    (('create', '--name', 'x', '--stored', '1 parsec'), ['--stored', '"1 parsec"', '1GiB']),
    (('revoke',), ['keys list']), (('revoke', 'nosuch'), ['"nosuch"', 'keys list']), (('revoke', 'a', 'b'), ['keys list'])])
def test_what_cannot_be_is_refused_with_its_remedy(store, args, words):
    refused(store('keys', *args), *words)
    assert store.json('keys', 'list') == []


def test_a_key_that_nobody_read_is_told(store):
    with open('/dev/full', 'wb') as full:
        done = subprocess.run([CAISSON, 'keys', 'create', '--name', 'x'], stdout=full, stderr=subprocess.PIPE, check=False,
                              env=environment(CAISSON_ENGINE_STATE_DIR=str(store.folder)))
    assert done.returncode == 125 and f'caisson keys revoke {store.json("keys", "list")[0]["id"]}' in done.stderr.decode()


def test_many_make_keys_at_once(store):
    made = []
    threads = [threading.Thread(target=lambda: made.append(store('keys', 'create', '--name', 'x'))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.status for done in made] == [0] * 8, [done.err for done in made]
    assert {done.out[4:20] for done in made} == {key['id'] for key in store.json('keys', 'list')}


# ---- runs ----

def test_an_empty_audit_is_no_error(store):
    assert store.json('runs') == []
    assert store('runs').out.split() == ['ID', 'STARTED', 'STATUS', 'EXIT', 'LANGUAGE', 'TENANT', 'TIME', 'CPU', 'MEMORY', 'TASK']


def test_a_run_as_json(store):
    store.add(task_id='t', user='u', key='k', policy='linx', verdict='allow', exit_code=3, status='failed', trace_id='cd' * 16)
    store.add(id='run_2', exit_code=-1, status='timeout', boundary='')
    second, first = store.json('runs')
    assert first == {'id': 'run_1', 'status': 'failed', 'exit_code': 3, 'tenant': 'default', 'key': 'k', 'task_id': 't', 'user': 'u',
                     'language': 'python', 'profile': 'standard', 'policy': 'linx', 'code_sha256': 'ab' * 32, 'verdict': 'allow',
                     'started_at': '2026-02-28T23:59:59.007Z', 'finished_at': '2026-03-01T00:00:00.007Z', 'wall_ms': 1000, 'cpu_ms': 500,
                     'memory_peak_bytes': 1 << 20, 'boundary': {'backend': 'native'}, 'trace_id': 'cd' * 16}
    assert second['exit_code'] is None and second['boundary'] is None and second['task_id'] is None and second['trace_id'] is None


def test_a_run_as_a_line(store):
    store.add(task_id='a\tb\n\x1b[31m' + 'x' * 200)
    line = store('runs').out.splitlines()[1]
    assert line.split()[:10] == ['run_1', '2026-02-28', '23:59', 'completed', '0', 'python', 'default', '1.0s', '0.5s', '1.0MiB']
    assert 'a b \\x1b[31mxxx' in line and len(line) < 250


@pytest.mark.parametrize('args,ids', [
    ((), 'e d c b a'), (('--limit', '2'), 'e d'), (('-n', '2', '--before', 'd'), 'c b'), (('--before', 'a'), ''),
    (('--status', 'failed'), 'd b'), (('--tenant', 't1'), 'e c a'), (('--tenant', 't1', '--status', 'failed'), ''),
    (('--task-id', 'x'), 'e a'), (('--user', 'u'), 'b'), (('--task-id', 'x', '--tenant', 't2'), '')])
def test_runs_are_filtered(store, args, ids):
    for i, name in enumerate('abcde'):
        store.add(id=name, tenant=f't{i % 2 + 1}', status='failed' if i % 2 else 'completed', task_id='x' if name in 'ae' else '',
                  user='u' if name == 'b' else '')
    assert [run['id'] for run in store.json('runs', *args)] == ids.split()
    assert [line.split()[0] for line in store('runs', *args).out.splitlines()[1:]] == ids.split()


@pytest.mark.parametrize('args,words', [
    (('x',), ['x', 'show ID']), (('--limit', '0'), ['--limit', '"0"', '1 to 10000']), (('--limit', '10001'), ['--limit', '1 to 10000']),
    (('--limit', 'x'), ['--limit', '"x"']), (('--status', 'fine'), ['--status', '"fine"', 'completed', 'timeout']),
    (('--before', 'nosuch'), ['--before', '"nosuch"']), (('--nosuch',), ['--nosuch']), (('show',), ['by its id']),
    (('show', 'a', 'b'), ['by its id']), (('show', 'nosuch'), ['"nosuch"', 'not kept'])])
def test_a_wrong_question_is_refused(store, args, words):
    refused(store('runs', *args), *words)


def test_a_record_is_printed_until_it_expires(store):
    store.sql('INSERT INTO records VALUES (?, ?, ?, ?, ?)', 'run_1', 't', 0, 13, '{"id":"run_1"}')
    store.sql('INSERT INTO records VALUES (?, ?, ?, ?, ?)', 'run_2', 't', 1, 13, '{"id":"run_2"}')
    assert store('runs', 'show', 'run_1').out == '{"id":"run_1"}\n'
    refused(store('runs', 'show', 'run_2'), 'its time is over')


# ---- stores that are none ----

def test_a_store_that_cannot_be_opened_is_named(store, tmp_path):
    (store.folder / 'store.secret').rename(tmp_path / 'away')
    refused(store('keys', 'list'), 'store.secret is missing', str(store.path), status=78)
    (tmp_path / 'away').rename(store.folder / 'store.secret')
    store.sql('PRAGMA user_version = 99')
    refused(store('keys', 'list'), 'newer Caisson', 'engine.state_dir', str(store.path), status=78)
    store.path.write_text('no database at all')
    refused(store('runs'), 'not a database', str(store.path), status=78)
    (tmp_path / 'file').write_text('')
    refused(Store(tmp_path / 'file' / 'x')('runs'), str(tmp_path / 'file' / 'x'), status=125)


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root: only root makes files for others')
def test_what_root_makes_belongs_to_the_folders_owner(tmp_path):
    folder = tmp_path / 'of-nobody'
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    one = Store(folder)
    assert one('keys', 'create', '--name', 'x').status == 0
    assert {path.stat().st_uid for path in folder.iterdir()} == {65534}
