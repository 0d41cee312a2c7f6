"""The 164 problems of HumanEval, each with its own solution and with none.

The first must complete, the second must fail by the problem's own assertions and by nothing else.  The data is not
part of this repository: CAISSON_DATA names the folder of HumanEval.jsonl.gz; default: ../shared/data.
"""

import concurrent.futures
import gzip
import json
import os
from pathlib import Path

import pytest

from caisson_testing import ROOT, SLOW, run

DATA = Path(os.environ.get("CAISSON_DATA") or ROOT.parent / "shared" / "data") / "HumanEval.jsonl.gz"
WORKERS = max(2, min(4, os.cpu_count() or 1))

# A few solutions compute for seconds, and several run at once.
TIMEOUT = f"{30 * SLOW}s"


@pytest.fixture(scope="module")
def problems():
    if not DATA.exists():
        pytest.skip(f"needs data: no {DATA.name} in CAISSON_DATA or beside the source tree")
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    assert len(found) == 164
    return found


def run_all(problems, body_of):
    """{task: record} of every problem with the body that body_of(problem) gives."""
    def run_one(problem):
        program = f"{problem['prompt']}{body_of(problem)}\n{problem['test']}\ncheck({problem['entry_point']})\n"
        return problem["task_id"], *run("python", program, "--timeout", TIMEOUT, timeout=60 * SLOW)

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return {task: (record, returncode) for task, record, returncode in pool.map(run_one, problems)}


def others(records, status, code):
    """What ended otherwise, as a list for a person."""
    return [f"{task}: {record['status']}, exit {record['exit_code']}, {(record['error'] or {}).get('message')}"
            for task, (record, returncode) in records.items()
            if (record["status"], record["exit_code"], returncode) != (status, code, code)]


def test_solutions_complete(problems):
    assert not others(run_all(problems, lambda problem: problem["canonical_solution"]), "completed", 0)


def test_empty_bodies_fail(problems):
    records = run_all(problems, lambda problem: "    pass\n")
    assert not others(records, "failed", 1)
    # Each failed in its tests, and nothing of the engine's own is blamed on the program.
    assert {(record["error"] or {}).get("type") for record, _ in records.values()} <= {"AssertionError", "TypeError"}
