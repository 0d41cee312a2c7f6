#: act: go on computing by ignoring the signals of the CPU clock
#: options: --cpu-time 1s --timeout 20s
#: status: timeout
#: host-check: cpu_at_most 8000
import resource
import signal

for number in set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
    signal.signal(number, signal.SIG_IGN)
try:
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("ESCAPED: the limit is off")
except (OSError, ValueError):
    pass
while True:
    pass
