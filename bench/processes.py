"""What is read from /proc and from cgroups: CPU time and memory of a tree of processes."""

import contextlib
import os
import statistics
import time
from pathlib import Path

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
TICKS_MIN = 10      # fewer of them are no measurement


def stat_fields(pid):
    """/proc/PID/stat from the third field on: what is before it ends with the last bracket."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def tree(root):
    """{pid: (parent, fields)} of root and all its descendants."""
    everyone = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = stat_fields(name)
            except OSError:     # gone meanwhile
                continue
            everyone[int(name)] = (int(fields[1]), fields)
    found, fresh = {}, {root} & everyone.keys()
    while fresh:
        found |= {pid: everyone[pid] for pid in fresh}
        fresh = {pid for pid, (parent, _) in everyone.items() if parent in fresh and pid not in found}
    return found


def tree_cpu_ns(root):
    """utime + stime + cutime + cstime of the whole tree: the living, and the dead that somebody in it waited for."""
    return sum(int(ticks) for _, fields in tree(root).values() for ticks in fields[11:15]) * TICK_NS


class CpuGroup:
    """A cgroup for one process and all that it will start; its counter loses nobody, and counts nanoseconds.

    folder is None where we may not make one; then CPU time comes from tree_cpu_ns().  Processes are one level below it:
    with version 2, Caisson makes its own cgroups in the nearest one that has no processes, and that should be ours.
    Caisson sweeps empty cgroups whose names begin as its own do, so this one's must not.
    """

    count = 0

    def __init__(self):
        CpuGroup.count += 1
        self.folder = None
        for hierarchy, counter in (("cpuacct", "cpuacct.usage"), ("", "cpu.stat")):
            own = own_cgroup(hierarchy)
            folder = own and Path(own, f"bench-caisson-{os.getpid()}-{CpuGroup.count}")
            try:
                if folder:
                    sweep(own)
                    (folder / "processes").mkdir(parents=True)
                    (folder / counter).read_text(encoding="ascii")
            except OSError:
                continue
            if folder:
                self.folder, self.counter = folder, folder / counter
                return

    def procs(self):
        """The file through which a process moves itself in here, by writing 0."""
        return self.folder / "processes/cgroup.procs" if self.folder else os.devnull

    def join(self):
        """For a child before its exec."""
        Path(self.procs()).write_text("0", encoding="ascii")

    def holds(self, pids):
        """Whether all these processes are in here or below: a sandbox may have been put elsewhere."""
        if not self.folder:
            return False
        inside = set()
        for folder, _, _ in os.walk(self.folder):
            with contextlib.suppress(OSError):      # a sandbox has just ended
                inside |= {int(pid) for pid in Path(folder, "cgroup.procs").read_text(encoding="ascii").split()}
        return inside >= {pid for pid in pids if os.path.exists(f"/proc/{pid}")}

    def usage_ns(self):
        if not self.folder:
            return None
        words = self.counter.read_text(encoding="ascii").split()
        return int(words[0]) if len(words) == 1 else int(words[words.index("usage_usec") + 1]) * 1000

    def close(self):
        """The kernel may take a moment to forget a process that was waited for."""
        deadline = time.monotonic() + 5
        while self.folder and self.folder.exists():
            try:
                remove(self.folder)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def remove(cgroup):
    for folder, _, _ in os.walk(cgroup, topdown=False):
        os.rmdir(folder)


def sweep(parent):
    """What a benchmark left that was killed."""
    for folder in Path(parent).glob("bench-caisson-*"):
        if not os.path.exists(f"/proc/{folder.name.split('-')[2]}"):
            with contextlib.suppress(OSError):      # somebody is still in it, or another benchmark was faster
                remove(folder)


def own_cgroup(hierarchy):
    """Where our cgroup of a hierarchy is mounted ("" is version 2), or None."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        if hierarchy in names.split(",") and (hierarchy or not names):
            break
    else:
        return None
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
        _, place, kind, options = line.split()[:4]
        if (kind == "cgroup" and hierarchy in options.split(",")) if hierarchy else kind == "cgroup2":
            return place + path
    return None


def namespace(pid):
    return os.readlink(f"/proc/{pid}/ns/pid")


def private_bytes(pid):
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()[1:]:
        name, kib, _ = line.split()
        sizes[name] = int(kib) * 1024
    return sizes["Private_Clean:"] + sizes["Private_Dirty:"]


def kind_of(pids):
    """What waits in a sandbox: the interpreter among its processes, and whether pandas is loaded in it."""
    for pid in pids:
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        for language, start in (("python", "python"), ("node", "node"), ("bash", "bash")):
            if program.startswith(start):
                loaded = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
                return "data" if "/pandas/" in loaded else language
    return "shell"


def sandboxes(root):
    """{kind: [private bytes of each sandbox]} below a daemon.

    The processes of one pid namespace are one sandbox, unless one of them is above a process in another: then it is
    where sandboxes are forked from.
    """
    processes, own, spaces, groups, inner = tree(root), namespace("self"), {}, {}, set()
    for pid in processes:
        with contextlib.suppress(OSError):      # ended while we looked
            spaces[pid] = namespace(pid)
    for pid, space in spaces.items():
        groups.setdefault(space, []).append(pid)
        above = processes[pid][0]
        if above in spaces and spaces[above] != space:
            inner.add(spaces[above])
    found = {}
    for space, pids in groups.items():
        if space == own or space in inner:
            continue
        with contextlib.suppress(OSError):
            found.setdefault(kind_of(pids), []).append(sum(map(private_bytes, pids)))
    return found


def mean_private(root, kind):
    """(how many sandboxes of the kind wait, mean of their private bytes or None)"""
    sizes = sandboxes(root).get(kind, [])
    return len(sizes), round(statistics.fmean(sizes)) if sizes else None


def available_bytes():
    """What the machine has left for new processes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
