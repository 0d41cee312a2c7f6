#: act: say that it is done, and then go on for ever
#: options: --timeout 1s
#: status: timeout
#: within: 4
import os
import struct
import time

for descriptor in range(3, 1024):
    try:
        os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 6, 0, 0, 0))
        os.close(descriptor)
    except OSError:
        pass
time.sleep(60)
