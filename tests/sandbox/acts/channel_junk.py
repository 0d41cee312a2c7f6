#: act: write junk to every descriptor
#: status: completed
import os
for fd in range(3, 64):
    try:
        for _ in range(1000):
            os.write(fd, b"\xff" * 60000)
    except OSError:
        pass
print("contained")
