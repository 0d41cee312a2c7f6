#: act: bury process 1 under thousands of orphans
#: options: --pids 64 --timeout 120s
#: stdout-has: contained
#: within: 120
import os

for _ in range(1000):
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
print("contained: 1000 orphans")
