#: act: write /usr/bin/python3
#: status: completed
try:
    with open('/usr/bin/python3', "r+" if '/usr/bin/python3' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/usr/bin/python3').read(1) == "c" if '/usr/bin/python3' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
