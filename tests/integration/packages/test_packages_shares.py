"""Builds of several owners: one owner leaves places for the others."""

import contextlib
import threading

import pytest

from daemon import until
from keys import Keys, bearer
from private_index import PrivateIndex
from test_packages import serving, settings_of

OWNER_BUILDS, OWNER_WAITING = 3, 64     # PACKAGES_OWNER_BUILDS_MAX and PACKAGES_OWNER_WAITING_MAX


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
