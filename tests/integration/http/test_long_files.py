"""Large and many files of tenants: while they are listed, moved and removed, the event loop serves others (docs/design/loop-steps.md)."""

import contextlib
import os
import re
import signal
import socket
import time

import pytest

from daemon import until
from steps import Probed, TRIES, place as addressed, steps_of

LARGE_MIB = 256
READ_MIB = 32
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


def opened(place, name):
    """Whether the daemon has the file open, deleted or not."""
    links = [f'/proc/{place.daemon.process.pid}/fd/{number}' for number in os.listdir(f'/proc/{place.daemon.process.pid}/fd')]
    found = []
    for link in links:
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(link))
    return any(name in target for target in found)


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


@pytest.mark.parametrize('reads_all', [False, True])
def test_a_large_stored_file_is_deleted_while_a_client_reads_it(place, reads_all):
    content = os.urandom(1 << 20) * READ_MIB      # more than the sockets take

    def prepare():
        nonlocal one, reader
        one = expect(place.ask('POST', '/v1/files?name=large', content), 201)['id']
        reader = place.open(60)
        reader.request('GET', f'/v1/files/{one}')
        until(lambda: opened(place, one))
        enlarge(place.folder / 'files' / one)
        expect(place.ask('DELETE', f'/v1/files/{one}'), 204)

    def leave():
        answer = reader.getresponse()
        assert answer.read(len(content) if reads_all else 100) == (content if reads_all else content[:100])
        answer.close()
        reader.close()
        until(lambda: not opened(place, one))
    one = reader = None
    steps_of(place, leave, prepare=prepare, at='server.c')


PARTS = 100


def form(content=b'x'):
    parts = [f'--xyz\r\nContent-Disposition: form-data; name="f"; filename="{number}"\r\n\r\n'.encode() + content + b'\r\n' for number in range(PARTS)]
    return b''.join(parts) + b'--xyz--\r\n'


FORM = {'Content_Type': 'multipart/form-data; boundary=xyz'}


def listed(place, limit=1000):
    """All stored files, by pages."""
    files, cursor = [], ''
    while cursor is not None:
        answer = expect(place.ask('GET', f'/v1/files?limit={limit}{cursor}'), 200)
        assert len(answer['files']) <= limit
        files += answer['files']
        cursor = f'&cursor={answer["next"]}' if 'next' in answer else None
    return files


def test_many_files_of_an_upload_get_their_rows(place):
    def upload():
        files = expect(place.ask('POST', '/v1/files', form(), **FORM), 201)['files']
        assert [file['name'] for file in files] == [str(number) for number in range(PARTS)]
        known = {file['id'] for file in listed(place)}
        assert {file['id'] for file in files} <= known <= set(names(place.folder / 'files'))
        for file in files[::30]:
            assert expect(place.ask('GET', f'/v1/files/{file["id"]}'), 200) == b'x'
    steps_of(place, upload, creates=place.folder / 'files')


def test_a_list_of_many_stored_files_is_read(place):
    while len(files := listed(place, 1000)) < 1050:
        expect(place.ask('POST', '/v1/files', form(), **FORM), 201)
    assert len({file['id'] for file in files}) == len(files) and listed(place, 333) == files
    after = expect(place.ask('GET', f'/v1/files?limit=1000&before={files[100]["id"]}'), 200)['files']
    assert after == files[101:]
    steps_of(place, lambda: listed(place))


def test_a_client_goes_while_the_rows_of_its_files_are_added_or_listed(place):
    before = len(listed(place))
    body = form()
    head = f'POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: {len(body)}\r\n\r\n'
    for number in range(30):
        with socket.create_connection(('127.0.0.1', place.port), timeout=60) as upload:
            upload.sendall(head.encode() + body if number % 3 else b'GET /v1/files?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n')
            time.sleep(number * 0.001)
    until(lambda: not [name for name in names(place.folder / 'files') if name.startswith('new.')])
    files = until(lambda: (lambda files: len(files) == len(names(place.folder / 'files')) and files)(listed(place)))
    assert (len(files) - before) % PARTS == 0      # all files of an upload, or none


def test_the_daemon_stops_while_rows_are_added(tmp_path):
    body = form()
    head = f'POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=xyz\r\nContent-Length: {len(body)}\r\n\r\n'
    with Probed(tmp_path, '--set', 'engine.shutdown_ms=0s') as place:
        uploads = [socket.create_connection(('127.0.0.1', place.port), timeout=60) for _ in range(5)]
        for upload in uploads:
            upload.sendall(head.encode() + body)
        until(lambda: names(place.folder / 'files'))
        for upload in uploads[::2]:
            upload.close()
        assert place.stop() == 0 and 'Sanitizer' not in place.log.read_text()
    with Probed(tmp_path) as place:
        files = listed(place)
        assert len(files) % PARTS == 0 and len(names(place.folder / 'files')) == len(files)
    for upload in uploads:
        upload.close()


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
        for _ in range(TRIES):
            wait()
            place.ask('GET', '/healthz')
            long = [us for us, address in place.steps() if 'daemon.c' in addressed(address)]
            if not long:
                break
            prepare()
        assert not long
    finally:
        place.stop()


# ---- workspaces ----

MANY = 8000


def workspace(place, name):
    """The folder of its files."""
    one, = [one for one in expect(place.ask('GET', '/v1/workspaces'), 200)['workspaces'] if one['name'] == name]
    return place.folder / 'workspaces' / one['id'] / 'files'


def put(place, name, path='first', status=201):
    return expect(place.ask('PUT', f'/v1/workspaces/{name}/file?path={path}', b'x'), status)


