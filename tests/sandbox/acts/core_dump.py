#: act: die with a core dump, to leave memory where others find it or run the host's core handler
#: status: crashed
#: host-check: signal 6
import os
import resource

try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("ESCAPED: core dumps are allowed")
except (OSError, ValueError):
    pass
os.abort()
