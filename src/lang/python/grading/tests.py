"""Role `tests`: test code, for a submission that is in another process (docs/protocols/grading-roles.md).

Here is what the submission's names are to the test code, and what that other process may ask of us, which is little: it may
call what it was handed, and read public attributes of instances of classes that the test code defines.  suite.py runs the
tests.
"""

import ast
import builtins
import sys
from signal import ITIMER_PROF, SIGPROF, setitimer, signal
from re import findall
from types import ModuleType

canon, proxy, link_part = load_part('canon'), load_part('proxy'), load_part('link')
world = load_part('world')
CanonError, expect, type_name = (canon[name] for name in ('CanonError', 'expect', 'type_name'))
Mirror, PREDICATES, SPECIAL, STEERING, TELLING, is_proxy, state_of = (
    proxy[name] for name in ('Mirror', 'PREDICATES', 'SPECIAL', 'STEERING', 'TELLING', 'is_proxy', 'state_of'))
ARITHMETIC, DERIVED, MADE, STATE, WEIGHING = (proxy[name] for name in ('ARITHMETIC', 'DERIVED', 'MADE', 'STATE', 'WEIGHING'))
Link, BATCH, next_items = (link_part[name] for name in ('Link', 'BATCH', 'next_items'))
Failed, TO_ENGINE = (load_part('role')[name] for name in ('Failed', 'TO_ENGINE'))
names_of_error = load_part('marshal')['names_of_error']

MODULE = 'tests'
OURS = frozenset('%s/%s.py' % (HERE, name) for name in ('canon', 'marshal', 'link', 'proxy', 'role', 'tests'))
RAISED_MAX = 100                # exceptions that went to the submission, and might come back
TICK_S = 0.05                   # the next chance, where code of a test has caught what ended it
# Whose instances may be handed over, and their public attributes be read, besides those of the test code's own classes.
LENDING = {'io', '_io', 'random', 're', 'unittest.mock', 'types'}
# For who wraps a function of the test code (functools.wraps()).
TOLD_OF_FUNCTIONS = '__name__', '__qualname__', '__module__'
# Modules of the library that are not bound because a submission has them: they do something when they are imported.
NOT_BOUND = {'antigravity', 'this', 'idlelib', 'turtle', 'turtledemo', 'test', 'lib2to3', 'tkinter', 'unittest', 'main'}
PLAIN_NAMES = frozenset(name for kind in (int, float, complex, str, bytes, tuple, frozenset, list, set, dict, bytearray, range, BaseException)
                        for name in dir(kind))
# Of these nobody gets an object back, or has it compared.  What an object's own __abs__() gives was not made by the test code.
HARMLESS = frozenset(('len', 'str', 'repr', 'print', 'bool', 'int', 'float', 'hash', 'isinstance', 'type', 'id', 'hasattr', 'abs', 'round'))
# A name of these that the submission takes is nobody's wish.
JUDGES = frozenset(('isinstance', 'issubclass', 'all', 'any', 'abs', 'len', 'round', 'bool', 'type', 'id', 'hash', 'hasattr', 'getattr',
                    'callable', 'repr', 'str', 'set', 'list', 'tuple', 'dict', 'sorted', 'int', 'float', 'object', 'print'))


# Requests for which the submission's world does not have to be as that of the tests.
TELLING_NOTHING = frozenset(('names', 'world', 'patch', 'files', 'assign', 'dir', 'fields', 'signature'))
# Requests that change nothing, as far as anybody tells; and special methods that do not.
READING = frozenset(('names', 'value', 'get', 'dir', 'next', 'iter', 'len', 'fields', 'signature'))
READ_BY = frozenset(('__len__', '__bool__', '__hash__', '__iter__', '__getitem__', '__contains__', '__repr__', '__str__', '__format__', '__reversed__'))
# What mocks have for who made them.  All other names of a mock are the mock's own.
OF_MOCKS = frozenset(('mock_add_spec', 'attach_mock', 'configure_mock', 'reset_mock', 'return_value', 'side_effect', 'method_calls', 'mock_calls',
                      'call_args', 'call_args_list', 'call_count', 'called', 'await_args', 'await_args_list', 'await_count', 'awaited'))
