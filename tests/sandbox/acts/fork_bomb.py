#: act: fork without end, and try again when it is refused
#: options: --timeout 5s --pids 64
#: status: process_limit
#: vm: yes
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
