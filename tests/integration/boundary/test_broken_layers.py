"""Each layer of the sandbox is broken in turn, from outside: then the record does not have it, or nothing runs and the status says so.

No program of ours has a switch for this.  A system call filter that stands before they start answers one call with an errno, a namespace has no
room for one kind below it, a hierarchy of cgroups is not mounted, a capability or descriptors are missing.
"""

import ctypes
import errno
import functools
import json
import os
import platform
import resource
import struct
import subprocess

import pytest

from cli import CAISSON, environment

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
X86 = pytest.mark.skipif(platform.machine() != 'x86_64', reason='the numbers of the calls are those of x86_64')
CAP_SYS_ADMIN, CAP_SETUID = 21, 7


def run(*words, before=None, language='bash', code='echo ran', command=()):
    """The record, and what was said beside it."""
    done = subprocess.run([*command, CAISSON, 'run', '--json', '-l', language, *words, '-c', code], env=environment(), preexec_fn=before,
                          capture_output=True, text=True, timeout=120, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"schema"')]
    assert lines, (done.returncode, done.stdout, done.stderr)
    return json.loads(lines[0]), done.stderr


def refused(record, *words):
    assert record['status'] == 'isolation_unavailable' and record['boundary'] is None and record['stdout'] == '', record
    for word in words:
        assert word in record['error']['message'], record


# ---- system calls ----

CALLS = {'capset': 126, 'pivot_root': 155, 'sethostname': 170, 'unshare': 272, 'setns': 308, 'seccomp': 317, 'move_mount': 429, 'fsopen': 430, 'clone3': 435,
         'landlock_create_ruleset': 444, 'landlock_restrict_self': 446, 'setresuid': 117, 'prctl': 157}
PR_SET_NO_NEW_PRIVS = 38


def answer_with(number, sys, first=None):
    """In the child: this call, or only with this first argument, fails from now on, in all that it starts."""
    load, jump, give = 0x20, 0x15, 0x06
    rows = [(load, 0, 0, 4), (jump, 1, 0, 0xc000003e), (give, 0, 0, 0x7fff0000), (load, 0, 0, 0)]
    if first is None:
        rows += [(jump, 0, 1, number)]
    else:
        rows += [(jump, 0, 3, number), (load, 0, 0, 16), (jump, 0, 1, first)]
    rows += [(give, 0, 0, 0x00050000 | sys), (give, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *row) for row in rows))

    class Program(ctypes.Structure):
        _fields_ = [('n', ctypes.c_ushort), ('rows', ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(22, 2, ctypes.byref(Program(len(rows), ctypes.addressof(code))), 0, 0):     # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        raise OSError(ctypes.get_errno(), 'prctl')


@ROOT
@X86
@pytest.mark.parametrize('call, sys, first', [
    ('capset', errno.EPERM, None), ('pivot_root', errno.EPERM, None), ('sethostname', errno.EPERM, None), ('unshare', errno.EPERM, None),
    ('seccomp', errno.EPERM, None), ('seccomp', errno.ENOSYS, None), ('move_mount', errno.EPERM, None), ('fsopen', errno.ENOSYS, None),
    ('clone3', errno.ENOSYS, None), ('clone3', errno.EPERM, None), ('landlock_restrict_self', errno.EPERM, None), ('setresuid', errno.EPERM, None), ('prctl', errno.EPERM, PR_SET_NO_NEW_PRIVS)])
def test_nothing_runs_without_a_layer(call, sys, first):
    record, _ = run(before=functools.partial(answer_with, CALLS[call], sys, first))
    refused(record)


@ROOT
@X86
def test_landlock_that_is_not_there_is_not_reported():
    record, _ = run(before=functools.partial(answer_with, CALLS['landlock_create_ruleset'], errno.ENOSYS))
    assert record['status'] == 'completed' and record['boundary']['landlock_abi'] == 0 and record['boundary']['isolation'] == 'degraded'
    record, _ = run('--landlock', 'require', before=functools.partial(answer_with, CALLS['landlock_create_ruleset'], errno.ENOSYS))
    refused(record, 'Landlock')


# ---- namespaces ----

def in_user_namespace(kind):
    """An ordinary user's namespace of one id, below which there is none of this kind."""
    script = f'echo 0 > /proc/sys/user/max_{kind}_namespaces && exec "$@"' if kind else 'exec "$@"'
    return ['setpriv', '--reuid', '1234', '--regid', '1234', '--clear-groups', 'unshare', '-Urm', 'sh', '-c', script, 'sh']


@ROOT
@pytest.mark.parametrize('kind', ['user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup'])
def test_nothing_runs_without_a_namespace(kind):
    record, _ = run(command=in_user_namespace(kind))
    refused(record)


@ROOT
@pytest.mark.parametrize('language, code', [('bash', 'echo ran'), ('python', 'print("ran")'), ('javascript', 'console.log("ran")')])
def test_a_user_namespace_with_one_id_runs_as_an_ordinary_user_does(language, code):
    record, said = run(command=in_user_namespace(None), language=language, code=code)
    assert record['status'] == 'completed' and record['stdout'] == 'ran\n', record
    boundary = record['boundary']
    assert (boundary['rootless'], boundary['own_uid'], boundary['host_uids'], boundary['isolation']) == (True, False, 1, 'degraded')
    assert sorted(boundary['namespaces']) == ['cgroup', 'ipc', 'mount', 'network', 'pid', 'user', 'uts'] and boundary['network'] == 'none'
    assert 'all of them have its own' in said


@ROOT
def test_no_program_has_the_uid_of_the_hosts_root():
    record, _ = run(command=['unshare', '-Ur'])     # root's own id is the only one
    refused(record, 'engine.uid_first')


# ---- capabilities and descriptors ----

def without(*capabilities):
    names = [{CAP_SYS_ADMIN: 'sys_admin', CAP_SETUID: 'setuid'}[one] for one in capabilities]
    return ['setpriv', '--bounding-set', ','.join('-' + name for name in names), '--inh-caps', ','.join('-' + name for name in names)]


@ROOT
def test_root_without_sys_admin_gives_one_uid_to_all():
    record, said = run(command=without(CAP_SYS_ADMIN), code='id -u; cat /etc/shadow; echo > /usr/x')
    assert record['status'] in ('completed', 'failed') and record['stdout'] == '1000\n', record
    boundary = record['boundary']
    assert (boundary['rootless'], boundary['own_uid'], boundary['cgroup'], boundary['controllers']) == (True, False, 'none', [])
    assert boundary['host_uid'] >= 65536 and boundary['isolation'] == 'degraded' and 'CAP_SYS_ADMIN' in said
    refused(run(command=without(CAP_SYS_ADMIN, CAP_SETUID))[0])


@pytest.mark.parametrize('number', [*range(8, 36, 3), 35])
def test_too_few_descriptors_are_said_with_the_number_that_is_needed(number):
    record, _ = run(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number)))
    refused(record, 'needs 36 open files', f'may have {number}', 'ulimit -Hn')


