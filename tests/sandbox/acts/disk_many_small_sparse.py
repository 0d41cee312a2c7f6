#: act: many sparse files, to make the reader busy
#: status: completed
import os
for i in range(900):
    fd = os.open(str(i), os.O_CREAT | os.O_WRONLY)
    os.ftruncate(fd, 90 << 20)
    os.close(fd)
print("contained")
