#: act: inotify without end
#: status: completed
import ctypes
libc = ctypes.CDLL(None)
n = 0
while libc.inotify_init() >= 0 and n < 5000:
    n += 1
print("contained:", n)
