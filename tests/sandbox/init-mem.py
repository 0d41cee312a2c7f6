#: act: look into process 1 by /proc/1/mem
#: status: completed
import os
try:
    if os.path.isdir('/proc/1/mem') or '/proc/1/mem'.endswith("/fd"):
        found = os.listdir('/proc/1/mem')
    else:
        found = open('/proc/1/mem', "rb").read(1)
    if found:
        print("ESCAPED:", found)
        raise SystemExit(66)
    print("contained: nothing to read")
except OSError as e:
    print("contained:", e.strerror)
