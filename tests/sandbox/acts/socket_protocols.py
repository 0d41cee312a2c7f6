#: act: rare transport protocols: SCTP, DCCP, UDP-Lite, MPTCP, SMC
import errno
import socket

answers = {}
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, 6):
        for name, protocol in {"sctp": 132, "dccp": 33, "udplite": 136, "mptcp": 262, "smc": 256, "gre": 47, "any": 1}.items():
            try:
                socket.socket(family, kind, protocol).close()
                answer = "success"
            except OSError as error:
                answer = errno.errorcode[error.errno]
            answers[f"{name} {family} {kind}"] = answer
for name, answer in answers.items():
    if answer != "EAFNOSUPPORT":
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
print("contained: EAFNOSUPPORT", len(answers), "kinds")
