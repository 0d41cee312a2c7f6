#: act: leave POSIX queues, System V queues, semaphores and segments behind
import ctypes
import errno
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
counts = {"mq": 0, "msg": 0, "sem": 0, "shm": 0}
make = {
    "mq": lambda n: libc.mq_open(b"/escape-%d" % n, 0o100 | 2, 0o600, None),
    "msg": lambda n: libc.msgget(0x5000 + n, 0o1600),
    "sem": lambda n: libc.semget(0x5000 + n, 1, 0o1600),
    "shm": lambda n: libc.shmget(0x5000 + n, ctypes.c_size_t(4096), 0o1600),
}
for kind, call in make.items():
    while counts[kind] < 500 and call(counts[kind]) >= 0:
        counts[kind] += 1
if counts["mq"] >= 500:
    print("ESCAPED: POSIX queues without a limit")
    raise SystemExit(66)
print("contained:", errno.errorcode.get(ctypes.get_errno()), counts, len(Path("/proc/sysvipc/shm").read_text().splitlines()))
