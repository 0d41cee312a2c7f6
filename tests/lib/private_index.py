"""A package index on a loopback port: PEP 503 and 691 for Python, package documents for npm.

    with PrivateIndex() as index:
        index.add_wheel('alpha', '1.0', {'alpha.py': 'VALUE = 1\n'}, requires=['beta>=2'])
        index.add_npm('left', '1.0.0', {'index.js': 'module.exports = 1\n'})
        ... index.url, index.npm_url

Options are keywords of PrivateIndex, or of index.behave(NAME, ...) for one project.
"""

import base64
import contextlib
import hashlib
import html
import io
import json
import os
import pathlib
import ssl
import stat
import subprocess
import sysconfig
import tarfile
import tempfile
import threading
import time
import urllib.parse
import zipfile
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

JSON_TYPE = 'application/vnd.pypi.simple.v1+json'
HTML_TYPE = 'text/html; charset=utf-8'
DAY = 86400
OLD = 30 * DAY
CHUNK = 1 << 20


@dataclass(frozen=True)
class Options:
    """How the index behaves, and in which way it is wrong."""
    html_only: bool = False
    upload_times: bool = True
    hashes: bool = True
    metadata: bool = True           # PEP 658: the metadata of wheels beside the wheels
    wrong_hash: bool = False        # files have other bytes than the documents promise
    wrong_metadata: bool = False
    status: int = 200               # of documents
    file_status: int = 200
    delay: float = 0                # seconds before a document
    redirect: str = ''              # documents redirect to this address; {path} is the path
    file_redirect: str = ''
    file_base: str = ''             # documents name files at this address
    document_name: str = ''         # the name that documents have, in place of the project's
    content_type: str = ''
    body: bytes = b''               # in place of the document
    token: str = ''                 # Authorization header that requests need


@dataclass
class File:
    name: str
    version: str
    filename: str
    content: bytes
    uploaded: datetime
    yanked: bool = False
    requires_python: str = ''
    metadata: bytes = b''
    document: dict = field(default_factory=dict)    # npm: members of the version


def canonical(name):
    return '-'.join(part for part in name.lower().replace('_', '-').replace('.', '-').split('-') if part)


def time_text(moment):
    return moment.strftime('%Y-%m-%dT%H:%M:%S.%fZ')


def before(seconds):
    return datetime.now(timezone.utc) - timedelta(seconds=seconds)


# ---- wheels ----

def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()
    return f'{name},sha256={digest},{len(content)}\n'


def make_wheel(name, version, files, *, requires=(), requires_python='', scripts=None, links=None, giant=None, tag='py3-none-any'):
    """(bytes of the wheel, its metadata).  links: {path: target} of symbolic links; giant: {path: bytes of zeros}."""
    info = f'{name.replace("-", "_")}-{version}.dist-info'
    metadata = f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
    metadata += f'Requires-Python: {requires_python}\n' if requires_python else ''
    metadata += ''.join(f'Requires-Dist: {requirement}\n' for requirement in requires)
    content = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    content[f'{info}/METADATA'] = metadata.encode()
    content[f'{info}/WHEEL'] = f'Wheel-Version: 1.0\nGenerator: private_index\nRoot-Is-Purelib: true\nTag: {tag}\n'.encode()
    if scripts:
        lines = ''.join(f'{command} = {target}\n' for command, target in scripts.items())
        content[f'{info}/entry_points.txt'] = f'[console_scripts]\n{lines}'.encode()
    record = ''.join(record_line(path, data) for path, data in content.items())
    record += ''.join(f'{path},,\n' for path in [*(links or {}), *(giant or {}), f'{info}/RECORD'])
    content[f'{info}/RECORD'] = record.encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w', zipfile.ZIP_DEFLATED) as archive:
        for path, data in content.items():
            archive.writestr(path, data)
        for path, target in (links or {}).items():
            link = zipfile.ZipInfo(path)
            link.create_system = 3
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, target)
        for path, size in (giant or {}).items():
            with archive.open(path, 'w', force_zip64=True) as member:
                for begin in range(0, size, CHUNK):
                    member.write(bytes(min(CHUNK, size - begin)))
    return made.getvalue(), metadata.encode()


EXTENSION = '''#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { (void)self, (void)none; return PyLong_FromLong(42); }
static PyMethodDef methods[] = { { "answer", answer, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "NAME", NULL, -1, methods, NULL, NULL, NULL, NULL };
PyMODINIT_FUNC PyInit_NAME(void) { return PyModule_Create(&module); }
'''


def make_extension(name):
    """{path: bytes} of a C extension with one function answer(), and the tag of its wheel."""
    python = sysconfig.get_config_var('py_version_nodot')
    with tempfile.TemporaryDirectory() as folder:
        source, made = pathlib.Path(folder, f'{name}.c'), pathlib.Path(folder, f'{name}.so')
        source.write_text(EXTENSION.replace('NAME', name))
        subprocess.run(['gcc', '-shared', '-fPIC', '-I', sysconfig.get_paths()['include'], '-o', made, source], check=True)
        content = made.read_bytes()
    platform = sysconfig.get_platform().replace('-', '_').replace('.', '_')
    return {f'{name}{sysconfig.get_config_var("EXT_SUFFIX")}': content}, f'cp{python}-cp{python}-{platform}'


