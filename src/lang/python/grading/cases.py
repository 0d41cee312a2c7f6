"""Grading by cases: a function of the program is called with given arguments, and what it gives goes to the engine.

The program is loaded once.  Each case runs in a fork of that, with limits of its own, and what it does to the process ends
with it; the parent only waits.  Neither knows what anybody expects, so there is nothing to find and nothing to gain by an
untrue answer.  What the parent takes from the child is text: it looks at its length and at its shape, and builds what it
sends by itself.

Everything that is needed is bound to names here before the program runs, and so are the builtins (run.py).
"""

import builtins
import gc
import sys
from _io import FileIO, TextIOWrapper
from _json import encode_basestring_ascii
from _signal import (ITIMER_PROF, ITIMER_REAL, ITIMER_VIRTUAL, NSIG, SIGKILL, SIGXCPU, getsignal, setitimer,
                     signal)
from posix import (O_CLOEXEC, O_RDWR, WEXITSTATUS, WIFSIGNALED, WTERMSIG, _exit, close, dup, dup2, fork, fstat, getpid, kill, killpg,
                   listdir, memfd_create, open, pidfd_open, pipe2, pread, read, set_blocking, setsid, wait4, waitpid, write)
from resource import RLIMIT_CPU, RLIMIT_FSIZE, RLIM_INFINITY, getrlimit, setrlimit
from select import POLLHUP, POLLIN, poll
from time import clock_gettime, monotonic

TASKS = '/proc/self/task'
PIECE = 1 << 16
LENGTH_SIZE = 8
WAITING = 4                     # a case may last so many times its wall-clock limit, if it waits for the CPU
LOOK_MS = 100                   # several threads use up CPU time faster than it passes
CPUCLOCK_SCHED = 2
TOTAL_MAX_S = 10 ** 9           # of CPU time, where the request has no total_cpu_ms
FILE_MAX = 64 << 20             # of what a case writes, its output too, which is in memory
NAME_MAX = 200
TEXT_MAX = 2000
MRO_MAX = 100
FUNCTIONS_MAX = 100
IS_COROUTINE = 0x80             # inspect.CO_COROUTINE
MISSING_EXIT = 1
REHEARSALS = 12                 # after that the interpreter has adapted code, which it would do again in every fork

canon, literal, report, alike = load_part('canon'), load_part('literal'), load_part('report'), load_part('alike')['document_of']
CanonError, encode, read_json, write_json = canon['CanonError'], canon['encode'], canon['read_json'], canon['write_json']
mro_names, mro_of, type_name = canon['mro_names'], canon['mro_of'], canon['type_name']
plain_text, position_in, repr_within, text_of = report['plain_text'], report['position_in'], report['repr_within'], report['text_of']
role_names = load_part('role')
main, shared = load_part('main_program'), load_part('shared')
ProgramEnd = main['ProgramEnd']
DONE, MESSAGE_MAX, MESSAGE, TO_ENGINE = (role_names[name] for name in ('DONE', 'MESSAGE_MAX', 'MESSAGE', 'TO_ENGINE'))
disable_gc, freeze_gc = gc.disable, gc.freeze
set_trace, set_profile, get_trace, get_profile = sys.settrace, sys.setprofile, sys.gettrace, sys.getprofile
dict_of = type.__dict__['__dict__'].__get__
trace_of = BaseException.__traceback__.__get__
modules = sys.modules
Function = type(lambda: None)
# What a case's process may tell, and of what types that is.
SHAPES = {
    'returned': {'value': str, 'type': str, 'mro': list},
    'unencodable': {'repr': str, 'type': str, 'mro': list},
    'raised': {'message': str, 'type': str, 'mro': list, 'line': (int, type(None))},
    'exited': {'exit_code': int},
}
CHILD_SIGNS = 'patched_builtins', 'suspicious_eq'


async def _coroutine():
    pass


def coroutine_type():
    coroutine = _coroutine()
    coroutine.close()
    return type(coroutine)


Coroutine = coroutine_type()


def sign(name, detail):
    return {'sign': name, 'detail': plain_text(detail)[:NAME_MAX]}


# ------------------------------------------------------------------------------------------------------------- the cases

def run_coroutine(coroutine):
    return __import__('asyncio').run(coroutine)


