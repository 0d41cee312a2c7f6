"""Root inside persistent sandboxes: whether this host gives it, a sandbox that has it, and attacks of its programs."""

import json
import textwrap

from cli import caisson


def why_not():
    checks = json.loads(caisson('doctor', '--json').out)['checks']
    check = next(one for one in checks if one['name'] == 'root inside')
    if check['state'] != 'ok':
        return check['remedy']
    cgroups = next(one for one in checks if one['name'] == 'cgroups')
    return '' if cgroups['state'] == 'ok' else cgroups['fact']


WHY_NOT = why_not()


class Box:
    def __init__(self, web, **request):
        self.web = web
        status, _, self.made = web.ask('POST', '/v1/sandboxes', {'root': True, **request})
        assert status == 201, self.made
        self.id = self.made['id']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.web.ask('DELETE', f'/v1/sandboxes/{self.id}')

    def start(self, user, what, **more):
        what = {'args': what} if isinstance(what, list) else {'command': what}
        status, _, process = self.web.ask('POST', f'/v1/sandboxes/{self.id}/processes', {'user': user, **what, **more})
        assert status == 200, process
        return process

    def root(self, what, **more):
        return self.start('root', what, **more)

    def user(self, what, **more):
        return self.start('user', what, **more)

    def python(self, user, code):
        process = self.start(user, ['python3', '-c', textwrap.dedent(code)])
        assert process['exit_code'] == 0, process['stderr']
        return process['stdout']


# ---- attacks: Python that prints a line for each attempt that got through ----

PRELUDE = '''
import ctypes, errno, os, socket, stat
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try:
        got = act()
    except (OSError, ValueError):
        return
    if got is not None and (not isinstance(got, int) or got >= 0):
        print(name, got)
def call(*arguments):
    return lambda: libc.syscall(*arguments)
def write(path, text=b'1', flags=0):
    def act():
        fd = os.open(path, os.O_WRONLY | flags, 0o600)
        return os.write(fd, text)
    return act
def read(path):
    def act():
        with open(path, 'rb') as file:
            return file.read(16) or None
    return act
'''

