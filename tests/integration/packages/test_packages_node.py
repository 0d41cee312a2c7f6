"""Packages of Node: npm resolves and installs in closed sandboxes from a private registry; both kinds of modules, and each refusal."""

import json
import shutil
import urllib.request

import pytest

from cli import caisson
from private_index import PrivateIndex
from test_packages import serving

pytestmark = pytest.mark.skipif(not shutil.which('npm', path='/usr/bin'), reason='needs npm')

LEFT = 'const left = require("left"); console.log(left, require.resolve("left"))'


def settings_of(index, *more, url=''):
    pairs = [f'packages.node.registry_url={url or index.npm_url}', *more]
    return [word for pair in pairs for word in ('--set', pair)]


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_npm('left', '1.0.0')
        index.add_npm('left', '2.0.0')
        index.add_npm('right', '1.0.0', {'index.js': 'module.exports = "right " + require("left")\n'}, dependencies={'left': '^2'})
        index.add_npm('@scope/named', '1.2.3', {'index.mjs': 'export default "scoped"\n'}, main='index.mjs', exports='./index.mjs')
        index.add_npm('tool', '1.0.0', {'index.js': '', 'cli.js': '#!/usr/bin/env node\nconsole.log("from the command", require("left"))\n'},
                      bin={'tool': 'cli.js'}, dependencies={'left': '1'})
        index.add_npm('young', '1.0.0', age=60)
        index.add_npm('denied', '1.0.0')
        index.add_npm('conflict', '1.0.0', dependencies={'left': '9'})
        index.add_npm('broken', '1.0.0')
        index.behave('broken', status=500)
        index.add_npm('lying', '1.0.0')
        index.behave('lying', wrong_hash=True)
        index.add_npm('timeless', '1.0.0')
        index.behave('timeless', upload_times=False)
        index.add_npm('hashless', '1.0.0')
        index.behave('hashless', hashes=False)
        index.add_npm('large', '1.0.0', hostile={'giant': {'large.bin': 80_000_000}})
        index.add_npm('deep', '1.0.0', {'index.js': '', '/'.join(['d'] * 40) + '/file.js': ''})
        index.add_npm('many', '1.0.0', {'index.js': ''} | {f'file{number}.js': '' for number in range(600)})
        index.add_npm('bomb', '1.0.0', hostile={'bomb': {'bomb.bin': 80_000_000}})
        index.add_npm('by-git', '1.0.0', dependencies={'left': 'git+https://127.0.0.1:9/left.git'})
        index.add_npm('by-github', '1.0.0', dependencies={'left': 'someone/left'})
        index.add_npm('by-address', '1.0.0', dependencies={'left': 'http://127.0.0.1:9/left.tgz'})
        index.add_npm('by-folder', '1.0.0', dependencies={'passwd': 'file:/etc'})
        index.add_npm('by-alias', '1.0.0', {'index.js': 'module.exports = [require("left"), require("old-left"), require("@my/named")]\n'},
                      dependencies={'left': '2', 'old-left': 'npm:left@^1', '@my/named': 'npm:right@1'})
        index.add_npm('alias-of-denied', '1.0.0', dependencies={'fine': 'npm:denied@1'})
        index.add_npm('alias-of-git', '1.0.0', dependencies={'fine': 'npm:git+https://127.0.0.1:9/left.git'})
        index.add_npm('by-bundle', '1.0.0', {'index.js': '', 'node_modules/left/package.json': '{"name": "left", "version": "1.0.0"}'},
                      dependencies={'left': '1'}, bundleDependencies=['left'])
        index.add_npm('scripted', '1.0.0', scripts={when: 'touch /tmp/pwned; touch pwned; exit 1' for when in ('preinstall', 'install', 'postinstall', 'prepare')})
        index.add_npm('gyp', '1.0.0', {'index.js': 'module.exports = 1\n', 'binding.gyp': '{}'}, gypfile=True)
        index.add_npm('linked', '1.0.0', hostile={'links': {'out': '/etc/passwd', 'up': '../../../../etc/passwd'}, 'hard_links': {'hard': '/etc/passwd'}})
        index.add_npm('climbing', '1.0.0', hostile={'outside': {'package/../../../evil.js': b'1', '/tmp/evil.js': b'1', '../../left/index.js': b'module.exports = "evil"'}},
                      dependencies={'left': '2'})
        index.add_npm('bins', '1.0.0', {'index.js': 'module.exports = 1\n', 'cli.js': ''}, bin={'node': 'cli.js', '../../../evil': 'cli.js', 'out': '../../../../etc/passwd', 'gone': 'gone.js'})
        index.add_npm('optional', '1.0.0', optionalDependencies={'for-windows': '1', 'for-linux': '1', 'nowhere-to-be-found': '1'})
        index.add_npm('for-windows', '1.0.0', os=['win32'])
        index.add_npm('for-linux', '1.0.0', os=['!win32'], cpu=['x64', 'arm64'])
        index.add_npm('only-windows', '1.0.0', os=['win32'])
        index.add_npm('peered', '1.0.0', {'index.js': 'module.exports = require("left")\n'}, peerDependencies={'left': '1'})
        index.add_npm('__proto__x', '1.0.0')
        for number in range(8):
            index.add_npm(f'part-{number}', '1.0.0', dependencies={'left': str(1 + number % 2)})
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    with serving(tmp_path_factory.mktemp('node'), *settings_of(index, 'packages.max_bytes=64MiB', 'packages.max_files=500', 'packages.deny=denied', 'packages.allow=left, right')) as web:
        yield web


