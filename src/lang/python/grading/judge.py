"""The judge: compares what cases gave with what was expected, far from where they ran.

No program of anybody's is in this process.  Expected values never leave it; results are hostile.  There are values that are
short to write and long to compare (a set of numbers with one hash), so each question has a limit of CPU time.  Cases for which
the time does not suffice have no verdict in the answer, and the engine asks for them again, within the budget of their grading.
Whatever else is wrong with a result is the verdict on that case alone.
"""

from _ast import Attribute, BinOp, BitOr, Constant, Name, PyCF_ONLY_AST, Subscript, Tuple
from _signal import ITIMER_PROF, SIGPROF, setitimer, signal
from time import process_time

CASE_CPU_S = 5
SHORTEST_S = 0.01
SHOWN_MAX = 200
DETAIL_MAX = 2 * SHOWN_MAX + 200
NAMES_MAX = 100

canon, literal, report, role_names = load_part('canon'), load_part('literal'), load_part('report'), load_part('role')
javascript, signs, same = load_part('javascript_values'), load_part('tamper_signs'), load_part('equality')['same']
trainer_rules = load_part('trainer_rules')
CanonError, decode, decoder_of = canon['CanonError'], canon['decode'], load_part('alike')['decoder_of']
Gone, TO_ENGINE = role_names['Gone'], role_names['TO_ENGINE']

ROWS = ('list', 'tuple', 'str', 'range', 'bytes', 'bytearray', 'collections.deque')
COLLECTIONS = (*ROWS, 'set', 'frozenset', 'dict')
# Names of typing, for which no type stands in an mro.
TYPING = {
    'List': ('list',), 'Dict': ('dict',), 'Tuple': ('tuple',), 'Set': ('set',), 'FrozenSet': ('frozenset',), 'Text': ('str',),
    'Type': ('type',), 'Deque': ('collections.deque',), 'DefaultDict': ('collections.defaultdict',), 'None': ('NoneType',),
    'Sequence': ROWS, 'MutableSequence': ('list', 'bytearray', 'collections.deque'), 'Mapping': ('dict',), 'MutableMapping': ('dict',),
    'AbstractSet': ('set', 'frozenset'), 'Collection': COLLECTIONS, 'Sized': COLLECTIONS, 'Container': COLLECTIONS,
    'Iterable': (*COLLECTIONS, 'generator'), 'Iterator': ('generator',), 'Generator': ('generator',), 'Any': ('object',),
    'Callable': ('function', 'builtin_function_or_method', 'type'),
    'Number': ('int', 'float', 'complex', 'decimal.Decimal', 'fractions.Fraction'),
}
SIGNALS = {2: 'SIGINT', 4: 'SIGILL', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE',
           14: 'SIGALRM', 15: 'SIGTERM', 25: 'SIGXFSZ', 31: 'SIGSYS'}


class TooLong(BaseException):
    """The time for a case is over."""


class Mistake(Exception):
    """In what is expected."""


class Limit:
    """Of CPU time, for one case."""

    def __init__(self):
        self.is_on = False
        self.seconds, self.until = CASE_CPU_S, 0
        signal(SIGPROF, self.stop)

    def stop(self, number, frame):
        if not self.is_on:
            return
        left = self.until - process_time()
        if left <= 0:
            raise TooLong
        # ITIMER_PROF charges whole ticks to what runs at a tick, so it may expire early.
        setitimer(ITIMER_PROF, left, 1)

    def within(self, seconds):
        self.seconds = min(seconds, CASE_CPU_S)
        return self

    def __enter__(self):
        self.is_on = True
        self.until = process_time() + self.seconds
        # Again and again, because something on the way may take the first for an error of its own.
        setitimer(ITIMER_PROF, self.seconds, 1)

    def __exit__(self, *_):
        self.is_on = False
        setitimer(ITIMER_PROF, 0)


# ------------------------------------------------------------------------------------------------------------ type names

