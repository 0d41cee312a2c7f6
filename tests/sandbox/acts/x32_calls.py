#: act: the same calls by their numbers of the x32 interface
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


answers = {f"{name} of x32": syscall(0x40000000 | number, 0, 0, 0, 0, 0)
           for name, number in {"getpid": 39, "mount": 165, "ptrace": 521, "unshare": 272, "bpf": 321, "kexec_load": 528}.items()}
for name, answer in answers.items():
    if answer not in ("ENOSYS",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
