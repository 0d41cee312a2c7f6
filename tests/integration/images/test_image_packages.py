"""Packages in images: layers of Python and Node, deps auto with the modules of the image, and each refusal."""

import json
import shutil

import pytest

from cli import caisson, run
from image_archives import folder, member, node_root, python_root, shell_root, write
from private_index import PrivateIndex
from web import Web

LEFT = 'console.log(require("left"), require.resolve("left"), require("fs").readFileSync("/etc/marker", "utf8").trim())'
NPM = shutil.which('npm', path='/usr/bin')
needs_npm = pytest.mark.skipif(not NPM, reason='needs npm')


def python_image():
    """python_root() with a module of Debian's and one below /usr/local."""
    return [*python_root(), member('usr/lib/python3/dist-packages/six.py', b'VERSION = "of the image"\n'),
            member('usr/lib/python3/dist-packages/six-1.16.0.egg-info', b''),
            folder('usr/lib/python3/dist-packages/yaml'), member('usr/lib/python3/dist-packages/yaml/__init__.py', b'VERSION = "of the image"\n'),
            *(member(f'usr/lib/python3/dist-packages/library{n:02}-1.0.dist-info', b'') for n in range(30))]


def newer_node():
    """A Node that gives another version: a script starts the host's with a file that changes the version."""
    files = {'usr/bin/node': '#!/usr/bin/bash\nexec /usr/lib/node -r /usr/lib/change.js "$@"\n',
             'usr/lib/change.js': 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "99.0.0" } });\n'}
    for info, content in node_root(files=files):
        if info.name == 'usr/bin/node':
            info, content = (member('usr/lib/node', content, mode=0o755) if len(content) > 1000 else member(info.name, content, mode=0o755))
        yield info, content


@pytest.fixture(name='store', scope='module')
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp('images')
    path.chmod(0o755)
    images = {'py': python_image(), 'sh': shell_root()}
    if NPM:
        own = {'usr/share/nodejs/inside/index.js': 'module.exports = "of the image"\n', 'usr/share/nodejs/@scope/own/index.js': '', 'usr/share/nodejs/single.js': ''}
        images |= {'node': node_root(files=own), 'newer': list(newer_node()), 'hiding': node_root(files={'node_modules/app/index.js': ''})}
    for name, members in images.items():
        done = caisson('image', 'import', write(path / f'{name}.tar', members), '--set', f'images.dir={path}/store')
        assert done.status == 0, done.err
        (path / f'{name}.tar').unlink()
    return path / 'store'


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        for name, module in (('six', 'six.py'), ('pyyaml', 'yaml.py'), ('emoji', 'emoji.py')):
            index.add_wheel(name, '1.0', {module: 'VERSION = "of the layer"\n'})
        index.add_npm('left', '1.0.0')
        index.add_npm('inside', '1.0.0')
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, store, index):
    web = Web(tmp_path_factory.mktemp('daemon'), '--set', f'images.dir={store}', '--set', f'packages.python.index_url={index.url}',
              '--set', f'packages.node.registry_url={index.npm_url}', '--set', 'packages.allow=six, pyyaml, emoji, left, inside')
    yield web
    web.daemon.stop()


def ask(web, language, code, image=None, **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code, **({'image': image} if image else {}), **more})
    assert status == 200, record
    return record


def completed(*args, **more):
    record = ask(*args, **more)
    assert record['status'] == 'completed', record
    return record


def described(store, name):
    return json.loads(caisson('image', 'show', name, '--json', '--set', f'images.dir={store}').out)


# ---- what an image has ----

def test_the_description_lists_modules(store):
    shown = described(store, 'py')
    assert {'six', 'yaml'} <= set(shown['modules']['python']) and shown['modules']['node'] == [] and shown['hides_node_packages'] is False


@needs_npm
def test_the_description_lists_modules_of_node(store):
    assert described(store, 'node')['modules']['node'] == ['@scope/own', 'inside', 'single']
    hiding = described(store, 'hiding')
    assert hiding['hides_node_packages'] is True and hiding['modules']['node'] == ['app']


# ---- Node ----

@needs_npm
@pytest.mark.parametrize('language', ['javascript', 'typescript'])
def test_a_layer_of_node_is_found_in_an_image(web, language):
    for _ in range(3):      # with the build, cold, and with a worker that waited
        record = completed(web, language, LEFT, 'node', packages=['left@1'])
        assert record['stdout'] == '1.0.0 /opt/node_modules/left/index.js in the image\n' and record['image']['name'] == 'node', record
    record = completed(web, 'bash', 'node -e \'console.log(require("left"))\'', 'node', packages=['node:left@1'])
    assert record['stdout'] == '1.0.0\n'


@needs_npm
@pytest.mark.parametrize('language', ['javascript', 'typescript'])
def test_the_default_image_of_node_is_for_both_languages(store, language):
    code = 'import { readFileSync } from "node:fs"; console.log(readFileSync("/etc/marker", "utf8").trim())'
    settings = ['--set', f'images.dir={store}', '--set', 'images.javascript=node']
    record = run('-l', language, '-c', code, '--name', 'main.mts' if language == 'typescript' else 'main.mjs', *settings)
    assert (record['status'], record['stdout'], record['image']['name']) == ('completed', 'in the image\n', 'node'), record
    assert 'image' not in run('-l', language, '-c', '1', '--image', 'system', *settings)


