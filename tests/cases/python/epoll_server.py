#: what: one thread that serves several sockets with epoll, and select on pipes
#: stdout: echoed 5, closed 5, pipe b'ready'
import os
import select
import socket

server = socket.create_server(("127.0.0.1", 0), backlog=8)
server.setblocking(False)
clients = [socket.create_connection(server.getsockname()) for _ in range(5)]
for number, client in enumerate(clients):
    client.sendall(b"message %d" % number)

peers, echoed, closed = {}, 0, 0
with select.epoll() as poll:
    poll.register(server.fileno(), select.EPOLLIN)
    while closed < 5:
        events = poll.poll(5)
        assert events, "nothing happened for five seconds"
        for fd, _ in events:
            if fd == server.fileno():
                peer, _ = server.accept()
                peers[peer.fileno()] = peer
                poll.register(peer.fileno(), select.EPOLLIN)
            elif data := peers[fd].recv(100):
                peers[fd].sendall(data)
                echoed += 1
                if echoed == 5:
                    for number, client in enumerate(clients):
                        assert client.recv(100) == b"message %d" % number
                        client.close()
            else:
                poll.unregister(fd)
                peers.pop(fd).close()
                closed += 1

reading, writing = os.pipe()
assert select.select([reading], [], [], 0) == ([], [], [])
os.write(writing, b"ready")
ready, _, _ = select.select([reading], [], [], 1)
print(f"echoed {echoed}, closed {closed}, pipe {os.read(ready[0], 10)}")
