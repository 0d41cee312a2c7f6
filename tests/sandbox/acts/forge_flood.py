#: act: send messages without end, to fill the memory of whoever reads them
#: options: --timeout 3s
#: status: completed timeout
#: within: 8
import os
import struct
import time

more = struct.pack("<4sBBHI", b"CSN1", 5, 1, 0, 65_000) + bytes(65_000)
end = time.monotonic() + 1.5
sent = 0
for descriptor in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]:
    try:
        os.set_blocking(descriptor, False)
        while time.monotonic() < end:
            try:
                sent += os.write(descriptor, more)
            except BlockingIOError:
                time.sleep(0.001)
    except OSError:
        pass
print("contained: sent", sent)
os._exit(0)
