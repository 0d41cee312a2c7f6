#: act: reach services of the host
#: status: completed
import socket
open_ports = []
for port in (22, 80, 111, 631, 2375, 3306, 5432, 6379, 8000, 8080):
    s = socket.socket()
    s.settimeout(0.2)
    if s.connect_ex(("127.0.0.1", port)) == 0:
        open_ports.append(port)
if open_ports:
    print("ESCAPED:", open_ports)
    raise SystemExit(66)
print("contained")