# Names that stand for a module of another name, by custom.
ALIASES = {'np': 'numpy', 'pd': 'pandas', 'plt': 'matplotlib.pyplot', 'mpl': 'matplotlib', 'sp': 'scipy', 'tf': 'tensorflow', 'sns': 'seaborn',
           'nx': 'networkx', 'dt': 'datetime', 'mp': 'multiprocessing', 'ET': 'xml.etree.ElementTree', 'npt': 'numpy.testing', 'tm': 'pandas.testing',
           'jnp': 'jax.numpy', 'la': 'numpy.linalg', 'F': 'torch.nn.functional'}


# What a request for one of these may end with.
LOOPS = {'__next__': StopIteration, '__anext__': StopAsyncIteration}


def is_theirs(error):
    """Whether an exception came from the submission."""
    return type(type(error)) is Mirror or STATE in names_of_error(error)


def is_steering(error):
    return any(kind.__name__ in STEERING and kind.__module__ in ('builtins', 'asyncio.exceptions', 'concurrent.futures._base') for kind in type(error).__mro__)


class Verdict(BaseException):
    """Ends a test, whatever its code catches: how it ended is in Tests.verdict as well."""


class Solution(ModuleType):
    """What `import solution` gives: the names of the submission as they are at the moment."""

    def __getattr__(self, name):
        if name[:2] == '__' or name not in self.__dict__['__link__'].public:
            raise AttributeError('the submission has no %r' % name)
        return self.__dict__['__link__'].value(name)

    def __setattr__(self, name, value):
        if name[:2] == '__':
            super().__setattr__(name, value)
        else:
            self.__dict__['__link__'].assign(name, value)

    def __delattr__(self, name):
        self.__dict__['__link__'].assign(name)

    def __dir__(self):
        return sorted(self.__dict__['__link__'].public)


