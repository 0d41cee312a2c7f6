#: act: replace itself by itself for ever, so that every clock of the process starts again
#: options: --timeout 1s
#: status: timeout
#: within: 4
import os
import sys

os.execv(sys.executable, [sys.executable, "/home/user/main.py"])
