"""Root inside in images: what it may write, that the image stays as it is, and packages of Debian that it installs."""

import os
import shlex
import subprocess

import pytest

from cli import caisson
from debian_packages import Mirror, debian_root
from image_archives import folder, link, shell_root, write
from private_index import make_wheel
from root_inside import WHY_NOT, Box, attack
from web import Web

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=f'needs root inside: {WHY_NOT}')

HOST = 'mirror.test'
LIMITS = {'disk_bytes': 128 << 20, 'wall_ms': 60000}
HELLO = {'usr/bin/hello-test': '#!/bin/sh\necho hello of the package\n', 'usr/lib/python3/dist-packages/of_apt.py': 'VALUE = 7\n', 'etc/hello-test.conf': 'a\n'}
# dpkg gives the folder to an account of the image, and the script runs as root.
POSTINST = '#!/bin/sh\nset -e\nmkdir /var/lib/hello-test\nchown www-data:mail /var/lib/hello-test\nchmod 2750 /var/lib/hello-test\nldconfig\n'


@pytest.fixture(name='store', scope='module')
def stored(tmp_path_factory):
    """deb has Python, apt and dpkg; sh has Bash alone."""
    path = tmp_path_factory.mktemp('images')
    path.chmod(0o755)
    for name, members in (('deb', debian_root()), ('sh', shell_root())):
        done = caisson('image', 'import', write(path / f'{name}.tar', members), '--set', f'images.dir={path}/store')
        assert done.status == 0, done.err
    return path / 'store'


@pytest.fixture(name='mirror', scope='module')
def served(tmp_path_factory):
    mirror = Mirror(tmp_path_factory.mktemp('mirror') / 'files')
    mirror.add('hello-test', HELLO, postinst=POSTINST)
    mirror.add('needs-hello', {'usr/share/needs-hello/x': 'x\n'}, depends='hello-test')
    yield mirror
    mirror.close()


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, store, mirror):
    """A daemon for which the name of the mirror leads to loopback."""
    path = tmp_path_factory.mktemp('daemon')
    hosts = path / 'hosts'
    hosts.write_text(f'127.0.0.1 localhost {HOST} other.test\n')
    command = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', hosts]
    web = Web(path, '--set', f'images.dir={store}', '--set', 'images.e2b=deb', '--set', f'engine.private_hosts={HOST}:{mirror.port}',
              '--set', 'engine.network=public', command=command)
    yield web
    web.daemon.stop()


@pytest.fixture(name='box')
def made(web, mirror):
    with Box(web, image='deb', sudo=True, network='allow', allow=[f'{HOST}:{mirror.port}'], limits=LIMITS) as box:
        yield box


def use_mirror(box, mirror, host=HOST):
    done = box.user(f'echo "deb [trusted=yes] http://{host}:{mirror.port} ./" | sudo sh -c "cat > /etc/apt/sources.list"; sudo apt-get update', timeout_ms=60000)
    assert done['exit_code'] == 0, done
    return done


def listing(store):
    """All that a write to an image would change."""
    paths = [os.path.join(top, name) for top, folders, names in os.walk(store) for name in [*folders, *names]]
    infos = [(path, os.lstat(path)) for path in sorted(paths)]
    return [(path, info.st_mode, info.st_uid, info.st_gid, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_nlink, info.st_ino) for path, info in infos]


# ---- the file system ----

def test_root_writes_everywhere_and_the_image_stays_as_it_is(web, store):
    before = listing(store)
    with Box(web, image='deb') as one, Box(web, image='deb') as other:
        done = one.root('''set -e; for f in /etc/x /usr/bin/x /usr/lib/x /opt/x /var/x /var/lib/dpkg/x /root/x /srv/x /x; do echo mine > $f; done
            echo more >> /etc/marker; rm /usr/bin/touch; rm -rf /usr/lib/apt; mv /usr/bin/id /usr/bin/id2; chmod 600 /usr/bin/cat; chown www-data /var/lib/dpkg/status''')
        assert (done['exit_code'], done['stderr']) == (0, '')
        assert one.root('id2 -u; ls /usr/bin/touch')['stdout'] == '0\n'
        assert other.root('cat /etc/marker; ls /etc/x /x; id -u')['stdout'] == 'in the image\n0\n'
        assert one.made['boundary']['overlay'] and one.made['image']['name'] == 'deb'
        assert listing(store) == before
    assert listing(store) == before


