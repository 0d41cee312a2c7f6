#: act: read /proc/slabinfo
#: status: completed
try:
    data = open("/proc/slabinfo", "rb").read(64)
    if data:
        print("ESCAPED:", data)
        raise SystemExit(66)
    print("contained: empty")
except OSError as e:
    print("contained:", e.strerror)
