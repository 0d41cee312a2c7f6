"""The boundary and the limits as the record tells them, on whatever host this is: root or not, cgroup v1 or v2."""
import json
import os
import subprocess
import time

import pytest

BUILD = os.environ.get("CAISSON_BUILD", "build")
CAISSON = os.environ.get("CAISSON", os.path.join(BUILD, "caisson"))
os.environ["CAISSON_DAEMON"] = "never"      # a daemon of this host, or of another test, is not what is tested
SLOW = 4 if os.environ.get("CAISSON_VM") else 1   # an emulated processor

pytestmark = pytest.mark.vm


def run(*args, **kwargs):
    done = subprocess.run([CAISSON, "run", "--json", *args], capture_output=True, timeout=120, check=False, **kwargs)
    assert done.stdout, done.stderr.decode()
    return json.loads(done.stdout)


def python(code, *args):
    return run("-l", "python", "-c", code, *args)


@pytest.fixture(scope="module")
def boundary():
    record = python("print(1)")
    assert record["status"] == "completed", record["error"]
    return record["boundary"]


def until(condition):
    """Wait for what has to happen, on a busy machine, too."""
    deadline = time.monotonic() + 60 * SLOW
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def has(boundary, controller):
    if controller not in boundary["controllers"]:
        pytest.skip(f"needs cgroup: no {controller} controller for this user")


def test_every_wall_stands(boundary):
    assert sorted(boundary["namespaces"]) == ["cgroup", "ipc", "mount", "network", "pid", "user", "uts"]
    assert boundary["seccomp"] and boundary["no_new_privileges"]
    assert boundary["capabilities"] == 0
    assert boundary["network"] == "none"
    assert boundary["rootless"] == (os.geteuid() != 0)
    assert boundary["own_uid"] == (os.geteuid() == 0)


def test_the_record_says_what_the_kernel_says(boundary):
    record = python("print(open('/proc/self/status').read())")
    fields = dict(line.split(":", 1) for line in record["stdout"].splitlines() if ":" in line)
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0


def test_landlock_is_in_force_where_the_kernel_has_it(boundary):
    doctor = json.loads(subprocess.run([CAISSON, "doctor", "--json"], capture_output=True, check=False).stdout)
    check = next(c for c in doctor["checks"] if c["name"] == "Landlock")
    assert (boundary["landlock_abi"] > 0) == (check["state"] == "ok")
    if not boundary["landlock_abi"]:
        assert any("Landlock" in text for text in boundary["degraded"])
        refused = python("print(1)", "--landlock", "require")
        assert refused["status"] == "isolation_unavailable" and refused["stdout"] == ""
        assert "lsm=landlock" in refused["error"]["message"]
        return
    # What modes and mounts allow, and Landlock alone refuses: to write to a file of /proc, and (from ABI 5 on) an ioctl on a device.
    record = python("import errno, fcntl, os\nfor act in (lambda: os.open('/proc/self/comm', os.O_WRONLY), lambda: fcntl.ioctl(os.open('/dev/null', os.O_RDONLY), 0x5401)):\n"
                    "    try: act()\n    except OSError as error: print(errno.errorcode[error.errno])\n    else: print('done')")
    assert record["stdout"].split() == ["EACCES", "EACCES" if boundary["landlock_abi"] >= 5 else "ENOTTY"], record


def test_controllers_that_are_missing_are_refused_when_required(boundary):
    record = python("print(1)", "--cgroup", "require")
    if len(boundary["controllers"]) == 3:
        assert record["status"] == "completed"
    else:
        assert record["status"] == "isolation_unavailable" and record["boundary"] is None
        assert "Delegate=yes" in record["error"]["message"]


def test_memory_of_one_process():
    record = python("x = bytearray(200 << 20); print(len(x))", "--memory", "64MiB")
    assert record["status"] == "memory_exceeded", record
    assert "64MiB" in record["error"]["message"]
    assert record["usage"]["memory_peak_bytes"] <= (64 << 20) + (1 << 20)


def test_memory_of_the_whole_tree(boundary):
    has(boundary, "memory")
    code = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        block = bytearray(30 << 20)
        time.sleep(20)
        os._exit(0)
