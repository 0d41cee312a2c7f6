"""Files for containers: the seccomp profile, the compose file and the start script of the image agree with the source."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from cli import CAISSON, ROOT, environment

PROFILE = ROOT / 'deploy/container/seccomp.json'
# Calls of which the kernel itself, the clock or all processes of the host are the object.
NEVER = '''acct add_key adjtimex bpf clock_adjtime clock_settime create_module delete_module fanotify_init finit_module init_module
io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages
move_pages nfsservctl open_by_handle_at perf_event_open query_module quotactl reboot request_key set_mempolicy settimeofday swapoff
swapon userfaultfd'''.split()


def profile():
    return json.loads(PROFILE.read_text())


def test_the_profile_is_made_of_the_source():
    made = subprocess.run([ROOT / 'scripts/container-seccomp'], capture_output=True, text=True, check=True).stdout
    assert made == PROFILE.read_text(), 'scripts/container-seccomp > deploy/container/seccomp.json'


def test_the_profile_forbids_what_no_sandbox_needs():
    rule, = profile()['syscalls']
    assert profile()['defaultAction'] == 'SCMP_ACT_ERRNO' and rule['action'] == 'SCMP_ACT_ALLOW' and set(rule) == {'names', 'action'}
    assert not set(rule['names']) & set(NEVER)
    assert {'clone', 'clone3', 'unshare', 'mount', 'pivot_root', 'seccomp', 'landlock_restrict_self', 'openat2'} <= set(rule['names'])


def filtered(*command):
    """Run a command below a filter that does what the profile says, on this host's architecture."""
    names = profile()['syscalls'][0]['names']
    numbers = {}
    header = subprocess.run(['gcc', '-E', '-dM', '-include', 'asm/unistd.h', '-'], input='', capture_output=True, text=True, check=True).stdout
    for name, number in re.findall(r'^#define __NR_(\w+) (\d+)$', header, flags=re.M):
        numbers[name] = int(number)
    allowed = sorted(numbers[name] for name in names if name in numbers)
    return subprocess.run(['/usr/bin/python3', Path(__file__).with_name('under_filter.py'), ','.join(map(str, allowed)), *map(str, command)],
                          capture_output=True, text=True, env=environment(), check=False)


def test_caisson_runs_below_the_profile():
    for language, code in (('python', 'print(6 * 7)'), ('javascript', 'console.log(6 * 7)'), ('bash', 'echo $((6 * 7))')):
        done = filtered(CAISSON, 'run', '-l', language, '-c', code)
        assert (done.returncode, done.stdout) == (0, '42\n'), done.stderr
    assert filtered('/bin/true').returncode == 0
    code = 'import ctypes; print(ctypes.CDLL(None, use_errno=True).syscall(321, 0, 0, 0), ctypes.get_errno())'      # bpf(2) on x86_64
    if os.uname().machine == 'x86_64':
        assert filtered('/usr/bin/python3', '-c', code).stdout == '-1 38\n'


def test_the_compose_file_has_the_options_of_the_page():
    page, compose = (ROOT / 'docs/use/containers.md').read_text(), (ROOT / 'deploy/container/compose.yaml').read_text()
    for option in ('systempaths=unconfined', 'seccomp.json', '127.0.0.1:8080:8080', '/var/lib/caisson'):
        assert option in compose and option in page
    assert 'privileged' not in compose and 'cap_add' not in compose and 'docker.sock' not in compose


# The kernel makes no user namespaces in a chroot(2), so `doctor` has something to say there.
CHROOT = '''
mkdir -p root/{proc,dev,etc,tmp,run,root} && for name in bin sbin lib lib64; do ln -s usr/$name root/$name; done
mkdir -p root/usr "root$1" && mount --bind /usr root/usr && mount --rbind /proc root/proc && mount --rbind /dev root/dev && mount --bind "$1" "root$1"
eval "$3"
exec chroot root "$2" doctor
'''


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root: chroot(2) and mounts')
@pytest.mark.parametrize('place, words', [(':', ['this is a chroot(2)', 'pivot_root(2)']),
                                          ('touch root/.dockerenv', ['Docker', 'seccomp=seccomp.json', 'systempaths=unconfined']),
                                          ('touch root/run/.containerenv', ['Podman', 'seccomp=seccomp.json', 'unmask=ALL']),
                                          ('export KUBERNETES_SERVICE_HOST=10.0.0.1', ['pod', 'procMount: Unmasked', 'hostUsers: false']),
                                          ('export container=lxc', ['this container needs'])])
def test_doctor_names_what_the_container_needs(tmp_path, place, words):
    done = subprocess.run(['unshare', '--mount', '--propagation', 'private', 'bash', '-euc', CHROOT, 'bash', ROOT, CAISSON, place],
                          cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 125 and 'Programs cannot be run in a sandbox here' in done.stdout, done.stdout + done.stderr
    text = ' '.join(done.stdout.split())
    for word in words:
        assert word in text, text
