#: act: forbidden socket families, types and protocols with a bit set above the 32 that the kernel looks at
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


SOCKET = {"x86_64": 41}.get(os.uname().machine, 198)
VSOCK, PACKET, ALG, NETLINK, INET = 40, 17, 38, 16, 2
answers = {}
for high in (1 << 32, 1 << 40, 0xFFFFFFFF << 32):
    for name, (family, kind, protocol) in {"vsock": (VSOCK, 1, 0), "packet": (PACKET, 3, 3), "alg": (ALG, 5, 0),
                                           "audit": (NETLINK, 3, 9), "raw": (INET, 3, 1)}.items():
        answers[f"{name}, family + {high:#x}"] = syscall(SOCKET, ctypes.c_long(family | high).value, kind, protocol)
        answers[f"{name}, type + {high:#x}"] = syscall(SOCKET, family, ctypes.c_long(kind | high).value, protocol)
        answers[f"{name}, protocol + {high:#x}"] = syscall(SOCKET, family, kind, ctypes.c_long(protocol | high).value)
for name, answer in answers.items():
    if answer not in ("EAFNOSUPPORT",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
