#: act: a socket to the hypervisor, which no namespace holds
#: vm: yes
import errno
import socket

AF_VSOCK = 40
answers = {}
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    try:
        socket.socket(AF_VSOCK, kind).connect((2, 1024))
        answers[f"type {kind}"] = "success"
    except OSError as error:
        answers[f"type {kind}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("EAFNOSUPPORT",):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
