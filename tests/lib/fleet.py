"""A gateway before workers: real ones, and one whose faults a test chooses."""

import http.client
import json
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from cli import CAISSON, environment
from daemon import until
from gateway import SECRET, Worker

GATEWAY = str(Path(CAISSON).parent / 'caisson-gateway')


class Gateway:
    """The program, before workers at these URLs."""

    def __init__(self, folder, urls, *options, secret=SECRET, name='gateway', program=(GATEWAY,)):
        self.folder = folder / name
        self.folder.mkdir(exist_ok=True)
        self.key_file = self.folder / 'key'
        self.key_file.write_text(secret + '\n')
        self.key = None
        listed = ['--set', 'gateway.workers=' + ','.join(urls)] if urls else []
        self.log = self.folder / 'log'
        with self.log.open('ab') as log:
            self.process = subprocess.Popen([*program, *listed, '--set', f'gateway.key_file={self.key_file}',
                                             '--set', 'gateway.listen=127.0.0.1:0', '--set', 'engine.log_level=info',
                                             '--set', f'engine.state_dir={self.folder}', *map(str, options)],
                                            stderr=log, stdin=subprocess.DEVNULL, env=environment())
        self.port = int(until(self.ports)[-1])

    def ports(self):
        assert self.process.poll() is None, self.log.read_text()
        return re.findall(r'serving http://127\.0\.0\.1:(\d+)', self.log.read_text())

    def connect(self, timeout=60):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=timeout)

    def ask(self, method, path, body=None, timeout=60, **headers):
        """(status, headers, JSON or bytes)."""
        connection = self.connect(timeout)
        named = {name.replace('_', '-'): value for name, value in headers.items()}
        if self.key:
            named.setdefault('Authorization', f'Bearer {self.key}')
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, named)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        kind = answer.headers['Content-Type'] or ''
        return answer.status, answer.headers, json.loads(text) if 'json' in kind and 'ndjson' not in kind and text else text

    def run(self, code, language='bash', **more):
        status, _, record = self.ask('POST', '/v1/runs', {'language': language, 'code': code, **more})
        assert status == 200, record
        return record

    def workers(self):
        return {worker['name']: worker for worker in self.ask('GET', '/v1/workers')[2]['workers']}

    def wait_ready(self, n):
        """Until so many workers take work."""
        until(lambda: self.ask('GET', '/healthz')[2]['workers_ready'] >= n)
        return self

    def stop(self):
        """The exit status after SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Fleet:
    """A gateway and n real workers."""

    def __init__(self, folder, n, *options, keys='workers', gateway_options=(), **more):
        self.workers = []
        for i in range(n):
            place = folder / f'worker{i}'
            place.mkdir()
            self.workers.append(Worker(place, *options, keys=keys, keyless=keys == 'workers', **more))
        self.gateway = Gateway(folder, [f'http://127.0.0.1:{worker.port}' for worker in self.workers],
                               '--set', f'gateway.keys={keys}', *gateway_options)
        self.gateway.wait_ready(n)

    def worker_of(self, headers):
        """The worker that an answer came from."""
        port = int(headers['Caisson-Worker'].rsplit(':', 1)[1])
        return next(worker for worker in self.workers if worker.port == port)

    def stop(self):
        self.gateway.stop()
        for worker in self.workers:
            worker.daemon.stop()


class FakeWorker:
    """A worker that a test scripts: act(worker, request, connection) gets each request but the gateway's own questions."""

    def __init__(self, act, slots=8, tls=None):
        self.act, self.slots, self.tls = act, slots, tls
        self.tag, self.boot = secrets.token_hex(4), secrets.token_hex(16)
        self.admitted, self.barred, self.requests, self.connections, self.silent = set(), set(), [], [], False
        self.over, self.keys, self.notes, self.noted = True, set(), {}, []      # noted: the bodies of calls of witnesses, in order
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.url = f'http{"s" if tls else ""}://127.0.0.1:{self.port}'
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            if self.silent:
                connection.close()
                continue
            self.connections.append(connection)
            threading.Thread(target=self.talk, args=[connection], daemon=True).start()

    def talk(self, connection):
        try:
            connection = self.tls.wrap_socket(connection, server_side=True) if self.tls else connection
            stream = connection.makefile('rb')
        except OSError:
            return
        try:
            while request := self.read(stream):
                if not self.answer_own(request, connection):
                    self.requests.append(request)
                    if self.act(self, request, connection) == 'close':
                        break
        except (OSError, ValueError):    # the connection broke, or what came is no HTTP
            pass
        stream.close()
        connection.close()

    @staticmethod
    def read(stream):
        line = stream.readline().decode('latin-1')
        if not line:
            return None
        method, target, _ = line.split(' ', 2)
        headers = {}
        while (line := stream.readline().decode('latin-1').strip()):
            name, _, value = line.partition(':')
            headers[name.lower()] = value.strip()
        return {'method': method, 'target': target, 'headers': headers, 'body': stream.read(int(headers.get('content-length', 0)))}

    def answer_own(self, request, connection):
        target = request['target']
        if target == '/v1/gateway/status':
            self.send(connection, 200, {'tag': self.tag, 'boot': self.boot, 'version': '0', 'ready': True, 'why': '', 'draining': False,
                                        'running': 0, 'queued': 0, 'slots': self.slots, 'sandboxes': 0, 'tier': 'host', 'missing': []})
        elif target.startswith('/v1/gateway/attempts/'):
            one = target.rsplit('/', 1)[1]
            if one not in self.admitted:
                self.barred.add(one)
            self.send(connection, 200 if one in self.admitted else 404, {'admitted': True, 'over': self.over})
        elif target == '/v1/gateway/find':
            key = json.loads(request['body']).get('idempotency_key')
            note = {'sent': {'age_ms': int((time.monotonic() - self.notes[key]['made']) * 1000), **self.notes[key]}} if key in self.notes else {}
            self.send(connection, 200, {'found': key in self.keys, 'everywhere': False, **note})
        elif target == '/v1/gateway/witness':
            self.send(connection, self.witness(json.loads(request['body'])), {})
        else:
            return False
        return True

    def witness(self, given):
        """The status of a note that is made or taken back."""
        self.noted.append(given)
        there = self.notes.get(given['idempotency_key'])
        if given.get('withdraw'):
            if there and there['attempt'] == given['attempt']:
                del self.notes[given['idempotency_key']]
            return 200
        if there and there['attempt'] not in (given['attempt'], *given['replaces']):
            return 409
        self.notes[given['idempotency_key']] = {**{name: given[name] for name in ('tag', 'pod', 'uid', 'hash', 'attempt')}, 'made': time.monotonic()}
        return 200

    def admit(self, request):
        self.admitted.add(request['headers']['caisson-attempt'])

    def send(self, connection, status, body, *headers):
        data = json.dumps(body).encode()
        head = [f'HTTP/1.1 {status} X', 'Content-Type: application/json', f'Content-Length: {len(data)}',
                f'Caisson-Boot: {self.boot}', f'Caisson-Load: 0 0 {self.slots}', *headers]
        connection.sendall('\r\n'.join(head).encode() + b'\r\n\r\n' + data)

    def silence(self):
        """From now on connections are closed at once."""
        self.silent = True
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.listener.close()
