#: act: send what no decoder expects: wrong magic, wrong lengths, wrong order, nothing, and too much
#: status: completed
#: host-check: no_value
import os
import random
import struct

random.seed(1)
messages = [b"", b"C", b"CSN1", b"CSN2" + bytes(8), struct.pack("<4sBBHI", b"CSN1", 5, 0, 0, 0xFFFFFFFF), bytes(60_000),
            struct.pack("<4sBBHI", b"CSN1", 255, 255, 65535, 4) + b"\xff\xff\xff\xff",
            struct.pack("<4sBBHI", b"CSN1", 5, 0, 0, 10) + b"short",
            *(random.randbytes(random.randrange(200)) for _ in range(200))]
for descriptor in range(3, 1024):
    try:
        os.set_blocking(descriptor, False)
    except OSError:
        continue
    for message in messages:
        try:
            os.write(descriptor, message)
        except OSError:
            break
print("contained: sent", len(messages), "messages")
os._exit(0)
