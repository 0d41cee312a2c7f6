#: act: write forged frames to every descriptor
#: status: failed
#: exit: 3
import os, struct
for fd in range(3, 64):
    for kind in range(0, 9):
        try:
            os.write(fd, b"CSN1" + bytes([kind, 0, 0, 0]) + struct.pack("<I", 12) + b'{"type":"x"}')
        except OSError:
            pass
print("contained")
raise SystemExit(3)
