"""Which pages of memory a run writes to, so that it can have its own copies of them before its program comes.

After a fork all memory is shared, and the first write to each page costs a fault and a copy; an interpreter writes to
many, for its objects count their references in themselves.  Which ones hardly depends on the program.  So one process
is forked that runs a sample, and looks at its own page table at the end (proc_pid_pagemap(5), Linux 4.2).
"""

import sys
from posix import O_CLOEXEC, O_RDONLY, O_WRONLY, O_CREAT, _exit, close, dup2, fork, open, pipe, pread, read, sysconf, unlink, waitpid, write

PAGE = sysconf('SC_PAGE_SIZE')
PRESENT, OF_FILE, ALONE = 1 << 63, 1 << 61, 1 << 56
TO_READ, TO_WRITE = 0, 1        # struct page_range in extension.c
GAPS = {TO_READ: 16, TO_WRITE: 1}    # pages that are taken along, because a call costs more than they do
PROGRAM_FILE = '/tmp/.caisson-sample.py'


def mappings():
    """(first page, pages) of all private memory."""
    found = []
    with sys.modules['io'].open('/proc/self/maps', encoding='utf-8', errors='surrogateescape') as maps:
        for line in maps:
            place, rights, _, _, _, *name = line.split(None, 5)
            if rights[0] == 'r' and rights[3] == 'p' and not (name and name[0].startswith('[v')):
                start, end = (int(number, 16) // PAGE for number in place.split('-'))
                found.append((start, end - start))
    return found


def touched(mappings):
    """(first page, pages, kind) of what this process alone has, and of the files that it reads."""
    ranges, table = [], open('/proc/self/pagemap', O_RDONLY | O_CLOEXEC)
    for first, pages in mappings:
        for number, entry in enumerate(memoryview(pread(table, pages * 8, first * 8)).cast('Q'), first):
            if not entry & PRESENT or not entry & (OF_FILE | ALONE):
                continue
            kind = TO_READ if entry & OF_FILE else TO_WRITE
            if ranges and ranges[-1][2] == kind and number - ranges[-1][1] <= GAPS[kind] and ranges[-1][0] >= first:
                ranges[-1][1] = number + 1
            else:
                ranges.append([number, number + 1, kind])
    close(table)
    return ranges


class Probe:
    """Stands in for _caisson in the process that finds out."""

    def __init__(self, program, environment, answer):
        self.environment = environment
        self.answer = answer
        self.mappings = mappings()
        file = open(PROGRAM_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        write(file, program)
        close(file)

    def wait(self):
        socket = __import__('_socket')
        theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[1]
        dup2(theirs.detach(), 3)
        for fd in 1, 2:
            dup2(pipe()[1], fd)
        return [b'', PROGRAM_FILE.encode()], [name + b'=' + value for name, value in self.environment.items()]

    def leave(self, status, _channel):
        ranges = touched(self.mappings)
        text = b''.join(number.to_bytes(8, 'little') for first, end, kind in ranges
                        for number in (first * PAGE, (end - first) * PAGE, kind))
        write(self.answer, bytes([status]))
        while text:
            text = text[write(self.answer, text):]
        _exit(0)


def fork_probe(program, environment):
    """The ranges, as _caisson wants them; in the new process, a Probe."""
    ours, theirs = pipe()
    pid = fork()
    if pid == 0:
        close(ours)
        return Probe(program, environment, theirs)
    close(theirs)
    text = b''
    while piece := read(ours, 65536):
        text += piece
    close(ours)
    waitpid(pid, 0)
    try:
        unlink(PROGRAM_FILE)
    except OSError:
        pass
    if text[:1] != b'\0':
        sys.stderr.write('zygote.py: the pages that a run writes to are not known; runs will be slower\n')
        return b''
    return text[1:]
