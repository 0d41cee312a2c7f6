#: act: move pages between nodes, place memory, and take memory that the kernel itself cannot see
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


mask = ctypes.c_ulong(1)
answers = {
    "move_pages": syscall(279, 1, 1, None, None, None, 0),
    "migrate_pages": syscall(256, 1, 8, ctypes.byref(mask), ctypes.byref(mask)),
    "mbind": syscall(237, 0, 4096, 1, ctypes.byref(mask), 8, 0),
    "set_mempolicy": syscall(238, 1, ctypes.byref(mask), 8),
    "set_mempolicy_home_node": syscall(450, 0, 4096, 0, 0),
    "memfd_secret": syscall(447, 0),
}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
