#: act: find that a path of the host exists at all
import errno
import os

for path in ("/boot", "/sys/fs/cgroup", "/run/docker.sock", "/home/root", "/etc/machine-id",
             "/root", "/etc/shadow", "/etc/ssh", "/sys/kernel", "/var/log"):
    try:
        os.stat(path)
        print("ESCAPED: there is", path)
        raise SystemExit(66)
    except OSError as error:
        print("contained:", errno.errorcode[error.errno], path)