@pytest.mark.parametrize('number', [36, 40, 64])
@pytest.mark.parametrize('language, code', [('bash', 'echo ran'), ('python', 'print("ran")')])
def test_enough_descriptors_are_enough(number, language, code):
    record, _ = run(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number)), language=language, code=code)
    assert record['status'] == 'completed', record


# ---- cgroups ----

@ROOT
@pytest.mark.skipif(os.path.exists('/sys/fs/cgroup/cgroup.controllers'), reason='version 2 has one hierarchy')
@pytest.mark.parametrize('controller', ['memory', 'cpu', 'pids'])
def test_a_controller_that_is_not_there_is_not_reported(controller):
    whole, _ = run()
    if controller not in whole['boundary']['controllers']:
        pytest.skip(f'this host has no {controller} controller for us')
    hidden = ['unshare', '-m', 'sh', '-c', f'umount -l "$(readlink -f /sys/fs/cgroup/{controller})" && exec "$@"', 'sh']
    record, _ = run(command=hidden)
    assert record['status'] == 'completed', record
    lost = set(whole['boundary']['controllers']) - set(record['boundary']['controllers'])
    assert controller in lost and record['boundary']['isolation'] == 'degraded', record
    refused(run('--cgroup', 'require', command=hidden)[0], controller)


@ROOT
def test_cgroups_that_are_not_there_are_not_reported():
    record, _ = run(command=['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro none /sys/fs/cgroup && exec "$@"', 'sh'])
    boundary = record['boundary']
    assert record['status'] == 'completed' and (boundary['cgroup'], boundary['controllers'], boundary['isolation']) == ('none', [], 'degraded')


# ---- network ----

def test_the_network_is_what_was_made():
    assert run()[0]['boundary']['network'] == 'none'
    assert run('--network', 'allow', '--allow', 'example.org')[0]['boundary']['network'] == 'proxy'
