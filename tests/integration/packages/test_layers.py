"""Layers of packages: caisson layers, archives that are whole, damaged or hostile, and processes that end in the middle."""

import json
import os
import random
import shutil
import signal
import subprocess
import tarfile
import time

import pytest

from cli import CAISSON, caisson, environment
from layer_archives import LOCK, archive, described, entries_of, layer_id, member

GOLDEN = 'lyr_67accac23c61dc1ac204e8e52091390d'      # as in tests/unit/test-layers.c
TREE = {'pkg': None, 'pkg/__init__.py': b'print(1)\n', 'bin': None, 'bin/run': ('x', b'#!/bin/sh\n'), 'bin/link': ('l', '../pkg/__init__.py'),
        'pkg/\u00fcml\u00e4ut.txt': 'gr\u00fc\u00dfe'.encode(), 'pkg/empty': b'', 'pkg-info': None}


@pytest.fixture(name='folder')
def _folder(tmp_path):
    return tmp_path / 'cache'


def layers(folder, *args, **more):
    return caisson('layers', *args, '--set', f'packages.cache_dir={folder}', **more)


def imported(folder, tmp_path, tree=None, **more):
    tree = TREE if tree is None else tree
    done = layers(folder, 'import', archive(tmp_path / 'in.tar', described(tree, **more), entries_of(tree)))
    assert done.status == 0, done.err
    return done.out.strip()


def listed(folder):
    return json.loads(layers(folder, 'list', '--json').out)


def visible(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith('.')) if folder.exists() else []


def staged(folder):
    return os.listdir(folder / '.staging')


# ---- commands ----

def test_the_id_is_the_documented_hash():
    assert layer_id(described(TREE)) == GOLDEN


def test_a_layer_goes_out_and_comes_in_elsewhere(folder, tmp_path):
    name = imported(folder, tmp_path)
    assert name == GOLDEN
    assert (folder / name[4:] / 'tree/pkg/__init__.py').read_bytes() == b'print(1)\n'
    row = listed(folder)[0]
    assert (row['id'], row['files'], row['bytes'], row['lock']) == (name, 8, 26, LOCK)
    done = layers(folder, 'export', name, tmp_path / 'out.tar.zst')
    assert done.status == 0, done.err
    assert (tmp_path / 'out.tar.zst').read_bytes()[:4] == b'\x28\xb5\x2f\xfd' and not (tmp_path / 'out.tar.zst.part').exists()
    other = tmp_path / 'other'
    done = layers(other, 'import', tmp_path / 'out.tar.zst')
    assert (done.status, done.out) == (0, name + '\n'), done.err
    assert subprocess.run(['diff', '-r', '--no-dereference', folder / name[4:], other / name[4:]], check=False).returncode == 0
    assert os.readlink(other / name[4:] / 'tree/bin/link') == '../pkg/__init__.py'
    assert layers(other, 'verify').out == f'{name} intact\n'
    # Through pipes, and a second time.
    piped = layers(folder, 'export', name[:10], '-')
    assert piped.status == 0 and layers(other, 'import', '-', stdin=piped.bytes).out == name + '\n'
    assert visible(other) == [name[4:]] and staged(other) == []


def test_a_mounter_with_another_uid_reads_the_layer(folder, tmp_path):
    name = imported(folder, tmp_path)
    for path, mode in (('', 0o755), ('tree', 0o755), ('tree/pkg', 0o755), ('tree/pkg/__init__.py', 0o644), ('tree/bin/run', 0o755), ('meta.json', 0o644)):
        assert (folder / name[4:] / path).stat().st_mode & 0o7777 == mode
    assert folder.stat().st_mode & 0o7777 == 0o755


def test_commands_say_what_is_there(folder, tmp_path):
    assert 'there are no layers' in layers(folder, 'list').err
    name = imported(folder, tmp_path, warnings=['evil\x1b[31m'])
    assert name in layers(folder, 'list').out and 'python 3.11.2' in layers(folder, 'list').out
    shown = layers(folder, 'show', name[4:12])
    assert 'requests-2.31.0-py3-none-any.whl' in shown.out and 'https://pypi.org/simple' in shown.out and '\x1b' not in shown.out
    assert json.loads(layers(folder, 'show', '--json', name).out)['modules'] == ['requests', 'idna']
    other = imported(folder, tmp_path, build='2')
    assert layers(folder, 'show', 'lyr_').status == 64
    for words in (('show', 'lyr_zz'), ('verify', 'lyr_zz'), ('remove', 'lyr_zz'), ('export', 'lyr_zz', tmp_path / 'x')):
        done = layers(folder, *words)
        assert done.status == 64 and 'there is no layer' in done.err
    assert not (tmp_path / 'x').exists() and not (tmp_path / 'x.part').exists()
    assert layers(folder, 'remove', name).status == 0 and visible(folder) == [other[4:]]
    for words in (('prune', '--bytes', 'many'), ('prune', '--age', '1y'), ('import', '/nonexistent'), ('show',), ('import',)):
        assert layers(folder, *words).status == 64


