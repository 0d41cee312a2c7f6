#: act: use more memory than allowed: sysv
#: status: memory_exceeded disk_exceeded failed completed
#: options: --memory 96MiB --timeout 20s
#: peak: 100663296
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(20):
    i = libc.shmget(0, 16 << 20, 0o1600)
    p = libc.shmat(i, None, 0)
    ctypes.memset(p, 1, 16 << 20)
