#: act: see processes that are not the sandbox's
#: status: completed
#: vm: yes
import os
pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
names = {p: open(f"/proc/{p}/comm").read().strip() for p in pids}
if len(pids) > 3 or names[1] != "init":
    print("ESCAPED:", names)
    raise SystemExit(66)
print("contained")
