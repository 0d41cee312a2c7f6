#: act: netlink to audit, devices, netfilter, SELinux, sockets of others and all the rest but routing
import errno
import socket

answers = {}
for protocol in range(1, 32):
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_NETLINK, kind, protocol).close()
            answers[f"protocol {protocol}, type {kind}"] = "success"
        except OSError as error:
            answers[f"protocol {protocol}, type {kind}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer != "EAFNOSUPPORT":
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
print("contained: EAFNOSUPPORT", len(answers), "protocols")
