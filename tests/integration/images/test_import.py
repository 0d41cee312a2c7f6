"""caisson image: archives that are whole, damaged or hostile, and the folder of images."""

import fcntl
import gzip
import json
import os
import random
import signal
import stat
import subprocess
import tarfile
import tempfile
import time

import pytest

from cli import CAISSON, caisson, environment
from image_archives import docker_save, folder, hard, link, member, oci, oci_files, sha256, tar, write

ROOT = [folder('usr'), folder('usr/bin'), member('usr/bin/tool', b'#!/bin/sh\n', mode=0o755), link('bin', 'usr/bin')]


@pytest.fixture(name='store')
def _store(tmp_path):
    return tmp_path / 'images'


def image(store, *args, **more):
    return caisson('image', *args, '--set', f'images.dir={store}', **more)


def imported(store, path, *args, name='it', **more):
    done = image(store, 'import', path, '--name', name, *args, **more)
    assert (done.status, done.out) == (0, f'{name}\n'), done.err
    return tree_of(store, name)


def tree_of(store, name='it'):
    return store / '.names' / name / 'tree'


def refused(store, path, *words, name='it', args=()):
    done = image(store, 'import', path, '--name', name, *args)
    assert done.status == 64 and done.out == '', (done.status, done.out, done.err)
    for word in words:
        assert word in done.err, done.err
    assert not store.exists() or [entry for entry in os.listdir(store) if entry != '.names'] == []
    assert image(store, 'list', '--json').out == '[]\n'
    return done.err


def listed(store):
    return json.loads(image(store, 'list', '--json').out)


# ---- whole archives ----

def test_accounts_that_are_no_file_do_not_stay(store, tmp_path):
    members = [*ROOT, link('etc/passwd', '../usr/bin/tool'), folder('etc/group')]
    assert image(store, 'import', write(tmp_path / 'tools.tar', members)).status == 0
    tree = tree_of(store, 'tools')
    for name in ('passwd', 'group'):
        assert (tree / 'etc' / name).read_bytes() == b'' and not (tree / 'etc' / name).is_symlink()


def test_a_root_file_system_becomes_an_image(store, tmp_path):
    archive = write(tmp_path / 'tools.tar', [*ROOT, member('etc/passwd', b'evil:x:0:0::/:/bin/sh\n'), member('home/somebody/file', b'x')])
    done = image(store, 'import', archive)
    assert (done.status, done.out) == (0, 'tools\n'), done.err
    row = listed(store)[0]
    assert row['name'] == 'tools' and row['kind'] == 'tar' and row['digest'] == 'sha256:' + sha256(archive.read_bytes())
    assert row['files'] == 9 and row['size_bytes'] == 10 + 22 + 1
    tree = tree_of(store, 'tools')
    assert (tree / 'usr/bin/tool').read_bytes() == b'#!/bin/sh\n' and os.readlink(tree / 'bin') == 'usr/bin'
    # Mount points: what covers them is the sandbox's own.
    assert (tree / 'etc/hosts').read_bytes() == (tree / 'etc/group').read_bytes() == b'' and os.listdir(tree / 'home') == ['user'] and os.listdir(tree / 'dev') == []
    assert os.readlink(tree / 'node_modules') == 'opt/node_modules' and (tree / 'opt/packages').is_dir()
    # Accounts stay, for sandboxes with root.
    assert (tree / 'etc/passwd').read_bytes() == b'evil:x:0:0::/:/bin/sh\n' and (tree / 'etc/passwd').stat().st_mode & 0o777 == 0o644
    shown = image(store, 'show', 'tools')
    assert shown.status == 0 and row['digest'] in shown.out and row['id'] in shown.out
    assert json.loads(image(store, 'show', 'tools', '--json').out) == row


@pytest.mark.parametrize('how', ['gzip', 'zstd', 'pipe'])
def test_a_root_file_system_may_be_compressed_or_a_pipe(store, tmp_path, how):
    data = tar(ROOT)
    if how == 'pipe':
        done = image(store, 'import', '-', '--name', 'it', stdin=data)
        assert done.status == 0, done.err
        assert image(store, 'import', '-', stdin=data).status == 64
    else:
        data = gzip.compress(data) if how == 'gzip' else subprocess.run(['zstd', '-qc'], input=data, capture_output=True, check=True).stdout
        imported(store, write(tmp_path / 'file', data))
    assert (tree_of(store) / 'usr/bin/tool').exists()


