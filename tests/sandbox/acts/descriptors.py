#: act: find a descriptor that leads out: a folder, a file of the host, or somebody else's socket
#: vm: yes
import os
import socket
import stat

wrong, sockets = [], 0
for name in os.listdir("/proc/self/fd"):
    descriptor = int(name)
    try:
        mode = os.fstat(descriptor).st_mode
        target = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        # The one that listdir() itself had open.
        continue
    if descriptor <= 2:
        if not (stat.S_ISFIFO(mode) or target == "/dev/null"):
            wrong.append((descriptor, target))
    elif stat.S_ISSOCK(mode):
        sockets += 1
        if socket.socket(fileno=os.dup(descriptor)).family != socket.AF_UNIX:
            wrong.append((descriptor, target))
    else:
        wrong.append((descriptor, target))
if wrong or sockets > 1:
    print("ESCAPED:", wrong, sockets)
    raise SystemExit(66)
print("contained: input, output, error and", sockets, "socket")
