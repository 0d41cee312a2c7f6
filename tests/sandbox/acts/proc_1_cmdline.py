#: act: find host paths in the arguments of process 1
#: status: completed
#: vm: yes
data = open("/proc/1/cmdline", "rb").read().strip(b"\0")
if data != b"init":
    print("ESCAPED:", data)
    raise SystemExit(66)
print("contained")
