#: act: make a set-id copy of a shell and run it, and run it from each writable folder
import os
import shutil
import subprocess

for folder in ("/home/user", "/tmp", "/dev/shm"):
    path = f"{folder}/shell"
    shutil.copy("/bin/bash", path)
    os.chmod(path, 0o6755)
    try:
        shown = subprocess.run([path, "-p", "-c", "echo $UID $EUID; grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status"],
                               capture_output=True, text=True, check=False).stdout.split()
    except PermissionError:
        print("contained: EACCES in", folder)
        continue
    if shown[:2] != ["1000", "1000"] or int(shown[shown.index("CapEff:") + 1], 16) or shown[-1] != "1":
        print("ESCAPED:", shown)
        raise SystemExit(66)
    print("contained: no right gained in", folder)
    os.remove(path)
