"""What the policies say to programs in Bash: tests/policy/bash/verdicts.jsonl has a program a line, with its verdict and rules that have to be among the findings."""

import json
import subprocess
from collections import defaultdict

import pytest

from cli import CAISSON, ROOT

CASES = [json.loads(line) for line in (ROOT / "tests/policy/bash/verdicts.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """All programs of a policy in one call."""
    folder = tmp_path_factory.mktemp("bash")
    found, files = {}, defaultdict(dict)
    for number, case in enumerate(CASES):
        path = folder / f"{number}.sh"
        path.write_bytes(case["code"].encode())
        files[case["policy"]][str(path)] = case["id"]
    for policy, paths in files.items():
        done = subprocess.run([str(CAISSON), "check", "-l", "bash", "-p", policy, "--json", *paths], capture_output=True, text=True, timeout=60)
        for line in done.stdout.splitlines():
            answer = json.loads(line)
            found[paths[answer["file"]]] = answer
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_verdict(answers, case):
    answer = answers[case["id"]]
    rules = {finding["rule"] for finding in answer["findings"]}
    assert answer["verdict"] == case["verdict"], (case["code"], rules, answer["error"])
    assert rules >= set(case["rules"])
    assert case["verdict"] == "deny" or not rules, "a finding in a program that is clean"
