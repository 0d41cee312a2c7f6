#: act: take the masks off /proc and the private folders off the root
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


UMOUNT2, MNT_DETACH = 166, 2
answers = {path: syscall(UMOUNT2, path.encode(), flags)
           for path in ("/proc/kcore", "/proc/keys", "/proc/sys", "/proc/acpi", "/proc", "/tmp", "/usr", "/etc", "/", "/dev/null")
           for flags in (MNT_DETACH, 0)}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
