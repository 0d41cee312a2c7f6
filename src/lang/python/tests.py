"""Role `tests`: test code, for a submission that is in another process ("Roles" in src/lang/README.md).

Here is what the submission's names are to the test code, and what that other process may ask of us, which is little: it may
call what it was handed, and read public attributes of instances of classes that the test code defines.  suite.py runs the
tests.
"""

import ast
import builtins
import sys
from signal import ITIMER_PROF, SIGPROF, setitimer, signal
from types import ModuleType

canon, proxy, link_part = load_part('canon'), load_part('proxy'), load_part('link')
CanonError, expect, type_name = (canon[name] for name in ('CanonError', 'expect', 'type_name'))
Mirror, SPECIAL, is_proxy, state_of = (proxy[name] for name in ('Mirror', 'SPECIAL', 'is_proxy', 'state_of'))
Link, BATCH, next_items = (link_part[name] for name in ('Link', 'BATCH', 'next_items'))
TO_ENGINE = load_part('role')['TO_ENGINE']

MODULE = 'tests'
OURS = frozenset('%s/%s.py' % (HERE, name) for name in ('canon', 'handover', 'link', 'proxy', 'role', 'tests'))
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

    def __init__(self, talk, path, evidence):
        super().__init__(talk)
        self.path = path
        self.evidence = evidence        # names that the test code treats as classes
        self.bound = {}                 # class: the names by which it was had
        self.given = set()              # classes that came as the value of something else
        self.public = frozenset()
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

    def request(self, op, handle=None, positional=(), named=(), **more):
        if self.gone is not None:
            raise self.end_test('error', self.gone)
        try:
            return super().request(op, handle, positional, named, **more)
        except KeyboardInterrupt:       # it would end more than this test
            raise self.end_test('error', 'the submission raised KeyboardInterrupt') from None
        finally:
            if self.late is not None:
                late, self.late = self.late, None
                raise late

    def receive(self):
        message = super().receive()
        written = message.get('o')
        if type(written) is list:
            for stream, text in zip((sys.stdout, sys.stderr), written):
                if stream is not None and type(text) is str:
                    stream.write(text)
        return message

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

    def may_decide(self, one, other):
        """An object of the submission's, asked whether it equals what is expected, could always say yes.

        It is asked where both are its own; or where the test code made it, by calling a class that the code knows to be one:
        a class can have the name of any function that is to be tested.
        """
        if is_proxy(other):
            return
        kind = type(one)
        if state_of(one).made and kind not in self.given and len(self.bound.get(kind, ())) == 1 and self.bound[kind] <= self.evidence:
            return
        raise self.unable('the submission gave an object of its own class %s; it would decide a comparison itself' % kind.__name__)

    def class_was_given(self, mirror):
        if not self.binding:
            self.given.add(mirror)

    def may_export(self, value):
        if not (isinstance(value, (type, BaseException)) or self.is_callable(value) or self.is_iterator(value) or self.may_lend(value)):
            raise CanonError('an object of %s stays with the tests' % type_name(type(value)))

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
        return name

    def do_get(self, target, positional, named, message):
        if self.is_callable(target) and message['name'] in TOLD_OF_FUNCTIONS:
            return getattr(target, message['name'], None)
        return getattr(target, self.lent(target, message['name']))

    def do_set(self, target, positional, named, message):
        """Where there is data already: nothing of a class can be hidden."""
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
    return {node.id for node in nodes if isinstance(node, ast.Name)}


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
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr not in PLAIN_NAMES:
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


def names_to_bind(nodes, used, public, entry_point):
    """Names of the submission that are global in the test code.

    A submission that takes the name of a builtin would have its abs() called for ours.  But there are functions to be tested
    that are called sum(), so one such name is bound where the test code uses no other of the submission.
    """
    wanted = {name for name in used & public if name[:2] != '__'}
    builtin = {name for name in wanted if name in vars(builtins) and name != entry_point}
    wanted -= builtin
    called = {node.func.id for node in nodes if is_name_call(node)}
    candidates = (builtin & called) - JUDGES or builtin & called
    if not wanted & called and len(candidates) == 1 and not entry_point:
        wanted |= candidates
    # One that has the name of a module of the library, and is used as that module is.
    owners = {node.value.id for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
    return wanted, wanted & owners & sys.stdlib_module_names


def bind_names(link, namespace, nodes, setup, entry_point):
    first = (entry_point or '').partition('.')[0]
    wanted, modules = names_to_bind(nodes, names_used(nodes + nodes_of(setup)) | {first}, link.public, first)
    for name in sorted(wanted):
        try:
            value = link.value(name)
        except Verdict:
            if link.gone is not None:
                return
            link.verdict = None         # it cannot be told; who uses it will see
            continue
        if name not in modules or type(value) is ModuleType:
            namespace[name] = value


def make_solution(link, names):
    """The module that the test code may import, by whatever name."""
    module = Solution(names[0] if names else 'solution')
    module.__link__ = link
    module.__all__ = [name for name in sorted(link.public) if name[:1] != '_']
    for name in names:
        sys.modules[name] = module


def run_shared(begin, names):
    """The submission in our own process: what it does to us is what the caller has agreed to."""
    module = ModuleType(names[0] if names else 'solution')
    for name in names:
        sys.modules[name] = module
    for text, title in (begin.get('setup') or '', '<setup>'), (begin['shared'], '<submission>'):
        exec(compile(text, title, 'exec', 0, True), module.__dict__)
    return {name: value for name, value in module.__dict__.items() if name[:2] != '__'}


def serve(role):
    begin = role.begin
    tree = ast.parse(role.runner.source)
    setup = ast.parse(begin.get('setup') or '')
    module = sys.modules[MODULE] = ModuleType(MODULE)
    module.__file__ = role.runner.path
    names = list(begin.get('modules') or ())
    entry_point = begin.get('entry_point')
    nodes = nodes_of(tree)
    link = Tests(role.talk, role.runner.path, classes_known(nodes))
    suite = load_part('suite')['Suite'](role, link, module, tree)
    if type(begin.get('shared')) is str:
        suite.statement('the submission', None, lambda: module.__dict__.update(run_shared(begin, names)))
    else:
        try:
            link.learn_names()
            bind_names(link, module.__dict__, nodes, setup, entry_point)
        except Verdict:
            pass
        make_solution(link, names)
        suite.statement('the set-up', None, lambda: exec(compile(setup, '<setup>', 'exec', 0, True), module.__dict__))
    suite.run(entry_point)
    role.talk.send(TO_ENGINE, {'op': 'end', 'signs': []})
    return 0
