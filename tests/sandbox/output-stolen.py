#: act: read its own output back
#: status: completed
import os
print("first", flush=True)
try:
    fd = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    os.read(fd, 100)
except OSError:
    pass
print("contained")
