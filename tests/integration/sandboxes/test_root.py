"""Root inside persistent sandboxes: what it may do there, what it may not, and that the host is none the wiser.

What has to hold whatever a program tries is in ATTACKS of root_inside.py.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from cli import CAISSON
from daemon import supervisors, until
from root_inside import WHY_NOT, Box, attack
from web import Web

TREE = Path('/usr/local/share/caisson-test-root')     # of the host, below what root inside gets an overlay of
SECRET = 'of the host alone'

needs_root = pytest.mark.skipif(bool(WHY_NOT), reason=f'needs root inside: {WHY_NOT}')


@pytest.fixture(name='host_tree', scope='module')
def files_of_the_host():
    """Files as a host may have them below /usr, with and without rights for everybody."""
    if os.geteuid() != 0:
        pytest.skip('needs root: files of the host are made')
    shutil.rmtree(TREE, ignore_errors=True)
    (TREE / 'closed').mkdir(parents=True)
    (TREE / 'folder').mkdir()
    for name, mode, owner in (('open', 0o644, 0), ('closed/in', 0o644, 0), ('root-600', 0o600, 0), ('group-640', 0o640, 0), ('account-600', 0o600, 33),
                              ('person-644', 0o644, 1000), ('person-600', 0o600, 1000), ('suid', 0o4755, 0), ('run-only', 0o711, 0), ('folder/a', 0o644, 0)):
        path = TREE / name
        path.write_text(SECRET + '\n')
        os.chown(path, owner, 42 if 'group' in name else owner)
        path.chmod(mode)
    (TREE / 'closed').chmod(0o700)
    yield TREE
    shutil.rmtree(TREE)


def listing():
    """What writes inside would change, of the host's files."""
    paths = ['/etc/passwd', '/usr', '/usr/local', '/usr/share']
    for top in (TREE, '/usr/bin', '/usr/share/doc', '/etc/ssl'):
        for folder, folders, names in os.walk(top):
            paths += [folder, *(os.path.join(folder, name) for name in [*folders, *names])]
    infos = [(path, os.lstat(path)) for path in sorted(paths)]
    return [(path, info.st_mode, info.st_uid, info.st_gid, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_nlink, info.st_ino) for path, info in infos]


@pytest.fixture(name='box')
def made(web):
    if WHY_NOT:
        pytest.skip(f'needs root inside: {WHY_NOT}')
    with Box(web) as box:
        yield box


def fields(status):
    return dict(re.findall(r'^(\w+):[ \t]*(.*?)[ \t]*$', status, re.M))


# ---- what it is for ----

def test_root_and_user_are_what_they_are_called(box):
    status = fields(box.root('cat /proc/self/status')['stdout'])
    assert status['Uid'] == status['Gid'] == '0\t0\t0\t0' and status['Groups'] == ''
    assert status['CapPrm'] == status['CapEff'] == status['CapBnd'] == '00000000000001fb'
    assert (status['CapInh'], status['CapAmb']) == ('0' * 16, '0' * 16) and (status['NoNewPrivs'], status['Seccomp']) == ('1', '2')
    status = fields(box.user('cat /proc/self/status')['stdout'])
    assert status['Uid'] == status['Gid'] == '1000\t1000\t1000\t1000' and status['Groups'] == ''
    assert {status[name] for name in ('CapPrm', 'CapEff', 'CapBnd', 'CapInh', 'CapAmb')} == {'0' * 16}
    assert (status['NoNewPrivs'], status['Seccomp']) == ('1', '2')
    assert box.user(['id', '-un'])['stdout'] == 'user\n'
    assert box.root('echo $HOME $USER; cd; pwd')['stdout'] == '/root root\n/root\n'


def test_the_boundary_says_what_is_in_force(box):
    boundary = box.made['boundary']
    assert boundary['capabilities'] == bin(0x1fb).count('1')
    assert boundary['overlay'] and boundary['own_uid'] and boundary['host_uids'] == 2000 and boundary['no_new_privileges'] and boundary['seccomp']
    maps = box.root('cat /proc/self/uid_map /proc/self/gid_map')['stdout'].split()
    assert maps == ['0', '0', '1999', '65534', '65534', '1'] * 2
    record = box.web.run('id -u')
    assert (record['boundary']['host_uids'], record['boundary']['overlay'], record['boundary']['capabilities']) == (1, False, 0)


