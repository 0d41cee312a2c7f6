#: act: set and adjust the clocks, and the offsets of a time namespace
#: needs: x86_64
import ctypes
import errno
import time

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


# Set to what they show, so that even success would do no harm.
now = (ctypes.c_long * 2)(int(time.time()), 0)
timex = ctypes.create_string_buffer(208)
answers = {
    "clock_settime": syscall(227, 0, now),
    "settimeofday": syscall(164, now, None),
    "adjtimex": syscall(159, timex),
    "clock_adjtime": syscall(305, 0, timex),
}
try:
    with open("/proc/self/timens_offsets", "w", encoding="ascii") as file:
        file.write("monotonic 1000 0\n")
    answers["offsets"] = "success"
except OSError as error:
    answers["offsets"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EPERM", "EACCES", "ENOENT", "EROFS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
