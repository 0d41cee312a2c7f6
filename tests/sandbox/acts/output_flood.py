#: act: print without end, far more than anybody reads
#: status: completed
#: host-check: output_counted stdout 200000000
#: within: 15
import os

block = b"x" * 999_999 + b"\n"
os.write(1, b"first line\n")
for _ in range(200):
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
os.write(1, b"last line\n")
