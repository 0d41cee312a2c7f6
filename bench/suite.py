"""The rows and the goals."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

from rows import (CODES, PANDAS, PRINT, PYTHON, DaemonRow, E2bRow, FloorRow, ForksRow, GradeRow, HttpRow, LayerRow, MemoryRow, ParseRow, PolicyRow,
                  ProcessPerCaseRow, ProcessRow, StartBoundRow, StartRow, ToolRow, expected, human_eval, small_submissions)
from trainers import EACH, trainers

# A worker of Node takes eight times the processor time to start that a default pause has, and runs beside it on both processors.
NODE_PAUSES = 10

PY = [PYTHON, "-I", "-c", PRINT]
BWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc",
         "--dev", "/dev", "--tmpfs", "/tmp"]
FIREJAIL = ["firejail", "--quiet", "--noprofile", "--net=none", "--private"]
NSJAIL = ["nsjail", "-Mo", "--really_quiet", "--chroot", "/", "--"]

SYSTEM, BACK = "floor system print", "floor system print, back to back"
FORKS = "floor forks, 2 workers"
SMALL_FORKS = "floor forks, 2 workers, small image"


def docker_image():
    """The image to measure with, or None where no daemon answers or no image was named."""
    image = os.environ.get("CAISSON_BENCH_IMAGE")
    if not image or not shutil.which("docker"):
        return None
    try:
        answers = subprocess.run(["docker", "version"], capture_output=True, timeout=30, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        answers = False
    return image if answers else None


def docker_run(bench):
    return bench.image and ["docker", "run", "--rm", "--network", "none", bench.image, "python3", "-I", "-c", PRINT]


def docker_exec(bench):
    return bench.image and ["docker", "exec", bench.container(), "python3", "-I", "-c", PRINT]


def caisson_run(bench):
    return [str(bench.build / "caisson"), "run", "-q", "-l", "python", "-c", PRINT]


NO_DOCKER = "no docker daemon answers, or CAISSON_BENCH_IMAGE names no image"


def floors():
    yield FloorRow("floor bare print", SYSTEM, 100, "bare", "print")
    yield FloorRow(SYSTEM, None, 100, "system", "print")
    yield FloorRow(BACK, None, 100, "system", "print", think=0)
    for code in CODES:
        yield FloorRow(f"floor data {code}", None, 50, "data", code)
    yield ForksRow("floor forks, 1 worker", FORKS, 1, 1)
    yield ForksRow(FORKS, None, 1, 2)
    yield ForksRow(SMALL_FORKS, None, 1, 2, "small")


def peers():
    yield ProcessRow("peer python3", SYSTEM, 20, PY)
    yield ProcessRow("peer python3 pandas", "floor data pandas", 2, [PYTHON, "-I", "-c", PANDAS], "pandas")
    yield ProcessRow("peer node", None, 5, ["node", "-e", "1"], prints="", think=NODE_PAUSES)
    yield ProcessRow("peer bash", None, 50, ["bash", "-c", "echo 1"])
    yield ProcessRow("peer bwrap", "peer python3", 20, [*BWRAP, *PY], wraps=True)
    yield ProcessRow("peer firejail", "peer python3", 10, [*FIREJAIL, *PY], wraps=True)
    yield ProcessRow("peer nsjail", "peer python3", 20, [*NSJAIL, *PY], wraps=True)
    yield ProcessRow("peer docker run", "peer python3", 3, docker_run, why=NO_DOCKER, wraps=True, remote=True)
    yield ProcessRow("peer docker exec", "peer python3", 5, docker_exec, why=NO_DOCKER, wraps=True, remote=True)


def python_request(code, **more):
    return {"language": "python", "code": CODES[code], **more}


def ours():
    printing = (python_request("print"), "1\n")
    yield ProcessRow("caisson run", "peer python3", 10, caisson_run, why="not built", wraps=True)
    yield DaemonRow("caissond print", SYSTEM, 100, *printing, "python")
    yield DaemonRow("caissond print, back to back", BACK, 100, *printing, "python", think=0)
    for code in CODES:
        yield DaemonRow(f"caissond data {code}", f"floor data {code}", 50, python_request(code, profile="data"),
                        expected(code), "data")
    for code in ("numpy", "pandas"):
        yield LayerRow(f"caissond layer {code}", f"caissond data {code}", 50, code, "pandas")
    node, bash = {"language": "javascript", "code": "console.log(1)"}, {"language": "bash", "code": "echo 1"}
    yield DaemonRow("caissond node", "peer node", 25, node, "1\n", "node", think=NODE_PAUSES)
    yield DaemonRow("caissond bash", "peer bash", 50, bash, "1\n", "bash")
    yield DaemonRow("caissond print, on demand", SYSTEM, 100, *printing, settings={"engine.pool_max": 0})
    yield DaemonRow("caissond print, cold", "peer python3", 10, *printing,
                    settings={"engine.pool_min": 0, "engine.pool_max": 0, "engine.pool_shells": 0})
    for clients in (1, 2, 8, 64):
        yield DaemonRow(f"caissond, {clients} client{'s' * (clients > 1)}", FORKS, 0, *printing, clients=clients,
                        seconds=1, think=0)
    for waiting in (1, 100, 1000):
        yield MemoryRow(f"waiting python, {waiting}", SYSTEM, *printing, "python", waiting)
    yield MemoryRow("waiting data, 100", "floor data print", python_request("print", profile="data"), "1\n", "data",
                    100)


def starts():
    """How soon a daemon that is asked from its first moment on is as fast as a warm one."""
    load, bound = (python_request("print"), "1\n", 16, 200), "start: zygote alone + 1.3 * 200 warm runs"
    yield StartRow("start to the 200th run, 16 clients", bound, *load)
    yield StartBoundRow(bound, *load, 1.3)


def listening():
    """Settings of a daemon that is asked over HTTP."""
    return {"engine.http": "127.0.0.1:0", "engine.log_level": "info", "engine.http_keyless": "true"}


def http():
    """Beside the floor of HTTP, which does nothing for its answer, and beside the same program by way of the socket."""
    settings = listening()
    for n in (1, 16):
        words = f"{n} connection{'s' * (n > 1)}"
        floor = f"http healthz, {words}"
        yield HttpRow(floor, None, 1, n, "/healthz", "ok", settings)
        for what, code, prints in (("no-op", "pass", ""), ("print", PRINT, "1\n")):
            yield HttpRow(f"http {what}, {words}", floor, 1, n, "/v1/runs", '"stdout":' + json.dumps(prints), settings,
                          {"language": "python", "code": code})
        yield DaemonRow(f"http print, the same by socket, {words}", f"http print, {words}", 0, python_request("print"), "1\n",
                        settings=settings, clients=n, seconds=1, think=0)


def policies():
    for lines, runs in ((100, 200), (2000, 20)):
        words = f"{lines:,} lines"
        yield ParseRow(f"ast.parse, {words}", None, runs, lines)
        yield PolicyRow(f"policy, {words}", f"ast.parse, {words}", runs, lines, "kodeagent")


def tools():
    yield ToolRow("tool call", None, 1000)


def e2b():
    yield E2bRow("E2B: create to first result", None, 10, listening())


def grading():
    yield ProcessPerCaseRow("grade, a python3 for each case", small_submissions(20))
    yield GradeRow("grade, 5 cases each", SMALL_FORKS, small_submissions(10000))
    yield ProcessPerCaseRow("HumanEval, a python3 for each", human_eval())
    yield GradeRow("HumanEval", "HumanEval, a python3 for each", human_eval())


def all_rows():
    return [*floors(), *peers(), *ours(), *starts(), *http(), *policies(), *tools(), *e2b(), *grading(), *trainers()]


@dataclass
class Goal:
    """figure of a row, over (or under, for "at least") that of another row where there is one."""

    name: str
    at_most: float = None
    at_least: float = None
    row: str = ""
    figure: str = "p50"
    over: str = None
    over_figure: str = "p50"


MIB = 1 << 20

GOALS = [
    Goal("ready: p50 / floor p50", 0.6, row="caissond print", over=SYSTEM),
    Goal("ready: p99 / floor p50", 3, row="caissond print", figure="p99", over=SYSTEM),
    Goal("ready, pandas loaded, print: p50 / floor p50", 0.5, row="caissond data print", over="floor data print"),
    Goal("ready, pandas loaded, print: p99 / floor p50", 3, row="caissond data print", figure="p99",
         over="floor data print"),
    Goal("ready, pandas loaded, numpy: p50 / floor p50", 0.5, row="caissond data numpy", over="floor data numpy"),
    Goal("ready, pandas loaded, pandas: p50 / floor p50", 0.5, row="caissond data pandas", over="floor data pandas"),
    Goal("ready, pandas loaded, pandas: p99 / floor p50", 3, row="caissond data pandas", figure="p99",
         over="floor data pandas"),
    Goal("layer, pandas loaded, numpy: p50 / image data p50", 1.3, row="caissond layer numpy", over="caissond data numpy"),
    Goal("layer, pandas loaded, pandas: p50 / image data p50", 1.3, row="caissond layer pandas", over="caissond data pandas"),
    Goal("on demand: p50 / floor p50", 1.6, row="caissond print, on demand", over=SYSTEM),
    Goal("CPU per run / floor CPU", 2, row="caissond print", figure="cpu", over=SYSTEM, over_figure="cpu"),
    Goal("runs per second, 8 clients / forks", at_least=0.55, row="caissond, 8 clients", figure="rate", over=FORKS,
         over_figure="rate"),
    Goal("runs per second, 64 clients / forks", at_least=0.55, row="caissond, 64 clients", figure="rate",
         over=FORKS, over_figure="rate"),
    Goal("start to the 200th run, 16 clients / zygote + 1.3 * warm", 1, row="start to the 200th run, 16 clients",
         over="start: zygote alone + 1.3 * 200 warm runs"),
    Goal("bwrap python p50 / ready p50", at_least=40, row="peer bwrap", over="caissond print"),
    Goal("docker run p50 / ready p50", at_least=300, row="peer docker run", over="caissond print"),
    Goal("python3 pandas p50 / ready pandas p50", at_least=100, row="peer python3 pandas", over="caissond data pandas"),
    Goal("ready node p50 / node -e 1 p50", 0.1, row="caissond node", over="peer node"),
    Goal("ready bash p50 / bash -c p50", 2, row="caissond bash", over="peer bash"),
    Goal("policy, 100 lines: p50 ms", 0.8, row="policy, 100 lines"),
    Goal("policy, 2,000 lines: p50 ms", 5, row="policy, 2,000 lines"),
    Goal("tool call: p50 ms", 1, row="tool call"),
    Goal("E2B: create to first result: p50 ms", 50, row="E2B: create to first result"),
    Goal("grading: cases per second / python3 for each", at_least=20, row="grade, 5 cases each", figure="rate",
         over="grade, a python3 for each case", over_figure="rate"),
    Goal("grading: cases per second / forks", at_least=0.5, row="grade, 5 cases each", figure="rate",
         over=SMALL_FORKS, over_figure="rate"),
    *(Goal(f"trainers: {instance}, {cases} calls each / python3 for each", at_least=least, row=f"trainers: {instance}, {cases} calls each",
           figure="rate", over=EACH, over_figure="rate")
      for instance, goals in (("fresh", (11, 22, 28)), ("shared", (15, 45, 120))) for cases, least in zip((5, 20, 100), goals)),
    Goal("trainers: problems of ScaleBox / python3 for each", at_least=10, row="trainers: problems of ScaleBox, 20 inputs each", figure="rate",
         over=EACH, over_figure="rate"),
    Goal("private MiB of a waiting python, 100 wait", 3 * MIB, row="waiting python, 100", figure="private"),
    Goal("private MiB of a waiting python with pandas", 8 * MIB, row="waiting data, 100", figure="private"),
]
