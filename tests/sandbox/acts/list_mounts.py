#: act: ask the kernel for mounts by identifier, also beyond what /proc shows
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


request = (ctypes.c_uint64 * 4)(32, 0xFFFFFFFFFFFFFFFF)
buffer = ctypes.create_string_buffer(4096)
answers = {
    "statmount": syscall(457, request, buffer, 4096, 0),
    "listmount": syscall(458, request, buffer, 256, 0),
}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
