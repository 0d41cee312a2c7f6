#: act: find room for a namespace in the sysctls that bound them
#: vm: yes
from pathlib import Path

limits = {path.name: int(path.read_text()) for path in Path("/proc/sys/user").glob("max_*_namespaces")}
assert len(limits) >= 7, limits
for name, limit in limits.items():
    if limit:
        print(f"ESCAPED: {name} is {limit}")
        raise SystemExit(66)
for name in limits:
    try:
        Path("/proc/sys/user", name).write_text("10")
        print(f"ESCAPED: {name} was raised")
        raise SystemExit(66)
    except OSError as error:
        print("contained:", error.strerror, name)
