#: act: reach the system through whatever modules have already imported, past any check of names
import os
import random
import sys

reached = []
for module in list(sys.modules.values()):
    system = getattr(module, "os", None) or getattr(module, "_os", None)
    if system is not None and hasattr(system, "environ") and hasattr(system, "path"):
        reached.append(system)
assert reached and random._os is os
wrong = []
for system in reached:
    for path in ("/etc/shadow", "/root", "/etc/machine-id"):
        if system.path.exists(path) and system.access(path, os.R_OK):
            wrong.append(path)
hidden = ().__class__.__base__.__subclasses__()
loader = next(kind for kind in hidden if kind.__name__ == "BuiltinImporter")
if loader.load_module("posix").getuid() == 0:
    wrong.append("uid 0")
if wrong:
    print("ESCAPED:", wrong)
    raise SystemExit(66)
print("contained: the language is open and the kernel is not,", len(reached))
