#: act: count events of itself, of process 1 and of a whole processor with perf_event_open
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


PERF_EVENT_OPEN = {"x86_64": 298}.get(os.uname().machine, 241)
attributes = (ctypes.c_uint32 * 32)(1, 128)
answers = {
    "itself": syscall(PERF_EVENT_OPEN, attributes, 0, -1, -1, 0),
    "process 1": syscall(PERF_EVENT_OPEN, attributes, 1, -1, -1, 0),
    "a processor": syscall(PERF_EVENT_OPEN, attributes, -1, 0, -1, 0),
}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
