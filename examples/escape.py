# Five well-known ways out of a sandbox. Each is really tried; the program fails if one of them works.
import ctypes
import os
import signal
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWUSER = 0x10000000
MS_BIND = 4096


def call(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def steal_passwords():
    with open("/etc/shadow") as file:
        return f"read {len(file.read())} bytes"


def plant_a_program():
    with open("/usr/bin/python3", "ab"):
        return "could have changed /usr/bin/python3"


def ask_the_cloud_for_keys():
    with socket.create_connection(("169.254.169.254", 80), timeout=2):
        return "connected to the metadata service"


def become_root():
    call(libc.unshare, CLONE_NEWUSER)
    call(libc.mount, b"/", b"/mnt", None, MS_BIND, None)
    return "mounted the root file system in a user namespace"


def fork_bomb():
    children = []
    try:
        while len(children) < 5000:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)
        return f"{len(children)} processes"
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}, after {len(children)} processes") from None
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


escaped = 0
for trick in (steal_passwords, plant_a_program, ask_the_cloud_for_keys, become_root, fork_bomb):
    name = trick.__name__.replace("_", " ")
    try:
        print(f"{name:24} WORKED: {trick()}")
        escaped += 1
    except OSError as error:
        print(f"{name:24} refused: {error.strerror}")

sys.exit(1 if escaped else 0)
