#: act: write /etc/passwd
#: status: completed
try:
    with open('/etc/passwd', "r+" if '/etc/passwd' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/etc/passwd').read(1) == "c" if '/etc/passwd' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
