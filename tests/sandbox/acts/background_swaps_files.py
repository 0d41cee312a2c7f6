#: act: swap outputs for links while they are being collected
#: options: --export *:{out} --env HOST_FILE={file}
#: host-check: exported_only a.txt b.txt plain
#: within: 4
import os
import time

if os.fork() == 0:
    os.setsid()
    while True:
        for name in ("a.txt", "b.txt"):
            os.symlink(os.environ["HOST_FILE"], "link")
            os.rename("link", name)
            with open("plain", "w", encoding="ascii") as file:
                file.write("plain")
            os.rename("plain", name)
time.sleep(0.3)
print("contained: left a process that swaps files")
