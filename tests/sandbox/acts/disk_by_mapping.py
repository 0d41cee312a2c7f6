#: act: grow a file with holes beyond the quota and fill the holes through a mapping
#: options: --disk 8MiB
#: status: disk_exceeded crashed
import mmap
import os

files = []
for number in range(4):
    files.append(open(f"hole-{number}", "w+b"))
    os.truncate(files[-1].fileno(), 7 << 20)
    view = mmap.mmap(files[-1].fileno(), 7 << 20)
    for offset in range(0, 7 << 20, 4096):
        view[offset] = 1
print("ESCAPED: 28 MiB through mappings")
