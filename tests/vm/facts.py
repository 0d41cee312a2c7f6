#!/usr/bin/python3
"""Prints what the kernel gives to the user who asks, so that a skipped test can be understood.

Each line is found out by trying, because distributions backport and switch off features.
"""

import ctypes
import errno
import os
import struct

SYS_CLONE3 = 435
SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_CREATE_RULESET_VERSION = 1
CLONE_NEWUSER = 0x10000000
CLONE_INTO_CGROUP = 0x200000000
SIGCHLD = 17
CGROUP = "/sys/fs/cgroup"

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    """The result of a system call, or the negative errno."""
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(value) for value in arguments])
    return result if result >= 0 else -ctypes.get_errno()


def verdict(result):
    return "yes" if result >= 0 else f"no ({errno.errorcode.get(-result, -result)})"


def landlock():
    abi = syscall(SYS_LANDLOCK_CREATE_RULESET, 0, 0, LANDLOCK_CREATE_RULESET_VERSION)
    return f"ABI {abi}" if abi > 0 else verdict(abi)


def mount_setattr():
    # A size of 0 is refused with EINVAL by a kernel that knows the call.
    result = syscall(SYS_MOUNT_SETATTR, -1, 0, 0, 0, 0)
    return "yes" if result == -errno.EINVAL else verdict(result)


def user_namespace():
    pid = os.fork()
    if pid == 0:
        os._exit(ctypes.get_errno() if libc.unshare(CLONE_NEWUSER) else 0)
    return verdict(-os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def own_cgroup():
    """A new cgroup beside our own, where a delegated user may make one."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        path = file.read().strip().split("::")[1]
    folder = CGROUP + os.path.dirname(path).rstrip("/") + "/facts"
    os.mkdir(folder)
    return folder


def clone_into_cgroup(folder):
    fd = os.open(folder, os.O_DIRECTORY | os.O_RDONLY)
    # struct clone_args as of Linux 5.7: its last field is the descriptor of the cgroup.
    arguments = struct.pack("=11Q", CLONE_INTO_CGROUP, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, fd)
    buffer = ctypes.create_string_buffer(arguments, len(arguments))
    pid = syscall(SYS_CLONE3, ctypes.addressof(buffer), len(arguments))
    if pid == 0:
        os._exit(0)
    os.close(fd)
    if pid > 0:
        os.waitpid(pid, 0)
    return verdict(pid)


def main():
    print(f"landlock: {landlock()}")
    print(f"mount_setattr: {mount_setattr()}")
    print(f"user namespaces: {user_namespace()}")
    try:
        folder = own_cgroup()
    except OSError as error:
        print(f"own cgroup: no ({error.strerror})")
        return
    print(f"clone into cgroup: {clone_into_cgroup(folder)}")
    with open(f"{folder}/cgroup.controllers", encoding="ascii") as file:
        print(f"controllers of an own cgroup: {file.read().strip()}")
    files = ("cgroup.kill", "cgroup.freeze", "memory.peak", "memory.reclaim", "memory.swap.max", "memory.oom.group",
             "pids.peak", "cpu.max", "cpu.pressure")
    print("  ".join(f"{name}: {'yes' if os.path.exists(f'{folder}/{name}') else 'no'}" for name in files))
    os.rmdir(folder)


main()
