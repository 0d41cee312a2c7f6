#: act: queue signals until the kernel has no more room for them
import ctypes
import errno
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
count = 0
while count < 100_000:
    if libc.sigqueue(os.getpid(), 40, ctypes.c_void_p(count)) != 0:
        print("contained:", errno.errorcode[ctypes.get_errno()], count)
        raise SystemExit
    count += 1
print("ESCAPED:", count, "signals are queued")
raise SystemExit(66)
