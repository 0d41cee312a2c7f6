#: act: write /proc/sysrq-trigger
#: status: completed
try:
    with open('/proc/sysrq-trigger', "r+" if '/proc/sysrq-trigger' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/proc/sysrq-trigger').read(1) == "c" if '/proc/sysrq-trigger' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
