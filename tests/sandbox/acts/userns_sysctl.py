#: act: make a namespace by way of the limit
#: status: completed
#: vm: yes
import os
value = open("/proc/sys/user/max_user_namespaces").read().strip()
if value != "0":
    print("ESCAPED:", value)
    raise SystemExit(66)
print("contained")
