#: act: connect to private, public, link-local and special addresses over IPv4
#: vm: yes
import errno
import socket
import time

answers = {}
started = time.monotonic()
for address in ("8.8.8.8", "1.1.1.1", "10.0.0.1", "172.16.0.1", "172.17.0.1", "192.168.0.1", "192.168.122.1", "100.64.0.1",
                "198.18.0.1", "240.0.0.1", "2130706433.example", "0x08080808", "134744072"):
    for port in (53, 80, 443, 2375, 6443):
        try:
            socket.create_connection((address, port), timeout=2).close()
            answers[f"{address}:{port}"] = "success"
        except socket.gaierror:
            answers[f"{address}:{port}"] = "ENETUNREACH"
        except OSError as error:
            answers[f"{address}:{port}"] = errno.errorcode.get(error.errno, str(error))
for name, answer in answers.items():
    if answer != "ENETUNREACH":
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
if time.monotonic() - started > 30:
    print("ESCAPED: something took time, so packets went somewhere")
    raise SystemExit(66)
print("contained: ENETUNREACH", len(answers), "addresses")
