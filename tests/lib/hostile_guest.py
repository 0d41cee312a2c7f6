#!/usr/bin/python3 -IS
"""Process 1 of a sandbox as nobody wants it: it says what it likes on every socket.  What it does is named by the request."""

import array
import os
import socket
import struct
import sys
import time

GREET, PROCESS, STDIO, FILE = 1, 2, 3, 4
VERSION = 4     # GUEST_VERSION
STARTED, OUT, ERROR, CHANNEL, ENDS, ROOM, EXITED = 5, 6, 7, 8, 9, 10, 11
ENTRY, DATA, EVENT, DONE, FAILED = 16, 17, 19, 20, 21

engine = socket.socket(fileno=3)


def number(n):
    return struct.pack('<Q', n)


def text(t):
    return number(len(t)) + t


def pack(kind, *fields):
    return bytes([kind]) + b''.join(number(field) if isinstance(field, int) else text(field) for field in fields)


def entry(size=5, mode=0o100644, path=b'f', target=b''):
    return pack(ENTRY, mode, size, 1, 1, 0, path, target, b'', b'user', b'user', 0)


def forever(sock, *packets):
    while True:
        for packet in packets:
            sock.send(packet)


def with_descriptors(sock, packet, n=3):
    made = [os.open('/dev/null', os.O_RDONLY) for _ in range(n)]
    try:
        sock.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', made))])
    finally:
        for descriptor in made:
            os.close(descriptor)


def descriptors(sock, n, rounds=2000):
    for _ in range(rounds):
        with_descriptors(sock, pack(STARTED, 2), n)
        with_descriptors(sock, pack(ENDS), n)
    sock.send(pack(EXITED, 0))


def send_all(*packets):
    def act(sock):
        for packet in packets:
            sock.send(packet)
        time.sleep(.2)
    return act


def garbage(sock):
    for size in (1, 2, 5, 9, 100, 70000, 160000):
        for _ in range(20):
            sock.send(os.urandom(size))


def keep(sock):
    kept.append(sock)


kept = []
ACTS = {
    b'nothing': keep,
    b'close': lambda sock: None,
    b'garbage': garbage,
    b'every-kind': send_all(*(bytes([kind]) + os.urandom(n) for n in (0, 8, 16, 40) for kind in range(30) if kind not in (EXITED, DONE, FAILED))),
    b'flood-out': lambda sock: forever(sock, pack(STARTED, 2), bytes([OUT]) + b'x' * 65536, bytes([ERROR]) + b'\xff' * 65536),
    b'flood-small': lambda sock: forever(sock, bytes([OUT]) + b'\xc3', bytes([ERROR]) + b'\xff'),
    b'flood-room': lambda sock: forever(sock, pack(ROOM, 2 ** 64 - 1), pack(STARTED, 7)),
    b'flood-entries': lambda sock: forever(sock, entry(path=b'\1' * 8192, target=b'\2' * 4096)),
    b'flood-events': lambda sock: forever(sock, entry(), pack(EVENT, 1, 0, b'\1' * 8192)),
    b'events-first': lambda sock: forever(sock, pack(EVENT, 1, 0, b'\1' * 8192)),
    b'flood-data': lambda sock: forever(sock, entry(size=10), bytes([DATA]) + b'x' * 65536),
    b'huge-file': lambda sock: forever(sock, entry(size=2 ** 63 - 1), bytes([DATA]) + b'x' * 65536),
    b'short-file': send_all(entry(size=1000), bytes([DATA]) + b'x', pack(DONE)),
    b'data-first': send_all(bytes([DATA]) + b'x' * 1000, entry(size=1000), pack(DONE)),
    b'two-entries': send_all(entry(size=10), entry(size=20), entry(size=1), bytes([DATA]) + b'x' * 10, pack(DONE)),
    b'exited-twice': send_all(pack(STARTED, 2), pack(EXITED, 0), pack(EXITED, 256), pack(DONE), pack(EXITED, 0)),
    b'exited-only': send_all(pack(EXITED, 2 ** 64 - 1)),
    b'exited-stopped': send_all(pack(STARTED, 2 ** 63), pack(EXITED, 0x137f)),
    b'exited-cut': send_all(bytes([EXITED]) + b'\0'),
    b'done-twice': send_all(pack(DONE), pack(DONE)),
    b'failed-twice': send_all(pack(FAILED, 1, 28, b'/x', b'one'), pack(FAILED, 1, 28, b'', b'two')),
    b'failed-odd': send_all(pack(FAILED, 77, 2 ** 32 - 1, b'\xff', b'\xc3' * 100)),
    b'failed-cut': send_all(bytes([FAILED]) + b'\1'),
    b'failed-0': send_all(pack(FAILED, 0, 0, b'', b'')),
    b'ends-twice': lambda sock: [with_descriptors(sock, pack(ENDS)) for _ in range(20)] and time.sleep(.2),
    b'ends-without': send_all(pack(ENDS), pack(ENDS)),
    b'descriptors-1': lambda sock: descriptors(sock, 1),
    b'descriptors-3': lambda sock: descriptors(sock, 3),
    b'descriptors-250': lambda sock: descriptors(sock, 250, 20),
    b'empty-packets': lambda sock: [sock.send(b'') for _ in range(10)],
    b'greet-again': lambda _: forever(engine, pack(GREET, VERSION)),
    b'engine-garbage': lambda _: [engine.send(os.urandom(200)) for _ in range(2000)] and time.sleep(5),
    b'exit': lambda _: os._exit(0),
    b'crash': lambda _: os.abort(),
    b'close-engine': lambda _: (engine.close(), time.sleep(1000)),
}


def wanted(packet):
    """The act's name, somewhere in the request."""
    return next((name for name in sorted(ACTS, key=len, reverse=True) if name in packet), b'nothing')


def main():
    engine.send(pack(GREET, VERSION))
    while True:
        packet, ancillary, _, _ = engine.recvmsg(1 << 18, 1000)
        if not packet:
            sys.exit(0)
        made = array.array('i')
        for _, _, data in ancillary:
            made.frombytes(data[:len(data) - len(data) % 4])
        sock = socket.socket(fileno=made[0])
        sock.setblocking(True)   # a flood that waits for room is one without end
        if wanted(packet) in (b'exit', b'crash', b'close-engine'):
            ACTS[wanted(packet)](sock)
        if os.fork() == 0:
            try:
                ACTS[wanted(packet)](sock)
                if wanted(packet) == b'nothing':
                    time.sleep(1000)
            except OSError:
                pass
            os._exit(0)
        sock.close()


main()
