"""Packages of a run: built once into a layer from a private index, read-only, offline afterwards, and each refusal by its code."""

import concurrent.futures
import contextlib
import hashlib
import os
import shutil
import signal
import time

import pytest

from cli import caisson
from daemon import until
from keys import Keys
from layer_archives import archive, described, entries_of
from private_index import PrivateIndex
from web import Web

SIX = 'import six, sys; print(six.VERSION, six.__file__)'


def settings_of(index, *more, min_age='24h'):
    pairs = [f'packages.python.index_url={index.url}', f'packages.min_age={min_age}', *more]
    return [word for pair in pairs for word in ('--set', pair)]


@contextlib.contextmanager
def serving(folder, *options, **more):
    folder.mkdir(exist_ok=True)
    web = Web(folder, *options, **more)
    web.layers = folder / 'layers'
    try:
        yield web
    finally:
        web.daemon.stop(*[signal.SIGTERM] if web.daemon.process.poll() is None else [])


@pytest.fixture(name='index', scope='module')
def indexed():
    with PrivateIndex() as index:
        index.add_wheel('six', '1.0', {'six.py': 'VERSION = "1.0"\n'})
        index.add_wheel('six', '2.0', {'six.py': 'VERSION = "2.0"\n'})
        index.add_wheel('needs-six', '1.0', {'needs_six.py': 'from six import VERSION\n'}, requires=['six<2'])
        index.add_wheel('other', '1.0', {'other/__init__.py': 'import sys\n', 'other/data.txt': 'data\n'})
        index.add_extension('native', '1.0')
        index.add_wheel('tooled', '1.0', {'tooled.py': 'def main(): print("from the script")\n'}, scripts={'tooled': 'tooled:main'})
        index.add_wheel('pathed', '1.0', {'pathed.py': '', 'evil.pth': 'import os; os.environ["PWNED"] = "1"\n'})
        index.add_wheel('young', '1.0', {'young.py': ''}, age=60)
        index.add_wheel('yanked', '1.0', {'yanked.py': ''}, yanked=True)
        index.add_wheel('foreign', '1.0', {'foreign.py': ''}, tag='cp27-cp27m-win32')
        index.add_file('source', '1.0', 'source-1.0.tar.gz', b'no archive')
        index.add_wheel('large', '1.0', {'large.py': ''}, giant={'large.bin': 80_000_000})
        index.add_wheel('conflict', '1.0', {'conflict.py': ''}, requires=['six==3.0'])
        index.add_wheel('lying', '1.0', {'lying.py': ''})
        index.behave('lying', wrong_hash=True)
        index.add_wheel('broken', '1.0', {'broken.py': ''})
        index.behave('broken', status=500)
        index.add_wheel('timeless', '1.0', {'timeless.py': ''})
        index.behave('timeless', upload_times=False)
        index.add_wheel('linked', '1.0', {'linked.py': ''}, links={'leaving': '/etc/passwd'})
        index.add_wheel('emoji', '1.0', {'emoji.py': 'VERSION = "1.0"\n'})
        index.add_wheel('denied', '1.0', {'denied.py': ''})
        index.add_wheel('hostile', '1.0', {'hostile.py': 'import os\nos.write(2, b"imported\\n")\n'})
        yield index


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory, index):
    folder = tmp_path_factory.mktemp('packages')
    with serving(folder, *settings_of(index, 'packages.max_bytes=64MiB', 'packages.deny=denied', 'packages.allow=emoji, other')) as web:
        yield web


def run(web, code, **more):
    status, _, record = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code, **more})
    assert status == 200, record
    return record


def started(web, code, *packages):
    """The state of a run that goes on."""
    status, _, state = web.ask('POST', '/v1/runs', {'language': 'python', 'code': code, 'packages': list(packages)}, Prefer='respond-async')
    assert status == 202, state
    return state


def completed(web, code, **more):
    record = run(web, code, **more)
    assert record['status'] == 'completed', record
    return record


def failed(web, code, *packages, **more):
    """The record of a run whose packages cannot be installed, for this reason."""
    record = run(web, 'print(1)', packages=list(packages), **more)
    assert record['status'] == 'dependency_failed' and record['error']['code'] == code, record
    assert record['error']['field'] == '/packages' and record['stdout'] == ''
    assert record['error']['retryable'] is (code == 'index_unreachable'), record
    return record


