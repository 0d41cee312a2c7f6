#: act: mount a tmpfs, a proc, a bind of the root, and an overlay
#: needs: x86_64
#: vm: yes
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


MOUNT, MS_BIND, MS_REC, MS_REMOUNT = 165, 4096, 16384, 32
os.makedirs("here/upper", exist_ok=True)
answers = {
    "tmpfs": syscall(MOUNT, b"none", b"/home/user/here", b"tmpfs", 0, None),
    "proc": syscall(MOUNT, b"proc", b"/home/user/here", b"proc", 0, None),
    "bind of /": syscall(MOUNT, b"/", b"/home/user/here", None, MS_BIND | MS_REC, None),
    "remount of / for writing": syscall(MOUNT, b"none", b"/", None, MS_REMOUNT | MS_BIND, None),
    "overlay": syscall(MOUNT, b"overlay", b"/home/user/here", b"overlay", 0, b"lowerdir=/,upperdir=here,workdir=here/upper"),
    "propagation": syscall(MOUNT, b"none", b"/", None, (1 << 20) | MS_REC, None),
}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
