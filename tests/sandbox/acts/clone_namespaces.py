#: act: make namespaces with clone, also with bits set that the kernel ignores
#: needs: x86_64
import ctypes
import errno
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


def clone(flags):
    parent = os.getpid()
    answer = syscall(56, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if os.getpid() != parent or os.getppid() == 0:
        os._exit(0)
    return answer


answers = {}
for name, flag in {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000,
                   "uts": 0x4000000, "cgroup": 0x2000000}.items():
    for high in (0, 1 << 32, 1 << 63):
        answers[f"{name} {high:#x}"] = clone(ctypes.c_long(flag | high).value)
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