def run(web, code, language='javascript', **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code, **more})
    assert status == 200, record
    return record


def completed(web, code, **more):
    record = run(web, code, **more)
    assert record['status'] == 'completed', record
    return record


def test_a_package_is_installed_and_required(web):
    record = completed(web, LEFT, packages=['left'])
    assert record['stdout'] == '2.0.0 /opt/node_modules/left/index.js\n'
    [layer] = record['layers']
    assert layer['packages'] == ['left@2.0.0'] and layer['language'] == 'javascript'


def failed(web, code, *packages, **more):
    """The record of a run whose packages cannot be installed, for this reason."""
    record = run(web, 'console.log(1)', packages=list(packages), **more)
    assert record['status'] == 'dependency_failed' and record['error']['code'] == code, record
    assert record['error']['field'] == '/packages' and record['stdout'] == ''
    return record


@pytest.mark.parametrize('language', ['javascript', 'typescript'])
@pytest.mark.parametrize('code', ['import left from "left"; console.log(left)', 'const left = require("left"); console.log(left)',
                                  'import("left").then((left) => console.log(left.default))'])
def test_both_kinds_of_modules_find_a_package(web, language, code):
    name = 'main.' + ('c' if 'require' in code else 'm') + ('ts' if language == 'typescript' else 'js')
    assert completed(web, code, language=language, packages=['left@1'], name=name)['stdout'] == '1.0.0\n'


def test_a_scope_and_a_module_without_commonjs(web):
    record = completed(web, 'import named from "@scope/named"; console.log(named)', name='main.mjs', packages=['@scope/named@^1.2'])
    assert record['stdout'] == 'scoped\n' and record['layers'][0]['packages'] == ['@scope/named@1.2.3']


def test_the_second_run_asks_the_registry_nothing(web, index):
    first = completed(web, LEFT, packages=['left@1'])
    asked = len(index.paths())
    second = completed(web, LEFT, packages=[' left@1 '])
    assert len(index.paths()) == asked
    assert second['layers'][0]['id'] == first['layers'][0]['id'] and second['layers'][0]['cached'] is True


def test_two_versions_of_a_package_are_in_one_tree(web):
    code = 'console.log(require("left"), require("right"))'
    record = completed(web, code, packages=['left@1', 'right'])
    assert record['stdout'] == '1.0.0 right 2.0.0\n'
    assert sorted(record['layers'][0]['packages']) == ['left@1.0.0', 'left@2.0.0', 'right@1.0.0']


