"""164 real problems: every reference solution completes, and the same with an empty body fails."""
import gzip
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CAISSON_DATA", ROOT.parent / "shared" / "data")) / "HumanEval.jsonl.gz"
CAISSON = os.environ.get("CAISSON", os.path.join(os.environ.get("CAISSON_BUILD", "build"), "caisson"))


@pytest.fixture(name="problems", scope="module")
def problems_fixture():
    if not DATA.exists():
        pytest.skip(f"needs data: {DATA.name} is not beside the project; set CAISSON_DATA")
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    assert len(found) == 164
    return found


def run(code):
    done = subprocess.run([CAISSON, "run", "--json", "-l", "python", "-"], input=code.encode(), capture_output=True, timeout=60, check=False)
    return json.loads(done.stdout)


def outcomes(problems, body):
    programs = [p["prompt"] + body(p) + "\n" + p["test"] + f"\ncheck({p['entry_point']})\n" for p in problems]
    with ThreadPoolExecutor(4) as pool:
        return {p["task_id"]: (r["status"], r["exit_code"]) for p, r in zip(problems, pool.map(run, programs))}


def test_every_reference_solution_completes(problems):
    wrong = {k: v for k, v in outcomes(problems, lambda p: p["canonical_solution"]).items() if v != ("completed", 0)}
    assert wrong == {}


def test_every_empty_solution_fails(problems):
    wrong = {k: v for k, v in outcomes(problems, lambda p: "    pass\n").items() if v != ("failed", 1)}
    assert wrong == {}
