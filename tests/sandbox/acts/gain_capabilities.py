#: act: raise capabilities by capset, by the ambient set and by a file
#: needs: x86_64
import ctypes
import errno
import os
import shutil
import struct

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


header = (ctypes.c_uint32 * 2)(0x20080522, 0)
answers = {}
for number in (0, 1, 6, 7, 12, 18, 21, 24, 38, 39):
    bit = [1 << number % 32 if number // 32 == word else 0 for word in (0, 1)]
    data = (ctypes.c_uint32 * 6)(bit[0], bit[0], bit[0], bit[1], bit[1], bit[1])
    answers[f"capability {number}"] = syscall(126, header, data)
shutil.copy("/usr/bin/env", "/tmp/env")
value = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
for name in ("security.capability", "trusted.escape", "security.escape"):
    try:
        os.setxattr("/tmp/env", name, value)
        answers[name] = "success"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EPERM", "EOPNOTSUPP"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
