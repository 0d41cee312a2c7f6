"""Layers that the setting images.layers pins to an image: in runs, sandboxes and caisson image test, for all tenants."""

import json
import signal

import pytest

from cli import caisson, run
from daemon import until
from image_archives import member, node_root, python_root, shell_root, write
from keys import Keys
from private_index import PrivateIndex
from test_image_packages import needs_npm
from web import Web

# Stand-ins with the functions that caisson image test uses.
PPTX = '''import json
class Text:
    text = ''
class Shapes:
    def __init__(self): self.title = Text()
class Slide:
    def __init__(self): self.shapes = Shapes()
class Slides(list):
    def add_slide(self, layout):
        self.append(Slide())
        return self[-1]
class Presentation:
    slide_layouts = [0]
    def __init__(self, path=None):
        self.slides = Slides()
        for title in json.load(open(path)) if path else []:
            self.slides.add_slide(0).shapes.title.text = title
    def save(self, path):
        json.dump([slide.shapes.title.text for slide in self.slides], open(path, 'w'))
'''
MARKITDOWN = '''import re, types
class MarkItDown:
    def convert(self, path): return types.SimpleNamespace(text_content=re.sub('<[^>]*>', ' ', open(path).read()))
'''
XLRD = '''import struct, types
VERSION = 'of the layer'
def open_workbook(path):
    text = open(path, 'rb').read()
    sheet = types.SimpleNamespace(cell_value=lambda row, column: text[8 + 4 + 8:].split(b'\\n')[0][:5].decode())
    return types.SimpleNamespace(sheet_by_index=lambda index: sheet)
'''
CODE = 'import xlrd, pptx, markitdown\nprint(xlrd.VERSION, pptx.__file__, open("/etc/marker").read(), end="")'
NAMES = ['numpy', 'tabulate', 'xlrd']     # of the manifest of the image; the layer brings xlrd again, and two more


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('python-pptx', '1.0.2', {'pptx/__init__.py': PPTX}, requires=['XlsxWriter'])
        index.add_wheel('xlsxwriter', '3.2.0', {'xlsxwriter.py': 'VERSION = "3.2.0"\n'})
        index.add_wheel('xlsxwriter', '3.3.0', {'xlsxwriter.py': 'VERSION = "3.3.0"\n'}, age=60)
        index.add_wheel('markitdown', '0.1.3', {'markitdown.py': MARKITDOWN})
        index.add_wheel('xlrd', '2.0.1', {'xlrd.py': XLRD})
        index.add_wheel('xlrd', '1.2.0', {'xlrd.py': 'VERSION = "older"\n'})
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        index.add_npm('left', '1.0.0')
        index.add_npm('right', '1.0.0')
        yield index


def image_members():
    """A Python image with stand-ins of three of the libraries, and an old xlrd."""
    folder = 'usr/lib/python3/dist-packages'
    table = 'def tabulate(rows, headers, tablefmt):\n    return "|n|s|\\n|-|-|\\n|1|x|"\n'
    return [*(entry for entry in python_root() if '/numpy' not in entry[0].name),
            member('usr/share/caisson/libraries', ''.join(f'{name}\n' for name in NAMES).encode()),
            member(f'{folder}/tabulate.py', table.encode()), member(f'{folder}/tabulate-0.8.10.egg-info', b'Metadata-Version: 1.0\nName: tabulate\nVersion: 0.8.10\n'),
            member(f'{folder}/xlrd.py', b'VERSION = "of the image"\n'), member(f'{folder}/xlrd-1.2.0.egg-info', b'Metadata-Version: 1.0\nName: xlrd\nVersion: 1.2.0\n')]


@pytest.fixture(name='place', scope='module')
def placed(tmp_path_factory, index):
    """The settings of images and layers, with a layer of Python that is made for the image; and the layer's id."""
    path = tmp_path_factory.mktemp('pins')
    path.chmod(0o755)
    settings = ['--set', f'images.dir={path}/images', '--set', f'packages.python.index_url={index.url}', '--set', f'packages.node.registry_url={index.npm_url}',
                '--set', f'packages.cache_dir={path}/layers', '--set', 'packages.allow=six, xlrd, python-pptx']
    for name, members in (('py', image_members()), ('sh', shell_root())):
        done = caisson('image', 'import', write(path / f'{name}.tar', members), *settings)
        assert done.status == 0, done.err
    (path / 'building').mkdir()
    web = Web(path / 'building', *settings)
    try:
        built = web.daemon.caisson('layers', 'build', '--image', 'py', 'python-pptx', 'markitdown', 'xlrd==2.0.1', *web.state)
        assert built.status == 0 and built.out.startswith('lyr_'), built.err
        refused = web.daemon.caisson('layers', 'build', '--image', 'sh', 'six', *web.state)
        assert refused.status != 0 and 'the image has no Python' in refused.err, refused.err
        missing = web.daemon.caisson('layers', 'build', '--image', 'nope', 'six', *web.state)
        assert missing.status != 0 and 'there is no image "nope"' in missing.err, missing.err
        yield settings, built.out.strip(), path
    finally:
        web.daemon.stop()


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, place):
    settings, layer, _ = place
    web = Web(tmp_path_factory.mktemp('daemon'), *settings, '--set', f'images.layers=py={layer}')
    yield web
    web.daemon.stop()


