"""The floor: a warmed interpreter that forks for each request.  No isolation, nothing but what a fork costs.

    python3 -I floor.py VARIANT        (started by bench/run)

Reads one JSON command a line from standard input and writes one JSON answer a line.
"""

import gc
import importlib
import json
import os
import random
import resource
import sys
import time

# What programs commonly import, and what a runner of programs has loaded anyway.
USUAL = ("ast base64 bisect collections copy csv dataclasses datetime decimal enum fractions functools hashlib heapq "
         "inspect io itertools json math operator os pathlib random re statistics string struct tempfile textwrap "
         "time traceback typing urllib.parse uuid").split()
VARIANTS = {"bare": USUAL, "numpy": [*USUAL, "numpy"], "pandas": [*USUAL, "numpy", "pandas"]}


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


def main():
    for name in VARIANTS[sys.argv[1]]:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) != 1:
        raise SystemExit("floor: a module has started threads, so a fork is not safe")
    gc.collect()
    gc.freeze()
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        work = {"slice": slice_of, "memory": memory_of}[command.pop("do")]
        print(json.dumps(work(**command)), flush=True)


main()