LOWER = tar([*ROOT, folder('srv'), folder('srv/kept'), member('srv/kept/a', b'a'), member('srv/gone', b'g'), folder('srv/emptied'),
             member('srv/emptied/old', b'o'), member('srv/replaced', b'first'), hard('srv/second-name', 'srv/replaced'), folder('srv/becomes-file'),
             member('srv/becomes-file/x', b'x')])
UPPER = tar([member('srv/.wh.gone', b''), member('srv/emptied/new', b'n'), member('srv/emptied/.wh..wh..opq', b''), member('srv/replaced', b'second'),
             member('srv/becomes-file', b'file'), member('srv/.wh..wh.plnk', b'')])


@pytest.mark.parametrize('make', [docker_save, oci, lambda layers: oci(layers, how='zstd'), lambda layers: oci(layers, how='none', nested=True)],
                         ids=['docker', 'oci-gzip', 'oci-zstd', 'oci-index'])
def test_layers_are_laid_on_each_other(store, tmp_path, make):
    tree = imported(store, write(tmp_path / 'file', make([LOWER, UPPER])))
    assert sorted(os.listdir(tree / 'srv')) == ['becomes-file', 'emptied', 'kept', 'replaced', 'second-name']
    assert os.listdir(tree / 'srv/emptied') == ['new'] and (tree / 'srv/kept/a').read_bytes() == b'a'
    # The other name of a replaced file keeps the old content.
    assert (tree / 'srv/replaced').read_bytes() == b'second' and (tree / 'srv/second-name').read_bytes() == b'first'
    assert (tree / 'srv/becomes-file').read_bytes() == b'file'


def test_an_oci_layout_may_be_a_folder(store, tmp_path):
    for path, data in oci_files([LOWER, UPPER]).items():
        (tmp_path / 'layout' / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'layout' / path).write_bytes(data)
    tree = imported(store, tmp_path / 'layout')
    assert listed(store)[0]['kind'] == 'oci' and os.listdir(tree / 'srv/emptied') == ['new']
    (tmp_path / 'layout/index.json').unlink()
    refused(tmp_path / 'other', tmp_path / 'layout', 'is no OCI layout')


@pytest.mark.skipif(os.geteuid() != 0, reason='only root becomes another user')
def test_a_layout_that_the_owner_of_the_images_cannot_read_is_told(tmp_path):
    with tempfile.TemporaryDirectory(prefix='images-', dir='/var/tmp') as folder_:
        os.chmod(folder_, 0o755)
        os.mkdir(f'{folder_}/images')
        os.chown(f'{folder_}/images', 65533, 65533)
        for path, data in oci_files([LOWER]).items():
            (tmp_path / 'layout' / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / 'layout' / path).write_bytes(data)
        (tmp_path / 'layout').chmod(0o700)
        done = image(f'{folder_}/images', 'import', tmp_path / 'layout', '--name', 'it')
        assert done.status == 64 and 'cannot be read as user 65533' in done.err, done.err
        archive = write(tmp_path / 'file', oci([LOWER]))
        assert image(f'{folder_}/images', 'import', archive, '--name', 'it').status == 0
        assert os.stat(f'{folder_}/images/.names/it/tree/usr/bin/tool').st_uid == 65533


def test_owners_and_dangerous_bits_are_not_taken_over(store, tmp_path):
    tree = imported(store, write(tmp_path / 'file', [
        *ROOT, member('usr/bin/su', b'x', mode=0o4755, uid=0), member('usr/bin/sg', b'x', mode=0o2755), folder('srv', mode=0o1777, uid=12),
        member('srv/open', b'x', mode=0o666, uid=1234, gid=4321), member('srv/closed', b'x', mode=0o640, uid=1234),
        member('usr/bin/capable', b'x', mode=0o755, pax_headers={'SCHILY.xattr.security.capability': '\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0'})]))
    for path, mode in (('usr/bin/su', 0o755), ('usr/bin/sg', 0o755), ('srv', 0o755), ('srv/open', 0o644), ('srv/closed', 0o640), ('usr/bin/capable', 0o755)):
        found = (tree / path).stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (mode, os.stat(store).st_uid, os.stat(store).st_gid), path
    assert os.listxattr(tree / 'usr/bin/capable') == []


