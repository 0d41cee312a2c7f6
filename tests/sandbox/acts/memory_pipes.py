#: act: keep data in pipes, made as large as the kernel allows
#: options: --memory 32MiB
#: status: memory_exceeded
import fcntl
import os

filled = 0
pipes = []
while True:
    try:
        reading, writing = os.pipe2(os.O_NONBLOCK)
    except OSError:
        break
    pipes.append(reading)
    try:
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError:
        pass
    try:
        while True:
            filled += os.write(writing, bytes(65536))
    except BlockingIOError:
        pass
print("ESCAPED: pipes hold", filled)
