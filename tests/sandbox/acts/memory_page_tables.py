#: act: make the kernel's own tables grow by touching one byte in each region of a huge mapping
#: options: --memory 64MiB
#: status: memory_exceeded
import mmap

MAP_NORESERVE = 0x4000
view = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE)
for offset in range(0, 64 << 30, 2 << 20):
    view[offset] = 1
print("ESCAPED: touched 64 GiB")
