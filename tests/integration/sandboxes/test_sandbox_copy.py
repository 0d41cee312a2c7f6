"""caisson sandbox cp: files and folders, both ways; and what a hostile sandbox may send in a folder's place."""

import io
import os
import signal
import subprocess
import tarfile

import pytest

from cli import CAISSON
from daemon import Daemon


@pytest.fixture(scope='module')
def daemon(tmp_path_factory):
    one = Daemon(tmp_path_factory.mktemp('daemon')).ready()
    yield one
    one.stop(signal.SIGTERM)


@pytest.fixture(scope='module')
def sandbox(daemon):
    return daemon.caisson('sandbox', 'create', '--disk', '200MiB', '--memory', '1GiB').out.strip()


@pytest.fixture
def place(daemon, sandbox):
    """An empty folder in the sandbox."""
    name = '/home/user/place'
    assert inside(daemon, sandbox, f'rm -rf {name}; mkdir {name}') == ''
    return f'{sandbox}:{name}'


def inside(daemon, sandbox, command):
    done = daemon.caisson('sandbox', 'exec', sandbox, '--', 'bash', '-c', command)
    assert done.status == 0, done.err
    return done.out


def cp(daemon, source, target, **more):
    return daemon.caisson('sandbox', 'cp', source, target, **more)


def copied(daemon, source, target, **more):
    done = cp(daemon, source, target, **more)
    assert done.status == 0 and done.err == '', done.err
    return done


def fill(folder):
    """A folder with what folders can have."""
    (folder / 'a/b').mkdir(parents=True)
    (folder / 'a/b/text').write_text('hello')
    (folder / 'empty').mkdir()
    (folder / 'none').write_bytes(b'')
    (folder / 'big').write_bytes(os.urandom(5 << 20))
    (folder / 'run.sh').write_text('#!/bin/sh\necho it runs\n')
    (folder / 'run.sh').chmod(0o755)
    (folder / 'link').symlink_to('a/b/text')
    (folder / 'nowhere').symlink_to('/nonexistent/x')
    (folder / 'ü ☃').write_text('a name')
    (folder / ('long' * 60)).write_text('a long name')
    os.utime(folder / 'none', (1000000000, 1000000000))
    return folder


