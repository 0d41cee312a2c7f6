#: act: close every descriptor
#: status: completed
import os
os.closerange(3, 256)
print("contained")