def test_the_root_file_system_can_be_written_by_root_alone(box):
    done = box.root('''set -e
        echo conf > /etc/new.conf; sed -i s/localhost/here/ /etc/hosts; mkdir -p /usr/local/lib/thing /var/lib/thing /opt/thing /srv/x
        printf '#!/bin/sh\\necho tool\\n' > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool
        rm -r /usr/share/doc; mkdir /usr/share/doc; ls -A /usr/share/doc
        mv /usr/bin/true /usr/bin/was-true; ln /usr/bin/was-true /usr/bin/true; cp /usr/bin/env /usr/bin/true
        useradd -m bob; chown bob /etc/new.conf; ldconfig; echo fine''')
    assert (done['exit_code'], done['stdout']) == (0, 'fine\n'), done['stderr']
    assert box.user('tool; cat /etc/new.conf; stat -c %U /etc/new.conf; id -u bob; ls /usr/share/doc')['stdout'] == 'tool\nconf\nbob\n1001\n'
    for place in ('/etc/x', '/usr/local/bin/x', '/usr/local/bin/tool', '/root/x', '/var/x', '/opt/caisson/x', '/x'):
        assert box.user(f'echo > {place}')['exit_code'] == 1, place
    done = box.root('set -e; mkdir -m 1777 /data; echo new > /file; mv /file /data/file; printf "#!/bin/sh\necho runs\n" > /data/run; chmod 755 /data/run; rmdir /srv/x /srv')
    assert done['exit_code'] == 0, done['stderr']
    assert box.user('cat /data/file; /data/run; echo mine > /data/mine && cat /data/mine; ls -d /srv')['stdout'] == 'new\nruns\nmine\n'
    assert box.root('mv /proc /old || rmdir /dev || rm -r /usr/../opt/caisson')['exit_code'] == 1
    assert box.user('echo x > ~/x && cat ~/x && rm ~/x')['stdout'] == 'x\n'


def test_what_pip_installs_as_root_is_imported_by_user(box):
    done = box.root('''set -e
        cd /tmp; mkdir package; printf 'from setuptools import setup\\nsetup(name="thing", version="1", py_modules=["thing"])\\n' > package/setup.py
        echo 'value = 42' > package/thing.py; cd package; python3 setup.py -q install --single-version-externally-managed --record /dev/null >&2''')
    if 'No module named' in done['stderr']:
        pytest.skip('needs setuptools for /usr/bin/python3')
    assert done['exit_code'] == 0, done['stderr']
    assert box.python('user', 'import thing; print(thing.value, thing.__file__.startswith("/usr/local/lib/"))') == '42 True\n'


def test_nothing_of_the_host_changes_and_no_other_sandbox_sees_it(web, host_tree):
    if WHY_NOT:
        pytest.skip(f'needs root inside: {WHY_NOT}')
    before = listing()
    with Box(web) as one, Box(web) as other:
        done = one.root(f'''cd {host_tree}; echo more >> open; chmod 600 folder; chown 33 folder/a; rm suid; ln open open2; mv folder/a b; touch /usr/bin/env
            rm -rf folder; mkdir folder; echo x > /etc/passwd; rm -rf /usr/share/doc; rm -rf /etc/ssl; echo > /usr/local/x''')
        assert (done['exit_code'], done['stderr']) == (0, '')
        assert one.root(f'ls {host_tree}/folder; tail -1 {host_tree}/open')['stdout'] == 'more\n'
        assert other.root(f'ls {host_tree}/folder; cat {host_tree}/open; wc -l < /etc/passwd; ls /usr/local/x')['stdout'] == f'a\n{SECRET}\n3\n'
        assert other.made['boundary']['host_uid'] != one.made['boundary']['host_uid']
        assert listing() == before
    assert listing() == before
    with Box(web) as later:
        assert later.root(f'cat {host_tree}/open; ls /usr/local/x')['stdout'] == SECRET + '\n'


def test_the_quota_is_one_for_all_that_is_written(web, box):
    with Box(web, limits={'disk_bytes': 10 << 20, 'disk_files': 100}) as small:
        done = small.root('cd /usr/local; for i in 1 2 3; do head -c 5M /dev/zero > big$i; done; cat big? | wc -c')   # one file may be as large as all
        assert 9 << 20 < int(done['stdout']) <= 10 << 20 and 'No space left' in done['stderr']
        assert small.user('echo some > ~/x; wc -c < ~/x')['stdout'] == '0\n'
        assert small.root('rm /usr/local/big?; cp /usr/bin/env ~user/e && rm ~user/e')['exit_code'] == 0
        done = small.root('cd /etc; for i in $(seq 200); do echo > f$i || break; done; ls -d f[0-9]* | wc -l')
        assert 90 <= int(done['stdout']) <= 101 and 'No space left' in done['stderr']
    assert box.root('head -c 20M /dev/zero > /usr/local/big')['exit_code'] == 0


