#: act: look at /var/log
#: status: completed
import os
try:
    os.stat('/var/log')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
