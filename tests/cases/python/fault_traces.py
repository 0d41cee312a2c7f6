#: what: tracebacks of a crashed child by faulthandler, of chained exceptions and of exception groups
#: stdout: child SIGSEGV with a trace; cause KeyError; group ['TypeError', 'ValueError']; line 30
import faulthandler
import signal
import subprocess
import sys
import traceback

crash = subprocess.run([sys.executable, "-X", "faulthandler", "-c", "import ctypes\ndef f(): ctypes.string_at(8)\nf()"],
                       capture_output=True, text=True, check=False)
assert "Segmentation fault" in crash.stderr and 'line 2 in f' in crash.stderr, crash.stderr
with open("/tmp/trace", "w+", encoding="utf-8") as file:
    faulthandler.dump_traceback(file)
    file.seek(0)
    assert "main.py" in file.read()


def lookup(table):
    try:
        return table["missing"]
    except KeyError as error:
        raise RuntimeError("no entry") from error


try:
    lookup({})
except RuntimeError as error:
    cause = type(error.__cause__).__name__
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    assert "direct cause" in "".join(traceback.format_exception(error))
    line += 8

try:
    raise ExceptionGroup("several", [TypeError("t"), ValueError("v")])
except* (TypeError, ValueError) as group:
    names = sorted(type(error).__name__ for error in group.exceptions)
print(f"child {signal.Signals(-crash.returncode).name} with a trace; cause {cause}; group {names}; line {line}")