def test_a_package_is_installed_and_imported(web):
    record = completed(web, SIX, packages=['six'])
    assert record['stdout'] == '2.0 /opt/packages/six.py\n'
    [layer] = record['layers']
    assert layer['packages'] == ['six==2.0'] and layer['language'] == 'python' and layer['id'].startswith('lyr_')


def test_the_second_run_asks_the_index_nothing(web, index):
    first = completed(web, SIX, packages=['six==1.0'])
    asked = len(index.paths())
    second = completed(web, SIX, packages=[' SIX == 1.0 '])
    assert len(index.paths()) == asked
    assert second['layers'][0]['id'] == first['layers'][0]['id'] and second['layers'][0]['cached'] is True
    assert second['layers'][0]['wait_ms'] == 0


def test_what_a_package_needs_comes_with_it(web):
    record = completed(web, 'import needs_six; print(needs_six.VERSION)', packages=['needs-six'])
    assert record['stdout'] == '1.0\n'
    assert sorted(record['layers'][0]['packages']) == ['needs-six==1.0', 'six==1.0']


def test_a_list_in_one_text_and_requirements_are_the_same_request(web):
    by_list = completed(web, 'pass', packages=['other, six==1.0'])
    by_text = completed(web, 'pass', requirements='six==1.0  # why\nOther\n')
    assert by_list['layers'][0]['id'] == by_text['layers'][0]['id'] and by_text['layers'][0]['cached'] is True


def test_a_layer_is_read_only_and_has_no_writable_path(web):
    code = '''import os, other
for path in ['/opt/packages/new', '/opt/packages/other/data.txt', '/opt/packages/other/new']:
    try:
        open(path, 'w')
    except OSError as error:
        print(error.errno)
try:
    os.chmod('/opt/packages/other/data.txt', 0o777)
except OSError as error:
    print(error.errno)
print(open('/opt/packages/other/data.txt').read(), end='')
'''
    assert completed(web, code, packages=['other'])['stdout'] == '30\n30\n30\n30\ndata\n'


def test_other_layers_cannot_be_seen(web):
    completed(web, SIX, packages=['six'])
    code = "import os; print(sorted(os.listdir('/opt')), os.listdir('/opt/packages'), os.listdir('/tmp'))"
    assert completed(web, code)['stdout'] == "['caisson', 'node_modules', 'packages'] [] []\n"


def test_a_c_extension_works(web):
    assert completed(web, 'import native; print(native.answer())', packages=['native'])['stdout'] == '42\n'


def test_child_processes_and_scripts_find_the_packages(web):
    code = '''import subprocess, sys
print(subprocess.check_output([sys.executable, '-c', 'import tooled; tooled.main()'], text=True), end='')
print(subprocess.check_output(['/opt/packages/bin/tooled'], text=True), end='')
'''
    assert completed(web, code, packages=['tooled'])['stdout'] == 'from the script\n' * 2


def test_a_pth_file_runs_no_code(web):
    code = '''import os, subprocess, sys
print(os.environ.get('PWNED'), subprocess.check_output([sys.executable, '-c', 'import os; print(os.environ.get("PWNED"))'], text=True))
'''
    assert completed(web, code, packages=['pathed'])['stdout'] == 'None None\n\n'


@pytest.mark.parametrize('code, package', [('package_not_found', 'nowhere'), ('too_new', 'young'), ('no_wheel', 'source'),
                                           ('hash_mismatch', 'lying'), ('index_unreachable', 'broken'),
                                           ('no_upload_time', 'timeless'), ('version_conflict', 'conflict'),
                                           ('not_allowed', 'denied')])
def test_a_refusal_has_its_code(web, code, package):
    assert package in failed(web, code, package)['error']['message']


@pytest.mark.parametrize('code, package', [('package_not_found', 'yanked'), ('version_conflict', 'foreign'), ('version_conflict', 'six==9')])
def test_what_has_no_file_that_fits_is_refused(web, code, package):
    failed(web, code, package)


def test_a_link_in_a_wheel_leads_nowhere(web):
    record = run(web, 'import os; print(os.path.islink("/opt/packages/leaving"), open("/opt/packages/leaving").read())', packages=['linked'])
    assert record['stdout'] == 'False /etc/passwd\n', record


def test_what_is_too_large_is_refused(web):
    failed(web, 'too_large', 'large')


def test_a_failure_is_remembered(web, index):
    failed(web, 'package_not_found', 'missing-a')
    asked = len(index.paths())
    failed(web, 'package_not_found', 'missing-a')
    assert len(index.paths()) == asked


