"""Starts the runners as the engine does: a program's file, a socket on descriptor 3 for what they report, and for a worker
one on descriptor 4.

CAISSON_TEST_PYTHON, CAISSON_TEST_NODE and CAISSON_TEST_BASH name other interpreters to test with.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from cli import BUILD

LANG = BUILD / 'lang'      # the runners as they are seen inside a sandbox
PYTHON = os.environ.get('CAISSON_TEST_PYTHON', '/usr/bin/python3')
NODE = os.environ.get('CAISSON_TEST_NODE', '/usr/bin/node')
BASH = os.environ.get('CAISSON_TEST_BASH', '/bin/bash')
COMMANDS = {
    'py': (PYTHON, str(LANG / 'python' / 'run.py')),
    'js': (NODE, str(LANG / 'node' / 'run.js')),
    'sh': (BASH, str(LANG / 'bash' / 'run.sh')),
}
LANGUAGE_OF = {'mjs': 'js', 'cjs': 'js', 'ts': 'js', 'mts': 'js', 'cts': 'js'}
NAMES = {1: 'HELLO', 2: 'SYNTAX', 3: 'STARTED', 4: 'ERROR', 5: 'VALUE', 6: 'DONE', 7: 'EXITING', 10: 'MESSAGE'}
MESSAGE = 10


def node_major():
    """The major version of the Node to test with, which is 18 on Debian 12; 0: there is no Node."""
    try:
        return int(subprocess.run([NODE, '-p', 'parseInt(process.versions.node)'], capture_output=True, check=True).stdout)
    except FileNotFoundError:
        return 0


NODE_MAJOR = node_major()
FRAME_MAX = 65536
ROOM = FRAME_MAX - 12
ENVIRONMENT = {
    'PATH': '/usr/local/bin:/usr/bin:/bin',
    'LANG': 'C.UTF-8',
    'PYTHONUNBUFFERED': '1',
    'PYTHONDONTWRITEBYTECODE': '1',
}


# What only a worker is given (docs/protocols/runner-channel.md).
WAIT_ENVIRONMENT = {'sh': {'BASH_ENV': str(LANG / 'bash' / 'worker.sh')}}
CHANNEL_FD = 3
GO_FD = 4


class Outcome:
    def __init__(self, status, stdout, stderr, packets):
        self.status = status
        self.stdout = stdout.decode('utf-8', 'replace')
        self.stderr = stderr.decode('utf-8', 'replace')
        self.packets = packets
        assert self.left in (None, status)

    def frames(self):
        """[(name, payload)], with the pieces of a document joined; fails on anything malformed."""
        frames, pieces = [], b''
        for packet in self.packets:
            magic, kind, flags, zero, length = struct.unpack('<4sBBHI', packet[:12])
            assert (magic, zero, length) == (b'CSN1', 0, len(packet) - 12), packet[:40]
            assert len(packet) <= FRAME_MAX and flags in (0, 1)
            pieces += packet[12:]
            if not flags:
                frames.append((NAMES[kind], pieces))
                pieces = b''
        assert not pieces
        return frames

    @property
    def kinds(self):
        """What both roads send."""
        return ' '.join(name for name, _ in self.frames() if name != 'EXITING')

    @property
    def left(self):
        """The status that a worker has told, or None."""
        last = self.packets[-1] if self.packets else b''
        return int(last[12:]) if last[4:5] == b'\7' else None

    def document(self, wanted):
        for name, payload in self.frames():
            if name == wanted:
                return json.loads(payload, parse_constant=lambda constant: pytest.fail('not JSON: ' + constant))
        return None

    @property
    def messages(self):
        """What a role has told the engine."""
        return [json.loads(payload[1:]) for name, payload in self.frames() if name == 'MESSAGE' and payload[:1] == b'E']

    @property
    def value(self):
        return self.document('VALUE')

    @property
    def error(self):
        return self.document('ERROR')

    @property
    def syntax(self):
        return self.document('SYNTAX')


def receive(end, packets):
    while True:
        packet = end.recv(FRAME_MAX * 2)
        if not packet:
            return
        packets.append(packet)


def packets_of(kind, payload):
    """The frames of one document for a runner."""
    for start in range(0, len(payload), ROOM):
        piece = payload[start:start + ROOM]
        yield b'CSN1' + bytes((kind, start + ROOM < len(payload), 0, 0)) + struct.pack('<I', len(piece)) + piece


def talk(document, whom='E'):
    """The packets of a message to a role."""
    return list(packets_of(MESSAGE, (whom + json.dumps(document)).encode()))


def say(end, packets):
    """All that a role is told; it gets to the end of file then."""
    try:
        for packet in packets:
            end.send(packet)
        end.shutdown(socket.SHUT_WR)
    except OSError:         # it has ended before
        pass


def encode(arguments, environment):
    """The document for a worker."""
    fields = [str(len(arguments)), *arguments,
              str(len(environment)), *('%s=%s' % entry for entry in environment.items())]
    return b''.join(field.encode() + b'\0' for field in fields)


def put_at(sources):
    """For preexec_fn: puts descriptors at the given numbers."""

    def put():
        copies = {number: fcntl.fcntl(source, fcntl.F_DUPFD, 10) for number, source in sources.items()}
        for number, copy in copies.items():
            os.dup2(copy, number)

    return put


class Process:
    """A program of one language, with a channel; a worker if it is to wait."""

    def __init__(self, command, home, channel=True, environment=(), wait=False):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.go, their_go = socket.socketpair()
        sources = {**({CHANNEL_FD: theirs.fileno()} if channel else {}), **({GO_FD: their_go.fileno()} if wait else {})}
        self.packets = []
        self.reader = threading.Thread(target=receive, args=(self.ours, self.packets))
        with theirs, their_go:
            self.popen = subprocess.Popen(command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, preexec_fn=put_at(sources), pass_fds=list(sources),
                                          env={**ENVIRONMENT, 'HOME': str(home), **dict(environment)})
        self.reader.start()
        if wait:
            assert self.go.recv(10) == b'R'

    def tell(self, document):
        self.go.sendall(document)
        self.go.shutdown(socket.SHUT_WR)

    def end(self, stdin=b'', timeout=180, told=()):
        try:
            if told:
                say(self.ours, told)
            stdout, stderr = self.popen.communicate(stdin, timeout)
        finally:
            self.popen.kill()
            self.reader.join(60)
            self.ours.close()
            self.go.close()
        return Outcome(self.popen.returncode, stdout, stderr, self.packets)


def worker(home, name, **settings):
    """A worker for the main file of that name, which need not exist yet."""
    suffix = Path(name).suffix[1:]
    language = LANGUAGE_OF.get(suffix, suffix)
    interpreter, runner = COMMANDS[language]
    command = [interpreter, str(home / name)] if language == 'sh' else [interpreter, runner, '--wait']
    return Process(command, home, environment=WAIT_ENVIRONMENT.get(language, {}), wait=True, **settings)


def runner_of(road, home):
    """run('main.py', source, *arguments, files={...}, options='...') -> Outcome

    told is the packets that a role is told over the channel (talk()).
    """

    def start(name, source, *arguments, files=(), options='', channel=True, stdin=b'', environment=(), timeout=180,
              told=()):
        # Workers for Bash take no arguments.
        waiting = road == 'waiting' and not name.endswith('.py') and not (name.endswith('.sh') and arguments)
        process = worker(home, name, channel=channel) if waiting else None
        for other, text in dict(files).items():
            (home / other).parent.mkdir(parents=True, exist_ok=True)
            (home / other).write_text(text)
        main = home / name
        main.write_bytes(source if isinstance(source, bytes) else source.encode())
        suffix = main.suffix[1:]
        if waiting:
            process.tell(encode([options, str(main), *arguments], {**ENVIRONMENT, 'HOME': str(home), **dict(environment)}))
        else:
            command = [*COMMANDS[LANGUAGE_OF.get(suffix, suffix)], options, str(main), *arguments]
            process = Process(command, home, channel=channel, environment=environment)
        return process.end(stdin, timeout, told)

    return start


def plain(interpreter, home, name, **environment):
    return subprocess.run([interpreter, str(home / name)], cwd=home, capture_output=True, text=True,
                          errors='replace', env={**ENVIRONMENT, 'HOME': str(home), **environment}, timeout=180, check=False)
