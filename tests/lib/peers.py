"""Starts the runner twice, for tests and for a submission, and hands on what they say to each other, as the engine does.

    judged = grade(folder, 'def add(a, b): return a + b', 'assert add(1, 2) == 3')
    judged.statuses == ['passed']
"""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import threading
import time

from runners import CHANNEL_FD, COMMANDS, ENVIRONMENT, FRAME_MAX, NAMES, put_at

MESSAGE = 10
ROOM = FRAME_MAX - 12
TIMEOUT = 180
MODULES = ['solution', 'submission', 'main']
starting = threading.Lock()     # one at a time, so that nobody inherits what another is about to hand over


class Peer:
    """One runner in a role, and our end of its channel."""

    def __init__(self, role, home, source, begin):
        home.mkdir(parents=True, exist_ok=True)
        (home / 'main.py').write_text(source, encoding='utf-8')
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.output = open(home.parent / (role + '.out'), 'w+b')
        with theirs, starting:
            self.popen = subprocess.Popen([*COMMANDS['py'], 'graded=1', str(home / 'main.py')], cwd=home, stdin=subprocess.DEVNULL,
                                          stdout=self.output, stderr=subprocess.STDOUT, preexec_fn=put_at({CHANNEL_FD: theirs.fileno()}),
                                          pass_fds=[CHANNEL_FD], env={**ENVIRONMENT, 'HOME': str(home)}, start_new_session=True)
        self.kinds, self.pieces, self.inbox = [], b'', []
        self.open = True
        self.tell({'op': 'begin', 'role': role, **begin})

    def tell(self, document):
        self.send(b'E' + json.dumps(document).encode())

    def send(self, message):
        with contextlib.suppress(OSError):
            for start in range(0, len(message), ROOM):
                piece = message[start:start + ROOM]
                self.socket.send(b'CSN1' + bytes((MESSAGE, start + ROOM < len(message), 0, 0)) + struct.pack('<I', len(piece)) + piece)

    def read(self):
        """The next whole message of type MESSAGE, or None: there is none yet, or the channel has ended."""
        try:
            packet = self.socket.recv(FRAME_MAX * 2)
        except OSError:
            packet = b''
        if not packet:
            self.open = False
            return None
        if packet[:4] != b'CSN1' or packet[4] not in (*NAMES, MESSAGE) or int.from_bytes(packet[8:12], 'little') != len(packet) - 12:
            self.kinds.append('BROKEN')
            self.open = False
            return None
        if packet[4] != MESSAGE:
            self.kinds.append(NAMES[packet[4]])
            return None
        self.pieces += packet[12:]
        if packet[5]:
            return None
        message, self.pieces = self.pieces, b''
        return message

    def end(self):
        self.socket.close()
        self.popen.kill()
        self.popen.wait()
        self.output.seek(0)
        text = self.output.read().decode('utf-8', 'replace')
        self.output.close()
        return text


class Judged:
    def __init__(self, tests, ended, outputs, kinds):
        self.tests, self.ended, self.outputs, self.kinds = tests, ended, outputs, kinds

    @property
    def statuses(self):
        return [test['status'] for test in self.tests]

    @property
    def passed(self):
        return self.ended and bool(self.tests) and set(self.statuses) <= {'passed', 'skipped'} and 'passed' in self.statuses

    def __repr__(self):
        shown = [(test['name'], test['status'], test['detail']) for test in self.tests]
        return '%r ended=%r %r %r' % (shown, self.ended, self.kinds, self.outputs)


def grade(folder, submission, tests, call_s=20, alter=None, **begin):
    """Run tests against a submission.  A call that lasts longer than call_s ends the submission, as the engine would.

    alter(message) may change what the submission says, as one that has taken over its runner.
    """
    setup = begin.pop('setup', '')
    subject = Peer('subject', folder / 'subject', submission, {'setup': setup})
    judge = Peer('tests', folder / 'tests', tests, {'setup': setup, 'entry_point': None, 'shared': None, 'modules': MODULES, 'test_ms': 10000,
                                                    'stop_on_fail': False, 'output_max': 2000, **begin})
    told, ended = [], False
    asked = None
    deadline = time.monotonic() + TIMEOUT
    gone = False
    while judge.open and time.monotonic() < deadline:
        ready, _, _ = select.select([peer.socket for peer in (subject, judge) if peer.open], [], [], 0.05)
        if judge.socket in ready:
            message = judge.read()
            if message and message[:1] == b'P':
                asked = time.monotonic()
                subject.send(message)
            elif message:
                document = json.loads(message[1:])
                ended = ended or document['op'] == 'end'
                told += [document] if document['op'] == 'test' else []
        if subject.open and subject.socket in ready:
            message = subject.read()
            if message and message[:1] == b'P':
                asked = None
                judge.send(alter(message) if alter else message)
        if asked is not None and time.monotonic() - asked > call_s and subject.open:
            subject.popen.kill()
        if not subject.open and not gone:
            gone = True
            judge.tell({'op': 'peer_gone', 'status': 'crash', 'message': 'the submission has ended'})
    subject.tell({'op': 'end'})
    outputs = judge.end(), subject.end()
    return Judged(told, ended, outputs, (judge.kinds, subject.kinds))
