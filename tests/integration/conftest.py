"""Fixtures of all integration tests."""

import itertools
import signal

import pytest

from keys import Keys
from web import Web

SCOPES = 'run,check,read,sandboxes,files,metrics,tools'
numbers = itertools.count(1)


@pytest.fixture(name='daemon_of_all', scope='session')
def shared_daemon(tmp_path_factory):
    """One daemon with default settings for all tests of a session.  It needs a key before it serves HTTP."""
    folder = tmp_path_factory.mktemp('shared')
    keys = Keys(folder)
    keys.make('first', '--tenant', 'first', '--scopes', 'read')
    web = Web(folder, keyless=False)
    yield web, keys
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(name='web')
def web_of_a_tenant(daemon_of_all):
    """The shared daemon for one test, with the key of a tenant that no other test has."""
    web, keys = daemon_of_all
    tenant = f'tenant-{next(numbers)}'
    return web.with_key(keys.make(tenant, '--tenant', tenant, '--scopes', SCOPES))
