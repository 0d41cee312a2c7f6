#: act: find a capability, a group, a missing no_new_privs or a missing filter in its own status
#: vm: yes
from pathlib import Path

status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
found = {name: value.strip() for name, value in status.items()}
wrong = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(found[name], 16)]
wrong += [name for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2")) if found[name] != value]
wrong += [name for name in ("Uid", "Gid") if set(found[name].split()) != {"1000"}]
wrong += ["Groups"] if set(found["Groups"].split()) - {"1000", "65534"} else []
wrong += [name for name, file in (("uid_map", "uid_map"), ("gid_map", "gid_map"))
          if len(Path("/proc/self", file).read_text().splitlines()) != 1]
if Path("/proc/self/setgroups").read_text().strip() != "deny":
    wrong.append("setgroups")
if wrong:
    print("ESCAPED:", {name: found.get(name) for name in wrong})
    raise SystemExit(66)
print("contained: no capability, no_new_privs, seccomp mode 2")