def test_an_alias_has_another_name_than_its_package(web):
    record = completed(web, 'console.log(require("by-alias").join(", "))', packages=['by-alias'])
    assert record['stdout'] == '2.0.0, 1.0.0, right 2.0.0\n', record
    assert sorted(record['layers'][0]['packages']) == ['by-alias@1.0.0', 'left@1.0.0', 'left@2.0.0', 'right@1.0.0']


def test_an_alias_of_a_package_that_is_denied_is_refused(web):
    assert 'denied' in failed(web, 'not_allowed', 'alias-of-denied')['error']['message']
    record = run(web, '1', packages=['alias-of-git'])
    assert record['status'] == 'dependency_failed', record


def test_trees_of_the_same_packages_are_different_layers(web):
    """The same three files; which version of left the program gets is another."""
    first = completed(web, 'console.log(require("left"))', packages=['left@1', 'part-1', 'part-0'])
    second = completed(web, 'console.log(require("left"))', packages=['left@2', 'part-1', 'part-0'])
    assert (first['stdout'], second['stdout']) == ('1.0.0\n', '2.0.0\n')
    assert set(first['layers'][0]['packages']) == set(second['layers'][0]['packages']) and first['layers'][0]['id'] != second['layers'][0]['id']


def test_a_request_names_packages_of_both_languages(web, index):
    record = completed(web, LEFT, packages={'node': ['left@1'], 'python': 'six'})
    assert record['stdout'].startswith('1.0.0') and [one['language'] for one in record['layers']] == ['javascript']
    assert [one['code'] for one in record['warnings']] == ['packages_not_installed']
    assert record['packages'] == ['node:left@1', 'python:six']


@pytest.mark.parametrize('packages, words', [({'ruby': ['rails']}, 'ruby'), ({'node': [1]}, 'node'), ({'node': 3}, 'node'),
                                             ({'node': ['git+https://x/y']}, 'git'), ({'python': ['@scope/x']}, 'scope'), (['node:../x'], '../x'),
                                             ({'node': ['left@file:/etc']}, 'file'), ({'node': ['left@latest']}, 'latest')])
def test_what_is_no_package_is_refused(web, packages, words):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'javascript', 'code': '1', 'packages': packages})
    problem = record.get('error', record)
    assert status in (200, 422) and problem['code'] == 'bad_request' and problem['field'].startswith('/packages'), record
    assert words in problem.get('message', problem.get('detail')), record


def test_a_program_in_bash_names_the_language(web):
    record = completed(web, 'node -p \'require("left")\'; ls /opt/node_modules/.bin', language='bash', packages=['node:tool'])
    assert record['stdout'] == '1.0.0\ntool\n'
    record = run(web, 'true', language='bash', packages=['left'])
    assert 'node:left-pad' in record['warnings'][0]['text'] and record.get('layers') is None


def test_child_processes_and_commands_find_the_packages(web):
    code = '''const { execFileSync } = require('node:child_process');
console.log(execFileSync(process.execPath, ['-p', 'require("left")'], { encoding: 'utf8', cwd: '/tmp' }).trim());
console.log(execFileSync('/opt/node_modules/.bin/tool', { encoding: 'utf8' }).trim());
'''
    assert completed(web, code, packages=['tool'])['stdout'] == '1.0.0\nfrom the command 1.0.0\n'


def test_a_layer_is_read_only(web):
    code = '''const fs = require('node:fs');
for (const path of ['/opt/node_modules/new', '/node_modules/left/index.js', '/opt/node_modules/left/new'])
    try { fs.writeFileSync(path, 'x'); console.log('written'); } catch (error) { console.log(error.code); }
try { fs.chmodSync('/opt/node_modules/left/index.js', 0o777); } catch (error) { console.log(error.code); }
console.log(fs.readdirSync('/opt/node_modules').join());
'''
    assert completed(web, code, packages=['left'])['stdout'] == 'EROFS\nEROFS\nEROFS\nEROFS\nleft\n'


