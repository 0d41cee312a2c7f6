#: act: never reap
#: status: completed
import os
for _ in range(2000):
    try:
        if os.fork() == 0:
            os._exit(0)
    except BlockingIOError:
        break
print("contained")
