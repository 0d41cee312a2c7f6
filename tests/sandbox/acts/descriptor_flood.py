#: act: open files until no descriptor is left, in several processes
#: options: --open-files 256
import errno
import os
import socket

children = []
for opened in (lambda: os.open("/dev/null", os.O_RDONLY), lambda: os.eventfd(0), lambda: socket.socket().detach(), os.pipe):
    child = os.fork()
    if child == 0:
        count = 0
        try:
            while count < 10_000:
                opened()
                count += 1
        except OSError as error:
            os._exit(0 if error.errno == errno.EMFILE and count < 256 else 1)
        os._exit(1)
    children.append(child)
if any(os.waitpid(child, 0)[1] for child in children):
    print("ESCAPED: more than 256 descriptors")
    raise SystemExit(66)
print("contained: EMFILE")
