#: act: make timers until the kernel has no more
import ctypes
import errno

libc = ctypes.CDLL(None, use_errno=True)
timer = ctypes.c_void_p()
count = 0
while count < 100_000:
    if libc.timer_create(1, None, ctypes.byref(timer)) != 0:
        print("contained:", errno.errorcode[ctypes.get_errno()], count)
        raise SystemExit
    count += 1
print("ESCAPED:", count, "timers")
raise SystemExit(66)
