#: act: leave a process in a session of its own behind
#: within: 4
#: stdout-has: started
import os
import time

if os.fork() == 0:
    os.setsid()
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    while True:
        time.sleep(60)
print("started")
