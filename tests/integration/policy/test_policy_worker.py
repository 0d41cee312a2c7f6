"""caisson-policy, the process that parses foreign text: what it has, and what is left to it."""

import contextlib
import json
import os
import re
import socket
import struct
import time
from pathlib import Path

import pytest

from cli import ROOT

BUILD = ROOT / os.environ.get("CAISSON_BUILD", "build")
POLICIES = BUILD / "src/policy/policies"


class Worker:
    """Started as the checker starts it: its socket is descriptor 3.  A descriptor too many is left open."""

    def __init__(self):
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20)
        more = os.open("/etc/passwd", os.O_RDONLY)
        actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3), (os.POSIX_SPAWN_DUP2, more, 9)]
        self.pid = os.posix_spawn(BUILD / "caisson-policy", ["caisson-policy", POLICIES], {}, file_actions=actions)
        theirs.close()
        os.close(more)

    def send(self, data, code=b""):
        self.socket.sendall(struct.pack("=II", len(data), len(code)) + data + code)

    def read(self):
        length, = struct.unpack("=I", self.exactly(4))
        return json.loads(self.exactly(length))

    def exactly(self, length):
        data = b""
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def ask(self, code, **more):
        self.send(json.dumps({"language": "python", "policy": "linx", "code": "", **more}).encode(), code.encode())
        return self.read()

    def proc(self, name):
        return Path(f"/proc/{self.pid}", name)

    def status(self):
        return dict(line.split(":\t", 1) for line in self.proc("status").read_text().splitlines() if ":\t" in line)

    def end(self):
        """Its exit status, after its socket was closed."""
        self.socket.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        return None

    def close(self):
        self.socket.close()
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)


@pytest.fixture
def worker():
    one = Worker()
    try:
        yield one
    finally:
        one.close()


def test_it_has_no_rights(worker):
    assert worker.ask("x = 1")["verdict"] == "allow"
    status = worker.status()
    assert (status["Seccomp"], status["NoNewPrivs"], status["Threads"]) == ("2", "1", "1")


def test_it_has_no_descriptor_but_its_socket(worker):
    if os.geteuid() != 0:
        pytest.skip("needs root to look into a process that cannot be dumped")
    assert worker.ask("x = 1")["verdict"] == "allow"
    links = {name: os.readlink(worker.proc("fd") / name) for name in os.listdir(worker.proc("fd"))}
    assert list(links) == ["3"] and links["3"].startswith("socket:")


def test_its_limits(worker):
    assert worker.ask("x = 1")["verdict"] == "allow"
    limits = {}
    for line in worker.proc("limits").read_text().splitlines()[1:]:
        name, soft, hard = re.match(r"Max (.*?)\s{2,}(\S+)\s+(\S+)", line).groups()
        assert soft == hard or name not in ("open files", "address space")
        limits[name] = hard
    wanted = {"core file size": "0", "file size": "0", "processes": "0", "locked memory": "0", "open files": "4",
              "address space": str(1536 << 20)}
    assert {name: limits[name] for name in wanted} == wanted


def test_it_ends_with_its_socket(worker):
    assert worker.ask("eval('1')")["verdict"] == "deny"
    assert worker.end() == 0


def test_it_ends_with_its_socket_while_it_works(worker):
    """A text that takes minutes, and a caller that was killed meanwhile."""
    assert worker.ask("x = 1")["verdict"] == "allow"
    worker.send(b'{"language": "javascript", "policy": "linx", "code": ""}', b"async " * 100000)
    worker.socket.settimeout(3)
    with pytest.raises(TimeoutError):
        worker.read()
    assert worker.end() == 0


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\0" * 100, b'{"code": 1}', b'{"code": "x", "policy": "nope"}',
                                  b'{"code": "x", "language": "cobol"}', b'{"code": "x", "more": 1}', b'"' + b"a" * 100000,
                                  b"[" * 100000], ids=range(11))
def test_what_is_no_request_is_an_answer_too(worker, data):
    worker.send(data)
    answer = worker.read()
    assert answer["verdict"] == "deny" and answer["error"]["message"] and answer["reason"]
    assert worker.ask("x = 1")["verdict"] == "allow"


@pytest.mark.parametrize("lengths", [(0xffffffff, 0), (0, 0xffffffff), (0, (1 << 20) + 1), ((8 << 20) + 1, 0)])
def test_a_length_that_is_too_much_ends_it(worker, lengths):
    worker.socket.sendall(struct.pack("=II", *lengths))
    with pytest.raises(EOFError):
        worker.read()
    assert worker.end() == 0


def test_bytes_that_are_no_text(worker):
    worker.send(b'{"language": "python", "policy": "linx", "code": ""}', b"x = '\xff'\n")
    answer = worker.read()
    assert answer["verdict"] in ("allow", "deny") and answer["policy"] == "linx"


def test_requests_one_after_the_other_do_not_make_it_grow(worker):
    code = "import os\n" + "os.getcwd(); x = [1, 2, 3]\n" * 200
    for _ in range(20):
        worker.ask(code)
    before = int(worker.status()["VmRSS"].split()[0])
    for _ in range(800):
        assert worker.ask(code)["verdict"] == "allow"
    assert int(worker.status()["VmRSS"].split()[0]) <= before + 8192     # large pages come and go
