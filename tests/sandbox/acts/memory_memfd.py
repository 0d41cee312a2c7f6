#: act: keep data in memory files, which have no name and no quota
#: options: --memory 64MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
import os

descriptors = []
for number in range(32):
    descriptors.append(os.memfd_create(f"block-{number}"))
    os.write(descriptors[-1], bytes(16 << 20))
print("ESCAPED:", len(descriptors))
