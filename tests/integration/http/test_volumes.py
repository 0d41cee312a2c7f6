"""Volumes: file systems of a tenant that outlive programs; their quotas, owners, users and removal."""

import concurrent.futures
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

from cli import caisson
from daemon import supervisors, until
from test_files_http import Place
from web import Web

MIB = 1 << 20
SCOPES = 'run,read,files,sandboxes'


def why_not():
    if os.geteuid() != 0:
        return 'needs root: volumes are mounted by root of the host'
    if not os.access('/dev/loop-control', os.R_OK | os.W_OK):
        return 'needs loop devices: /dev/loop-control'
    if not os.access('/sbin/mke2fs', os.X_OK):
        return 'needs e2fsprogs: /sbin/mke2fs'
    return ''


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or 'no reason')


def make(folder, *options):
    place = Place(folder)
    place.alice = place.make('a', '--tenant', 'alice', '--scopes', SCOPES)
    place.mallory = place.make('m', '--tenant', 'mallory', '--scopes', SCOPES)
    return place.start(*options)


def create(place, name, size=16 * MIB, key=None):
    status, headers, answer = place.ask('POST', '/v1/volumes', {'name': name, 'size_bytes': size}, key)
    assert status == 201, answer
    assert headers['Location'] == f'/v1/volumes/{name}' and answer['path'] == f'/mnt/{name}' and answer['size_bytes'] == size
    return answer


def remove(place, name, key=None):
    return place.ask('DELETE', f'/v1/volumes/{name}', key=key)[0]


def names(place, key=None):
    return [one['name'] for one in place.ask('GET', '/v1/volumes', key=key)[2]['volumes']]


def images(place):
    folder = place.folder / 'volumes'
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def sandbox(place, **more):
    status, _, answer = place.ask('POST', '/v1/sandboxes', more)
    assert status == 201, answer
    return answer['id']


def execute(place, one, command, **more):
    status, _, answer = place.ask('POST', f'/v1/sandboxes/{one}/processes', {'command': command, **more})
    assert status == 200, answer
    return answer


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    place = make(tmp_path_factory.mktemp('volumes'))
    yield place
    assert place.web.daemon.stop(signal.SIGTERM) == 0


# ---- what lasts, and for whom ----

def test_a_volume_lasts_from_run_to_run_and_to_sandboxes(place):
    create(place, 'lasts')
    first = place.run('echo 1 > /mnt/lasts/a; mkdir /mnt/lasts/d; stat -c %U /mnt/lasts/a; pwd', volumes=['lasts'])
    assert first['stdout'] == 'user\n/home/user\n' and first['volumes'] == ['lasts'] and first['files'] == []
    python = place.run('print(open("/mnt/lasts/a").read())\nopen("/mnt/lasts/b", "w").write("2")', language='python', volumes=['lasts'])
    assert python['stdout'] == '1\n\n' and python['status'] == 'completed'
    one = sandbox(place, volumes=['lasts'])
    assert place.ask('GET', f'/v1/sandboxes/{one}')[2]['volumes'] == ['lasts']
    done = execute(place, one, 'cat /mnt/lasts/a /mnt/lasts/b; echo 3 > /mnt/lasts/c; id -un')
    assert done['stdout'] == '1\n2user\n' and done['exit_code'] == 0
    both = place.run('cat /mnt/lasts/c', volumes=['lasts'])      # while the sandbox has it
    assert both['stdout'] == '3\n'
    _, _, context = place.ask('POST', f'/v1/sandboxes/{one}/contexts', {'language': 'python'})
    _, _, record = place.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': 'print(open("/mnt/lasts/c").read())'})
    assert record['stdout'] == '3\n\n' and record['volumes'] == ['lasts']
    assert place.ask('DELETE', f'/v1/sandboxes/{one}')[0] == 204
    assert remove(place, 'lasts') == 204 and 'lasts' not in names(place)


