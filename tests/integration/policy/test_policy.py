"""Source policies: every program of tests/policy, and what a policy says to it.

tests/policy/LANGUAGE/NAME.cases has programs, each with a title, lines that say what comes of it, and the text:

    === eval under another name
    --- deny linx[dynamic_code] codemie
    --- allow off
    e = eval

A policy may be followed by modules that are allowed (kodeagent+os+json), by a threshold (codemie@HIGH), and by the
rules that find something, all of them (in brackets, each once).  `*` is every policy but off.

A rule with `!` in the brackets, as in linx[!dynamic_code], finds nothing here, although the program looks like what it
is for: a near miss.  It may be a mention in a text or a comment, a longer name, a parameter, a harmless relative.
"""

import collections
import json
import re
import signal
import shutil
import subprocess
from pathlib import Path

import pytest

from cli import ROOT, caisson
from daemon import Daemon

FOLDER = ROOT / "tests/policy"
EVERY = ["kodeagent", "agentos", "linx", "linx-strict", "codemie", "mcp-light"]
EXTENSIONS = {"python": "py", "javascript": "js", "typescript": "ts", "bash": "sh"}
EXPECTED = re.compile(r"([a-z*-]+)((?:\+[\w.]+)*)(?:@(\w+))?(?:\[([^\]]*)\])?$")

Case = collections.namedtuple("Case", "language file line title policy allow threshold verdict rules near code")


def read_cases(path):
    language = path.parent.name
    with open(path, encoding="utf-8", newline="") as file:   # a carriage return is a carriage return
        blocks = re.split(r"^=== ", file.read(), flags=re.M)
    line = 1 + blocks[0].count("\n")
    for block in blocks[1:]:
        title, rest = block.split("\n", 1)
        claims = re.match(r"(?:--- .*\n)+", rest)
        code = rest[claims.end():]
        code = code[:-1] if code.endswith("\n\n") else code
        for claim in claims[0].splitlines():
            verdict, *words = claim[4:].split()
            for word in words:
                name, allow, threshold, listed = EXPECTED.match(word).groups()
                ids = sorted(filter(None, (listed or "").split(",")))
                near = tuple(rule[1:] for rule in ids if rule.startswith("!"))
                rules = None if listed is None else tuple(rule for rule in ids if not rule.startswith("!"))
                for policy in EVERY if name == "*" else [name]:
                    yield Case(language, path.name, line, title, policy, tuple(allow.split("+")[1:]), threshold, verdict,
                               rules, near, code)
        line += block.count("\n")


ALL = [case for path in sorted(FOLDER.glob("*/*.cases")) for case in read_cases(path)]


def setting(case):
    return case.language, case.policy, case.allow, case.threshold


def wrong(case, result):
    rules = tuple(sorted({finding["rule"] for finding in result["findings"]}))
    if result["verdict"] != case.verdict or (case.rules is not None and rules != case.rules):
        found = [f"{f['line']}:{f['column']} {f['rule']}" for f in result["findings"]]
        return f"{case.file}:{case.line}: {case.title}: {case.policy}: {result['verdict']} {found} {result['error']}"
    for finding in result["findings"]:
        lines = case.code.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert finding["message"] and finding["line"] <= len(lines) and finding["text"] == lines[finding["line"] - 1]
    return None


@pytest.fixture(name="daemon", scope="module")
def running(tmp_path_factory):
    """Programs that do not parse are told in the words of an interpreter, and one that waits is quicker."""
    daemon = Daemon(tmp_path_factory.mktemp("daemon")).ready()
    yield daemon
    assert daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize("what", sorted({setting(case) for case in ALL}, key=str), ids=lambda what: "-".join(map(str, filter(None, what))))
def test_verdicts(what, tmp_path, daemon):
    language, policy, allow, threshold = what
    cases = [case for case in ALL if setting(case) == what]
    paths = []
    for number, case in enumerate(cases):
        paths.append(tmp_path / f"{number}.{EXTENSIONS[language]}")
        paths[-1].write_bytes(case.code.encode("utf-8", "surrogateescape"))
    options = [f"--allow-import={name}" for name in allow] + ([f"--block-at={threshold}"] if threshold else [])
    done = daemon.caisson("check", "--json", "--policy", policy, *options, *paths)
    results = [json.loads(line) for line in done.out.splitlines()]
    assert [result["file"] for result in results] == [str(path) for path in paths], done.err
    assert not list(filter(None, map(wrong, cases, results)))


def rules_of(policy):
    """(language, rule) of everything that a policy says.  What it says of JavaScript it says of TypeScript.  A rule that is off says nothing."""
    rules = [rule for rule in json.loads(caisson("policy", "show", policy, "--json").out)["rules"] if rule["severity"] != "OFF"]
    return {(language, rule["id"]) for rule in rules for language in set(rule.get("languages", EXTENSIONS)) - {"typescript"}}


@pytest.mark.parametrize("policy", EVERY)
def test_every_rule_has_cases(policy):
    found, missed = collections.Counter(), collections.Counter()
    for case in ALL:
        if case.policy == policy:
            language = "javascript" if case.language == "typescript" else case.language
            found.update((language, rule) for rule in case.rules or ())
            missed.update((language, rule) for rule in case.near)
    rules = rules_of(policy)
    assert not sorted(one for one in rules if found[one] < 3), "three programs in which it finds something"
    assert not sorted(one for one in rules if missed[one] < 3), "three near misses"
    assert not sorted(set(missed) - rules), "no such rules"


def test_scripts_of_this_system_parse_as_bash_has_them(tmp_path):
    paths = sorted(path for path in Path("/usr/share/bash-completion/completions").glob("*") if path.is_file() and not path.is_symlink())
    if not paths or not shutil.which("bash"):
        pytest.skip("no bash completions here")
    copies = [tmp_path / f"{path.name}.sh" for path in paths]
    for path, copy in zip(paths, copies):
        copy.write_bytes(path.read_bytes())
    done = caisson("check", "--json", "--policy", "linx", *copies)
    broken = {Path(result["file"]).stem for result in map(json.loads, done.out.splitlines()) if result["error"]}
    assert broken == {path.name for path in paths if subprocess.run(["bash", "-n", path], stderr=subprocess.DEVNULL, check=False).returncode}