def ask(web, code, language='python', image='py', **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': language, 'code': code, 'image': image, **more})
    assert status == 200, record
    return record


def test_programs_in_the_image_find_the_layer(web, place):
    for _ in range(2):
        record = ask(web, CODE)
        assert record['stdout'] == 'of the layer /opt/packages/pptx/__init__.py in the image\n', record
        assert [layer['id'] for layer in record['layers']] == [place[1]]
    assert 'layers' not in web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'pass'})[2]
    record = ask(web, 'python3 -c "import pptx; print(pptx.__name__)"', language='bash')
    assert record['stdout'] == 'pptx\n', record


def test_the_layer_is_for_all_tenants(tmp_path, place):
    settings, layer, _ = place
    keys = Keys(tmp_path)
    made = [keys.make(tenant, '--tenant', tenant) for tenant in ('one', 'two')]
    web = Web(tmp_path, *settings, '--set', f'images.layers=py={layer}', keyless=False)
    try:
        for key in made:
            assert ask(web.with_key(key), CODE)['stdout'].startswith('of the layer')
            record = ask(web.with_key(key), CODE, layers=[layer])
            assert record['error']['field'] == '/layers' and 'there is no layer' in record['error']['message'], record
    finally:
        web.daemon.stop()


def test_a_sandbox_has_the_layer(web, place):
    status, _, sandbox = web.ask('POST', '/v1/sandboxes', {'image': 'py'})
    assert status == 201 and [layer['id'] for layer in sandbox['layers']] == [place[1]], sandbox
    _, _, context = web.ask('POST', f'/v1/sandboxes/{sandbox["id"]}/contexts', {'language': 'python'})
    _, _, record = web.ask('POST', '/v1/runs', {'context': context['id'], 'code': CODE})
    assert record['stdout'].startswith('of the layer') and not record.get('warnings'), record
    assert web.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204


def test_a_grading_has_the_layer(web):
    request = {'code': 'import xlrd\ndef f():\n    return xlrd.VERSION\n', 'function': 'f', 'cases': [{'args': [], 'expected': 'of the layer'}], 'image': 'py'}
    status, _, result = web.ask('POST', '/v1/grade', request)
    assert status == 200 and result['all_passed'], result


def test_own_packages_come_beside_those_of_the_layer(web):
    record = ask(web, 'import six, pptx, xlrd\nprint(six.VERSION, xlrd.VERSION)', packages=['six'])
    assert record['stdout'] == '1.0 of the layer\n', record
    assert sorted(record['layers'][0]['packages']) == ['markitdown==0.1.3', 'python-pptx==1.0.2', 'six==1.0', 'xlrd==2.0.1', 'xlsxwriter==3.2.0']
    record = ask(web, 'import xlrd, pptx\nprint(xlrd.VERSION)', packages=['xlrd==1.2.0'])
    assert record['stdout'] == 'older\n' and 'xlrd==1.2.0' in record['layers'][0]['packages'], record


def test_auto_knows_the_modules_of_the_layer(web, place):
    record = ask(web, 'import pptx, xlrd', deps='auto')
    assert record['status'] == 'completed' and [layer['id'] for layer in record['layers']] == [place[1]] and not record.get('warnings'), record
    record = ask(web, 'import pptx, six\nprint(six.VERSION)', deps='auto')
    assert record['stdout'] == '1.0\n' and 'python-pptx==1.0.2' in record['layers'][0]['packages'], record


def test_a_named_layer_takes_the_place(web):
    made = web.ask('POST', '/v1/layers', {'packages': ['six'], 'image': 'py'})[2]['id']
    record = ask(web, 'import six, xlrd\nprint(xlrd.VERSION)', layers=[made])
    assert record['stdout'] == 'of the image\n' and [layer['id'] for layer in record['layers']] == [made], record


def test_the_layer_is_used_without_an_index(tmp_path, place):
    settings, layer, path = place
    web = Web(tmp_path, '--set', f'images.dir={path}/images', '--set', f'packages.cache_dir={path}/layers', '--set', f'images.layers=py={layer}')
    try:
        assert ask(web, CODE)['stdout'].startswith('of the layer')
        record = ask(web, CODE, packages=['six'])
        assert record['stdout'].startswith('of the layer') and 'names no index' in record['warnings'][0]['text'], record
    finally:
        web.daemon.stop()
    assert settings


