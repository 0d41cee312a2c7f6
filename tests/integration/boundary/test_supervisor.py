"""caisson-supervisor with an engine that asks what it likes, when it likes (src/wire/wire.h)."""

import os
import select
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from cli import BUILD, children, folders_of
from daemon import command_line, until

(HELLO, PREPARE, JOIN, _, START, EXITING, KILL, GET_STATS, ZYGOTE, RETIRE, READY, CONFINED, STATS, EXITED, REFUSED, GONE, GUEST, JOIN_GUEST, FREEZE, FROZEN,
 _) = range(1, 22)
HEADER = struct.Struct('<IHHII')
MAGIC = 0x43534e57
LASTING = 32
DOOR_PROGRAM = 2
FILTER = struct.Struct('<8xQ')       # of a boundary
MIB = 1 << 20

# Stands in for a zygote.  It forks nothing into a sandbox, and answers as the test wants it.
STANDIN = r'''
import os, socket, struct, sys
sock = socket.socket(fileno=3)
SERVES, FORK, FORKED, FAILED = 1, 2, 3, 4
GO, CONFINED = 1, 5
def say(op, job=0, pid=0, text=b'', fds=()):
    socket.send_fds(sock, [struct.pack('<IIi4x', op, job, pid) + text.ljust(4096, b'\0')], fds)
def child(ends):
    pid = os.fork()
    if pid == 0:
        if not ends:
            import time
            time.sleep(1000)
        os._exit(0)
    fd = os.pidfd_open(pid)
    if ends:
        os.waitpid(pid, 0)
    return pid, fd
say(SERVES, text=b'{}')
while True:
    packet, fds, _, _ = socket.recv_fds(sock, 65536, 6)
    if not packet:
        sys.exit()
    op, job = struct.unpack_from('<II', packet)
    assert op == FORK and len(packet) == 4112
    if sys.argv[1] == 'silent':
        continue
    pid, fd = child(sys.argv[1] == 'dead')
    say(FORKED, job, pid, fds=[fd])
    for one in fds[:1] + fds[2:] + [fd]:
        os.close(one)
    if sys.argv[1] == 'joins':
        talk = socket.socket(fileno=fds[1])
        go, doors, _, _ = socket.recv_fds(talk, 65536, 8)
        assert struct.unpack_from('<I', go)[0] == GO
        talk.send(struct.pack('<I', CONFINED).ljust(len(go), b'\0'))
        continue
    os.close(fds[1])
'''


def numbers(*values):
    return struct.pack(f'<{len(values)}Q', *values)


def text(value):
    return numbers(len(value)) + value.encode()


class Engine:
    """Our end of the socket."""

    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        with theirs:
            self.process = subprocess.Popen([str(BUILD / 'caisson-supervisor'), '--runner-dir', str(BUILD / 'lang')], close_fds=False,
                                            preexec_fn=lambda: os.dup2(theirs.fileno(), 3), env={}, stdin=subprocess.DEVNULL)
        self.kept = []
        self.ask(HELLO)
        self.wait(HELLO)

    def ask(self, op, job=0, body=b'', fds=()):
        socket.send_fds(self.socket, [HEADER.pack(MAGIC, 1, op, job, len(body)) + body], fds)

    def answer(self):
        """(operation, job, body)."""
        packet, fds, _, _ = socket.recv_fds(self.socket, 1 << 18, 8)
        assert packet, 'it has ended'
        self.kept += fds
        _, _, op, job, length = HEADER.unpack_from(packet)
        assert length == len(packet) - HEADER.size
        return op, job, packet[HEADER.size:]

    def wait(self, op, job=None):
        """The next answer, which is this one."""
        got = self.answer()
        assert got[0] == op and job in (None, got[1]), got
        return got[2]

    def shape(self, domain=0):
        return numbers(LASTING, 16 * MIB, 1000, 16 * MIB, 0, 0, 0, 0, 0, 0, domain, 0, 0, 256 * MIB, 1000, 64) + text('test')

    def limits(self, memory=256 * MIB):
        return numbers(60000, 0, 0, memory, 1000, 64, 256, 0)

    def guest(self, job):
        """A persistent sandbox, which serves."""
        self.ask(PREPARE, job, self.shape())
        self.wait(READY, job)
        door = socket.socket(fileno=self.kept[-1])
        self.kept[-1] = -1
        self.ask(GUEST, job, self.limits())
        door.settimeout(60)
        assert door.recv(100)          # GREET
        self.wait(CONFINED, job)
        self.kept.append(door.detach())

    def program(self, argv):
        """Through the door that came last."""
        os.write(self.kept[-1], bytes([DOOR_PROGRAM]) + numbers(len(argv)) + b''.join(map(text, argv)) + numbers(0))

    def zygote(self, job, how, domain=0):
        argv = ['/usr/bin/python3', '-I', '-S', '-c', STANDIN, how]
        self.ask(ZYGOTE, job, self.shape(domain) + numbers(len(argv)) + b''.join(map(text, argv)) + numbers(0))
        if how != 'loading':
            assert self.wait(ZYGOTE, job)

    def loading(self, job):
        """A zygote that never serves."""
        argv = ['/usr/bin/sleep', '1000']
        self.ask(ZYGOTE, job, self.shape() + numbers(len(argv)) + b''.join(map(text, argv)) + numbers(0))

    def enter(self, job, sandbox, zygote):
        """Our ends of the pipe that would be its standard output: its end is seen there."""
        reading, writing = os.pipe()
        null = os.open('/dev/null', os.O_RDWR)
        self.ask(JOIN_GUEST, job, numbers(sandbox, zygote), [writing, null, null, null])
        os.close(writing)
        os.close(null)
        return reading

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def close(self):
        self.socket.close()
        for fd in self.kept:
            if fd >= 0:
                os.close(fd)
        return self.process.wait(60)


