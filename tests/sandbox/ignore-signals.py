#: act: ignore every signal and loop
#: status: timeout
#: options: --timeout 2s
import signal
for s in range(1, 32):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
