"""A pytest plugin that reports in TAP to the descriptor in CAISSON_TAP_FD, so that tests/run reads one protocol.

A junitxml file exists only when pytest ends by itself; lines that were written before a hang are not lost.
"""

import os

import pytest

tap = os.fdopen(int(os.environ.pop("CAISSON_TAP_FD")), "w", buffering=1, encoding="utf-8")
# The descriptor is for this process: a program under test that inherits it would keep tests/run waiting.
os.set_inheritable(tap.fileno(), False)

count = 0


def say(verdict, name, comment=""):
    global count
    count += 1
    # A hash in a name would begin a directive.
    print(f"{verdict} {count} - {name.replace('#', '')}{comment}", file=tap)


def explain(text):
    for line in text.splitlines():
        print(f"#   {line}", file=tap)


def skip_reason(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return " ".join(reason.removeprefix("Skipped: ").split())


def pytest_runtest_logreport(report):
    if report.failed:
        say("not ok", report.nodeid + ("" if report.when == "call" else f" ({report.when})"))
        explain(report.longreprtext)
        for title, text in report.sections:
            explain(f"---- {title} ----\n{text}")
    elif hasattr(report, "wasxfail") and report.when == "call":
        say("ok", f"{report.nodeid} (fails as expected: {report.wasxfail})")
    elif report.skipped:
        say("ok", report.nodeid, f" # SKIP {skip_reason(report)}")
    elif report.when == "call":
        say("ok", report.nodeid)


def pytest_collectreport(report):
    if report.failed:
        say("not ok", f"{report.nodeid} (collection)")
        explain(report.longreprtext)
    elif report.skipped:
        say("ok", f"{report.nodeid} (whole file)", f" # SKIP {skip_reason(report)}")


def pytest_runtest_logstart(nodeid):
    # Shown only when no result follows: then this is the test that hung or died.
    print(f"# in {nodeid}", file=tap)


def pytest_sessionfinish(session):
    print(f"1..{count}", file=tap)
    # A file that skips itself has told us so; to pytest it is a file without tests.
    if count and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
