"""Programs that must succeed: tests/cases/LANGUAGE/NAME, each with lines at its top that say what comes of it.

| line | meaning |
|---|---|
| `what: TEXT` | what the program does; every one has it |
| `stdout: TEXT` | standard output is this line and nothing else |
| `stdout-has: TEXT` | this is somewhere in it |
| `args: WORDS` | arguments, quoted as in a shell |
| `stdin: TEXT` | standard input, with \\n for a line feed |
| `options: WORDS` | options of `caisson run` |
| `needs: WORDS` | Python modules, commands or an architecture, without which the case is skipped |
| `files: NAMES` | the files that are new afterwards |
| `result: JSON` | the value of the program |
| `vm: yes` | runs in the emulated machine too |
"""

import json
import shlex

import pytest

from caisson_testing import LANGUAGES, SLOW, TESTS, directives, run, skip_unless, summary

KNOWN = ("what", "stdout", "stdout-has", "args", "stdin", "options", "needs", "files", "result", "vm")
CASES = TESTS / "cases"
INTERPRETERS = {"python": "python3", "javascript": "node", "typescript": "node", "bash": "bash"}
FEWEST = {"python": 20, "javascript": 20, "typescript": 8, "bash": 20}


def cases():
    for path in sorted(path for path in CASES.glob("*/*") if path.suffix in LANGUAGES):
        marks = [pytest.mark.vm] if directives(path, KNOWN).get("vm") == "yes" else []
        yield pytest.param(path, id=str(path.relative_to(CASES)), marks=marks)


@pytest.mark.parametrize("language", FEWEST)
def test_there_are_enough(language):
    programs = [path for path in (CASES / language).iterdir() if LANGUAGES.get(path.suffix) == language]
    assert len(programs) >= FEWEST[language]


@pytest.mark.parametrize("path", cases())
def test_succeeds(path):
    says = directives(path, KNOWN)
    assert says.get("what"), "has no line that says what it does"
    skip_unless(f"{INTERPRETERS[LANGUAGES[path.suffix]]} {says.get('needs', '')}")
    options = shlex.split(says.get("options", ""))
    if path.suffix in (".mjs", ".cjs", ".mts"):
        options += ["--name", f"main{path.suffix}"]
    if "--timeout" not in options:
        options += ["--timeout", "60s"]     # on a busy machine, pandas alone may take ten to be there
    stdin = says["stdin"].replace("\\n", "\n") if "stdin" in says else None

    record, returncode = run(LANGUAGES[path.suffix], path, *options, stdin=stdin, timeout=90 * SLOW,
                             arguments=shlex.split(says.get("args", "")))

    why = summary(record)
    assert (record["status"], record["exit_code"], record["signal"], returncode) == ("completed", 0, None, 0), why
    assert record["error"] is None, why
    if "stdout" in says:
        assert record["stdout"] == says["stdout"] + "\n", why
    if "stdout-has" in says:
        assert says["stdout-has"] in record["stdout"], why
    if "files" in says:
        assert sorted(file["name"] for file in record["files"]) == sorted(says["files"].split()), why
        assert all(file["size_bytes"] > 0 and len(file["sha256"]) == 64 for file in record["files"]), why
    if "result" in says:
        assert record["result"] and record["result"]["value"] == json.loads(says["result"]), why
