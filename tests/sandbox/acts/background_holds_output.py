#: act: leave a grandchild behind that holds standard output and goes on printing
#: within: 4
#: stdout-has: started
#: stdout-lacks: line 1000
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(100_000):
            print("line", number, flush=True)
            time.sleep(0.02)
    os._exit(0)
os.wait()
print("started", flush=True)