# ---- files of the host that not everybody may read ----

def test_root_inside_reads_what_everybody_on_the_host_may_read_and_no_more(box, host_tree):
    closed = ('closed/in', 'root-600', 'group-640', 'account-600', 'person-600')
    for name in closed:
        for attempt in (f'cat {name}', f'cp {name} /tmp/got; cat /tmp/got', f'mv {name} /tmp/moved; cat /tmp/moved', f'ln {name} got; cat got', f'chmod 644 {name}; cat {name}',
                        f'chown root {name}; cat {name}', f'echo x >> {name}; cat {name}', f'python3 -c "import mmap; print(mmap.mmap(open(\'{name}\').fileno(), 0)[:])"',
                        f'chmod 777 closed; chmod 777 .; cat {name}', f'dd if={name}', f'setfattr -n user.x {name}; tail {name}', f'install -m 644 {name} /tmp/i; cat /tmp/i'):
            for user in ('root', 'user'):
                assert SECRET not in box.start(user, f'cd {host_tree}; {attempt}')['stdout'], (name, attempt, user)
    assert box.root(f'setpriv --reuid 33 --regid 42 --clear-groups cat {host_tree}/account-600 {host_tree}/group-640')['stdout'] == ''
    # An owner whom the sandbox does not have is nobody, and its files are no `user`'s.
    assert box.user(f'cat {host_tree}/person-644; stat -c %u {host_tree}/person-644; echo x > {host_tree}/person-644')['stdout'] == f'{SECRET}\n65534\n'
    assert box.root(f'cat {host_tree}/open')['stdout'] == SECRET + '\n'
    # They can be hidden all the same: that changes nothing of theirs.
    assert box.root(f'cd {host_tree}; rm root-600; echo mine > root-600; cat root-600')['stdout'] == 'mine\n'
    assert (host_tree / 'root-600').read_text() == SECRET + '\n'


def test_the_real_tree_of_the_host_keeps_its_secrets(box):
    """Every file below /usr that the host keeps from everybody, if there is one."""
    found = subprocess.run(['find', '/usr', '-xdev', '-type', 'f', '-not', '-perm', '-o=r'], capture_output=True, text=True, check=False).stdout.split('\n')[:-1]
    for path in found[:50]:
        assert box.root(['head', '-c', '1', path])['exit_code'] == 1, path


# ---- attacks ----

@needs_root
@pytest.mark.parametrize('landlock', ['prefer', 'off'])
@pytest.mark.parametrize('user', ['root', 'user'])
def test_attacks(web, user, landlock):
    """Without Landlock the other walls have to do."""
    with Box(web, landlock=landlock) as box:
        attack(box, user)


def test_user_does_not_become_root(box):
    """By a file with the set-user-id bit, of the host's or of root's making, or by a link that root's hands follow."""
    assert box.root('cp /bin/bash /usr/bin/rootsh; chmod 6755 /usr/bin/rootsh; echo "user ALL=(ALL) NOPASSWD: ALL" > /etc/sudoers; passwd -d root; echo > /etc/shadow')
    attempts = ['rootsh -p -c "id -u"', 'su -c "id -u"', 'sudo -n id -u', 'pkexec id -u', 'newgrp root -c "id -u"', 'sg root "id -g"', 'mount -t tmpfs x /tmp && echo 0',
                'unshare -r id -u', 'setpriv --reuid 0 id -u', 'setpriv --inh-caps +setuid id -u 2>&1 | grep -x 0', 'python3 -c "import os; os.setuid(0); print(os.getuid())"',
                'chage -l root', 'cp /bin/bash ~/b; chmod 6755 ~/b; ~/b -p -c "id -u"']
    for attempt in attempts:
        assert '0' not in box.user(attempt)['stdout'].split(), attempt
    # Files are `user`'s business whoever asks for them through the interface.
    assert box.user('ln -s /etc/passwd ~/link; ln -s /etc ~/folder; ln -s /root ~/theirs')['exit_code'] == 0
    for path in ('link', 'folder/planted', 'theirs/planted'):
        status, _, answer = box.web.ask('PUT', f'/v1/sandboxes/{box.id}/files/home/user/{path}', b'x', Content_Type='application/octet-stream')
        assert status >= 400, (path, answer)
    assert box.root('ls -A /root; grep -c . /etc/passwd')['stdout'] == '3\n'