class Target:
    """What a dotted name of the request leads to."""

    def __init__(self, path):
        self.path = path
        self.function = self.owner = None

    def find(self, names, given):
        """Whether the program has it: a function by this name, or a method of its class Solution.  A name of a prelude is neither."""
        first, *path = self.path.split('.')
        if first not in names or (first in given and names[first] is given[first]):
            self.path, first, path = 'Solution.' + self.path, 'Solution', [first, *path]
        try:
            self.function = names[first]
            for name in path:
                self.owner, self.function = self.function, getattr(self.function, name)
            if not path or not is_method(self.owner, path[-1]):
                self.owner = None
            return callable(self.function)
        except BaseException:
            return False

    def is_async(self):
        return type(self.function) is Function and bool(self.function.__code__.co_flags & IS_COROUTINE)

    def call(self, arguments, named):
        """A method needs an instance, which its class makes without arguments."""
        function = self.function if self.owner is None else getattr(self.owner(), self.path.rpartition('.')[2])
        value = function(*arguments, **named)
        return run_coroutine(value) if type(value) is Coroutine else value


class Case:
    def __init__(self, document, usual_function):
        self.index = document['i']
        self.stdin = None
        self.function = document.get('function') or usual_function
        self.cpu_s = document.get('cpu_ms', 5000) / 1000
        self.wall_s = document.get('wall_ms', 15000) / 1000
        self.mistake = None
        if 'stdin' in document or 'stdin_base64' in document:
            main['read_case'](self, document)
            return
        try:
            self.arguments = read_value(document, 'args', (list, tuple))
            self.named = read_value(document, 'kwargs', (dict,))
            if not self.function:
                raise CanonError('no function is named')
            if not all(type(name) is str for name in self.named):
                raise CanonError('kwargs: a name is no text')
        except CanonError as error:
            self.mistake = str(error)


def read_value(document, name, kinds):
    try:
        value, is_there = literal['read_value'](document, name)
    except CanonError as error:
        raise CanonError('%s: %s' % (name, error)) from None
    if not is_there:
        return kinds[0]()
    if type(value) not in kinds:
        raise CanonError('%s: %s is there in place of %s' % (name, type_name(type(value)), kinds[0].__name__))
    return value


def is_method(owner, name):
    """Whether a class has it for its instances; a static one and one of the class is called as it stands."""
    if not issubclass(type(owner), type):
        return False
    for base in mro_of(owner):
        if name in dict_of(base):
            return type(dict_of(base)[name]) is Function
    return False


def function_names(names, given):
    """What a caller could have meant."""
    return sorted(plain_text(name)[:NAME_MAX] for name, value in list(names.items())
                  if type(name) is str and name[:1] != '_' and type(value) is Function and name not in given)[:FUNCTIONS_MAX]


# ------------------------------------------------------------------------------------------------- in the case's process

class Signals:
    """What the program does when a signal comes is for its cases, and not for who waits for them."""

    usual = {number: getsignal(number) for number in range(1, NSIG)}

    def __init__(self):
        self.own = {}

    def put_aside(self):
        self.own = {number: getsignal(number) for number, handler in self.usual.items() if getsignal(number) is not handler}
        for timer in ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF:
            setitimer(timer, 0)
        for number in self.own:
            signal(number, self.usual[number])

    def restore(self):
        for number, handler in self.own.items():
            signal(number, handler)


class Luck:
    """The state of Python's random numbers: random makes a new one in every fork, but a program may have chosen its own."""

    def __init__(self):
        self.generator = getattr(modules.get('random'), '_inst', None)
        base = getattr(modules.get('_random'), 'Random', None)
        if base is None or not isinstance(self.generator, base):
            self.generator = None
            return
        self.state, self.put = base.getstate(self.generator), base.setstate

    def restore(self):
        if self.generator is not None:
            self.put(self.generator, self.state)


def limit(kind, soft, hard):
    _, most = getrlimit(kind)
    if most != RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    setrlimit(kind, (soft, hard))


def flush_streams():
    for name in STREAMS:
        try:
            getattr(sys, name).flush()
        except BaseException:   # it is gone, closed, or an object of the program's
            pass


