#: act: folders 1500 deep
#: status: completed
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
print("contained")
