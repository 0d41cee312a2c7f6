"""One forbidden act a file, in acts/, and a look at the host before and after it.

An act prints `ESCAPED: why` and ends with 66 if it succeeded, else `contained: why`.  The lines at its top:

| line | meaning |
|---|---|
| `act: TEXT` | what is tried; every one has it |
| `status: WORDS` | the statuses that are right; default: completed |
| `exit: N` | the program's exit status; default: 0 where the status is completed |
| `options: WORDS` | options of `caisson run`; {port} and the like stand for things of the host, see Host |
| `stdout-has: TEXT`, `stdout-lacks: TEXT` | what is in standard output, and what must not be |
| `within: SECONDS` | the command line is back by then, or half a minute later on a busy machine; default: the time limit |
| `host-check: NAME WORDS` | a function of this file, check_NAME, that looks at the record and at the host |
| `needs: WORDS` | Python modules, commands or an architecture, without which the act is skipped |
| `vm: yes` | runs in the emulated machine too |
"""
# shards: 2

import contextlib
import ctypes
import json
import os
import pty
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from caisson_testing import LANGUAGES, SLOW, command, directives, need_engine, read_record, run, skip_unless, summary

KNOWN = ("act", "status", "exit", "options", "stdout-has", "stdout-lacks", "within", "host-check", "needs", "vm")
ACTS = Path(__file__).resolve().parent / "acts"
INTERPRETERS = {"python": "python3", "javascript": "node", "bash": "bash"}
TIMEOUT_S = 60 * SLOW
BUSY_S = 30 * SLOW      # what a machine with other work may need for what is done at once
LISTED = ("/tmp", "/dev/shm", "/run", "/var/tmp")
PR_SET_CHILD_SUBREAPER = 36
HOST_KEYS = 0x0AC70000      # System V keys of this file's own segments; other test programs run this file, too

libc = ctypes.CDLL(None, use_errno=True)


# ---- the host, with things on it that an act could find ----


class Host:
    """A secret in every place from which one could leak, and servers that nobody may reach."""

    def __init__(self):
        self.canary = f"canary-{secrets.token_hex(12)}"
        self.folder = Path(tempfile.mkdtemp(prefix="act-host-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.file = self.folder / "secret.txt"
        self.file.write_text(self.canary)
        self.sockets = []
        tcp = self.listen(socket.AF_INET6, socket.SOCK_STREAM, ("::", 0)) if socket.has_ipv6 else None
        tcp = tcp or self.listen(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))
        self.port = tcp.getsockname()[1]
        self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", self.port))
        self.abstract = f"act-host-{secrets.token_hex(8)}"
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract}")
        self.path = self.folder / "socket"
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.path))
        self.path.chmod(0o777)
        self.bystander = subprocess.Popen(["sleep", "10000"], env={"SECRET": self.canary}, start_new_session=True)
        self.key = HOST_KEYS + secrets.randbelow(1 << 16)
        self.segment = self.share()

    def listen(self, family, kind, address):
        server = socket.socket(family, kind)
        try:
            server.bind(address)
        except OSError:
            server.close()
            return None
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.setblocking(False)
        self.sockets.append(server)
        return server

    def share(self):
        libc.shmat.restype = ctypes.c_void_p
        segment = libc.shmget(self.key, ctypes.c_size_t(4096), 0o1666)
        if segment >= 0:
            address = libc.shmat(segment, None, 0)
            ctypes.memmove(address, self.canary.encode(), len(self.canary))
            libc.shmdt(ctypes.c_void_p(address))
        return segment

    def visitors(self):
        """Who connected or sent something since this was asked the last time."""
        found = []
        for server in self.sockets:
            with contextlib.suppress(BlockingIOError):
                if server.type == socket.SOCK_STREAM:
                    server.accept()[0].close()
                    found.append(server.getsockname())
                else:
                    found.append(server.recv(1000))
        return found

    def close(self):
        self.bystander.kill()
        self.bystander.wait()
        for server in self.sockets:
            server.close()
        if self.segment >= 0:
            libc.shmctl(self.segment, 0, None)
        shutil.rmtree(self.folder)

    def words(self, out):
        return {"port": self.port, "file": self.file, "abstract": self.abstract, "socket": self.path, "pid": self.bystander.pid,
                "key": self.key, "out": out}


