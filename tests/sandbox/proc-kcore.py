#: act: read /proc/kcore
#: status: completed
try:
    data = open("/proc/kcore", "rb").read(64)
    if data:
        print("ESCAPED:", data)
        raise SystemExit(66)
    print("contained: empty")
except OSError as e:
    print("contained:", e.strerror)
