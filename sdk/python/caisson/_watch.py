"""The parent of a private daemon: ends the daemon when the last process that holds the other end of its standard
input is gone.

    python3 _watch.py FOLDER COMMAND [ARGUMENT]...

A pipe tells about the end of processes in any case, also about SIGKILL, and forked processes hold it, too.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
PATIENCE_S = 10.0


def end_with_parent() -> None:
    """prctl(2): the daemon gets SIGTERM if this process is killed.  This process has one thread, whose end counts."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_for_end(daemon: 'subprocess.Popen[bytes]') -> None:
    """Wait for the end of the daemon, or of the last process that uses the daemon."""
    children, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    while daemon.poll() is None:
        ready, _, _ = select.select([0, children], [], [])
        if 0 in ready:
            return
        os.read(children, 512)


def end(daemon: 'subprocess.Popen[bytes]') -> None:
    daemon.terminate()
    try:
        daemon.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def main() -> None:
    folder, *command = sys.argv[1:]
    daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)
    wait_for_end(daemon)
    if daemon.poll() is None:
        end(daemon)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
