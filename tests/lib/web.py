"""What the tests of the HTTP interface share: a daemon that has one, and requests with Python's standard library alone."""

import copy
import json
import re
import socket

from daemon import Daemon, until
from described import Connection, Description

KEYLESS = ['--set', 'engine.http_keyless=true']


class KeyConnection(Connection):
    """Sends a key with each request that brings no credentials of its own."""

    def __init__(self, port, timeout, key, description):
        super().__init__('127.0.0.1', port, timeout=timeout)
        self.description, self.key, self.has_credentials = description, key, False

    def putrequest(self, *words, **options):
        self.has_credentials = False
        super().putrequest(*words, **options)

    def putheader(self, header, *values):
        self.has_credentials = self.has_credentials or header.lower() in ('authorization', 'x-api-key')
        super().putheader(header, *values)

    def endheaders(self, *words, **options):
        if self.key and not self.has_credentials:
            self.putheader('Authorization', f'Bearer {self.key}')
        super().endheaders(*words, **options)


class Web:
    """A daemon with an HTTP interface, and connections to it.  All that is answered has to be as /openapi.json says."""

    description = None             # the same of all daemons of one build

    def __init__(self, folder, *options, keyless=True, command=(), **more):
        self.folder, self.key = folder, None
        self.state = ['--set', f'engine.state_dir={folder}']
        self.log = folder / 'log'
        before = len(self.ports())     # of daemons that were here before
        self.daemon = Daemon(folder, *self.state, '--set', 'engine.http=127.0.0.1:0', '--set', 'engine.log_level=info',
                             *(KEYLESS if keyless else ()), *options, command=command, **more).ready()
        self.port = until(lambda: self.ports()[before:])[-1]
        Web.description = Web.description or Description(self.describe())

    def describe(self):
        """The description of the interface."""
        return self.ask('GET', '/openapi.json')[2]

    def with_key(self, key):
        """The same daemon, asked with a key."""
        other = copy.copy(self)
        other.key = key
        return other

    def ports(self):
        return [int(port) for port in re.findall(r'serving http://127\.0\.0\.1:(\d+)', self.log.read_text() if self.log.exists() else '')]

    def open(self, timeout=60):
        return KeyConnection(self.port, timeout, self.key, self.description)

    def ask(self, method, path, body=None, **headers):
        """(status, headers, body as JSON where it is some)."""
        connection = self.open()
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get('Content-Type', '')
        if 'json' not in kind or 'ndjson' in kind or 'connect+json' in kind or not text:
            return answer.status, answer.headers, text
        value = json.loads(text)
        if self.description and connection.asked:
            self.description.check_body(method, path, answer.status, answer.headers, value)
        return answer.status, answer.headers, value

    def run(self, code, language='bash', **more):
        status, _, record = self.ask('POST', '/v1/runs', {'language': language, 'code': code, **more})
        assert status == 200, record
        return record

    def stream(self, method, path, body=None, **headers):
        connection = self.open()
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        return connection.getresponse()

    def stream_raw(self, method, path, body, **headers):
        connection = self.open(120)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def raw(self, data):
        """All that comes back for these bytes."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=60) as connection:
            connection.sendall(data)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b''.join(parts)

    def runs(self):
        return self.daemon.runs()