@pytest.mark.parametrize('text', ['--index-url x', 'git+https://example.org/x', 'x;$(id)', './x.whl', '-r other'])
def test_what_is_no_package_is_refused(web, text):
    record = run(web, 'print(1)', packages=[text])
    assert record['status'] == 'bad_request' and record['error']['field'] == '/packages', record


def test_a_lock_is_pinned_by_its_hashes(web, index):
    [file] = [file for file in index.projects['six'] if file.version == '1.0']
    good = hashlib.sha256(file.content).hexdigest()
    record = completed(web, SIX, requirements=f'six==1.0 --hash=sha256:{good}\n')
    assert record['stdout'].startswith('1.0 ')
    record = run(web, SIX, requirements=f'six==1.0 --hash=sha256:{"0" * 64}\n')
    assert record['status'] == 'dependency_failed', record


def test_inline_metadata_is_read_when_it_is_asked_for(web):
    code = '# /// script\n# dependencies = ["six<2"]\n# ///\n' + SIX
    assert completed(web, code, packages_from_code=True)['stdout'].startswith('1.0 ')
    assert run(web, code)['status'] == 'failed'


def test_imports_are_detected_with_auto_as_far_as_the_administrator_allows(web):
    record = completed(web, 'import emoji; print(emoji.VERSION)', deps='auto')
    assert record['stdout'] == '1.0\n' and record['layers'][0]['packages'] == ['emoji==1.0']
    record = run(web, 'import xgboost', deps='auto')
    assert 'packages_not_allowed' in [warning['code'] for warning in record['warnings']], record
    record = run(web, 'import made_up_by_a_model', deps='auto')
    assert 'packages_unmapped' in [warning['code'] for warning in record['warnings']], record
    assert completed(web, 'import os, json; print(1)', deps='auto').get('layers') is None


@pytest.mark.parametrize('clause', ['except ImportError', 'except (KeyError, ModuleNotFoundError) as error', 'except', 'except Exception'])
def test_nothing_is_installed_for_an_optional_import(web, clause):
    record = completed(web, f'try:\n    import emoji, xgboost\n    from made_up import x\n{clause}:\n    print("without")\n', deps='auto')
    assert record['stdout'] == 'without\n' and record.get('layers') is None and record['warnings'] == [], record


def test_an_import_whose_failure_is_not_handled_is_needed(web):
    for code in ('try:\n    import emoji\nexcept ValueError:\n    pass\n', 'try:\n    import missing_one\nexcept ImportError:\n    import emoji\n',
                 'try:\n    import emoji\nexcept ImportError:\n    pass\nimport emoji\n'):
        assert completed(web, code + 'print(emoji.VERSION)', deps='auto')['stdout'] == '1.0\n'


def test_with_deps_image_nothing_is_installed(web):
    record = run(web, SIX, packages=['six'], deps='image')
    assert record.get('layers') is None and record['packages'] == ['six']


def test_a_layer_is_named_by_its_id(web):
    layer = completed(web, SIX, packages=['six'])['layers'][0]['id']
    assert completed(web, SIX, layers=[layer])['stdout'].startswith('2.0 ')
    for wrong in ['lyr_' + '0' * 32, 'lyr_x', '../x']:
        record = run(web, SIX, layers=[wrong])
        assert record['status'] == 'bad_request' and record['error']['field'] == '/layers', record
    record = run(web, SIX, layers=[layer], packages=['six'])
    assert record['status'] == 'bad_request', record


def test_many_requests_at_once_build_once(web, index):
    before = len([path for path in index.paths() if path.endswith('.whl')])
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        records = list(pool.map(lambda _: completed(web, 'import other, native', packages=['other', 'native']), range(12)))
    assert len({record['layers'][0]['id'] for record in records}) == 1
    assert len([path for path in index.paths() if path.endswith('.whl')]) - before == 2


def test_runs_without_packages_are_served_meanwhile(web, index):
    index.behave('slow', delay=3)
    index.add_wheel('slow', '1.0', {'slow.py': ''})
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        slow = pool.submit(completed, web, 'import slow; print(1)', packages=['slow'])
        count = 0
        while not slow.done():
            completed(web, 'print(1)')
            count += 1
        assert time.monotonic() - begun > 3 and count > 10
        assert slow.result()['layers'][0]['wait_ms'] > 2000


