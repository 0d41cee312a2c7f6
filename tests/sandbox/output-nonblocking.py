#: act: make the shared pipe non-blocking
#: status: completed
import os
os.set_blocking(1, False)
n = 0
try:
    for _ in range(10000):
        n += os.write(1, b"y" * 4096)
except BlockingIOError:
    pass
