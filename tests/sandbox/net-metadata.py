#: act: ask the cloud for keys
#: status: completed
import socket, time
t = time.time()
s = socket.socket()
s.settimeout(30)
try:
    s.connect(("169.254.169.254", 80))
    print("ESCAPED")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e)
assert time.time() - t < 20
