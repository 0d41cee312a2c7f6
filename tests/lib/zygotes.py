"""A Python zygote outside of any sandbox, with a stub in place of most of its C side, for tests of the runner."""

import json
import marshal
import os
import shutil
import signal
import socket
import subprocess
import threading

from caisson_testing import LIB
from runners import BUILD, ENVIRONMENT, LANG, PYTHON, Outcome, receive, say

EXITING = b'\7'
# An expression of a program in a fork of the zygote, which freezes thousands of objects; Python 3.12 itself freezes 375.
IS_WARM = '(gc.get_freeze_count() > 2000)'
NAMESPACE = ['unshare', '--map-root-user', '--user', '--pid', '--fork', '--mount-proc', '--kill-child']


def copy_runners(folder):
    """The runners with the stub as _caisson, which a link would not find, and the real one for it."""
    for path in (LANG / 'python').glob('*.py'):
        shutil.copy(path, folder)
    shutil.copy(LIB / 'zygote_stub.py', folder / '_caisson.py')
    (folder / 'real').mkdir()
    shutil.copy(BUILD / '_caisson.abi3.so', folder / 'real')
    shutil.copy(BUILD / '_cold.abi3.so', folder)


class Zygote:
    """Prepared for programs in its folder `work` with the options `usual`, or for none (arguments: DEPTH, then)."""

    def __init__(self, folder, image, *arguments, environment=(), wrapper=(), usual=None):
        copy_runners(folder)
        self.folder = folder
        self.home = folder / 'home'
        self.home.mkdir()
        self.work = None if usual is None else folder / 'work'
        if self.work:
            self.work.mkdir()
            arguments = *(arguments or ('1',)), usual, str(self.work / 'main.py')
        self.environment = {**ENVIRONMENT, 'HOME': str(self.home), **dict(environment)}
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def prepare():
            os.dup2(theirs.fileno(), 3)

        self.process = subprocess.Popen([*wrapper, PYTHON, str(folder / 'zygote.py'), image, *arguments], preexec_fn=prepare, pass_fds=(3,),
                                        stdin=subprocess.DEVNULL, env=self.environment, cwd=self.work or self.home)
        theirs.close()
        self.control.settimeout(60)
        self.info = json.loads(self.control.recv(65536))

    def fork(self, folder, channel=None):
        """A process that waits for its program: (pid, the way to it, its standard output and error)."""
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends = [stdout_end, stderr_end, theirs.detach(), *([channel.detach()] if channel else [])]
        socket.send_fds(self.control, [os.fsencode(folder)], ends)
        for fd in ends:
            os.close(fd)
        pid = int(self.control.recv(100))
        ours.settimeout(60)
        assert ours.recv(100) == b'ready'
        return pid, ours, stdout, stderr

    def run(self, folder, arguments, *, channel=True, stdin=b'', environment=(), timeout=60, told=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        packets, outputs = [], {}
        pid, way, *pipes = self.fork(folder, theirs if channel else None)
        if not channel:
            theirs.close()
        for fd in pipes:
            os.set_blocking(fd, True)
        readers = [threading.Thread(target=receive, args=(ours, packets))]
        readers += [threading.Thread(target=read_all, args=(fd, outputs)) for fd in pipes]
        stdin_end, feed = os.pipe()
        if self.work and not stdin:
            os.close(stdin_end)
            stdin_end = os.open(os.devnull, os.O_RDONLY)
        variables = {**self.environment, **dict(environment)}
        words = marshal.dumps(([os.fsencode(word) for word in arguments],
                               [os.fsencode('%s=%s' % pair) for pair in variables.items()]))
        socket.send_fds(way, [words], [stdin_end])
        way.close()
        os.close(stdin_end)
        for reader in readers:
            reader.start()
        if told:
            say(ours, told)
        self.control.settimeout(timeout)
        try:
            with open(feed, 'wb') as file:
                file.write(stdin)
        except BrokenPipeError:
            pass
        try:
            status = os.waitstatus_to_exitcode(int(self.control.recv(100)))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self.control.recv(100)
            raise
        finally:
            for reader in readers:
                reader.join(60)
            ours.close()
        if packets and packets[-1][4:5] == EXITING:
            assert int(packets.pop()[12:]) == status
        return Outcome(status, *(outputs.get(fd, b'') for fd in pipes), packets)

    def stop(self):
        self.control.close()
        assert self.process.wait(60) == 0


def read_all(fd, outputs):
    with open(fd, 'rb') as file:
        outputs[fd] = file.read()
