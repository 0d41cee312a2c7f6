#: act: say that all is well and fail
#: status: failed
#: exit: 7
import os, struct
for fd in range(3, 64):
    try:
        os.write(fd, b"CSN1" + bytes([6, 0, 0, 0]) + struct.pack("<I", 0))
    except OSError:
        pass
os._exit(7)
