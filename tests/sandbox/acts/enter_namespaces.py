#: act: enter namespaces through /proc and through pidfds
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


SETNS = {"x86_64": 308}.get(os.uname().machine, 268)
answers = {}
for kind in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"):
    answers[f"own {kind}"] = syscall(SETNS, os.open(f"/proc/self/ns/{kind}", os.O_RDONLY), 0)
    try:
        answers[f"{kind} of process 1"] = syscall(SETNS, os.open(f"/proc/1/ns/{kind}", os.O_RDONLY), 0)
    except OSError as error:
        answers[f"opening {kind} of process 1"] = errno.errorcode[error.errno]
answers["pidfd of process 1"] = syscall(SETNS, os.pidfd_open(1), 0x20000)
for name, answer in answers.items():
    if answer not in ("EPERM", "EACCES"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
