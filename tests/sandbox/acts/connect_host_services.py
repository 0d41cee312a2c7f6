#: act: reach a server of the host by TCP, by every address that could mean this machine
#: options: --env PORT={port}
#: host-check: nobody_connected
import errno
import os
import socket

port = int(os.environ["PORT"])
answers = {}
for address in ("127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "localhost", "sandbox",
                "host.docker.internal", "gateway.docker.internal", "172.17.0.1", "10.0.2.2", "169.254.1.1"):
    try:
        socket.create_connection((address, port), timeout=1).close()
        answers[address] = "success"
    except socket.gaierror:
        answers[address] = "ENETUNREACH"
    except OSError as error:
        answers[address] = errno.errorcode.get(error.errno, str(error))
for name, answer in answers.items():
    if answer not in ("ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL"):
        print(f"ESCAPED: {name} answered {answer}")
        raise SystemExit(66)
    print("contained:", answer, name)
