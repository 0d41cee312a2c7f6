"""Locks of Node: a package-lock.json of a request, as npm writes one, and hostile ones."""

import base64
import copy
import hashlib
import json
import shutil
import subprocess

import pytest

from cli import caisson
from private_index import PrivateIndex
from test_packages import serving
from test_packages_node import settings_of

pytestmark = pytest.mark.skipif(not shutil.which('npm', path='/usr/bin'), reason='needs npm')


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        for version in ('1.0.0', '1.1.0', '2.0.0'):
            index.add_npm('left', version)
        index.add_npm('@scope/right', '1.0.0', {'index.js': 'module.exports = "right " + require("left")\n'}, dependencies={'left': '^2'})
        index.add_npm('aliased', '1.0.0', {'index.js': 'module.exports = require("old")\n'}, dependencies={'old': 'npm:left@1.0'})
        index.add_npm('for-windows', '1.0.0', os=['win32'])
        index.add_npm('optional', '1.0.0', optionalDependencies={'for-windows': '1'})
        index.add_npm('young', '1.0.0', age=60)
        index.add_npm('denied', '1.0.0')
        index.add_npm('tooling', '1.0.0')
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('lock'), *settings_of(index, 'packages.deny=denied', 'packages.max_count=20')) as web:
        yield web


def lock_of(tmp_path, index, dependencies, **more):
    """The lock that npm itself makes on a developer's machine."""
    (tmp_path / 'package.json').write_text(json.dumps({'name': 'mine', 'version': '1.0.0', 'dependencies': dependencies, **more}))
    done = subprocess.run(['/usr/bin/npm', 'install', '--package-lock-only', '--no-audit', f'--registry={index.npm_url}/', f'--cache={tmp_path}/cache'],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / 'package-lock.json').read_text())


def run(web, code, lock, **more):
    text = lock if isinstance(lock, str) else json.dumps(lock)
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'javascript', 'code': code, 'lock': text, **more})
    assert status == 200, record
    return record


CODE = 'console.log(require("left"), require("@scope/right"), require("aliased"))'


def test_the_packages_of_a_lock_are_installed(web, index, tmp_path):
    lock = lock_of(tmp_path, index, {'left': '1.0.0', '@scope/right': '*', 'aliased': '1', 'optional': '1'}, devDependencies={'tooling': '1'})
    assert 'node_modules/tooling' in lock['packages'] and 'node_modules/for-windows' in lock['packages']
    record = run(web, CODE, lock)
    assert record['stdout'] == '1.0.0 right 2.0.0 1.0.0\n', record
    [layer] = record['layers']
    assert 'tooling@1.0.0' not in layer['packages'] and 'for-windows@1.0.0' not in layer['packages'] and 'left@1.0.0' in layer['packages']
    described = web.ask('GET', f'/v1/layers/{layer["id"]}')[2]
    assert described['pinned'] is True and described['runtime'], described
    again = run(web, CODE, json.dumps(lock, indent=3))
    assert again['layers'][0]['id'] == layer['id'] and again['layers'][0]['cached'] is True


def test_the_lock_decides_and_not_the_newest_version(web, index, tmp_path):
    lock = lock_of(tmp_path, index, {'left': '~1.0.0'})
    lock['packages']['']['dependencies']['left'] = '^1.0.0'
    assert run(web, 'console.log(require("left"))', lock)['stdout'] == '1.0.0\n'


def test_an_alias_of_the_project_itself(web, index, tmp_path):
    lock = lock_of(tmp_path, index, {'mine': 'npm:left@1.1.0', 'left': '2'})
    assert run(web, 'console.log(require("mine"), require("left"))', lock)['stdout'] == '1.1.0 2.0.0\n'


def test_addresses_of_the_lock_are_not_asked(web, index, tmp_path):
    lock = lock_of(tmp_path, index, {'left': '1.1.0'})
    for entry in lock['packages'].values():
        entry.pop('resolved', None)
    assert run(web, 'console.log(require("left"))', lock)['stdout'] == '1.1.0\n'
    lock['packages']['node_modules/left']['resolved'] = 'http://127.0.0.1:9/evil.tgz'
    assert run(web, 'console.log(require("left"))', lock)['stdout'] == '1.1.0\n'


def test_sandboxes_gradings_and_layers_take_a_lock(web, index, tmp_path):
    text = json.dumps(lock_of(tmp_path, index, {'left': '1.1.0'}))
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'lock': text})
    assert status == 201 and sandbox['layers'][0]['packages'] == ['left@1.1.0'], sandbox
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204
    status, _, layer = web.ask('POST', '/v1/layers', {'lock': text})
    assert status == 200 and layer['packages'] == ['left@1.1.0'] and layer['language'] == 'javascript', layer
    request = {'language': 'javascript', 'code': 'console.log(require("left"))', 'cases': [{'stdin': '', 'expected_output': '1.1.0\n'}], 'lock': text}
    status, _, result = web.ask('POST', '/v1/grade', request)
    assert status == 200 and result['all_passed'], result


def test_the_command_line_reads_a_lock(web, index, tmp_path):
    lock_of(tmp_path, index, {'left': '1.1.0'})
    done = web.daemon.caisson('layers', 'build', '--lock', tmp_path / 'package-lock.json', *web.state)
    assert done.status == 0 and done.out.startswith('lyr_'), done.err
    missing = web.daemon.caisson('layers', 'build', '--lock', tmp_path / 'nothing', *web.state)
    assert missing.status != 0 and 'read ' in missing.err
    assert caisson('layers', 'show', done.out.strip(), *web.state).out.count('left') >= 1


