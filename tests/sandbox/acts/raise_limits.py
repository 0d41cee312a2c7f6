#: act: raise its resource limits, its own and through prlimit
import resource

found = []
for name in dir(resource):
    # Some have no limit in the first place, because the cgroup has it.
    if not name.startswith("RLIMIT_") or name in ("RLIMIT_AS", "RLIMIT_RSS", "RLIMIT_DATA", "RLIMIT_LOCKS"):
        continue
    number = getattr(resource, name)
    soft, hard = resource.getrlimit(number)
    if hard == resource.RLIM_INFINITY and name not in ("RLIMIT_OFILE",):
        found.append(f"{name} is unlimited")
        continue
    for change in (lambda n, h: resource.setrlimit(n, (h, h + 1)), lambda n, h: resource.prlimit(0, n, (h, resource.RLIM_INFINITY))):
        try:
            change(number, hard)
            found.append(f"{name} was raised")
        except (OSError, ValueError):
            pass
if found:
    print("ESCAPED:", found)
    raise SystemExit(66)
print("contained: every limit is a limit")
