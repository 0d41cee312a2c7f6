#: act: a socket of every family and type but unix, internet and routing
import errno
import socket

answers = {}
for family in set(range(64)) - {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}:
    for kind in (1, 2, 3, 4, 5, 6, 10):
        try:
            socket.socket(family, kind, 0).close()
            answers[f"family {family}, type {kind}"] = "success"
        except OSError as error:
            answers[f"family {family}, type {kind}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer != "EAFNOSUPPORT":
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
print("contained: EAFNOSUPPORT", len(answers), "kinds")
