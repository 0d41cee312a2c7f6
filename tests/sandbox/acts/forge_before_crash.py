#: act: say that it is done, and then die of a signal
#: status: crashed
#: host-check: signal 11
import ctypes
import os
import struct

for descriptor in range(3, 1024):
    try:
        os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 6, 0, 0, 0))
    except OSError:
        pass
ctypes.string_at(8)
