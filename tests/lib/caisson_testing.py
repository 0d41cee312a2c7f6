"""What tests share that run programs through the command line.

    record, returncode = run("python", "print(1)", "--memory", "64MiB")
    record, returncode = run("bash", Path("tests/cases/bash/arrays.sh"), stdin="text")

CAISSON names another binary, CAISSON_BUILD another build folder.
"""

import contextlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

LIB = Path(__file__).resolve().parent
TESTS = LIB.parent
ROOT = TESTS.parent
CAISSON = Path(os.environ.get("CAISSON") or ROOT / os.environ.get("CAISSON_BUILD", "build") / "caisson")

# An emulated processor takes this many times as long.
SLOW = 15 if os.environ.get("CAISSON_VM") else 1

LANGUAGES = {".py": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".ts": "typescript",
             ".mts": "typescript", ".sh": "bash"}

# Longer texts go through a file: one argument of a command has at most 128 KiB (MAX_ARG_STRLEN).
ARGUMENT_MAX = 100_000


def command(language, program, options=(), arguments=()):
    """The one place that knows how a program gets into the engine: another road is another command line."""
    return [str(CAISSON), "run", "--json", "-l", language, *options, *program, *(["--", *arguments] if arguments else [])]


def start(language, program, *options, arguments=(), **popen):
    """A running command line, for tests that do something to it; see run() for the arguments."""
    need_engine()
    return subprocess.Popen(command(language, as_words(program), options, arguments), **popen)


def run(language, program, *options, stdin=None, timeout=60 * SLOW, arguments=(), env=None):
    """Run a program, a Path or its text, and return (record, exit status of the command line).

    stdin is text or bytes for the program, env a whole environment for the command line.
    """
    need_engine()
    options = [str(option) for option in options]
    if isinstance(stdin, str):
        stdin = stdin.encode()
    if stdin is not None:
        options += ["--stdin", "-"]
    with tempfile.TemporaryDirectory(prefix="caisson-test-") as folder:
        if not isinstance(program, Path) and len(program) > ARGUMENT_MAX:
            path = Path(folder, "program")
            path.write_text(program, encoding="utf-8")
            program = path
        words = command(language, as_words(program), options, arguments)
        done = subprocess.run(words, input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                              capture_output=True, timeout=timeout, env=env, check=False)
    return read_record(done.stdout, done.stderr), done.returncode


def as_words(program):
    return [str(program)] if isinstance(program, Path) else ["-c", program]


def need_engine():
    if not os.access(CAISSON, os.X_OK):
        pytest.fail(f"there is no program {CAISSON}: build it first (make), or name one in CAISSON", pytrace=False)


class Daemon:
    """A caissond of the test's own, and what a command line has to have in its environment to find it."""

    def __init__(self, folder, settings):
        self.socket = Path(folder, "caissond.sock")
        self.environment = {"CAISSON_ENGINE_SOCKET": str(self.socket), "CAISSON_DAEMON": "always"}
        words = [str(CAISSON.parent / "caissond"), "--set", "engine.log_bytes=0", *(word for setting in settings for word in ("--set", setting))]
        self.log = open(Path(folder, "caissond.log"), "wb")
        self.process = subprocess.Popen(words, env=os.environ | self.environment, stderr=self.log)
        self.environment["CAISSON_DAEMON_PID"] = str(self.process.pid)   # for tests that look at their children

    def ask(self):
        return subprocess.run([str(CAISSON), "pool", "--json"], capture_output=True, env=os.environ | self.environment, timeout=60 * SLOW,
                              check=False)

    def status(self):
        done = self.ask()
        assert done.returncode == 0, done.stderr
        return {"pools": json.loads(done.stdout)}

    def wait(self, ready, seconds=120):
        """Until `ready` says so of the list of pools."""
        deadline = time.monotonic() + seconds * SLOW
        while time.monotonic() < deadline:
            assert self.process.poll() is None, Path(self.log.name).read_text(encoding="utf-8")
            done = self.ask()       # refused until it listens, which is a moment after its socket is there
            if done.returncode == 0 and ready(json.loads(done.stdout)):
                return
            time.sleep(0.05)
        raise AssertionError(f"the daemon did not get ready: {done}\n{Path(self.log.name).read_text(encoding='utf-8')}")

    def stop(self):
        self.process.terminate()
        status = self.process.wait(timeout=60 * SLOW)
        self.log.close()
        return status


def all_ready(pools):
    return pools and all(pool["ready"] >= pool["min"] for pool in pools)


@contextlib.contextmanager
def daemon(folder, *settings):
    running = Daemon(folder, settings)
    try:
        running.wait(all_ready)
        yield running
    finally:
        assert running.stop() == 0, Path(running.log.name).read_text(encoding="utf-8")


def read_record(stdout, stderr):
    try:
        # Bytes that are not UTF-8 must never be in a record, so the decoding is strict.
        return json.loads(stdout.decode("utf-8"))
    except ValueError as error:
        raise AssertionError(f"no record on standard output ({error}): {stdout[:2000]!r}, stderr {stderr[:2000]!r}") from None


def summary(record):
    """The parts of a record that explain a failed test."""
    parts = {name: record.get(name) for name in ("status", "exit_code", "signal", "error", "result", "warnings", "usage")}
    parts["files"] = [file["name"] for file in record.get("files") or []][:20]
    return "\n".join([json.dumps(parts, ensure_ascii=False), "---- stdout", (record.get("stdout") or "")[-3000:],
                      "---- stderr", (record.get("stderr") or "")[-3000:]])


# ---- programs as data: the lines at their top say what they need and what is to come of them ----


def directives(path, known):
    """{key: value} of the `#: key: value` lines (`//: key: value` in JavaScript) that a program begins with."""
    mark = "#:" if path.suffix in (".py", ".sh") else "//:"
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#!"):
            continue
        if not line.startswith(mark):
            break
        key, colon, value = line[len(mark):].strip().partition(":")
        if not colon or key not in known or key in found:
            raise ValueError(f"{path}: not a directive, or there twice: {line}")
        found[key] = value.strip()
    return found


def skip_unless(needs):
    """needs: words; a module of the Python that tests run with, a command, or an architecture."""
    for word in needs.split():
        if word == platform.machine() or shutil.which(word):
            continue
        if not re.fullmatch(r"\w+", word) or importlib.util.find_spec(word) is None:
            pytest.skip(f"needs {word}: not here")
