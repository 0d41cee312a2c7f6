#: act: look at /root
#: status: completed
import os
try:
    os.stat('/root')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