class Tests(Link):
    keeps_errors = True

    def __init__(self, talk, path, nodes):
        super().__init__(talk)
        self.path = path
        self.evidence = classes_known(nodes)    # names that the test code treats as classes
        self.spoken = names_spoken(nodes)
        self.held = names_held(nodes)
        self.expecting = set(calls_expecting('StopIteration', nodes))
        self.at = {}                    # (line, column): what begins there
        for node in nodes:
            if isinstance(node, (ast.Call, ast.Compare, ast.BinOp, ast.AugAssign)):
                self.at.setdefault((node.lineno, node.col_offset), []).append(node)
        self.changes = 0                # requests that may have changed something
        self.world = world['Outside'](self, self.spoken | names_used(nodes) | {node.arg for node in nodes if isinstance(node, ast.arg)}, path)
        assigned = names_assigned(nodes)
        for module, name in assigned:
            self.world.touch(__import__(module), name)
        self.bound = {}                 # class: the names by which it was had
        self.given = set()              # classes that came as the value of something else
        self.public = self.wanted = frozenset()
        self.verdict = None
        self.gone = None
        self.late = None                # ends the test when what is ours has finished
        self.binding = False
        self.raised = []

    # ---- how tests end

    def end_test(self, status, detail):
        """The exception that ends the test; the first one stays its verdict."""
        if self.verdict is None:
            self.verdict = status, detail
        return Verdict(detail)

    def unable(self, message):
        return self.end_test('unproxyable', message + '; shared_process runs both in one process')

    def broken(self, message):
        self.gone = 'what came from the submission is no message: ' + message
        return self.end_test('error', self.gone)

    def from_engine(self, document):
        if type(document) is dict and document.get('op') == 'peer_gone':
            self.gone = str(document.get('message'))
            raise self.end_test(str(document.get('status')), self.gone)

    def begin_test(self, milliseconds):
        self.verdict = self.late = None
        signal(SIGPROF, self.time_is_up)
        setitimer(ITIMER_PROF, milliseconds / 1000, TICK_S)

    def finish_test(self):
        setitimer(ITIMER_PROF, 0)
        self.world.end_test()

    def time_is_up(self, number, frame):
        """Ends the test code.  What is ours and in the middle of a request finishes that first."""
        end = self.end_test('timeout', 'the test took too much CPU time')
        while frame is not None:
            name = frame.f_code.co_filename
            if name == self.path:
                raise end
            if self.depth > 0 and name in OURS:
                self.late = end
                return
            frame = frame.f_back

    # ---- the other side's names

    def request(self, op, handle=None, positional=(), named=(), steered=False, **more):
        if self.gone is not None:
            raise self.end_test('error', self.gone)
        self.changes += op not in READING and (op != 'special' or more.get('name') not in READ_BY)
        try:
            if op not in TELLING_NOTHING:
                self.world.before((*positional, *dict(named).values()))
            try:
                return super().request(op, handle, positional, named, **more)
            finally:
                if op not in TELLING_NOTHING:
                    self.world.after()
        except KeyboardInterrupt:       # it would end more than this test
            raise self.end_test('error', 'the submission raised KeyboardInterrupt') from None
        except BaseException as error:
            if is_steering(error) and not isinstance(error, LOOPS.get(more.get('name'), StopIteration if steered or op == 'method' else ())):
                raise self.unable('the submission raised %s, which would steer the tests' % type(error).__name__) from None
            raise
        finally:
            if self.late is not None:
                late, self.late = self.late, None
                raise late

    def receive(self):
        message = super().receive()
        self.tell_again(message)
        written = message.get('o')
        if type(written) is list:
            for stream, text in zip((sys.stdout, sys.stderr), written):
                if stream is not None and type(text) is str:
                    stream.write(text)
        return message

    def tell_again(self, message):
        """What the submission has logged, and warned of, goes to whoever waits for that here."""
        if type(message.get('l')) is list:
            logging = __import__('logging')
            for name, level, text in message['l']:
                logger = logging.getLogger(expect(name, str))
                if logger.isEnabledFor(expect(level, int)):
                    logger.handle(logger.makeRecord(name, level, 'solution.py', 0, expect(text, str), (), None))
        if type(message.get('w')) is list:
            for document in message['w']:
                warning = link_part['Decoder'](self).value(document)
                if isinstance(warning, Warning):
                    __import__('warnings').warn_explicit(warning, None, 'solution.py', 1)

    def learn_names(self):
        names = self.request('names')
        self.public = frozenset(name for name in names if type(name) is str and name.isidentifier()) if type(names) is list else frozenset()

    def value(self, name):
        """What a name of the submission is bound to."""
        self.binding = True
        try:
            value = self.request('value', name=name)
        finally:
            self.binding = False
        if type(value) is Mirror:
            self.bound.setdefault(value, set()).add(name)
        return value

    def assign(self, name, *value):
        self.request('assign', None, value, name=name)

    # ---- what the submission may

    def may_decide(self, one, name, other):
        """An object of the submission's, asked whether it equals what is expected, could always say yes.

        It is asked where both are its own; or where the test code made it, by calling a class that the code knows to be one:
        a class can have the name of any function that is to be tested.
        """
        if is_proxy(other):
            return
        kind, state = type(one), state_of(one)
        if (state.made == MADE or state.made == DERIVED and name in WEIGHING) and self.is_class(kind) and (not state.came or self.is_operand()):
            return
        raise self.unable('the submission gave an object of its own class %s; it would decide a comparison itself' % kind.__name__)

    def is_class(self, kind):
        """Whether the test code knows that a name of the submission, and only one, is this class."""
        return kind not in self.given and len(self.bound.get(kind, ())) == 1 and self.bound[kind] <= self.evidence

    def is_operand(self):
        """Whether the text compares a name of its own, which has never been anything but what a call of a class gave.

        It is asked about objects that have come as values as well, as those do whose methods give `self`.
        """
        frame = sys._getframe()
        while frame.f_code.co_filename in OURS:
            frame = frame.f_back
        return any(ast.dump(getattr(side, 'value', side) if isinstance(side, ast.NamedExpr) else side) in self.held for node in self.nodes_at(frame, (ast.Compare, ast.BinOp, ast.AugAssign)) for side in sides_of(node))

    def nodes_at(self, frame, kinds):
        """Expressions of the test code that a frame is at."""
        if frame.f_code.co_filename != self.path:
            return []
        line, last, column, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        return [node for node in self.at.get((line, column), ()) if (node.end_lineno, node.end_col_offset) == (last, end) and isinstance(node, kinds)]

    def is_value(self, one):
        state = state_of(one)
        return not state.made or state.came

    def may_read(self, one, name):
        """Libraries look for names that let an object decide: such are asked for only where the test code says them itself."""
        if name[:1] == '_' and name not in TELLING and name not in self.spoken:
            raise AttributeError('%r of an object of the submission is not asked for' % name)
        if name in PREDICATES and (one in self.given if type(one) is Mirror else self.is_value(one) or not self.is_class(type(one))):
            raise self.unable('the submission gave an object of its own, whose %s() would decide' % name)

    def may_swallow(self, error, swallows):
        if swallows and error is not None and self.is_judgement(error):
            raise self.unable('__exit__() of the submission would swallow what says that a test has failed')
        return swallows

    @staticmethod
    def is_judgement(error):
        outcome = getattr(sys.modules.get('_pytest.outcomes'), 'OutcomeException', ())
        return isinstance(error, outcome) or isinstance(error, (AssertionError, Verdict)) and not is_theirs(error)

    def still_says(self, one, name, value):
        state = state_of(one)
        before, said = state.said.get(name, (None, value))
        state.said[name] = self.changes, value
        if before == self.changes and said != value:
            raise self.unable('the submission gave an object whose %s() changes by itself' % name)

    def had_items(self, one, number, length):
        if number != length and self.is_value(one):
            raise self.unable('the submission gave an object that says it has %d items and gives %d' % (length, number))

    def fetch(self, state):
        super().fetch(state)
        if state.ending is not None and is_steering(state.ending) and not isinstance(state.ending, StopIteration):
            raise self.unable('an iterator of the submission raised %s' % type(state.ending).__name__)

    def call(self, one, handle, positional, named):
        try:
            return self.request('call', handle, positional, named, steered=True)
        except BaseException as error:
            if isinstance(error, StopIteration) and not self.calls_directly(one, sys._getframe(2)):
                raise self.unable('a call of the submission raised StopIteration, which would end a loop of the tests') from None
            raise

    def calls_directly(self, one, frame):
        """Whether a text that waits for StopIteration calls it, and not map() or its like."""
        for node in self.nodes_at(frame, ast.Call):
            if node not in self.expecting:
                continue
            if isinstance(node.func, ast.Name):
                return frame.f_locals.get(node.func.id, frame.f_globals.get(node.func.id)) is one
            return isinstance(node.func, ast.Attribute) and node.func.attr == state_of(one).name
        return False

    def class_was_given(self, mirror):
        if not self.binding:
            self.given.add(mirror)

    def may_export(self, value):
        if not (isinstance(value, (type, BaseException)) or self.is_callable(value) or self.is_iterator(value) or self.may_lend(value)):
            raise CanonError('an object of %s stays with the tests' % type_name(type(value)))

    def copies(self, value):
        """A stream is lent: what the submission writes to it is looked at afterwards."""
        return type(value).__module__ not in ('io', '_io', 'types')

    def library_name(self, value):
        """Functions and classes of the library are used where they are handed to: there is no getattr() of ours to be called."""
        owner = getattr(value, '__objclass__', None)
        if owner is not None and vars(builtins).get(owner.__name__) is owner:
            return ['builtins', '%s.%s' % (owner.__name__, value.__name__)]
        module, name = getattr(value, '__module__', None), getattr(value, '__qualname__', None)
        if type(module) is not str or type(name) is not str or module.partition('.')[0] not in sys.stdlib_module_names or module == '__main__':
            return None
        return [module, name] if vars(sys.modules.get(module, sys)).get(name) is value else None

    def export_error(self, error):
        self.raised.append(self.export(error))
        if len(self.raised) > RAISED_MAX:
            self.release([[self.raised.pop(0), 1]])
        return self.raised[-1]

    @staticmethod
    def may_lend(value):
        module = type(value).__module__
        if isinstance(value, AssertionError) or hasattr(type(value), 'addTypeEqualityFunc'):
            return False
        return module == MODULE or module in LENDING

    def real_error(self, module, qualname):
        """The library's own exceptions, if the test code has imported them; but none that means something to who runs tests."""
        top = module.partition('.')[0]
        if top not in sys.stdlib_module_names or top in NOT_BOUND or type(sys.modules.get(module)) is not ModuleType:
            return None
        found = vars(sys.modules[module]).get(qualname)
        return found if isinstance(found, type) and issubclass(found, BaseException) else None

    def find_module(self, name):
        """A module that the submission has imported, from our own library."""
        top = name.partition('.')[0]
        if (not self.binding or top in NOT_BOUND or top[:1] == '_' or not all(part.isidentifier() for part in name.split('.'))
                or top not in sys.stdlib_module_names and not self.is_installed(top)):
            raise self.unable('the submission gave a module')
        __import__(name)
        return sys.modules[name]

    def find_in_library(self, module, name):
        raise CanonError('the tests have a library of their own')

    @staticmethod
    def is_installed(top):
        spec = __import__('importlib.util').util.find_spec(top)
        return bool(spec and spec.origin and spec.origin.startswith(sys.prefix + '/'))

    def perform(self, op, target, positional, named, message):
        perform = self.OPS.get(op) if type(op) is str else None
        if perform is None:
            raise TypeError('the tests do not do that')
        return perform(self, target, positional, named, message)

    def do_call(self, target, positional, named, message):
        if not (isinstance(target, type) or self.is_callable(target) or callable(target) and self.may_lend(target)):
            raise TypeError('%s is not callable' % type_name(type(target)))
        return target(*positional, **named)

    def do_next(self, target, positional, named, message):
        if not self.is_iterator(target):
            raise TypeError('%s is no iterator' % type_name(type(target)))
        return next_items(target, min(expect(message['count'], int), BATCH))

    def lent(self, target, name):
        """The name of a public attribute of something that was lent."""
        if isinstance(target, type) or not self.may_lend(target) or type(name) is not str or name[:1] == '_' or not name.isidentifier():
            raise AttributeError('attributes of %s stay with the tests' % type_name(type(target)))
        if type(target).__module__ == 'unittest.mock' and (name in OF_MOCKS or name.startswith('assert')):
            raise self.unable('the submission asked a mock for its %s' % name)
        return name

    def do_get(self, target, positional, named, message):
        if self.is_callable(target) and message['name'] in TOLD_OF_FUNCTIONS:
            return getattr(target, message['name'], None)
        return getattr(target, self.lent(target, message['name']))

    def do_set(self, target, positional, named, message):
        """Where there is data already: nothing of a class can be hidden."""
        if type(target).__module__ == 'unittest.mock':
            raise self.unable('the submission would set an attribute of a mock')
        if self.lent(target, message['name']) not in vars(target) or type(target).__module__ != MODULE:
            raise AttributeError('%r is not to be set' % message['name'])
        setattr(target, message['name'], positional[0])

    def do_special(self, target, positional, named, message):
        name = message['name']
        if type(name) is not str or name not in SPECIAL or isinstance(target, type):
            raise TypeError('the tests do not do that')
        if not self.may_lend(target):
            if name in ('__repr__', '__str__', '__format__'):
                return '<%s of the tests>' % type_name(type(target))
            raise TypeError('%s stays with the tests' % type_name(type(target)))
        return getattr(type(target), name)(target, *positional)

    def do_copy(self, target, positional, named, message):
        if not self.may_lend(target):
            raise TypeError('%s stays with the tests' % type_name(type(target)))
        return getattr(__import__('copy'), message['op'])(target)

    def do_dir(self, target, positional, named, message):
        return [name for name in dir(target) if name[:1] != '_'] if self.may_lend(target) else []

    OPS = {'call': do_call, 'next': do_next, 'get': do_get, 'set': do_set, 'special': do_special, 'copy': do_copy, 'deepcopy': do_copy,
           'dir': do_dir}

    def escapes(self, error):
        return error if isinstance(error, Verdict) else None

    def encode_raised(self, encoder, error):
        return super().encode_raised(encoder, RuntimeError('the test has ended') if isinstance(error, Verdict) else error)