def test_user_does_not_reach_processes_of_root(box):
    code = '''
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        found = 0
        for pid in filter(str.isdigit, os.listdir('/proc')):
            if os.stat(f'/proc/{pid}').st_uid != 0: continue
            found += 1
            for name in ('environ', 'mem', 'maps', 'fd/0', 'fd/1', 'cwd/x', 'root/etc/passwd', 'exe'):
                try: open(f'/proc/{pid}/{name}', 'rb').read(1); print('read', pid, name)
                except OSError: pass
            for number in (0, 9, 15, 19):
                try: os.kill(int(pid), number); print('signal', pid, number)
                except PermissionError: pass
        for name in os.listdir('/dev/pts'):
            if name.isdigit() and os.stat(f'/dev/pts/{name}').st_uid == 0:
                found += 10
                for mode in ('rb', 'wb'):
                    try: open(f'/dev/pts/{name}', mode); print('terminal', name, mode)
                    except OSError: pass
        print('found', found)
    '''
    status, _, started = box.web.ask('POST', f'/v1/sandboxes/{box.id}/processes', {'command': 'sleep 1000', 'user': 'root', 'terminal': True}, Prefer='respond-async')
    assert status == 202, started
    assert box.python('user', code) == 'found 12\n'    # process 1, sleep, and its terminal


def test_what_is_counted_for_each_uid_is_bounded_for_all_of_root(box):
    """inotify instances are one quota of the host's for all sandboxes; root has 2,000 uids to take them with."""
    code = '''
        import ctypes, os
        libc = ctypes.CDLL(None)
        r, w = os.pipe(); hold, release = os.pipe()
        for uid in range(100, 112):
            if os.fork() == 0:
                os.close(release); os.setuid(uid)
                made = sum(libc.inotify_init1(0) >= 0 for _ in range(20))
                os.write(w, bytes([made])); os.read(hold, 1); os._exit(0)
        print(sum(os.read(r, 1)[0] for _ in range(12)))
    '''
    assert int(box.python('root', code)) <= 16


def test_what_root_marks_for_overlayfs_marks_nothing(box):
    """The notes that overlayfs makes for itself are attributes of users; those that are written through it are others."""
    code = '''
        import os
        os.mkdir('/usr/local/made'); open('/usr/local/made/file', 'w').write('x')
        for name, value in (('opaque', b'y'), ('redirect', b'/bin'), ('whiteout', b'y'), ('metacopy', b''), ('origin', b'x' * 20)):
            for path in ('/usr/lib', '/usr/local/made', '/usr/local/made/file', '/usr/bin/env'):
                try: os.setxattr(path, 'user.overlay.' + name, value)
                except OSError: pass
        print(len(os.listdir('/usr/lib')) > 10, os.listdir('/usr/local/made'), os.path.getsize('/usr/bin/env') > 0)
    '''
    assert box.python('root', code) == "True ['file'] True\n"


@needs_root
def test_the_other_wishes_of_a_sandbox_go_with_it(web):
    """A strict /proc, a way out through the proxy, a pause."""
    with Box(web, strict_proc=True, network='public') as box:
        assert box.made['boundary']['strict_proc'] and box.made['boundary']['network'] == 'proxy'
        assert box.root('ls /proc/sys /proc/kmsg 2>&1 | grep -c "No such"; ls -d /proc/1')['stdout'] == '2\n'
        assert box.user('ls -d /proc/1')['exit_code'] == 2
        assert box.root('echo > /dev/tcp/127.0.0.1/3128 && echo there')['stdout'] == 'there\n'
        assert web.ask('POST', f'/v1/sandboxes/{box.id}/pause', {})[0] < 300
        assert web.ask('POST', f'/v1/sandboxes/{box.id}/resume', {})[0] < 300
        assert box.root('echo on')['stdout'] == 'on\n'


# ---- contexts ----

def test_a_context_is_user_or_root(box):
    for language, code in (('python', 'import os; print(os.getuid(), os.environ["HOME"])'), ('bash', 'echo $(id -u) $HOME')):
        for user, says in (('user', '1000 /home/user\n'), ('root', '0 /root\n')):
            status, _, context = box.web.ask('POST', f'/v1/sandboxes/{box.id}/contexts', {'language': language, 'user': user})
            assert status == 201, context
            assert context.get('user', 'user') == user and (user == 'user' or not context['warm'])
            _, _, record = box.web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': code})
            assert (record['status'], record['stdout']) == ('completed', says)


def test_an_interpreter_of_a_zygote_has_no_right_of_root(box):
    _, _, context = box.web.ask('POST', f'/v1/sandboxes/{box.id}/contexts', {})
    code = 'print([line.split(":")[1].strip() for line in open("/proc/self/status") if line.startswith(("Cap", "NoNewPrivs", "Uid", "Groups"))])'
    _, _, record = box.web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': code})
    assert record['stdout'] == str(['1000\t1000\t1000\t1000', '', *['0' * 16] * 5, '1']) + '\n'


