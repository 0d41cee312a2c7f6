#: act: write files of the system and of the kernel, each of which would change something outside
#: vm: yes
import errno
import os

for path in ("/proc/sys/kernel/core_pattern", "/dev/x", "/etc/passwd", "/etc/x", "/proc/1/oom_score_adj",
             "/opt/caisson/python/run.py", "/proc/sysrq-trigger", "/x", "/run/x", "/proc/sys/user/max_user_namespaces",
             "/usr/bin/python3", "/usr/x"):
    mode = "r+" if os.path.isfile(path) and os.path.getsize(path) else "w"
    try:
        with open(path, mode) as file:
            file.write("c")
            file.flush()
        with open(path) as file:
            if file.read(1) == "c":
                print("ESCAPED: written", path)
                raise SystemExit(66)
        print("contained: nothing was kept by", path)
    except OSError as error:
        print("contained:", errno.errorcode[error.errno], path)
