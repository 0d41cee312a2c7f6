#: act: add a link, an address and a route by routing netlink, where only questions are allowed
import errno
import socket
import struct

NEWLINK, NEWADDR, NEWROUTE, DELLINK = 16, 20, 24, 17
REQUEST, ACK, CREATE, EXCLUSIVE = 1, 4, 0x400, 0x200
KIND_DUMMY = struct.pack("<HHHH", 16, 18, 9, 1) + b"dummy\0\0\0"
lo = socket.if_nametoindex("lo")
answers = {}
for name, kind, body in (
        ("a dummy link", NEWLINK, struct.pack("<BxHiII", 0, 0, 0, 0, 0) + KIND_DUMMY),
        ("an address", NEWADDR, struct.pack("<BBBBi", 2, 8, 0, 0, lo) + struct.pack("<HH4B", 8, 2, 10, 1, 2, 3)),
        ("a default route", NEWROUTE, struct.pack("<BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack("<HHi", 8, 4, lo)),
        ("no loopback", DELLINK, struct.pack("<BxHiII", 0, 0, lo, 0, 0))):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(struct.pack("<IHHII", 16 + len(body), kind, REQUEST | ACK | CREATE | EXCLUSIVE, 1, 0) + body)
        number = struct.unpack("<i", link.recv(4096)[16:20])[0]
        answers[name] = errno.errorcode[-number] if number else "success"
for name, answer in answers.items():
    if answer not in ("EPERM",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
