#: act: stop for ever
#: status: timeout
#: options: --timeout 3s
#: stdout-has: stopping
import os, signal
print("stopping", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
