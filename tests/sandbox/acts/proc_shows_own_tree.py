#: act: see processes of others, and learn host paths from the command line of process 1
#: options: --env HOST_PID={pid}
#: vm: yes
import os
from pathlib import Path

seen = {int(name) for name in os.listdir("/proc") if name.isdigit()}
tree = {1, os.getpid()}
while more := {pid for pid in seen - tree if int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) in tree}:
    tree |= more
if seen - tree:
    print("ESCAPED: sees", seen - tree)
    raise SystemExit(66)
for pid in (int(os.environ["HOST_PID"]), os.getppid() + 100000):
    try:
        os.kill(pid, 0)
        print("ESCAPED: can signal", pid)
        raise SystemExit(66)
    except ProcessLookupError:
        pass
command = Path("/proc/1/cmdline").read_bytes()
if b"/" in command or Path("/proc/1/comm").read_text() != "init\n":
    print("ESCAPED: process 1 tells", command)
    raise SystemExit(66)
print("contained: own processes only,", len(seen))