def test_user_cannot_write_what_is_of_root(box):
    done = box.user('for f in /etc/x /usr/x /opt/x /var/x /root/x /srv/x /x /run/x /etc/passwd /var/lib/dpkg/status; do ( : >> $f ) 2>/dev/null && echo $f; done; : > ~/x; : > /tmp/x; cat /etc/secret')
    assert done['stdout'] == '' and 'Permission denied' in done['stderr']


def test_accounts_of_the_image_are_there_and_user_is_1000(box):
    done = box.user('id -un; id -u www-data; id -gn; stat -c %U:%G ~; cat /etc/passwd; cat /etc/group')
    name, www, group, home, *accounts = done['stdout'].splitlines()
    assert (name, www, group, home) == ('user', '33', 'user', 'user:user')
    assert accounts[:2] == ['root:x:0:0:root:/root:/bin/bash', 'user:x:1000:1000:user:/home/user:/bin/bash'] and sum(line.startswith('root:') for line in accounts) == 2
    assert '_apt:x:42:65534::/nonexistent:/usr/sbin/nologin' in accounts and 'mail:x:8:' in accounts


def test_the_quota_is_one_for_all_that_is_written(web):
    with Box(web, image='deb', limits={'disk_bytes': 10 << 20}) as box:
        done = box.root('cd /usr; for i in 1 2 3; do head -c 5M /dev/zero > big$i; done; cat big? | wc -c')
        assert 9 << 20 < int(done['stdout']) <= 10 << 20 and 'No space left' in done['stderr']
        assert box.user('echo some > ~/x; wc -c < ~/x')['stdout'] == '0\n'


def test_sudo_needs_no_interpreter_of_the_image(web):
    with Box(web, image='sh', sudo=True) as box:
        commands = ('sudo id -u', 'sudo -u user id -u', 'sudo -u nope id', 'sudo', 'sudo A=b bash -c "echo $A$HOME"', 'sudo -E -n -- bash -c "exit 7"; echo $?', 'sudo nope; echo $?',
                    'sudo bash -c "kill -9 $$"; echo $?', 'echo "id -u" | sudo -s', 'sudo -v; echo $?', 'sudo --bad id', 'sudo id -u </dev/null >&-; echo $?')
        done = box.user('\n'.join(commands).replace('$A', '\\$A').replace('$HOME', '\\$HOME').replace('$$', '\\$\\$'))
        assert done['stdout'].split() == ['0', '1000', 'b/root', '7', '127', '137', '0', '0', '0'], done
        for words in ('unknown user nope', 'say what to run', 'nope: command not found', '--bad is not known here'):
            assert f'sudo: {words}' in done['stderr'], done


def test_signals_go_through_sudo(box):
    done = box.user('''sudo bash -c 'trap "echo caught; exit 3" TERM; echo ready > /tmp/ready; while :; do read -t 0.05 < /dev/zero; done' & pid=$!
        until [ -s /tmp/ready ]; do :; done; kill -TERM $pid; wait $pid; echo $?''')
    assert done['stdout'] == 'caught\n3\n', done


@pytest.mark.parametrize('user', ['root', 'user'])
@pytest.mark.parametrize('landlock', ['prefer', 'off'])
def test_attacks(web, store, user, landlock):
    before = listing(store)
    with Box(web, image='deb', landlock=landlock) as box:
        attack(box, user)
        # The layers of the overlay and other images are out of reach, by name and by /proc.
        done = box.root(f'ls / /home /run/caisson; ls {store} /lower /changed /work; cat /proc/self/mounts; echo x > /run/caisson/changed/etc/x; mount -o remount,rw /run/caisson/changed')
        assert 'lower' not in done['stdout'].split('overlay')[0].split() and done['stderr'].count('No such file') == 4 and 'Read-only file system' in done['stderr'], done
    assert listing(store) == before


