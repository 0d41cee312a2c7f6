#: act: exec itself for ever, to renew its time
#: status: timeout
#: options: --timeout 2s
import os, sys
os.execv(sys.executable, [sys.executable, "/home/user/main.py"])
