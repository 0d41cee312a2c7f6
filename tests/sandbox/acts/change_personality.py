#: act: switch off the randomisation of addresses and other safety by personality
#: needs: x86_64
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


answers = {name: syscall(135, value) for name, value in {
    "no randomisation": 0x0040000, "reading implies executing": 0x0400000, "page zero": 0x0100000,
    "all of it": 0x0540000, "with a bit above 32": 0x0040000 | 1 << 32, "32 bits without it": 0x0040008}.items()}
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
