#: act: resolve a name
#: status: completed
import socket
try:
    socket.getaddrinfo("example.org", 80)
    print("ESCAPED")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e)
