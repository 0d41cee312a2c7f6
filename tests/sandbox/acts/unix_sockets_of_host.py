#: act: reach unix sockets of the host, abstract and with a path
#: options: --env ABSTRACT={abstract} --env SOCKET={socket}
#: host-check: nobody_connected
import errno
import os
import socket

answers = {}
for address in ("\0" + os.environ["ABSTRACT"], os.environ["SOCKET"], "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket",
                "/run/containerd/containerd.sock", "/run/systemd/private", "\0/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0",
                f"/proc/1/root{os.environ['SOCKET']}"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            try:
                client.connect(address)
                answers[f"{address!r} {kind}"] = "success"
            except OSError as error:
                answers[f"{address!r} {kind}"] = errno.errorcode[error.errno]
for name, answer in answers.items():
    if answer not in ("ECONNREFUSED", "ENOENT", "EACCES", "EPERM"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