def usual_streams():
    """Of those that keep nothing back: what they are, for run_cases() to see whether that has changed."""
    parts = []
    for name in STREAMS:
        stream = getattr(sys, name, None)
        if type(stream) is not TextIOWrapper or type(stream.buffer) is not FileIO:
            return ()
        parts += [(name, stream, TextIOWrapper.__basicsize__, vars(stream)), (None, stream.buffer, FileIO.__basicsize__, vars(stream.buffer))]
    return tuple(parts)


# Those of the builtins that a case is looked through for.  Types are not among them: each is in a page of its own, that a
# process gets a copy of if it counts a reference.
FUNCTIONS = {name: value for name, value in __builtins__.items() if type(value) is type(len)}


def strangers(names, known, compare_values):
    """Which names of a dict are not in another, or not with the same value.  A zygote has this in C."""
    return [name for name, value in names.items() if known.get(name, Luck) is not value]


def eq_of(kind, path):
    """Whether a class of the program's says what its objects are equal to."""
    for base in mro_of(kind):
        function = dict_of(base).get('__eq__')
        if type(function) is Function and function.__code__.co_filename == path:
            return True
    return False


def members_text(**members):
    return write_json(members)[1:-1]


def kind_text(kind):
    return KINDS.get(kind) or members_text(type=plain_text(type_name(kind))[:NAME_MAX],
                                           mro=[plain_text(name)[:NAME_MAX] for name in mro_names(kind)])


# Made ahead: what a process reads is in pages that it shares, and of what it counts references to it gets copies.
KINDS = {}
KINDS.update((kind, kind_text(kind)) for kind in (bool, int, float, str, list, tuple, dict, set, type(None)))
# How the message of a case ends that gave one of these, and did nothing else.
ENDING_OF = {kind: ('",%s,"signs":[]}' % text).encode() for kind, text in KINDS.items()}
HOOKS = get_trace, set_trace, get_profile, set_profile
STREAMS = 'stdout', 'stderr'


def returned(value, path):
    """The members that say what a function gave, and signs."""
    kind = type(value)
    try:
        return '"how":"returned","value":%s,%s' % (encode_basestring_ascii(encode(value, alike)), kind_text(kind)), []
    except CanonError:
        return unencodable(value), [sign('suspicious_eq', type_name(kind))] if eq_of(kind, path) else []


def unencodable(value):
    return '"how":"unencodable","repr":%s,%s' % (write_json(read_json(repr_within(value, TEXT_MAX)[0])), kind_text(type(value)))


def raised(error, path, source):
    line, _ = position_in(trace_of(error), path, source)
    return '%s,%s' % (members_text(how='raised', message=plain_text(text_of(error))[:TEXT_MAX], line=line), kind_text(type(error))), []


def enter_process(grader, cpu_s, writer, outputs):
    """Limits and streams of a case.  Returns where it is to tell its end.  A zygote has this in C."""
    grader.talk.channel.close()     # no handler of ours has run
    if not grader.alone:
        setsid()
    # Programs that close the low descriptors should not meet ours.
    writer = Channel.move_away(writer)
    for number, fd in enumerate((grader.null, *outputs)):
        dup2(fd, number)
    seconds = int(cpu_s) + 2
    limit(RLIMIT_CPU, seconds, seconds + 1)
    limit(RLIMIT_FSIZE, FILE_MAX, FILE_MAX)
    return writer


def attempt(function, *arguments):
    """(value, error)"""
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error


def call_case(grader, case, writer):
    """The call, and what it gives to writer.  Returns the exit status."""
    pid = getpid()
    outcome = attempt(grader.call, case)
    return tell_outcome(grader, *outcome, writer) if getpid() == pid else 0     # else the program has forked, and this is not who was asked


def tell_outcome(grader, value, error, writer):
    """What a call gave, to writer.  Returns the exit status."""
    if get_trace() is not None:
        set_trace(None)
    if get_profile() is not None:
        set_profile(None)
    if type(value) is ProgramEnd:
        return value.tell(grader, writer)
    disable_gc()                    # nobody will miss what it finds
    if error is not None and issubclass(type(error), SystemExit):
        status = load_part('finalize')['exit_code'](error.code)
        flush_streams()
        return status
    text = grader.document_of(value, error)
    flush_streams()
    message = len(text).to_bytes(LENGTH_SIZE, 'little') + text
    while message:
        message = message[write(writer, message):]
    return 0


# --------------------------------------------------------------------------------------------------------- in the parent

