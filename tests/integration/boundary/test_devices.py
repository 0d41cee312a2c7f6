"""Devices that engine.devices grants to a profile: there for its programs, and for no others."""

import json
import os
import stat
import uuid

import pytest

from cli import caisson
from web import Web

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: granted devices are mounts of the host')


@pytest.fixture(name='device', scope='module')
def harmless_device():
    """/dev/urandom under a name that no sandbox has."""
    path = f'/dev/caisson-{uuid.uuid4().hex[:12]}'
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 9))
    except OSError as error:
        pytest.skip(f'needs mknod: {error.strerror}')
    os.chmod(path, 0o666)
    yield path
    os.unlink(path)


def granted(*grants):
    return ['--set', 'engine.devices=' + ','.join(grants)]


def run(*options, code='ls /dev', language='bash'):
    done = caisson('run', '--daemon', 'never', '--json', '-l', language, '-c', code, *options)
    return json.loads(done.out)


def doctor(*options):
    return [line for line in caisson('doctor', *options).out.splitlines() if 'granted device' in line]


def test_only_programs_of_the_profile_have_it(device):
    name = os.path.basename(device)
    grants = granted(f'data:{device}')
    code = f'ls /dev; head -c 5 {device} | wc -c; echo x > /dev/null; test -c {device}; ls -ld /dev/shm/. /dev/pts/ptmx > /dev/null; touch /dev/x'
    record = run('--profile', 'data', *grants, code=code)
    usual = ['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']
    assert record['stdout'].split() == sorted([name, *usual]) + ['5'] and record['devices'] == [device]
    assert record['stderr'].count('\n') == 1 and 'touch' in record['stderr']
    for profile in ('standard', 'lightweight', 'ml_inference', 'e2b', 'tools'):
        other = run('--profile', profile, *grants)
        assert other['stdout'].split() == usual and 'devices' not in other, profile
    assert run('--profile', 'data')['stdout'].split() == usual


def test_every_way_into_a_sandbox_has_it(device, tmp_path):
    web = Web(tmp_path, *granted(f'data:{device}'))
    for language, code in (('python', f'print(len(open("{device}", "rb", buffering=0).read(3)))'), ('bash', f'head -c 3 {device} | wc -c'),
                           ('javascript', f'const fs = require("fs"); console.log(fs.readSync(fs.openSync("{device}"), Buffer.alloc(3)))')):
        for _ in range(3):             # with pools of other sandboxes beside
            assert web.run(code, language=language, profile='data')['stdout'] == '3\n', language
            assert web.run('ls /dev')['stdout'].split() == web.run('ls /dev')['stdout'].split()
    _, _, one = web.ask('POST', '/v1/sandboxes', {'profile': 'data'})
    assert one['devices'] == [device]
    _, _, done = web.ask('POST', f'/v1/sandboxes/{one["id"]}/processes', {'command': f'head -c 3 {device} | wc -c'})
    assert done['stdout'] == '3\n'
    _, _, rooted = web.ask('POST', '/v1/sandboxes', {'profile': 'data', 'root': True})
    if 'id' in rooted:
        _, _, done = web.ask('POST', f'/v1/sandboxes/{rooted["id"]}/processes', {'command': f'head -c 3 {device} | wc -c; rm {device}; umount {device}; mknod /dev/x c 1 1', 'user': 'root'})
        assert done['stdout'] == '3\n' and done['stderr'].count('\n') >= 3
    _, _, closed = web.ask('POST', '/v1/sandboxes', {})
    assert 'devices' not in closed
    _, _, done = web.ask('POST', f'/v1/sandboxes/{closed["id"]}/processes', {'command': f'ls {device}'})
    assert done['exit_code'] == 2
    assert os.path.exists(device) and web.daemon.stop(15) == 0


