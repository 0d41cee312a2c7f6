#: act: write /proc/sys/user/max_user_namespaces
#: status: completed
try:
    with open('/proc/sys/user/max_user_namespaces', "r+" if '/proc/sys/user/max_user_namespaces' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/proc/sys/user/max_user_namespaces').read(1) == "c" if '/proc/sys/user/max_user_namespaces' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
