#: act: find process 1 with a capability, without a filter, or free to get more
#: stdout-has: contained
#: stdout-lacks: ESCAPED
#: vm: yes
with open("/proc/1/status", encoding="ascii") as lines:
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
with open("/proc/self/status", encoding="ascii") as lines:
    own = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
wrong = [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(fields[name], 16)]
wrong += [name for name, value in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("Uid", own["Uid"]), ("Groups", own["Groups"])) if fields[name] != value]
# What a child of a zygote has below its last filter is the outer init's and the zygote's, and process 1 has one of its own on the outer init's.
wrong += ["Seccomp_filters"] if int(fields["Seccomp_filters"]) < int(own["Seccomp_filters"]) - 1 else []
if wrong:
    print("ESCAPED:", {name: fields[name] for name in wrong})
    raise SystemExit(66)
print("contained")
