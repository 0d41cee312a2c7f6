#: act: use more memory than allowed: memfd
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
import os
fds = []
for _ in range(50):
    fd = os.memfd_create("x")
    fds.append(fd)
    for _ in range(8):
        os.write(fd, bytes(1 << 20))