@pytest.mark.parametrize('code, package', [('package_not_found', 'nowhere'), ('too_new', 'young'), ('hash_mismatch', 'lying'), ('index_unreachable', 'broken'),
                                           ('no_upload_time', 'timeless'), ('index_untrusted', 'hashless'), ('version_conflict', 'conflict'), ('not_allowed', 'denied'),
                                           ('version_conflict', 'left@9'), ('too_large', 'large'), ('too_large', 'deep'), ('too_large', 'many'), ('build_failed', 'bomb')])
def test_a_refusal_has_its_code(web, code, package):
    record = failed(web, code, package)
    assert package.split('@')[0] in record['error']['message'] or code in ('version_conflict', 'too_large', 'build_failed'), record
    assert '127.0.0.1' not in record['error']['message']


@pytest.mark.parametrize('package, words', [('by-bundle', 'bundled'), ('by-folder', ''), ('by-git', ''), ('by-github', ''), ('by-address', '')])
def test_what_is_not_from_the_registry_is_refused(web, package, words):
    record = run(web, 'console.log(1)', packages=[package])
    assert record['status'] == 'dependency_failed' and words in record['error']['message'], record
    assert record['error']['code'] in ('not_allowed', 'version_conflict'), record


def test_no_installation_script_runs_and_the_layer_says_so(web):
    code = 'const fs = require("node:fs"); console.log(fs.readdirSync("/opt/node_modules/scripted").join(), fs.existsSync("/tmp/pwned"))'
    record = completed(web, code, packages=['scripted', 'gyp'])
    assert record['stdout'] == 'index.js,package.json false\n'
    _, _, layer = web.ask('GET', f'/v1/layers/{record["layers"][0]["id"]}')
    assert sorted(layer['notes']) == ['gyp 1.0.0 has an installation script, which has not run', 'scripted 1.0.0 has an installation script, which has not run']


def test_links_and_names_in_a_tarball_lead_nowhere(web):
    code = '''const fs = require('node:fs');
console.log(fs.readdirSync('/opt/node_modules').join(), fs.readdirSync('/opt/node_modules/linked').join(), fs.readdirSync('/opt/node_modules/climbing').sort().join(), require('left'));
'''
    record = run(web, code, packages=['linked', 'climbing'])
    if record['status'] == 'completed':
        top, linked, climbing, left = record['stdout'].split()
        assert (top, linked, left) == ('climbing,left,linked', 'index.js,package.json', '2.0.0') and climbing.startswith('index.js'), record
    else:
        assert record['status'] == 'dependency_failed' and record['error']['code'] == 'build_failed', record


def test_commands_of_a_package_stay_in_its_layer(web):
    code = '''const fs = require('node:fs');
for (const name of fs.readdirSync('/opt/node_modules/.bin'))
    console.log(name, fs.realpathSync(`/opt/node_modules/.bin/${name}`));
'''
    for line in completed(web, code, packages=['bins'])['stdout'].splitlines():
        assert line.split()[1] == '/opt/node_modules/bins/cli.js', line


def test_packages_of_other_platforms_are_left_out(web):
    record = completed(web, 'console.log(require("node:fs").readdirSync("/opt/node_modules").join())', packages=['optional'])
    assert record['stdout'] == 'for-linux,optional\n' and sorted(record['layers'][0]['packages']) == ['for-linux@1.0.0', 'optional@1.0.0']
    record = run(web, '1', packages=['only-windows'])
    assert record['status'] == 'dependency_failed', record


def test_peers_come_along(web):
    assert completed(web, 'console.log(require("peered"))', packages=['peered'])['stdout'] == '1.0.0\n'


def test_imports_are_detected_with_auto_as_far_as_the_administrator_allows(web):
    record = completed(web, 'const left = require("left"), fs = require("fs"); console.log(left)', deps='auto')
    assert record['stdout'] == '2.0.0\n' and record['layers'][0]['packages'] == ['left@2.0.0']
    record = completed(web, 'import right from "right"; import "node:path"; console.log(right)', deps='auto', name='main.mjs')
    assert record['stdout'] == 'right 2.0.0\n'
    record = run(web, 'require("made-up-by-a-model")', deps='auto')
    assert 'packages_not_allowed' in [warning['code'] for warning in record['warnings']] and record.get('layers') is None, record


