"""Large and many files of tenants: while they are listed, moved and removed, the event loop serves others (docs/design/loop-steps.md)."""

import contextlib
import os
import re
import signal
import socket
import time

import pytest

from daemon import until
from steps import Probed, place as addressed, steps_of

LARGE_MIB = 256
KEY = 'e2b_' + '0' * 40


@pytest.fixture(name='place', scope='module')
def own_daemon(tmp_path_factory):
    place = Probed(tmp_path_factory.mktemp('files'), '--set', 'engine.files_bytes_max=20GiB')
    yield place
    assert place.stop() == 0


def enlarge(path):
    """The file has LARGE_MIB more, as a client could have sent them."""
    with open(path, 'ab') as file:
        for number in range(LARGE_MIB):
            file.write(number.to_bytes(2, 'big') * (1 << 19))


def expect(got, status):
    assert got[0] == status, got
    return got[2]


def names(folder):
    return os.listdir(folder) if folder.exists() else []


# ---- stored files ----

def test_a_large_stored_file_is_deleted(place):
    def prepare():
        nonlocal one
        one = expect(place.ask('POST', '/v1/files?name=large', b'x'), 201)['id']
        enlarge(place.folder / 'files' / one)

    def delete():
        expect(place.ask('DELETE', f'/v1/files/{one}'), 204)
        assert place.ask('GET', f'/v1/files/{one}/info')[0] == 404
        until(lambda: one not in names(place.folder / 'files'))
    one = None
    steps_of(place, delete, prepare=prepare)


def test_the_client_of_a_large_upload_goes(place):
    def prepare():
        nonlocal upload
        upload = socket.create_connection(('127.0.0.1', place.port), timeout=60)
        upload.sendall(b'POST /v1/files?name=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nbegin')
        name = until(lambda: [name for name in names(place.folder / 'files') if name.startswith('new.')])[0]
        enlarge(place.folder / 'files' / name)

    def leave():
        upload.close()
        until(lambda: not [name for name in names(place.folder / 'files') if name.startswith('new.')])
    upload = None
    steps_of(place, leave, prepare=prepare)


def test_large_files_expire(tmp_path):
    expires = ['--set', 'engine.files_keep_ms=1s']

    def prepare():
        nonlocal place
        if place:
            place.stop()
        place = Probed(tmp_path, *expires)
        for number in range(3):
            enlarge(tmp_path / 'files' / expect(place.ask('POST', f'/v1/files?name={number}', b'x'), 201)['id'])
        place.daemon.process.kill()
        place.daemon.process.wait()
        time.sleep(1.1)
        place = Probed(tmp_path, *expires)

    def wait():
        until(lambda: not [name for name in names(tmp_path / 'files') if name.startswith('file_')])
    place = None
    try:
        prepare()
        for _ in range(4):
            wait()
            place.ask('GET', '/healthz')
            long = [us for us, address in place.steps() if 'daemon.c' in addressed(address)]
            if not long:
                break
            prepare()
        assert not long
    finally:
        place.stop()


# ---- files of sandboxes ----

def new_sandbox(place, template='code-interpreter-v1'):
    body = {'templateID': template, 'timeout': 600}
    return expect(place.ask('POST', '/sandboxes', body, **{'X-API-Key': KEY}), 201)['sandboxID']


def fill(place, sandbox):
    """Half as much as a file is enlarged by: it takes memory."""
    code = f'import os\nwith open("/home/user/large", "wb") as file:\n    for _ in range({LARGE_MIB // 2}): file.write(os.urandom(1 << 20))\n'
    status, _, answer = place.ask('POST', '/execute', {'code': code}, **{'E2b-Sandbox-Id': sandbox, 'E2b-Sandbox-Port': '49999'})
    assert status == 200 and b'"error"' not in answer, answer


def control(place, method, path, body=None):
    return place.ask(method, path, body, **{'X-API-Key': KEY})


def test_a_sandbox_with_large_files_ends(place):
    def prepare():
        nonlocal sandbox
        sandbox = new_sandbox(place)
        fill(place, sandbox)

    def end():
        expect(control(place, 'DELETE', f'/sandboxes/{sandbox}'), 204)
        time.sleep(0.5)
    sandbox = None
    steps_of(place, end, 'native.c', prepare)


def test_a_large_snapshot_is_deleted(place):
    def prepare():
        nonlocal snapshot
        snapshot = expect(control(place, 'POST', f'/sandboxes/{sandbox}/snapshots', {}), 201)['snapshotID']
        enlarge(place.folder / 'snapshots' / f'{snapshot}.tar')

    def delete():
        expect(control(place, 'DELETE', f'/templates/{snapshot}'), 204)
        assert not [name for name in names(place.folder / 'snapshots') if snapshot in name]
    snapshot, sandbox = None, new_sandbox(place, 'base')
    steps_of(place, delete, prepare=prepare)
    expect(control(place, 'DELETE', f'/sandboxes/{sandbox}'), 204)


def unnamed_files(place):
    """Files without a name in the state folder that the daemon has open."""
    found = []
    for number in os.listdir(top := f'/proc/{place.daemon.process.pid}/fd'):
        with contextlib.suppress(FileNotFoundError):     # closed meanwhile
            if re.match(re.escape(str(place.folder)) + r'/#\d+ \(deleted\)', os.readlink(f'{top}/{number}')):
                found.append(f'{top}/{number}')
    return found


def test_a_paused_sandbox_with_large_files_is_deleted(place):
    def prepare():
        nonlocal sandbox
        sandbox = new_sandbox(place, 'base')
        expect(control(place, 'POST', f'/sandboxes/{sandbox}/pause', {'memory': False}), 204)
        image, = unnamed_files(place)
        enlarge(image)

    def delete():
        expect(control(place, 'DELETE', f'/sandboxes/{sandbox}'), 204)
        until(lambda: not unnamed_files(place))
    sandbox = None
    steps_of(place, delete, prepare=prepare)


def test_the_daemon_ends_while_files_are_removed(tmp_path):
    place = Probed(tmp_path)
    ids = [expect(place.ask('POST', f'/v1/files?name={number}', b'x'), 201)['id'] for number in range(4)]
    for one in ids:
        enlarge(tmp_path / 'files' / one)
    for one in ids:
        expect(place.ask('DELETE', f'/v1/files/{one}'), 204)
    assert place.daemon.stop(signal.SIGTERM) == 0
    assert not [name for name in names(tmp_path / 'files') if name.startswith('file_')]
