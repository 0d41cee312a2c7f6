#: act: open pseudo-terminals until the kernel has no more
import errno
import os

count = 0
try:
    while count < 4096:
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        count += 1
    print("ESCAPED:", count, "terminals")
    raise SystemExit(66)
except OSError as error:
    if count > 64:
        print("ESCAPED:", count, "terminals")
        raise SystemExit(66) from None
    print("contained:", errno.errorcode[error.errno], count)
