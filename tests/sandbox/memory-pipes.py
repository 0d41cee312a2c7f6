#: act: use more memory than allowed: pipes
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
import os, fcntl
kept = []
for _ in range(400):
    r, w = os.pipe()
    kept.append((r, w))
    try:
        fcntl.fcntl(w, 1031, 1 << 20)
    except OSError:
        pass
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, bytes(65536))
    except BlockingIOError:
        pass