def wanted_types(text, is_javascript=False):
    """The names that a type expression stands for: outer types only, and all of a union."""
    try:
        return list(outer_names(compile(text.strip(), '<type>', 'eval', PyCF_ONLY_AST, True).body))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        if is_javascript:
            return [typescript_name(part.strip()) for part in text.split('|')]
        raise Mistake('expected_type: %.100s is no type' % text) from None


def typescript_name(text):
    """number[] and Map<string, number> are no types of Python's."""
    return 'Array' if text.endswith('[]') else text.partition('<')[0]


def outer_names(node):
    kind = type(node)
    if kind is BinOp and type(node.op) is BitOr:
        yield from outer_names(node.left)
        yield from outer_names(node.right)
    elif kind is Subscript:
        name = dotted(node.value).rpartition('.')[2]
        if name == 'Union':
            for part in node.slice.elts if type(node.slice) is Tuple else [node.slice]:
                yield from outer_names(part)
        elif name in ('Optional', 'Final', 'Annotated', 'ClassVar'):
            yield from outer_names(node.slice.elts[0] if type(node.slice) is Tuple else node.slice)
            if name == 'Optional':
                yield 'NoneType'
        else:
            yield from outer_names(node.value)
    elif kind is Constant and node.value is None:
        yield 'NoneType'
    elif kind is Constant and type(node.value) is str:
        yield from wanted_types(node.value)
    else:
        name = dotted(node)
        short = name.rpartition('.')[2]
        yield from TYPING[short] if short in TYPING and name in (short, 'typing.' + short, 'collections.abc.' + short) else [name]


def dotted(node):
    if type(node) is Attribute:
        return '%s.%s' % (dotted(node.value), node.attr)
    if type(node) is not Name:
        raise ValueError
    return node.id


def without_module(name):
    """The name of a class of the submission as the submission knows it."""
    return name[len(SUBMISSION) + 1:] if name.startswith(SUBMISSION + '.') else name


def is_named(wanted, name):
    """Whether a type is the wanted one.  Who leaves out the module means any; but a builtin's name is that of the builtin.

    __main__ is the submission, as where it is run as a program.
    """
    if wanted.startswith('__main__.'):
        wanted = SUBMISSION + wanted[len('__main__'):]
    builtin = __builtins__.get(wanted)
    if isinstance(builtin, type):
        return name == builtin.__name__         # IOError is OSError
    if '.' not in wanted:
        return name.rpartition('.')[2] == wanted
    # json.JSONDecodeError is known to its module as json.decoder's.
    return name == wanted or (name.partition('.')[0], name.rpartition('.')[2]) == (wanted.partition('.')[0], wanted.rpartition('.')[2])


def any_named(wanted, names):
    return any(is_named(one, name) for one in wanted for name in names)


# -------------------------------------------------------------------------------------------------------------- a verdict

