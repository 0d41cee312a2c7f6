#: act: lock memory into the machine, so that the kernel cannot take it back
import ctypes
import errno
import mmap
import resource

libc = ctypes.CDLL(None, use_errno=True)
soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
view = mmap.mmap(-1, 64 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(view))
if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(64 << 20)) == 0 or hard > 64 << 20:
    print("ESCAPED: locked 64 MiB, the limit is", hard)
    raise SystemExit(66)
print("contained:", errno.errorcode[ctypes.get_errno()], soft)