def test_a_set_user_id_file_gives_nothing(box):
    assert box.root('cp /usr/bin/bash /usr/bin/rootsh; chmod 6755 /usr/bin/rootsh')['exit_code'] == 0
    assert box.user('rootsh -p -c "id -u"; id -u')['stdout'] == '1000\n1000\n'


def test_links_of_an_image_lead_nowhere(tmp_path, web):
    """Names at which root is prepared, as links of the image to places outside."""
    names = {'root', 'etc/profile.d'}
    members = [(info, content) for info, content in debian_root() if info.name not in names]
    members += [folder('usr/local'), link('root', '/home/user'), link('etc/profile.d', '/tmp'), link('usr/local/bin', '/proc/self/root/tmp'), link('etc/shadow', '/proc/1/mem')]
    other = Web(tmp_path, '--set', f'images.dir={tmp_path}/store')
    try:
        assert caisson('image', 'import', write(tmp_path / 'links.tar', members), '--set', f'images.dir={tmp_path}/store').status == 0
        with Box(other, image='links', sudo=True) as box:
            assert box.root('id -u; ls -ld /home/user | head -c 10')['stdout'] == '0\ndrwx------'
    finally:
        other.daemon.stop()
    assert not os.path.exists('/tmp/caisson.sh') and web.ask('GET', '/v1/images')[0] == 200


def test_a_removed_image_stays_for_its_sandboxes(web, store, tmp_path):
    archive = write(tmp_path / 'gone.tar', shell_root())
    settings = ['--set', f'images.dir={store}']
    assert caisson('image', 'import', archive, *settings).status == 0
    with Box(web, image='gone') as box:
        assert caisson('image', 'remove', 'gone', *settings).status == 0
        assert box.root('cat /etc/marker; echo x > /usr/x; cat /usr/x')['stdout'] == 'in the image\nx\n'


def test_a_default_image_holds_for_root_as_well(tmp_path, store):
    other = Web(tmp_path, '--set', f'images.dir={store}', '--set', 'images.python=deb')
    try:
        with Box(other) as box:
            assert box.made['image']['name'] == 'deb' and box.root('cat /etc/marker')['stdout'] == 'in the image\n'
        with Box(other, image='system') as box:
            assert 'image' not in box.made and box.root('cat /etc/marker')['exit_code'] == 1
    finally:
        other.daemon.stop()


def test_an_image_of_a_person_belongs_to_root_inside(tmp_path):
    """Whatever account the folder of images belongs to."""
    store = tmp_path / 'store'
    store.mkdir()
    os.chown(store, 65533, 65532)
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    archive = write(tmp_path / 'sh.tar', shell_root())
    assert caisson('image', 'import', archive, '--set', f'images.dir={store}').status == 0
    assert os.stat(next(store.glob('*/tree/etc/marker'))).st_uid == 65533
    other = Web(tmp_path, '--set', f'images.dir={store}')
    try:
        with Box(other, image='sh') as box:
            assert box.root('echo more >> /etc/marker; cat /etc/marker')['stdout'] == 'in the image\nmore\n'
            assert box.root('ls -n /etc/marker')['stdout'].split()[2:4] == ['0', '0']
    finally:
        other.daemon.stop()


# ---- packages of Debian ----

