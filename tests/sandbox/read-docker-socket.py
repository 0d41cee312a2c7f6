#: act: look at /run/docker.sock
#: status: completed
import os
try:
    os.stat('/run/docker.sock')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
