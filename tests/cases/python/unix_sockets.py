#: what: unix sockets with a path, without a name and abstract, descriptor passing and peer credentials
#: stdout: path ok, abstract ok, passed b'through a descriptor', peer 1000, datagrams 3
import array
import os
import socket
import struct

for address in ("/tmp/socket", "\0abstract-name"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(address)
        server.listen()
        client.connect(address)
        peer, _ = server.accept()
        with peer:
            client.sendall(b"ping")
            assert peer.recv(10) == b"ping"

left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
with open("/tmp/passed", "w+b") as file:
    file.write(b"through a descriptor")
    file.seek(0)
    left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
_, ancillary, _, _ = right.recvmsg(10, socket.CMSG_SPACE(4))
descriptor = struct.unpack("i", ancillary[0][2])[0]
text = os.read(descriptor, 100)
_, uid, _ = struct.unpack("3i", right.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))

receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(3):
    sender.sendto(b"%d" % number, receiver.getsockname())
datagrams = [receiver.recv(10) for _ in range(3)]
print(f"path ok, abstract ok, passed {text}, peer {uid}, datagrams {len(datagrams)}")
