"""What the tests of caissond share: a daemon of their own, and its protocol from the outside."""

import json
import os
import re
import socket
import struct
import subprocess
import time
from pathlib import Path

from cli import CAISSON, caisson, children, environment, tree

CAISSOND = str(Path(CAISSON).parent / 'caissond')
REQUEST, CANCEL, ASK, CHECK, OUTPUT, RECORD, STATUS, ERROR, CHECKED = 1, 2, 3, 4, 17, 18, 19, 20, 21
HEAD = struct.Struct('<IIB3s')


def until(condition, seconds=60):
    """Wait for something that has to happen, on a machine that may be busy with other things; what it gave."""
    deadline = time.monotonic() + seconds
    while not (got := condition()):
        assert time.monotonic() < deadline, 'it did not happen'
        time.sleep(0.02)
    return got


def frame(kind, number, payload=b'', zero=b'\0\0\0', length=None):
    return HEAD.pack(len(payload) if length is None else length, number, kind, zero) + payload


class Client:
    """A connection, in the plainest way."""

    def __init__(self, path, seconds=180):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, kind, number, payload=b''):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        self.socket.sendall(frame(kind, number, payload))

    def run(self, number, code, language='bash', **more):
        self.send(REQUEST, number, {'language': language, 'code': code, **more})

    def exactly(self, n):
        parts = []
        while n:
            part = self.socket.recv(min(n, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            n -= len(part)
        return b''.join(parts)

    def get(self):
        """(type, id, payload), or None at the end."""
        try:
            length, number, kind, zero = HEAD.unpack(self.exactly(HEAD.size))
            assert zero == b'\0\0\0'
            return kind, number, self.exactly(length)
        except (EOFError, ConnectionResetError):
            return None

    def next(self, wanted):
        """The next frame that is no OUTPUT: its id and JSON."""
        while (got := self.get()) and got[0] == OUTPUT:
            pass
        assert got and got[0] == wanted, got
        return got[1], json.loads(got[2])

    def results(self, n):
        """n records by their id, and what came of each stream before: {id: (record, stdout, stderr)}."""
        streams, records = {}, {}
        while len(records) < n:
            kind, number, payload = self.get()
            out = streams.setdefault(number, [b'', b'', b''])
            assert kind in (OUTPUT, RECORD) and number not in records, payload
            if kind == OUTPUT:
                out[payload[0]] += payload[1:]
            else:
                records[number] = json.loads(payload), out[1], out[2]
        return records

    def status(self, number=0xffffffff):
        self.send(ASK, number)
        got, status = self.next(STATUS)
        assert got == number
        return status

    def ended(self, code, *words):
        """The connection ends with this error."""
        number, error = self.next(ERROR)
        assert number == 0 and error['code'] == code, error
        for word in words:
            assert word in error['text'], error
        assert self.get() is None


class Daemon:
    def __init__(self, folder, *options, path=None, env=None, command=(), program=None, **popen):
        self.path = Path(path or folder / 'c' / 's')
        self.env = environment(**{'CAISSON_ENGINE_STATE_DIR': str(folder / 'state'), **(env or {})})
        self.log = open(folder / 'log', 'ab')
        settings = ['--set', f'engine.socket={self.path}'] if path is not False else []
        self.process = subprocess.Popen([*command, program or CAISSOND, *settings, *map(str, options)], env=self.env, stderr=self.log,
                                        stdin=subprocess.DEVNULL, **popen)

    def ready(self):
        def connects():
            assert self.process.poll() is None, Path(self.log.name).read_text()
            try:
                Client(self.path).close()
            except OSError:
                return False
            return True
        until(connects)
        return self

    def client(self, seconds=180):
        return Client(self.path, seconds)

    def runs(self):
        with self.client() as client:
            return client.status()['runs']

    def stop(self, *numbers):
        """By these signals, or at once; its exit status."""
        for number in numbers:
            until(lambda number=number: not self.has_pending(number))     # two of one number are one, until the first has been taken
            self.process.send_signal(number)
        if not numbers and self.process.poll() is None:
            self.process.kill()
        status = self.process.wait(60)
        self.log.close()
        return status

    def has_pending(self, number):
        if self.process.poll() is not None:
            return False
        pending = re.search(r'^ShdPnd:\s*(\w+)$', Path(f'/proc/{self.process.pid}/status').read_text(), flags=re.M)[1]
        return int(pending, 16) << 1 >> number & 1

    def tree(self):
        return tree(self.process.pid)

    def caisson(self, *args, **more):
        env = {'CAISSON_DAEMON': 'always', 'CAISSON_ENGINE_SOCKET': str(self.path), **more.pop('env', {})}
        return caisson(*args, env=env, **more)


def alive(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1][0] != 'Z'
    except OSError:
        return False


def supervisors(pid):
    """Those of this daemon, among its other helpers."""
    return [child for child in children(pid) if command_line(child).startswith(b'caisson-supervisor')]


def command_line(pid):
    """Nothing, of a process that has ended."""
    try:
        return Path(f'/proc/{pid}/cmdline').read_bytes()
    except OSError:
        return b''


def commands(pids):
    """The names of these processes, of those that are still there."""
    names = []
    for pid in pids:
        try:
            names.append(Path(f'/proc/{pid}/comm').read_text().strip())
        except OSError:
            pass
    return names


def memory_of(pid):
    """Bytes of memory that a process has in use."""
    return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')
