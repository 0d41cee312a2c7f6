#: act: hide running out of memory by letting a child die of it and going on
#: options: --memory 64MiB
#: status: memory_exceeded
import os
import time

child = os.fork()
if child == 0:
    block = bytearray(512 << 20)
os.waitpid(child, 0)
time.sleep(0.2)
print("went on after the child was killed")
