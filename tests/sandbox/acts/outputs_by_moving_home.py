#: act: replace the home directory by a link, or take it away
#: options: --export *:{out}
#: host-check: exported kept.txt
import errno
import os

with open("kept.txt", "w", encoding="ascii") as file:
    file.write("kept")
for name, act in {"rename": lambda: os.rename("/home/user", "/tmp/user"), "rmdir": lambda: os.rmdir("/home/user"),
                  "link": lambda: os.symlink("/etc", "/home/user2"), "exchange": lambda: os.rename("/home", "/tmp/home"),
                  "mkdir": lambda: os.mkdir("/home/other"), "replace": lambda: os.replace("/tmp", "/home/user")}.items():
    try:
        act()
        print("ESCAPED:", name)
        raise SystemExit(66)
    except OSError as error:
        print("contained:", errno.errorcode[error.errno], name)
