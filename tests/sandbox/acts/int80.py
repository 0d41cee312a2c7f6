#: needs: x86_64
#: act: the 32-bit entry of the kernel
#: status: crashed
#: stdout-has: calling
import ctypes, mmap
code = bytes.fromhex("b814000000cd80c3")   # mov eax, 20 (getpid); int 0x80; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
print("calling", flush=True)
r = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print("ESCAPED: answered", r)
