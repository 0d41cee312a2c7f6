#: act: look at /etc/machine-id
#: status: completed
import os
try:
    os.stat('/etc/machine-id')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
