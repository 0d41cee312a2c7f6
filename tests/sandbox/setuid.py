#: act: become root
#: status: completed
import os
for f in (os.setuid, os.setgid):
    try:
        f(0)
        print("ESCAPED")
        raise SystemExit(66)
    except OSError as e:
        print("contained:", e.strerror)
