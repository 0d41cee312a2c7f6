#: act: kill process 1
#: status: completed
import os, signal, time
for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
    os.kill(1, sig)
time.sleep(0.1)
print("contained: it lives, and so do we")
