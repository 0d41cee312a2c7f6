#: act: add, ask for and read keys of the kernel, and join a session's keyring
import ctypes
import errno
import os
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


ADD, REQUEST, KEYCTL = (248, 249, 250) if os.uname().machine == "x86_64" else (217, 218, 219)
USER_KEYRING, SESSION_KEYRING = -4, -3
answers = {
    "add_key": syscall(ADD, b"user", b"escape", b"secret", 6, USER_KEYRING),
    "request_key": syscall(REQUEST, b"user", b"escape", None, SESSION_KEYRING),
    "get the user's keyring": syscall(KEYCTL, 0, USER_KEYRING, 1),
    "join a session": syscall(KEYCTL, 1, None),
    "search": syscall(KEYCTL, 10, USER_KEYRING, b"user", b"escape", 0),
    "persistent keyring": syscall(KEYCTL, 22, 0, SESSION_KEYRING),
}
for name in ("keys", "key-users"):
    listed = Path("/proc", name).read_text() if Path("/proc", name).exists() else ""
    answers[f"/proc/{name}"] = "success" if listed else "EPERM"
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
