"""One forbidden act a file.  The act says what it tried; whether it was contained is judged here, from outside."""
import json
import os
import subprocess
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
CAISSON = os.environ.get("CAISSON", os.path.join(os.environ.get("CAISSON_BUILD", "build"), "caisson"))
LANGUAGES = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".sh": "bash"}
SLOW = 4 if os.environ.get("CAISSON_VM") else 1   # an emulated processor
BUSY_S = 30     # what a machine with other work may need for what is done at once

# Acts whose numbers are those of this processor.
NATIVE = ("syscall-", "socket-", "ioctl-", "int80")
# What depends on the kernel's version goes through the emulated machine too; its limits are test_boundary.py's.
ON_EVERY_KERNEL = ("syscall-", "socket-", "init-", "proc-", "status", "write-", "kill-", "limit-", "userns-", "fork-bomb.", "daemon")


def acts():
    for name in sorted(os.listdir(HERE)):
        stem, ext = os.path.splitext(name)
        if ext in LANGUAGES and not stem.startswith("test_"):
            marks = [pytest.mark.vm] if name.startswith(ON_EVERY_KERNEL) else []
            yield pytest.param(name, marks=marks, id=stem)


def directives(path):
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            for mark in ("#:", "//:"):
                if line.startswith(mark):
                    key, _, value = line[len(mark):].strip().partition(": ")
                    found[key] = value
    return found


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def host_state():
    """What a run must leave as it was: mounts, folders of cgroups, files, shared memory."""
    cgroups = set()
    for root, folders, _ in os.walk("/sys/fs/cgroup"):
        cgroups |= {os.path.join(root, folder) for folder in folders if folder.startswith("caisson-")}
    files = {os.path.join(folder, name) for folder in ("/tmp", "/dev/shm", "/run", "/var/tmp") for name in os.listdir(folder)
             if "caisson" in name or name.startswith(("main.", "core"))}
    return {
        "mounts": read("/proc/self/mountinfo"),
        "cgroups": {c for c in cgroups if not in_use(c)},
        "files": files,
        "shared memory": [read(f"/proc/sysvipc/{kind}") for kind in ("shm", "sem", "msg")],
    }


def left_behind(before):
    """What is there that was not.  Another run that ends meanwhile gets its time to be gone too."""
    deadline = time.monotonic() + BUSY_S * SLOW
    while True:
        now = host_state()
        new = {what: now[what] for what in now if (now[what] - before[what] if isinstance(now[what], set) else now[what] != before[what])}
        if not new or time.monotonic() > deadline:
            return new
        time.sleep(0.05)


def in_use(cgroup):
    """Another supervisor's folder, which is alive: its pid is in the name."""
    pid = os.path.basename(cgroup).split("-")[1]
    return os.path.exists(f"/proc/{pid}")


def run(path, options):
    language = LANGUAGES[os.path.splitext(path)[1]]
    done = subprocess.run([CAISSON, "run", "--json", "-l", language, *options, path], capture_output=True, timeout=90 * SLOW, check=False)
    assert done.stdout, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", acts())
def test_act(name):
    if name.startswith(NATIVE) and os.uname().machine != "x86_64":
        pytest.skip("needs x86_64: the act uses its system call numbers")
    path = os.path.join(HERE, name)
    said = directives(path)
    before = host_state()
    started = time.monotonic()
    options = said.get("options", "").split()
    record = run(path, options if "--timeout" in options else [*options, "--timeout", "60s"])
    took = time.monotonic() - started

    context = json.dumps({k: record[k] for k in ("status", "exit_code", "signal", "error", "usage")}) + record["stdout"][-500:] + record["stderr"][-500:]
    assert "ESCAPED" not in record["stdout"], context
    assert record["status"] in said["status"].split(), context
    assert took < record["limits"]["wall_ms"] / 1000 * 1.2 + BUSY_S * SLOW, context
    if record["status"] == "completed" and "stdout-has" not in said:
        assert record["exit_code"] == 0, context
    if "exit" in said:
        assert record["exit_code"] == int(said["exit"]), context
    if "stdout-has" in said:
        assert said["stdout-has"] in record["stdout"], context
    if "files" in said:
        assert [f["name"] for f in record["files"]] == said["files"].split(), record["files"]
    if "peak" in said:
        assert record["usage"].get("memory_peak_bytes", 0) <= int(said["peak"]) + (1 << 20), context
    if "gone" in said:
        left, until = None, time.monotonic() + BUSY_S * SLOW     # what was killed with the answer may still be on its way out
        while left is None or (left and time.monotonic() < until):
            found = subprocess.run(["pgrep", "-f", said["gone"]], capture_output=True, check=False).stdout.split()
            left = [p for p in found if read(f"/proc/{int(p)}/comm").strip() in ("sleep", "python3")]
        assert left == []
    boundary = record["boundary"]
    assert boundary["seccomp"] and boundary["capabilities"] == 0 and boundary["network"] == "none"
    assert left_behind(before) == {}


def test_there_are_many_acts():
    assert len(list(acts())) >= 60


def test_every_act_says_what_it_does():
    for param in acts():
        said = directives(os.path.join(HERE, param.values[0]))
        assert said.get("act") and said.get("status"), param.values[0]
