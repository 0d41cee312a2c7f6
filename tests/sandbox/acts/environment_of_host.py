#: act: find the engine's environment: in its own, in the initial block, in process 1, through any module
#: options: --env GIVEN=1
#: stdout-lacks: canary
import os
import random
from pathlib import Path

HOSTS = ("CAISSON", "PYTEST", "SSH", "XDG_RUNTIME", "XDG_SESSION", "AWS", "DBUS", "SUDO", "INVOCATION", "NOTIFY")
found = dict(random._os.environ)
initial = dict(entry.split("=", 1) for entry in Path("/proc/self/environ").read_text().split("\0") if "=" in entry)
assert found["GIVEN"] == "1"
leaks = {name: value for name, value in {**found, **initial}.items()
         if "canary" in value or name.startswith(HOSTS)}
for process in Path("/proc").glob("[0-9]*/environ"):
    try:
        if "canary" in process.read_text(errors="replace"):
            leaks[str(process)] = "the secret"
    except OSError:
        pass
if leaks:
    print("ESCAPED:", sorted(leaks))
    raise SystemExit(66)
print("contained: variables", *sorted(found))
