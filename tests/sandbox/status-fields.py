#: act: keep any capability, or no filter
#: status: completed
fields = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
bad = [k for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(fields[k], 16)]
if bad or fields["NoNewPrivs"].strip() != "1" or fields["Seccomp"].strip() != "2":
    print("ESCAPED:", bad, fields["NoNewPrivs"], fields["Seccomp"])
    raise SystemExit(66)
print("contained")
