#: act: keep data in System V segments, which outlive their process
#: options: --memory 64MiB
#: status: memory_exceeded
#: host-check: memory_at_most 64
import ctypes

libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for number in range(32):
    segment = libc.shmget(0, ctypes.c_size_t(16 << 20), 0o600)
    address = libc.shmat(segment, None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise SystemExit("no segment")
    ctypes.memset(address, 1, 16 << 20)
    libc.shmdt(ctypes.c_void_p(address))
print("ESCAPED: 32 segments of 16 MiB")
