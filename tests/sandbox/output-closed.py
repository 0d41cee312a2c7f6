#: act: close its output and go on
#: status: completed
import os
os.close(1)
os.close(2)
x = sum(range(1000))