def test_image_test_uses_libraries_of_the_layer(place):
    settings, layer, _ = place
    done = caisson('image', 'test', '--json', 'py', *settings, '--set', f'images.layers=py={layer}')
    states = {row['name']: row['state'] for row in json.loads(done.out)}
    assert states == {'python': 'ok', 'bash': 'ok', 'numpy': 'missing', 'tabulate': 'ok', 'xlrd': 'ok', 'python-pptx': 'ok', 'markitdown': 'ok', 'xlsxwriter': 'imported'}, done.out
    without = caisson('image', 'test', '--json', 'py', *settings)
    states = {row['name']: row['state'] for row in json.loads(without.out)}
    assert states == {'python': 'ok', 'bash': 'ok', 'numpy': 'missing', 'tabulate': 'ok', 'xlrd': 'failed'}, without.out


@needs_npm
def test_a_layer_of_each_language(tmp_path, place):
    settings, layer, path = place
    members = {info.name: (info, content) for info, content in [*node_root(), *image_members()]}
    done = caisson('image', 'import', write(tmp_path / 'both.tar', members.values()), *settings)
    assert done.status == 0, done.err
    web = Web(tmp_path, *settings)
    node = web.daemon.caisson('layers', 'build', '--image', 'both', 'node:left', *web.state)
    web.daemon.stop()
    assert node.status == 0, node.err
    web = Web(tmp_path, *settings, '--set', f'images.layers=both={layer}, both={node.out.strip()}')
    try:
        record = ask(web, 'python3 -c "import pptx; print(1)"; node -e "console.log(require(\'left\'))"', language='bash', image='both')
        assert record['stdout'] == '1\n1.0.0\n' and len(record['layers']) == 2, record
        record = ask(web, 'console.log(require("left"), require("right"))', language='javascript', image='both', packages=['right'])
        assert record['stdout'] == '1.0.0 1.0.0\n', record
    finally:
        web.daemon.stop()
    assert path


# ---- errors ----

def test_the_command_line_without_a_daemon_says_that_layers_are_missing(place):
    settings, layer, _ = place
    record = run('--image', 'py', '-l', 'python', '-c', 'pass', *settings, '--set', f'images.layers=py={layer}')
    assert record['status'] == 'completed' and 'need the daemon' in record['warnings'][0]['text'], record


@pytest.mark.parametrize('pins, words', [('py={layer}, py={layer}', 'another layer of the same language'), ('py=lyr_00000000000000000000000000000000', 'there is no such layer'),
                                         ('py=six', 'that is no id of a layer'), ('sh={layer}', 'the image has no Python')])
def test_a_pin_that_cannot_be_used_is_told(tmp_path, place, pins, words):
    settings, layer, _ = place
    web = Web(tmp_path, *settings, '--set', f'images.layers={pins.format(layer=layer)}')
    try:
        record = ask(web, 'true', language='bash', image=pins.split('=')[0])
        assert record['status'] == 'bad_request' and record['error']['field'] == '/image' and words in record['error']['message'], record
        status, _, problem = web.ask('POST', '/v1/sandboxes', {'image': pins.split('=')[0]})
        assert status == 422 and words in problem['message'], problem
        assert ask(web, 'true', language='bash', image='system')['status'] == 'completed'
    finally:
        web.daemon.stop()


@pytest.mark.parametrize('pins', ['py', 'py=', '=lyr_1', '../py=lyr_1', 'py lyr_1'])
def test_a_setting_of_another_form_is_refused(pins):
    done = caisson('run', '-l', 'bash', '-c', 'true', '--set', f'images.layers={pins}')
    assert done.status != 0 and 'images.layers has' in done.err and 'the name of an image, = and the id of a layer' in done.err, done.err


def test_a_reload_pins_a_layer_and_refuses_another_form(tmp_path, place):
    settings, layer, _ = place
    config = tmp_path / 'caisson.yaml'
    config.write_text('images:\n  layers: []\n')
    web = Web(tmp_path, '--config', config, *settings)
    try:
        assert 'layers' not in ask(web, 'pass')
        config.write_text(f'images:\n  layers: [py={layer}]\n')
        web.daemon.process.send_signal(signal.SIGHUP)
        assert until(lambda: 'reload: settings changed: 1' in web.log.read_text())
        assert ask(web, CODE)['stdout'].startswith('of the layer')
        config.write_text('images:\n  layers: [nonsense]\n')
        web.daemon.process.send_signal(signal.SIGHUP)
        assert until(lambda: 'nothing is changed, because of an error' in web.log.read_text())
        assert ask(web, CODE)['stdout'].startswith('of the layer')
    finally:
        web.daemon.stop()


def test_a_pinned_layer_is_not_pruned(tmp_path, place):
    settings, layer, path = place
    exported = tmp_path / 'layer.tar.zst'
    assert caisson('layers', 'export', layer, exported, *settings).status == 0
    own = ['--set', f'packages.cache_dir={tmp_path}/layers']
    taken = caisson('layers', 'import', exported, *own)
    assert taken.status == 0, taken.err
    pruned = caisson('layers', 'prune', '--bytes', '1', '--age', '0s', *own, '--set', f'images.layers=py={taken.out.strip()}')
    assert pruned.out.startswith('removed 0 layers'), pruned.out
    assert caisson('layers', 'prune', '--bytes', '1', *own).out.startswith('removed 1 layers')
    assert path
