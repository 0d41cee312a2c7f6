#: act: take memory in shared anonymous mappings, which belong to no process in particular
#: options: --memory 64MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
import mmap

blocks = []
for _ in range(32):
    blocks.append(mmap.mmap(-1, 16 << 20))
    blocks[-1].write(bytes(16 << 20))
print("ESCAPED:", len(blocks))