def test_a_program_without_the_volume_does_not_see_it(place):
    create(place, 'hidden')
    record = place.run('ls -A /mnt; ls /tmp; cat /proc/self/mounts | grep -c ext4.*loop')
    assert record['stdout'].splitlines() == ['data', '0'] and 'volumes' not in record       # a link to the home directory
    record = place.run('ls -A /mnt; echo x > /mnt/x; mkdir /mnt/y', volumes=['hidden'])
    assert record['stdout'] == 'hidden\n' and record['stderr'].count('Read-only file system') == 2
    assert remove(place, 'hidden') == 204


def test_volumes_of_another_tenant_are_not_there(place):
    create(place, 'secret')
    record = place.run('ls /mnt', key=place.mallory, volumes=['secret'])
    unknown = place.run('ls /mnt', key=place.mallory, volumes=['unknown'])
    assert record['status'] == unknown['status'] == 'bad_request' and record['error']['field'] == '/volumes'
    assert record['error']['message'].replace('secret', 'unknown') == unknown['error']['message']
    for method in ('GET', 'DELETE'):
        answers = [place.ask(method, f'/v1/volumes/{name}', key=place.mallory) for name in ('secret', 'unknown')]
        assert [answer[0] for answer in answers] == [404, 404] and answers[0][2]['detail'] == answers[1][2]['detail']
    assert names(place, place.mallory) == [] and 'secret' in names(place)
    create(place, 'secret', key=place.mallory)       # a name belongs to nobody but its tenant
    assert place.run('ls /mnt/secret | wc -l', key=place.mallory, volumes=['secret'])['stdout'] == '0\n'
    assert remove(place, 'secret', place.mallory) == 204 and remove(place, 'secret') == 204


def test_read_only_is_read_only(place):
    create(place, 'fixed')
    place.run('echo 1 > /mnt/fixed/a', volumes=['fixed'])
    record = place.run('cat /mnt/fixed/a; echo 2 > /mnt/fixed/a; touch /mnt/fixed/b; rm -f /mnt/fixed/a; chmod 0 /mnt/fixed/a', volumes=['fixed:ro'])
    assert record['stdout'] == '1\n' and record['stderr'].count('Read-only file system') == 4 and record['volumes'] == ['fixed:ro']
    with concurrent.futures.ThreadPoolExecutor() as pool:      # a reader beside a writer
        reader = pool.submit(place.run, 'until [ -s /mnt/fixed/b ]; do sleep .02; done; cat /mnt/fixed/b', volumes=['fixed:ro'])
        place.run('sleep .2; echo new > /mnt/fixed/b', volumes=['fixed'])
        assert reader.result()['stdout'] == 'new\n'
    assert remove(place, 'fixed') == 204


def test_two_writers_share_one_file_system(place):
    create(place, 'shared')
    code = 'for i in $(seq 200); do echo $0$i >> /mnt/shared/log; done'
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert all(done['status'] == 'completed' for done in pool.map(lambda _: place.run(code, volumes=['shared']), range(4)))
    assert place.run('wc -l < /mnt/shared/log', volumes=['shared'])['stdout'] == '800\n'
    assert remove(place, 'shared') == 204


# ---- quotas ----

def test_bytes_are_bounded_even_those_without_a_name(place):
    create(place, 'small')
    record = place.run('head -c 200M /dev/zero > /mnt/small/a; stat -c %s /mnt/small/a', volumes=['small'])
    assert 'No space left on device' in record['stderr'] and int(record['stdout']) < 16 * MIB
    code = '''
        import os
        os.unlink("/mnt/small/a")
        files, written = [], 0
        try:
            for i in range(64):
                files.append(open(f"/mnt/small/{i}", "wb", buffering=0))
                os.unlink(f"/mnt/small/{i}")
                written += files[-1].write(bytes(1 << 20))
                os.fsync(files[-1].fileno())
        except OSError as error:
            print(error.strerror, written < 16 << 20)
        '''.replace('\n        ', '\n')
    assert place.run(code, language='python', volumes=['small'])['stdout'] == 'No space left on device True\n'
    record = place.run('open("/mnt/small/a", "wb").write(bytes(1 << 25))', language='python', volumes=['small'])
    assert record['status'] == 'disk_exceeded' and 'a volume' in record['error']['message'] and 'df /mnt' in record['error']['hint']
    assert place.run('rm /mnt/small/a; df --output=pcent /mnt/small | tail -1', volumes=['small'])['stdout'].strip() in ('0%', '1%')
    assert remove(place, 'small') == 204


