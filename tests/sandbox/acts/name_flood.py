#: act: fill the kernel's memory with names of files that do not exist
#: options: --memory 64MiB --timeout 60s
#: status: completed memory_exceeded
#: stdout-lacks: ESCAPED
import os
import time

end = time.monotonic() + 1.5
count = 0
while time.monotonic() < end:
    count += 1
    os.access(f"/tmp/{'x' * 200}{count}", os.F_OK)
print("contained: asked for", count, "names")