def listing(folder):
    """{name: what it is}."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            key = os.path.relpath(path, folder)
            if os.path.islink(path):
                found[key] = ('link', os.readlink(path))
            elif os.path.isdir(path):
                found[key] = 'folder'
            else:
                with open(path, 'rb') as file:
                    found[key] = (file.read(), os.stat(path).st_mode & 0o777)
    return found


# ---- files ----

def test_a_file_goes_there_and_comes_back(daemon, sandbox, place, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / 'one').write_bytes(data)
    (tmp_path / 'one').chmod(0o750)
    copied(daemon, tmp_path / 'one', f'{place}/two')
    assert inside(daemon, sandbox, 'stat -c %a-%s /home/user/place/two') == f'750-{3 << 20}\n'
    copied(daemon, f'{place}/two', tmp_path / 'back')
    assert (tmp_path / 'back').read_bytes() == data and (tmp_path / 'back').stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(tmp_path)) == ['back', 'one'], 'nothing half-done stays'


def test_one_file_after_the_other_arrives(daemon, place, tmp_path):
    """The end of one may come when the sandbox has no room even for that news."""
    (tmp_path / 'one').write_bytes(bytes(1 << 20))
    for _ in range(40):
        copied(daemon, tmp_path / 'one', f'{place}/one')


def test_into_a_folder_a_file_keeps_its_name(daemon, sandbox, place, tmp_path):
    (tmp_path / 'one').write_text('x')
    copied(daemon, tmp_path / 'one', place)
    copied(daemon, tmp_path / 'one', f'{place}/new/')
    assert inside(daemon, sandbox, 'cd place; ls one new/one') == 'new/one\none\n'
    (tmp_path / 'folder').mkdir()
    copied(daemon, f'{place}/one', tmp_path / 'folder')
    assert (tmp_path / 'folder/one').read_text() == 'x'
    copied(daemon, f'{place}/one', '.', cwd=tmp_path / 'folder')
    copied(daemon, tmp_path / 'one', f'{sandbox}:')
    assert inside(daemon, sandbox, 'cat /home/user/one') == 'x'


def test_standard_input_and_output_are_files(daemon, sandbox, place):
    data = bytes(range(256)) * 9000
    copied(daemon, '-', f'{place}/in', stdin=data)
    assert copied(daemon, f'{place}/in', '-').bytes == data
    copied(daemon, '-', f'{place}/in', stdin=b'')
    assert copied(daemon, f'{place}/in', '-').bytes == b''


def test_what_is_not_there_is_told(daemon, sandbox, place, tmp_path):
    done = cp(daemon, tmp_path / 'nix', place)
    assert done.status == 64 and 'nix' in done.err
    done = cp(daemon, f'{place}/nix', tmp_path / 'x')
    assert done.status == 64 and 'nix' in done.err
    assert not (tmp_path / 'x').exists()
    (tmp_path / 'one').write_text('x')
    assert cp(daemon, f'{sandbox}:/etc/shadow', tmp_path / 'x').status != 0
    assert cp(daemon, tmp_path / 'one', f'{sandbox}:/usr/bin/x').status != 0
    assert cp(daemon, tmp_path / 'one', f'{sandbox}:/dev/null/x').status != 0
    assert cp(daemon, f'{sandbox}:/home/user', tmp_path / 'one').status == 64
    assert cp(daemon, f'{place}/../place/.', tmp_path / 'no/such/folder').status == 64


def test_a_full_disk_leaves_nothing_half_done(daemon, sandbox, place, tmp_path):
    with open(tmp_path / 'large', 'wb') as file:
        file.truncate(300 << 20)
    done = cp(daemon, tmp_path / 'large', f'{place}/large')
    assert done.status == 125 and 'full' in done.err, done.err
    assert inside(daemon, sandbox, 'ls -A place') == ''


def test_names_with_anything_in_them_go_both_ways(daemon, place, tmp_path):
    for name in ('with blank', 'a&b=c?d#e', 'per%41cent', 'ümläut', '-dash'):
        (tmp_path / 'in').write_text(name)
        copied(daemon, tmp_path / 'in', f'{place}/{name}')
        copied(daemon, f'{place}/{name}', tmp_path / 'out')
        assert (tmp_path / 'out').read_text() == name
    (tmp_path / 'with:colon').write_text('x')
    copied(daemon, './with:colon', place, cwd=tmp_path)
    assert copied(daemon, f'{place}/with:colon', '-').out == 'x'


# ---- folders ----

def test_a_folder_goes_there_and_comes_back(daemon, sandbox, place, tmp_path):
    source = fill(tmp_path / 'source')
    copied(daemon, source, place)
    assert inside(daemon, sandbox, 'place/source/run.sh; cat place/source/link; stat -c %Y place/source/none; stat -c %U place/source/none') \
        == 'it runs\nhello1000000000\nuser\n'
    copied(daemon, f'{place}/source', tmp_path / 'back')
    assert listing(tmp_path / 'back') == listing(source)
    copied(daemon, f'{place}/source', tmp_path / 'back')
    assert listing(tmp_path / 'back/source') == listing(source), 'into a folder that is there'


def test_what_is_in_a_folder_can_be_copied_without_it(daemon, sandbox, place, tmp_path):
    (tmp_path / 'source').mkdir()
    (tmp_path / 'source/x').write_text('x')
    copied(daemon, f'{tmp_path}/source/.', place)
    assert inside(daemon, sandbox, 'ls place') == 'x\n'
    copied(daemon, '.', f'{place}/again', cwd=tmp_path / 'source')
    assert inside(daemon, sandbox, 'ls place/again') == 'x\n'
    (tmp_path / 'to').mkdir()
    copied(daemon, f'{place}/.', tmp_path / 'to')
    assert sorted(os.listdir(tmp_path / 'to')) == ['again', 'x']


def test_a_folder_to_standard_output_is_a_tar(daemon, place, tmp_path):
    copied(daemon, fill(tmp_path / 'source'), place)
    with tarfile.open(fileobj=io.BytesIO(copied(daemon, f'{place}/source', '-').bytes)) as tar:
        assert './a/b/text' in tar.getnames()


def test_a_link_to_a_folder_is_followed_where_it_is_named(daemon, sandbox, place, tmp_path):
    inside(daemon, sandbox, 'cd place; mkdir real; echo x >real/file; ln -s real link; ln -s real/file one')
    copied(daemon, f'{place}/link', tmp_path / 'got')
    assert (tmp_path / 'got/file').read_text() == 'x\n'
    copied(daemon, f'{place}/one', tmp_path / 'one')
    assert (tmp_path / 'one').read_text() == 'x\n' and not (tmp_path / 'one').is_symlink()


def test_what_is_no_file_is_left_out_and_told(daemon, sandbox, place, tmp_path):
    (tmp_path / 'source').mkdir()
    os.mkfifo(tmp_path / 'source/pipe')
    (tmp_path / 'source/x').write_text('x')
    done = cp(daemon, tmp_path / 'source', place)
    assert done.status == 0 and 'pipe' in done.err
    inside(daemon, sandbox, 'mkfifo place/source/other')
    done = cp(daemon, f'{place}/source', tmp_path / 'back')
    assert done.status == 0 and 'other' in done.err
    assert os.listdir(tmp_path / 'back') == ['x']


def test_a_large_folder_is_no_matter_of_memory(daemon, sandbox, place, tmp_path):
    inside(daemon, sandbox, 'mkdir place/big; head -c 150000000 /dev/zero >place/big/zeros')
    env = {**daemon.env, 'CAISSON_ENGINE_SOCKET': str(daemon.path)}
    done = subprocess.run(['bash', '-c', 'ulimit -v 120000; exec "$@"', '-', CAISSON, 'sandbox', 'cp', f'{place}/big', str(tmp_path / 'big')], env=env,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'big/zeros').stat().st_size == 150000000
    inside(daemon, sandbox, 'rm -rf place')


# ---- what a sandbox may send: tar there is the sandbox' own program, and may be anything ----

HOSTILE = {
    'above': [('../escaped', 'file', b'x')],
    'above, in the middle': [('a/../../escaped', 'file', b'x')],
    'absolute': [('{outside}/escaped', 'file', b'x')],
    'through a link': [('door', 'link', '{outside}'), ('door/escaped', 'file', b'x')],
    'through a link to above': [('door', 'link', '..'), ('door/escaped', 'file', b'x')],
    'through two links': [('a', 'link', 'b'), ('b', 'link', '{outside}'), ('a/escaped', 'file', b'x')],
    'over a link': [('door', 'link', '{outside}/victim'), ('door', 'file', b'x')],
    'a folder over a link': [('door', 'link', '{outside}'), ('door', 'folder', b''), ('door/escaped', 'file', b'x')],
    'a hard link to outside': [('door', 'hard', '{outside}/victim'), ('door', 'file', b'x')],
    'a hard link above': [('door', 'hard', '../outside/victim'), ('door', 'file', b'x')],
    'a hard link by a link': [('out', 'link', '{outside}'), ('door', 'hard', 'out/victim'), ('door', 'file', b'x')],
    'a mode by a link': [('door', 'link', '{outside}/victim'), ('door', 'folder', b'')],
}


def hostile_tar(entries, outside):
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode='w') as tar:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name.format(outside=outside))
            info.mode = 0o777
            if kind == 'file':
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            else:
                info.type = {'link': tarfile.SYMTYPE, 'hard': tarfile.LNKTYPE, 'folder': tarfile.DIRTYPE}[kind]
                info.linkname = content.format(outside=outside) if kind != 'folder' else ''
                tar.addfile(info)
    return text.getvalue()


@pytest.fixture
def liar(tmp_path):
    """A daemon of our own making, whose every folder is the bytes that it is told."""
    import http.server
    import socketserver
    import threading

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = 'HTTP/1.1'
        address_string = log_message = lambda *_: ''
        whole = True

        def do_GET(self):
            if '/entry?' in self.path:
                self.send(b'{"type": "folder", "mode": "0755", "path": "x", "name": "x"}')
            else:
                self.send(self.server.tar)

        def send(self, body):
            self.send_response(200)
            self.send_header('Content-Length', str(len(body) + self.server.missing * ('entry' not in self.path)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except BrokenPipeError:        # refused before its end
                pass
            if self.server.missing:
                self.close_connection = True

    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True
        tar, missing = b'', 0

    server = Server(str(tmp_path / 's.http'), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def take(tmp_path, target):
    env = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'CAISSON_ENGINE_SOCKET': str(tmp_path / 's')}
    return subprocess.run([CAISSON, 'sandbox', 'cp', f'sbx_{"0" * 32}:x', str(target)], env=env, stderr=subprocess.PIPE, check=False)


@pytest.mark.parametrize('how', HOSTILE)
@pytest.mark.parametrize('twice', [False, True])
def test_nothing_is_written_outside(liar, tmp_path, how, twice):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'victim').write_text('safe')
    (outside / 'victim').chmod(0o600)
    (tmp_path / 'target').mkdir()
    entries = HOSTILE[how]
    parts = [entries] if not twice else [entries[:-1], entries[-1:]]   # a link of one copy, and a name of the next
    for part in parts:
        liar.tar = hostile_tar(part, outside)
        take(tmp_path, f'{tmp_path}/target/in')
        take(tmp_path, f'{tmp_path}/target/in/.')
    assert os.listdir(outside) == ['victim'] and (outside / 'victim').read_text() == 'safe'
    assert (outside / 'victim').stat().st_mode & 0o777 == 0o600 and (outside / 'victim').stat().st_nlink == 1
    assert sorted(os.listdir(tmp_path)) == ['outside', 's.http', 'target']
    assert os.listdir(tmp_path / 'target') == ['in']


def test_no_more_permissions_than_our_umask_leaves(liar, tmp_path):
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode='w') as tar:
        info = tarfile.TarInfo('x')
        info.mode, info.uid = 0o6777, 12345
        tar.addfile(info, io.BytesIO())
    liar.tar = text.getvalue()
    assert take(tmp_path, tmp_path / 'in').returncode == 0
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / 'in/x').stat().st_mode & 0o7777 == 0o777 & ~mask
    assert (tmp_path / 'in/x').stat().st_uid == os.geteuid()


@pytest.mark.parametrize('text', [b'', b'no tar at all' * 100, bytes(10240)])
def test_what_is_no_tar_is_an_error_or_nothing(liar, tmp_path, text):
    liar.tar = text
    done = take(tmp_path, tmp_path / 'in')
    assert done.returncode in (0, 125) and os.listdir(tmp_path / 'in') == []
    assert done.returncode == 0 or done.stderr.startswith(b'caisson: ')


def test_a_folder_that_could_not_be_read_is_an_error(daemon, sandbox, place, tmp_path):
    inside(daemon, sandbox, 'mkdir place/source place/source/closed; echo x >place/source/open; chmod 0 place/source/closed')
    done = cp(daemon, f'{place}/source', tmp_path / 'in')
    inside(daemon, sandbox, 'chmod 700 place/source/closed')
    assert done.status == 125 and 'not whole' in done.err


def test_a_folder_that_was_cut_is_an_error(liar, tmp_path):
    liar.tar, liar.missing = hostile_tar([('x', 'file', b'x')], ''), 100000
    done = take(tmp_path, tmp_path / 'in')
    assert done.returncode == 125 and b'not whole' in done.stderr
