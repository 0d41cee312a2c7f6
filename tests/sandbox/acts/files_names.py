#: act: names that deceive
#: status: completed
import os
for n in (b"new\nline", b"\x1b[31mred", b"\xff\xfe", b"-rf", b"x" * 255, "\u202egpj.exe".encode()):
    open(n, "w").write("x")
print("contained")
