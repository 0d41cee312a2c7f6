"""instance = shared: cases of a submission in one process, one after another, as other graders run them.

The process writes a record about each case to a file in memory.  The waiting process looks at the file, ends the process if
a case uses up its time, and tells the engine of all cases with a valid record.  What is left after a crash, a time-out, an
exit or a sign of tampering runs in a process for each case (cases.py).  A record that the submission writes itself gains
nothing: expected values are not in this sandbox.
"""

import sys
from _io import open as open_stream
from _signal import SIGKILL
from _thread import _count as count_threads
from posix import _exit, close, fork, fstat, getpid, kill, memfd_create, pidfd_open, pread, wait4, write
from select import POLLIN
from struct import Struct
from time import monotonic, process_time

main = load_part('main_program')
HEAD = Struct('<QQQQQ')         # bytes of the text; ends of both outputs; microseconds of CPU and of wall-clock time
HONEST = b',"signs":[]}'
LOOK_MS = 100
OUTPUT_MAX = 32 << 20           # bytes of the output of all cases in one process: half of what a file may have (cases.py)
MFD_CLOEXEC = 1
get_trace, get_profile = sys.gettrace, sys.getprofile


def run_shared(grader):
    """Run the cases of the grader; those that need processes of their own stay in grader.cases.  False: the engine is gone."""
    cases = [case for case in grader.cases if case.mistake is None]
    if not cases:
        return True
    grader.flush()
    records, outputs = memfd_create('records', MFD_CLOEXEC), (memfd_create('stdout', MFD_CLOEXEC), memfd_create('stderr', MFD_CLOEXEC))
    try:
        reason, memory = (rehearse if grader.runner.is_sample else play)(grader, cases, records, outputs)
        if reason == 'gone':
            return False
        done = tell(grader, cases, records, outputs, reason, memory)
        grader.cases = [case for case in grader.cases if case.index not in done]
        grader.send(op='shared')
        return True
    finally:
        for fd in (records, *outputs):
            close(fd)


def play(grader, cases, records, outputs):
    """Run the cases in another process.  Returns what wait() returns."""
    pid = fork()
    if not pid:
        try:
            Player(grader, grader.enter_shared(cases, records, outputs), outputs).play(cases)
        finally:
            _exit(0)
    return wait(grader, cases, pid, records)


def rehearse(grader, cases, records, outputs):
    Player(grader, records, outputs).play(cases * 4)
    return None, 0


class Player:
    """The process of the cases."""

    def __init__(self, grader, records, outputs):
        self.grader, self.records, self.outputs = grader, records, outputs
        self.pid = getpid()
        self.streams = sys.stdin, sys.stdout, sys.stderr
        self.names = dict(grader.runner.names)

    def play(self, cases):
        for case in cases:
            wall, cpu = monotonic(), process_time()
            text = self.text_of(case)
            self.write(text, int((process_time() - cpu) * 1e6), int((monotonic() - wall) * 1e6))
            if text[-len(HONEST):] != HONEST or count_threads() or max(self.sizes()) > OUTPUT_MAX:
                break

    def sizes(self):
        return [fstat(fd).st_size for fd in self.outputs]

    def write(self, text, cpu_us, wall_us):
        left = HEAD.pack(len(text), *self.sizes(), cpu_us, wall_us) + text
        while left:
            left = left[write(self.records, left):]

    def text_of(self, case):
        """The message about a case.  Ends the process if the case would have ended its own; then the case runs again in one."""
        if self.grader.program is not None:
            self.begin_program()
        value, error = self.grader.attempt(case)
        if getpid() != self.pid or get_trace() is not None or get_profile() is not None:
            _exit(0)
        if self.grader.program is not None:
            return self.end_program(value.error if error is None else error)
        if error is not None and issubclass(type(error), SystemExit):
            _exit(0)
        text = self.grader.document_of(value, error)
        self.grader.flush()
        return text

    def begin_program(self):
        """Names and standard input as the first program found them."""
        names, stdin = self.grader.runner.names, self.streams[0]
        names.clear()
        names.update(self.names)
        sys.stdin = sys.__stdin__ = open_stream(0, 'r', encoding=stdin.encoding, errors=stdin.errors, closefd=False)
        if names.get('stdin') is stdin:         # of a prelude
            names['stdin'] = sys.stdin

    def end_program(self, error):
        if count_threads():
            _exit(0)
        is_failure = error is not None and not issubclass(type(error), SystemExit)
        text = self.grader.error_text(error) if is_failure else None
        status = main['finish'](None if error is None else drive_here(self.grader.runner.ending_of(error)))
        if self.grader.patched(self.grader.functions_at_load) or (sys.stdout, sys.stderr) != self.streams[1:] or sys.stdout.closed:
            _exit(0)
        return text or b'{"how":"exited","exit_code":%d,"signs":[]}' % status


