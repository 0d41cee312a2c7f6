#: act: dump its memory to a file
#: status: crashed
import os, resource, signal
try:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    print("ESCAPED", flush=True)
except (OSError, ValueError):
    print("contained", flush=True)
os.kill(os.getpid(), signal.SIGABRT)
