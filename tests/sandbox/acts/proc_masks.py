#: act: read from /proc what tells of the whole host: memory, symbols, keys, devices, timers and the log
#: vm: yes
import os
from pathlib import Path

FILES = ("kcore keys key-users kmsg kallsyms modules slabinfo vmallocinfo iomem ioports mtrr timer_list sched_debug "
         "kpagecount kpageflags kpagecgroup latency_stats partitions diskstats cmdline config.gz swaps interrupts softirqs "
         "pagetypeinfo buddyinfo locks consoles mdstat allocinfo sysrq-trigger").split()
FOLDERS = ("acpi", "asound", "scsi", "bus", "irq", "driver", "fs", "dynamic_debug", "tty/driver", "pressure")
told = []
for name in FILES:
    try:
        with open(f"/proc/{name}", "rb", buffering=0) as file:
            if file.read(64):
                told.append(name)
    except OSError:
        pass
for name in FOLDERS:
    try:
        told += [f"{name}/{entry}" for entry in os.listdir(f"/proc/{name}")]
    except OSError:
        pass
for name in ("cgroup", "mountinfo"):
    told += [f"{name}: {line}" for line in Path("/proc/self", name).read_text().splitlines() if "caisson-" in line]
if told:
    print("ESCAPED:", told)
    raise SystemExit(66)
print("contained: nothing told by", len(FILES) + len(FOLDERS), "entries")
