"""What the checks of this folder share: the list of our files, and TAP (the Test Anything Protocol)."""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("CAISSON_BUILD", "build")
os.chdir(ROOT)


def our_files(*patterns):
    """Paths under version control or about to be, as strings; patterns are git pathspecs such as 'src/*.c'."""
    # The tree may belong to another user than the one who tests it; git then wants to hear that this is meant.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run(command + list(patterns), check=True, capture_output=True, text=True).stdout
    return sorted({path for path in listed.split("\0") if path and os.path.isfile(path)})


def read(path):
    return Path(path).read_text(encoding="utf-8", errors="replace")


def is_text(path):
    with open(path, "rb") as file:
        return b"\0" not in file.read(8192)


def code_of(text):
    """C source with comments and the insides of string and character literals blanked; line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match):
        found = match.group()
        kept = re.sub(r"[^\n]", " ", found)
        return kept if found.startswith("/") else found[0] + kept[1:-1] + found[-1]

    return re.sub(pattern, blank, text, flags=re.S)


def hits(path, text, pattern):
    """'path:line: what was found' for every match."""
    return [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group().strip()}"
            for match in re.finditer(pattern, text, flags=re.M)]


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, name, findings):
        """One test: passed when there are no findings, which are lines for a person to read."""
        self.count += 1
        self.failed += bool(findings)
        print(f"{'not ok' if findings else 'ok'} {self.count} - {name}")
        for line in findings:
            print(f"#   {line}")
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def check_each(self, items, name, find):
        """One test an item, on all cores: name(item) says what is tested, find(item) returns findings."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for item, findings in zip(items, pool.map(find, items)):
                self.check(name(item), findings)

    def done(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)


def run(command, **options):
    """The finished process of a command, with stdout and stderr together in .stdout."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)


def compile_flags():
    """{source path from the root: the flags that change what it means}, as the build in BUILD compiles it.

    Only these are kept, so that clang and cppcheck can read what was written for gcc.
    """
    commands = BUILD / "compile_commands.json"
    if not commands.exists():
        return {}
    flags = {}
    for entry in json.loads(commands.read_text()):
        words = shlex.split(entry["command"])
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        kept = []
        for word, following in zip(words, words[1:] + [""]):
            if re.match(r"-(I|D|U|std=|pthread)", word):
                kept.append(word if not word.startswith("-I") else absolute_include(word, entry["directory"]))
            elif word in ("-isystem", "-include"):
                kept += [word, os.path.join(entry["directory"], following)]
            elif word.startswith("-isystem"):
                kept += ["-isystem", os.path.join(entry["directory"], word.removeprefix("-isystem"))]
        flags[path] = kept
    return flags


def absolute_include(word, directory):
    return "-I" + os.path.normpath(os.path.join(directory, word[2:]))
