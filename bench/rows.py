"""What can be measured: a class for each kind of row."""

import contextlib
import functools
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from daemon import Broken, clean_environment
from processes import available_bytes

BENCH = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
HUMAN_EVAL = Path(os.environ.get("CAISSON_DATA", BENCH.parent.parent / "shared" / "data")) / "HumanEval.jsonl.gz"
WITHIN_SECONDS = 120
ROOM_BYTES = 6 << 20       # for a waiting sandbox, with what the kernel holds for it
DESCRIPTORS = 14           # for each: caissond has one sandbox for so many (engine_places())
DESCRIPTORS_MORE = 500     # and for everything else

IMAGES = {"python": "system", "data": "data"}      # which zygote is behind a kind of sandbox (processes.kind_of)

PRINT = "print(1)"
NUMPY = "import numpy as np\na = np.arange(10000.0)\nprint(float((a * a).sum()))"
PANDAS = """import pandas as pd
frame = pd.DataFrame({"key": [i % 10 for i in range(1000)], "value": range(1000)})
print(frame.groupby("key")["value"].sum().to_dict())"""
CODES = {"print": PRINT, "numpy": NUMPY, "pandas": PANDAS}

# Libraries that start threads at import would make forks unsafe, and cost the cold peers time.
ONE_THREAD = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}


@functools.cache
def expected(code):
    return subprocess.run([PYTHON, "-I", "-c", CODES[code]], capture_output=True, text=True, check=True,
                          timeout=WITHIN_SECONDS, env={**os.environ, **ONE_THREAD}).stdout


@dataclass
class Slice:
    """Some runs of one row, one after the other."""

    ns: list            # of each run
    elapsed_ns: int     # of all together
    cpu_ns: int = None
    count: int = None   # of runs, where ns has others than these

    @property
    def runs(self):
        return self.count or len(self.ns)


class Row:
    """base is the name of the row that ratios are to; runs and seconds bound one slice, and 0 seconds is no bound."""

    cpu_by = None
    memory = None
    throughput = False

    def __init__(self, name, base, runs, seconds=0):
        self.name, self.base, self.runs, self.seconds = name, base or name, runs, seconds

    def missing(self, _bench):
        """Why it cannot be measured here, or None."""
        return None

    def prepare(self, bench):
        """Once, before the first slice."""


class Floor:
    """A process of bench/floor.py, or of another program that answers as it does."""

    def __init__(self, *words, script="floor.py"):
        self.process = subprocess.Popen([PYTHON, "-I", BENCH / script, *words], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **ONE_THREAD, "MPLBACKEND": "Agg"})
        self.preloaded = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Broken("the floor has ended")
        return json.loads(line)

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")

    def ask(self, **command):
        self.send(**command)
        return self.read()

    def close(self):
        with contextlib.suppress(BrokenPipeError):      # it has failed, which was noted
            self.process.stdin.close()
        self.process.wait()


class FloorRow(Row):
    def __init__(self, name, base, runs, variant, code, think=1):
        super().__init__(name, base, runs)
        self.variant, self.code, self.think = variant, code, think

    def prepare(self, bench):
        self.memory = bench.floor(self.variant).ask(do="memory", source=CODES[self.code])

    def slice(self, bench):
        answer = bench.floor(self.variant).ask(
            do="slice", source=CODES[self.code], count=self.runs, seconds=0, expected=expected(self.code),
            think_ms=bench.think_ms * self.think)
        return Slice(**answer)


def program(lines):
    """A Python program of so many lines, of the kind that models write: functions, loops, texts, some imports."""
    block = (BENCH / "policy-block.txt").read_text() + "\n\n"
    blocks, size = [], block.count("\n")
    while len(blocks) * size < lines:
        blocks.append(block.replace("NUMBER", str(len(blocks))))
    return "".join("".join(blocks).splitlines(keepends=True)[:lines])


class ParseRow(Row):
    """ast.parse, in an interpreter that does nothing else."""

    def __init__(self, name, base, runs, lines):
        super().__init__(name, base, runs)
        self.source = program(lines)

    def slice(self, bench):
        return Slice(**bench.parser().ask(source=self.source, count=self.runs))