def test_the_folder_follows_from_the_settings(tmp_path):
    path = archive(tmp_path / 'in.tar', described(TREE), entries_of(TREE))
    assert caisson('layers', 'import', path, env={'DEPENDENCY_CACHE_DIR': str(tmp_path / 'older')}).status == 0
    assert visible(tmp_path / 'older') == [GOLDEN[4:]]
    assert caisson('layers', 'import', path, '--set', f'engine.state_dir={tmp_path}/state').status == 0
    assert visible(tmp_path / 'state/layers') == [GOLDEN[4:]]


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root')
def test_root_works_as_the_owner_of_the_folder(folder, tmp_path):
    folder.mkdir()
    os.chown(folder, 12345, 12346)
    for above in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        above.chmod(0o755)
    name = imported(folder, tmp_path)
    for root, folders, files in os.walk(folder):
        for entry in (root, *(os.path.join(root, one) for one in folders + files)):
            assert (os.lstat(entry).st_uid, os.lstat(entry).st_gid) == (12345, 12346), entry
    assert layers(folder, 'export', name, tmp_path / 'out.tar.zst').status == 0 and (tmp_path / 'out.tar.zst').stat().st_uid == 0
    assert layers(folder, 'remove', name).status == 0


# ---- damage ----

def test_a_damaged_layer_is_a_miss_and_can_be_imported_again(folder, tmp_path):
    name = imported(folder, tmp_path)
    (folder / name[4:] / 'meta.json').write_text('{')
    assert 'fault' in listed(folder)[0] and 'damaged' in layers(folder, 'list').out
    assert layers(folder, 'show', name).status == 125
    assert imported(folder, tmp_path) == name and 'fault' not in listed(folder)[0]
    (folder / name[4:] / 'tree/pkg/__init__.py').write_text('print(2)\n')
    done = layers(folder, 'export', name, tmp_path / 'out.tar.zst')
    assert done.status == 64 and 'is damaged' in done.err and visible(folder) == []
    assert imported(folder, tmp_path) == name
    (folder / name[4:] / 'tree/more').touch()
    done = layers(folder, 'verify')
    assert done.status == 1 and 'damaged, removed' in done.out and visible(folder) == []


def test_pruning_is_by_age_and_by_last_use(folder, tmp_path):
    names = [imported(folder, tmp_path, build=str(i), pinned=i == 0) for i in range(4)]
    now = time.time()
    for i, name in enumerate(names):
        os.utime(folder / name[4:] / 'meta.json', (now - 4000 + i * 1000,) * 2)
    assert [row['id'] for row in listed(folder)] == names
    assert layers(folder, 'prune', '--age', '1h').out.startswith('removed 0 layers')
    assert layers(folder, 'prune', '--age', '2500s').out.startswith('removed 1 layers')
    assert [row['id'] for row in listed(folder)] == [names[0], *names[2:]]      # pinned ones do not expire
    assert layers(folder, 'prune', '--bytes', '77').out.startswith('removed 1 layers')
    assert [row['id'] for row in listed(folder)] == names[2:]
    assert layers(folder, 'prune', '--set', 'packages.cache_bytes=26').out.startswith('removed 1 layers')
    assert layers(folder, 'prune', '--set', 'packages.cache_ttl=0').out.startswith('removed 1 layers')
    assert visible(folder) == [] and staged(folder) == []


# ---- hostile archives ----

def entry(name, content=b'', **more):
    return [(member(name, **more), content)]


def special(name, kind):
    return entry(name, type=kind, devmajor=1, devminor=3, mode=0o666)


