"""The guest as process 1 of a container, asked over its standard streams (src/guest/stream.c).

    /usr/bin/python3 -m pytest -q tests/integration/compat/test_guest_stream.py
"""

import os
import select
import struct
import subprocess
import time

import pytest

from docker_stub import LIB, MOUNTS, RUNNERS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='the sandbox of the guest is made by root')
OPEN = 0x80000000
(HELLO, PROCESS, STDIO, FILE, STARTED, OUT, ERROR, CHANNEL, ENDS, ROOM, EXITED, IN, IN_END, SIGNAL, SIZE, ENTRY, DATA, DATA_END, EVENT, DONE, FAILED,
 CONNECT, SUDO, HEALTH, LISTEN, CONNECTION, ACCEPT, FACTS) = range(1, 29)
INPUT, WRITE, READ = 4, 4, 3


def pack(kind, *fields):
    def field(value):
        if isinstance(value, int):
            return struct.pack('<Q', value)
        if isinstance(value, list):
            return struct.pack('<Q', len(value)) + b''.join(map(field, value))
        return struct.pack('<Q', len(value)) + value.encode()
    return bytes([kind]) + b''.join(map(field, fields))


class Guest:
    def __init__(self):
        self.process = subprocess.Popen(
            ['unshare', '--mount', '--pid', '--net', '--ipc', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', MOUNTS, 'sh', '/opt/caisson/guest', 'stream'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            env={'PATH': os.environ['PATH'], 'RUNNERS': str(RUNNERS), 'LIB': str(LIB), 'TMPFS': 'mode=0755,uid=1001,gid=1001,size=64m', 'GUEST_UID': '1001', 'GUEST_GID': '1001'})
        self.buffer, self.newest = b'', 0
        self.heard = {}
        assert self.frame() == (0, pack(HELLO, 4))

    def frame(self, seconds=30):
        """The next frame: its channel and packet; None at the end of the stream."""
        while True:
            if len(self.buffer) >= 8:
                length, channel = struct.unpack('<II', self.buffer[:8])
                if len(self.buffer) >= 8 + length:
                    packet, self.buffer = self.buffer[8:8 + length], self.buffer[8 + length:]
                    return channel, packet
            assert select.select([self.process.stdout], [], [], seconds)[0], 'the guest is silent'
            part = os.read(self.process.stdout.fileno(), 1 << 20)
            if not part:
                return None
            self.buffer += part

    def send(self, channel, packet):
        data = struct.pack('<II', len(packet), channel) + packet
        while data:
            data = data[os.write(self.process.stdin.fileno(), data):]

    def begin(self, packet):
        self.newest += 1
        self.send(self.newest | OPEN, packet)
        return self.newest

    def hear(self, channel):
        """The next packet of this channel; those of others are kept."""
        while not self.heard.get(channel):
            got = self.frame()
            assert got, 'the guest has ended'
            self.heard.setdefault(got[0], []).append(got[1])
        return self.heard[channel].pop(0)

    def until(self, channel, *kinds):
        packets = []
        while not packets or packets[-1][0] not in kinds:
            packets.append(self.hear(channel))
        return packets

    def start(self, *argv, flags=0, open_files=0):
        return self.begin(pack(PROCESS, flags, 0, 0, open_files, '/home/user', list(argv), ['PATH=/usr/bin:/bin']))

    def facts(self, kills=0):
        names = ('seccomp no_new_privs capabilities uid maps_ids host_uid cgroup controllers interfaces processes cpu_us memory_peak pids_peak oom_kills '
                 'pids_hits throttled_us home_full inodes_full').split()
        packet = self.hear(self.begin(pack(FACTS, kills)))
        assert packet[0] == FACTS
        return dict(zip(names, struct.unpack(f'<{len(names)}Q', packet[1:])))

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def guest():
    guest = Guest()
    yield guest
    guest.end()


def output(packets, kind=OUT):
    return b''.join(packet[1:] for packet in packets if packet[0] == kind)


def test_a_program_with_input(guest):
    program = guest.start('cat', flags=INPUT)
    assert guest.hear(program)[0] == STARTED
    for _ in range(4):
        guest.send(program, bytes([IN]) + b'x' * 60000)
    guest.send(program, bytes([IN_END]))
    packets = guest.until(program, EXITED)
    assert output(packets) == b'x' * 240000 and packets[-1] == pack(EXITED, 0)


def test_facts(guest):
    facts = guest.facts()
    assert facts['uid'] == 1001 and facts['no_new_privs'] == 1 and facts['capabilities'] == 0 and facts['interfaces'] == 0, facts
    assert facts['processes'] == 0 and not facts['maps_ids'] and facts['host_uid'] == 1001


def test_all_processes_are_killed(guest):
    program = guest.start('sh', '-c', 'setsid sleep 1000 & setsid sleep 1000 & echo there; wait')
    guest.until(program, OUT)
    assert guest.facts(kills=1)['processes'] >= 2
    assert guest.until(program, EXITED)[-1] == pack(EXITED, 9)
    assert guest.facts()['processes'] == 0


def test_open_files_of_a_program(guest):
    program = guest.start('sh', '-c', 'ulimit -n; ulimit -Hn', open_files=33)
    assert output(guest.until(program, EXITED)) == b'33\n33\n'


def test_a_program_is_killed_for_memory_before_the_guest(guest):
    program = guest.start('cat', '/proc/self/oom_score_adj')
    assert output(guest.until(program, EXITED)) == b'1000\n'


def test_files(guest):
    wrote = guest.begin(pack(FILE, WRITE, 0, 0o640, 0, 2 ** 64 - 1, 0, 'a/b', '', '', []))
    guest.send(wrote, bytes([DATA]) + b'content')
    guest.send(wrote, bytes([DATA_END]))
    assert [packet[0] for packet in guest.until(wrote, DONE)] == [ENTRY, DONE]
    read = guest.begin(pack(FILE, READ, 0, 0, 0, 2 ** 64 - 1, 0, 'a/b', '', '', []))
    assert output(guest.until(read, DONE), DATA) == b'content'


def test_a_program_connects_to_the_engine(guest):
    listener = guest.begin(pack(LISTEN, 3128))
    assert guest.hear(listener) == pack(STARTED, 3128)
    program = guest.start('bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/3128; echo question >&3; cat <&3; echo over')
    number, = struct.unpack('<Q', guest.until(listener, CONNECTION)[-1][1:])
    connection = guest.begin(pack(ACCEPT, number))
    assert output(guest.until(connection, OUT)) == b'question\n'
    guest.send(connection, bytes([IN]) + b'answer\n')
    guest.send(connection, bytes([IN_END]))
    assert output(guest.until(program, EXITED)) == b'answer\nover\n'
    assert guest.until(connection, DONE)
    assert guest.hear(guest.begin(pack(ACCEPT, number)))[0] == FAILED


def test_a_connection_that_is_closed_in_one_direction_has_its_answer(guest):
    listener = guest.begin(pack(LISTEN, 0))
    guest.hear(listener)
    program = guest.start('/usr/bin/python3', '-c', 'import socket\none = socket.socket(socket.AF_UNIX); one.connect("/dev/shm/.caisson-tools")\n'
                          'one.sendall(b"question"); one.shutdown(socket.SHUT_WR); print(one.makefile().read())')
    number, = struct.unpack('<Q', guest.until(listener, CONNECTION)[-1][1:])
    connection = guest.begin(pack(ACCEPT, number))
    assert output(guest.until(connection, IN_END)) == b'question'
    guest.send(connection, bytes([IN]) + b'answer')
    guest.send(connection, bytes([IN_END]))
    assert output(guest.until(program, EXITED)) == b'answer\n'
    guest.until(connection, DONE)


def test_a_port_of_others_is_refused(guest):
    assert guest.hear(guest.begin(pack(LISTEN, 80)))[0] in (FAILED, STARTED)
    assert guest.hear(guest.begin(pack(LISTEN, 70000)))[0] == FAILED


def test_a_closed_channel_ends_its_program(guest):
    program = guest.start('sleep', '1000')
    guest.hear(program)
    guest.send(program, b'')
    deadline = time.monotonic() + 20
    while guest.facts()['processes']:
        assert time.monotonic() < deadline


def test_a_reader_that_is_slow_loses_nothing(guest):
    program = guest.start('sh', '-c', 'head -c 20000000 /dev/zero; echo end')
    time.sleep(1)
    assert guest.process.poll() is None
    packets = guest.until(program, EXITED)
    assert len(output(packets)) == 20000004


def test_other_operations_go_on_while_a_program_reads_nothing(guest):
    program = guest.start('sleep', '1000', flags=INPUT)
    guest.hear(program)
    for _ in range(4):
        guest.send(program, bytes([IN]) + b'x' * 60000)
    assert guest.facts()['processes'] == 1


@pytest.mark.parametrize('packet', [b'\xff', b'\x01', b'\x02', bytes([FACTS]), bytes([FILE]) + b'\0' * 5, pack(CONNECT, 0)])
def test_a_request_of_no_kind_is_refused(guest, packet):
    assert guest.hear(guest.begin(packet))[0] == FAILED
    assert guest.facts()['uid'] == 1001


def test_frames_for_channels_that_do_not_exist_are_dropped(guest):
    guest.send(77, b'\x0c anything')
    guest.send(0, b'anything')
    assert guest.facts()['uid'] == 1001


@pytest.mark.parametrize('data', [b'\xff' * 64, struct.pack('<II', 160 * 1024 + 1, 1) + b'x' * 100])
def test_a_broken_stream_ends_the_guest(guest, data):
    os.write(guest.process.stdin.fileno(), data)
    assert guest.frame() is None and guest.process.wait(10) is not None


def test_the_end_of_the_stream_ends_all(guest):
    guest.hear(guest.start('sleep', '1000'))
    guest.process.stdin.close()
    assert guest.frame() is None and guest.process.wait(10) is not None


def test_random_bytes(guest):
    random = __import__('random').Random(5)
    for _ in range(300):
        guest.send(random.randrange(1, 60) | (OPEN if random.random() < 0.3 else 0), random.randbytes(random.randrange(1, 40)))
    guest.newest = 1000
    assert guest.facts()['uid'] == 1001