# ---- where it is refused ----

def test_without_root_nothing_is_started_as_root(web):
    _, _, plain = web.ask('POST', '/v1/sandboxes', {})
    for path, request in (('processes', {'command': 'id', 'user': 'root'}), ('contexts', {'user': 'root'})):
        status, _, problem = web.ask('POST', f'/v1/sandboxes/{plain["id"]}/{path}', request)
        assert (status, problem['field']) == (422, '/user') and '"root": true' in json.dumps(problem).replace('\\', ''), problem
    status, _, problem = web.ask('POST', f'/v1/sandboxes/{plain["id"]}/processes', {'command': 'id', 'user': 'daemon'})
    assert status == 422 and 'user' in problem['field']
    assert 'root' not in plain and not plain['boundary']['overlay']


def test_a_range_without_a_block_refuses_with_the_remedy(tmp_path):
    web = Web(tmp_path, '--set', 'engine.uid_count=3999')
    try:
        status, _, problem = web.ask('POST', '/v1/sandboxes', {'root': True})
        assert (status, problem['code']) == (503, 'isolation_unavailable'), problem
        assert ('engine.uid_count to 4000' if os.geteuid() == 0 else 'as root') in problem['detail']
        assert web.ask('POST', '/v1/sandboxes', {})[0] == 201
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0


def test_an_administrator_switches_it_off(tmp_path):
    web = Web(tmp_path, '--set', 'engine.sandbox_root=false')
    try:
        status, _, problem = web.ask('POST', '/v1/sandboxes', {'root': True})
        assert (status, problem['field']) == (422, '/root') and 'engine.sandbox_root' in problem['detail'], problem
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0


@needs_root
def test_blocks_end_with_their_sandboxes(tmp_path):
    web = Web(tmp_path, '--set', 'engine.uid_count=4000', '--set', 'engine.uid_first=2500000000')   # one block
    try:
        with Box(web):
            status, _, problem = web.ask('POST', '/v1/sandboxes', {'root': True})
            assert (status, problem['code']) == (429, 'capacity') and 'no block of ids' in problem['detail'], problem
        until(lambda: web.ask('POST', '/v1/sandboxes', {'root': True})[0] == 201)
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0


def holders(first):
    """Processes of the host that have an id of this block."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            ids = re.search(r'^Uid:\s+(.*)$', Path(f'/proc/{pid}/status').read_text(), re.M)[1].split()
        except OSError:
            continue
        if any(first <= int(one) < first + 2000 for one in ids):
            found.append(pid)
    return found


def is_locked(first):
    return f'@caisson-ids-{first}\n' in Path('/proc/net/unix').read_text()


@needs_root
def test_nothing_is_left_of_one_whose_supervisor_is_killed(tmp_path):
    web = Web(tmp_path, '--set', 'engine.uid_first=2600000000')     # nobody else's on this host
    try:
        box = Box(web)
        first = box.made['boundary']['host_uid']
        for user in ('root', 'user'):
            status, _, _ = web.ask('POST', f'/v1/sandboxes/{box.id}/processes', {'command': 'sleep 1000 & sleep 1000', 'user': user}, Prefer='respond-async')
            assert status == 202
        until(lambda: len(holders(first)) >= 5)     # process 1 and what it started
        assert is_locked(first)
        for pid in supervisors(web.daemon.process.pid):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not holders(first) and not is_locked(first))
    finally:
        web.daemon.stop(signal.SIGTERM)


WITHOUT = """set -e
mount -t tmpfs none "$1"
mkdir -p "$1/upper/bin" "$1/work"
mknod "$1/upper/bin/$2" c 0 0
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$1/upper,workdir=$1/work" /usr
shift 2
exec "$@"
"""


@pytest.mark.parametrize('missing, language', [('node', 'javascript'), ('bash', 'bash')])
def test_a_language_without_its_interpreter_is_unsupported(tmp_path, missing, language):
    host = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', WITHOUT, 'sh', str(tmp_path), missing]

    def record(name, code):
        done = subprocess.run([*host, CAISSON, 'run', '--json', '-l', name, '-c', code], capture_output=True, check=False)
        return done.returncode, json.loads(done.stdout)

    status, answer = record(language, '1')
    assert (status, answer['status'], answer['error']['code']) == (64, 'unsupported_language', 'unsupported_language'), answer
    assert missing in answer['error']['message']
    assert record('python', 'print(1)')[1]['stdout'] == '1\n'
