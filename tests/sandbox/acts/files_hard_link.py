#: act: a hard link to a file of the host
#: status: completed
import os
try:
    os.link("/usr/bin/python3", "p")
    print("ESCAPED")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
