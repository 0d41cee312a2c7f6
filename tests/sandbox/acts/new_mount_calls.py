#: act: make, open, copy, change and move mounts through the newer calls
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


AT_FDCWD, AT_EMPTY_PATH, OPEN_TREE_CLONE = -100, 0x1000, 1
attributes = (ctypes.c_uint64 * 4)()
root = os.open("/", os.O_PATH)
answers = {
    "open_tree": syscall(428, AT_FDCWD, b"/", OPEN_TREE_CLONE),
    "move_mount": syscall(429, root, b"", AT_FDCWD, b"/tmp", 4),
    "fsopen": syscall(430, b"tmpfs", 0),
    "fsconfig": syscall(431, root, 6, None, None, 0),
    "fsmount": syscall(432, root, 0, 0),
    "fspick": syscall(433, AT_FDCWD, b"/", 0),
    "mount_setattr": syscall(442, AT_FDCWD, b"/", 0, attributes, 32),
    "open_tree_attr": syscall(467, AT_FDCWD, b"/", OPEN_TREE_CLONE, attributes, 32),
}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