def test_a_corrupt_layer_is_built_again(web):
    layer = completed(web, SIX, packages=['six==2.0'])['layers'][0]['id']
    (web.layers / layer[4:] / 'meta.json').write_text('{')
    record = completed(web, SIX, packages=['six==2.0'])
    assert record['layers'][0] == {**record['layers'][0], 'id': layer, 'cached': False}


def test_a_cancelled_run_leaves_the_build_to_others(web, index):
    index.behave('waited', delay=1)
    index.add_wheel('waited', '1.0', {'waited.py': ''})
    begun = started(web, 'import waited', 'waited')
    web.ask('DELETE', f'/v1/runs/{begun["id"]}')
    assert completed(web, 'import waited; print(1)', packages=['waited'])['stdout'] == '1\n'


def test_the_build_sandbox_reaches_nothing_else_and_code_of_packages_never_runs_there(web):
    record = completed(web, 'print(1)', packages=['hostile'])
    assert 'imported' not in record['stderr']
    assert 'imported' in completed(web, 'import hostile', packages=['hostile'])['stderr']


KILLS = 50


def test_a_kill_during_a_build_leaves_nothing_partial(tmp_path):
    """kill -9 at 50 moments of builds; then the same requests are served, and the folder has whole layers only."""
    both = shutil.which('npm', path='/usr/bin') is not None
    with PrivateIndex() as index:
        for number in range(KILLS):
            index.add_wheel(f'kill{number}', '1.0', {f'kill{number}.py': f'NUMBER = {number}\n'})
            index.add_npm(f'kill{number}', '1.0.0', {'index.js': f'module.exports = {number}\n'})
        settings = settings_of(index, f'packages.node.registry_url={index.npm_url}')

        def request(number):
            if both and number % 3 == 2:
                return {'language': 'javascript', 'code': f'console.log(require("kill{number}"))', 'packages': [f'kill{number}']}
            return {'language': 'python', 'code': f'from kill{number} import NUMBER; print(NUMBER)', 'packages': [f'kill{number}']}

        for number in range(KILLS):
            with serving(tmp_path, *settings) as web:
                assert web.ask('POST', '/v1/runs', request(number), Prefer='respond-async')[0] == 202
                time.sleep(0.03 * number)
                web.daemon.stop()
        with serving(tmp_path, *settings) as web:
            layers = web.layers
            for layer in layers.iterdir():
                assert layer.name.startswith('.') or len(list(layer.iterdir())) == 2, layer
            until(lambda: not list((layers / '.staging').iterdir()))
            for number in range(0, KILLS, 7):
                status, _, record = web.ask('POST', '/v1/runs', request(number))
                assert status == 200 and record['stdout'] == f'{number}\n', record
            done = caisson('layers', 'verify', env={'CAISSON_PACKAGES_CACHE_DIR': str(layers)})
            assert done.status == 0, done


def test_the_ceiling_of_bytes_is_kept_after_each_build(tmp_path, index):
    with serving(tmp_path, *settings_of(index, 'packages.cache_bytes=1')) as web:
        for version in ('1.0', '2.0'):
            assert completed(web, SIX, packages=[f'six=={version}'])['stdout'].startswith(version)
        until(lambda: len([layer for layer in web.layers.iterdir() if not layer.name.startswith('.')]) <= 1)


@pytest.mark.parametrize('delay', [0.2, 1, 2, 2.5])
def test_the_daemon_ends_in_the_middle_of_a_build(tmp_path, index, delay):
    name = f'ended{round(delay * 10)}'
    index.behave(name, delay=2)
    index.add_wheel(name, '1.0', {f'{name}.py': ''})
    with serving(tmp_path, *settings_of(index, 'engine.shutdown_ms=100ms')) as web:
        started(web, 'pass', name)
        time.sleep(delay)
        assert web.daemon.stop(signal.SIGTERM) == 0, web.log.read_text()


def test_two_daemons_share_one_folder(tmp_path, index):
    shared = tmp_path / 'layers'
    settings = settings_of(index, f'packages.cache_dir={shared}')
    with serving(tmp_path / 'a', *settings) as one, serving(tmp_path / 'b', *settings) as two:
        before = len(index.paths())
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            records = list(pool.map(lambda n: completed((one, two)[n % 2], 'import needs_six', packages=['needs-six']), range(8)))
        assert len({record['layers'][0]['id'] for record in records}) == 1
        assert len([path for path in index.paths()[before:] if path.endswith('.whl')]) == 2


