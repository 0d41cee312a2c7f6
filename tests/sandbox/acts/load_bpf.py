#: act: make a map, load a program and look for objects of others with bpf
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


BPF = {"x86_64": 321}.get(os.uname().machine, 280)
attributes = (ctypes.c_uint32 * 32)(2, 4, 8, 1)
answers = {name: syscall(BPF, command, attributes, 128)
           for name, command in {"a map": 0, "a program": 5, "next program": 11, "a token": 36}.items()}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
