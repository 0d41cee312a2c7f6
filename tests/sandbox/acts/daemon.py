#: act: leave a daemon behind
#: status: completed
#: host-check: gone 987654
#: vm: yes
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(987654)
    os._exit(0)
print("left")
