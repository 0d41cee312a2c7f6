#: act: kill process 1
#: status: completed
import os, signal, time
for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
    try:
        os.kill(1, sig)
    except PermissionError:     # by Landlock's scope, where the program came from a zygote
        pass
time.sleep(0.1)
print("contained: it lives, and so do we")
