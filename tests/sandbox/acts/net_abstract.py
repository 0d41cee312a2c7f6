#: act: find abstract sockets of the host
#: status: completed
lines = open("/proc/net/unix").read().splitlines()[1:]
bad = [l for l in lines if "@" in l]
if bad:
    print("ESCAPED:", bad)
    raise SystemExit(66)
print("contained")
