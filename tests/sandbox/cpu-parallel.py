#: act: use more processors than its share
#: status: timeout
#: options: --timeout 3s --cpus 1
import os
for _ in range(8):
    if os.fork() == 0:
        break
while True:
    pass
