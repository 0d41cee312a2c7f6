"""The floor: a warmed interpreter that forks for each request.  No isolation, nothing but what a fork costs.

    python3 -I floor.py VARIANT [MODULE...]        (started by bench/run)

VARIANT is "bare", with nothing preloaded, or an image of the zygotes, whose list of modules is read from where they
have it.  MODULEs are left out of it.  Reads one JSON command a line from standard input and writes one JSON answer a
line; before the first comes which modules of the list are loaded.
"""

import gc
import importlib
import json
import os
import random
import resource
import runpy
import sys
import time
from pathlib import Path

PRELOAD = Path(__file__).resolve().parents[1] / "src/lang/python/zygote/preload.py"


def fork_and_exec(code):
    """In a child: exec the code with standard output in a pipe.  Returns (the pipe's other end, pid)."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write_end, 1)
        try:
            exec(code, {"__name__": "__main__"})
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(write_end)
    return read_end, pid


def run_once(code):
    """One request of the floor; what it printed."""
    read_end, pid = fork_and_exec(code)
    pieces = []
    while piece := os.read(read_end, 65536):
        pieces.append(piece)
    os.waitpid(pid, 0)
    os.close(read_end)
    return b"".join(pieces)


def cpu_ns():
    """Of this process and of its children that were waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(one.ru_utime + one.ru_stime for one in used) * 1e9)


def slice_of(source, count, seconds, think_ms, expected):
    """Up to count requests one after the other, for at most so many seconds (0: no bound)."""
    code, expected = compile(source, "main.py", "exec"), expected.encode()
    samples, cpu_before, start = [], cpu_ns(), time.perf_counter_ns()
    while len(samples) < count and (not seconds or time.perf_counter_ns() - start < seconds * 1e9):
        if think_ms:
            time.sleep(random.uniform(0.5, 1.5) * think_ms / 1000)
        sent = time.perf_counter_ns()
        output = run_once(code)
        samples.append(time.perf_counter_ns() - sent)
        if output != expected:
            raise SystemExit(f"floor: printed {output!r}, not {expected!r}")
    return {"ns": samples, "elapsed_ns": time.perf_counter_ns() - start, "cpu_ns": cpu_ns() - cpu_before}


REPORT_MEMORY = """
import json
with open("/proc/self/smaps_rollup") as lines:
    kib = {words[0]: int(words[1]) for words in map(str.split, list(lines)[1:])}
print()
private = kib["Private_Clean:"] + kib["Private_Dirty:"]
print(json.dumps({"private_bytes": private * 1024, "peak_bytes": kib["Rss:"] * 1024}))
"""


def memory_of(source):
    """What a child has for itself, and its resident set, when it has run the code."""
    return json.loads(run_once(compile(source + REPORT_MEMORY, "main.py", "exec")).splitlines()[-1])


def is_alone():
    """Whether this is the only thread; one that is just ending is given the time."""
    for _ in range(100):
        if len(os.listdir("/proc/self/task")) == 1:
            return True
        time.sleep(0.005)
    return False


def preload(names, unwanted):
    """As a zygote does; what cannot be imported is left out."""
    for name in names:
        if name in unwanted:
            continue
        try:
            importlib.import_module(name)
        except Exception:       # whatever a module raises, the zygote goes on as well
            continue
        if not is_alone():      # a fork would not be safe, and threads cannot be stopped from outside
            os.execv(sys.executable, [*sys.orig_argv, name])


def main():
    variant, unwanted = sys.argv[1], sys.argv[2:]
    zygote = runpy.run_path(str(PRELOAD))
    names = [] if variant == "bare" else zygote["IMAGES"][variant]
    os.environb.update(dict.fromkeys(zygote["THREAD_NAMES"], b"1"))
    preload(names, unwanted)
    loaded = json.dumps({name: name in sys.modules for name in names})
    del zygote
    gc.collect()
    gc.freeze()
    print(loaded, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        work = {"slice": slice_of, "memory": memory_of}[command.pop("do")]
        print(json.dumps(work(**command)), flush=True)


main()
