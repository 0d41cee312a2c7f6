#: act: use up the watches of its user, for everybody who has the same
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)
count = 0
while count < 100_000:
    if libc.inotify_init1(0) < 0:
        print("contained:", errno.errorcode[ctypes.get_errno()], count)
        raise SystemExit
    count += 1
print("ESCAPED:", count, "instances")
raise SystemExit(66)
