#: act: watch whole file systems with fanotify
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


INIT, MARK = (300, 301) if os.uname().machine == "x86_64" else (262, 263)
answers = {f"fanotify_init {flags:#x}": syscall(INIT, flags, 0) for flags in (0, 0x4, 0x200, 0x600)}
answers["fanotify_mark"] = syscall(MARK, 0, 1 | 0x10, 2, 0, -100, b"/usr")
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
