#: act: fork so that each parent dies at once, and nobody is there to be killed
#: options: --timeout 2s --pids 64
#: status: process_limit timeout completed
#: within: 5
import os

for _ in range(8):
    try:
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    pass
    except OSError:
        pass
