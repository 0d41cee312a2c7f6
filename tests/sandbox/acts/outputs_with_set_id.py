#: act: leave outputs that are executable and set-id, with attributes, for the host to run
#: options: --export *:{out}
#: host-check: exported_plainly tool script.sh
import os
import shutil

shutil.copy("/usr/bin/env", "tool")
with open("script.sh", "w", encoding="ascii") as file:
    file.write("#!/bin/sh\nid\n")
for name in ("tool", "script.sh"):
    try:
        os.setxattr(name, "user.note", b"attribute")
    except OSError:
        pass
    os.chmod(name, 0o6777)
print("contained: left", oct(os.stat("tool").st_mode))
