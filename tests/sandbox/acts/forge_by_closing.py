#: act: close every descriptor there is, the channel among them, and go on
#: status: failed
#: exit: 5
import os

os.closerange(0, 4096)
os._exit(5)
