#: act: timers without end
#: status: completed
import ctypes
libc = ctypes.CDLL(None)
t = ctypes.c_void_p()
n = 0
while libc.timer_create(1, None, ctypes.byref(t)) == 0 and n < 20000:
    n += 1
if n > 4096:
    print("ESCAPED:", n)
    raise SystemExit(66)
print("contained:", n)
