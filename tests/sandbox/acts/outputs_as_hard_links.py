#: act: leave hard links as outputs, to files of the host and to its own
#: options: --export *:{out}
#: host-check: exported kept.txt
#: stdout-has: contained
import errno
import os

for target in ("/etc/passwd", "/usr/bin/env", "/etc/ld.so.cache", "/proc/self/environ", "/opt/caisson/python/run.py", "/dev/null"):
    for follow in (True, False):
        try:
            os.link(target, "hard", follow_symlinks=follow)
            print("ESCAPED: a hard link to", target)
            raise SystemExit(66)
        except OSError as error:
            print("contained:", errno.errorcode[error.errno], target)
with open("twice", "w", encoding="ascii") as file:
    file.write("twice")
os.link("twice", "twice-again")
with open("kept.txt", "w", encoding="ascii") as file:
    file.write("kept")
