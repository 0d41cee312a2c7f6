"""Packages of Debian: a root file system with the host's own apt and dpkg, packages, and a mirror on loopback."""

import functools
import glob
import gzip
import hashlib
import http.server
import os
import subprocess
import tempfile
import threading
from pathlib import Path

from image_archives import folder, link, member, merged, of_host, python_root, libraries

PROGRAMS = ('/usr/bin/apt', '/usr/bin/apt-get', '/usr/bin/dpkg', '/usr/bin/dpkg-deb', '/usr/bin/dpkg-query', '/usr/bin/dpkg-split', '/usr/bin/dpkg-trigger',
            '/usr/bin/tar', '/usr/bin/diff', '/usr/bin/gzip', '/usr/bin/rm', '/usr/bin/dash', '/usr/bin/find', '/usr/bin/stat', '/usr/bin/xargs', '/usr/bin/cp', '/usr/bin/mkdir',
            '/usr/bin/chmod', '/usr/bin/chown', '/usr/bin/ln', '/usr/bin/mv', '/usr/bin/mount', '/usr/bin/head', '/usr/bin/wc', '/usr/bin/env', '/usr/sbin/ldconfig', '/usr/sbin/start-stop-daemon')
FOLDERS = ('etc/apt/apt.conf.d', 'etc/apt/preferences.d', 'etc/apt/sources.list.d', 'etc/apt/trusted.gpg.d', 'etc/dpkg/dpkg.cfg.d', 'etc/profile.d', 'var/lib/apt/lists/partial',
           'var/cache/apt/archives/partial', 'var/lib/dpkg/info', 'var/lib/dpkg/updates', 'var/lib/dpkg/triggers', 'var/log/apt', 'root', 'srv')
ACCOUNTS = b'root:x:0:0:root:/root:/bin/bash\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nnode:x:1000:1000::/home/node:/bin/sh\n'
GROUPS = b'root:x:0:\nmail:x:8:\nwww-data:x:33:\nnogroup:x:65534:\nnode:x:1000:\n'


@functools.lru_cache(maxsize=None)
def debian_root():
    """Bash, Python, apt and dpkg, and a package database that is empty."""
    shared = [path for pattern in ('/usr/lib/*/libapt-private.so.*', '/usr/lib/*/libnss_files.so.*') for path in glob.glob(pattern)]
    methods = [path for path in glob.glob('/usr/lib/apt/methods/*') if os.path.isfile(path) and not os.path.islink(path)]
    tables = glob.glob('/usr/share/dpkg/*table')
    found = {info.name: (info, content) for info, content in python_root()}
    for path in (*PROGRAMS, *libraries([*PROGRAMS, *methods, *shared]), *shared, *methods, *tables):
        name = merged(path).lstrip('/')
        found[name] = of_host(path, name)
    found['usr/bin/sh'] = link('usr/bin/sh', 'dash')
    return [*(folder(path) for path in FOLDERS), *found.values(), member('var/lib/dpkg/status', b''), member('var/lib/dpkg/available', b''),
            member('var/lib/dpkg/lock', b'', mode=0o640), member('etc/profile', b'PATH=/usr/local/bin:/usr/bin:/bin\nfor i in /etc/profile.d/*.sh; do . $i; done\n'),
            member('etc/secret', b'of the image\n', mode=0o600), member('etc/passwd', ACCOUNTS), member('etc/group', GROUPS)]


def make_package(path, name, files, version='1.0', postinst='', depends=''):
    """A .deb whose files belong to root."""
    with tempfile.TemporaryDirectory(prefix='package-') as made:
        tree = Path(made, 'tree')
        for file, content in {**files, **({'DEBIAN/postinst': postinst} if postinst else {}),
                              'DEBIAN/control': f'Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Test <test@example.org>\n'
                                                f'{"Depends: " + depends if depends else "Priority: optional"}\nDescription: a package of a test\n'}.items():
            place = tree / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
            place.chmod(0o755 if '/bin/' in file or file.endswith('postinst') else 0o644)
        for place in [tree, *tree.rglob('*')]:
            if place.is_dir():
                place.chmod(0o755)
        subprocess.run(['dpkg-deb', '-Zgzip', '--root-owner-group', '--build', tree, path], check=True, stdout=subprocess.DEVNULL)


class Mirror:
    """A flat repository, `deb [trusted=yes] http://HOST:PORT ./`, on 127.0.0.1."""

    def __init__(self, path):
        self.folder, self.asked = path, []
        path.mkdir()
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                asked.append(self.path)

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Handler, directory=str(path)))
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name, files, version='1.0', **more):
        file = self.folder / f'{name}_{version}_all.deb'
        make_package(file, name, files, version, **more)
        control = subprocess.run(['dpkg-deb', '--field', file], check=True, capture_output=True, text=True).stdout
        data = file.read_bytes()
        with gzip.open(self.folder / 'Packages.gz', 'at') as index:
            index.write(f'{control}Filename: ./{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n')
        return file

    def close(self):
        self.server.shutdown()
        self.server.server_close()
