"""The units for systemd: what they say, how far they are closed, and that a daemon works in what they leave it."""

import configparser
import os
import re
import shutil
import subprocess

import pytest

from cli import ROOT
from daemon import Daemon, until

UNITS = ROOT / 'deploy/systemd'
EXPOSURE = {'caissond': 49, 'caisson-gateway': 14}      # tenths of what systemd-analyze computes, at the most; 0 is closed and 100 is open
NEEDS = pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='needs systemd-analyze')
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: the service is started as root')


@pytest.fixture
def units(tmp_path):
    """As they are installed, with a program in the place of caissond that every host has."""
    for file in UNITS.iterdir():
        text = re.sub('@sbindir@/caissond|@libexecdir@/caisson-gateway', shutil.which('true'), file.read_text())
        (tmp_path / file.name.removesuffix('.in')).write_text(text)
    return tmp_path


def unit(name, strict=True):
    parser = configparser.ConfigParser(interpolation=None, strict=strict)
    parser.optionxform = str
    parser.read_string((UNITS / name).read_text())
    return parser


@NEEDS
def test_systemd_understands_them(units):
    # Without manual pages, which need not be installed.
    for file in units.iterdir():
        file.write_text(re.sub(r'^Documentation=.*\n', '', file.read_text(), flags=re.M))
    done = subprocess.run(['systemd-analyze', 'verify', *map(str, sorted(units.iterdir()))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == 0 and done.stdout == '', done.stdout


@NEEDS
@pytest.mark.parametrize('name', EXPOSURE)
def test_the_service_is_closed_as_far_as_it_can_be(units, name):
    done = subprocess.run(['systemd-analyze', 'security', '--offline=yes', '--no-pager', f'--threshold={EXPOSURE[name]}', str(units / f'{name}.service')],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize('service', EXPOSURE)
def test_what_is_left_open_has_its_reason(service):
    """Every protection that systemd has is either in the unit, or in a comment that says why not."""
    text = (UNITS / f'{service}.service.in').read_text()
    for name in ('NoNewPrivileges', 'PrivateTmp', 'PrivateDevices', 'PrivateMounts', 'PrivateNetwork', 'PrivateUsers', 'ProtectSystem', 'ProtectHome',
                 'ProtectClock', 'ProtectHostname', 'ProtectKernelModules', 'ProtectKernelTunables', 'ProtectKernelLogs', 'ProtectControlGroups',
                 'ProtectProc', 'ProcSubset', 'RestrictNamespaces', 'RestrictAddressFamilies', 'RestrictRealtime', 'RestrictSUIDSGID',
                 'MemoryDenyWriteExecute', 'LockPersonality', 'SystemCallFilter', 'SystemCallArchitectures', 'CapabilityBoundingSet', 'User',
                 'DynamicUser', 'RootDirectory', 'IPAddressDeny', 'UMask', 'KeyringMode', 'DevicePolicy', 'LoadCredential'):
        assert re.search(rf'^(#.*)?\b{name}=', text, flags=re.M) or (name, service) == ('LoadCredential', 'caisson-gateway'), name


def test_sockets_have_the_names_that_the_daemon_knows():
    assert unit('caissond.socket', strict=False)['Socket']['FileDescriptorName'] != 'http'   # both of its sockets have it
    paths = re.findall(r'^ListenStream=(.*)$', (UNITS / 'caissond.socket').read_text(), flags=re.M)
    assert paths == ['/run/caisson/caissond.sock', '/run/caisson/caissond.sock.http']
    assert unit('caissond-http.socket')['Socket']['FileDescriptorName'] == 'http'
    assert unit('caissond-http.socket')['Socket']['Service'] == 'caissond.service'
    service = unit('caissond.service.in')['Service']
    assert service['Type'] == 'notify' and service['Delegate'] == 'yes' and int(service['WatchdogSec']) >= 10


# What systemd.exec(5) says that the lines of the unit do to mounts; PrivateTmp= is left out, for the test is below /tmp.
CLOSE = '''
set -e
mkdir -p "$1/dev"
mount -t tmpfs -o mode=0755,nosuid,noexec tmpfs "$1/dev"
for one in null zero full random urandom tty; do cp -a /dev/$one "$1/dev/$one"; done
mkdir "$1/dev/pts" "$1/dev/shm" "$1/dev/mqueue"
mount --bind /dev/pts "$1/dev/pts"; mount --bind /dev/shm "$1/dev/shm"
ln -s pts/ptmx "$1/dev/ptmx"; ln -s /proc/self/fd "$1/dev/fd"
mount --make-rprivate /
mount --move "$1/dev" /dev
for folder in /home /root /run/user; do test ! -d $folder || mount -t tmpfs -o ro,mode=0000 tmpfs $folder; done
test ! -d /usr/lib/modules || mount -t tmpfs -o ro,mode=0000 tmpfs /usr/lib/modules
mount --bind /tmp /tmp
mount -o remount,bind,ro /
shift
exec "$@"
'''


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which('setpriv'), reason='needs setpriv')
def test_a_daemon_works_in_what_the_unit_leaves(tmp_path):
    names = unit('caissond.service.in')['Service']['CapabilityBoundingSet'].lower().split()
    rights = ','.join(['-all', *(f'+{name.removeprefix("cap_")}' for name in names)])
    (tmp_path / 'close').mkdir()
    command = ['unshare', '--mount', 'bash', '-c', CLOSE, 'bash', str(tmp_path / 'close'),
               'setpriv', f'--bounding-set={rights}', '--inh-caps=-all', '--no-new-privs']
    daemon = Daemon(tmp_path, command=command).ready()
    usual = Daemon(tmp_path, path=tmp_path / 'usual').ready()
    records = []
    for one in (usual, daemon):
        with one.client() as client:
            until(lambda: all(pool['ready'] or not pool['max'] for pool in client.status()['pools']))
            client.run(1, 'mkdir a; echo x > a/f; chmod 0 a/f a; touch /usr/x /root/x; (sleep 99 &); kill -9 1; exit 3')
            client.run(2, 'import os; print(sum(range(10)))', 'python')
            client.run(3, 'console.log(7)', 'node')
            client.run(4, 'sleep 98', limits={'wall_ms': 300})
            client.run(5, 'a=$(head -c 200000000 /dev/zero | tr "\\0" x); echo $a', limits={'memory_bytes': 64 << 20, 'wall_ms': 60_000})
            client.run(6, 'set -e; test -c /dev/null; : > /dev/null; head -c 4 /dev/urandom | wc -c')
            records.append(client.results(6))
    for number in range(1, 7):
        (here, *_), (there, *_) = (found[number] for found in records)
        here['boundary'].pop('host_uid'), there['boundary'].pop('host_uid')
        assert here['status'] == there['status'] and here['boundary'] == there['boundary'], (here, there)
        assert [file['name'] for file in here['files']] == [file['name'] for file in there['files']]
    assert [records[1][number][0]['status'] for number in range(1, 7)] == ['failed', 'completed', 'completed', 'timeout', 'memory_exceeded', 'completed']
    assert daemon.stop(15) == 0 and usual.stop(15) == 0
