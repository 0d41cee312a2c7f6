#: act: find a descriptor that was left open
#: status: completed
import os
links = {}
for n in range(256):
    try:
        links[n] = os.readlink(f"/proc/self/fd/{n}")
    except OSError:
        pass
bad = {n: t for n, t in links.items() if n > 2 and not t.startswith("socket:")}
if bad or sum(t.startswith("socket:") for t in links.values()) > 1:
    print("ESCAPED:", links)
    raise SystemExit(66)
print("contained")