class PolicyRow(Row):
    """The same text through the checker and its worker."""

    def __init__(self, name, base, runs, lines, policy):
        super().__init__(name, base, runs)
        self.source, self.policy = program(lines), policy

    def missing(self, bench):
        return None if (bench.build / "caisson-policy").exists() else "not built"

    def slice(self, bench):
        words = [bench.build / "bench-policy", bench.build / "caisson-policy", bench.build / "src/policy/policies",
                 self.policy, str(self.runs)]
        done = subprocess.run(words, input=self.source, capture_output=True, text=True, timeout=WITHIN_SECONDS,
                              check=False)
        if done.returncode != 0:
            raise Broken(done.stderr.strip()[:500])
        *samples, last = done.stdout.splitlines()
        _, elapsed, cpu = last.split()
        return Slice([int(sample) for sample in samples], int(elapsed), int(cpu))


class ForksRow(Row):
    """Bare forks for some time, by one process or several at once."""

    throughput = True

    def __init__(self, name, base, seconds, workers, variant="system"):
        super().__init__(name, base, 0, seconds)
        self.workers, self.variant = workers, variant

    def slice(self, bench):
        floors = [bench.floor(self.variant, number) for number in range(self.workers)]
        for floor in floors:
            floor.send(do="slice", source=PRINT, count=10**6, seconds=self.seconds, expected=expected("print"),
                       think_ms=0)
        answers = [floor.read() for floor in floors]
        return Slice(ns=sum((answer["ns"] for answer in answers), []),
                     elapsed_ns=max(answer["elapsed_ns"] for answer in answers),
                     cpu_ns=sum(answer["cpu_ns"] for answer in answers))


def client(bench, *words, stdin=None):
    """Of bench/client.c: the samples, numbers each; the elapsed nanoseconds; and those of its own CPU time."""
    try:
        done = subprocess.run([bench.build / "bench-client", *map(str, words)], input=stdin, capture_output=True,
                              text=True, timeout=WITHIN_SECONDS, check=False,
                              env={**clean_environment(), **ONE_THREAD})
    except subprocess.TimeoutExpired:
        raise Broken(f"not done within {WITHIN_SECONDS} s") from None
    if done.returncode != 0:
        raise Broken(done.stderr.strip()[:500])
    *samples, (_, elapsed, own_cpu) = [line.split() for line in done.stdout.splitlines()]
    return [[int(word) for word in sample] for sample in samples], int(elapsed), int(own_cpu)


class ProcessRow(Row):
    """A command, started anew for each run.  command may be a function of bench that returns it.

    wraps: the program is a child of the command, so its memory is not in what the kernel tells of the command.
    remote: it is not even a descendant, so its CPU time is not either.
    think: how many pauses there are before each run.
    """

    def __init__(self, name, base, runs, command, code="print", prints=None, why="not installed", wraps=False,
                 remote=False, think=1):
        super().__init__(name, base, runs)
        self.think = think
        self.command, self.code, self.prints, self.why = command, code, prints, why
        self.wraps, self.remote = wraps, remote

    def words(self, bench):
        return self.command(bench) if callable(self.command) else self.command

    def missing(self, bench):
        words = self.words(bench)
        return None if words and shutil.which(words[0]) else self.why

    def slice(self, bench):
        prints = expected(self.code) if self.prints is None else self.prints
        group = bench.cpu_group()
        before = group.usage_ns()
        samples, elapsed, own_cpu = client(bench, "run", group.procs(), self.runs, bench.think_ms * 1000 * self.think, prints,
                                           *self.words(bench))
        after = group.usage_ns()
        cpu = sum(cpu_us for _, cpu_us, _ in samples) * 1000 if after is None else after - before - own_cpu
        if not self.remote:
            self.cpu_by = "processes" if after is None else "cgroup"
        if not self.wraps:
            self.memory = {"private_bytes": None, "peak_bytes": max(peak for _, _, peak in samples) * 1024}
        return Slice([ns for ns, _, _ in samples], elapsed, None if self.remote else cpu)


