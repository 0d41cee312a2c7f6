#: act: reserve room beyond the quota, by fallocate in many ways
#: options: --disk 8MiB
#: status: disk_exceeded
import os

with open("data", "wb") as file:
    for offset in range(0, 64 << 20, 1 << 20):
        os.posix_fallocate(file.fileno(), offset, 1 << 20)
print("ESCAPED: reserved 64 MiB")