def test_devices_and_what_the_kernel_mounts_are_dropped(store, tmp_path):
    tree = imported(store, write(tmp_path / 'file', [
        *ROOT, folder('dev'), member('dev/sda', type=tarfile.BLKTYPE, devmajor=8, devminor=0), member('srv/mem', type=tarfile.CHRTYPE, devmajor=1, devminor=1),
        member('srv/pipe', type=tarfile.FIFOTYPE), member('proc/version', b'x'), member('sys/x', b'x'), member('srv/plain', b'x')]))
    assert os.listdir(tree / 'srv') == ['plain'] and os.listdir(tree / 'dev') == [] and os.listdir(tree / 'proc') == [] and not (tree / 'sys').exists()
    assert listed(store)[0]['dropped'] == 5


def test_times_of_files_stay(store, tmp_path):
    tree = imported(store, write(tmp_path / 'file', [*ROOT, member('usr/module.py', b'', mtime=1234567890)]))
    assert (tree / 'usr/module.py').stat().st_mtime == 1234567890


def test_interpreters_and_libraries_are_noted(store, tmp_path):
    program = {'mode': 0o755}
    imported(store, write(tmp_path / 'file', [
        *ROOT, member('usr/bin/python3.12', b'x', **program), link('usr/bin/python3', '/usr/bin/python3.12'), member('usr/local/bin/node', b'x', **program),
        folder('usr/lib/python3/dist-packages/numpy-1.24.2.egg-info'), member('usr/lib/python3/dist-packages/six-1.16.0.egg-info', b''),
        folder('usr/local/lib/python3.12/site-packages/Flask-3.0.dist-info'), member('usr/share/caisson/libraries', b'# words\n\nnumpy\npandas # the second\n')]))
    row = listed(store)[0]
    assert row['interpreters'] == {'python': {'path': '/usr/bin/python3', 'version': '3.12'}, 'node': {'path': '/usr/local/bin/node', 'version': ''}}
    assert row['libraries'] == ['Flask 3.0', 'numpy 1.24.2', 'six 1.16.0'] and row['expected'] == ['numpy', 'pandas']


# ---- hostile members ----

OUTSIDE = 'leads out of the image'


@pytest.mark.parametrize('bad, words', [
    ([member('../evil', b'x')], OUTSIDE), ([member('usr/../../evil', b'x')], OUTSIDE), ([member('/etc/evil', b'x')], 'has an absolute name'),
    ([member('usr/..', b'x')], OUTSIDE), ([link('srv', '/tmp'), member('srv/evil', b'x')], 'leads through "srv"'),
    ([link('srv', '..'), folder('srv/evil')], 'leads through "srv"'), ([link('srv', '/etc'), hard('usr/stolen', 'srv/passwd')], 'leads through "srv"'),
    ([hard('usr/stolen', '../../etc/passwd')], OUTSIDE), ([hard('usr/stolen', 'etc/shadow')], 'which the image has not'),
    ([hard('usr/self', 'usr/self')], 'is a hard link to itself'), ([hard('usr/dir', 'usr/bin')], 'which is no file'),
    ([member('usr/twice', b'1'), member('usr/twice', b'2')], 'is there twice'), ([member('usr/twice', b'1'), member('./usr//twice', b'2')], 'is there twice'),
    ([member('usr/twice', b'1'), link('usr/twice', '/etc')], 'is there twice'), ([member('usr/a\x1bb', b'x')], 'control character'),
    ([member('usr/file', b'x'), member('usr/file/below', b'x')], 'leads through "file"'), ([member('a/' * 130 + 'x', b'x')], 'below more than 128 folders'),
    ([member('/'.join(['n' * 200] * 25), b'x')], 'path of more than'), ([link('usr/empty', '')], 'without a target')])
def test_a_hostile_member_is_refused(store, tmp_path, bad, words):
    """Nothing stays of the image, and nothing appears beside it."""
    before = sorted(os.listdir(tmp_path))
    refused(store, write(tmp_path / 'file', [*ROOT, *bad]), words)
    assert sorted(os.listdir(tmp_path)) == sorted([*before, 'file', 'images'])


