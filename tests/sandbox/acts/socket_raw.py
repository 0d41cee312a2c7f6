#: act: raw sockets: ICMP, TCP headers of its own, ping sockets and packets off the wire
import errno
import socket

answers = {}
for name, arguments in {
        "icmp": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "ping": (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        "tcp header": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
        "any header": (socket.AF_INET, socket.SOCK_RAW, 255),
        "icmp6": (socket.AF_INET6, socket.SOCK_RAW, 58),
        "packet": (socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)),
        "cooked packet": (socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)),
        "old packet": (socket.AF_INET, 10, socket.htons(3))}.items():
    try:
        socket.socket(*arguments).close()
        answers[name] = "success"
    except OSError as error:
        answers[name] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EAFNOSUPPORT",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
