#: act: jump into a 32-bit code segment and make a system call from there
#: needs: x86_64
import ctypes
import mmap
import os
import signal

MAP_32BIT = 0x40
pid = os.fork()
if pid == 0:
    code = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_32BIT,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    assert address < 1 << 31
    # 64 bits: push 0x23; push ADDRESS+16; retf.  32 bits, at 16: exit(66).
    code.write(b"\x6a\x23\x68" + (address + 16).to_bytes(4, "little") + b"\x48\xcb")
    code.seek(16)
    code.write(b"\xb8\x01\x00\x00\x00\xbb\x42\x00\x00\x00\xcd\x80")
    ctypes.CFUNCTYPE(ctypes.c_int)(address)()
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
if status not in (-signal.SIGSYS, -signal.SIGSEGV):
    print(f"ESCAPED: the call was answered, status {status}")
    raise SystemExit(66)
print("contained:", signal.Signals(-status).name)