class Verdict:
    """On one case.  Every way to say something ends in say()."""

    def __init__(self, language, spec, result):
        self.is_javascript = language != 'python'
        self.spec = spec
        self.result = result if type(result) is dict else {}
        self.exception = self.text_of(spec, 'expected_exception')
        self.type = self.text_of(spec, 'expected_type')
        self.is_strict = spec.get('strict_type') is True
        self.shown = ''
        self.shown_expected = self.exception
        self.has_expected = False
        self.expected = None
        self.said = None

    @staticmethod
    def text_of(document, name):
        text = document.get(name)
        return text if type(text) is str else ''

    def say(self, status, detail):
        self.said = status, detail

    def document(self, index):
        status, detail = self.said
        return {'i': index, 'passed': status == 'passed', 'status': status, 'output': self.shown[:SHOWN_MAX],
                'expected': self.shown_expected[:SHOWN_MAX], 'detail': report['plain_text'](detail)[:DETAIL_MAX]}

    def show(self, value):
        if self.is_javascript:
            return javascript['show'](value, SHOWN_MAX)
        out = report['Text'](4 * SHOWN_MAX)
        try:
            report['put_repr'](out, value)
        except report['Full']:
            pass
        return out.joined()[:SHOWN_MAX]

    def judge(self):
        self.read_expected()
        how = self.result.get('how')
        judge = JUDGES.get(how) if type(how) is str else None
        if judge is None:
            self.say('crash', 'There is no result of this case')
        else:
            judge(self)

    def read_expected(self):
        canonical = self.text_of(self.spec, 'expected_canonical')
        try:
            if canonical:           # the value of a reference, as it left its sandbox
                self.expected, self.has_expected = decode(canonical, decoder_of(self.is_strict)), True
            else:
                self.expected, self.has_expected = literal['read_value'](self.spec, 'expected')
        except CanonError as error:
            raise Mistake('expected: %s' % error) from None
        if self.has_expected:
            self.shown_expected = self.show(self.expected)

    # ---- by how it ended

    def names(self):
        names = self.result.get('mro')
        return [name for name in (names if type(names) is list else [])[:NAMES_MAX] if type(name) is str]

    def is_expected_text(self, text):
        """Whether the canonical form is the expected JSON, letter by letter.  Without objects both say the same value."""
        return (text == self.spec.get('expected') and '{' not in text and text != '' and not self.is_javascript
                and 'compare' not in self.spec and not self.text_of(self.spec, 'expected_canonical'))

    def judge_returned(self):
        text = self.text_of(self.result, 'value')
        if self.is_expected_text(text):
            self.shown = self.shown_expected
            self.tolerance()        # a wrong one is a mistake of the case all the same
            if not self.is_other_type():
                self.say('passed', 'OK')
            return
        try:
            value = javascript['decode'](text) if self.is_javascript else decode(text, decoder_of(self.is_strict))
        except CanonError as error:
            self.say('unencodable', 'The value that came is none: %s' % error)
            return
        self.shown = self.show(value)
        if self.is_other_type():
            return
        if not self.accepts(value):
            self.say('failed', 'Expected %s, got %s' % (self.shown_expected or 'another value', self.shown))
            return
        self.say('passed', 'OK')

    def accepts(self, value):
        case = self.trainer_case()
        if case.rule and not self.is_javascript:
            return case.accepts(value)
        return not self.has_expected or same(self.expected, value, strict=self.is_strict, tolerance=self.tolerance(),
                                             is_javascript=self.is_javascript)

    def trainer_case(self):
        return trainer_rules['Case'](self.spec, self.has_expected, self.expected, ''.join(self.names()[:1]), self.tolerance())

    def tolerance(self):
        tolerance = self.spec.get('tolerance')
        if tolerance is not None and (type(tolerance) not in (int, float) or not tolerance >= 0):
            raise Mistake('tolerance: it is no number, or a negative one')
        return tolerance

    def judge_unencodable(self):
        self.shown = self.text_of(self.result, 'repr')
        if self.is_other_type():
            return
        if self.has_expected and not self.trainer_case().needs_no_value():
            self.say('unencodable', 'A value of type %s cannot be compared from outside: %s'
                     % (self.text_of(self.result, 'type'), self.shown[:SHOWN_MAX]))
            return
        self.say('passed', 'OK')

    def is_other_type(self):
        if self.exception:
            self.say('failed', 'Expected exception %s but none raised' % self.exception)
            return True
        if not self.type:
            return False
        names = self.names()
        if any_named(wanted_types(self.type, self.is_javascript), names[:1] if self.is_strict and not self.is_javascript else names):
            return False
        self.say('failed', 'Type mismatch: got %s, expected %s' % (self.text_of(self.result, 'type'), self.type))
        return True

    def judge_raised(self):
        names = self.names()
        if self.exception and any_named([self.exception], names[:1] if self.spec.get('exact') is True else names):
            self.say('passed', 'Expected exception %s raised' % self.exception)
            return
        name = without_module(self.text_of(self.result, 'type'))
        self.say('failed' if self.exception else 'error', '%s: %s' % (name, self.text_of(self.result, 'message')[:SHOWN_MAX]))

    def judge_exited(self):
        code = self.result.get('exit_code')
        if self.exception == 'SystemExit':
            self.say('passed', 'Expected exception SystemExit raised')
            return
        self.say('crash', 'The process ended with exit status %s before there was a value' % (code if type(code) is int else '?'))

    def judge_signalled(self):
        number = self.result.get('signal')
        number = number if type(number) is int else 0
        self.say('crash', 'The process was ended by %s' % SIGNALS.get(number, 'signal %d' % number))

    def judge_timeout(self):
        by = self.result.get('by')
        spent = self.result.get('cpu_ms' if by == 'cpu' else 'wall_ms')
        after = ' after %gs' % round(spent / 1000, 1) if type(spent) in (int, float) else ''
        self.say('timeout', 'Timeout%s%s' % (after, ' of CPU time' if by == 'cpu' else ''))

    def judge_bad_case(self):
        self.say('bad_case', self.text_of(self.result, 'message'))