@pytest.fixture(name='engine')
def running():
    engine = Engine()
    yield engine
    if engine.process.poll() is None:
        engine.process.kill()
        engine.process.wait()


def is_let_go(reading):
    """Nobody has the other end any more."""
    with open(reading, 'rb', buffering=0) as file:
        assert select.select([file], [], [], 60)[0], 'somebody has it'
        assert file.read(1) == b''


def test_an_interpreter_of_a_zygote_that_there_is_none_is_refused_and_forgotten(engine):
    engine.guest(1)
    before = engine.descriptors()
    for job in range(2, 12):
        reading = engine.enter(job, 1, 77)
        engine.wait(REFUSED, job)
        is_let_go(reading)
    until(lambda: engine.descriptors() == before)
    assert engine.close() == 0


@pytest.mark.parametrize('sandbox', [0, 5, 3])
def test_an_interpreter_for_what_is_no_guest_is_an_attack_or_refused(engine, sandbox):
    engine.guest(1)
    engine.ask(PREPARE, 3, engine.shape())
    engine.wait(READY, 3)
    engine.zygote(9, 'silent')
    reading = engine.enter(4, sandbox, 9)
    if sandbox == 5:
        engine.wait(REFUSED, 4)
        is_let_go(reading)
        assert engine.close() == 0
    else:
        assert engine.process.wait(60) != 0


def test_one_that_is_killed_while_its_zygote_is_asked_ends_with_the_zygote(engine):
    engine.guest(1)
    engine.zygote(9, 'silent')
    before = engine.descriptors()
    reading = engine.enter(2, 1, 9)
    engine.ask(KILL, 2)
    engine.wait(EXITED, 2)
    engine.ask(RETIRE, 9)
    engine.wait(GONE, 9)
    is_let_go(reading)
    until(lambda: engine.descriptors() < before)
    assert engine.close() == 0


def test_one_whose_zygote_goes_is_refused(engine):
    engine.guest(1)
    engine.zygote(9, 'silent')
    reading = engine.enter(2, 1, 9)
    engine.ask(RETIRE, 9)
    assert sorted(engine.answer()[:2] for _ in range(2)) == [(REFUSED, 2), (GONE, 9)]
    is_let_go(reading)
    assert engine.close() == 0


def test_one_that_died_before_its_zygote_told_of_it_is_refused(engine):
    engine.guest(1)
    engine.zygote(9, 'dead')
    before = engine.descriptors()
    for job in range(2, 6):
        reading = engine.enter(job, 1, 9)
        engine.wait(REFUSED, job)
        is_let_go(reading)
    until(lambda: engine.descriptors() == before)
    assert engine.close() == 0


def test_one_may_be_started_with_other_limits_than_its_sandbox_has(engine):
    engine.guest(1)
    engine.zygote(9, 'joins')
    engine.enter(2, 1, 9)
    engine.wait(CONFINED, 2)
    engine.ask(START, 2, engine.limits(64 * MIB))
    engine.ask(GET_STATS, 1)
    engine.wait(STATS, 1)
    assert engine.process.poll() is None


