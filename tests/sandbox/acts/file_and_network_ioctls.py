#: act: file attributes, clones, encryption, and changes to interfaces and routes by ioctl
import ctypes
import errno
import os
import socket

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


IOCTL = {"x86_64": 16}.get(os.uname().machine, 29)
file = os.open("/tmp/file", os.O_RDWR | os.O_CREAT)
answers = {name: syscall(IOCTL, file, request, ctypes.create_string_buffer(256)) for name, request in {
    "FS_IOC_SETFLAGS": 0x40086602, "FS_IOC_FSSETXATTR": 0x401C5820, "FICLONE": 0x40049409, "FIDEDUPERANGE": 0xC0189436, "FIFREEZE": 0xC0045877,
    "FITHAW": 0xC0045878, "FS_IOC_ADD_ENCRYPTION_KEY": 0xC0506617, "FIBMAP": 1, "BLKROSET": 0x125D, "LOOP_CTL_GET_FREE": 0x4C82}.items()}
interface = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = ctypes.create_string_buffer(b"lo", 256)
answers |= {label: syscall(IOCTL, interface.fileno(), request, name) for label, request in {
    "SIOCSIFFLAGS": 0x8914, "SIOCSIFADDR": 0x8916, "SIOCADDRT": 0x890B, "SIOCSIFNAME": 0x8923, "SIOCETHTOOL": 0x8946, "SIOCBRADDBR": 0x89A0,
    "SIOCADDTUNNEL": 0x89F1, "TUNSETIFF": 0x400454CA, "SIOCSIFFLAGS + 2^32": 0x8914 | 1 << 32, "SIOCGSTAMP": 0x8906}.items()}
answers |= {f"{kind} on a namespace": syscall(IOCTL, os.open("/proc/self/ns/user", os.O_RDONLY), request, 0)
            for kind, request in {"NS_GET_USERNS": 0xB701, "NS_GET_PARENT": 0xB702, "NS_GET_OWNER_UID": 0xB704}.items()}
for name, answer in answers.items():
    if answer not in ("ENOTTY",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