def test_packages_come_from_the_mirror_that_the_rule_names(box, mirror):
    use_mirror(box, mirror)
    done = box.user('sudo apt-get install -y needs-hello', timeout_ms=60000)
    assert done['exit_code'] == 0 and 'Setting up hello-test' in done['stdout'], done
    assert box.user('hello-test; stat -c "%U %G %a" /var/lib/hello-test /usr/bin/hello-test')['stdout'] == 'hello of the package\nwww-data mail 2750\nroot root 755\n'
    assert box.user('dpkg-query -W -f "\\${Package} \\${db:Status-Status}\\n"; sudo dpkg --audit')['stdout'] == 'hello-test installed\nneeds-hello installed\n'
    done = box.user('sudo apt-get purge -y hello-test', timeout_ms=60000)
    assert done['exit_code'] == 0 and box.user('ls /usr/bin/hello-test /etc/hello-test.conf')['stdout'] == '', done
    assert './hello-test_1.0_all.deb' in ' '.join(mirror.asked)


def test_a_host_that_no_rule_names_is_not_reached(box, mirror, web):
    before = len(mirror.asked)
    done = box.user(f'echo "deb [trusted=yes] http://other.test:{mirror.port} ./" | sudo sh -c "cat > /etc/apt/sources.list"; sudo apt-get update', timeout_ms=60000)
    assert '403' in done['stdout'] + done['stderr'] and len(mirror.asked) == before, done
    with Box(web, image='deb', network='public', limits=LIMITS) as other:     # private, and not in engine.private_hosts
        done = other.root(f'echo "deb [trusted=yes] http://other.test:{mirror.port} ./" > /etc/apt/sources.list; apt-get update', timeout_ms=60000)
        assert '403' in done['stdout'] + done['stderr'] and len(mirror.asked) == before, done


NO_DATABASE = ('this file system has no database of Debian packages; ask for a persistent sandbox with "root", "sudo" and an "image" of Debian, or name packages of Python and Node '
               'in the field "packages".')
NO_ROOT = 'only root installs packages, and this sandbox has no root; ask for a persistent sandbox with "root" and "sudo".'
NO_NETWORK = 'this sandbox has no network; ask for one with the "network" "allow" and the host of the mirror in "allow", or with "public".'
SUDO = 'only root installs packages; write "sudo apt-get install -y hello-test".'
INSTALL = 'apt-get install -y hello-test'


@pytest.mark.parametrize('request_, command, line', [
    ({'root': False}, INSTALL, NO_DATABASE), ({'sudo': True}, f'sudo {INSTALL}', NO_DATABASE), ({'sudo': True}, 'sudo apt-get update', NO_DATABASE),
    ({'image': 'sh', 'root': False}, 'bash /opt/caisson/installs/bin/' + INSTALL, NO_DATABASE),
    ({'image': 'deb', 'root': False}, INSTALL, NO_ROOT), ({'image': 'deb', 'root': False, 'network': 'public'}, 'apt-get -q -o A=b upgrade', NO_ROOT),
    ({'image': 'deb', 'sudo': True}, f'sudo {INSTALL}', NO_NETWORK), ({'image': 'deb', 'sudo': True}, f'bash -lc {shlex.quote("sudo " + INSTALL)}', NO_NETWORK),
    ({'image': 'deb', 'sudo': True}, INSTALL, SUDO), ({'image': 'deb', 'sudo': True}, f'bash -lc {shlex.quote(INSTALL)}', SUDO)],
    ids=['host', 'host-sudo', 'host-update', 'no-apt', 'no-root', 'no-root-upgrade', 'no-network', 'no-network-login', 'without-sudo', 'without-sudo-login'])
def test_elsewhere_one_sentence_says_why_not(web, request_, command, line):
    with Box(web, **request_) as box:
        done = box.user(command)
        assert (done['exit_code'], done['stdout'], done['stderr']) == (100, '', f'apt-get: {line}\n')


def test_in_a_run_one_sentence_says_why_not(web):
    record = web.run(INSTALL)
    assert record['stderr'] == f'apt-get: {NO_DATABASE}\n' and record['exit_code'] == 100, record
    assert web.run(INSTALL, image='deb')['stderr'].endswith(f'apt-get: {NO_ROOT}\n')


