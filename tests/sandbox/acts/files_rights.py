#: act: outputs nobody may read
#: status: completed
#: host-check: listed d/f
import os
os.mkdir("d")
open("d/f", "w").write("x")
os.chmod("d/f", 0)
os.chmod("d", 0)
print("contained")
