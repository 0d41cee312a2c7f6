#: act: look at /etc/ssh
#: status: completed
import os
try:
    os.stat('/etc/ssh')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