# ---- npm ----

def make_tarball(package, files, *, links=None, hard_links=None, outside=None, giant=None, bomb=None):
    """links, hard_links: {path: target}; outside: {name of a member, as it is: content}; giant: {path: bytes}; bomb: {path: bytes of zeros}."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w:gz') as archive:
        for kind, all_links in ((tarfile.SYMTYPE, links), (tarfile.LNKTYPE, hard_links)):
            for path, target in (all_links or {}).items():
                member = tarfile.TarInfo(f'package/{path}')
                member.type, member.linkname = kind, target
                archive.addfile(member)
        for name, content in (outside or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for content, sizes in ((os.urandom(1000), giant), (bytes(1000), bomb)):
            for path, size in (sizes or {}).items():
                member = tarfile.TarInfo(f'package/{path}')
                member.size = size
                archive.addfile(member, io.BytesIO(content * (size // 1000 + 1)))
        for path, text in {'package.json': json.dumps(package), **files}.items():
            content = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(f'package/{path}')
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


# ---- the server ----

def make_certificate(folder):
    """(certificate, key) of 127.0.0.1, self-signed: paths."""
    paths = folder / 'certificate.pem', folder / 'key.pem'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=private index',
                    '-addext', 'subjectAltName=IP:127.0.0.1', '-out', paths[0], '-keyout', paths[1]], check=True, capture_output=True)
    return paths


class PrivateIndex:
    """certificate: a pair of make_certificate(), for https."""

    def __init__(self, certificate=None, **options):
        self.certificate = certificate
        self.options = Options(**options)
        self.own_options = {}
        self.projects = {}          # of Python: {canonical name: [File]}
        self.packages = {}          # of npm: {name: [File]}
        self.tags = {}              # of npm: {name: {tag: version}}
        self.requests = []          # (path, headers)
        self.server = None

    def __enter__(self):
        index = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def handle(self):
                with contextlib.suppress(OSError):      # a client that has gone, or does not like the certificate
                    super().handle()

            def do_GET(self):
                index.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def base(self):
        return f'http{"s" if self.certificate else ""}://127.0.0.1:{self.server.server_port}'

    @property
    def url(self):
        return f'{self.base}/simple'

    @property
    def npm_url(self):
        return f'{self.base}/npm'

    def behave(self, name, **options):
        """Options of one project."""
        self.own_options[name] = replace(self.options_of(name), **options)

    def options_of(self, name):
        return self.own_options.get(name, self.options)

    def paths(self):
        return [path for path, _ in self.requests]

    # What there is.

    def add_file(self, name, version, filename, content, *, age=OLD, yanked=False, requires_python='', metadata=b''):
        made = File(name, version, filename, content, before(age), yanked, requires_python, metadata)
        self.projects.setdefault(canonical(name), []).append(made)
        return made

    def add_wheel(self, name, version, files=None, *, filename='', tag='py3-none-any', age=OLD, yanked=False, requires_python='', **more):
        """more: see make_wheel()."""
        files = {f'{name.replace("-", "_")}.py': f'VERSION = {version!r}\n'} if files is None else files
        content, metadata = make_wheel(name, version, files, requires_python=requires_python, tag=tag, **more)
        filename = filename or f'{name.replace("-", "_")}-{version}-{tag}.whl'
        return self.add_file(name, version, filename, content, age=age, yanked=yanked, requires_python=requires_python, metadata=metadata)

    def add_extension(self, name, version, **more):
        """A wheel with a C extension."""
        files, tag = make_extension(name)
        return self.add_wheel(name, version, files, tag=tag, **more)

    def add_npm(self, name, version, files=None, *, age=OLD, dependencies=None, scripts=None, latest=True, hostile=None, **more):
        """more: members of package.json; hostile: keywords of make_tarball()."""
        package = {'name': name, 'version': version, 'main': 'index.js', 'dependencies': dependencies or {}, 'scripts': scripts or {}, **more}
        content = make_tarball(package, {'index.js': f'module.exports = {version!r}\n'} if files is None else files, **hostile or {})
        made = File(name, version, f'{name.split("/")[-1]}-{version}.tgz', content, before(age), document=package)
        self.packages.setdefault(name, []).append(made)
        if latest:
            self.tags.setdefault(name, {})['latest'] = version
        return made

    # What is sent.

    def answer(self, handler):
        path = urllib.parse.unquote(handler.path)
        self.requests.append((handler.path, dict(handler.headers)))
        parts = path.strip('/').split('/')
        if parts[0] == 'simple' and len(parts) == 2:
            self.send_document(handler, parts[1], self.projects, lambda name: self.simple(name, handler))
        elif parts[0] == 'npm':
            self.send_document(handler, '/'.join(parts[1:]), self.packages, self.npm)
        elif parts[0] in ('files', 'tarballs') and len(parts) > 2:
            self.send_file(handler, parts[0], '/'.join(parts[1:-1]), parts[-1])
        else:
            self.send(handler, 404, b'none', 'text/plain')

    def send_document(self, handler, name, projects, make):
        options = self.options_of(name)
        time.sleep(options.delay)
        if options.token and handler.headers.get('Authorization') != options.token:
            self.send(handler, 401, b'who are you', 'text/plain')
        elif options.redirect:
            self.send(handler, 302, b'elsewhere', 'text/plain', Location=options.redirect.format(path=handler.path))
        elif options.status != 200:
            self.send(handler, options.status, b'trouble', 'text/plain')
        elif name not in projects:
            self.send(handler, 404, b'none', 'text/plain')
        else:
            content, content_type = make(name)
            self.send(handler, 200, options.body or content, options.content_type or content_type)

    def send_file(self, handler, kind, name, filename):
        options = self.options_of(name)
        projects = self.projects if kind == 'files' else self.packages
        is_metadata = filename.endswith('.metadata')
        made = next((one for one in projects.get(name, []) if one.filename == filename.removesuffix('.metadata')), None)
        if options.token and handler.headers.get('Authorization') != options.token:
            self.send(handler, 401, b'who are you', 'text/plain')
        elif options.file_redirect:
            self.send(handler, 302, b'elsewhere', 'text/plain', Location=options.file_redirect.format(path=handler.path))
        elif options.file_status != 200 or not made:
            self.send(handler, options.file_status if made else 404, b'trouble', 'text/plain')
        elif is_metadata:
            self.send(handler, 200, made.metadata + (b'Evil: yes\n' if options.wrong_metadata else b''), 'text/plain')
        else:
            self.send(handler, 200, made.content + (b'evil' if options.wrong_hash else b''), 'application/octet-stream')

    def send(self, handler, status, content, content_type, **headers):
        try:
            handler.send_response(status)
            handler.send_header('Content-Type', content_type)
            handler.send_header('Content-Length', str(len(content)))
            for header, value in headers.items():
                handler.send_header(header, value)
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:
            handler.close_connection = True     # the client has given up

    def simple(self, name, handler):
        options = self.options_of(name)
        use_html = options.html_only or JSON_TYPE not in handler.headers.get('Accept', '')
        return (self.simple_html(name), HTML_TYPE) if use_html else (self.simple_json(name), JSON_TYPE)

    def simple_json(self, name):
        options = self.options_of(name)
        listed = []
        for made in self.projects[name]:
            item = {'filename': made.filename, 'url': f'{options.file_base or self.base}/files/{name}/{urllib.parse.quote(made.filename)}', 'hashes': {}}
            if options.hashes:
                item['hashes']['sha256'] = hashlib.sha256(made.content).hexdigest()
            if options.upload_times:
                item['upload-time'] = time_text(made.uploaded)
            if made.yanked:
                item['yanked'] = 'broken'
            if made.requires_python:
                item['requires-python'] = made.requires_python
            if options.metadata and made.metadata:
                item['core-metadata'] = {'sha256': hashlib.sha256(made.metadata).hexdigest()}
            listed.append(item | {'size': len(made.content)})
        return json.dumps({'meta': {'api-version': '1.1'}, 'name': options.document_name or name, 'files': listed}).encode()

    def simple_html(self, name):
        options = self.options_of(name)
        lines = []
        for made in self.projects[name]:
            fragment = f'#sha256={hashlib.sha256(made.content).hexdigest()}' if options.hashes else ''
            address = f'{options.file_base or "../.."}/files/{name}/{urllib.parse.quote(made.filename)}{fragment}'
            more = ' data-yanked="broken"' if made.yanked else ''
            more += f' data-requires-python="{html.escape(made.requires_python)}"' if made.requires_python else ''
            if options.metadata and made.metadata:
                more += f' data-core-metadata="sha256={hashlib.sha256(made.metadata).hexdigest()}"'
            lines.append(f'<a href="{html.escape(address)}"{more}>{html.escape(made.filename)}</a><br/>\n')
        return f'<!DOCTYPE html>\n<html><body>\n{"".join(lines)}</body></html>\n'.encode()

    def npm(self, name):
        options = self.options_of(name)
        versions, times = {}, {'created': time_text(before(OLD)), 'modified': time_text(before(0))}
        for made in self.packages[name]:
            dist = {'tarball': f'{options.file_base or self.base}/tarballs/{name}/{made.filename}', 'shasum': hashlib.sha1(made.content).hexdigest()}
            if options.hashes:
                dist['integrity'] = f'sha512-{base64.b64encode(hashlib.sha512(made.content).digest()).decode()}'
            versions[made.version] = {**made.document, 'dist': dist}
            times[made.version] = time_text(made.uploaded)
        document = {'name': options.document_name or name, 'dist-tags': self.tags.get(name, {}), 'versions': versions}
        if options.upload_times:
            document['time'] = times
        return json.dumps(document).encode(), 'application/json'
