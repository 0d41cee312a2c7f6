#: act: look at /sys/kernel
#: status: completed
import os
try:
    os.stat('/sys/kernel')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
