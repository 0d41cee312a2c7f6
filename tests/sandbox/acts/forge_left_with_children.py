#: act: say that it has ended well while a child still works, and fail then
#: status: failed
#: exit: 3
#: stdout-has: the child went on
import os
import socket
import stat
import time

for name in os.listdir("/proc/self/fd"):
    try:
        if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
            way = socket.socket(fileno=os.dup(int(name)))
    except OSError:
        continue
pid = os.fork()
if pid == 0:
    time.sleep(0.5)
    print("contained: the child went on", flush=True)
    os._exit(0)
for kind, payload in (6, b""), (7, b"0"):
    way.send(b"CSN1" + bytes((kind, 0, 0, 0)) + len(payload).to_bytes(4, "little") + payload)
os.waitpid(pid, 0)
raise SystemExit(3)
