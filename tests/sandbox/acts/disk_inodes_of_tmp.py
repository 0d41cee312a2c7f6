#: act: use up the kernel's inodes with empty files in /tmp and /dev/shm
#: options: --memory 256MiB
import errno
import os

for folder in ("/tmp", "/dev/shm"):
    try:
        for number in range(100_000):
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
        print("ESCAPED: 100,000 files in", folder)
        raise SystemExit(66)
    except OSError as error:
        print("contained:", errno.errorcode[error.errno], number, "files in", folder)