def message_size(message):
    return LENGTH_SIZE + int.from_bytes(message[:LENGTH_SIZE], 'little')


def is_text(value, length):
    return type(value) is str and len(value) <= length


def is_sign(value):
    return type(value) is dict and len(value) == 2 and value.get('sign') in CHILD_SIGNS and is_text(value.get('detail'), NAME_MAX)


def members_of(message):
    """What a case's process has told: (members, signs).  CanonError if it is nothing that we would have written."""
    if len(message) != message_size(message):
        raise CanonError('its length is another')
    return members_in(message[LENGTH_SIZE:])


def members_in(text):
    """The same of a message without its length."""
    try:
        document = read_json(text.decode('ascii'))
    except UnicodeDecodeError:
        raise CanonError('it is not ASCII') from None
    shape = SHAPES.get(document.get('how')) if type(document) is dict and type(document.get('how')) is str else None
    if shape is None or set(document) != {'how', 'signs', *shape}:
        raise CanonError('it has other members')
    if not all(isinstance(document[name], kind) and type(document[name]) is not bool for name, kind in shape.items()):
        raise CanonError('it has members of other types')
    signs = document.pop('signs')
    if not (is_text(document.get('type', ''), NAME_MAX) and is_text(document.get('repr', ''), TEXT_MAX)
            and is_text(document.get('message', ''), TEXT_MAX) and len(document.get('mro', ())) <= MRO_MAX
            and all(is_text(name, NAME_MAX) for name in document.get('mro', ()))
            and type(signs) is list and len(signs) <= len(__builtins__) + 1 and all(map(is_sign, signs))):
        raise CanonError('it has members that are too long')
    return document, signs


def read_output(fd, most, begin=0, end=None):
    """The text of a file from begin to end, at most so many characters of it: the beginning, and the end."""
    size = (fstat(fd).st_size if end is None else end) - begin
    if not size:
        return ''
    head = pread(fd, min(size, 4 * most), begin).decode('utf-8', 'replace')
    if size <= 4 * most and len(head) <= most:
        return head
    tail = pread(fd, min(size, 4 * most), begin + max(size - 4 * most, 0)).decode('utf-8', 'replace')
    mark = '\n... %d bytes in all ...\n' % size
    if len(mark) > most:
        return head[:most]
    half = (most - len(mark)) // 2
    return head[:half] + mark + tail[len(tail) - half:]


def cpu_seconds(pid):
    """That a process has used.  The number is MAKE_PROCESS_CPUCLOCK() of the kernel, which is what clock_getcpuclockid(3)
    gives; Python has that function for threads only."""
    try:
        return clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
    except OSError:             # it is no more
        return 0.0


def waiting_seconds(pid):
    """In which a process was ready to run and had no CPU: the second number of /proc/PID/schedstat, in ns."""
    try:
        fd = open('/proc/%d/schedstat' % pid, O_CLOEXEC)
    except OSError:             # it is no more, or this kernel does not count
        return 0.0
    try:
        return int(read(fd, 128).split()[1]) / 1e9
    finally:
        close(fd)


HONEST_END = b'{"op":"end","signs":[]}'


