#: act: stay below the limit in each process and go beyond it with all together
#: options: --memory 128MiB
#: status: memory_exceeded
#: host-check: memory_at_most 128
import os
import time

for _ in range(10):
    if os.fork() == 0:
        block = bytearray(b"x") * (40 << 20)
        time.sleep(20)
        os._exit(len(block) & 1)
time.sleep(20)
print("ESCAPED: 10 processes of 40 MiB")