# ---------------------------------------------------------------------------------------------------- reading test code

def nodes_of(tree):
    return list(ast.walk(tree))


def names_used(nodes):
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {name for node in nodes for name in names_in_examples(node)}


def names_in_examples(node):
    """Names in the examples of a text that doctest may be asked to run."""
    if isinstance(node, ast.Constant) and type(node.value) is str and '>>> ' in node.value:
        for line in node.value.splitlines():
            if line.lstrip().startswith(('>>> ', '... ')):
                yield from findall('[^\\W\\d]\\w*', line)


def classes_known(nodes):
    """Names that the test code itself treats as classes, and not as functions that might return anything.

    It asks isinstance() or catches them; or they are named as classes are, and it reads attributes of what they return that
    no plain value has, or compares what they return with what they return and never with anything else.
    """
    found, holders = set(), {}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ('isinstance', 'issubclass') and len(node.args) == 2:
            found |= names_used(ast.walk(node.args[1]))
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            found |= names_used(ast.walk(node.type))
    calls = [node.func.id for node in nodes if makes_instance(node)]
    if not calls:
        return found
    for node in nodes:
        if isinstance(node, ast.Assign) and makes_instance(node.value):
            holders.update((loaded(target), node.value.func.id) for target in node.targets)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            holders.update((loaded(item.optional_vars), item.context_expr.func.id)
                           for item in node.items if item.optional_vars and makes_instance(item.context_expr))
    statements = {id(node.value.func) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and (node.attr not in PLAIN_NAMES or id(node) in statements):
            found.add(node.value.func.id if makes_instance(node.value) else holders.get(ast.dump(node.value)))
    return found | classes_compared(nodes, calls, holders)


def classes_compared(nodes, calls, holders):
    """Names whose results are compared with each other, and of which no result could meet anything else."""
    mentioned, compared, doubtful = [], set(), set()
    for node in nodes:
        if isinstance(node, ast.Name):
            mentioned.append(node.id)
        if isinstance(node, ast.Compare):
            sides = [exposed(side, holders) for side in (node.left, *node.comparators)]
        elif isinstance(node, ast.Call) and not makes_instance(node) and ast.unparse(node.func).rpartition('.')[2] not in HARMLESS:
            sides = [exposed(part, holders) for part in node.args[:2]]
            sides += [set()] if len(sides) < 2 else []
        else:
            continue
        common = set.intersection(*sides)
        compared |= common
        doubtful |= set.union(*sides) - common
    return {name for name in compared - doubtful if mentioned.count(name) == calls.count(name)}


def exposed(node, holders):
    """Names of classes of which an expression may be an instance, or hold one."""
    if makes_instance(node):
        return {node.func.id}
    held = holders and holders.get(ast.dump(node))
    if held:
        return {held}
    if isinstance(node, (ast.Attribute, ast.Constant)) or isinstance(node, ast.Call) and ast.unparse(node.func).rpartition('.')[2] in HARMLESS:
        return set()
    return set().union(*(exposed(part, holders) for part in ast.iter_child_nodes(node)))


def loaded(target):
    return ast.dump(target).replace('Store()', 'Load()')


def makes_instance(node):
    return is_name_call(node) and node.func.id.lstrip('_')[:1].isupper()


def is_name_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def names_assigned(nodes):
    """(module, name) of what the test code replaces in the library by an assignment."""
    modules = {name.asname or name.name: name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return sorted({(modules[node.value.id], node.attr) for node in nodes
                   if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
                   and modules.get(node.value.id) in sys.stdlib_module_names and modules[node.value.id] not in NOT_BOUND})


def sides_of(node):
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.target, node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]


def names_held(nodes):
    """Names, and attributes, that are only ever bound to what a call of a class gives."""
    bound = [loaded(node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)]
    assigned = [loaded(target) for node in nodes if isinstance(node, ast.Assign) and makes_instance(node.value) for target in node.targets]
    arguments = {ast.dump(ast.Name(node.arg, ast.Load())) for node in nodes if isinstance(node, ast.arg)}
    return {name for name in set(assigned) - arguments if bound.count(name) == assigned.count(name)}


def calls_expecting(name, nodes):
    """Calls in a `with` or `try` that names an exception."""
    for node in nodes:
        if isinstance(node, ast.Try):
            named = [handler.type for handler in node.handlers if handler.type is not None]
        elif isinstance(node, ast.With):
            named = [item.context_expr for item in node.items]
        else:
            continue
        if name in {part.id for one in named for part in ast.walk(one) if isinstance(part, ast.Name)}:
            yield from (part for line in node.body for part in ast.walk(line) if isinstance(part, ast.Call))


def names_spoken(nodes):
    """Attributes that the test code itself asks for, also by getattr()."""
    return ({node.attr for node in nodes if isinstance(node, ast.Attribute)} |
            {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is str and node.value.isidentifier()})


def names_imported(nodes):
    return {(name.asname or name.name).partition('.')[0] for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for name in node.names}


def names_given(nodes):
    """What the text binds by itself, wherever that is."""
    return (names_imported(nodes) | {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))} |
            {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)} |
            {node.arg for node in nodes if isinstance(node, ast.arg)})


