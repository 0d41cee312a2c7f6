#: act: reach files by handle, past every mount
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


NAME_TO, OPEN_BY = (303, 304) if os.uname().machine == "x86_64" else (264, 265)
handle = (ctypes.c_uint32 * 34)(128)
mount_id = ctypes.c_int()
answers = {
    "name_to_handle_at": syscall(NAME_TO, -100, b"/usr", handle, ctypes.byref(mount_id), 0),
    "open_by_handle_at": syscall(OPEN_BY, os.open("/", os.O_RDONLY), handle, os.O_RDONLY),
}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