HOSTILE = {
    'absolute': (entry('/etc/evil'), 'neither'),
    'absolute below the tree': (entry('tree//etc/evil'), 'leads out'),
    'up': (entry('tree/../../evil'), 'leads out'),
    'up at the end': (entry('tree/a/..', type=tarfile.DIRTYPE), 'leads out'),
    'beside the tree': (entry('evil'), 'neither'),
    'looks like the tree': (entry('tree2/evil'), 'neither'),
    'link to a path of the host': (entry('tree/l', type=tarfile.SYMTYPE, linkname='/etc/passwd'), 'leads out'),
    'link up': (entry('tree/l', type=tarfile.SYMTYPE, linkname='../meta.json'), 'leads out'),
    'link by a detour': (entry('tree/s', type=tarfile.SYMTYPE, linkname='.') + entry('tree/l', type=tarfile.SYMTYPE, linkname='s/..'), 'leads out'),
    'file through a link': (entry('tree/l', type=tarfile.SYMTYPE, linkname='/tmp') + entry('tree/l/evil'), 'not a folder'),
    'folder in place of a link': (entry('tree/l', type=tarfile.SYMTYPE, linkname='/tmp') + entry('tree/l', type=tarfile.DIRTYPE), 'not a folder'),
    'tree is a link': (entry('tree', type=tarfile.SYMTYPE, linkname='/tmp'), 'not a folder'),
    'hard link': (entry('tree/h', type=tarfile.LNKTYPE, linkname='tree/pkg/__init__.py'), 'hard link'),
    'hard link to the host': (entry('tree/h', type=tarfile.LNKTYPE, linkname='/etc/passwd'), 'hard link'),
    'character device': (special('tree/d', tarfile.CHRTYPE), 'device'),
    'block device': (special('tree/d', tarfile.BLKTYPE), 'device'),
    'pipe': (special('tree/d', tarfile.FIFOTYPE), 'device'),
    'a file twice': (entry('tree/pkg/__init__.py', b'evil'), 'twice'),
    'a link twice': (entry('tree/bin/link', type=tarfile.SYMTYPE, linkname='run'), 'twice'),
    'a second description': (entry('meta.json', b'{}'), 'twice'),
    'a file as a folder': (entry('tree/pkg/__init__.py/evil'), 'not a folder'),
    'control character': (entry('tree/a\x1b[31m'), 'control character'),
    'newline': (entry('tree/a\nb'), 'control character'),
    'deep': (entry('tree/' + 'd/' * 70 + 'f'), '64 folders'),
    'long': (entry('tree/' + ('n' * 200 + '/') * 6 + 'f'), '1024 bytes'),
    'one file more': (entry('tree/more'), 'have the hash'),
    'set-user-id': (entry('tree/suid', mode=0o4755), 'have the hash'),
}


@pytest.mark.parametrize('case', HOSTILE)
def test_hostile_members_are_refused_and_leave_nothing(folder, tmp_path, case):
    extra, words = HOSTILE[case]
    done = layers(folder, 'import', archive(tmp_path / 'in.tar', described(TREE), [*entries_of(TREE), *extra]))
    assert done.status == 64 and words in done.err, done.err
    assert '\x1b' not in done.err and done.err.count('\n') == 1
    assert visible(folder) == [] and staged(folder) == []


def test_set_user_id_is_dropped(folder, tmp_path):
    tree = {'suid': ('x', b'')}
    path = archive(tmp_path / 'in.tar', described(tree), entry('tree/suid', mode=0o6777))
    name = layers(folder, 'import', path).out.strip()
    assert (folder / name[4:] / 'tree/suid').stat().st_mode & 0o7777 == 0o755


def test_sizes_and_counts_are_bounded(folder, tmp_path):
    path = archive(tmp_path / 'in.tar', described(TREE), entries_of(TREE))
    for setting, words in (('packages.max_files=7', 'more than 7 files'), ('packages.max_bytes=4096', None)):
        done = layers(folder, 'import', path, '--set', setting)
        assert (done.status, words is None or words in done.err) == (64 if words else 0, True)
    # A header that claims a terabyte.
    claim = member('tree/giant', size=1 << 40).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / 'claim.tar').write_bytes(claim + bytes(10240))
    done = layers(folder, 'import', tmp_path / 'claim.tar')
    assert done.status == 64 and 'packages.max_bytes' in done.err
    many = archive(tmp_path / 'many.tar', described({}), [one for i in range(300) for one in entry(f'tree/{i}/' + 'd/' * 60 + 'f')])
    done = layers(folder, 'import', many, '--set', 'packages.max_files=1000')
    assert done.status == 64 and 'more than 1000 files' in done.err
    big = archive(tmp_path / 'big.tar', b' ' * (9 << 20), [])
    assert 'has more than' in layers(folder, 'import', big).err
    assert staged(folder) == []


def test_a_bomb_is_bounded(folder, tmp_path):
    """A small archive that becomes large: what export makes of zeros."""
    name = imported(tmp_path / 'other', tmp_path, {'zeros': bytes(64 << 20)})
    assert layers(tmp_path / 'other', 'export', name, tmp_path / 'in.tar.zst').status == 0
    assert (tmp_path / 'in.tar.zst').stat().st_size < 100000
    done = layers(folder, 'import', tmp_path / 'in.tar.zst', '--set', 'packages.max_bytes=1MiB')
    assert done.status == 64 and 'packages.max_bytes' in done.err and staged(folder) == []


