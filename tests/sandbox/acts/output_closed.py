#: act: close standard output and error and go on
#: exit: 7
#: status: failed
import os
import time

print("contained: printed before", flush=True)
os.closerange(0, 3)
time.sleep(0.2)
os._exit(7)
