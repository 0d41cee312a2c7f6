#: act: write /usr/x
#: status: completed
try:
    with open('/usr/x', "r+" if '/usr/x' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/usr/x').read(1) == "c" if '/usr/x' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
