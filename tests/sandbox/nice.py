#: act: raise its priority
#: status: completed
import os
try:
    os.nice(-10)
    print("ESCAPED")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
