"""The Test Anything Protocol (TAP): reads the lines of one test program and counts the results."""

import re
import sys
import threading
import time
from collections import deque

# A program that prints more lines than this between two results is cut: the last lines explain a failure.
KEPT_LINES = 400


class Screen:
    """Output for a person: whole blocks at a time, in colour on a terminal."""

    def __init__(self, colour):
        self.colour = sys.stdout.isatty() and colour
        self.lock = threading.Lock()

    def paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def show(self, *lines):
        with self.lock:
            print(*lines, sep="\n", flush=True)


class Tally:
    """Counts of results: passed, failed as (program, name), skipped as (program, name, reason), times as (seconds, program, name)."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.times = []

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.times += other.times
        return self

    def total(self):
        return self.passed + len(self.failed) + len(self.skipped)

    def counts(self, screen):
        numbers = [(self.passed, "passed", "32"), (len(self.failed), "failed", "31"), (len(self.skipped), "skipped", "33")]
        return ", ".join(screen.paint(colour, f"{n} {word}") for n, word, colour in numbers if n) or "nothing ran"


class TapReader:
    """Reads the TAP lines of one program.  show() receives each failure as soon as it is known."""

    POINT = re.compile(r"(not )?ok\b(?: +(\d+))?(?: *-? ?(.*?))?(?: *# *(skip|todo)\S*(?: +(.*))?)?$", re.I)
    PLAN = re.compile(r"1\.\.(\d+)(?: *# *skip\S* *(.*))?$", re.I)

    def __init__(self, program, show, screen, required=()):
        self.program = program
        self.show = show
        self.screen = screen
        self.required = required        # features whose absence is a failure and not a skip
        self.last_point = time.monotonic()
        self.tally = Tally()
        self.plan = None
        self.points = 0
        self.recent = deque(maxlen=KEPT_LINES)
        self.explaining = False

    def line(self, line):
        point = self.POINT.match(line)
        plan = self.PLAN.match(line)
        if point:
            self.point(line, *point.groups())
        elif plan:
            if self.plan is not None:
                self.fail("the plan", "a second plan was printed")
            self.plan = int(plan[1])
            if self.plan == 0 and plan[2]:
                self.skip("all of it", plan[2])
        elif line.startswith("Bail out!"):
            self.fail("bails out", line)
            # That explains the missing rest.
            self.plan = self.points
        elif self.explaining:
            self.show("  " + line)
        else:
            self.recent.append(line)

    def point(self, line, failed, number, name, directive, reason):
        self.points += 1
        name = name or f"test {self.points}"
        now = time.monotonic()
        self.tally.times.append((now - self.last_point, self.program, name))
        self.last_point = now
        self.explaining = False
        if number and int(number) != self.points:
            self.fail(name, f"test {number} is reported where {self.points} was expected")
        elif directive and directive.lower() == "skip":
            self.skip(name, reason or "no reason given")
        elif failed:
            self.fail(name, *self.recent)
            self.explaining = True
        else:
            self.tally.passed += 1
        self.recent.clear()

    def skip(self, name, reason):
        needs = re.match(r"needs (\w+)", reason)
        if needs and needs[1] in self.required:
            self.fail(name, f"skipped, but {needs[1]} must be there (CAISSON_REQUIRE): {reason}")
        else:
            self.tally.skipped.append((self.program, name, reason))

    def fail(self, name, *lines):
        self.tally.failed.append((self.program, name))
        self.show(self.screen.paint("31", f"FAIL {self.program}: {name}"), *("  " + line for line in lines))

    def end(self, trouble):
        """The program is gone; trouble is what was wrong with its end, or None."""
        if self.plan is None:
            trouble = trouble or "ended without a plan"
        elif self.plan != self.points:
            trouble = trouble or f"planned {self.plan} tests and reported {self.points}"
        elif not self.points and not self.tally.skipped:
            trouble = trouble or "has no test"
        if trouble:
            self.fail(trouble, *self.recent)
