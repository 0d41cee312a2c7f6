#: act: reach a public address
#: status: completed
import socket
for family, address in ((socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET6, ("2606:4700::1", 53))):
    try:
        s = socket.socket(family)
        s.settimeout(2)
        s.connect(address)
        print("ESCAPED")
        raise SystemExit(66)
    except OSError as e:
        print("contained:", e)
