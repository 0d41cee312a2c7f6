#: act: write /proc/sys/kernel/core_pattern
#: status: completed
try:
    with open('/proc/sys/kernel/core_pattern', "r+" if '/proc/sys/kernel/core_pattern' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/proc/sys/kernel/core_pattern').read(1) == "c" if '/proc/sys/kernel/core_pattern' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
