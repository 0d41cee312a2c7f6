"""Rows of graders as trainers use them: batches of submissions over HTTP, beside a python3 for each case."""

import http.client
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from daemon import Broken
from rows import PYTHON, WITHIN_SECONDS, Row, Slice

WORKERS = 2


def source_of(number, seconds=0):
    """The submission: a function, and CPU time that each call of it takes."""
    burn = f"    until = time.process_time() + {seconds}\n    while time.process_time() < until: pass\n" if seconds else ""
    return f"import time\ndef f(x):\n{burn}    total = {number}\n    for n in range(x):\n        total += n * n\n    return total\n"


def value_of(number, x):
    return number + sum(n * n for n in range(x))


MAIN = "print(f(int(input())))\n"


def calls(count, cases, instance):
    """Requests whose cases call a function."""
    return [{"id": str(number), "code": source_of(number), "function": "f", "instance": instance,
             "cases": [{"args": [x], "expected": value_of(number, x)} for x in range(cases)]} for number in range(count)]


def problems(count, cases, seconds=0):
    """Requests in ScaleBox's form: a completion, and cases with standard input."""
    found = []
    for number in range(count):
        texts = [(f"{x}\n", f"{value_of(number, x)}\n") for x in range(cases)]
        found.append({"id": str(number), "format": "scalebox", "completion": f"```python\n{source_of(number, seconds)}{MAIN}```\n",
                      "provided_data": {"test_cases": {"type": "stdin_stdout", "input": [one for one, _ in texts], "output": [other for _, other in texts]}}})
    return found


class SpawnRow(Row):
    """/usr/bin/python3 FILE for each case, by posix_spawn from two workers, and its output compared."""

    throughput = True

    def __init__(self, name, base, cases, seconds=0):
        super().__init__(name, base, cases)
        self.seconds, self.folder = seconds, None

    def missing(self, _bench):
        return None

    def prepare(self, _bench):
        self.folder = tempfile.TemporaryDirectory(prefix="caisson-bench-")      # pylint: disable=consider-using-with
        for number in range(self.runs):
            (Path(self.folder.name) / f"{number}.py").write_text(source_of(number, self.seconds) + MAIN, encoding="utf-8")
            (Path(self.folder.name) / f"{number}.in").write_text("7\n", encoding="utf-8")

    def one(self, number):
        path, (reader, writer) = f"{self.folder.name}/{number}", os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_OPEN, 0, f"{path}.in", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, writer, 1)]
        pid = os.posix_spawn(PYTHON, [PYTHON, f"{path}.py"], os.environ, file_actions=actions)
        os.close(writer)
        with open(reader, "rb") as output:
            text = output.read()
        if os.waitpid(pid, 0)[1] != 0 or text.split() != str(value_of(number, 7)).encode().split():
            raise Broken(f"{path}.py printed {text[:200]}")

    def slice(self, bench):
        start = time.perf_counter_ns()
        with ThreadPoolExecutor(WORKERS) as pool:
            cases = len(list(pool.map(self.one, range(self.runs))))
        elapsed = time.perf_counter_ns() - start
        return Slice([elapsed // cases], elapsed, count=cases)


class BatchRow(Row):
    """A batch in one request to a daemon on two processors, from the request to the last line; what is counted are cases."""

    throughput = True

    def __init__(self, name, base, requests, cases):
        super().__init__(name, base, len(requests))
        self.requests, self.cases = requests, cases

    def missing(self, bench):
        return bench.daemon_missing()

    def slice(self, bench):
        settings = {"engine.http": "127.0.0.1:0", "engine.log_level": "info", "engine.http_keyless": "true"}
        with bench.daemon(settings) as daemon:
            address, body = urlsplit(daemon.http()), "".join(json.dumps(one) + "\n" for one in self.requests[:self.runs])
            daemon.settle()
            connection = http.client.HTTPConnection(address.hostname, address.port, timeout=WITHIN_SECONDS)
            start = time.perf_counter_ns()
            connection.request("POST", "/v1/grade", body, {"Content-Type": "application/x-ndjson"})
            lines = connection.getresponse().read().splitlines()
            elapsed = time.perf_counter_ns() - start
            connection.close()
        results = [json.loads(line).get("result") or {} for line in lines if line.strip()]
        good = sum(result.get("all_passed", False) for result in results)
        if good != self.runs:
            raise Broken(f"{good} of {self.runs} submissions passed: {lines[0][:300]}")
        cases = self.runs * self.cases
        return Slice([elapsed // cases], elapsed, count=cases)


EACH, SLOW_EACH = "trainers: a python3 for each case", "trainers: a python3 for each case of 20 ms"


def trainers():
    """The rows, each beside a python3 for each case."""
    yield SpawnRow(EACH, None, 60)
    for cases, count in ((5, 1500), (20, 700), (100, 300)):
        for instance in ("fresh", "shared"):
            yield BatchRow(f"trainers: {instance}, {cases} calls each", EACH, calls(count, cases, instance), cases)
    yield BatchRow("trainers: problems of ScaleBox, 20 inputs each", EACH, problems(300, 20), 20)
    yield SpawnRow(SLOW_EACH, None, 40, 0.02)
    yield BatchRow("trainers: problems of ScaleBox, 20 inputs of 20 ms each", SLOW_EACH, problems(30, 20, 0.02), 20)