@needs_npm
def test_the_runtime_of_the_image_is_part_of_the_layer(web):
    here, same, newer = (completed(web, 'javascript', 'console.log(process.versions.node)', image, packages=['left@1']) for image in (None, 'node', 'newer'))
    ids = [record['layers'][0]['id'] for record in (here, same, newer)]
    assert here['stdout'] == same['stdout'] != newer['stdout']
    assert ids[0] == ids[1] != ids[2]
    runtimes = [web.ask('GET', f'/v1/layers/{layer}')[2]['runtime'] + '\n' for layer in ids]
    assert runtimes == [record['stdout'] for record in (here, same, newer)]


@needs_npm
def test_a_sandbox_and_a_context_in_an_image_have_both_kinds(web):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'image': 'node', 'packages': ['node:left@1']})
    assert status == 201, sandbox
    status, _, context = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {'language': 'javascript'})
    assert status == 201, context
    _, _, record = web.ask('POST', '/v1/runs', {'context': context['id'], 'code': LEFT})
    assert record['stdout'] == '1.0.0 /opt/node_modules/left/index.js in the image\n', record
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204


# ---- deps auto ----

def test_auto_installs_what_the_image_has_not(web):
    code = 'import six, yaml, emoji, json\nprint(six.VERSION, yaml.VERSION, emoji.VERSION, sep="; ")'
    record = completed(web, 'python', code, 'py', deps='auto')
    assert record['stdout'] == 'of the image; of the image; of the layer\n', record
    assert [layer['packages'] for layer in record['layers']] == [['emoji==1.0']]
    record = completed(web, 'python', 'import six, json', 'py', deps='auto')
    assert 'layers' not in record


@needs_npm
def test_auto_installs_packages_of_node(web):
    record = completed(web, 'javascript', 'console.log(require("left"), require("fs").existsSync("/etc/marker"))', 'node', deps='auto')
    assert record['stdout'] == '1.0.0 true\n' and record['layers'][0]['packages'] == ['left@1.0.0'], record
    record = ask(web, 'javascript', 'require("inside"); require("@scope/own")', 'node', deps='auto')
    assert 'layers' not in record and 'packages_not_allowed' not in [one['code'] for one in record.get('warnings', [])], record


def test_an_image_of_an_older_version_has_to_be_imported_again(web, store, tmp_path):
    archive = write(tmp_path / 'old.tar', python_image())
    assert caisson('image', 'import', archive, '--set', f'images.dir={store}').status == 0
    file = store / '.names/old/image.json'
    shown = json.loads(file.read_text())
    del shown['modules']
    file.write_text(json.dumps(shown))
    record = ask(web, 'python', 'import emoji', 'old', deps='auto')
    assert record['error']['field'] == '/deps' and 'import the image again' in record['error']['message'], record['error']
    assert completed(web, 'python', 'import emoji', 'old', packages=['emoji'])['layers']
    assert caisson('image', 'remove', 'old', '--set', f'images.dir={store}').status == 0


# ---- refusals ----

REFUSALS = [('bash', 'sh', {'packages': ['python:six']}, 'packages of Python are installed for Python 3', 'the image has no Python'),
            ('python', 'py', {'packages': ['node:left']}, 'packages of Node are installed for Node', 'the image has no Node'),
            ('bash', 'sh', {'packages': ['node:left']}, 'packages of Node are installed for Node', 'the image has no Node')]
if NPM:
    REFUSALS += [('javascript', 'hiding', {'packages': ['left']}, 'packages of Node are found by the link', '/node_modules of its own'),
                 ('javascript', 'node', {'packages': ['python:six']}, 'packages of Python', 'the image has no Python')]


@pytest.mark.parametrize('language, image, more, needed, has', REFUSALS)
def test_what_does_not_fit_the_image_is_told(web, language, image, more, needed, has):
    record = ask(web, language, '1', image, **more)
    assert record['status'] == 'bad_request' and record['error']['field'] == '/image', record
    assert needed in record['error']['message'] and has in record['error']['message'], record['error']


def test_a_layer_of_another_language_does_not_fit(web):
    made = completed(web, 'python', 'pass', packages=['six'])['layers'][0]['id']
    record = ask(web, 'bash', '1', 'sh', layers=[made])
    assert record['error']['field'] == '/image' and 'the image has no Python' in record['error']['message'], record['error']
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'image': 'sh', 'packages': ['six']})
    assert status == 422 and problem['field'] == '/image' and 'the image has no Python' in problem['message'], problem


def test_a_program_in_bash_has_to_name_the_language(web):
    record = completed(web, 'bash', 'echo ran', 'sh', packages=['six'])
    assert record['stdout'] == 'ran\n' and 'name the language, such as python:six' in record['warnings'][0]['text'], record


# ---- hints ----

def test_a_missing_module_gets_the_list_of_the_image(web):
    hint = ask(web, 'python', 'import yamll', 'py')['error']['hint']
    assert 'The module yamll is not installed in the image py. Did you mean yaml?' in hint, hint
    assert 'The image has library00 1.0, library01 1.0' in hint and 'and 11 more, see caisson image show py.' in hint and 'in the field packages' in hint, hint


@needs_npm
def test_a_missing_package_of_node_gets_the_list_of_the_image(web):
    hint = ask(web, 'javascript', 'require("insid")', 'node')['error']['hint']
    assert 'The module insid is not installed in the image node. Did you mean inside? The image has @scope/own, inside, single.' in hint, hint
