"""Archives of layers, as caisson layers export writes them, and their ids and hashes computed a second time."""

import hashlib
import io
import json
import struct
import tarfile

KEY = ('domain', 'language', 'runtime', 'arch', 'libc', 'image', 'index', 'build')
LOCK = [
    {'name': 'requests', 'version': '2.31.0', 'file': 'requests-2.31.0-py3-none-any.whl',
     'sha256': '58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f', 'upload_time': '2023-05-22T15:12:42Z'},
    {'name': 'idna', 'version': '3.4', 'file': 'idna-3.4-py3-none-any.whl',
     'sha256': '90b77e79eaa3eba6de819a0c442c0b4ceefc341a7a2ab77d7562bf49f425c5c2', 'upload_time': ''}]


def field(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack('>Q', len(data)) + data


def layer_id(meta):
    """As docs/design/storage.md: length-prefixed fields, then the lock by name, version, file and hash."""
    rows = sorted([p['name'], p['version'], p['file'], p.get('sha256') or p['integrity']] for p in meta['lock'])
    data = b''.join(map(field, ['caisson layer 1', *(meta[name] for name in KEY), *(text for row in rows for text in row)]))
    return 'lyr_' + hashlib.sha256(data).hexdigest()[:32]


def tree_hash(tree):
    """tree: path to bytes (a file), ('x', bytes) (executable), ('l', target) or None (a folder), with all folders."""
    digest = hashlib.sha256(b'caisson tree 1')
    for path in sorted(tree, key=lambda path: [part.encode() for part in path.split('/')]):
        kind, content = tree[path] if isinstance(tree[path], tuple) else ('d', None) if tree[path] is None else ('f', tree[path])
        digest.update(kind.encode() + field(path))
        if content is not None:
            digest.update(field(content))
    return digest.hexdigest()


def described(tree, **more):
    meta = {'schema': 1, 'domain': '', 'language': 'python', 'runtime': '3.11.2', 'arch': 'x86_64', 'libc': 'glibc 2.36', 'image': '',
            'index': 'https://pypi.org/simple', 'build': '1', 'pinned': False, 'created_ms': 1700000000000, 'lock': LOCK,
            'modules': ['requests', 'idna'], 'warnings': [], 'bytes': 1, 'files': 1, 'tree_sha256': tree_hash(tree), **more}
    return {'id': layer_id(meta), **meta}


def member(name, **more):
    info = tarfile.TarInfo(name)
    for key, value in more.items():
        setattr(info, key, value)
    return info


def entries_of(tree):
    for path, what in tree.items():
        kind, content = what if isinstance(what, tuple) else ('d', None) if what is None else ('f', what)
        if kind == 'd':
            yield member('tree/' + path, type=tarfile.DIRTYPE, mode=0o755), b''
        elif kind == 'l':
            yield member('tree/' + path, type=tarfile.SYMTYPE, linkname=content), b''
        else:
            yield member('tree/' + path, mode=0o755 if kind == 'x' else 0o644), content


def archive(path, meta, entries, form=tarfile.PAX_FORMAT):
    with tarfile.open(path, 'w', format=form) as tar:
        for info, content in [(member('meta.json'), json.dumps(meta).encode() if isinstance(meta, dict) else meta)] * (meta is not None) + list(entries):
            if info.type == tarfile.REGTYPE:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path
