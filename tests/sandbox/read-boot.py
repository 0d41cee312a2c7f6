#: act: look at /boot
#: status: completed
import os
try:
    os.stat('/boot')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