def names_to_bind(nodes, used, public, entry_point, modules):
    """Names of the submission that are global in the test code.

    A submission that takes the name of a builtin would have its abs() called for ours.  But there are functions to be tested
    that are called sum(), so one such name is bound where the text of the tests calls nothing else that it has not itself.  What the
    submission has or has not makes no difference to that.
    """
    wanted = {name for name in used & public if name[:2] != '__'}
    wanted -= names_imported(nodes) | {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.col_offset == 0}
    builtin = {name for name in wanted if name in vars(builtins) and name != entry_point}
    wanted -= builtin
    called = {node.func.id for node in nodes if is_name_call(node)}
    others = (used - set(vars(builtins)) - names_given(nodes)) | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom)} | {
        name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    candidates = (called & set(vars(builtins))) - JUDGES or called & set(vars(builtins))
    candidates = {name for name in candidates if not isinstance(vars(builtins)[name], type) or name in builtin}
    theirs = others & set(modules) or others - sys.stdlib_module_names - {None, 'pytest', 'numpy', 'pandas'} - set(ALIASES) - {'', entry_point}
    if not theirs and not entry_point and len(candidates & builtin) == 1:
        wanted |= candidates & builtin
    # One that has the name of a module of the library, and is used as that module is.
    owners = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    return wanted, {name: ALIASES.get(name, name) for name in wanted & owners if is_module_name(name)}


def is_module_name(name):
    return name in sys.stdlib_module_names or name in ALIASES or Tests.is_installed(name)


def bind_names(link, namespace, nodes, setup, entry_point, modules):
    first = (entry_point or '').partition('.')[0]
    wanted, must_be = names_to_bind(nodes, names_used(nodes + nodes_of(setup)) | {first}, link.public, first, modules)
    link.wanted = wanted
    for name in sorted(wanted):
        try:
            value = link.value(name)
        except Verdict:
            if link.gone is not None:
                return
            link.verdict = None         # it cannot be told; who uses it will see
            continue
        if name not in must_be or type(value) is ModuleType and value.__name__ in (must_be[name], name):
            namespace[name] = value


def make_solution(link, names):
    """The module that the test code may import, by whatever name."""
    module = Solution(names[0] if names else 'solution')
    module.__link__ = link
    module.__all__ = sorted(name for name in link.wanted if name[:1] != '_' and name not in vars(builtins))
    for name in names:
        sys.modules[name] = module


def set_up_shared(role, names):
    """The module of a submission in our own process, with the names of the set-up."""
    module = ModuleType(names[0] if names else SUBMISSION)
    module.__builtins__ = builtins
    for name in names:
        sys.modules[name] = module
    exec(compile(role.begin.get('prelude') or '', '<prelude>', 'exec', 0, True), module.__dict__)
    if role.begin.get('helpers') == 'leetcode':
        load_part('leetcode')['define'](module.__dict__)
    try:
        exec(compile(role.begin.get('setup') or '', '<setup>', 'exec', 0, True), module.__dict__)
    except BaseException as error:
        drop_own_frame(error)
        raise Failed(error) from None
    role.leave_setup()
    return module


def run_shared(begin, module):
    """What the submission does to us is what the caller has agreed to."""
    exec(compile(begin['shared'], '<submission>', 'exec', 0, True), module.__dict__)
    return {name: value for name, value in module.__dict__.items() if name[:2] != '__'}


def serve(role):
    begin = role.begin
    tree = ast.parse(role.runner.source)
    setup = ast.parse(begin.get('setup') or '')
    module = sys.modules[MODULE] = ModuleType(MODULE)
    module.__file__ = role.runner.path
    module.__builtins__ = builtins      # or what the tests patch there would be a copy of ours
    names = list(begin.get('modules') or ())
    entry_point = begin.get('entry_point')
    nodes = nodes_of(tree)
    link = Tests(role.talk, role.runner.path, nodes)
    load_part('vacuous')['wait_for_libraries'](link.world)
    suite = load_part('suite')['Suite'](role, link, module, tree)
    if begin.get('prelude'):
        exec(compile(begin['prelude'], '<prelude>', 'exec', 0, True), module.__dict__)
    if type(begin.get('shared')) is str:
        shared = set_up_shared(role, names)
        suite.statement('the submission', None, lambda: module.__dict__.update(run_shared(begin, shared)))
    else:
        try:
            link.learn_names()
            bind_names(link, module.__dict__, nodes, setup, entry_point, names)
        except Verdict:
            pass
        make_solution(link, names)
        if begin.get('helpers') == 'leetcode':
            helpers, suite.check_with = load_part('leetcode')['for_tests']()
            module.__dict__.update(helpers)
        suite.statement('the set-up', None, lambda: exec(compile(setup, '<setup>', 'exec', 0, True), module.__dict__))
    suite.run(entry_point)
    role.talk.send(TO_ENGINE, {'op': 'end', 'signs': []})
    return 0