def submission(number):
    """A small program, five calls of it, and what they give: (source, [(argument, value)])."""
    source = f"def f(x):\n    total = {number}\n    for n in range(x):\n        total += n * n\n    return total\n"
    return source, [(x, number + sum(n * n for n in range(x))) for x in range(5, 10)]


def small_submissions(count):
    """Requests to grade, how many cases they have, and the programs that would be run for them otherwise."""
    requests, programs = [], []
    for number in range(count):
        source, calls = submission(number)
        requests.append({"code": source, "function": "f", "cases": [{"args": [x], "expected": value} for x, value in calls]})
        programs += [f"{source}assert f({x}) == {value}\n" for x, value in calls]
    return requests, programs


def human_eval():
    """The same of the 164 problems with their reference solutions, where the file is."""
    if not HUMAN_EVAL.exists():
        return [], []
    with gzip.open(HUMAN_EVAL, "rt", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    return problems, [f"{one['prompt']}{one['canonical_solution']}\n{one['test']}\ncheck({one['entry_point']})\n"
                      for one in problems]


class GradeRow(Row):
    """A batch through caisson grade, from its start to its end; what is counted are cases."""

    throughput = True

    def __init__(self, name, base, work):
        self.requests, programs = work
        super().__init__(name, base, len(self.requests))
        self.cases_each = len(programs) // max(len(self.requests), 1)

    def missing(self, bench):
        if not self.requests:
            return "no data"
        return None if (bench.build / "caisson").exists() else "not built"

    def slice(self, bench):
        batch, cases = "\n".join(map(json.dumps, self.requests[:self.runs])), self.runs * self.cases_each
        start = time.perf_counter_ns()
        done = subprocess.run([bench.build / "caisson", "grade", "-j", "2", "--no-progress", "-"], input=batch,
                              capture_output=True, text=True, timeout=WITHIN_SECONDS, check=False, env=clean_environment())
        elapsed = time.perf_counter_ns() - start
        if done.returncode != 0 or f"{cases} of {cases} cases" not in done.stdout:
            raise Broken((done.stderr or done.stdout).strip()[-500:])
        return Slice([elapsed // cases], elapsed, count=cases)


class ProcessPerCaseRow(Row):
    """A plain loop with a python3 for each case, two at once, and its exit status as the verdict."""

    throughput = True

    def __init__(self, name, work):
        super().__init__(name, None, 1)
        self.programs = work[1]

    def missing(self, _bench):
        return None if self.programs else "no data"

    def slice(self, bench):
        def one(program):
            subprocess.run([PYTHON, "-I", "-c", program], capture_output=True, timeout=WITHIN_SECONDS, check=True)

        start = time.perf_counter_ns()
        with ThreadPoolExecutor(2) as pool:
            cases = sum(1 for _ in pool.map(one, self.programs))
        elapsed = time.perf_counter_ns() - start
        return Slice([elapsed // cases], elapsed, count=cases)


class DaemonRow(Row):
    """Requests to caissond.  kind is what waits in its pool for them (processes.kind_of); think is how many pauses there are before each."""

    def __init__(self, name, base, runs, request, prints, kind=None, settings=(), clients=1, seconds=0, think=1):
        super().__init__(name, base, runs, seconds)
        self.request, self.prints, self.kind, self.settings = request, prints, kind, dict(settings)
        self.clients, self.think, self.throughput = clients, think, clients > 1 or seconds > 0

    def missing(self, bench):
        return bench.daemon_missing()

    def prepare(self, bench):
        if self.kind:
            with bench.daemon(self.settings) as daemon:
                self.warm(bench, daemon)
                count, size = daemon.waiting(self.kind)
                self.memory = {"private_bytes": size, "peak_bytes": None} if count else None

    def warm(self, bench, daemon):
        for _ in range(2):      # the first tells it what to keep ready
            record = daemon.run(self.request)
            if (record["status"], record["stdout"]) != ("completed", self.prints):
                raise Broken(f"not the expected record: {json.dumps(record)[:500]}")
        if self.kind in IMAGES:
            self.compare_preloaded(bench.floor(IMAGES[self.kind]).preloaded, daemon)
        daemon.settle()

    def compare_preloaded(self, floor, daemon):
        """A floor with other modules than a run finds would be no base for it.  A zygote takes seconds to load them."""
        code = f"import sys\nprint(*(name for name in {list(floor)} if name in sys.modules))"
        wanted, deadline = {name for name, loaded in floor.items() if loaded}, time.monotonic() + WITHIN_SECONDS
        while differ := wanted ^ set(daemon.run({**self.request, "code": code})["stdout"].split()):
            if time.monotonic() > deadline:
                raise Broken(f"only one of a run and the floor has {', '.join(sorted(differ))} loaded")
            time.sleep(0.1)

    def slice(self, bench):
        with bench.daemon(self.settings) as daemon:
            self.warm(bench, daemon)
            self.cpu_by = daemon.cpu_by()
            before = daemon.cpu_ns(self.cpu_by)
            think_us = bench.think_ms * 1000 * self.think
            samples, elapsed, _ = client(
                bench, "ask", daemon.socket, self.clients, self.runs or 10**6, round(self.seconds * 1000), think_us,
                '"stdout":' + json.dumps(self.prints), stdin=json.dumps(self.request))
            daemon.settle()
            return Slice([ns for ns, in samples], elapsed, daemon.cpu_since(self.cpu_by, before))


class LayerRow(DaemonRow):
    """Requests with packages, which are those of the host as wheels.  The layer is built once, from an index that has gone when runs are timed."""

    WHEELS = {"numpy": (["numpy"], []), "pandas": (["pandas", "dateutil", "pytz", "six.py"], ["numpy"])}
    HOST = Path("/usr/lib/python3/dist-packages")

    def __init__(self, name, base, runs, code, module):
        super().__init__(name, base, runs, {"language": "python", "code": CODES[code], "packages": [module]}, expected(code))
        self.module = module

    def missing(self, bench):
        absent = [name for names, _ in self.WHEELS.values() for name in names if not (self.HOST / name).exists()]
        return super().missing(bench) or (f"the host has no {', '.join(absent)}" if absent else None)

    def files(self, names):
        """Without the tests of the packages, which are most of their files."""
        paths = [path for name in names for path in ([self.HOST / name] if (self.HOST / name).is_file() else (self.HOST / name).rglob("*"))]
        return {str(path.relative_to(self.HOST)): path.read_bytes() for path in paths
                if path.is_file() and path.suffix != ".pyc" and "tests" not in path.parts}

    def prepare(self, bench):
        sys.path.append(str(BENCH.parent / "tests" / "lib"))
        from private_index import PrivateIndex
        self.folder = tempfile.TemporaryDirectory(prefix="caisson-bench-layers-")
        os.chmod(self.folder.name, 0o755)       # sandboxes have another user id
        with PrivateIndex() as index:
            for name, (names, needs) in self.WHEELS.items():
                index.add_wheel(name, "1.0", self.files(names), requires=needs)
            self.settings = {"packages.cache_dir": self.folder.name, "packages.python.index_url": index.url, "packages.min_age": 0}
            with bench.daemon(self.settings) as daemon:
                super().warm(bench, daemon)

    def warm(self, bench, daemon):
        super().warm(bench, daemon)
        code, deadline = f"import sys\nprint({self.module!r} in sys.modules)", time.monotonic() + WITHIN_SECONDS
        while daemon.run({**self.request, "code": code})["stdout"] != "True\n":
            if time.monotonic() > deadline:
                raise Broken(f"no zygote loads {self.module}")
            time.sleep(0.1)
        daemon.settle()


class StartRow(Row):
    """From the start of caissond to the answer of the last of some runs, which several clients ask for at once."""

    def __init__(self, name, base, request, prints, clients, count):
        super().__init__(name, base, 1)
        self.request, self.prints, self.clients, self.count = request, prints, clients, count

    def missing(self, bench):
        return bench.daemon_missing()

    def ask(self, bench, daemon):
        """The nanoseconds that all runs together take."""
        return client(bench, "ask", daemon.socket, self.clients, self.count, 0, 0, '"stdout":' + json.dumps(self.prints),
                      stdin=json.dumps(self.request))[1]

    def slice(self, bench):
        begun = time.perf_counter_ns()
        with bench.daemon({}) as daemon:
            self.ask(bench, daemon)
            took = time.perf_counter_ns() - begun
        return Slice([took], took)


class StartBoundRow(StartRow):
    """What StartRow may take: the start of caissond until its zygote serves, when nothing is asked, and `factor` times the same runs when warm."""

    def __init__(self, name, request, prints, clients, count, factor):
        super().__init__(name, None, request, prints, clients, count)
        self.factor = factor

    def slice(self, bench):
        begun = time.perf_counter_ns()
        with bench.daemon({}) as daemon:
            while not any(pool.get("zygote") for pool in daemon.pools()):
                if time.perf_counter_ns() - begun > WITHIN_SECONDS * 1e9:
                    raise Broken("no zygote serves")
                time.sleep(0.005)
            started = time.perf_counter_ns() - begun
            self.ask(bench, daemon)     # it tells what to keep ready
            daemon.settle()
            took = round(started + self.factor * self.ask(bench, daemon))
        return Slice([took], took)


CALLS = """import json, time
ns = []
for _ in range(%d):
    start = time.perf_counter_ns()
    tools.answer()
    ns.append(time.perf_counter_ns() - start)
print(json.dumps(ns))
"""


class ToolRow(Row):
    """Calls of a tool that answers at once, each timed by the program that makes it."""

    def missing(self, bench):
        return bench.daemon_missing()

    def slice(self, bench):
        recording = [{"server": "bench", "tool": "answer", "arguments": {}, "result": 42}] * self.runs
        with bench.daemon({}) as daemon:
            daemon.settle()
            record = daemon.run({"language": "python", "code": CALLS % self.runs, "tools": {"replay": recording, "calls": self.runs}})
        if record["status"] != "completed" or record["tools"] != {"calls": self.runs, "failed": 0, "refused": 0}:
            raise Broken(f"not the expected record: {json.dumps(record)[:500]}")
        ns = json.loads(record["stdout"])
        return Slice(ns, sum(ns))


class E2bRow(Row):
    """A new sandbox and its first result by E2B's own SDK, which the tests of it install."""

    def __init__(self, name, base, runs, settings):
        super().__init__(name, base, runs)
        self.settings = settings

    def missing(self, bench):
        there = (BENCH.parent / "tests/compat/e2b/node_modules/@e2b/code-interpreter").exists()
        return bench.daemon_missing() or (None if there else "the SDK is not installed (scripts/setup test)")

    def slice(self, bench):
        with bench.daemon(self.settings) as daemon:
            daemon.settle()
            done = subprocess.run(["/usr/bin/node", BENCH / "e2b.mjs", daemon.http(), str(self.runs)],
                                  capture_output=True, text=True, timeout=WITHIN_SECONDS, check=False)
        if done.returncode != 0:
            raise Broken(f"the SDK: {done.stderr.strip()[-500:]}")
        ns = json.loads(done.stdout)
        return Slice(ns, sum(ns))


class HttpRow(Row):
    """Requests to caissond over HTTP, by wrk, which keeps its connections.  path with a request is POST, and GET without one."""

    throughput = True

    def __init__(self, name, base, seconds, connections, path, has, settings, request=None):
        super().__init__(name, base, 0, seconds)
        self.connections, self.path, self.has, self.settings, self.request = connections, path, has, settings, request

    def missing(self, bench):
        return bench.daemon_missing() or (None if shutil.which("wrk") else "wrk is not installed")

    def slice(self, bench):
        with bench.daemon(self.settings) as daemon:
            self.ask_once(daemon)     # the first tells it what to keep ready
            daemon.settle()
            self.cpu_by = daemon.cpu_by()
            before = daemon.cpu_ns(self.cpu_by)
            samples, elapsed, count = self.ask(daemon, self.seconds)
            daemon.settle()
            return Slice(samples, elapsed, daemon.cpu_since(self.cpu_by, before), count)

    def ask_once(self, daemon):
        """One request without a limit of wrk's: the first may wait for interpreters longer than a slice lasts."""
        body = json.dumps(self.request).encode() if self.request else None
        request = urllib.request.Request(daemon.http() + self.path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=WITHIN_SECONDS) as answer:
            if self.has not in answer.read().decode():
                raise Broken("the first answer was not what was expected")

    def ask(self, daemon, seconds):
        """(nanoseconds of each request, and of all together; how many there were)"""
        url = daemon.http() + self.path
        done = subprocess.run(["wrk", "-t1", f"-c{self.connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s",
                               "-s", BENCH / "http.lua", url, "--", json.dumps(self.request) if self.request else "", self.has],
                              capture_output=True, text=True, timeout=WITHIN_SECONDS, check=False)
        lines = [line.split() for line in done.stdout.splitlines()]
        took = [(int(line[1]), int(line[2])) for line in lines if line[:1] == ["took"]]
        total = next((list(map(int, line[1:])) for line in lines if line[:1] == ["total"]), None)
        if done.returncode != 0 or not total or total[2] or not total[1]:
            raise Broken(f"wrk: {total[2] if total else 'no'} answers were not what was expected: {(done.stdout + done.stderr).strip()[:500]}")
        return [us * 1000 for us, n in took for _ in range(n)], total[0] * 1000, total[1]


class MemoryRow(Row):
    """Private memory of a waiting sandbox, when so many of them wait.  Read once: it hardly varies."""

    def __init__(self, name, base, request, prints, kind, waiting):
        super().__init__(name, base, 0)
        self.request, self.prints, self.kind, self.waiting = request, prints, kind, waiting

    def missing(self, bench):
        if os.geteuid() != 0:
            return "needs root to look into sandboxes"
        needed = self.waiting * DESCRIPTORS + DESCRIPTORS_MORE
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most != resource.RLIM_INFINITY and most < needed:
            return f"needs {needed} descriptors, and the hard limit is {most} (ulimit -Hn)"
        needed, free = self.waiting * ROOM_BYTES, available_bytes()
        if free < needed:
            return f"needs {needed >> 20} MiB of free memory, and there are {free >> 20}"
        return bench.daemon_missing()

    def prepare(self, bench):
        # pool_min would be for every language; only this one is to grow, and nothing is to become less again.
        with bench.daemon({"engine.pool_min": 1, "engine.pool_max": self.waiting,
                           "engine.pool_memory_bytes": available_bytes(), "engine.pool_idle_ms": "86400s"}) as daemon:
            self.grow(bench, daemon)
            self.memory = {"private_bytes": self.wait_for(daemon), "peak_bytes": None}

    def grow(self, bench, daemon):
        """Runs that find no interpreter waiting make its pool larger."""
        deadline = time.monotonic() + WITHIN_SECONDS
        while max(pool["target"] for pool in daemon.pools()) < self.waiting:
            if time.monotonic() > deadline:
                raise Broken(f"no pool wants {self.waiting} sandboxes: {json.dumps(daemon.pools())[:500]}")
            client(bench, "ask", daemon.socket, 16, 10**6, 200, 0, '"stdout":' + json.dumps(self.prints),
                   stdin=json.dumps(self.request))

    def wait_for(self, daemon):
        deadline = time.monotonic() + WITHIN_SECONDS
        while max(pool["ready"] for pool in daemon.pools()) < self.waiting and time.monotonic() < deadline:
            time.sleep(0.5)
        daemon.settle()
        count, size = daemon.waiting(self.kind)
        if count < self.waiting:
            said = daemon.log.read_text(encoding="utf-8", errors="replace")[-500:]
            raise Broken(f"{count} sandboxes of the kind {self.kind} wait, not {self.waiting}: {said}")
        return size

    slice = None