def test_two_daemons_build_each_set_once(tmp_path, index):
    """40 requests for 8 sets at once."""
    for number in range(8):
        index.add_wheel(f'once{number}', '1.0', {f'once{number}.py': f'VALUE = {number}\n'})
    settings = settings_of(index, f'packages.cache_dir={tmp_path / "layers"}')
    with serving(tmp_path / 'a', *settings) as one, serving(tmp_path / 'b', *settings) as two:
        before = len(index.paths())

        def ask(number):
            record = completed((one, two)[number % 2], f'import once{number % 8}; print(once{number % 8}.VALUE)', packages=[f'once{number % 8}'])
            assert record['stdout'] == f'{number % 8}\n'
            return record['layers'][0]['id']
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            layers = list(pool.map(ask, range(40)))
        assert [len(set(layers[number::8])) for number in range(8)] == [1] * 8 and len(set(layers)) == 8
        assert sorted(path.rsplit('/', 1)[1] for path in index.paths()[before:] if path.endswith('.whl')) == [f'once{n}-1.0-py3-none-any.whl' for n in range(8)]


def test_a_layer_of_one_tenant_is_not_anothers(tmp_path, index):
    keys = Keys(tmp_path)
    texts = [keys.make(name, '--tenant', name) for name in ('ours', 'theirs')]
    with serving(tmp_path, *settings_of(index), keyless=False) as web:
        ours, theirs = map(web.with_key, texts)
        layer = completed(ours, SIX, packages=['six'])['layers'][0]['id']
        record = run(theirs, SIX, layers=[layer])
        assert record['status'] == 'bad_request' and 'there is no layer' in record['error']['message'], record
        assert completed(theirs, SIX, packages=['six'])['layers'][0]['id'] != layer


@pytest.mark.parametrize('missing, nearest', [('jsonn', 'json'), ('colections', 'collections'), ('statistisc', 'statistics')])
def test_a_missing_module_has_a_hint_with_the_nearest_name(web, missing, nearest):
    hint = run(web, f'import {missing}')['error']['hint']
    assert hint.startswith(f'The module {missing} is not installed in this image. Did you mean {nearest}?') and 'packages' in hint


@pytest.mark.parametrize('code', ['import qzqzqz', 'import x', 'import ' + 'a' * 60, 'raise ModuleNotFoundError("other words")'])
def test_a_hint_suggests_no_name_that_is_far_away(web, code):
    hint = run(web, code)['error']['hint']
    assert 'Did you mean' not in hint and 'not installed' in hint


def test_an_administrators_layer_of_node_is_found_by_both_kinds_of_modules(tmp_path):
    tree = {'left': None, 'left/package.json': b'{"name": "left", "main": "main.js"}', 'left/main.js': b'module.exports = 7\n'}
    lock = [{'name': 'left', 'version': '1.0.0', 'file': 'left-1.0.0.tgz', 'integrity': 'sha512-' + 'A' * 86 + '==', 'upload_time': ''}]
    packed = archive(tmp_path / 'node.tar', described(tree, language='javascript', lock=lock, modules=['left']), entries_of(tree))
    with serving(tmp_path / 'd') as web:
        done = caisson('layers', 'import', packed, env={'CAISSON_PACKAGES_CACHE_DIR': str(web.layers)})
        assert done.status == 0, done.err
        layer = done.out.split()[-1]
        for name, code in (('main.cjs', 'console.log(require("left"))'), ('main.mjs', 'import left from "left"; console.log(left)')):
            record = web.run(code, 'javascript', name=name, layers=[layer])
            assert record['stdout'] == '7\n' and record['layers'][0]['packages'] == ['left@1.0.0'], record
        assert web.run('console.log(require("fs").readdirSync("/node_modules").length)', 'javascript')['stdout'] == '0\n'


@pytest.mark.parametrize('more', [{'packages': ['six']}, {'requirements': 'six'}, {'packages_from_code': True}, {'deps': 'auto'}])
def test_without_an_index_a_request_for_packages_has_a_warning(tmp_path, more):
    with serving(tmp_path) as web:
        assert 'packages_not_installed' in [warning['code'] for warning in completed(web, 'print(1)', **more)['warnings']]


def test_without_an_index_packages_are_recorded_and_a_warning_says_so(tmp_path):
    with serving(tmp_path) as web:
        record = completed(web, 'print(1)', packages=['six'])
        assert record['packages'] == ['six']
        assert [warning['code'] for warning in record['warnings']] == ['packages_not_installed']
