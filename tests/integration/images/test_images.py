"""Programs in images: on the command line, in a daemon, in sandboxes and contexts, and hostile ones."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from caisson_testing import TESTS
from cli import CAISSON, caisson, checked, environment, run
from image_archives import folder, link, member, programs_of, python_root, shell_root, write
from private_index import PrivateIndex
from web import Web

MARKER = 'in the image\n'
ACTS = TESTS / 'sandbox/acts'


@pytest.fixture(name='store', scope='module')
def stored(tmp_path_factory):
    """Two images: py has Bash and Python, sh has Bash; flat is sh without a merged /usr."""
    path = tmp_path_factory.mktemp('images')
    path.chmod(0o755)
    flat = [(info, content) for info, content in shell_root() if not info.issym() and not info.name.startswith('usr/lib')]
    flat += [member(info.name.removeprefix('usr/'), content, mode=info.mode) for info, content in shell_root() if info.name.startswith('usr/lib')]
    flat += [link('bin', 'usr/bin')]
    for name, members in (('py', python_root()), ('sh', shell_root()), ('flat', flat)):
        done = caisson('image', 'import', write(path / f'{name}.tar', members), '--set', f'images.dir={path}/store')
        assert done.status == 0, done.err
    return path / 'store'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, store):
    web = Web(tmp_path_factory.mktemp('daemon'), '--set', f'images.dir={store}')
    yield web
    web.daemon.stop()


def inside(store, image, language, code, *args):
    return run('--image', image, '-l', language, '-c', code, '--set', f'images.dir={store}', *args)


def facts(store, name):
    return json.loads(caisson('image', 'show', name, '--json', '--set', f'images.dir={store}').out)


# ---- one run ----

def test_a_program_finds_the_files_of_the_image(store):
    record = inside(store, 'py', 'python', 'import os\nprint(open("/etc/marker").read(), end="")\nsorted(os.listdir("/usr"))')
    assert (record['status'], record['stdout']) == ('completed', MARKER), record
    assert record['result']['value'] == ['bin', 'lib', 'lib64'] or 'bin' in record['result']['value']
    shown = facts(store, 'py')
    assert record['image'] == {'name': 'py', 'id': shown['id'], 'digest': shown['digest']}


@pytest.mark.parametrize('image', ['py', 'sh', 'flat'])
def test_bash_runs_in_each(store, image):
    record = inside(store, image, 'bash', 'cat /etc/marker; id -u; echo x > ~/made')
    assert (record['status'], record['stdout'], [file['name'] for file in record['files']]) == ('completed', MARKER + '1000\n', ['made']), record


@pytest.mark.parametrize('code, stderr', [('echo é', ''), ('if', '/home/user/main.sh: line 2: syntax error: unexpected end of file\n')])
def test_bash_says_nothing_of_a_locale_that_the_image_has_not(store, code, stderr):
    assert inside(store, 'sh', 'bash', code)['stderr'] == stderr


@pytest.mark.parametrize('image', ['system', 'data', 'small'])
def test_the_host_has_no_marker(store, image):
    record = inside(store, image, 'bash', 'cat /etc/marker')
    assert record['status'] == 'failed' and 'image' not in record


def test_the_boundary_is_that_of_the_host(store):
    here, there = (inside(store, image, 'python', '1')['boundary'] for image in ('py', 'system'))
    for boundary in (here, there):
        boundary.pop('host_uid')
    assert here == there


def test_files_of_the_sandbox_cover_those_of_the_image(store):
    code = 'for f in passwd group hosts hostname nsswitch.conf resolv.conf; do echo "== $f"; cat /etc/$f; done'
    here, there = (inside(store, image, 'bash', code)['stdout'] for image in ('sh', 'system'))
    assert here == there and 'user:x:1000:1000' in here


def test_nothing_of_the_image_can_be_written(store):
    code = 'for f in /x /usr/x /usr/bin/cat /etc/marker /etc/passwd /opt/x /var/x /run/x /dev/x; do ( : >> $f ) 2>/dev/null && echo "wrote $f"; done; true'
    record = inside(store, 'sh', 'bash', code)
    assert (record['status'], record['stdout']) == ('completed', ''), record


def test_no_other_image_and_no_host_can_be_seen(store):
    code = f'ls / /home /tmp /usr; ls {store} /var/lib /root /boot /host 2>&1; cat /proc/self/mounts | cut -d" " -f2'
    record = inside(store, 'sh', 'bash', code.replace('cut', 'cat #'))
    other = facts(store, 'py')['id']
    assert record['status'] in ('completed', 'failed') and other not in record['stdout'] + record['stderr'] and 'python' not in record['stdout'].split('/proc')[0]


def test_an_unknown_image_is_told_with_those_that_exist(store):
    record = inside(store, 'pyy', 'python', '1')
    assert record['status'] == 'bad_request' and record['error']['field'] == '/image'
    for words in ('there is no image "pyy"', 'system, data, small, flat, py, sh;', 'caisson image import'):
        assert words in record['error']['message']


@pytest.mark.parametrize('name', ['../py', 'PY', '', 'a/b', '.names'])
def test_a_bad_name_is_told(store, name):
    record = inside(store, name, 'python', '1')
    assert record['status'] == 'bad_request' and ('/image' in (record['error'].get('field') or '')), record['error']


@pytest.mark.parametrize('language, words', [('javascript', 'has no node; it has python, bash'), ('typescript', 'has no node')])
def test_a_missing_interpreter_is_told(store, language, words):
    record = inside(store, 'py', language, '1')
    assert record['status'] == 'bad_request' and words in record['error']['message']


def test_the_backend_host_has_no_images(store):
    record = inside(store, 'py', 'python', '1', '--backend', 'host', '--set', 'engine.allow_host=yes')
    assert record['status'] == 'bad_request' and 'the backend host has no images' in record['error']['message'], record['error']


def test_a_default_image_of_a_language(store):
    def marked(*args):
        return run('-l', 'bash', '-c', 'cat /etc/marker', '--set', f'images.dir={store}', *args)
    assert marked('--set', 'images.bash=sh')['stdout'] == MARKER
    assert marked('--set', 'images.bash=sh', '--image', 'system')['status'] == 'failed'
    assert marked('--set', 'images.python=sh')['status'] == 'failed'
    assert 'there is no image "nope"' in marked('--set', 'images.bash=nope')['error']['message']
    assert run('-l', 'python', '-c', 'open("/etc/marker").read()', '--set', f'images.dir={store}', '--set', 'images.python=py')['result']['value'] == MARKER


def test_an_interpreter_that_cannot_be_started_is_told(tmp_path):
    broken = [*programs_of('/usr/bin/bash'), member('usr/bin/python3', b'no program', mode=0o755)]
    done = caisson('image', 'import', write(tmp_path / 'broken.tar', broken), '--set', f'images.dir={tmp_path}/store')
    assert done.status == 0, done.err
    record = run('--image', 'broken', '-l', 'python', '-c', '1', '--set', f'images.dir={tmp_path}/store')
    assert record['status'] == 'unsupported_language' and '/usr/bin/python3' in record['error']['message'], record['error']


def test_an_ordinary_user_imports_and_runs():
    if os.geteuid() != 0:
        pytest.skip('the other tests are that test')
    with tempfile.TemporaryDirectory(prefix='images-', dir='/var/tmp') as folder_:
        home = Path(folder_, 'home')
        home.mkdir()
        os.chown(home, 65533, 65533)
        os.chmod(folder_, 0o755)
        archive = write(Path(folder_, 'sh.tar'), shell_root())
        script = (f'{CAISSON} image import {archive} --set images.dir={home}/images && '
                  f'{CAISSON} run --json --image sh -l bash -c "cat /etc/marker; id -u; : >> /etc/marker" --set images.dir={home}/images')
        done = subprocess.run(['setpriv', '--reuid=65533', '--regid=65533', '--clear-groups', 'sh', '-c', script], env={**environment(), 'HOME': str(home)},
                              capture_output=True, text=True, timeout=120, check=False)
    if 'user namespaces' in done.stdout:
        pytest.skip('no user namespaces for ordinary users here')
    record = json.loads(done.stdout.split('\n', 1)[1])
    assert record['stdout'] == MARKER + '1000\n' and 'Read-only file system' in record['stderr'], record


# ---- the daemon ----

def test_the_daemon_lists_images(web, store):
    status, _, answer = web.ask('GET', '/v1/images')
    assert status == 200 and [row['name'] for row in answer['images']] == ['flat', 'py', 'sh']
    page = web.ask('GET', '/v1/images?limit=2')[2]
    rest = web.ask('GET', f'/v1/images?limit=2&cursor={page["next"]}')[2]
    assert page['images'] + rest['images'] == answer['images'] and 'next' not in rest and web.ask('GET', '/v1/images?cursor=x')[2]['field'] == 'cursor'
    status, _, one = web.ask('GET', '/v1/images/py')
    assert status == 200 and one in answer['images'] and one['id'] == facts(store, 'py')['id']
    assert {'name': 'bash', 'path': '/bin/bash', 'version': ''} in one['interpreters']
    for name in ('nope', '..', '%2e%2e%2fpy', '.names', 'system'):
        assert web.ask('GET', f'/v1/images/{name}')[0] == 404


@pytest.mark.parametrize('language, code', [('python', 'print(open("/etc/marker").read(), end="")'), ('bash', 'cat /etc/marker')])
def test_the_daemon_runs_programs_in_images(web, language, code):
    for _ in range(3):      # cold, then with a sandbox or an interpreter that waited
        status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code, 'image': 'py'})
        assert status == 200 and record['stdout'] == MARKER and record['image']['name'] == 'py', record
        status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code})
        assert record['status'] == 'failed' and 'image' not in record


def test_the_daemon_tells_an_unknown_image(web):
    _, _, record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': '1', 'image': 'nope'})
    assert record['error']['field'] == '/image' and 'flat, py, sh' in record['error']['message']
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'image': 'nope'})
    assert status == 422 and problem['field'] == '/image' and 'there is no image "nope"' in problem['message']


def test_a_persistent_sandbox_has_the_image(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'image': 'py'})
    assert status == 201 and sandbox['image']['name'] == 'py', sandbox
    for language, code in (('python', 'print(open("/etc/marker").read(), end="")'), ('bash', 'cat /etc/marker')):
        status, _, context = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {'language': language})
        assert status == 201, context
        status, _, record = web.ask('POST', '/v1/runs', {'context': context['id'], 'code': code})
        assert record['stdout'] == MARKER, record
    status, _, problem = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {'language': 'javascript'})
    assert status in (201, 422) and ('has no node' in json.dumps(problem)), problem
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204


def test_a_grading_has_the_image(web):
    request = {'code': 'def f():\n    return open("/etc/marker").read()\n', 'function': 'f', 'cases': [{'args': [], 'expected': MARKER}]}
    status, _, result = web.ask('POST', '/v1/grade', {**request, 'image': 'py'})
    assert status == 200 and result['all_passed'], result
    status, _, result = web.ask('POST', '/v1/grade', request)
    assert status == 200 and not result['all_passed']


def test_an_image_comes_and_goes_while_the_daemon_runs(web, store, tmp_path):
    archive = write(tmp_path / 'file', [*shell_root(), member('etc/late', b'late\n')])
    settings = ['--set', f'images.dir={store}']
    assert caisson('image', 'import', archive, '--name', 'late', *settings).status == 0
    ask = {'language': 'bash', 'code': 'cat /etc/late', 'image': 'late'}
    for _ in range(2):
        assert web.ask('POST', '/v1/runs', ask)[2]['stdout'] == 'late\n'
    again = write(tmp_path / 'again', [*shell_root(), member('etc/late', b'later\n')])
    assert caisson('image', 'import', again, '--name', 'late', '--replace', *settings).status == 0
    assert web.ask('POST', '/v1/runs', ask)[2]['stdout'] == 'later\n'
    assert caisson('image', 'remove', 'late', *settings).status == 0
    assert 'there is no image "late"' in web.ask('POST', '/v1/runs', ask)[2]['error']['message']


def test_a_missing_module_gets_a_name_of_the_image(tmp_path):
    members = [*python_root(), member('usr/lib/python3/dist-packages/frobnicate.py', b'')]
    assert caisson('image', 'import', write(tmp_path / 'it.tar', members), '--set', f'images.dir={tmp_path}/store').status == 0
    record = run('--image', 'it', '-l', 'python', '-c', 'import frobnicat', '--set', f'images.dir={tmp_path}/store')
    hint = record['error']['hint']
    assert 'The module frobnicat is not installed in the image it. Did you mean frobnicate?' in hint, record['error']


# ---- packages ----

def test_a_layer_is_used_in_an_image_with_the_same_python(tmp_path, store):
    with PrivateIndex() as index:
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        web = Web(tmp_path, '--set', f'images.dir={store}', '--set', f'packages.python.index_url={index.url}',
                  '--set', 'images.python=py')
        try:
            code = 'import six\nprint(six.VERSION, six.__file__, open("/etc/marker").read(), end="")'
            for ask in ({}, {'image': 'py'}):
                _, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code, 'packages': ['six'], **ask})
                assert record['stdout'] == f'1.0 /opt/packages/six.py {MARKER}', record
        finally:
            web.daemon.stop()


# ---- hostile programs ----

HOSTILE = ['administer.py', 'become_root.py', 'clone_namespaces.py', 'device_nodes.py', 'devices_of_host.py', 'descriptors.py', 'connect_v4.py']


@pytest.mark.parametrize('act', [name for name in HOSTILE if (ACTS / name).exists()])
def test_a_hostile_program_stays_inside(store, act):
    record = run('--image', 'py', '-l', 'python', ACTS / act, '--set', f'images.dir={store}')
    assert 'ESCAPED' not in record['stdout'] and record['exit'] != 66 and 'contained' in record['stdout'], (record['stdout'], record['stderr'])


def test_setuid_programs_and_devices_of_an_image_are_none(tmp_path):
    members = [*shell_root(), member('usr/bin/su-bash', shell_root()[4][1], mode=0o6755), member('usr/null', type=b'3', devmajor=1, devminor=3), folder('dev')]
    assert caisson('image', 'import', write(tmp_path / 'evil.tar', members), '--set', f'images.dir={tmp_path}/store').status == 0
    record = run('--image', 'evil', '-l', 'bash', '-c', '/usr/bin/su-bash -p -c "id -u; id -g"; ls /usr/null', '--set', f'images.dir={tmp_path}/store')
    assert record['stdout'] == '1000\n1000\n' and 'No such file' in record['stderr']
    assert checked(json.dumps({key: value for key, value in record.items() if key != 'exit'}))
    assert Path(tmp_path, 'store').is_dir()
