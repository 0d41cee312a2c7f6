#: act: compare kernel objects
#: status: completed
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return r, ctypes.get_errno()
r, e = call(312, 1, 1, 0, 0, 0)
if r >= 0:
    print("ESCAPED: it worked"); raise SystemExit(66)
print("contained:", errno.errorcode.get(e, e))
