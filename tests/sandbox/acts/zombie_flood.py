#: act: leave dead children unburied until no process fits
#: options: --pids 64
#: status: completed process_limit
import errno
import os

count = 0
try:
    while count < 1000:
        if os.fork() == 0:
            os._exit(0)
        count += 1
    print("ESCAPED:", count, "zombies")
    raise SystemExit(66)
except OSError as error:
    print("contained:", errno.errorcode[error.errno], count)
