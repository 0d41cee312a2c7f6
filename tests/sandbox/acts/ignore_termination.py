#: act: ignore every signal that asks to end
#: options: --timeout 3s
#: status: timeout
#: within: 4
#: stdout-has: printed before
import signal
import time

for number in set(range(1, signal.NSIG)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
    signal.signal(number, signal.SIG_IGN)
print("printed before", flush=True)
while True:
    time.sleep(60)
