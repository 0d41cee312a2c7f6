#: act: say that it has ended, and go on
#: stdout-has: contained
#: stdout-lacks: ESCAPED
#: within: 5
import os
import socket
import stat
import sys
import time


def channel():
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                return socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue
    raise SystemExit("no channel")


def frame(kind, payload=b""):
    return b"CSN1" + bytes((kind, 0, 0, 0)) + len(payload).to_bytes(4, "little") + payload


way = channel()
print("contained: it is believed, and ends now", flush=True)
way.send(frame(6))
way.send(frame(7, b"0"))
for number in range(30):
    time.sleep(1)
    with open(f"file-{number}", "w", encoding="ascii") as file:
        file.write("ESCAPED")
    if number > 20:
        print("ESCAPED: still there", file=sys.stdout, flush=True)