def test_the_words_of_an_answer_are_no_commands(web):
    with Box(web, image='deb', sudo=True) as box:
        done = box.user("apt-get install '$(echo pwned > ~/pwned)' '`id`' '; id'; ls ~")
        assert done['stdout'] == '' and done['stderr'].count('\n') == 1 and 'uid=' not in done['stderr'], done


def test_other_words_and_files_go_on_to_apt_itself(web, mirror):
    with Box(web, image='deb', sudo=True, limits=LIMITS) as box:
        assert box.user('apt-get --version')['stdout'].startswith('apt ')
        assert 'are you root' in box.user('apt-get remove x')['stderr']
        content = (mirror.folder / 'hello-test_1.0_all.deb').read_bytes()
        assert web.ask('PUT', f'/v1/sandboxes/{box.id}/files?path=/home/user/hello.deb', content)[0] in (200, 201)
        done = box.user('sudo apt-get install -y ./hello.deb; hello-test', timeout_ms=60000)
        assert done['stdout'].endswith('hello of the package\n'), done


# ---- what was installed is imported ----

def value_of(web, context, code):
    _, _, record = web.ask('POST', '/v1/runs', {'context': context, 'code': code})
    return record['result']['value'] if record['status'] == 'completed' else record['error']['type']


def context_of(web, box, **more):
    status, _, context = web.ask('POST', f'/v1/sandboxes/{box.id}/contexts', {'language': 'python', **more})
    assert status == 201, context
    return context['id']


def test_a_package_of_apt_is_imported_in_every_context_at_once(web, box, mirror):
    code = 'import of_apt\nof_apt.VALUE'
    before = [context_of(web, box), context_of(web, box, user='root')]
    assert [value_of(web, context, code) for context in before] == ['ModuleNotFoundError'] * 2
    use_mirror(box, mirror)
    assert box.user('sudo apt-get install -y hello-test', timeout_ms=60000)['exit_code'] == 0
    assert [value_of(web, context, code) for context in [*before, context_of(web, box), context_of(web, box, user='root')]] == [7] * 4
    assert box.user(['python3', '-c', 'import of_apt; print(of_apt.VALUE)'])['stdout'] == '7\n'


def put_wheel(web, box, name, version='1.0', files=None):
    content, _ = make_wheel(name, version, files or {f'{name}.py': f'VERSION = "{version}"\n', f'{name}.pth': f'/tmp/{name}\n'})
    path = f'/home/user/{name}-{version}-py3-none-any.whl'
    assert web.ask('PUT', f'/v1/sandboxes/{box.id}/files?path={path}', content)[0] in (200, 201)
    return path


@pytest.mark.parametrize('how, for_root', [('pip install --user', False), ('pip install', False), ('sudo pip install', True),
                                           ('sudo pip install --target /usr/lib/python3/dist-packages', True)])
def test_a_wheel_is_imported_in_every_context_at_once(web, how, for_root):
    """On the host's own programs, where contexts are forked from a zygote."""
    with Box(web, sudo=True, limits=LIMITS, env={'PIP_BREAK_SYSTEM_PACKAGES': '1'}) as box:
        code, beside = 'import late_one\nlate_one.VERSION', 'import late_beside\nlate_beside.X'
        contexts = [context_of(web, box), context_of(web, box)] + [context_of(web, box, user='root')] * for_root
        assert [value_of(web, context, code) for context in contexts[1:]] == ['ModuleNotFoundError'] * len(contexts[1:])
        done = box.user(f'mkdir /tmp/late_one; echo X = 3 > /tmp/late_one/late_beside.py; {how} -q --no-index {put_wheel(web, box, "late_one")}', timeout_ms=60000)
        assert done['exit_code'] == 0, done
        contexts += [context_of(web, box)]
        assert [value_of(web, context, code) for context in contexts] == ['1.0'] * len(contexts)
        assert [value_of(web, context, beside) for context in contexts] == [3] * len(contexts)       # by the line of its .pth file
        assert box.user(['python3', '-c', 'import late_one; print(late_one.VERSION)'])['stdout'] == '1.0\n'


