#: act: use more memory than allowed: many-processes
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
import os, time
for _ in range(20):
    if os.fork() == 0:
        x = bytearray(16 << 20)
        time.sleep(30)
        os._exit(0)
time.sleep(30)
