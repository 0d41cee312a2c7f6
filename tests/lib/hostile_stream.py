#!/usr/bin/python3 -IS
"""Process 1 of a container as nobody wants it: it greets, and then breaks the protocol of the guest in the way that its argument names."""

import struct
import sys

GREET, PROCESS, FILE, STARTED, OUT, ROOM, EXITED, ENTRY, DATA, DONE, FACTS = 1, 2, 4, 5, 6, 10, 11, 16, 17, 20, 28
WRITE, LIST, READ = 4, 2, 3
LIMIT = 4000        # packets of a flood
way = sys.argv[1]
source, sink = open(0, 'rb', buffering=0, closefd=False), open(1, 'wb', buffering=0, closefd=False)


def number(n):
    return struct.pack('<Q', n)


def send(channel, packet):
    data = struct.pack('<II', len(packet), channel) + packet
    while data:
        data = data[sink.write(data):]


def read(n):
    data = b''
    while len(data) < n:
        part = source.read(n - len(data))
        if not part:
            sys.exit()
        data += part
    return data


def entry(name, mode=0o100644):
    text = name.encode()
    return bytes([ENTRY]) + b''.join(map(number, (mode, 5, 1, 1, 0))) + number(len(text)) + text + number(0) * 2 + (number(1) + b'u') * 2 + number(0)


def answer(channel, packet):
    kind = packet[0]
    verb = struct.unpack('<Q', packet[1:9])[0] if kind == FILE else 0
    if kind == FACTS:
        send(channel, bytes([FACTS]) + number(2) + number(1) + number(0) * 16)
    elif way == 'silent':
        return
    elif verb == WRITE and way == 'entries':
        for _ in range(LIMIT):
            send(channel, entry('x' * 1000))
    elif verb == WRITE:
        send(channel, entry('main.py'))
        send(channel, bytes([DONE]))
    elif kind == PROCESS and way == 'silent-program':
        send(channel, bytes([STARTED]) + number(2))
    elif kind == PROCESS:
        for packet in (bytes([STARTED]) + number(2), bytes([OUT]) + b'hello\n', bytes([ROOM]) + number(2 ** 64 - 1), bytes([EXITED]) + number(0)):
            send(channel, packet)
        if way == 'exited-twice':
            for _ in range(3):
                send(channel, bytes([EXITED]) + number(9))
    elif verb == LIST and way == 'list':
        while True:
            send(channel, entry('d/x' * 100))
    elif verb == LIST and way == 'paths':
        for name in ('../escape', '/etc/passwd', 'a', 'a/b', 'c/d', 'c', 'main.py/x', 'ok'):
            send(channel, entry(name))
        send(channel, bytes([DONE]))
    elif verb == LIST:
        send(channel, bytes([DONE]))
    elif verb == READ:
        send(channel, entry('x'))
        send(channel, bytes([DATA]) + b'data')
        if way != 'paths-silent':
            send(channel, bytes([DONE]))


send(0, bytes([GREET]) + number(4))
if way == 'ends':
    sys.exit(0)
while True:
    length, channel = struct.unpack('<II', read(8))
    packet = read(length)
    if channel & 0x80000000:
        answer(channel & 0x7fffffff, packet)
