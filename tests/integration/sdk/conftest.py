"""Fixtures of the tests of sdk/python: the package on the path, and caissond of the build for private daemons."""

import gc
import os
import sys

import pytest

from cli import BUILD, ROOT
from daemon import alive, until

SDK = ROOT / 'sdk/python'
sys.path.insert(0, str(SDK))
os.environ['PYTHONPATH'] = os.pathsep.join([str(SDK), os.environ.get('PYTHONPATH', '')])

import caisson      # noqa: E402  (the package of the repository, not one that is installed)
from caisson import attempts, config, local     # noqa: E402
from typescript import Built, needs_node     # noqa: E402


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """No server of this host, and no waiting between attempts."""
    for name in [name for name in os.environ if name.startswith('CAISSON_') and name not in ('CAISSON_BUILD', 'CAISSON_TAP_FD', 'CAISSON_SHARD',
                                                                                          'CAISSON_ALONE', 'CAISSON_REQUIRE')]:
        monkeypatch.delenv(name)
    monkeypatch.setenv('CAISSON_CAISSOND', str(BUILD / 'caissond'))
    monkeypatch.setattr(attempts, 'FIRST_PAUSE', 0.01)
    caisson.configure()
    yield
    caisson.configure()


@pytest.fixture(name='client', scope='session')
def client_of_all():
    """A client of the private daemon that functions without a server use, too."""
    os.environ['CAISSON_CAISSOND'] = str(BUILD / 'caissond')
    client = caisson.default_client()
    watcher = client._lease.daemon.watcher.pid
    yield client
    config._private = None
    client.close()
    del client
    gc.collect()
    until(lambda: not alive(watcher))
    assert not local._shared and local.SOCKET_VARIABLE not in os.environ


@pytest.fixture(name='typescript', scope='session')
def compiled_package():
    """The package of sdk/typescript, compiled."""
    needs_node()
    built = Built()
    yield built
    built.remove()
