"""Private daemons: one for a tree of processes, at a Unix socket in a temporary folder.

A daemon lives as long as a process holds the write end of a pipe, see _watch.py.  A forked process inherits the
pipe, and a spawned one finds the socket by an environment variable; so no child starts a daemon of its own, and none
ends the daemon of its parent.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import IO, List, Optional, Sequence

from .errors import Unreachable

# Not below CAISSON_, where names are settings of the daemon.
SOCKET_VARIABLE = '_CAISSON_PRIVATE_SOCKET'
PROGRAM_VARIABLE = 'CAISSON_CAISSOND'

# Of a daemon that others use, or of its service manager.
FOREIGN = (
    'CAISSON_ENGINE_SOCKET',
    'CAISSON_ENGINE_HTTP',
    'CAISSON_ENGINE_STATE_DIR',
    'CAISSON_GATEWAY',
    'CAISSON_URL',
    'CAISSON_KEY',
    PROGRAM_VARIABLE,
    'CAISSON_ON_ENGINE_FAULT',
    'NOTIFY_SOCKET',
    'LISTEN_',
)

START_S = 60.0
STOP_S = 10.0
SOCKET_PATH_MAX = 80  # a socket's address has 108 bytes

_lock = threading.Lock()
_shared: Optional[Daemon] = None
_daemons: weakref.WeakSet[Daemon] = weakref.WeakSet()
_ended: List[subprocess.Popen[bytes]] = []  # watcher processes that have no exit status yet; their daemons got SIGTERM


def find_program(path: Optional[str]) -> str:
    """The path of caissond."""
    wanted = path or os.environ.get(PROGRAM_VARIABLE)
    if wanted:
        if not os.access(wanted, os.X_OK):
            raise Unreachable(
                f'{wanted} is no program; give the path of caissond by Client.local(caissond=...) '
                f'or {PROGRAM_VARIABLE}',
                retryable=False,
            )
        return wanted
    found = shutil.which('caissond')
    if not found and (command := shutil.which('caisson')):
        beside = Path(command).resolve().parent / 'caissond'
        found = str(beside) if os.access(beside, os.X_OK) else None
    if not found:
        raise Unreachable(
            'no server is named by CAISSON_URL, and there is no caissond on PATH to start a private one; '
            'install Caisson, '
            f'or give the path of caissond by {PROGRAM_VARIABLE}',
            retryable=False,
        )
    return found


def answers(path: str) -> bool:
    """Whether a daemon listens at this socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(10)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def make_folder() -> str:
    folder = tempfile.mkdtemp(prefix='caisson-')
    if len(folder) > SOCKET_PATH_MAX:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix='caisson-', dir='/tmp')
    if os.geteuid() == 0:
        os.chmod(folder, 0o711)  # a daemon that root starts becomes another user, which has a folder in this one
    return folder


class Daemon:
    """A private daemon, of this process or of one that started this process."""

    def __init__(self, path: str, pipe: int = -1, watcher: Optional[subprocess.Popen[bytes]] = None) -> None:
        self.path = path
        self.pipe = pipe
        self.watcher = watcher
        self.starter = os.getpid()
        self.leases = 0
        _daemons.add(self)

    @classmethod
    def start(cls, program: str, settings: Sequence[str]) -> Daemon:
        folder = make_folder()
        path = os.path.join(folder, 's')
        # The folder is for this user alone, so the socket needs no key; with it the daemon keeps files and records.
        ours = [
            f'engine.socket={path}',
            f'engine.state_dir={folder}/state',
            f'engine.http=unix:{folder}/h',
            'engine.http_keyless=true',
            'engine.shutdown_ms=0',
        ]
        command = [program, *(word for setting in (*settings, *ours) for word in ('--set', setting))]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        reader, pipe = os.pipe()
        with tempfile.TemporaryFile() as log:
            try:
                watcher = subprocess.Popen(
                    [
                        sys.executable or 'python3',
                        '-I',
                        '-S',
                        str(Path(__file__).with_name('_watch.py')),
                        folder,
                        *command,
                    ],
                    stdin=reader,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                )
            except OSError:
                os.close(pipe)
                shutil.rmtree(folder, ignore_errors=True)
                raise
            finally:
                os.close(reader)
            daemon = cls(os.path.join(folder, 'h'), pipe, watcher)
            daemon.wait_until_ready(program, log)
        return daemon

    def wait_until_ready(self, program: str, log: IO[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while not answers(self.path):
            assert self.watcher
            if self.watcher.poll() is not None or time.monotonic() > deadline:
                self.stop(STOP_S)
                log.seek(0)
                text = log.read().decode('utf-8', 'replace').strip()
                raise Unreachable(
                    f'the private daemon {program} did not start: {text[-2000:] or "it wrote nothing"}', retryable=False
                )
            time.sleep(0.01)

    def stop(self, patience: float) -> None:
        """Let go of the daemon, which ends if no other process holds it, and wait for its end."""
        if self.pipe < 0:
            return
        os.close(self.pipe)
        self.pipe = -1
        if os.environ.get(SOCKET_VARIABLE) == self.path:
            del os.environ[SOCKET_VARIABLE]
        if self.watcher and self.starter == os.getpid():
            _ended.append(self.watcher)
            wait_for_ended(patience)


def wait_for_ended(patience: float) -> None:
    """Wait for watchers whose daemons end."""
    for watcher in list(_ended):
        try:
            watcher.wait(patience)
            _ended.remove(watcher)
        except subprocess.TimeoutExpired:
            pass


class Lease:
    """The use of a daemon by one client; ends by release(), or when the client is collected."""

    def __init__(self, daemon: Daemon) -> None:
        daemon.leases += 1
        self.daemon = daemon
        self.path = daemon.path
        self._finalizer = weakref.finalize(self, drop, daemon, 0.0)
        self._finalizer.atexit = False

    def release(self) -> None:
        if self._finalizer.detach():
            drop(self.daemon, STOP_S)

    @property
    def is_live(self) -> bool:
        return answers(self.path)


def drop(daemon: Daemon, patience: float) -> None:
    global _shared
    with _lock:
        daemon.leases -= 1
        if daemon.leases > 0:
            return
        if daemon is _shared:
            _shared = None
    daemon.stop(patience)


def acquire(program: Optional[str], settings: Sequence[str]) -> Lease:
    """The use of the shared daemon, which is started if there is none; with a program or settings, of a new daemon."""
    global _shared
    with _lock:
        wait_for_ended(0)
        if program or settings:
            return Lease(Daemon.start(find_program(program), settings))
        if _shared and answers(_shared.path):
            return Lease(_shared)
        inherited = os.environ.get(SOCKET_VARIABLE)
        if inherited and answers(inherited):
            _shared = Daemon(inherited)
        else:
            _shared = Daemon.start(find_program(None), settings)
            os.environ[SOCKET_VARIABLE] = _shared.path
        return Lease(_shared)


def has_children() -> bool:
    """Whether processes of multiprocessing go on, which may hold the daemon."""
    module = sys.modules.get('multiprocessing')
    return bool(module and module.active_children())


@atexit.register
def stop_all() -> None:
    """At the end of the process."""
    patience = 0.0 if has_children() else STOP_S
    for daemon in list(_daemons):
        daemon.stop(patience)
    wait_for_ended(patience)


def after_fork() -> None:
    """The lock may have been taken by a thread that the child does not have; watchers are children of the parent."""
    global _lock
    _lock = threading.Lock()
    _ended.clear()


os.register_at_fork(after_in_child=after_fork)