@pytest.fixture(scope="module", name="host")
def make_host():
    # What a run leaves behind becomes our child, and so is told from what others do on this machine.
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    host = Host()
    yield host
    host.close()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


# ---- what a run must leave as it was ----


def cgroups():
    """All of ours, those of runs that somebody else has at this moment among them."""
    return {os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names if "caisson" in name}


def abandoned(cgroup):
    """Whether the process that it is named after has ended; another may have got its number since."""
    pid = re.search(r"caisson-(\d+)", os.path.basename(cgroup))
    return not (pid and Path("/proc", pid[1]).exists())


def entries():
    """What lies in the folders where all may write, with the owner."""
    found = {}
    for folder in LISTED:
        with contextlib.suppress(OSError):
            for entry in os.scandir(folder):
                with contextlib.suppress(FileNotFoundError):
                    found[entry.path] = entry.stat(follow_symlinks=False).st_uid
    return found


def system_v():
    return {kind: set(Path("/proc/sysvipc", kind).read_text(encoding="ascii").split("\n")[1:]) for kind in ("shm", "sem", "msg")
            if Path("/proc/sysvipc", kind).exists()}


def identities(kind):
    """{key, id} without the counters, which change, and without the segments of test programs."""
    found = {tuple(line.split()[:2]) for line in kind if line}
    return {(key, number) for key, number in found if int(key) & 0xFFFF0000 != HOST_KEYS}


def state():
    return {"mounts": {line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()},
            "cgroups": cgroups(),
            "entries": entries(),
            "System V": {(kind, *identity) for kind, lines in system_v().items() for identity in identities(lines)}}


def children(known):
    """Our children but the known ones, with the dead ones buried."""
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        if int(pid) not in known:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(int(pid), os.WNOHANG)[0] == 0:
                    found.append(int(pid))
    return found