ATTACKS = {
    'mounts': '''
        attempt('mount', lambda: libc.mount(b'none', b'/mnt', b'tmpfs', 0, None))
        attempt('bind', lambda: libc.mount(b'/etc', b'/mnt', None, 4096, None))
        attempt('remount', lambda: libc.mount(b'none', b'/proc/sys', None, 32 | 4096, None))
        attempt('umount', lambda: libc.umount2(b'/proc/sys', 2))
        attempt('umount mask', lambda: libc.umount2(b'/proc/kmsg', 2))
        attempt('umount usr', lambda: libc.umount2(b'/usr', 2))
        for number in (428, 429, 430, 431, 432, 433, 442): attempt(f'new mount call {number}', call(number, -100, b'/usr', 1, 0, 0))
        attempt('pivot_root', lambda: libc.pivot_root(b'.', b'.'))
    ''',
    'namespaces': '''
        for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80): attempt(f'unshare {flag:x}', lambda: libc.unshare(flag))
        for name in os.listdir('/proc/self/ns'):
            attempt('setns ' + name, lambda: libc.setns(os.open('/proc/self/ns/' + name, os.O_RDONLY), 0))
            attempt('setns 1 ' + name, lambda: libc.setns(os.open('/proc/1/ns/' + name, os.O_RDONLY), 0))
    ''',
    'chroot': '''
        os.makedirs('/tmp/c/d')
        here = os.open('/', os.O_RDONLY)
        def escape():
            os.chroot('/tmp/c/d'); os.fchdir(here)
            for _ in range(100): os.chdir('..')
            os.chroot('.')
            return os.listdir('/')
        attempt('chroot', escape)
        os.fchdir(here)
        for _ in range(100): os.chdir('..')
        names = set(os.listdir('.'))
        if not {'usr', 'etc', 'proc'} <= names or {'lower', 'shown', 'work', 'boot'} & names: print('above /', names)
    ''',
    'devices': '''
        for name, kind, number in (('c', stat.S_IFCHR, os.makedev(1, 3)), ('mem', stat.S_IFCHR, os.makedev(1, 1)), ('b', stat.S_IFBLK, os.makedev(8, 0)),
                                   ('whiteout', stat.S_IFCHR, 0)):
            for folder in ('/tmp', '/usr/local', '/etc', '/dev', '/dev/shm'):
                attempt(f'mknod {folder}/{name}', lambda: os.mknod(f'{folder}/{name}', kind | 0o666, number) or 0)
        for path in ('/dev/x', '/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse'): attempt('open ' + path, write(path, flags=os.O_CREAT))
    ''',
    'kernel': '''
        for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/hostname', '/proc/sys/user/max_user_namespaces',
                     '/proc/sys/net/ipv4/ip_forward', '/proc/sys/net/ipv4/ip_unprivileged_port_start', '/proc/sys/vm/drop_caches', '/proc/sys/fs/file-max',
                     '/proc/self/uid_map', '/proc/self/gid_map', '/proc/self/setgroups', '/proc/1/uid_map', '/proc/1/setgroups'): attempt(path, write(path))
        # These are covered by /dev/null: what is written goes nowhere, and there is nothing to read.
        for path in ('/proc/kcore', '/proc/kmsg', '/proc/kallsyms', '/proc/slabinfo', '/proc/keys', '/proc/timer_list'): attempt('read ' + path, read(path))
        if os.path.exists('/proc/sysrq-trigger') and os.stat('/proc/sysrq-trigger').st_rdev != os.makedev(1, 3): print('sysrq-trigger')
        for folder in ('/sys', '/sys/fs/cgroup', '/proc/irq', '/proc/acpi', '/proc/bus', '/opt/caisson', '/proc'):
            attempt('write below ' + folder, write(folder + '/x', flags=os.O_CREAT))
        attempt('cgroup.procs', write('/sys/fs/cgroup/cgroup.procs', b'0'))
        attempt('init_module', call(175, 0, 0, b'')); attempt('finit_module', call(313, 0, b'', 0)); attempt('bpf', call(321, 0, 0, 0))
        attempt('keyctl', call(250, 0, -3, 1)); attempt('add_key', call(248, b'user', b'x', b'x', 1, -3)); attempt('perf', call(298, b'x' * 128, 0, -1, -1, 0))
        attempt('sethostname', lambda: socket.sethostname('x') or 0); attempt('reboot', call(169, 0xfee1dead, 672274793, 0, 0))
        attempt('open_by_handle_at', call(304, -100, 0, 0)); attempt('settime', call(227, 0, b'0' * 16)); attempt('syslog', call(103, 3, b'x' * 16, 16))
        attempt('io_uring', call(425, 4, b'0' * 200)); attempt('swapon', call(167, b'/etc/hosts', 0)); attempt('quotactl', call(179, 0, b'x', 0, 0))
    ''',
    'network': '''
        for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 0),
                                       (socket.AF_NETLINK, socket.SOCK_RAW, 9), (socket.AF_NETLINK, socket.SOCK_RAW, 12), (38, socket.SOCK_SEQPACKET, 0)):
            attempt(f'socket {family} {kind} {protocol}', lambda: socket.socket(family, kind, protocol))
        def low(port):
            made = socket.socket(); made.bind(('127.0.0.1', port)); return port
        attempt('port 80', lambda: low(80))
        def link(kind, flags, body):
            import struct
            made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            made.send(struct.pack('=IHHII', 16 + len(body), kind, flags | 5, 1, 0) + body)
            answer = made.recv(4096)
            return 0 if struct.unpack('=i', answer[16:20])[0] == 0 else None
        attempt('set a link down', lambda: link(16, 0, b'\\0' * 4 + (1).to_bytes(4, 'little') + b'\\0' * 4 + (1).to_bytes(4, 'little')))
    ''',
    'what is for root of the host': '''
        for name in ('kmsg', 'slabinfo', 'timer_list', 'vmallocinfo', 'pagetypeinfo', 'kpagecount', 'kpageflags', 'kpagecgroup', 'kcore', 'tty/driver'):
            path = '/proc/' + name
            attempt('read ' + name, lambda: open(path, 'rb').read(16) or None if not os.path.isdir(path) else os.listdir(path) or None)
            attempt('chmod ' + name, lambda: None if os.stat(path).st_rdev else os.chmod(path, 0o777) or 0); attempt('chown ' + name, lambda: None if os.stat(path).st_rdev else os.chown(path, 0, 0) or 0)
    ''',
    'process 1': '''
        for name in ('environ', 'maps', 'mem', 'auxv', 'stack', 'syscall', 'io'): attempt(name, read('/proc/1/' + name))
        attempt('write memory', write('/proc/1/mem')); attempt('exe', lambda: os.readlink('/proc/1/exe')); attempt('root', lambda: os.listdir('/proc/1/root'))
        for number in range(20):
            attempt(f'descriptor {number}', lambda: os.open(f'/proc/1/fd/{number}', os.O_RDWR)); attempt(f'link {number}', lambda: os.readlink(f'/proc/1/fd/{number}'))
        attempt('ptrace attach', call(101, 16, 1, 0, 0)); attempt('ptrace seize', call(101, 0x4206, 1, 0, 0))
        attempt('process_vm_readv', call(310, 1, 0, 0, 0, 0, 0))
        pidfd = os.pidfd_open(1); attempt('pidfd_getfd', call(438, pidfd, 3, 0))
        attempt('prlimit', call(302, 1, 7, (ctypes.c_uint64 * 2)(0, 0), 0)); attempt('nice', lambda: libc.setpriority(0, 1, 19))
        for number in (9, 15, 19, 2, 11): os.kill(1, number) if os.getuid() == 0 else None
    ''',
    'capabilities': '''
        attempt('setuid beyond', lambda: os.setuid(1999) or 0); attempt('setuid far', lambda: os.setuid(100000) or 0)
        open('/tmp/own', 'w').close()
        attempt('chown beyond', lambda: os.chown('/tmp/own', 70000, -1) or 0)
        attempt('ambient', lambda: libc.prctl(47, 2, 6, 0, 0)); attempt('nice', lambda: os.nice(-5)); attempt('rlimit', lambda: __import__('resource').setrlimit(7, (9999, 9999)) or 0)
        attempt('oom', write('/proc/self/oom_score_adj', b'-900'))
        class Set(ctypes.Structure): _fields_ = [(n, ctypes.c_uint32) for n in ('e', 'p', 'i')]
        for capability in range(41):
            sets = (Set * 2)(); word, bit = capability // 32, 1 << capability % 32
            if 0x1fb >> capability & 1 and os.getuid() == 0: continue
            sets[word].e = sets[word].p = bit
            attempt(f'capset {capability}', lambda: libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), sets))
        for name in ('trusted.x', 'trusted.overlay.opaque', 'security.x', 'security.capability'):
            value = b'\\x01\\0\\0\\x02' + b'\\xff' * 16
            attempt(name, lambda: os.setxattr('/tmp/own', name, value) or 0)
            attempt('usr ' + name, lambda: os.setxattr('/usr/bin/env', name, value) or 0)
    ''',
}


def attack(box, user):
    """Carry out all attacks in a sandbox, as this account."""
    for name, code in ATTACKS.items():
        process = box.start(user, ['python3', '-c', PRELUDE + textwrap.dedent(code) + '\nprint("end")'])
        assert (process['stdout'], process['exit_code']) == ('end\n', 0), (name, process)
    assert box.root('echo alive')['stdout'] == 'alive\n'
