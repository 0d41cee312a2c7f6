#: act: become a real-time process
#: status: completed
import os
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    print("ESCAPED")
    raise SystemExit(66)
except OSError as e:
    print("contained:", e.strerror)
