"""Builds of several owners: one owner leaves places for the others."""

import contextlib
import sqlite3
import threading

import pytest

from daemon import until
from keys import Keys, bearer
from private_index import PrivateIndex
from test_packages import serving, settings_of

OWNER_BUILDS, OWNER_WAITING = 3, 64     # PACKAGES_OWNER_BUILDS_MAX and PACKAGES_OWNER_WAITING_MAX
WAITING = 256                           # PACKAGES_WAITING_MAX


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        for number in range(OWNER_WAITING + 6):
            index.add_wheel(f'slow{number}', '1.0', {f'slow{number}.py': ''})
            index.behave(f'slow{number}', delay=600)
        index.add_wheel('quick', '1.0', {'quick.py': ''})
        yield index


def test_an_owner_leaves_places_for_others(tmp_path, index):
    keys = Keys(tmp_path)
    alice, bob = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read')) for name in ('alice', 'bob'))
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        answers = []

        def ask(number):
            with contextlib.suppress(OSError):      # the daemon ends before the packages are there
                answers.append(web.ask('POST', '/v1/layers', {'packages': [f'slow{number}']}, **alice)[::2])
        for number in range(OWNER_WAITING + 6):
            threading.Thread(target=ask, args=(number,), daemon=True).start()
        until(lambda: len(answers) == 6)
        assert [(status, problem['code'], f'{OWNER_WAITING} layers of yours' in problem['message']) for status, problem in answers] == [(429, 'capacity', True)] * 6
        until(lambda: len({path for path in map(str, index.requests) if 'slow' in path}) == OWNER_BUILDS)
        status, _, layer = web.ask('POST', '/v1/layers', {'packages': ['quick']}, **bob)
        assert status == 201 and layer['packages'] == ['quick==1.0'], layer
        assert len({path for path in map(str, index.requests) if 'slow' in path}) == OWNER_BUILDS
        web.daemon.process.kill()       # a SIGTERM lets the requests go on for engine.shutdown_ms
        web.daemon.process.wait()


def test_at_most_256_builds_wait(tmp_path, index):
    keys = Keys(tmp_path)
    owners = [bearer(keys.make(f'owner{n}', '--tenant', f'owner{n}', '--scopes', 'run,read')) for n in range(WAITING // OWNER_WAITING + 1)]
    with serving(tmp_path, *settings_of(index), '--set', 'engine.queue_max=1000', keyless=False) as web:
        def ask(number, key):
            return web.ask('POST', '/v1/runs', {'language': 'python', 'code': '1', 'packages': [f'slow{number}']}, Prefer='respond-async', **key)
        for key in owners[:-1]:
            for number in range(OWNER_WAITING):
                status, _, answer = ask(number, key)
                assert status == 202, answer
        _, headers, _ = ask(0, owners[-1])
        record = until(lambda: (lambda answer: answer[0] == 200 and answer[2])(web.ask('GET', headers['Location'], **owners[-1])))
        assert record['status'] == 'capacity' and record['error']['retryable'] is True, record
        assert record['error']['message'] == f'{WAITING} layers are being built or wait for their build; try again later', record['error']
        # A request without packages needs no place.
        status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(1)'}, **owners[-1])
        assert status == 200 and record['stdout'] == '1\n', record
        web.daemon.process.kill()
        web.daemon.process.wait()


def cpu_used(folder, tenant):
    with contextlib.closing(sqlite3.connect(f'file:{folder}/caisson.db?mode=ro', uri=True)) as db:
        return db.execute('SELECT coalesce(sum(cpu_ms), 0) FROM cpu_used WHERE tenant = ?', [tenant]).fetchone()[0]


def test_the_cpu_time_of_a_build_counts(tmp_path, index):
    keys = Keys(tmp_path)
    key = bearer(keys.make('alice', '--tenant', 'alice', '--scopes', 'run,read', '--cpu-per-day', '1h'))
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        status, _, layer = web.ask('POST', '/v1/layers', {'packages': ['quick']}, **key)
        assert status == 201, layer
        used = until(lambda: cpu_used(tmp_path, 'alice'))
        assert used > 100                       # pip alone takes more
        assert web.ask('POST', '/v1/layers', {'packages': ['quick']}, **key)[0] == 200
        assert cpu_used(tmp_path, 'alice') == used


def test_the_quota_of_cpu_time_ends_a_build(tmp_path, index):
    keys = Keys(tmp_path)
    small, large = (bearer(keys.make(name, '--tenant', 'alice', '--scopes', 'run,read', '--cpu-per-day', quota)) for name, quota in (('small', '150ms'), ('large', '1h')))
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        status, _, problem = web.ask('POST', '/v1/layers', {'packages': ['quick']}, **small)
        assert status == 429 and 'build_failed: CPU time of the key is used up: it allows 0.15 seconds in 24 hours' in problem['message'], problem
        assert until(lambda: cpu_used(tmp_path, 'alice')) >= 100
        status, _, problem = web.ask('POST', '/v1/layers', {'packages': ['quick']}, **small)
        assert status == 429 and problem['quota'] == 'cpu_ms_per_day', problem
        # The failure is the key's and is not remembered.
        assert web.ask('POST', '/v1/layers', {'packages': ['quick']}, **large)[0] == 201
