"""What the tests of the HTTP interface share: a daemon that has one, and requests with Python's standard library alone."""

import http.client
import json
import re
import socket

from daemon import Daemon, until

KEYLESS = ['--set', 'engine.http_keyless=true']


class Web:
    """A daemon with an HTTP interface, and connections to it."""

    def __init__(self, folder, *options, keyless=True, command=()):
        self.folder = folder
        self.state = ['--set', f'engine.state_dir={folder}']
        self.log = folder / 'log'
        before = len(self.ports())     # of daemons that were here before
        self.daemon = Daemon(folder, *self.state, '--set', 'engine.http=127.0.0.1:0', '--set', 'engine.log_level=info',
                             *(KEYLESS if keyless else ()), *options, command=command).ready()
        self.port = until(lambda: self.ports()[before:])[-1]

    def ports(self):
        return [int(port) for port in re.findall(r'serving http://127\.0\.0\.1:(\d+)', self.log.read_text() if self.log.exists() else '')]

    def open(self, timeout=60):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)

    def ask(self, method, path, body=None, **headers):
        """(status, headers, body as JSON where it is some)."""
        connection = self.open()
        headers = {name.replace('_', '-'): value for name, value in headers.items()}
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers.get('Content-Type', '')
        return answer.status, answer.headers, json.loads(text) if 'json' in kind and 'ndjson' not in kind and text else text

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
