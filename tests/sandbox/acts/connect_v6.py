#: act: connect to unique local, link-local, mapped and public addresses over IPv6
import errno
import socket

answers = {}
for address in ("2001:4860:4860::8888", "fd00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "::ffff:8.8.8.8", "::ffff:169.254.169.254",
                "64:ff9b::808:808", "2002:808:808::1", "ff02::1"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            host, _, scope = address.partition("%")
            with socket.socket(socket.AF_INET6, kind) as connection:
                connection.settimeout(2)
                connection.connect((host, 80, 0, socket.if_nametoindex(scope) if scope else 0))
            answers[f"{address} {kind}"] = "success"
        except OSError as error:
            answers[f"{address} {kind}"] = errno.errorcode.get(error.errno, str(error))
for name, answer in answers.items():
    if answer not in ("ENETUNREACH", "EINVAL", "EADDRNOTAVAIL", "EHOSTUNREACH"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
