#: act: kill, stop and bother process 1
#: stdout-has: contained: process 1 lives
#: vm: yes
import os
import signal
import time

for number in [*range(1, 32), 34, 64]:
    try:
        os.kill(1, number)
    except OSError:
        pass
    try:
        signal.pidfd_send_signal(os.pidfd_open(1), number)
    except OSError:
        pass
for _ in range(10_000):
    try:
        os.kill(1, signal.SIGCHLD)
    except OSError:
        break
time.sleep(0.2)
with open("/proc/1/stat", encoding="ascii") as file:
    state = file.read().rsplit(")", 1)[1].split()[0]
if state not in "SRD":
    print("ESCAPED: process 1 is", state)
    raise SystemExit(66)
print("contained: process 1 lives")
