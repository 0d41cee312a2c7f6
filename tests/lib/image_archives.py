"""Archives of images: tiny root file systems from the host's own programs, docker save output and OCI layouts."""

import functools
import glob
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sysconfig
import tarfile

LEFT_OUT = {'test', 'idlelib', 'tkinter', '__pycache__', 'lib2to3', 'ensurepip', 'pydoc_data', 'turtledemo'}
PYTHON = os.path.realpath('/usr/bin/python3')


def member(name, content=None, **more):
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    for key, value in more.items():
        setattr(info, key, value)
    if content is not None:
        info.size = len(content)
    return info, content


def folder(name, **more):
    return member(name, type=tarfile.DIRTYPE, **{'mode': 0o755, **more})


def link(name, target):
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def hard(name, target):
    return member(name, type=tarfile.LNKTYPE, linkname=target)


def tar(members):
    """The bytes of a tar file."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode='w', format=tarfile.PAX_FORMAT) as file:
        for info, content in members:
            file.addfile(info, None if content is None else io.BytesIO(content))
    return raw.getvalue()


def of_host(path, name=None):
    with open(path, 'rb') as file:
        content = file.read()
    return member((name or path).lstrip('/'), content, mode=os.stat(path).st_mode & 0o777, mtime=int(os.stat(path).st_mtime))


def libraries(programs):
    found = set()
    for program in programs:
        text = subprocess.run(['ldd', program], capture_output=True, text=True, check=False).stdout
        found.update(re.findall(r'(/\S+) \(0x', text))
    return sorted(found)


def merged(path):
    return path if path.startswith('/usr/') else '/usr' + path


def programs_of(*programs, modules=()):
    """Programs of the host with what they and modules link, in a tree with a merged /usr."""
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        yield link(name, f'usr/{name}')
    for program in programs:
        yield of_host(program, merged(program))
    for library in libraries([*programs, *modules]):
        yield of_host(library, merged(library))


@functools.lru_cache(maxsize=None)
def shell_root():
    """Bash and a few tools."""
    return [*programs_of('/usr/bin/bash', '/usr/bin/cat', '/usr/bin/ls', '/usr/bin/id', '/usr/bin/touch'),
            member('etc/marker', b'in the image\n')]


@functools.lru_cache(maxsize=None)
def python_root():
    """Bash, Python and its library."""
    library = sysconfig.get_path('stdlib')
    loaded = glob.glob(f'{library}/lib-dynload/*.so')
    found = [*programs_of('/usr/bin/bash', '/usr/bin/cat', '/usr/bin/ls', '/usr/bin/id', '/usr/bin/touch', PYTHON, modules=loaded),
             link('usr/bin/python3', os.path.basename(PYTHON)), member('etc/marker', b'in the image\n')]
    for root, folders, files in os.walk(library):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.startswith('config-')]
        found += [of_host(path) for path in (os.path.join(root, name) for name in files) if os.path.isfile(path)]
    return found


def node_root(files=None):
    """Bash, Node and more files, {path: text}."""
    return [*programs_of('/usr/bin/bash', '/usr/bin/cat', os.path.realpath('/usr/bin/node')), member('etc/marker', b'in the image\n'),
            *(member(path, text.encode()) for path, text in (files or {}).items())]


def write(path, members):
    path.write_bytes(members if isinstance(members, bytes) else tar(members))
    return path


# ---- archives of layers ----

def sha256(data):
    return hashlib.sha256(data).hexdigest()


def config_of(layers):
    return json.dumps({'architecture': 'amd64', 'os': 'linux', 'rootfs': {'type': 'layers', 'diff_ids': [f'sha256:{sha256(layer)}' for layer in layers]}}).encode()


def docker_save(layers, diff_ids=None, **more):
    """As `docker save` of before 2024 writes it: uncompressed layers, in folders of their own, before the manifest."""
    config = diff_ids or config_of(layers)
    name = f'{sha256(config)}.json'
    paths = [f'{index}{sha256(layer)[:8]}/layer.tar' for index, layer in enumerate(layers)]
    manifest = [{'Config': name, 'RepoTags': ['test:latest'], 'Layers': paths, **more}]
    return tar([*(member(path, layer) for path, layer in zip(paths, layers)), member(name, config),
                member('manifest.json', json.dumps(manifest).encode())])


def compressed(layer, how):
    if how == 'gzip':
        return gzip.compress(layer), '+gzip'
    if how == 'zstd':
        return subprocess.run(['zstd', '-q', '-c'], input=layer, capture_output=True, check=True).stdout, '+zstd'
    return layer, ''


def oci_files(layers, how='gzip', spoil=None, nested=False):
    """{path: bytes} of an OCI layout."""
    blobs = {}

    def blob(data, kind, **more):
        blobs[f'blobs/sha256/{sha256(data)}'] = data
        return {'mediaType': kind, 'digest': f'sha256:{sha256(data)}', 'size': len(data), **more}

    rows = []
    for layer in layers:
        data, suffix = compressed(layer, how)
        rows.append(blob(data, f'application/vnd.oci.image.layer.v1.tar{suffix}'))
    config = blob(config_of(layers), 'application/vnd.oci.image.config.v1+json')
    manifest = blob(json.dumps({'schemaVersion': 2, 'config': config, 'layers': rows}).encode(), 'application/vnd.oci.image.manifest.v1+json',
                    platform={'os': 'linux', 'architecture': {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(os.uname().machine, os.uname().machine)})
    top = [manifest]
    if nested:
        other = {**manifest, 'platform': {'os': 'linux', 'architecture': 's390x'}}
        top = [blob(json.dumps({'schemaVersion': 2, 'manifests': [other, manifest]}).encode(), 'application/vnd.oci.image.index.v1+json')]
    if spoil:
        spoil(blobs, rows, config, manifest)
    return {'oci-layout': b'{"imageLayoutVersion": "1.0.0"}', 'index.json': json.dumps({'schemaVersion': 2, 'manifests': top}).encode(), **blobs}


def oci(layers, **more):
    return tar(member(path, data) for path, data in oci_files(layers, **more).items())
