#: what: the C library through ctypes: a callback, a structure and an error number
#: stdout: [1, 2, 5, 7, 9] 12:34 ENOENT strlen 5
import ctypes
import errno
import os


class Time(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("sec", "min", "hour", "mday", "mon", "year", "wday", "yday", "isdst")]


libc = ctypes.CDLL(None, use_errno=True)
compare_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


@compare_type
def compare(a, b):
    return a[0] - b[0]


numbers = (ctypes.c_int * 5)(5, 1, 7, 9, 2)
libc.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), compare)

text = ctypes.create_string_buffer(16)
libc.strftime(text, ctypes.sizeof(text), b"%H:%M", ctypes.byref(Time(min=34, hour=12, mday=1)))

assert libc.open(b"/no/such/file", os.O_RDONLY) == -1
name = errno.errorcode[ctypes.get_errno()]
libc.strlen.restype = ctypes.c_size_t
print(list(numbers), text.value.decode(), name, "strlen", libc.strlen(b"hello"))