def test_files_are_bounded(place):
    create(place, 'inodes', 8 * MIB)
    code = 'import os\ni = 0\ntry:\n    while True:\n        open(f"/mnt/inodes/{i}", "w").close()\n        i += 1\nexcept OSError as error:\n    print(i, error.strerror)'
    made_, why = place.run(code, language='python', volumes=['inodes'])['stdout'].strip().split(' ', 1)
    assert why == 'No space left on device' and 100 < int(made_) < 10000
    assert remove(place, 'inodes') == 204


def test_a_file_may_be_larger_than_the_home_directory(place):
    create(place, 'large', 64 * MIB)
    record = place.run('head -c 20M /dev/zero > /mnt/large/a; stat -c %s /mnt/large/a', volumes=['large'], limits={'disk_bytes': 4 * MIB})
    assert record['stdout'] == f'{20 * MIB}\n' and record['status'] == 'completed'
    assert remove(place, 'large') == 204


def test_sizes_have_limits(tmp_path):
    place = make(tmp_path, '--set', 'volumes.max_bytes=32MiB', '--set', 'volumes.tenant_bytes=48MiB', '--set', 'volumes.total_bytes=64MiB')
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'a', 'size_bytes': 33 * MIB})
    assert status == 422 and answer['field'] == '/size_bytes' and 'volumes.max_bytes' in answer['detail'] and str(33 * MIB) in answer['detail']
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'a', 'size_bytes': 4096})
    assert status == 422 and answer['field'] == '/size_bytes'
    create(place, 'a', 32 * MIB)
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'b', 'size_bytes': 17 * MIB})
    assert status == 507 and 'volumes.tenant_bytes' in answer['detail'] and str(48 * MIB) in answer['detail']
    create(place, 'b', 16 * MIB)
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'c', 'size_bytes': 17 * MIB}, place.mallory)
    assert status == 507 and 'volumes.total_bytes' in answer['detail']
    create(place, 'c', 16 * MIB, place.mallory)
    # The blocks are taken at once, so nobody else can fill the disk below a volume.
    assert all(path.stat().st_blocks * 512 >= 16 * MIB for path in (tmp_path / 'volumes').iterdir())
    assert remove(place, 'a') == 204
    create(place, 'd', 32 * MIB)
    assert place.web.daemon.stop(signal.SIGTERM) == 0


# ---- hostile content and hostile requests ----

def test_what_a_program_leaves_in_a_volume_harms_nobody(place):
    create(place, 'odd')
    code = '''
        set +e
        cp /usr/bin/id /mnt/odd/id
        chmod 6755 /mnt/odd/id
        mknod /mnt/odd/null c 1 3
        mkfifo /mnt/odd/pipe
        ln -s /etc/shadow /mnt/odd/link
        ln -s ../../.. /mnt/odd/up
        echo 1 > /mnt/odd/a
        ln /mnt/odd/a /mnt/odd/b
        ln /mnt/odd/a /home/user/c
        mkdir -p /mnt/odd/$(printf 'd/%.0s' $(seq 200))
        '''.replace('\n        ', '\n')
    record = place.run(code, volumes=['odd'])
    assert 'Invalid cross-device link' in record['stderr'] and 'null' in record['stderr']
    record = place.run('ls /mnt/odd; /mnt/odd/id -un; cat /mnt/odd/link; stat -c %h /mnt/odd/a; ls /mnt/odd/up', volumes=['odd:ro'])
    assert record['stdout'].splitlines()[:8] == ['a', 'b', 'd', 'id', 'link', 'pipe', 'up', 'user'] and 'null' not in record['stdout'].splitlines()
    assert '/mnt/odd/link' in record['stderr'] and 'root:' not in record['stdout'] and '\n2\n' in record['stdout']
    assert record['files'] == []
    rooted = sandbox(place, root=True, volumes=['odd'])
    done = execute(place, rooted, 'mknod /mnt/odd/mem c 1 1; mount -o remount,suid,dev /mnt/odd; umount /mnt/odd; umount -l /mnt; id -u', user='root')
    assert done['stdout'] == '0\n' and done['stderr'].count('\n') >= 3
    assert execute(place, rooted, 'grep -c " /mnt/odd ext4 rw,nosuid,nodev," /proc/self/mounts')['stdout'] == '1\n'
    assert place.ask('DELETE', f'/v1/sandboxes/{rooted}')[0] == 204
    assert remove(place, 'odd') == 204


