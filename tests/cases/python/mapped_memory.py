#: what: a file mapped into memory that a child process changes
#: stdout: header CHNG, size 8192, found at 4096, anonymous 42
import mmap
import os

PATH = "/tmp/mapped.bin"
with open(PATH, "wb") as file:
    file.write(b"HEAD" + bytes(4092))

with open(PATH, "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view.resize(8192)
    view[4096:4100] = b"TAIL"
    view.flush()
    anonymous = mmap.mmap(-1, 4096)
    pid = os.fork()
    if pid == 0:
        view[0:4] = b"CHNG"
        anonymous[0] = 42
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    header = bytes(view[:4]).decode()
    where = view.find(b"TAIL")
    value = anonymous[0]

with open(PATH, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
    assert view[4096:4100] == b"TAIL"
    try:
        view[0] = 0
        raise AssertionError("a read-only map was written")
    except TypeError:
        pass
print(f"header {header}, size {os.path.getsize(PATH)}, found at {where}, anonymous {value}")