@pytest.mark.parametrize('name, words', [('usr/.wh...', 'whiteout that leads out'), ('usr/.wh..', 'whiteout that leads out'), ('usr/.wh.', 'whiteout that leads out'),
                                         ('../.wh.etc', OUTSIDE), ('lnk/.wh.victim', 'leads through "lnk"'), ('lnk/.wh..wh..opq', 'leads through "lnk"')])
def test_a_hostile_whiteout_is_refused(store, tmp_path, name, words):
    (tmp_path / 'victim').write_text('here')
    lower = tar([*ROOT, link('lnk', str(tmp_path))])
    refused(store, write(tmp_path / 'file', docker_save([lower, tar([member(name, b'')])])), words)
    assert (tmp_path / 'victim').read_text() == 'here'


def test_a_whiteout_of_what_is_not_there_does_nothing(store, tmp_path):
    imported(store, write(tmp_path / 'file', docker_save([tar(ROOT), tar([member('no/such/.wh.folder', b''), member('.wh.none', b'')])])))


def test_in_a_root_file_system_a_whiteout_is_a_name(store, tmp_path):
    tree = imported(store, write(tmp_path / 'file', [*ROOT, member('usr/.wh.tool', b'x')]))
    assert (tree / 'usr/.wh.tool').exists()


def test_links_where_the_sandbox_mounts_are_replaced(store, tmp_path):
    tree = imported(store, write(tmp_path / 'file', [*ROOT, link('dev', '/dev'), link('opt', '/tmp'), link('etc', '/etc'), link('home', '/root'), link('var', '/var'),
                                                     link('tmp', '/tmp'), link('run', '/run'), link('proc', '/proc')]))
    for name in ('dev', 'opt', 'etc', 'home', 'var', 'tmp', 'run', 'proc', 'home/user', 'opt/caisson'):
        assert stat.S_ISDIR(os.lstat(tree / name).st_mode), name


# ---- damaged archives ----

@pytest.mark.parametrize('data, words', [
    (b'', 'the archive cannot be read'), (b'no tar' * 1000, 'cannot be read'), (tar([member('file', b'x')]), 'is no root file system'),
    (gzip.compress(tar(ROOT))[:-30], ''), (tar(ROOT)[:700], ''), (tar([*ROOT, member('usr/big', b'x' * 100000)])[:-60000], '')],
    ids=['empty', 'noise', 'no-root', 'cut-gzip', 'cut-tar', 'cut-content'])
def test_a_damaged_archive_is_refused(store, tmp_path, data, words):
    refused(store, write(tmp_path / 'file', data), words)


def swap(blobs, path, data):
    assert path in blobs
    blobs[path] = data


@pytest.mark.parametrize('which, words', [('layer', 'has the SHA-256'), ('config', 'has the SHA-256'), ('manifest', 'has the SHA-256'), ('missing', 'it has no file')])
def test_a_blob_with_another_hash_is_refused(store, tmp_path, which, words):
    def spoil(blobs, rows, config, manifest):
        of = {'layer': rows[0], 'config': config, 'manifest': manifest, 'missing': rows[0]}[which]
        path = f'blobs/sha256/{of["digest"][7:]}'
        if which == 'missing':
            del blobs[path]
        else:
            swap(blobs, path, blobs[path] + b' ')
    refused(store, write(tmp_path / 'file', oci([LOWER], spoil=spoil)), words)


def test_a_layer_with_another_diff_id_is_refused(store, tmp_path):
    config = json.dumps({'rootfs': {'diff_ids': ['sha256:' + '0' * 64]}}).encode()
    refused(store, write(tmp_path / 'file', docker_save([LOWER], diff_ids=config)), 'has the SHA-256')