def test_a_context_installs_and_imports_in_one_cell(web):
    with Box(web, root=False, limits=LIMITS, env={'PIP_BREAK_SYSTEM_PACKAGES': '1'}) as box:
        path = put_wheel(web, box, 'same_cell')
        code = f'try:\n    import same_cell\nexcept ImportError:\n    pass\n!pip install -q --no-index {path}\nimport same_cell\nsame_cell.VERSION'
        assert value_of(web, context_of(web, box), code) == '1.0'


def test_a_folder_of_the_path_may_come_later(web):
    with Box(web, root=False) as box:
        context = context_of(web, box)
        assert value_of(web, context, 'import sys\nsys.path.append("/home/user/later")\nimport in_later') == 'ModuleNotFoundError'
        assert box.user('mkdir ~/later; echo X = 5 > ~/later/in_later.py')['exit_code'] == 0
        assert value_of(web, context, 'import in_later\nin_later.X') == 5


def test_another_version_of_what_is_loaded_ahead_is_what_a_new_context_has(web):
    """A zygote has modules loaded; a context after an installation begins without it."""
    with Box(web, image='data', sudo=True, limits=LIMITS, env={'PIP_BREAK_SYSTEM_PACKAGES': '1'}) as box:
        code = 'import numpy\nnumpy.__version__'
        assert value_of(web, context_of(web, box), code) != '99.0'
        path = put_wheel(web, box, 'numpy', '99.0', {'numpy/__init__.py': '__version__ = "99.0"\n'})
        done = box.user(f'sudo pip install -q --no-index --upgrade --target /usr/lib/python3/dist-packages {path}', timeout_ms=60000)
        assert done['exit_code'] == 0 and value_of(web, context_of(web, box), code) == '99.0', done


# ---- E2B ----

def e2b(web, method, path, body=None):
    status, _, answer = web.ask(method, path, body, X_API_KEY='e2b_' + '0' * 40)
    assert status < 300, answer
    return answer


def box_of(web, sandbox_id):
    """The sandbox of an E2B id, the newest of those that had it."""
    _, _, found = web.ask('GET', '/v1/sandboxes')
    box = object.__new__(Box)
    box.web, box.id = web, [one for one in found['sandboxes'] if one['labels'].get('e2b') == sandbox_id][-1]['id']
    return box


def test_sandboxes_of_e2b_have_the_image_and_keep_what_was_installed(web, mirror):
    """Through a pause that keeps files alone, and a snapshot."""
    made = e2b(web, 'POST', '/sandboxes', {'templateID': 'base', 'timeout': 300})['sandboxID']
    box = box_of(web, made)
    assert box.user('cat /etc/marker')['stdout'] == 'in the image\n'
    use_mirror(box, mirror)
    done = box.user('sudo apt-get install -y hello-test; sudo rm /usr/bin/touch /etc/secret; echo y | sudo sh -c "cat > /srv/y; chown www-data /srv/y"; echo z > ~/z', timeout_ms=60000)
    assert done['exit_code'] == 0, done
    e2b(web, 'POST', f'/sandboxes/{made}/pause', {'memory': False})
    e2b(web, 'POST', f'/sandboxes/{made}/connect', {'timeout': 300})
    kept = 'hello-test; cat ~/z; stat -c "%U %s" /srv/y; ls /usr/bin/touch /etc/secret 2>/dev/null; sudo dpkg --audit; sudo id -u; stat -c "%U %G" /var/lib/hello-test'
    expected = 'hello of the package\nz\nwww-data 2\n0\nwww-data mail\n'
    assert box_of(web, made).user(kept)['stdout'] == expected
    snapshot = e2b(web, 'POST', f'/sandboxes/{made}/snapshots', {})['snapshotID']
    other = e2b(web, 'POST', '/sandboxes', {'templateID': snapshot, 'timeout': 300})['sandboxID']
    assert box_of(web, other).user(kept)['stdout'] == expected
    for sandbox_id in (made, other):
        e2b(web, 'DELETE', f'/sandboxes/{sandbox_id}')
