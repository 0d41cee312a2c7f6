"""Programs that tests/run starts: C programs and checks that print TAP, pytest files, Node files, fuzz targets, the virtual machine."""

import os
import re
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque

from tap_reader import KEPT_LINES, Tally, TapReader

# Processes that were started and have not ended yet.
running = set()

# The slot of programs beside which nothing else may run.
MACHINE = "machine"


def stop(process, patience=10):
    """End a process group: SIGTERM, so that it can clean up, then SIGKILL."""
    for signal_number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, signal_number)
            process.wait(seconds)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run_program(command, seconds, env, on_line, tap_through=None):
    """Run a command in a process group of its own and hand over its lines.  Returns (exit status, trouble).

    With tap_through (the name of a variable) TAP comes through the descriptor whose number is in that variable;
    the command's own output is handed over only when the command ends in a way that TAP cannot explain (pytest: not 0, 1, 2).
    """
    read_end, write_end = os.pipe()
    env = {**os.environ, **env, **({tap_through: str(write_end)} if tap_through else {})}
    printed = deque(maxlen=KEPT_LINES)
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               pass_fds=[write_end] if tap_through else [])
    os.close(write_end)
    running.add(process)
    sinks = {process.stdout.fileno(): printed.append if tap_through else on_line, read_end: on_line}
    trouble = follow(process, sinks, time.monotonic() + seconds)
    # Processes that the program left behind must not disturb the next one.
    stop(process)
    status = process.wait()
    running.discard(process)
    process.stdout.close()
    os.close(read_end)
    if tap_through and (trouble or status not in (0, 1, 2)):
        for line in printed:
            on_line(line)
    return status, trouble


def follow(process, sinks, deadline):
    """Deal out lines until the process has ended and every pipe is closed.  Returns None, or the reason of a failure."""
    rest = dict.fromkeys(sinks, b"")
    ended_at = None
    with selectors.DefaultSelector() as selector:
        for fd in sinks:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(0.2):
                data = os.read(key.fd, 65536)
                *lines, rest[key.fd] = (rest[key.fd] + data).split(b"\n")
                if not data:
                    selector.unregister(key.fd)
                    lines = [rest[key.fd]] if rest[key.fd] else []
                for line in lines:
                    sinks[key.fd](line.decode("utf-8", "replace"))
            now = time.monotonic()
            if now > deadline:
                return "took too long and was killed"
            if process.poll() is not None:
                ended_at = ended_at or now
                if selector.get_map() and now > ended_at + 30:
                    return "left processes behind that keep its output open"
    try:
        process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "took too long and was killed"
    return None


def odd_end(status, failed):
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    if status and not failed:
        return f"ended with status {status} though no test of it failed"
    return None


class Program:
    """One command that prints TAP.

    seconds: the longest time that it may take.  alone: slots that no other running program may hold.  estimate: the
    expected seconds, for the order of starts.  early: start before all others, because failures are likely.  background:
    start at once, beside the workers.
    """

    def __init__(self, name, command, seconds, env=None, tap_through=None, alone=(), estimate=1.0, early=False, background=False):
        self.name = name
        self.part = ""
        self.command = command
        self.seconds = seconds
        self.env = env or {}
        self.tap_through = tap_through
        self.alone = frozenset(alone)
        self.estimate = estimate
        self.early = early
        self.background = background
        self.took = 0.0

    @property
    def full_name(self):
        return f"{self.part}/{self.name}"

    def run(self, show, screen, required, seconds_left):
        started = time.monotonic()
        if seconds_left > 0:
            tally = self.judge(show, screen, required, min(self.seconds, seconds_left))
        else:
            tally = Tally()
            tally.failed.append((self.full_name, "no time left"))
            show(screen.paint("31", f"FAIL {self.full_name}: the time of all tests is used up"))
        self.took = time.monotonic() - started
        show(f"  {self.full_name:<44} {tally.counts(screen)}" + screen.paint("2", f"  {self.took:.1f} s"))
        return tally

    def judge(self, show, screen, required, seconds):
        reader = TapReader(self.full_name, show, screen, required)
        status, trouble = run_program(self.command, seconds, self.env, reader.line, self.tap_through)
        reader.end(trouble or odd_end(status, reader.tally.failed))
        return reader.tally


class Pytest(Program):
    """A pytest file.  Its temporary folders are its own: pytest's usual folder is shared by all of a user's pytest programs."""

    def judge(self, show, screen, required, seconds):
        with tempfile.TemporaryDirectory(prefix="ct-", ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)     # tests run programs of other users below it
            self.command = [*self.command, f"--basetemp={folder}/t"]
            return super().judge(show, screen, required, seconds)


class Command(Program):
    """A program whose only result is its exit status (a fuzz target): one test."""

    def judge(self, show, screen, required, seconds):
        reader = TapReader(self.full_name, show, screen)
        status, trouble = run_program(self.command, seconds, self.env, reader.recent.append)
        if status or trouble:
            reader.fail(trouble or f"ended with status {status}", *reader.recent)
        else:
            reader.tally.passed = 1
        return reader.tally


class Counted(Program):
    """A program that runs tests elsewhere and adds up by itself: its last line has the numbers.

    These tests run on another machine, so the program itself decides which of them may be skipped there.
    """

    INTERESTING = re.compile(r": (==|booted)|\b(FAILED|SKIP|not ok)\b")
    LAST = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped$")

    def judge(self, show, screen, required, seconds):
        reader = TapReader(self.full_name, show, screen)

        def on_line(line):
            reader.recent.append(line)
            if self.INTERESTING.search(line):
                show("  " + line)

        status, trouble = run_program(self.command, seconds, self.env, on_line)
        last = self.LAST.match(reader.recent[-1] if reader.recent else "")
        passed, failed, skipped = map(int, last.groups()) if last else (0, 0, 0)
        trouble = trouble or (None if last else "did not add up") or odd_end(status, failed)
        if failed or trouble:
            show(*("  " + line for line in reader.recent))
        if trouble:
            reader.fail(trouble)
        reader.tally.passed = passed
        reader.tally.failed += [(self.full_name, "see above")] * failed
        reader.tally.skipped += [(self.full_name, "see above", f"inside {self.full_name}")] * skipped
        return reader.tally
