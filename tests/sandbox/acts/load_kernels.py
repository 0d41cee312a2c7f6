#: act: load modules and another kernel
#: needs: x86_64
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


descriptor = os.open("/dev/null", os.O_RDONLY)
answers = {
    "init_module": syscall(175, b"\x7fELF", 4, b""),
    "finit_module": syscall(313, descriptor, b"", 0),
    "delete_module": syscall(176, b"no_such_module", 0),
    "create_module": syscall(174, b"x", 4096),
    "kexec_load": syscall(246, 0, 0, None, 0),
    "kexec_file_load": syscall(320, descriptor, descriptor, 0, b"", 0),
}
for name, answer in answers.items():
    if answer not in ("EPERM", "ENOSYS"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
