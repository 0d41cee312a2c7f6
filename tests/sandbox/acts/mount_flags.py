#: act: find a mount that is writable where it should not be, or allows set-id files or devices
import os
from pathlib import Path

WRITABLE = {"/home/user", "/tmp", "/dev/shm", "/dev/pts", "/proc"}
wrong = []
for line in Path("/proc/self/mountinfo").read_text().splitlines():
    fields = line.split()
    point, options, propagation = fields[4], set(fields[5].split(",")), fields[6:fields.index("-")]
    device = point.startswith("/dev/") and not point.startswith(("/dev/shm", "/dev/pts")) or os.path.exists(point) and not os.path.isdir(point)
    if "nosuid" not in options or "nodev" not in options and not device and point != "/dev/pts":
        wrong.append(line)
    if "rw" in options and point not in WRITABLE and not device:
        wrong.append(line)
    if "noexec" not in options and not point.startswith(("/usr", "/opt", "/home/user", "/tmp", "/bin", "/lib", "/sbin")):
        wrong.append(line)
    if any(word.startswith(("shared", "master")) for word in propagation):
        wrong.append(line)
if wrong:
    print("ESCAPED:", *wrong, sep="\n")
    raise SystemExit(66)
print("contained: every mount has its flags")
