#: act: burn CPU time in processes that have left the group and the session
#: options: --cpu-time 1s --timeout 20s
#: status: timeout
#: host-check: cpu_at_most 8000
import os
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                pass
        os._exit(0)
time.sleep(60)