time.sleep(20)
"""
    record = python(code, "--memory", "128MiB")
    assert record["status"] == "memory_exceeded", record


def test_memory_of_files_in_tmpfs(boundary):
    has(boundary, "memory")
    code = """
for path in ('/tmp/a', '/dev/shm/b', 'c'):
    with open(path, 'wb') as f:
        for _ in range(40):
            f.write(bytes(1 << 20))
"""
    record = python(code, "--memory", "64MiB")
    assert record["status"] == "memory_exceeded", record


def test_cpu_share(boundary):
    has(boundary, "cpu")
    code = """
import multiprocessing, time
def burn():
    end = time.time() + 2
    while time.time() < end:
        pass
if __name__ == '__main__':
    ps = [multiprocessing.Process(target=burn) for _ in range(4)]
    [p.start() for p in ps]; [p.join() for p in ps]
"""
    # A share that is there even when others want the processors, too: else nothing is throttled.
    record = python(code, "--cpus", "0.25", "--timeout", "120s")
    assert record["status"] == "completed", record
    assert record["usage"]["cpu_ms"] / record["usage"]["wall_ms"] <= 0.25 * 1.2
    assert record["usage"]["throttled_ms"] > 0


def test_cpu_time():
    record = python("while True: pass", "--cpu-time", "1s", "--timeout", "60s")
    assert record["status"] == "timeout", record
    assert "CPU" in record["error"]["message"] and "--cpu-time" in record["error"]["hint"]
    assert record["usage"]["cpu_ms"] < 10000


def test_wall_clock_kills_the_tree_and_keeps_everything():
    code = """
import subprocess, time
print('printed')
open('written.txt', 'w').write('kept')
subprocess.Popen(['sleep', '4242'], start_new_session=True)
time.sleep(100)
"""
    limit = 2 * SLOW
    before = time.monotonic()
    record = python(code, "--timeout", f"{limit}s")
    assert time.monotonic() - before < 60 * SLOW
    assert record["status"] == "timeout" and record["stdout"] == "printed\n"
    assert record["error"]["message"] == f"Execution timeout after {limit} seconds"
    assert [f["name"] for f in record["files"]] == ["written.txt"]
    assert subprocess.run(["pgrep", "-f", "^sleep 4242$"], capture_output=True, check=False).returncode == 1


def test_processes():
    code = """
import os, time
pids = []
while True:
    pid = os.fork()
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    pids.append(pid)
"""
    record = python(code, "--pids", "16")
    assert record["status"] == "process_limit", record
    assert "16" in record["error"]["message"]


def test_the_whole_limit_of_processes_is_the_programs(boundary):
    has(boundary, "pids")
    code = """
import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        n += 1
except BlockingIOError:
    print(n)