def test_names_are_checked(place):
    for name in ('', '..', '.', '.a', '-a', 'A', 'a/b', '/mnt', 'a b', 'ä', 'a' * 65, 'a\n'):
        status, _, answer = place.ask('POST', '/v1/volumes', {'name': name})
        assert status == 422 and 'name' in str(answer), (name, answer)
        record = place.run('true', volumes=[name])
        assert record['status'] == 'bad_request' and record['error']['field'] == '/volumes', (name, record)
    create(place, 'a' * 64)
    for names_, word in ((['a' * 64 + ':rw'], 'NAME:ro'), (['a' * 64, 'a' * 64 + ':ro'], 'twice')):
        record = place.run('true', volumes=names_)
        assert record['status'] == 'bad_request' and word in record['error']['message']
    status, _, answer = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'volumes': ['a', 'b', 'c', 'd', 'e']})
    assert status == 422 and 'volumes' in str(answer)
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'a' * 64})
    assert status == 409 and 'another name' in answer['detail']
    assert place.run('ls /mnt', volumes=['a' * 64])['stdout'] == 'a' * 64 + '\n' and remove(place, 'a' * 64) == 204


def test_four_volumes_at_once(place):
    four = [f'v{i}' for i in range(4)]
    for name in four:
        create(place, name, 8 * MIB)
    record = place.run('for v in /mnt/*; do echo $v > $v/name; done; cat /mnt/*/name', volumes=four)
    assert record['stdout'].split() == [f'/mnt/{name}' for name in four]
    assert [remove(place, name) for name in four] == [204] * 4


def test_a_folder_of_volumes_that_is_not_roots_is_not_used(tmp_path):
    place = make(tmp_path)
    (tmp_path / 'volumes').mkdir(mode=0o755)
    status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'a', 'size_bytes': 8 * MIB})
    assert status == 500 and 'volumes.dir' in answer['detail'] and names(place) == []
    (tmp_path / 'volumes').chmod(0o700)
    create(place, 'a', 8 * MIB)
    image = tmp_path / 'volumes' / images(place)[0]
    assert place.web.daemon.stop(signal.SIGTERM) == 0
    os.chown(image, 12345, 12345)
    place.start()
    status, _, answer = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'ls /mnt/a', 'volumes': ['a']})
    assert (status, answer['code']) == (503, 'engine_error') and 'not what the supervisor made' in answer['detail']
    assert place.web.daemon.stop(signal.SIGTERM) == 0


# ---- removal, restarts, kills ----

def test_a_volume_in_use_is_not_removed(place):
    create(place, 'used')
    one = sandbox(place, volumes=['used:ro'])
    status, _, answer = place.ask('DELETE', '/v1/volumes/used')
    assert status == 409 and 'in use by 1 running program' in answer['detail'] and 'used' in names(place)
    assert place.run('ls /mnt', volumes=['used'])['stdout'] == 'used\n'
    assert place.ask('DELETE', f'/v1/sandboxes/{one}')[0] == 204
    assert remove(place, 'used') == 204 and remove(place, 'used') == 404
    assert place.run('ls /mnt', volumes=['used'])['status'] == 'bad_request'


def test_a_new_volume_of_an_old_name_is_empty(place):
    create(place, 'again')
    place.run('echo secret > /mnt/again/a; sync', volumes=['again'])
    assert remove(place, 'again') == 204
    create(place, 'again')
    assert place.run('ls -A /mnt/again | wc -l', volumes=['again'])['stdout'] == '0\n' and remove(place, 'again') == 204