@pytest.mark.parametrize('files, words', [
    ({'manifest.json': b'[]'}, 'it has 0 images'), ({'manifest.json': b'{'}, 'is no JSON'), ({'manifest.json': b'[{}, {}]'}, 'it has 2 images'),
    ({'manifest.json': b'[{"Config": "../../etc/passwd", "Layers": ["x"]}]'}, 'it has no file'), ({'manifest.json': b'[{"Config": 1}]'}, 'names no configuration'),
    ({'oci-layout': b'{}', 'index.json': b'{"manifests": []}'}, 'it has no image for linux/'), ({'oci-layout': b'{}', 'index.json': b'{}'}, 'names no image'),
    ({'oci-layout': b'{}', 'index.json': b'{"manifests": [{"digest": "md5:1"}]}'}, 'no digest with SHA-256'),
    ({'oci-layout': b'{}', 'index.json': b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}'}, 'no digest with SHA-256'),
    ({'oci-layout': b'{}', 'index.json': b'[' * 100000}, 'is no JSON'), ({'manifest.json': b'[' + b' ' * (5 << 20) + b']'}, 'has more than')])
def test_bad_documents_are_refused(store, tmp_path, files, words):
    refused(store, write(tmp_path / 'file', tar(member(name, data) for name, data in files.items())), words)


def test_an_image_for_another_machine_is_refused(store, tmp_path):
    files = oci_files([LOWER])
    index = json.loads(files['index.json'])
    index['manifests'][0]['platform'] = {'os': 'linux', 'architecture': 's390x'}
    files['index.json'] = json.dumps(index).encode()
    refused(store, write(tmp_path / 'file', tar(member(*item) for item in files.items())), 'it has no image for linux/')


@pytest.mark.parametrize('seed', range(4))
def test_damage_at_random_is_refused_or_harmless(store, tmp_path, seed):
    chance = random.Random(seed)
    whole = [tar(ROOT), docker_save([LOWER, UPPER]), oci([LOWER, UPPER], how='none'), oci([LOWER, UPPER])][seed]
    before = sorted([*os.listdir(tmp_path), 'file', 'images'])
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 3, 20])):
            at = chance.randrange(len(data))
            if chance.random() < 0.7:
                data[at] = chance.randrange(256)
            else:
                data[at // 512 * 512:at // 512 * 512 + 512] = data[chance.randrange(len(data)) // 512 * 512:][:512]
        done = image(store, 'import', write(tmp_path / 'file', bytes(data)), '--name', 'it', '--replace', '--set', 'images.max_bytes=1MiB')
        assert done.status in (0, 64), (done.status, done.err)
        assert sorted(os.listdir(tmp_path)) == before and len([name for name in os.listdir(store) if name != '.names']) <= 1


# ---- limits ----

def test_the_bytes_of_an_image_have_a_limit(store, tmp_path):
    archive = write(tmp_path / 'file', [*ROOT, member('usr/big', bytes(1 << 20))])
    refused(store, archive, 'images.max_bytes', args=['--set', 'images.max_bytes=1MiB'])
    imported(store, archive, '--set', 'images.max_bytes=2MiB')
    # A sparse file claims its bytes.
    holes = tmp_path / 'holes'
    with open(holes, 'wb') as file:
        file.truncate(1 << 40)
    done = subprocess.run(['tar', '-cSf', tmp_path / 'sparse', '-C', tmp_path, 'holes', '--transform', 's,^,usr/,'], check=False)
    assert done.returncode == 0
    done = image(store, 'import', tmp_path / 'sparse', '--name', 'sparse')
    assert done.status == 64 and 'images.max_bytes' in done.err


def test_the_files_of_an_image_have_a_limit(store, tmp_path):
    archive = write(tmp_path / 'file', [*ROOT, *(member(f'usr/{n}', b'') for n in range(50)), member('a/b/c/d', b'')])
    refused(store, archive, 'images.max_files', args=['--set', 'images.max_files=50'])
    imported(store, archive, '--set', 'images.max_files=60')


@pytest.mark.parametrize('how', ['docker', 'oci', 'tar'])
def test_a_bomb_ends_at_the_limit(store, tmp_path, how):
    layer = tar([*ROOT, member('usr/zeros', bytes(200 << 20))])
    data = gzip.compress(layer, 1) if how == 'tar' else oci([layer]) if how == 'oci' else docker_save([gzip.compress(layer, 1)])
    begun = time.monotonic()
    err = refused(store, write(tmp_path / 'file', data), args=['--set', 'images.max_bytes=1MiB', '--set', 'images.max_files=100'])
    assert 'max_bytes' in err or 'SHA-256' in err
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize('setting, words', [('images.max_bytes=1', 'images.max_bytes'), ('images.max_bytes=2TiB', 'images.max_bytes'),
                                            ('images.max_files=0', 'images.max_files'), ('images.max_files=10000001', 'images.max_files')])
def test_the_limits_have_bounds(store, setting, words):
    done = image(store, 'list', '--set', setting)
    assert done.status == 78 and words in done.err, (done.status, done.err)


# ---- names ----

@pytest.mark.parametrize('name', ['', 'A', '.x', '-x', 'a/b', '../x', 'x' * 65, 'ä', 'a b', 'a\nb'])
def test_a_bad_name_is_refused(store, tmp_path, name):
    archive = write(tmp_path / 'file', ROOT)
    done = image(store, 'import', archive, f'--name={name}')
    assert done.status == 64 and 'is no name of an image' in done.err, done.err
    assert image(store, 'show', f'./{name}' if name.startswith('-') else name).status == 64


@pytest.mark.parametrize('name', ['system', 'data', 'small'])
def test_the_names_of_the_host_are_reserved(store, tmp_path, name):
    refused(store, write(tmp_path / 'file', ROOT), "is that of the host's own file system", name=name)


def test_a_name_is_taken_from_an_image_on_request_only(store, tmp_path):
    archive = write(tmp_path / 'file', ROOT)
    imported(store, archive)
    first = listed(store)[0]['id']
    done = image(store, 'import', archive, '--name', 'it')
    assert done.status == 64 and '--replace' in done.err and [row['id'] for row in listed(store)] == [first]
    imported(store, archive, '--replace')
    assert listed(store)[0]['id'] != first and not (store / first).exists()


def test_images_are_removed_by_name(store, tmp_path):
    imported(store, write(tmp_path / 'file', ROOT))
    done = image(store, 'remove', 'other')
    assert done.status == 64 and 'there is no image "other"' in done.err and 'small, it;' in done.err
    assert image(store, 'remove', 'it').status == 0 and listed(store) == [] and os.listdir(store) == ['.names']
    assert image(store, 'list').status == 0


def test_an_image_in_use_is_removed_when_its_last_user_ends(store, tmp_path):
    archive = write(tmp_path / 'file', ROOT)
    tree = imported(store, archive).resolve()
    held = os.open(tree.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    assert image(store, 'remove', 'it').status == 0 and listed(store) == [] and (tree / 'usr/bin/tool').exists()
    os.close(held)
    imported(store, archive, name='next')
    assert not tree.exists()


def test_a_damaged_description_is_told(store, tmp_path):
    imported(store, write(tmp_path / 'file', ROOT))
    (store / '.names/it/image.json').write_text('{')
    assert 'damaged' in listed(store)[0]['fault'] and 'damaged' in image(store, 'list').out
    done = image(store, 'show', 'it')
    assert done.status == 125 and 'import the image again' in done.err, done.err


# ---- processes that end in the middle ----

def test_nothing_partial_stays_after_a_kill(store, tmp_path):
    archive = write(tmp_path / 'file', [*ROOT, *(member(f'usr/{n}', os.urandom(4000)) for n in range(3000))])
    words = [CAISSON, 'image', 'import', str(archive), '--name', 'it', '--set', f'images.dir={store}']
    for delay in (0.005, 0.02, 0.05, 0.08, 0.12, 0.2):
        process = subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = listed(store)
        assert all(row['files'] == 3004 for row in rows) and len(rows) <= 1
    imported(store, archive, '--replace')
    assert sorted(os.listdir(store)) == sorted(['.names', listed(store)[0]['id']])


def test_the_importer_has_no_rights(store, tmp_path):
    """As it unpacks: no capability, a filter of system calls, no new privileges."""
    reader, writer = os.pipe()
    words = [CAISSON, 'image', 'import', '-', '--name', 'it', '--set', f'images.dir={store}']
    with subprocess.Popen(words, env=environment(), stdin=reader, stdout=subprocess.DEVNULL) as process:
        os.close(reader)
        try:
            deadline, status = time.monotonic() + 30, {}
            while status.get('Seccomp') != '2' and time.monotonic() < deadline:
                with open(f'/proc/{process.pid}/status', encoding='utf-8') as file:
                    status = dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)
                time.sleep(0.01)
            assert (status['Seccomp'], status['NoNewPrivs']) == ('2', '1'), status
            assert int(status['CapEff'], 16) == int(status['CapPrm'], 16) == int(status['CapBnd'], 16) == 0 or os.geteuid() != 0
        finally:
            os.write(writer, tar(ROOT))
            os.close(writer)
        assert process.wait(timeout=60) == 0
