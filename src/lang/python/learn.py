"""Find out which pages of memory a run writes to, and which text it looks at: a process goes the whole way of a run with a sample program (pages.h)."""

import sys
from posix import O_CLOEXEC, O_CREAT, O_WRONLY, _exit, close, dup2, open, pipe, read, unlink, waitpid, write

PROGRAM_FILE = b'/tmp/.caisson-sample.py'


class Probe:
    """Stands in for _caisson in the process that finds out."""

    def __init__(self, caisson, program, arguments, entries, answer, message):
        self.tell = caisson.tell
        self.look = caisson.only_file
        self.program = program
        self.arguments = arguments
        self.entries = entries
        self.answer = answer
        caisson.remember()
        socket = __import__('_socket')
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if message:
            self.ours.send(message)
        dup2(theirs.detach(), 3)
        for fd in 1, 2:
            dup2(pipe()[1], fd)

    def wait(self):
        return self.arguments, self.entries

    def only_file(self, name):
        self.look(name)
        return self.program

    def leave(self, status, _channel):
        if status == 0:
            self.tell(self.answer)
        _exit(status)


def fork_probe(caisson, program, arguments, entries, message):
    """The ranges, as serve() wants them; in the new process, a Probe.  It gets a message from the engine if it has a role."""
    answer, answers = pipe()
    arguments = arguments or [b'', PROGRAM_FILE]
    file = open(arguments[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    write(file, program)
    close(file)
    pid = caisson.fork()
    if pid == 0:
        close(answer)
        return Probe(caisson, program, arguments, entries, answers, message)
    close(answers)
    pages = b''
    while piece := read(answer, 1 << 20):       # and nothing else runs here before it has told
        pages += piece
    close(answer)
    waitpid(pid, 0)
    unlink(arguments[1])
    if not pages:
        sys.stderr.write('zygote.py: the pages that a run writes to are not known; runs will be slower\n')
    return pages
