#: act: break the rules of the channel, fill it, and then end with a value, so that whoever reports it waits for ever
#: status: completed
#: host-check: no_value
#: within: 4
import os

for descriptor in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]:
    try:
        os.write(descriptor, b"garbage")
        os.set_blocking(descriptor, False)
        while True:
            os.write(descriptor, bytes(60_000))
    except BlockingIOError:
        os.set_blocking(descriptor, True)
    except OSError:
        pass
print("contained: filled the channel")
"v" * 100_000
