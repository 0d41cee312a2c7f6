#: act: find process 1 with a capability, without a filter, or free to get more
#: stdout-has: contained
#: stdout-lacks: ESCAPED
#: vm: yes
with open("/proc/1/status", encoding="ascii") as lines:
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
with open("/proc/self/status", encoding="ascii") as lines:
    own = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
held = [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(fields[name], 16)]
if held or fields["NoNewPrivs"] != "1" or fields["Seccomp"] != "2" or int(fields["Seccomp_filters"]) < 2 or fields["Groups"] or fields["Uid"] != own["Uid"]:
    print("ESCAPED:", held, fields["NoNewPrivs"], fields["Seccomp"], fields["Seccomp_filters"], fields["Groups"], fields["Uid"])
    raise SystemExit(66)
print("contained")
