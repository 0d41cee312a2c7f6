#: act: stop itself and everybody else, so that nobody is there to be timed out
#: options: --timeout 1s
#: status: timeout
#: within: 4
import os
import signal

for _ in range(3):
    if os.fork() == 0:
        while True:
            pass
try:
    os.kill(-1, signal.SIGSTOP)
except OSError:
    pass
os.kill(os.getpid(), signal.SIGSTOP)
print("ESCAPED: went on after SIGSTOP")
