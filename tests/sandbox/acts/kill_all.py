#: act: kill everything that can be seen
#: status: completed failed
#: vm: yes
import os, signal
print("contained: only itself", flush=True)
os.kill(-1, signal.SIGKILL)