def test_a_star_installs_no_import_of_node(tmp_path, index):
    with serving(tmp_path, *settings_of(index, 'packages.allow=*')) as web:
        record = run(web, 'require("left")', deps='auto')
        assert record['status'] == 'failed' and 'packages_not_allowed' in [warning['code'] for warning in record['warnings']], record


def test_more_packages_than_allowed_are_refused(tmp_path, index):
    with serving(tmp_path, *settings_of(index, 'packages.max_count=4')) as web:
        failed(web, 'too_many', *[f'part-{number}' for number in range(4)])
        assert len(completed(web, '1', packages=['part-0', 'part-1'])['layers'][0]['packages']) == 4


@pytest.mark.parametrize('code, name', [('require("lefft")', 'main.js'), ('import "lefft"', 'main.mjs')])
def test_a_missing_module_has_a_hint(web, code, name):
    hint = run(web, code, name=name, packages=['left@1'])['error']['hint']
    for words in ('The module lefft is not installed', 'Did you mean left?', 'left@1.0.0', 'field packages'):
        assert words in hint, hint
    hint = run(web, code.replace('lefft', 'qzqzqz/deep'), name=name)['error']['hint']
    assert 'The module qzqzqz is' in hint and 'Did you mean' not in hint
    hint = run(web, code.replace('lefft', './lefft'), name=name)['error']['hint']
    assert 'File not found' in hint or './lefft' in hint, hint


def test_a_layer_of_node_in_lasting_sandboxes_and_contexts(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'packages': {'node': ['right']}})
    assert status == 201 and sandbox['layers'][0]['packages'], sandbox
    for language, code in (('javascript', 'require("right")'), ('javascript', '(await import("right")).default'), ('typescript', 'require("right") as string')):
        status, _, context = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {'language': language})
        assert status == 201, context
        status, _, record = web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': f'console.log({code})'})
        assert record['stdout'] == 'right 2.0.0\n', record
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204


def test_a_layer_of_node_for_a_grading(web):
    request = {'language': 'javascript', 'code': 'console.log(require("left"))', 'packages': ['left@1'], 'cases': [{'stdin': '', 'expected_stdout': '1.0.0\n'}]}
    status, _, result = web.ask('POST', '/v1/grade', request)
    assert status == 200 and result['layers'][0]['packages'] == ['left@1.0.0'], result
    assert result['passed'] is True or result.get('score') == 1, result


def test_a_layer_is_made_ahead(web):
    status, _, layer = web.ask('POST', '/v1/layers', {'packages': {'node': ['left@1', '@scope/named']}})
    assert status in (200, 201) and layer['language'] == 'javascript', layer
    assert completed(web, LEFT, layers=[layer['id']])['stdout'].startswith('1.0.0')
    for more in ({'packages': {'node': ['left@1'], 'python': ['six']}}, {'packages': ['node:left@1'], 'requirements': 'six\n'}):
        status, _, problem = web.ask('POST', '/v1/layers', more)
        assert status == 422 and problem['field'] == '/packages' and 'each language' in problem['detail'], problem


def test_doctor_looks_for_npm(index):
    done = caisson('doctor', '--json', env={'CAISSON_PACKAGES_NODE_REGISTRY_URL': index.npm_url})
    [check] = [one for one in json.loads(done.out)['checks'] if one['name'] == 'packages of Node']
    assert check['state'] == 'ok' and '/usr/bin/npm' in check['fact'], check


def test_the_real_registry(tmp_path):
    try:
        urllib.request.urlopen('https://registry.npmjs.org/left-pad', timeout=10).close()
    except OSError:
        pytest.skip('the registry of npm cannot be reached')
    with serving(tmp_path, *settings_of(None, url='https://registry.npmjs.org')) as web:
        record = completed(web, 'console.log(require("left-pad")("x", 3), require("is-odd")(3))', packages=['left-pad@1.3.0', 'is-odd'])
        assert record['stdout'] == '  x true\n' and len(record['layers'][0]['packages']) >= 3
