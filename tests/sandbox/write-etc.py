#: act: write /etc/x
#: status: completed
try:
    with open('/etc/x', "r+" if '/etc/x' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/etc/x').read(1) == "c" if '/etc/x' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
