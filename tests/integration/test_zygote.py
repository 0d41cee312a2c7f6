"""The Python zygote, with os.fork() in place of its C side: a run in a forked process is like a run started cold.

Every test of test_runners.py that runs Python is collected here again, with a `run` that forks.
"""

import json
import marshal
import os
import shutil
import signal
import socket
import subprocess
import threading
import types
from pathlib import Path

import pytest
import test_runners
from test_runners import ENVIRONMENT, LANG, PYTHON, Outcome, receive

HERE = Path(__file__).resolve().parent


def copy_runners(folder):
    """The runners with the stub as _caisson, which a link would not find."""
    for path in (LANG / 'python').glob('*.py'):
        shutil.copy(path, folder)
    shutil.copy(HERE / 'zygote_stub.py', folder / '_caisson.py')


class Zygote:
    def __init__(self, folder, image, *depth, environment=()):
        copy_runners(folder)
        self.home = folder / 'home'
        self.home.mkdir()
        self.environment = {**ENVIRONMENT, 'HOME': str(self.home), **dict(environment)}
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def prepare():
            os.dup2(theirs.fileno(), 3)

        self.process = subprocess.Popen([PYTHON, str(folder / 'zygote.py'), image, *depth], stdin=subprocess.DEVNULL,
                                        preexec_fn=prepare, pass_fds=(3,), env=self.environment, cwd=self.home)
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

    def run(self, folder, arguments, *, channel=True, stdin=b'', environment=(), timeout=60):
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
        variables = {**self.environment, **dict(environment)}
        words = marshal.dumps(([os.fsencode(word) for word in arguments],
                               [os.fsencode('%s=%s' % pair) for pair in variables.items()]))
        socket.send_fds(way, [words], [stdin_end])
        way.close()
        os.close(stdin_end)
        for reader in readers:
            reader.start()
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
            raise
        finally:
            for reader in readers:
                reader.join(10)
            ours.close()
        return Outcome(status, *(outputs.get(fd, b'') for fd in pipes), packets)

    def stop(self):
        self.control.close()
        assert self.process.wait(10) == 0


def read_all(fd, outputs):
    with open(fd, 'rb') as file:
        outputs[fd] = file.read()


@pytest.fixture(scope='module', params=['system', 'data'])
def zygote(request, tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('runners'), request.param)
    yield zygote
    zygote.stop()


@pytest.fixture
def run(zygote, tmp_path):
    """As in test_runners.py, but forked."""

    def start(name, source, *arguments, files=(), options='', **settings):
        for other, text in dict(files).items():
            (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other).write_text(text)
        main = tmp_path / name
        main.write_bytes(source if isinstance(source, bytes) else source.encode())
        return zygote.run(tmp_path, [options, str(main), *arguments], **settings)

    return start


# ------------------------------------------------------------------------------------- everything that holds for cold

def python_only(test):
    """The same test for those of its programs that are Python; None if there are none."""
    copy = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    marks = []
    for mark in getattr(test, 'pytestmark', ()):
        if mark.name == 'parametrize' and mark.args[0].split(',')[0] == 'name':
            rows = [row for row in mark.args[1] if (row if isinstance(row, str) else row[0]) == 'main.py']
            if not rows:
                return None
            mark = pytest.mark.parametrize(mark.args[0], rows).mark
        marks.append(mark)
    copy.pytestmark = marks
    return copy


def cold_tests():
    """Those named for another language, and one that is about what only a cold start can promise, are left out."""
    for name, test in vars(test_runners).items():
        if not name.startswith('test_') or name.startswith(('test_node', 'test_bash')):
            continue
        test = name != 'test_python_imports_nothing_for_itself' and python_only(test)
        if test:
            yield name, test


globals().update(cold_tests())