# ---- what is refused ----

BASE = {'lockfileVersion': 3, 'packages': {'': {'dependencies': {'left': '1'}}, 'node_modules/left': {'version': '1.0.0', 'integrity': 'sha512-'}}}


def changed(**entry):
    lock = copy.deepcopy(BASE)
    lock['packages']['node_modules/left'].update(entry)
    return lock


@pytest.mark.parametrize('lock, words', [
    ('no json', 'lock is no JSON'), ('[]', 'lockfileVersion has to be 2 or 3'), ({'lockfileVersion': 1, 'dependencies': {}}, 'lockfileVersion has to be 2 or 3'),
    ({'lockfileVersion': 3, 'packages': []}, 'lockfileVersion has to be 2 or 3'), ({'lockfileVersion': 3, 'packages': {}}, 'depends on no package'),
    ({'lockfileVersion': 3, 'packages': {'': {'dependencies': {'left': '1'}}}}, 'left is a dependency without an entry'),
    (changed(integrity='sha1-xyz'), 'no integrity that begins with sha512-'), (changed(version=7), 'has no version'),
    (changed(resolved='git+ssh://git@127.0.0.1/left.git'), 'is from git or a folder'), (changed(resolved='file:../left'), 'is from git or a folder'),
    (changed(name='../../evil'), 'a name that no package'), (changed(name='UP/../x'), 'a name that no package'),
    ({**BASE, 'packages': {**BASE['packages'], '../evil': {'version': '1.0.0'}}}, '../evil is no folder of a module'),
    ({**BASE, 'packages': {**BASE['packages'], 'node_modules/x': []}}, 'is no folder of a module'),
    ('{"lockfileVersion": 3, "packages": {}, "packages": {}}', 'lock is no JSON')])
def test_a_text_that_is_no_lock_is_told(web, lock, words):
    record = run(web, '1', lock)
    assert record['status'] == 'bad_request' and record['error']['field'] == '/lock' and words in record['error']['message'], record['error']


def test_a_lock_and_packages_are_not_one_request(web):
    record = run(web, '1', BASE, packages=['left'])
    assert record['error']['field'] == '/lock' and 'give one of both' in record['error']['message'], record['error']
    status, _, problem = web.ask('POST', '/v1/layers', {'lock': json.dumps(BASE), 'requirements': 'six'})
    assert status == 422 and problem['field'] == '/lock', problem


def integrity(index, name, version):
    made = next(one for one in index.packages[name] if one.version == version)
    return f'sha512-{base64.b64encode(hashlib.sha512(made.content).digest()).decode()}'


def lock_with(index, name, version, /, **more):
    entry = {'version': version, 'integrity': integrity(index, name, version)} | more
    return {'lockfileVersion': 3, 'packages': {'': {'dependencies': {name: '*'}}, f'node_modules/{name}': entry}}


def failed(web, code, lock):
    record = run(web, 'console.log(1)', lock)
    assert record['status'] == 'dependency_failed' and record['error']['code'] == code and record['stdout'] == '', record
    return record['error']['message']


def test_a_lock_is_judged_as_the_resolver_is(web, index):
    assert failed(web, 'too_new', lock_with(index, 'young', '1.0.0'))
    assert 'denied' in failed(web, 'not_allowed', lock_with(index, 'denied', '1.0.0'))
    other = lock_with(index, 'left', '1.0.0')
    other['packages']['node_modules/left']['version'] = '2.0.0'
    assert 'left 2.0.0' in failed(web, 'hash_mismatch', other)
    for hash_ in ('sha512-', 'sha512-AAAA', 'sha512-!!!', 'sha512-' + '/' * 200):
        assert failed(web, 'hash_mismatch', lock_with(index, 'left', '1.0.0', integrity=hash_))
    unknown = lock_with(index, 'left', '1.0.0', name='made-up-by-a-model')
    assert failed(web, 'package_not_found', unknown)
    lying = lock_with(index, 'left', '1.0.0', name='@scope/right')
    assert failed(web, 'hash_mismatch', lying)


def test_entries_above_the_limit_are_too_many(web, index):
    lock = lock_with(index, 'left', '1.0.0')
    entry = lock['packages']['node_modules/left']
    for n in range(30):
        lock['packages'][f'node_modules/left/node_modules/copy{n}'] = {**entry, 'name': 'left'}
    assert 'packages.max_count=20' in failed(web, 'too_many', lock)


def test_hostile_names_of_commands_and_folders_stay_inside(web, index):
    entry = {'version': '1.0.0', 'integrity': integrity(index, 'left', '1.0.0'), 'bin': {'../../../evil': 'index.js', 'out': '../../../../etc/passwd'}}
    lock = {'lockfileVersion': 3, 'packages': {'': {'dependencies': {'left': '1'}}, 'node_modules/left': entry}}
    record = run(web, 'console.log(require("left"), require("fs").readdirSync("/opt/node_modules").join())', lock)
    assert record['status'] in ('completed', 'dependency_failed') and 'evil' not in record['stdout'], record
    lock['packages']['node_modules/../../evil'] = {**entry, 'name': 'left'}
    record = run(web, '1', lock)
    assert record['status'] == 'dependency_failed' and record['error']['code'] == 'not_allowed', record
