#: act: write /dev/x
#: status: completed
try:
    with open('/dev/x', "r+" if '/dev/x' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/dev/x').read(1) == "c" if '/dev/x' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
