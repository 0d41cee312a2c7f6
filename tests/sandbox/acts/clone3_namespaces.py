#: act: make namespaces with clone3, whose flags no filter can see
import ctypes
import errno
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


answers = {}
for name, flag in {"user": 0x10000000, "mount": 0x20000, "into a cgroup": 0x200000000, "nothing": 0}.items():
    arguments = (ctypes.c_uint64 * 11)(flag, 0, 0, 0, signal.SIGCHLD)
    parent = os.getpid()
    answers[name] = syscall(435, arguments, ctypes.sizeof(arguments))
    if os.getpid() != parent:
        os._exit(0)
for name, answer in answers.items():
    if answer not in ("ENOSYS",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
