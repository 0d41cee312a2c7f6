#: act: run a binary that is in no file system; allowed, and it must gain nothing
#: stdout-has: contained: uid 1000
import os

binary = os.memfd_create("program", 0)
with open("/usr/bin/env", "rb") as source:
    os.write(binary, source.read())
reading, writing = os.pipe()
pid = os.fork()
if pid == 0:
    os.dup2(writing, 1)
    os.execve(binary, ["env", "grep", "-E", "^(Uid|Cap|NoNewPrivs|Seccomp):", "/proc/self/status"], os.environ)
os.close(writing)
status = {}
with open(reading, encoding="ascii") as lines:
    for line in lines:
        name, value = line.split(":", 1)
        status[name] = value.split()
os.waitpid(pid, 0)
capabilities = [name for name, value in status.items() if name.startswith("Cap") and int(value[0], 16)]
if capabilities or status["NoNewPrivs"] != ["1"] or status["Seccomp"] != ["2"] or set(status["Uid"]) != {"1000"}:
    print("ESCAPED:", status)
    raise SystemExit(66)
print("contained: uid", status["Uid"][0], "with the same filter and no capability")
