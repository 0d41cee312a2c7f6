#: act: get page faults into its own hands with userfaultfd
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


USERFAULTFD = {"x86_64": 323}.get(os.uname().machine, 282)
answers = {"userfaultfd": syscall(USERFAULTFD, os.O_CLOEXEC), "for user mode only": syscall(USERFAULTFD, 1)}
answers["its device"] = "success" if os.path.exists("/dev/userfaultfd") else "ENOSYS"
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