def test_a_volume_survives_the_daemon_and_its_death(tmp_path):
    place = make(tmp_path)
    create(place, 'keep')
    place.run('echo 1 > /mnt/keep/a', volumes=['keep'])
    assert place.web.daemon.stop(signal.SIGTERM) == 0
    for killed in ('daemon', 'supervisor'):
        place.start()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            writer = pool.submit(place.ask, 'POST', '/v1/runs', {'language': 'bash', 'code': f'echo {killed} > /mnt/keep/{killed}; sync; sleep 60', 'volumes': ['keep']})
            until(lambda: place.run(f'cat /mnt/keep/{killed} 2>&1', volumes=['keep:ro'])['stdout'] == f'{killed}\n')
            pid = place.web.daemon.process.pid if killed == 'daemon' else supervisors(place.web.daemon.process.pid)[0]
            os.kill(pid, signal.SIGKILL)
            try:
                writer.result()
            except OSError:
                assert killed == 'daemon'
        if killed == 'daemon':
            place.web.daemon.process.wait()
            place.start()
        read = until(lambda: (record := place.run(f'cat /mnt/keep/a /mnt/keep/{killed}', volumes=['keep']))['status'] == 'completed' and record)
        assert read['stdout'] == f'1\n{killed}\n'
        place.web.daemon.stop(signal.SIGTERM)
    image = tmp_path / 'volumes' / images(place)[0]
    until(lambda: str(image) not in subprocess.run(['losetup', '-a'], stdout=subprocess.PIPE, check=True, text=True).stdout)
    assert subprocess.run(['/sbin/e2fsck', '-fn', image], stdout=subprocess.PIPE, check=False).returncode == 0


def test_what_a_dead_daemon_began_is_removed(tmp_path):
    place = make(tmp_path)
    create(place, 'whole', 8 * MIB)
    create(place, 'half', 8 * MIB)
    assert place.web.daemon.stop(signal.SIGTERM) == 0 and len(images(place)) == 2
    with sqlite3.connect(tmp_path / 'caisson.db') as db:
        db.execute('UPDATE volumes SET state = 0 WHERE name = ?', ('half',))
    (tmp_path / 'volumes' / '.new-0').write_bytes(b'x')
    place.start()
    until(lambda: len(images(place)) == 1)
    assert names(place) == ['whole'] and place.run('ls /mnt', volumes=['whole'])['stdout'] == 'whole\n'
    assert place.web.daemon.stop(signal.SIGTERM) == 0


def test_two_daemons_never_mount_one_volume_at_once(tmp_path):
    """A second file system on the same blocks would destroy both."""
    place = make(tmp_path)
    create(place, 'one', 8 * MIB)
    one = sandbox(place, volumes=['one'])
    folder = tmp_path / 'other'
    folder.mkdir()
    second = make(folder, '--set', f'volumes.dir={tmp_path}/volumes')
    with sqlite3.connect(tmp_path / 'caisson.db') as db:
        row = db.execute('SELECT * FROM volumes').fetchone()
    with sqlite3.connect(folder / 'caisson.db') as db:
        db.execute('INSERT INTO volumes VALUES (?, ?, ?, ?, ?, ?)', row)
    request = {'language': 'bash', 'code': 'ls -A /mnt/one | wc -l', 'volumes': ['one']}
    status, _, answer = second.ask('POST', '/v1/runs', request)
    assert (status, answer['code']) == (503, 'capacity') and 'another daemon' in answer['detail']
    assert second.ask('DELETE', '/v1/volumes/one')[0] == 409 and names(second) == ['one']
    assert place.ask('DELETE', f'/v1/sandboxes/{one}')[0] == 204 and place.web.daemon.stop(signal.SIGTERM) == 0
    assert second.run(**request)['stdout'] == '0\n' and second.web.daemon.stop(signal.SIGTERM) == 0


# ---- the command line, and hosts without volumes ----

