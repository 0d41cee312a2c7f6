#: act: write /opt/caisson/python/run.py
#: status: completed
try:
    with open('/opt/caisson/python/run.py', "r+" if '/opt/caisson/python/run.py' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/opt/caisson/python/run.py').read(1) == "c" if '/opt/caisson/python/run.py' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