@pytest.mark.parametrize('change, words', [
    ({'id': 'lyr_' + '0' * 32}, 'its fields make'), ({'runtime': '3.12'}, 'its fields make'), ({'lock': []}, 'its fields make'),
    ({'tree_sha256': '0' * 64}, 'have the hash'), ({'tree_sha256': ''}, 'not a SHA-256'), ({'schema': 2}, 'schema'), ({'pinned': 'yes'}, 'pinned'),
    ({'files': -1}, 'files'), ({'warnings': ['x'] * 65}, 'warnings'), ({'modules': [1]}, 'modules'), ({'lock': [1]}, 'name'),
    ({'id': '\x1b[31m'}, 'its fields make'), ({'language': 'x' * 5000}, 'language'), ({'domain': None}, 'domain')])
def test_false_descriptions_are_refused(folder, tmp_path, change, words):
    done = layers(folder, 'import', archive(tmp_path / 'in.tar', {**described(TREE), **change}, entries_of(TREE)))
    assert done.status == 64 and words in done.err and '\x1b' not in done.err, done.err
    assert visible(folder) == [] and staged(folder) == []


@pytest.mark.parametrize('case', ['empty', 'cut', 'list', 'duplicate', 'deep', 'no UTF-8', 'many'])
def test_broken_descriptions_are_refused(folder, tmp_path, case):
    text = {'empty': b'', 'cut': b'{', 'list': b'[]', 'duplicate': b'{"a":1,"a":1}', 'deep': b'[' * 100000, 'no UTF-8': b'"\xff"',
            'many': b'[' + b'1,' * 300000 + b'1]'}[case]
    done = layers(folder, 'import', archive(tmp_path / 'in.tar', text, entries_of(TREE)))
    assert done.status == 64 and 'meta.json' in done.err and staged(folder) == []


def test_what_is_no_archive_is_refused(folder, tmp_path):
    good = archive(tmp_path / 'in.tar', described(TREE), entries_of(TREE)).read_bytes()
    for text in (b'', b'x' * 10000, good[:1000], good[:1600], b'\x28\xb5\x2f\xfd' + bytes(100), bytes(10240)):
        (tmp_path / 'bad').write_bytes(text)
        done = layers(folder, 'import', tmp_path / 'bad')
        assert done.status == 64 and done.out == '', text[:20]
    assert 'meta.json' in layers(folder, 'import', archive(tmp_path / 'none.tar', None, entries_of(TREE))).err
    assert visible(folder) == [] and staged(folder) == []


@pytest.mark.parametrize('form', [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_other_programs_are_read(folder, tmp_path, form):
    tree = {'pkg': None, 'pkg/a.py': b'1', 'pkg/' + 'n' * 90: b'2'}
    path = archive(tmp_path / 'in.tar', described(tree), [(member('./' + info.name, type=info.type, mode=info.mode), content)
                                                          for info, content in [(member('', type=tarfile.DIRTYPE, mode=0o755), b''), *entries_of(tree)]], form)
    done = layers(folder, 'import', path)
    assert done.status == 0, done.err


# ---- several processes ----

def start(folder, path):
    return subprocess.Popen([CAISSON, 'layers', 'import', str(path), '--set', f'packages.cache_dir={folder}'], env=environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_imports_at_once_publish_whole_layers(folder, tmp_path):
    paths = [archive(tmp_path / f'{i}.tar', described(TREE, build=str(i)), entries_of(TREE)) for i in range(4)]
    running = [start(folder, path) for path in paths * 4]
    for one in running:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0 and out.startswith('lyr_'), err
    assert len(visible(folder)) == 4 and staged(folder) == []
    assert layers(folder, 'verify').out.count('intact') == 4


def test_a_kill_at_any_moment_leaves_whole_layers_only(folder, tmp_path):
    tree = {f'f{i}': os.urandom(2000) for i in range(400)}
    path = archive(tmp_path / 'in.tar', described(tree), entries_of(tree))
    began = time.monotonic()
    with start(folder, path) as whole:
        assert whole.wait(timeout=120) == 0
    took = time.monotonic() - began
    name = visible(folder)[0]
    published = 0
    for i in range(50):
        shutil.rmtree(folder / name, ignore_errors=True)
        with start(folder, path) as killed:
            time.sleep(random.random() * 1.2 * took if i else 0)
            killed.send_signal(signal.SIGKILL)
        if visible(folder):
            published += 1
            assert layers(folder, 'verify', name).status == 0
    done = layers(folder, 'import', path)
    assert (done.status, done.out) == (0, f'lyr_{name}\n')
    assert visible(folder) == [name] and staged(folder) == [] and layers(folder, 'verify').status == 0
    print(f'{published} of 50 were published before the kill')
