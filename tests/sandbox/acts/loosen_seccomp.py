#: act: put a filter that allows everything over the one that is there, listen for calls, and leave strict mode
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]


allow = Program(1, ctypes.pointer(Filter(0x06, 0, 0, 0x7FFF0000)))
SECCOMP, FILTER, LISTENER = 317, 1, 1 << 3
answers = {
    "a listener": syscall(SECCOMP, FILTER, LISTENER, ctypes.byref(allow)),
    "a listener, with a bit above 32": syscall(SECCOMP, FILTER, LISTENER | 1 << 32, ctypes.byref(allow)),
}
assert syscall(SECCOMP, FILTER, 0, ctypes.byref(allow)) == "success"
answers["mount under a filter that allows all"] = syscall(165, b"none", b"/tmp", b"tmpfs", 0, None)
answers["unshare under a filter that allows all"] = syscall(272, 0x10000000)
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
