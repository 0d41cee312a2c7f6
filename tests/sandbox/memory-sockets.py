#: act: use more memory than allowed: sockets
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
import socket
kept = []
for _ in range(400):
    a, b = socket.socketpair()
    a.setblocking(False)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    kept.append((a, b))
    try:
        while True:
            a.send(bytes(65536))
    except BlockingIOError:
        pass
