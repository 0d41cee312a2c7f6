#: act: change the root by pivot_root and chroot, and climb out with ..
#: needs: x86_64
import ctypes
import errno
import os

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *arguments):
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    done = libc.syscall(ctypes.c_long(number), *values) != -1
    return "success" if done else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))


os.makedirs("new/old", exist_ok=True)
answers = {"pivot_root": syscall(155, b"new", b"new/old"), "chroot": syscall(161, b"new")}
os.chdir("/")
for _ in range(20):
    os.chdir("..")
answers["climbing"] = "EPERM" if os.path.samefile(".", "/proc/self/root") and not os.path.exists("etc/shadow") else "success"
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