def test_a_request_cannot_ask_for_one(device, tmp_path):
    web = Web(tmp_path)
    for field in ('devices', 'device'):
        status, _, answer = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', field: [device]})
        assert status == 422 and field in str(answer)
    assert web.daemon.stop(15) == 0
    profiles = tmp_path / 'profiles'
    profiles.mkdir()
    (profiles / 'gpu.yaml').write_text(f'devices: [{device}]\n')
    record = run('--profile', 'gpu', '--set', f'engine.profiles_dir={profiles}')
    assert record['status'] == 'engine_error' and 'a profile cannot set this' in record['error']['message']


def test_a_missing_device_is_an_error_and_never_absent_in_silence(device):
    grants = granted('data:/dev/caisson-nothing', f'data:{device}', 'gone:/dev/caisson-nothing')
    record = run('--profile', 'data', *grants)
    assert record['status'] == 'isolation_unavailable' and '/dev/caisson-nothing' in record['error']['message'] and 'driver' in record['error']['message']
    assert run(*grants)['status'] == 'completed'
    lines = doctor(*grants)
    assert [line.split()[0] for line in lines] == ['weaker', 'ok', 'weaker'] and device in lines[1] and 'profile data' in lines[1]


@pytest.mark.parametrize('numbers, kind, word', [((1, 1), stat.S_IFCHR, 'memory'), ((1, 11), stat.S_IFCHR, 'log of the host'), ((4, 1), stat.S_IFCHR, 'terminals'),
                                                 ((10, 229), stat.S_IFCHR, 'fuse'), ((10, 237), stat.S_IFCHR, 'loop-control'), ((21, 0), stat.S_IFCHR, 'disks'),
                                                 ((13, 64), stat.S_IFCHR, 'keyboards'), ((7, 0), stat.S_IFBLK, 'no character device'), ((0, 0), stat.S_IFIFO, 'no character device')])
def test_dangerous_devices_are_refused_by_their_numbers(numbers, kind, word):
    path = f'/dev/caisson-{uuid.uuid4().hex[:12]}'
    os.mknod(path, 0o666 | kind, os.makedev(*numbers))
    try:
        record = run('--profile', 'data', *granted(f'data:{path}'))
        assert record['status'] in ('isolation_unavailable', 'engine_error') and word in record['error']['message'], record
        assert doctor(*granted(f'data:{path}'))[0].startswith('weaker')
    finally:
        os.unlink(path)


def test_links_are_no_way_around():
    path = f'/dev/caisson-{uuid.uuid4().hex[:12]}'
    os.symlink('/dev/mem', path)
    try:
        assert 'no character device' in run('--profile', 'data', *granted(f'data:{path}'))['error']['message']
    finally:
        os.unlink(path)


@pytest.mark.parametrize('grant, word', [('/dev/null', 'PROFILE:/dev/NAME'), ('data', 'PROFILE:/dev/NAME'), ('data:/etc/passwd', 'below /dev'), ('data:/dev/../etc/passwd', '/dev/FOLDER/NAME'),
                                         ('data:/dev/a/b/c', '/dev/FOLDER/NAME'), ('data:/dev/', '/dev/FOLDER/NAME'), ('data:/dev/null', 'each sandbox has that name'),
                                         ('data:/dev/shm/x', 'each sandbox has that folder'), ('data:/dev/nvme0', 'disks'), ('data:/dev/vfio/1', 'PCI'),
                                         ('data:/dev/' + 'a' * 49, '48 bytes')])
def test_a_wrong_grant_is_refused_with_the_rule(grant, word):
    done = caisson('run', '--daemon', 'never', '-l', 'bash', '-c', 'true', *granted(grant))
    assert done.status == 78 and 'engine.devices' in done.err and word in done.err, done.err


def test_at_most_eight_devices():
    done = caisson('run', '--daemon', 'never', '-l', 'bash', '-c', 'true', *granted(*(f'data:/dev/x{i}' for i in range(9))))
    assert done.status == 78 and 'at most 8' in done.err
    assert caisson('run', '--daemon', 'never', '-l', 'bash', '-c', 'echo 1', *granted(*(f'data:/dev/x{i}' for i in range(8)))).out == '1\n'