class Grader:
    def __init__(self, role):
        function = role.begin.get('function') or ''
        self.cases = [Case(document, function) for document in role.begin.get('cases') or ()]
        self.program = role.program if role.begin.get('main') is True else None
        self.total_s = role.begin.get('total_ms', 1000 * TOTAL_MAX_S) / 1000
        self.is_shared = role.begin.get('instance') == 'shared'
        paths = (function, *(case.function for case in self.cases)) if self.program is None else ()
        self.targets = {path: Target(path) for path in paths if path}
        self.runner = role.runner
        self.role = role
        self.talk = role.talk
        self.alone = role.runner.options['alone'] == '1'
        self.output_max = role.begin.get('output_max', TEXT_MAX)
        self.room = MESSAGE_MAX - 24 * self.output_max - PIECE     # a character takes up to 12 bytes of JSON
        self.null = open('/dev/null', O_RDWR | O_CLOEXEC)
        self.signals = Signals()
        self.functions_at_load = self.luck = self.native = self.rules = None
        self.strangers = strangers if role.runner.leave is None else role.runner.leave.strangers
        self.quit = _exit if role.runner.leave is None else role.runner.leave.quit
        self.ready = poll()
        self.ready.register(self.talk.channel.fd, 0)

    def send(self, **document):
        self.talk.send(TO_ENGINE, document)

    def run(self):
        """The exit status, when all cases are through."""
        for target in self.targets.values():
            path = target.path
            if not target.find(self.runner.names, self.role.given):
                self.send(op='missing', function=path, functions=function_names(self.runner.names, self.role.given))
                return MISSING_EXIT
        self.send(op='ready')
        if any(target.is_async() for target in self.targets.values()):
            __import__('asyncio')
        self.signals.put_aside()
        present = vars(builtins)
        is_patched = self.strangers(FUNCTIONS, present, True)
        self.functions_at_load = {name: present[name] for name in FUNCTIONS if name in present} if is_patched else FUNCTIONS
        if self.is_shared and not shared['run_shared'](self):
            return 0
        return self.run_forks() if self.cases else self.end()

    def run_forks(self):
        """Each case in a process of its own."""
        self.choose_way()
        self.rehearse()
        flush_streams()
        freeze_gc()             # or a collection in a case would write to every object there is
        if not (self.run_each() if self.native is None else self.run_natively()):
            return 0
        return self.end()

    def end(self):
        found = self.patched(__builtins__)
        if found:
            self.send(op='end', signs=found)
        else:
            self.talk.channel.send(MESSAGE, TO_ENGINE + HONEST_END)
        if self.runner.leave is not None and not self.runner.is_sample and len(listdir(TASKS)) == 1:
            self.leave()
        return 0

    def leave(self):
        """At once: what the program would still do as it ends nobody sees any more."""
        self.talk.channel.send(DONE)
        self.runner.leave.leave(0, self.talk.channel.where)

    def patched(self, names):
        """Signs of builtins that are no longer what they were."""
        return [sign('patched_builtins', name) for name in self.strangers(names, vars(builtins), True)]

    def rehearse(self):
        """What only cases do, and so would be new to the interpreter in each of them."""
        for _ in range(REHEARSALS if len(self.cases) > REHEARSALS and self.program is None else 0):
            self.document_of(0, None)
        if self.runner.is_sample:
            for case in self.cases * 2:
                call_case(self, case, self.null)

    def document_of(self, value, error):
        """What a case's process tells of its end."""
        runner = self.runner
        members, signs = returned(value, runner.path) if error is None else raised(error, runner.path, runner.source)
        signs += self.patched(self.functions_at_load)
        signs = write_json(signs) if signs else '[]'
        text = '{%s,"signs":%s}' % (members, signs)
        return (text if len(text) <= self.room else '{%s,"signs":%s}' % (unencodable(value), signs)).encode()

    def choose_way(self):
        """The zygote's fork runs no handlers, which is a third of what a case costs; but they are for programs with threads."""
        if self.runner.run_cases is None or len(listdir(TASKS)) != 1:
            self.luck = Luck()
            return
        self.native = self.runner.run_cases
        channel = self.talk.channel
        channel.leave_to_others()
        look = self.functions_at_load, vars(builtins), HOOKS, vars(sys), usual_streams(), 'flush', Coroutine, run_coroutine
        end = None if self.runner.is_sample else (__builtins__, TO_ENGINE + HONEST_END)
        self.rules = tuple(map(self.rule, self.cases)), channel.where, ENDING_OF, self.room, self.null, self.alone, look, self.answer, end

    def rule(self, case):
        """What there is to know of a case, or None of one that cannot be called."""
        if case.mistake is not None:
            return None
        if self.program is not None:
            return case.index, case.cpu_s, case.wall_s, case.keep, self.call, (case,), {}
        target = self.targets[case.function]
        if target.owner is None and not self.signals.own:
            return case.index, case.cpu_s, case.wall_s, -1, target.function, tuple(case.arguments), case.named
        return case.index, case.cpu_s, case.wall_s, -1, self.call, (case,), {}

    def call(self, case):
        """With what the program had set for its process."""
        if self.program is not None:
            return main['run_program'](self, case)
        if self.luck is not None:
            self.luck.restore()
        self.signals.restore()
        return self.targets[case.function].call(case.arguments, case.named)

    def run_each(self):
        """Whether there is still somebody who wants to know."""
        return all(self.tell_mistake(case) if case.mistake else self.run_slowly(case) for case in self.cases)

    def run_natively(self):
        """The same.  What comes back are the cases that did not end as most do."""
        position = 0
        while True:
            end = self.native(position, *self.rules)
            if end is None:
                return True
            position, *end = end
            case = self.cases[position]
            if not (self.tell_end(case, *end) if end else self.tell_mistake(case)):
                return False
            position += 1

    def tell_mistake(self, case):
        return self.tell(case, {'how': 'bad_case', 'message': case.mistake}, [])

    def tell_end(self, case, message, status, reason, cpu, wall, memory, *outputs):
        try:
            if self.program is not None:
                return main['tell_end'](self, case, message, status, reason, cpu, wall, memory, outputs)
            texts = [read_output(fd, self.output_max) for fd in outputs]
            return self.tell(case, *self.judge(message, status, reason), cpu, wall, memory, texts)
        finally:
            for fd in outputs:
                close(fd)

    def run_slowly(self, case):
        started = monotonic()
        outputs = memfd_create('stdout'), memfd_create('stderr')
        try:
            message, status, reason, cpu, memory = self.run_process(case, outputs)
            return self.tell_end(case, message, status, reason, cpu, monotonic() - started, memory, *map(dup, outputs))
        finally:
            for fd in outputs:
                close(fd)

    def tell(self, case, members, signs, cpu=0.0, wall=0.0, memory=0, texts=('', '')):
        if members is None:
            return False
        self.send(op='result', i=case.index, **members, cpu_ms=round(cpu * 1000, 3), wall_ms=round(wall * 1000, 3),
                  memory=memory, stdout=texts[0], stderr=texts[1], signs=signs)
        return True

    def answer(self, value, error, writer):
        """In a case's process, which does not come back."""
        self.leave_with(tell_outcome, value, error, writer)

    def leave_with(self, function, *arguments):
        status = 1
        try:
            status = function(self, *arguments)
        finally:
            try:
                self.quit(status)
            finally:
                _exit(status)

    def run_process(self, case, outputs):
        """The message of the case's process, its wait status, the reason for its end, its CPU time and memory."""
        reader, writer = pipe2(O_CLOEXEC)
        pid = fork()
        if not pid:
            try:
                writer = enter_process(self, case.cpu_s, writer, outputs)
            except BaseException:
                _exit(1)
            self.leave_with(call_case, case, writer)
        close(writer)
        try:
            set_blocking(reader, False)
            message, reason = self.watch(pid, reader, case)
            self.kill_rest(pid)
            _, status, usage = wait4(pid, 0)
            self.reap_rest()
            message += read_some(reader, self.room + 1)
        finally:
            close(reader)
        return message, status, reason, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024

    def watch(self, pid, reader, case):
        """Wait for the end of a case's process, and bring it about when a limit is reached.

        Returns what has come until then, and why it was ended: 'cpu', 'wall', 'gone' (the engine is), or None.
        """
        ready, message, reason = self.ready, bytearray(), None
        started = monotonic()
        until = started + case.wall_s
        process = pidfd_open(pid)
        try:
            ready.register(process, POLLIN)
            ready.register(reader, POLLIN)
            is_reading = True
            while True:
                left = min(until - monotonic(), case.cpu_s - cpu_seconds(pid))
                events = dict(ready.poll(max(1, min(LOOK_MS, left * 1000)) if reason is None else None))
                if reader in events:
                    message += read_some(reader, self.room + 1 - len(message))
                    # When all is there, the end of the pipe says nothing more than the end of the process.
                    if len(message) >= min(message_size(message), self.room + 1) or events[reader] & POLLHUP:
                        ready.unregister(reader)
                        is_reading = False
                    if len(message) > self.room:        # that is no result, and who writes it would wait for a reader
                        kill(pid, SIGKILL)
                if process in events:
                    return message, reason
                if reason is None and monotonic() >= until:
                    until = started + case.wall_s + min(waiting_seconds(pid), (WAITING - 1) * case.wall_s)
                if reason is None:
                    reason = self.reason_to_end(pid, until, case, events)
                    if reason:
                        kill(pid, SIGKILL)
        finally:
            ready.unregister(process)
            if is_reading:
                ready.unregister(reader)
            close(process)

    def reason_to_end(self, pid, until, case, events):
        if self.talk.channel.fd in events:
            return 'gone'
        if monotonic() >= until:
            return 'wall'
        return 'cpu' if cpu_seconds(pid) >= case.cpu_s else None

    # ---- for main_program.py and shared.py

    flush, cpu_seconds = staticmethod(flush_streams), staticmethod(cpu_seconds)

    def attempt(self, case):
        """(value, error) of a call in this process."""
        return attempt(self.call, case)

    def error_text(self, error):
        """What a case's process tells of an error."""
        members, signs = raised(error, self.runner.path, self.runner.source)
        return ('{%s,"signs":%s}' % (members, write_json(signs))).encode()

    def read_text(self, text):
        """(members, signs) of what a process told; the members are None if that is no valid message."""
        try:
            return members_in(text)
        except CanonError as error:
            return None, [sign('foreign_descriptor', 'what came is no result: %s' % error)]

    def read_error(self, fd, begin=0, end=None):
        return read_output(fd, self.output_max, begin, end)

    def enter_shared(self, cases, writer, outputs):
        return enter_process(self, sum(case.cpu_s for case in cases), writer, outputs)

    def waited(self, pid, case):
        """Seconds that do not count against the wall-clock limit of a case."""
        return min(waiting_seconds(pid), (WAITING - 1) * case.wall_s)

    def tell_shared(self, case, text, cpu, wall, memory, outputs, begins, ends):
        """Tell the engine of a record.  None: the record is not valid; True: there are signs of tampering."""
        members, signs = self.read_text(text)
        if members is None:
            return None
        if cpu >= case.cpu_s or wall >= WAITING * case.wall_s:
            members = {'how': 'timeout', 'by': 'cpu' if cpu >= case.cpu_s else 'wall'}
        error = read_output(outputs[1], self.output_max, begins[1], ends[1])
        if self.program is not None:
            main['tell_record'](self, case, members, signs, cpu, wall, memory, outputs[0], begins[0], ends[0], error)
        else:
            self.tell(case, members, signs, cpu, wall, memory, (read_output(outputs[0], self.output_max, begins[0], ends[0]), error))
        return bool(signs)

    def tell_late(self, case, reason, memory):
        """Tell the engine that a case in the shared process used up its time."""
        members, cpu, wall = {'how': 'timeout', 'by': reason}, case.cpu_s, case.wall_s
        if self.program is not None:
            main['tell_output'](self, case, members, [], cpu, wall, memory, b'', 0, '')
        else:
            self.tell(case, members, [], cpu, wall, memory)

    def kill_rest(self, pid):
        """Whoever the case has started.  In a sandbox nobody is there but us and the first process, which signals spare."""
        try:
            if self.alone:
                kill(-1, SIGKILL)
            else:
                killpg(pid, SIGKILL)
        except OSError:         # there is nobody
            pass

    @staticmethod
    def reap_rest():
        """The first process of a sandbox inherits those."""
        try:
            while getpid() == 1:
                waitpid(-1, 0)
        except ChildProcessError:
            pass

    @staticmethod
    def judge(message, status, reason):
        if reason == 'gone':
            return None, []
        if reason is None and WIFSIGNALED(status) and WTERMSIG(status) == SIGXCPU:
            reason = 'cpu'
        if reason is not None:
            return {'how': 'timeout', 'by': reason}, []
        signs = []
        if message:
            try:
                members, signs = members_of(message)
                if status == 0:
                    return members, signs
                signs.append(sign('foreign_descriptor', 'there is a result, and then the process ended in another way'))
            except CanonError as error:
                signs = [sign('foreign_descriptor', 'what came is no result: %s' % error)]
        if WIFSIGNALED(status):
            return {'how': 'signalled', 'signal': WTERMSIG(status)}, signs
        return {'how': 'exited', 'exit_code': WEXITSTATUS(status)}, signs


def read_some(fd, most):
    """What there is, at most so many bytes."""
    pieces = []
    try:
        while most > 0:
            piece = read(fd, min(most, 1 << 20))
            if not piece:
                break
            pieces.append(piece)
            most -= len(piece)
    except BlockingIOError:
        pass
    return b''.join(pieces)


def serve(role):
    grader = Grader(role)
    try:
        if grader.program is None:
            role.run_program()
        else:
            role.run_prelude()
            role.run_setup()
            role.leave_setup()
            main['become_main'](role.runner)
        return grader.run()
    finally:
        close(grader.null)
