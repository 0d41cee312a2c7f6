"""A process 1 that is not ours: whoever could replace it would have his own sandbox, and nothing of the daemon."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import daemon
from caisson_testing import LIB
from cli import CAISSON
from daemon import memory_of, until
from sandboxes import Sandbox
from web import Web

PROCESS_ACTS = ['nothing', 'close', 'garbage', 'every-kind', 'flood-out', 'flood-small', 'flood-room', 'exited-twice', 'exited-only', 'exited-stopped', 'exited-cut',
                'done-twice', 'failed-twice', 'failed-odd', 'failed-cut', 'failed-0', 'ends-twice', 'ends-without', 'descriptors-1', 'descriptors-3',
                'descriptors-250', 'empty-packets']
FILE_ACTS = [*PROCESS_ACTS, 'flood-entries', 'flood-events', 'events-first', 'flood-data', 'huge-file', 'short-file', 'data-first', 'two-entries']
FATAL_ACTS = ['greet-again', 'engine-garbage', 'exit', 'crash', 'close-engine']


@pytest.fixture(name='web', scope='module')
def hostile(tmp_path_factory):
    """A daemon whose sandboxes get that guest: it takes what lies beside it."""
    build, folder = Path(CAISSON).parent, tmp_path_factory.mktemp('hostile')
    for name in ('caisson', 'caissond', 'caisson-supervisor', 'caisson-policy'):
        shutil.copy2(build / name, folder / name)
    shutil.copytree(build / 'lang', folder / 'lang', symlinks=True)
    (folder / 'lang' / 'guest').unlink()
    shutil.copy2(LIB / 'hostile_guest.py', folder / 'lang' / 'guest')
    subprocess.run(['chmod', '-R', 'go+rX', folder], check=True)
    os.chmod(folder, 0o755)
    for parent in folder.parents:
        if os.stat(parent).st_uid == os.geteuid() and str(parent).startswith('/tmp/'):
            os.chmod(parent, 0o755)
    before, daemon.CAISSOND = daemon.CAISSOND, str(folder / 'caissond')
    try:
        web = Web(tmp_path_factory.mktemp('web'), '--set', 'engine.pool_max=0', '--set', 'engine.pool_shells=0', '--set',
                  'engine.sandboxes_owner_max=100')
    finally:
        daemon.CAISSOND = before
    web.description = None      # a guest that breaks its protocol is answered by whatever is safe
    Sandbox(web).good('DELETE')   # what the first one needs is there
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0, web.log.read_text()[-5000:]
    assert 'Sanitizer' not in web.log.read_text()


def descriptors(web):
    return len(os.listdir(f'/proc/{web.daemon.process.pid}/fd'))


class Flat:
    """Memory and descriptors of the daemon are what they were, whatever went on."""

    def __init__(self, web, most=64 << 20):
        self.web, self.most = web, most

    def __enter__(self):
        self.memory, self.descriptors = memory_of(self.web.daemon.process.pid), descriptors(self.web)

    def __exit__(self, kind, *_):
        if kind:
            return
        assert self.web.ask('GET', '/healthz')[0] == 200
        until(lambda: descriptors(self.web) <= self.descriptors + 2)
        assert memory_of(self.web.daemon.process.pid) - self.memory < self.most


def ask_for_a_while(web, method, path, body=None, seconds=1.5, **headers):
    """What came of it: a status, or None if it goes on and we have gone.  A client that does not read, or reads all."""
    connection = web.open(seconds)
    try:
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, {name.replace('_', '-'): value for name, value in headers.items()})
        answer = connection.getresponse()
        end = time.monotonic() + seconds
        while time.monotonic() < end and answer.read(1 << 16):
            pass
        return answer.status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@pytest.fixture(name='box')
def one(web):
    with Sandbox(web) as box:
        yield box


@pytest.mark.parametrize('act', PROCESS_ACTS)
def test_a_program(web, box, act):
    with Flat(web):
        path = f'{box.path}/processes'
        waited = ask_for_a_while(web, 'POST', path, {'args': [act]})
        assert waited in (None, 200, 422, 429, 500), waited
        assert ask_for_a_while(web, 'POST', path, {'args': [act]}, Accept='application/x-ndjson') in (None, 200)
        record = box.good('POST', '/processes', {'args': [act], 'stdin': True}, Prefer='respond-async')
        below = f'{path}/{record["id"]}'
        assert ask_for_a_while(web, 'POST', f'{below}/stdin?end=true', b'x' * 3000000) in (None, 204, 409)
        for more in ('signal', 'size'):
            assert web.ask('POST', f'{below}/{more}', {'signal': 'KILL'} if more == 'signal' else {'rows': 1, 'columns': 1})[0] in (204, 409)
        record = web.ask('GET', below)[2]
        assert record['state'] in ('running', 'over') and len(record['stdout']) <= 1 << 20
        assert 'error' in record or 'exit_code' in record or 'signal' in record or record['state'] == 'running'
        assert box.good('GET')['state'] == 'running'
        box.good('DELETE')


@pytest.mark.parametrize('act', FILE_ACTS)
def test_files(web, box, act):
    with Flat(web):
        for method, below, body, headers in [
                ('GET', f'/files?path={act}', None, {}), ('GET', f'/files?path={act}', None, {'Range': 'bytes=3-7'}), ('PUT', f'/files?path={act}', b'x' * 1000000, {}),
                ('GET', f'/files?path={act}&format=tar', None, {}), ('PUT', f'/files?path={act}&format=tar', b'x' * 1000000, {}),
                ('POST', f'/files?path={act}', b'--B\r\nContent-Disposition: form-data; filename=f\r\n\r\n' + b'x' * 500000 + b'\r\n--B--',
                 {'Content-Type': 'multipart/form-data; boundary=B'}),
                ('GET', f'/entries?path={act}', None, {}), ('GET', f'/entry?path={act}', None, {}), ('DELETE', f'/files?path={act}', None, {}),
                ('PATCH', f'/files?path={act}', {'action': 'folder'}, {}), ('GET', f'/watch?path={act}', None, {})]:
            status = ask_for_a_while(web, method, box.path + below, body, .4, **headers)
            assert status is None or 200 <= status < 600, (method, below, status)
        assert box.good('GET')['state'] == 'running'
        box.good('DELETE')


def test_clients_that_do_not_read_a_flood(web, box):
    with Flat(web, 160 << 20):
        open_ones = []
        for act in ('flood-out', 'huge-file', 'flood-events', 'flood-entries'):
            connection = web.open()
            if act == 'flood-out':
                connection.request('POST', f'{box.path}/processes', json.dumps({'args': [act]}), {'Accept': 'text/event-stream'})
            else:
                connection.request('GET', f'{box.path}/{"files" if act == "huge-file" else "watch" if act == "flood-events" else "entries"}?path={act}')
            open_ones.append(connection)
        time.sleep(3)
        assert web.ask('GET', '/healthz')[0] == 200
        for connection in open_ones:
            connection.close()
        box.good('DELETE')


@pytest.mark.parametrize('act', FATAL_ACTS)
def test_one_that_breaks_the_rules_loses_its_sandbox_and_no_other(web, act):
    with Flat(web), Sandbox(web) as other:
        box = Sandbox(web)
        waited = ask_for_a_while(web, 'POST', f'{box.path}/processes', {'args': [act]}, 5)
        assert waited in (None, 409, 422, 429, 500, 200), waited
        if act != 'close-engine':
            until(lambda: box.ask('GET')[0] == 404)
        assert other.good('GET')['state'] == 'running'
        box.ask('DELETE')
    assert web.log.read_text().count('not trusted') < 50   # however often it says it


def test_it_can_be_paused_looked_at_and_ended_while_it_floods(web, box):
    record = box.good('POST', '/processes', {'args': ['flood-small']}, Prefer='respond-async')
    until(lambda: box.good('GET', '/metrics')['processes'] >= 1)
    assert box.good('POST', '/pause')['state'] == 'paused'
    assert box.good('GET', '/metrics')['processes'] >= 1
    assert box.good('POST', '/resume')['state'] == 'running'
    assert box.good('GET', f'/processes/{record["id"]}')['state'] == 'running'
    began = time.monotonic()
    box.good('DELETE')
    assert time.monotonic() - began < 30
