#: act: look at /sys/fs/cgroup
#: status: completed
import os
try:
    os.stat('/sys/fs/cgroup')
    print("ESCAPED: it is there")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
