"""The floor of source policies: ast.parse in an interpreter that is warm.

    python3 -I policy.py        (started by bench/run)

Reads one JSON command a line from standard input and writes one JSON answer a line, as floor.py does.
"""

import ast
import gc
import json
import resource
import sys
import time


def cpu_ns():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round((used.ru_utime + used.ru_stime) * 1e9)


def slice_of(source, count):
    ast.parse(source)
    gc.collect()
    samples, cpu_before, start = [], cpu_ns(), time.perf_counter_ns()
    for _ in range(count):
        began = time.perf_counter_ns()
        tree = ast.parse(source)
        samples.append(time.perf_counter_ns() - began)
        del tree
    return {"ns": samples, "elapsed_ns": time.perf_counter_ns() - start, "cpu_ns": cpu_ns() - cpu_before}


print("{}", flush=True)
for line in sys.stdin:
    print(json.dumps(slice_of(**json.loads(line))), flush=True)
