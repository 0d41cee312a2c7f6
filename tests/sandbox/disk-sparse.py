#: act: a file of 1 EiB of holes
#: status: disk_exceeded crashed
import os
fd = os.open("x", os.O_CREAT | os.O_WRONLY)
os.ftruncate(fd, 1 << 60)
