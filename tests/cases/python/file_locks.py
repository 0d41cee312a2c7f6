#: what: record locks, whole-file locks and a lock file between processes
#: stdout: held by another, then free; range free; flock busy
import fcntl
import os

PATH = "/tmp/locked"


def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def try_lock(start):
    with open(PATH, "r+b") as other:
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, start)


def try_flock():
    with open(PATH, "r+b") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


with open(PATH, "w+b") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
    held = not in_child(lambda: try_lock(0))
    range_free = in_child(lambda: try_lock(100))
    fcntl.lockf(file, fcntl.LOCK_UN, 10, 0)
    free = in_child(lambda: try_lock(0))
    fcntl.flock(file, fcntl.LOCK_EX)
    busy = not in_child(try_flock)
lock = os.open("/tmp/lock-file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
try:
    os.open("/tmp/lock-file", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    raise AssertionError("a lock file was made twice")
except FileExistsError:
    os.close(lock)
assert held and free and range_free and busy
print("held by another, then free; range free; flock busy")
