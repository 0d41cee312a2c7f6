#: act: open the reading end of its own output through /proc and empty it
#: status: completed
#: within: 8
import os
import threading
import time


def steal():
    try:
        reading = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return
    while True:
        try:
            os.read(reading, 65536)
        except BlockingIOError:
            time.sleep(0.001)


threading.Thread(target=steal, daemon=True).start()
for _ in range(2000):
    os.write(1, b"z" * 1000)