def test_the_command_line(tmp_path):
    place = make(tmp_path)
    ask = place.web.daemon.caisson
    assert ask('volume', 'list').err.endswith('caisson volume create makes one\n')
    done = ask('volume', 'create', '--size', '16MiB', 'mine')
    assert done.status == 0 and done.out == '/mnt/mine\n', done
    assert '16MiB' in ask('volume', 'list').out and '/mnt/mine' in ask('volume', 'show', 'mine').out
    run = ask('run', '--daemon', 'always', '-l', 'bash', '-c', 'echo 1 > /mnt/mine/a; cat /mnt/mine/a', '--volume', 'mine')
    assert run.out == '1\n', run.err
    run = ask('run', '--daemon', 'always', '-l', 'bash', '-c', 'cat /mnt/mine/a; rm -f /mnt/mine/a', '--volume', 'mine:ro')
    assert run.out == '1\n' and 'Read-only' in run.err
    run = ask('run', '--daemon', 'never', '-l', 'bash', '-c', 'ls /mnt', '--volume', 'mine')
    assert run.status == 64 and 'engine.http' in run.err         # an engine without a store
    done = ask('volume', 'create', 'mine')
    assert done.status == 64 and 'another name' in done.err
    assert ask('volume', 'remove', 'mine').status == 0 and ask('volume', 'show', 'mine').status == 64
    assert place.ask('GET', '/v1/volumes')[2] == {'volumes': []}
    assert place.web.daemon.stop(signal.SIGTERM) == 0


def test_a_profile_names_volumes(tmp_path):
    profiles = tmp_path / 'profiles'
    profiles.mkdir()
    (profiles / 'models.yaml').write_text('volumes: [models:ro]\n')
    place = make(tmp_path, '--set', f'engine.profiles_dir={profiles}')
    assert 'there is no volume \\"models\\"' in str(place.run('true', profile='models')['error']['message']).replace('"', '\\"')
    create(place, 'models', 8 * MIB)
    record = place.run('touch /mnt/models/a', profile='models')
    assert 'Read-only' in record['stderr'] and record['volumes'] == ['models:ro']
    assert place.web.daemon.stop(signal.SIGTERM) == 0


def test_the_doctor_tells_of_volumes(tmp_path):
    line = next(line for line in caisson('doctor', '--set', f'engine.state_dir={tmp_path}').out.splitlines() if line.split()[1] == 'volumes')
    assert line.startswith('ok') and str(tmp_path / 'volumes') in line
    (tmp_path / 'volumes').mkdir(mode=0o777)
    line = next(line for line in caisson('doctor', '--set', f'engine.state_dir={tmp_path}').out.splitlines() if line.split()[1] == 'volumes')
    assert line.startswith('weaker') and 'volumes.dir' in line


def test_a_new_mount_costs_little(place):
    create(place, 'quick', 8 * MIB)
    place.run('true', volumes=['quick'])
    begun = time.monotonic()
    for _ in range(10):
        assert place.run('true', volumes=['quick'])['status'] == 'completed'
    assert time.monotonic() - begun < 5 and remove(place, 'quick') == 204


@pytest.mark.parametrize('how', ['a user', 'root of a container'])
def test_a_daemon_without_root_refuses_volumes_with_the_remedy(how):
    user = 12345
    command = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups'] if how == 'a user' else ['unshare', '--user', '--map-root-user']
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        place = Place(folder)
        place.alice = place.make('a', '--tenant', 'alice', '--scopes', SCOPES)
        if how == 'a user':
            for path in [folder, *folder.rglob('*')]:
                os.chown(path, user, user)
        place.web = Web(folder, '--set', f'engine.confine={str(how == "a user").lower()}', keyless=False, command=command)
        status, _, answer = place.ask('POST', '/v1/volumes', {'name': 'a', 'size_bytes': 8 * MIB})
        assert status == 503 and answer['code'] == 'isolation_unavailable' and 'start caissond as root' in answer['detail'], answer
        assert names(place) == [] and images(place) == []
        with sqlite3.connect(folder / 'caisson.db') as db:      # as a daemon of root left it
            db.execute('INSERT INTO volumes VALUES (?, ?, ?, ?, ?, ?)', ('0' * 32, 'alice', 'a', 8 * MIB, 0, 1))
        status, _, answer = place.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'ls /mnt', 'volumes': ['a']})
        assert status == 503 and answer['code'] == 'isolation_unavailable', answer
        assert how != 'a user' or 'start caissond as root' in answer['detail']
        assert place.web.daemon.stop(signal.SIGTERM) == 0
