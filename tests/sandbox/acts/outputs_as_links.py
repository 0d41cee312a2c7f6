#: act: leave links as outputs that lead to secrets: absolute, relative, magic, in folders, in circles
#: options: --export *:{out} --env HOST_FILE={file}
#: host-check: exported kept.txt
#: stdout-has: contained
import os

os.makedirs("folder/inner")
for name, target in {"absolute": os.environ["HOST_FILE"], "shadow": "/etc/shadow", "passwd": "/etc/passwd", "relative": "../../etc/passwd",
                     "dotted": "../../../../../../../../etc/shadow", "magic-root": "/proc/self/root", "magic-cwd": "/proc/self/cwd",
                     "magic-fd": "/proc/self/fd/0", "environment": "/proc/1/environ", "up": "..", "all": "/", "circle": "circle",
                     "folder/back": "../..", "folder/inner/etc": "/etc", "home": "/home/user", "device": "/dev/zero",
                     "folder/secret": os.environ["HOST_FILE"], "null": "/dev/null", "long": "a/" * 2000}.items():
    os.symlink(target, name)
with open("kept.txt", "w", encoding="ascii") as file:
    file.write("kept")
print("contained: left links")