def fill_workspace(place, name):
    """MANY names of one file, which take less time to make than files, in folders that belong to the daemon's account."""
    put(place, name)
    folder = workspace(place, name)
    owner = folder.stat()
    for number in range(MANY):
        below = folder / f'd{number // 500}'
        if number % 500 == 0:
            below.mkdir(exist_ok=True)
            os.chown(below, owner.st_uid, owner.st_gid)
        os.link(folder / 'first', below / str(number))


def stored_bytes(place, name):
    return [one['stored_bytes'] for one in place.ask('GET', '/v1/workspaces')[2]['workspaces'] if one['name'] == name]


@pytest.fixture(name='many', scope='module')
def own_workspace(place):
    fill_workspace(place, 'many')
    return 'many'


def test_many_files_are_listed(place, many):
    def list_files():
        answer = expect(place.ask('GET', f'/v1/workspaces/{many}/files'), 200)
        assert len(answer['files']) >= MANY and not answer['truncated']
    steps_of(place, list_files)


def test_a_file_is_put_beside_many_and_deleted(place, many):
    def change():
        put(place, many, 'a/b')
        assert stored_bytes(place, many) == [512 + (MANY + 2) * 513]
        expect(place.ask('DELETE', f'/v1/workspaces/{many}/file?path=a/b'), 204)
        assert stored_bytes(place, many) == [512 + (MANY + 1) * 513]
    steps_of(place, change)


@pytest.mark.parametrize('method', ['PUT', 'DELETE'])
def test_a_large_file_is_replaced_and_deleted(place, method):
    def prepare():
        put(place, 'large', 'x')
        enlarge(workspace(place, 'large') / 'x')

    def change():
        expect(place.ask(method, '/v1/workspaces/large/file?path=x', b'x' if method == 'PUT' else None), 201 if method == 'PUT' else 204)
    steps_of(place, change, prepare=prepare)


def test_a_workspace_with_many_files_is_deleted(place):
    def delete():
        expect(place.ask('DELETE', '/v1/workspaces/removed'), 204)
        assert not [name for name in names(place.folder / 'workspaces') if name.startswith('gone.')]
        expect(place.ask('GET', '/v1/workspaces/removed/files'), 404)
    steps_of(place, delete, prepare=lambda: fill_workspace(place, 'removed'))


def begin_request(place, method, path, body=b''):
    """A request whose answer is not read yet."""
    connection = socket.create_connection(('127.0.0.1', place.port), timeout=60)
    connection.sendall(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
    return connection


def test_a_workspace_that_a_request_changes_is_busy(place, many):
    def is_refused():
        with begin_request(place, 'PUT', f'/v1/workspaces/{many}/file?path=busy', b'x'):
            status, _, problem = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'workspace': many})
            return status == 429 and problem['field'] == '/workspace'
    until(is_refused)
    until(lambda: place.ask('DELETE', f'/v1/workspaces/{many}/file?path=first')[0] == 204)
    put(place, many)


@pytest.mark.parametrize('method, path', [('GET', 'files'), ('PUT', 'file?path=x'), ('DELETE', 'file?path=first'), ('DELETE', '')])
def test_the_client_goes_while_a_workspace_is_worked_on(place, method, path):
    if not workspace_exists(place, 'gone'):
        fill_workspace(place, 'gone')
    for _ in range(3):
        begin_request(place, method, f'/v1/workspaces/gone/{path}'.rstrip('/'), b'x' if method == 'PUT' else b'').close()
    until(lambda: place.ask('PUT', '/v1/workspaces/gone/file?path=first', b'x')[0] == 201)
    until(lambda: not [name for name in names(place.folder / 'workspaces') if name.startswith('gone.')])
    files = [path for path in workspace(place, 'gone').rglob('*') if path.is_file()]
    assert stored_bytes(place, 'gone') == [512 + sum(512 + file.stat().st_size for file in files)]


def workspace_exists(place, name):
    return bool(stored_bytes(place, name))


def test_workspaces_with_many_files_expire(tmp_path):
    def prepare():
        with Probed(tmp_path) as made:
            for number in range(3):
                fill_workspace(made, f'w{number}')
        time.sleep(1.1)
        return Probed(tmp_path, '--set', 'engine.workspace_keep_ms=1s')
    for _ in range(TRIES):
        with prepare() as place:
            until(lambda: not names(tmp_path / 'workspaces'))
            place.ask('GET', '/healthz')
            assert not place.ask('GET', '/v1/workspaces')[2]['workspaces']
            long = [us for us, address in place.steps() if 'daemon.c' in addressed(address)]
        if not long:
            break
    assert not long


def test_the_daemon_ends_while_workspaces_are_worked_on(tmp_path):
    with Probed(tmp_path) as place:
        for number in range(3):
            fill_workspace(place, f'w{number}')
        sent = [begin_request(place, 'GET', '/v1/workspaces/w0/files'), begin_request(place, 'PUT', '/v1/workspaces/w1/file?path=x', b'x')]
        sent += [begin_request(place, 'DELETE', f'/v1/workspaces/w{number}') for number in (0, 2)]
        time.sleep(0.02)
        place.daemon.process.send_signal(signal.SIGTERM)
        for connection in sent:
            connection.close()
    with Probed(tmp_path) as place:
        listed = {one['id']: one['stored_bytes'] for one in place.ask('GET', '/v1/workspaces')[2]['workspaces']}
        assert sorted(listed) == sorted(names(tmp_path / 'workspaces'))
        for one, size in listed.items():
            files = [path for path in (tmp_path / 'workspaces' / one / 'files').rglob('*') if path.is_file()]
            assert size == 512 + sum(512 + file.stat().st_size for file in files)


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
