"""A caissond of our own, and the client for everything that is not timed (bench/client.c is the one that is)."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from processes import TICK_NS, TICKS_MIN, CpuGroup, mean_private, tree, tree_cpu_ns

REQUEST, STATUS = 1, 3
OUTPUT, RECORD, STATUS_ANSWER = 17, 18, 19
HEADER = struct.Struct("<IIB3x")

START_SECONDS = 60
STOP_SECONDS = 20
QUIET_SECONDS = 0.05
QUIET_SHARE = 0.05


class Broken(Exception):
    """Something that should have been measured did not work."""


def clean_environment():
    """The caller's own, without anything that Caisson reads."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("CAISSON_", "CODE_EXECUT", "XDG_"))}


def ask(path, kind, payload=b""):
    """One frame there, and the JSON of the first frame back that is not output."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(START_SECONDS)
        connection.connect(str(path))
        connection.sendall(HEADER.pack(len(payload), 1, kind) + payload)
        with connection.makefile("rb") as stream:
            while len(header := stream.read(HEADER.size)) == HEADER.size:
                length, _, answer = HEADER.unpack(header)
                body = stream.read(length)
                if answer in (RECORD, STATUS_ANSWER):
                    return json.loads(body)
                if answer != OUTPUT:
                    raise Broken(f"caissond answers {body.decode(errors='replace')}")
    raise Broken("caissond has closed the connection")


class Daemon:
    """One caissond with settings of its own, a fresh configuration and a fresh state folder."""

    def __init__(self, program, settings):
        self.folder = Path(tempfile.mkdtemp(prefix="caisson-bench-"))
        self.socket = self.folder / "sock"
        self.log = self.folder / "log"
        (self.folder / "caisson.yaml").write_text(f"engine:\n  state_dir: {self.folder}/state\n", encoding="utf-8")
        (self.folder / "state").mkdir()
        words = [word for key, value in {"engine.socket": self.socket, **settings}.items()
                 for word in ("--set", f"{key}={value}")]
        self.cgroup = CpuGroup()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={**clean_environment(), "CAISSON_CONFIG": f"{self.folder}/caisson.yaml"},
                preexec_fn=self.cgroup.join)
        try:
            self.wait_for_socket()
        except BaseException:
            self.close()
            raise

    def wait_for_socket(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.status = ask(self.socket, STATUS)
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    said = self.log.read_text(encoding="utf-8", errors="replace")[-500:]
                    raise Broken(f"caissond does not answer ({error}): {said}") from None
            time.sleep(0.02)

    def http(self):
        """The URL at which the daemon serves HTTP.  The kernel chose the port (engine.http=127.0.0.1:0)."""
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"serving (http://127\.0\.0\.1:\d+)", self.log.read_text(encoding="utf-8", errors="replace"))):
            if time.monotonic() > deadline:
                raise Broken("caissond does not serve HTTP")
            time.sleep(0.02)
        return found[1]

    def run(self, request):
        return ask(self.socket, REQUEST, json.dumps(request).encode())

    def cpu_by(self):
        """Where CPU time can be read: a sandbox may be in a cgroup that is not below ours."""
        return "cgroup" if self.cgroup.holds(tree(self.process.pid)) else "processes"

    def cpu_ns(self, by):
        return self.cgroup.usage_ns() if by == "cgroup" else tree_cpu_ns(self.process.pid)

    def cpu_since(self, by, before):
        """What it used since then, or None where the clock is too coarse to say."""
        used = self.cpu_ns(by) - before
        return used if by == "cgroup" or used >= TICKS_MIN * TICK_NS else None

    def settle(self, seconds=60):
        """Wait until it has cleaned up and filled its pools: until it hardly uses the CPU any more."""
        by = self.cpu_by()
        deadline, before = time.monotonic() + seconds, self.cpu_ns(by)
        while time.monotonic() < deadline:
            time.sleep(QUIET_SECONDS)
            now = self.cpu_ns(by)
            if now - before < QUIET_SHARE * QUIET_SECONDS * 1e9:
                return
            before = now
        raise Broken(f"caissond is still at work after {seconds} s")

    def pools(self):
        return ask(self.socket, STATUS)["pools"]

    def waiting(self, kind):
        return mean_private(self.process.pid, kind)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Broken(f"caissond was still there {STOP_SECONDS} s after SIGTERM") from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.cgroup.close()
