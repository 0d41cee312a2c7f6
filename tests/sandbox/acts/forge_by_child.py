#: act: let a child fail and a grandchild answer in the name of the program that has ended
#: status: failed
#: exit: 9
#: host-check: no_value
import os
import struct
import time

payload = b'{"type":"int","value":42}'
if os.fork() == 0:
    time.sleep(0.05)
    for descriptor in range(3, 1024):
        try:
            os.write(descriptor, struct.pack("<4sBBHI", b"CSN1", 2, 0, 0, len(payload)) + payload)
        except OSError:
            pass
    os._exit(0)
os._exit(9)
