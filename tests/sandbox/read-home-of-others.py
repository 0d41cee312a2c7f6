#: act: look at /home/root
#: status: completed
import os
try:
    os.stat('/home/root')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
