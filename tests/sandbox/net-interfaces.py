#: act: find another interface than loopback
#: status: completed
import socket
names = [n for _, n in socket.if_nameindex()]
if names != ["lo"]:
    print("ESCAPED:", names)
    raise SystemExit(66)
print("contained")
