#: act: use more of the machine than its share, with several processes
#: options: --cpus 0.5
#: host-check: cpu_share 0.5
import os
import time

children = []
end = time.monotonic() + 1.5
for _ in range(4):
    children.append(os.fork())
    if children[-1] == 0:
        while time.monotonic() < end:
            pass
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
print("contained: shared", len(children))
