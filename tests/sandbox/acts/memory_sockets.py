#: act: keep data in the buffers of sockets
#: options: --memory 48MiB
#: status: memory_exceeded
import socket

filled, pairs = 0, []
try:
    while True:
        left, right = socket.socketpair()
        pairs.append((left, right))
        left.setblocking(False)
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        try:
            while True:
                filled += left.send(bytes(65536))
        except BlockingIOError:
            pass
except OSError:
    pass
print("ESCAPED: sockets hold", filled)
