"""Starts context runners as the engine does, and talks to them over the channel (docs/protocols/runner-channel.md)."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time

from runners import BASH, BUILD, CHANNEL_FD, ENVIRONMENT, FRAME_MAX, LANG, NODE, PYTHON, packets_of, put_at

NAMES = {1: 'HELLO', 2: 'SYNTAX', 3: 'STARTED', 4: 'ERROR', 5: 'VALUE', 6: 'DONE', 7: 'EXITING', 8: 'DISPLAY'}
EXECUTE = 9
TIMEOUT = 180
COMMANDS = {
    'javascript': (NODE, str(LANG / 'node' / 'context.js')),
    'python': (PYTHON, str(LANG / 'python' / 'context.py')),
    'bash': (BASH, str(LANG / 'bash' / 'context.sh')),
}


class Ended(Exception):
    """The channel's end of file."""


class Execution:
    """What came of one: the frames up to DONE, and what was written meanwhile."""

    def __init__(self, frames, stdout, stderr):
        self.frames = frames
        self.kinds = ' '.join(name for name, _ in frames)
        self.stdout = stdout.decode('utf-8', 'replace')
        self.stderr = stderr.decode('utf-8', 'replace')

    def documents(self, wanted):
        return [json.loads(payload) for name, payload in self.frames if name == wanted]

    def one(self, wanted):
        found = self.documents(wanted)
        assert len(found) < 2
        return found[0] if found else None

    @property
    def value(self):
        """The VALUE document without its media types."""
        members = self.one('VALUE')
        return members and {name: member for name, member in members.items() if name not in ('data', 'metadata')}

    @property
    def data(self):
        return self.one('VALUE')['data']

    @property
    def error(self):
        return self.one('ERROR')

    @property
    def displays(self):
        return self.documents('DISPLAY')


class Context:
    """One context.  channel is our end; outputs are the descriptors of its standard output and error."""

    def __init__(self, channel, outputs):
        self.channel = channel
        self.channel.settimeout(TIMEOUT)
        self.outputs = outputs
        self.written = {fd: b'' for fd in outputs}
        for fd in outputs:
            os.set_blocking(fd, False)
        (name, payload), = self.until('HELLO')
        self.hello = json.loads(payload)

    def read_outputs(self):
        for fd in self.outputs:
            try:
                while piece := os.read(fd, 1 << 16):
                    self.written[fd] += piece
            except BlockingIOError:
                pass

    def receive(self):
        """One packet; what is written while nothing comes is read, so that nobody has to wait for us."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            ready, _, _ = select.select([self.channel, *self.outputs], [], [], 1)
            self.read_outputs()
            if self.channel in ready:
                try:
                    packet = self.channel.recv(FRAME_MAX * 2)
                except ConnectionResetError:
                    packet = b''
                if not packet:
                    raise Ended
                return packet
            time.sleep(0.001)       # outputs that were closed are always ready
        raise TimeoutError

    def until(self, *last):
        """[(name, payload)] with the pieces of a document joined; fails on anything malformed."""
        frames, pieces, pending = [], b'', None
        while not frames or frames[-1][0] not in last:
            packet = self.receive()
            magic, kind, flags, zero, length = struct.unpack('<4sBBHI', packet[:12])
            assert (magic, zero, length) == (b'CSN1', 0, len(packet) - 12), packet[:40]
            assert len(packet) <= FRAME_MAX and flags in (0, 1) and pending in (None, kind)
            pieces += packet[12:]
            pending = kind if flags else None
            if not flags:
                frames.append((NAMES[kind], pieces))
                pieces = b''
        return frames

    def ask(self, code, **members):
        for packet in packets_of(EXECUTE, json.dumps({'code': code, **members}).encode()):
            self.channel.send(packet)

    def answer(self):
        frames = self.until('DONE')
        self.read_outputs()
        written = [self.written[fd] for fd in self.outputs]
        self.written = {fd: b'' for fd in self.outputs}
        kinds = [name for name, _ in frames]
        order = ['STARTED', 'DISPLAY', 'ERROR', 'VALUE', 'DONE']
        assert kinds == ['SYNTAX', 'DONE'] or (kinds[0] == 'STARTED' and kinds == sorted(kinds, key=order.index)), kinds
        assert all(kinds.count(name) < 2 for name in kinds if name != 'DISPLAY')
        return Execution(frames, *written)

    def execute(self, code, **members):
        self.ask(code, **members)
        return self.answer()

    def wait_for_output(self, text, fd=0):
        """Until that has been written; it stays to be read with the answer."""
        end = time.monotonic() + TIMEOUT
        while text.encode() not in self.written[self.outputs[fd]]:
            assert time.monotonic() < end, self.written
            select.select([self.outputs[fd]], [], [], 1)
            self.read_outputs()

    def interrupt(self):
        os.kill(self.hello['pid'], signal.SIGINT)

    def wait_until_idle(self):
        """Until all of it sleeps, at two looks.  A signal wakes who sleeps before kill() returns, and a thread that tells another of it wakes
        that before it sleeps again; so what sleeps has dealt with it."""
        end, looks = time.monotonic() + TIMEOUT, 0
        while looks < 2:
            assert time.monotonic() < end
            looks = looks + 1 if self.states() == {'S'} else 0
            time.sleep(0.001)

    def states(self):
        folder, found = '/proc/%d/task' % self.hello['pid'], set()
        for thread in os.listdir(folder):
            with contextlib.suppress(OSError), open('%s/%s/stat' % (folder, thread), encoding='ascii', errors='replace') as file:
                found.add(file.read().rpartition(')')[2].split()[0])
        return found


class Started(Context):
    """One of a process that we started."""

    def __init__(self, language, home, options='', environment=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.popen = subprocess.Popen([*COMMANDS[language], options], cwd=home, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                          preexec_fn=put_at({CHANNEL_FD: theirs.fileno()}), pass_fds=[CHANNEL_FD],
                                          env={**ENVIRONMENT, 'HOME': str(home), **dict(environment)})
        super().__init__(ours, [self.popen.stdout.fileno(), self.popen.stderr.fileno()])

    def status(self):
        """Of the process, which ends by itself."""
        status = self.popen.wait(TIMEOUT)
        self.read_outputs()
        return status

    def end(self):
        self.channel.close()
        try:
            return self.status()
        finally:
            self.popen.kill()
            self.popen.wait()
            self.popen.stdout.close()
            self.popen.stderr.close()
