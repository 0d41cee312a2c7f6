#: act: look at /etc/shadow
#: status: completed
import os
try:
    os.stat('/etc/shadow')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
