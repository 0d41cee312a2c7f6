#: what: child processes with pipes, an environment, a time-out and an exit status
#: stdout: sorted ['apple', 'fig', 'pear']; exit 3; late; signal SIGTERM
import os
import signal
import subprocess
import sys

with subprocess.Popen(["sort"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sort:
    output, _ = sort.communicate("pear\napple\nfig\n")

child = subprocess.run([sys.executable, "-c", "import os, sys; sys.exit(int(os.environ['STATUS']))"],
                       env={**os.environ, "STATUS": "3"}, check=False)

try:
    subprocess.run(["sleep", "30"], timeout=0.1, check=True)
    late = "in time"
except subprocess.TimeoutExpired:
    late = "late"

sleeper = subprocess.Popen(["sleep", "30"], start_new_session=True)
os.killpg(sleeper.pid, signal.SIGTERM)
ended = signal.Signals(-sleeper.wait(timeout=5)).name

mixed = subprocess.run("echo out; echo err >&2", shell=True, capture_output=True, text=True, check=True)
assert (mixed.stdout, mixed.stderr) == ("out\n", "err\n")
print(f"sorted {output.split()}; exit {child.returncode}; {late}; signal {ended}")
