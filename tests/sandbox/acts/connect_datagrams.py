#: act: send datagrams, broadcasts and multicasts to the host and to its network
#: options: --env PORT={port}
#: host-check: nobody_connected
import errno
import os
import socket

port = int(os.environ["PORT"])
answers = {}
for address in ("255.255.255.255", "224.0.0.1", "239.255.255.250", "8.8.8.8", "172.17.255.255"):
    for target in (53, 1900, port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 32)
            try:
                sender.sendto(b"escape", (address, target))
                answers[f"{address}:{target}"] = "success"
            except OSError as error:
                answers[f"{address}:{target}"] = errno.errorcode[error.errno]
# These stay on the program's own loopback interface, and the host's server must not hear them.
for address in ("127.0.0.1", "127.1.2.3"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"escape", (address, port))
for name, answer in answers.items():
    if answer not in ("ENETUNREACH",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
