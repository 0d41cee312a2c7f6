#: act: push input into a terminal, take over the console, set line disciplines, also with bits above 32
import ctypes
import errno
import os
import pty

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


IOCTL = {"x86_64": 16}.get(os.uname().machine, 29)
master, slave = pty.openpty()
byte = ctypes.create_string_buffer(b"x")
requests = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "TIOCSETD": 0x5423, "TIOCVHANGUP": 0x5437, "TIOCSSERIAL": 0x541F,
            "KDSETMODE": 0x4B3A, "VT_ACTIVATE": 0x5606}
answers = {}
for name, request in requests.items():
    for high in (0, 1 << 32, 1 << 63):
        answers[f"{name} + {high:#x}"] = syscall(IOCTL, slave, ctypes.c_long(request | high).value, byte)
        answers[f"{name} + {high:#x} on the master"] = syscall(IOCTL, master, ctypes.c_long(request | high).value, byte)
for name, answer in answers.items():
    if answer != "ENOTTY":
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
print("contained: ENOTTY", len(answers), "requests")