JUDGES = {'returned': Verdict.judge_returned, 'unencodable': Verdict.judge_unencodable, 'raised': Verdict.judge_raised,
          'exited': Verdict.judge_exited, 'signalled': Verdict.judge_signalled, 'timeout': Verdict.judge_timeout,
          'bad_case': Verdict.judge_bad_case}


def verdict_on(language, entry, limit):
    """TooLong if the time of the limit is over before there is a verdict."""
    verdict = Verdict(language, entry['case'], entry['result'])
    try:
        with limit:
            verdict.judge()
    except Mistake as mistake:
        verdict.say('bad_case', str(mistake))
    except Exception as error:          # too deep, too large, or a comparison that numpy refuses
        verdict.say('unencodable', 'The value cannot be compared: %s' % type(error).__name__)
    return verdict.document(entry['i'])


class Question:
    """Cases of one grading, and the CPU time that there is for all of them."""

    def __init__(self, message, limit):
        self.language, self.entries = message.get('language', 'python'), message['cases']
        self.code = message.get('code') or ''
        self.limit = limit
        self.is_last = message.get('last') is True
        self.begun = process_time()
        self.seconds = message.get('cpu_ms', 1000 * CASE_CPU_S) / 1000

    def spent(self):
        return process_time() - self.begun

    def time(self):
        return self.limit.within(max(self.seconds - self.spent(), SHORTEST_S))

    def signs_of_program(self):
        try:
            with self.time():
                return signs['of_program'](self.language, self.code)
        except TooLong:
            return []

    def verdicts(self):
        """Those for which there is time.  The first case has failed if it uses up the time of the question that is its last."""
        said = []
        for entry in self.entries:
            try:
                said.append(verdict_on(self.language, entry, self.time()))
            except TooLong:
                if said or not self.is_last:
                    break
                said.append({'i': entry['i'], 'passed': False, 'status': 'failed', 'output': '', 'expected': '',
                             'detail': 'The value takes too long to compare'})
            if self.spent() >= self.seconds:
                break
        return said

    def answer(self):
        found = self.signs_of_program()
        for entry in self.entries:
            if type(entry['result']) is dict:
                found += signs['of_result'](entry['i'], entry['result'])
        verdicts = self.verdicts()
        return {'verdicts': verdicts, 'signs': found[:signs['SIGNS_MAX']], 'cpu_ms': round(self.spent() * 1000, 3)}


def answer(message, limit):
    return {'op': 'verdicts', 'id': message.get('id'), **Question(message, limit).answer()}


def show_named_containers():
    """With the rest of the containers, since their own repr() writes out whatever is in them."""
    collections = __import__('collections')
    report['CONTAINERS'] += ((collections.deque, 'deque([', '])'), (collections.OrderedDict, 'OrderedDict({', '})'),
                             (collections.Counter, 'Counter({', '})'), (collections.defaultdict, 'defaultdict(None, {', '})'))


def serve(role):
    show_named_containers()
    limit = Limit()
    while True:
        received = role.talk.receive()
        if received is None:
            return 0
        message = received[1]
        if type(message) is not dict or message.get('op') != 'judge':
            raise Gone('the judge is asked for nothing')
        role.talk.send(TO_ENGINE, answer(message, limit))
