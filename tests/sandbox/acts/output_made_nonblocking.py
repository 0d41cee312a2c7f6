#: act: make its end of the pipe non-blocking, tiny and signal-driven, to upset the reader
#: host-check: output_counted stdout 1000000
import fcntl
import os
import time

fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_ASYNC | os.O_APPEND)
try:
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 4096)
except OSError:
    pass
try:
    fcntl.fcntl(1, fcntl.F_SETOWN, 1)
except OSError:
    pass
written = 0
while written < 1_000_000:
    try:
        written += os.write(1, b"y" * 1000)
    except BlockingIOError:
        time.sleep(0.001)
