#: act: write /proc/1/oom_score_adj
#: status: completed
try:
    with open('/proc/1/oom_score_adj', "r+" if '/proc/1/oom_score_adj' in ("/usr/bin/python3", "/etc/passwd") else "w") as f:
        f.write("c")
        f.flush()
    kept = open('/proc/1/oom_score_adj').read(1) == "c" if '/proc/1/oom_score_adj' != "/proc/sysrq-trigger" else False
    if kept:
        print("ESCAPED: written")
        raise SystemExit(66)
    print("contained: it went nowhere")
except OSError as e:
    print("contained:", e.strerror)
