#: act: reserve the disk
#: status: disk_exceeded
#: options: --disk 8MiB
import os
fd = os.open("x", os.O_CREAT | os.O_WRONLY)
os.posix_fallocate(fd, 0, 1 << 40)
