#: act: find an interface, a route, a neighbour or a socket that is not its own
#: vm: yes
import socket
from pathlib import Path

names = [name for _, name in socket.if_nameindex()]
routes = Path("/proc/net/route").read_text().splitlines()[1:]
devices = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
sockets = [line for file in ("tcp", "tcp6", "udp", "udp6", "raw", "packet", "netlink", "unix") if Path("/proc/net", file).exists()
           for line in Path("/proc/net", file).read_text().splitlines()[1:]]
named = [line for line in sockets if "@" in line or "/" in line.split()[-1]]
gateways = [line for line in Path("/proc/net/ipv6_route").read_text().splitlines() if not line.endswith("lo")]
for what, wrong in (("interfaces", set(names) - {"lo"}), ("devices", set(devices) - {"lo"}), ("routes", routes),
                    ("gateways", gateways), ("sockets", named)):
    if wrong:
        print(f"ESCAPED: {what} {wrong}")
        raise SystemExit(66)
print("contained: only lo")
