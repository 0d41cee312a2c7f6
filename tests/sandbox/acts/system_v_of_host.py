#: act: reach shared memory, semaphores and queues of the host, by key and by number
#: options: --env KEY={key}
#: stdout-lacks: canary
import ctypes
import errno
import os
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
key = int(os.environ["KEY"])
answers = {}
for name, call in {"shmget": lambda: libc.shmget(key, 0, 0), "semget": lambda: libc.semget(key, 0, 0),
                   "msgget": lambda: libc.msgget(key, 0)}.items():
    answers[name] = "success" if call() >= 0 else errno.errorcode[ctypes.get_errno()]
for number in range(64):
    address = libc.shmat(number, None, 0o10000)
    if address != ctypes.c_void_p(-1).value:
        answers[f"shmat {number}"] = f"success {ctypes.string_at(address, 40)}"
for kind in ("shm", "sem", "msg"):
    answers[f"listed {kind}"] = "ENOENT" if len(Path("/proc/sysvipc", kind).read_text().splitlines()) == 1 else "success"
answers["/dev/shm"] = "success" if os.listdir("/dev/shm") else "ENOENT"
for name, answer in answers.items():
    if answer not in ("ENOENT",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
