#: act: set up a ring for input and output, round all filters
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


parameters = (ctypes.c_uint32 * 30)()
answers = {
    "io_uring_setup": syscall(425, 8, parameters),
    "io_uring_setup without attributes": syscall(425, 1, None),
    "io_uring_enter": syscall(426, 0, 1, 1, 0, None, 0),
    "io_uring_register": syscall(427, 0, 0, None, 0),
}
for name, answer in answers.items():
    if answer not in ("ENOSYS",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
