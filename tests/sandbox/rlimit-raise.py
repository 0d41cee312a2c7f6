#: act: raise its limits
#: status: completed
import resource
for r in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
    soft, hard = resource.getrlimit(r)
    try:
        resource.setrlimit(r, (hard * 2, hard * 2))
        print("ESCAPED")
        raise SystemExit(66)
    except (OSError, ValueError):
        pass
print("contained")