def processes_of(uid):
    """Pids of a uid that the engine gave to one sandbox alone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if process.stat().st_uid == uid:
                found.append(process.name)
    return found


def differences(before, record, host):
    """What is there now and was not, in words."""
    boundary = record["boundary"] or {}
    uid = boundary.get("host_uid") if boundary.get("own_uid") else None
    now = state()
    new = [f"{what} {thing}" for what in ("mounts", "System V") for thing in now[what] - before[what]]
    new += [f"the cgroup {path}" for path in now["cgroups"] - before["cgroups"] if abandoned(path)]
    for path, owner in now["entries"].items():
        name = os.path.basename(path)
        if path not in before["entries"] and (owner == uid or "escape" in name or name.startswith(("core", "main."))):
            new.append(f"the file {path}")
    new += [f"our child {pid}" for pid in children({host.bystander.pid, int(os.environ.get('CAISSON_DAEMON_PID', 0))})]
    if uid is not None:
        new += [f"process {pid} of uid {uid}" for pid in processes_of(uid)]
    if host.bystander.poll() is not None:
        new.append("the end of a process of the host")
    if host.file.read_text() != host.canary:
        new.append("another text in a file of the host")
    return new


def settled(before, record, host):
    """Supervisor and janitor end a moment after the command line, and others may use this machine too."""
    deadline = time.monotonic() + BUSY_S
    while (new := differences(before, record, host)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return new


# ---- host-check: functions ----


def exported(out):
    """{name: os.stat_result} of everything below a folder."""
    found = {}
    for folder, folders, names in os.walk(out):
        for name in names + [name for name in folders if os.path.islink(os.path.join(folder, name))]:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, out)] = os.lstat(path)
    return found


def check_exported(_record, _host, out, *names):
    files = exported(out)
    assert sorted(files) == sorted(names)
    assert all(os.path.stat.S_ISREG(status.st_mode) and status.st_nlink == 1 for status in files.values())


def check_exported_only(_record, _host, out, *names):
    files = exported(out)
    assert set(files) <= set(names)
    assert all(os.path.stat.S_ISREG(status.st_mode) for status in files.values())
    assert all(Path(out, name).read_text() in ("", "plain") for name in files)


def check_exported_at_least(_record, _host, out, *names):
    files = exported(out)
    assert set(names) <= set(files)
    assert all(os.path.stat.S_ISREG(status.st_mode) for status in files.values())


def check_exported_plainly(_record, _host, out, *names):
    files = exported(out)
    assert sorted(files) == sorted(names)
    for name, status in files.items():
        assert status.st_mode & 0o7777 == 0o644 and not os.listxattr(Path(out, name)), (name, oct(status.st_mode))


def check_odd_names(record, _host, out):
    listed = {file["name"] for file in record["files"]}
    assert "ü (1).txt" in listed and "-rf" in listed and "x" * 255 in listed
    files = exported(out)
    for name in files:
        # Nothing that a terminal or another system could take for something else gets out.
        assert name.isprintable() and not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u2066-\u2069]", name), name
    refused = [file for file in record["files"] if file.get("error")]
    # A pattern means hidden files only where it begins with a dot (glob(7)).
    hidden = [file for file in record["files"] if not file.get("error") and file["name"].rsplit("/", 1)[-1].startswith(".")]
    assert len(files) + len(refused) + len(hidden) == len(record["files"])


def check_listed_at_most(record, _host, _out, most):
    assert len(record["files"]) <= int(most) and record["files_truncated"] is True


def check_listed(record, _host, _out, *names):
    assert [file["name"] for file in record["files"]] == list(names)


def check_gone(_record, _host, _out, text):
    """No process of the act is left; one that was killed with the answer may still be on its way out."""
    deadline = time.monotonic() + BUSY_S
    while (left := sleepers_with(text)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def check_no_trouble(record, _host, _out):
    assert record["status"] == "completed"


def check_memory_at_most(record, _host, _out, mebibytes):
    # Process 1 and the page in which the limit was met count too.
    assert record["usage"].get("memory_peak_bytes", 0) <= (int(mebibytes) << 20) + (2 << 20)


def check_cpu_at_most(record, _host, _out, milliseconds):
    assert record["usage"]["cpu_ms"] <= int(milliseconds)


def check_cpu_share(record, _host, _out, share):
    if "cpu" not in record["boundary"]["controllers"]:
        pytest.skip("needs cgroup: no cpu controller for this user")
    # The quota is over 100 ms: a short run may have one of them more.
    assert record["usage"]["cpu_ms"] <= float(share) * (record["usage"]["wall_ms"] + 200)


def check_output_counted(record, _host, _out, stream, least):
    assert record["truncated"][f"{stream}_total_bytes"] >= int(least)
    assert len(record[stream].encode()) <= record["limits"]["output_bytes"] + 1000


def check_strict_json(record, _host, _out):
    # read_record() has decoded it as strict UTF-8; bytes that are none are kept beside the text.
    assert record["status"] == "completed" and "stdout_base64" in record and "stderr_base64" in record
    assert '"status":"completed","exit_code":0' in record["stdout"]


def check_no_value(record, _host, _out):
    assert record["result"] is None


def check_killed_by_nothing(record, _host, _out):
    assert record["signal"] is None


def check_signal(record, _host, _out, number):
    assert record["signal"] == int(number)
    assert not [file["name"] for file in record["files"] if "core" in file["name"]]


def check_error_type(record, _host, _out, name):
    assert record["error"].get("type") in (name, None) or "exited with code" in record["error"]["message"]


def check_nothing_left(record, _host, _out):
    assert record["boundary"]["seccomp"]


def check_nobody_connected(_record, host, _out):
    assert not host.visitors()


def check_bystander_lives(_record, host, _out):
    assert Path(f"/proc/{host.bystander.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "S"


# ---- the tests ----


def acts():
    for path in sorted(path for path in ACTS.iterdir() if path.suffix in LANGUAGES):
        marks = [pytest.mark.vm] if directives(path, KNOWN).get("vm") == "yes" else []
        yield pytest.param(path, id=path.name, marks=marks)


def wanted_exit(says, statuses):
    if "exit" in says:
        return int(says["exit"])
    return 0 if statuses == ["completed"] else None


@pytest.mark.parametrize("path", acts())
def test_act(path, host, tmp_path):
    says = directives(path, KNOWN)
    assert says.get("act"), "has no line that says what it tries"
    language = LANGUAGES[path.suffix]
    skip_unless(f"{INTERPRETERS[language]} {says.get('needs', '')}")
    out = tmp_path / "out"
    options = says.get("options", "")
    for word, value in host.words(out).items():
        options = options.replace("{%s}" % word, str(value))
    options = shlex.split(options)
    if os.environ.get("CAISSON_ROAD") == "warm" and ("--export" in options or "--work-dir" in options):
        pytest.skip("a daemon knows no folders of this side")
    if "--timeout" not in options:
        options += ["--timeout", f"{TIMEOUT_S}s"]
    limit = float(options[options.index("--timeout") + 1].rstrip("s"))
    host.visitors()
    before = state()
    started = time.monotonic()

    record, _ = run(language, path, *options, timeout=limit + 60 * SLOW, env={**os.environ, "SECRET": host.canary})

    took = time.monotonic() - started
    why = f"{says['act']}: {summary(record)}"
    statuses = says.get("status", "completed").split()
    assert "ESCAPED" not in record["stdout"], why
    assert record["status"] in statuses, why
    if (wanted := wanted_exit(says, statuses)) is not None:
        assert record["exit_code"] == wanted, why
    if "stdout-has" in says:
        assert says["stdout-has"] in record["stdout"], why
    if "stdout-lacks" in says:
        assert says["stdout-lacks"] not in record["stdout"], why
    assert took < float(says.get("within", limit)) * SLOW + BUSY_S, f"took {took:.1f} s; {why}"
    assert host.canary not in json.dumps(record), f"the host's secret is in the record; {why}"
    assert record["boundary"] is None or (record["boundary"]["seccomp"] and record["boundary"]["capabilities"] == 0)
    assert record["boundary"] is None or record["boundary"]["network"] == "none" or "--net" in options
    if "host-check" in says:
        name, *words = says["host-check"].split()
        globals()[f"check_{name}"](record, host, out, *words)
    assert not [name for name in exported(out) if host.canary in Path(out, name).read_text(errors="replace")]
    assert not settled(before, record, host), why


TERMINAL = """
import fcntl, os, termios
found = []
for name in ("/dev/tty", "/dev/console", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"):
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        continue
    if os.isatty(descriptor):
        found.append(name)
        for byte in b"echo escape\\n":
            try:
                fcntl.ioctl(descriptor, termios.TIOCSTI, bytes([byte]))
            except OSError:
                pass
found += [str(n) for n in (0, 1, 2) if os.isatty(n)]
print("ESCAPED" if found or os.getsid(0) != os.getpid() and os.getsid(0) != os.getsid(os.getppid()) else "contained", found)
"""


def test_a_terminal_of_the_host_is_out_of_reach():
    """The command line has a controlling terminal, and the program must not get hold of it."""
    need_engine()
    pid, master = pty.fork()
    if pid == 0:
        words = command("python", ["-c", TERMINAL])
        os.execv(words[0], words)
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(master, 65536):
            shown += part
    assert os.waitpid(pid, 0)[1] == 0
    record = read_record(shown, b"")
    assert record["stdout"] == "contained []\n", summary(record)
    os.close(master)


HOLDER = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.read(reading, 1)
    os.execv("/usr/bin/sleep", ["sleep", sys.argv[1]])
kept = [socket.socket(socket.AF_UNIX), socket.socket()]
kept[0].bind("\\0neighbour"); kept[0].listen()
kept[1].bind(("127.0.0.1", 4711)); kept[1].listen()
open("/dev/shm/neighbour", "w").write("neighbour"); open("/tmp/neighbour", "w").write("neighbour")
libc.shmget(0x4711, ctypes.c_size_t(4096), 0o1666); libc.mq_open(b"/neighbour", 0o102, 0o666, None)
while libc.inotify_init1(0) >= 0:
    pass
timer = ctypes.c_void_p()
while libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    pass
open("/home/user/ready", "w")
os.write(writing, b"x")     # by the sleep it is seen from outside that all is there
os.waitpid(child, 0)
"""

NEIGHBOUR = """
import ctypes, os, socket
libc = ctypes.CDLL(None)
found = []
for family, address in ((socket.AF_UNIX, "\\0neighbour"), (socket.AF_INET, ("127.0.0.1", 4711))):
    try:
        socket.socket(family).connect(address)
        found.append(address)
    except OSError:
        pass
found += [path for path in ("/dev/shm/neighbour", "/tmp/neighbour", "/home/user/ready") if os.path.exists(path)]
found += ["shm"] * (libc.shmget(0x4711, 0, 0) >= 0) + ["mq"] * (libc.mq_open(b"/neighbour", 0) >= 0)
found += [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 50]
if libc.inotify_init1(0) < 0:
    found.append("no inotify left")
timer = ctypes.c_void_p()
if libc.timer_create(1, None, ctypes.byref(timer)) != 0:
    found.append("no timer left")
print("ESCAPED" if found else "contained", found)
"""


def new_marker():
    """Seconds for a sleep of which there is no other."""
    return secrets.randbelow(10 ** 6) + 10 ** 7


def sleepers_with(text):
    """The pids of the host's sleep and python3 processes with a text in their command line."""
    found = subprocess.run(["pgrep", "-f", text], capture_output=True, check=False).stdout.split()
    return [int(pid) for pid in found if command_of(int(pid)) in ("sleep", "python3")]


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return None


def wait_for_sleepers(marker, count):
    deadline = time.monotonic() + 2 * BUSY_S
    while True:
        found = subprocess.run(["pgrep", "-f", f"^sleep {marker}$"], capture_output=True, check=False).stdout.split()
        if len(found) == count:
            return
        assert time.monotonic() < deadline, f"{len(found)} processes instead of {count}"
        time.sleep(0.05)


@pytest.mark.vm
def test_neighbours_do_not_meet():
    """Two sandboxes at the same time: no object of one is the other's, and no quota either."""
    need_engine()
    marker = new_marker()
    words = command("python", ["-c", HOLDER], ["--timeout", "3600s"], [str(marker)])
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        try:
            wait_for_sleepers(marker, 1)
            record, _ = run("python", NEIGHBOUR)
            wait_for_sleepers(marker, 1)
        finally:
            holder.send_signal(signal.SIGINT)
            output, errors = holder.communicate(timeout=2 * BUSY_S)
    assert read_record(output, errors)["status"] == "cancelled"
    if record["boundary"]["own_uid"]:
        assert record["stdout"] == "contained []\n", summary(record)
    else:
        # One uid for all has one quota for all, and the record says so.
        assert "neighbour" not in record["stdout"] and record["boundary"]["degraded"], summary(record)


@pytest.mark.vm
@pytest.mark.parametrize("victim", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_killed_command_line_leaves_nothing(victim, host):
    need_engine()
    before = state()
    marker = new_marker()
    program = f"import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        os.execlp('sleep', 'sleep', '{marker}')\ntime.sleep(600)"
    with subprocess.Popen(command("python", ["-c", program], ["--timeout", "600s"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait_for_sleepers(marker, 3)
        running.send_signal(victim)
        running.communicate(timeout=2 * BUSY_S)
    assert not settled(before, {"boundary": None}, host)
    wait_for_sleepers(marker, 0)    # a daemon ends them a moment after it has lost its client
