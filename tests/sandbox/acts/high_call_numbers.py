#: act: call numbers with bits above 32, which a careless filter takes for others
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


answers = {f"{name} + {high:#x}": syscall(ctypes.c_long(number | high).value, 0, 0, 0, 0, 0)
           for name, number in {"mount": 165, "ptrace": 101, "unshare": 272, "bpf": 321}.items()
           for high in (1 << 32, 1 << 63, 0xFFFFFFFF << 32)}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