class Records:
    """The records in the file, as far as they are whole."""

    def __init__(self, fd, most):
        self.fd, self.most = fd, most
        self.at, self.count = 0, 0

    def look(self):
        """The number of whole records."""
        size = fstat(self.fd).st_size
        while self.count < self.most and self.at + HEAD.size <= size:
            length = HEAD.unpack(pread(self.fd, HEAD.size, self.at))[0]
            if length > size - self.at - HEAD.size:
                break
            self.at += HEAD.size + length
            self.count += 1
        return self.count


class Watch:
    """The time of the case that is running; a case is noticed up to LOOK_MS after its begin."""

    def __init__(self, grader, cases, pid, fd):
        self.grader, self.cases, self.pid = grader, cases, pid
        self.records = Records(fd, len(cases))
        self.total = grader.total_s
        self.count, self.since, self.used = 0, monotonic(), 0.0

    def look(self):
        if self.records.look() > self.count:
            self.count, self.since, self.used = self.records.count, monotonic(), self.grader.cpu_seconds(self.pid)

    def case(self):
        """The case that is running; behind the last one the end of the process belongs to the last one."""
        return self.cases[min(self.count, len(self.cases) - 1)]

    def patience_ms(self):
        case = self.case()
        left = min(self.since + case.wall_s - monotonic(), min(self.used + case.cpu_s, self.total) - self.grader.cpu_seconds(self.pid))
        return max(1, min(LOOK_MS, 1000 * left))

    def reason_to_end(self):
        case = self.case()
        if self.grader.cpu_seconds(self.pid) >= self.total:
            return 'total'
        if monotonic() - self.since >= case.wall_s + self.grader.waited(self.pid, case):
            return 'wall'
        return 'cpu' if self.grader.cpu_seconds(self.pid) - self.used >= case.cpu_s else None


def wait(grader, cases, pid, fd):
    """Wait for the end of the process.  Returns the limit that ended a case, or 'gone', or None; and the memory of the process."""
    watch, ready, reason = Watch(grader, cases, pid, fd), grader.ready, None
    process = pidfd_open(pid)
    ready.register(process, POLLIN)
    try:
        while True:
            events = dict(ready.poll(watch.patience_ms() if reason is None else None))
            if process in events:
                break
            watch.look()
            reason = reason or ('gone' if grader.talk.channel.fd in events else watch.reason_to_end())
            if reason is not None:
                kill(pid, SIGKILL)
    finally:
        ready.unregister(process)
        close(process)
    grader.kill_rest(pid)
    _, _, usage = wait4(pid, 0)
    grader.reap_rest()
    return reason, usage.ru_maxrss * 1024


def tell(grader, cases, fd, outputs, reason, memory):
    """Tell the engine of the cases with valid records.  Returns their indexes."""
    data, sizes = pread(fd, fstat(fd).st_size, 0), [fstat(one).st_size for one in outputs]
    done, at, begins = set(), 0, [0, 0]
    for case in cases:
        if at + HEAD.size > len(data):
            break
        length, *ends, cpu_us, wall_us = HEAD.unpack_from(data, at)
        text = data[at + HEAD.size:at + HEAD.size + length]
        are_ends = all(begin <= end <= size for begin, end, size in zip(begins, ends, sizes))
        if len(text) != length or length > grader.room or not are_ends:
            break
        told = grader.tell_shared(case, text, cpu_us / 1e6, wall_us / 1e6, memory, outputs, begins, ends)
        if told is None:        # no record that we would have written
            return done
        done.add(case.index)
        if told:                # signs of tampering
            return done
        at, begins = at + HEAD.size + length, ends
    late = cases[len(done):] if reason == 'total' else cases[len(done):len(done) + 1] if reason in ('cpu', 'wall') else ()
    for case in late:
        grader.tell_late(case, 'wall' if reason == 'wall' else 'cpu', memory)
        done.add(case.index)
    return done