def test_what_is_in_force_is_told_before_the_program_is_looked_at(engine):
    engine.ask(PREPARE, 1, engine.shape())
    assert FILTER.unpack_from(engine.wait(READY, 1)) == (0,)
    engine.ask(START, 1, engine.limits())
    assert FILTER.unpack_from(engine.wait(CONFINED, 1)) == (1,)
    engine.program(['/usr/bin/true'])
    assert engine.wait(EXITED, 1)[:8] == numbers(0)
    assert engine.close() == 0


def test_an_end_that_the_engine_heard_before_the_beginning_counts(engine):
    """Both say so over sockets of their own."""
    engine.ask(PREPARE, 1, engine.shape())
    engine.wait(READY, 1)
    engine.ask(START, 1, engine.limits())
    engine.wait(CONFINED, 1)
    engine.ask(EXITING, 1, numbers(3))
    engine.ask(GET_STATS, 1)
    engine.wait(STATS, 1)               # and nothing has begun
    engine.program(['/usr/bin/sleep', '1000'])
    assert engine.wait(EXITED, 1)[:8] == numbers(3 << 8)
    assert engine.close() == 0


def test_nothing_of_one_that_waits_for_its_zygote_holds_up_the_end(engine):
    engine.guest(1)
    engine.loading(9)
    engine.enter(2, 1, 9)
    engine.ask(GET_STATS, 1)
    engine.wait(STATS, 1)
    engine.socket.close()
    assert engine.process.wait(1.9) == 0        # it gives up after two seconds


def test_what_is_asked_of_a_guest_that_is_on_its_way_is_done(engine):
    """It greets the engine over a socket of their own, so the engine may know of it first."""
    engine.zygote(7, 'silent')
    engine.ask(PREPARE, 1, engine.shape())
    engine.wait(READY, 1)
    engine.ask(GUEST, 1, engine.limits())
    os.close(engine.enter(2, 1, 7))
    engine.ask(FREEZE, 1, numbers(1))
    engine.wait(CONFINED, 1)
    assert engine.wait(FROZEN, 1) == numbers(1)
    engine.ask(FREEZE, 1, numbers(0))
    assert engine.wait(FROZEN, 1) == numbers(0)
    assert engine.close() == 0


@pytest.mark.parametrize('victim', ['supervisor', 'janitor too'])
def test_a_paused_sandbox_does_not_outlive_a_supervisor_that_is_killed(engine, victim):
    engine.guest(1)
    pid = engine.process.pid
    janitor = until(lambda: [child for child in children(pid) if b'janitor' in command_line(child)])   # once it has taken its name
    inside = [int(line) for root in folders_of(pid) for leaf in Path(root).glob(f'caisson-{pid}-*/test-*') for line in (leaf / 'cgroup.procs').read_text().split()]
    assert inside
    engine.ask(FREEZE, 1, numbers(1))
    engine.wait(FROZEN, 1)
    if victim == 'janitor too':
        os.kill(janitor[0], signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        engine.process.wait()
        Engine().close()               # the next one removes what is left
    else:
        os.kill(pid, signal.SIGKILL)
        engine.process.wait()
    until(lambda: not any(Path(f'/proc/{one}').exists() for one in inside))
    until(lambda: not folders_of(pid))


def test_a_job_joins_no_zygote_of_another_domain(engine):
    engine.zygote(7, 'serving', domain=7)
    engine.ask(PREPARE, 1, engine.shape())
    engine.wait(READY, 1)
    engine.ask(JOIN, 1, numbers(7))
    assert b'the zygote of this sandbox is gone' in engine.wait(REFUSED, 1)


def test_a_sandbox_in_a_domain_that_is_not_there_is_refused(engine):
    engine.ask(PREPARE, 1, engine.shape(domain=7))
    assert b'the zygote of this sandbox is gone' in engine.wait(REFUSED, 1)


@pytest.mark.parametrize('domain', [6, 1 << 32])
def test_a_zygote_takes_no_domain_of_another_number(engine, domain):
    engine.ask(ZYGOTE, 7, engine.shape(domain) + numbers(1) + text('/usr/bin/true') + numbers(0))
    with pytest.raises((AssertionError, OSError, EOFError)):
        engine.wait(ZYGOTE, 7)