"""
    record = python(code, "--pids", "16")
    assert record["stdout"] == "15\n"   # and the program itself


def test_disk():
    record = python("open('big', 'wb').write(bytes(8 << 20))", "--disk", "4MiB")
    assert record["status"] == "disk_exceeded", record
    assert "No space left on device" in record["stderr"]


def test_inodes():
    record = python("for i in range(100): open(str(i), 'w')", "--disk-files", "32")
    assert record["status"] == "disk_exceeded", record
    assert "32 files" in record["error"]["message"]


def test_uids_of_sandboxes_differ(boundary):
    if not boundary["own_uid"]:
        pytest.skip("needs root: an ordinary user has one uid for all")
    running = [subprocess.Popen([CAISSON, "run", "--json", "-l", "bash", "-c", "sleep 1"], stdout=subprocess.PIPE) for _ in range(4)]
    uids = [json.loads(p.communicate()[0])["boundary"]["host_uid"] for p in running]
    assert len(set(uids)) == 4 and min(uids) >= 65536


def folders():
    found = []
    for root, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(root, name) for name in names if name.startswith("caisson-")]
    return found


def test_nothing_remains(boundary):
    words = [CAISSON, "run", "-q", "-l", "python", "-c", "import os, time; os.fork(); time.sleep(3)"]
    running = [subprocess.Popen(words) for _ in range(3)]
    until(lambda: all(children_of(run_.pid) for run_ in running))
    supervisors = [pid for run_ in running for pid in children_of(run_.pid)]
    if boundary["controllers"]:      # a slow machine may look when the programs are over
        until(lambda: folders_of(supervisors) or all(run_.poll() is not None for run_ in running))
    assert [run_.wait(timeout=60 * SLOW) for run_ in running] == [0, 0, 0]
    until(lambda: not folders_of(supervisors))     # a supervisor ends a moment after its command line


def children_of(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, check=False).stdout
    return [int(p) for p in out.split()]


@pytest.mark.parametrize("victim", ["caisson", "supervisor"])
def test_kill_9_leaves_nothing(victim):
    marker = f"4{os.getpid()}"
    runs = [subprocess.Popen([CAISSON, "run", "-q", "-l", "bash", "--timeout", "3600s", "-c", f"sleep {marker} & sleep {marker}"]) for _ in range(5)]
    until(lambda: sleepers(marker) == 10)
    supervisors = [pid for run_ in runs for pid in children_of(run_.pid)]
    assert len(supervisors) == 5
    mine = folders_of(supervisors)
    for pid in [r.pid for r in runs] if victim == "caisson" else supervisors:
        os.kill(pid, 9)
    for r in runs:
        assert r.wait(timeout=60 * SLOW) == (-9 if victim == "caisson" else 125)
    until(lambda: sleepers(marker) == 0)
    until(lambda: not [f for f in mine if os.path.exists(f)])


def sleepers(marker):
    return int(subprocess.run(["pgrep", "-fc", f"^sleep {marker}$"], capture_output=True, check=False).stdout or 0)


def folders_of(pids):
    return [f for f in folders() if any(f"/caisson-{pid}-" in f for pid in pids)]


# ---- memory of the host ----

USED = ("memory", "cpu", "cpuacct", "cpu,cpuacct", "pids", "freezer")   # by supervisors


@pytest.fixture
def small_host(boundary):
    """A cgroup of 200 MiB above those of the sandboxes; the words that start a command in it."""
    has(boundary, "memory")
    if boundary["cgroup"] != "v1" or os.geteuid() != 0:
        pytest.skip("needs cgroup v1 as root: on v2 a group with processes cannot have groups below it")
    # In every hierarchy, as a container has it.  Supervisors beside it remove stale groups whose names begin with caisson-.
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        groups = [line.rstrip("\n").split(":", 2)[1:] for line in lines]
    folders = [f"/sys/fs/cgroup/{names}{own}/test-of-caisson-{os.getpid()}" for names, own in groups if names in USED and os.path.isdir(f"/sys/fs/cgroup/{names}{own}")]
    limited = next(folder for folder in folders if folder.startswith("/sys/fs/cgroup/memory"))
    try:
        for folder in folders:
            os.mkdir(folder)
    except OSError as error:
        pytest.skip(f"needs a cgroup of its own: {error}")
    with open(f"{limited}/memory.limit_in_bytes", "w", encoding="ascii") as limit:
        limit.write(str(200 << 20))
    yield ["sh", "-c", 'for f in ' + " ".join(folders) + '; do echo $$ >$f/cgroup.procs || exit; done; exec "$@"', "sh"]
    until(lambda: all([is_removed(folder) for folder in folders]))


def is_removed(folder):
    """A group is removed when the janitor of the supervisor has removed what was in it."""
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


@pytest.mark.parametrize("use, limit, status", [(400, "512MiB", "capacity"), (400, "64MiB", "memory_exceeded"), (30, "512MiB", "completed")])
def test_it_is_told_apart_whose_memory_was_used_up(small_host, use, limit, status):
    done = subprocess.run([*small_host, CAISSON, "run", "--json", "--daemon", "never", "-l", "python", "-c", f"x = bytearray({use} << 20)", "--memory", limit],
                          capture_output=True, timeout=120, check=False)
    record = json.loads(done.stdout)
    assert record["status"] == status, record["error"]
    if status == "capacity":
        assert record["error"]["message"].startswith("The host had no memory left") and done.returncode == 125
        assert record["usage"]["memory_peak_bytes"] <= 200 << 20
