"""A server that answers each connection with scripted bytes, for clients that have to bear any answer.

    with RawServer([answer(b'{}'), CLOSE]) as server:
        ... server.url, server.requests

The n-th connection gets the n-th entry; the last entry serves all further ones.  An entry is bytes, or a function of the connection
that has the head of the request in its attribute `head`.
"""

import json
import re
import socket
import threading
import time

CLOSE = b''
RECORD = {'schema': '1', 'id': 'run_1', 'status': 'completed', 'exit_code': 0, 'stdout': 'x\n', 'stderr': ''}


def answer(body, status='200 OK', kind='application/json', **headers):
    lines = [f'HTTP/1.1 {status}', 'Connection: close', f'Content-Type: {kind}', f'Content-Length: {len(body)}']
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + body


def record(**more):
    return answer(json.dumps({**RECORD, **more}).encode())


def problem(status, code, **headers):
    words = f'{status} X'
    return answer(json.dumps({'status': status, 'code': code, 'detail': f'status {status}'}).encode(), words, 'application/problem+json', **headers)


def chunk(data):
    return b'%x\r\n%s\r\n' % (len(data), data)


STREAM = b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\nLocation: /v1/runs/run_1\r\nTransfer-Encoding: chunked\r\n\r\n'


def events(*values, end=True):
    """A stream of events; without its last chunk where `end` is false."""
    return STREAM + b''.join(chunk(json.dumps(one).encode() + b'\n') for one in values) + (b'0\r\n\r\n' if end else b'')


START = {'type': 'start', 'id': 'run_1'}
END = {'type': 'end', 'record': RECORD}


class Connection:
    def __init__(self, sock):
        self.socket = sock
        self.head = ''
        self.body = b''

    def read_request(self):
        data = b''
        while b'\r\n\r\n' not in data:
            part = self.socket.recv(65536)
            if not part:
                return False
            data += part
        head, _, self.body = data.partition(b'\r\n\r\n')
        self.head = head.decode()
        length = re.search(r'content-length: (\d+)', self.head, re.IGNORECASE)
        while len(self.body) < int(length[1] if length else 0):
            self.body += self.socket.recv(65536)
        return True

    def send(self, data):
        self.socket.sendall(data)

    def wait_for_end(self, seconds=30):
        """Whether the client closed the connection."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b''
        except ConnectionError:
            return True
        except socket.timeout:
            return False


def drip(data, seconds=0.02, begin=0):
    """A function that sends byte by byte, the first `begin` bytes at once."""
    def send(connection):
        connection.send(data[:begin])
        for number in range(begin, len(data)):
            connection.send(data[number:number + 1])
            time.sleep(seconds)
    return send


def hang(connection):
    connection.wait_for_end(20)


class RawServer:
    def __init__(self, script):
        self.script = script
        self.requests = []
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self.socket.getsockname()[1]}'
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        while True:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(Connection(sock),), daemon=True).start()

    def answer(self, connection):
        with connection.socket:
            try:
                if not connection.read_request():
                    return
                number = len(self.requests)
                self.requests.append(connection)
                entry = self.script[min(number, len(self.script) - 1)]
                if callable(entry):
                    entry(connection)
                else:
                    connection.send(entry)
            except ConnectionError:
                pass

    def lines(self):
        """The first lines of all requests."""
        return [connection.head.partition('\r\n')[0].rpartition(' ')[0] for connection in self.requests]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()
