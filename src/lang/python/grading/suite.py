"""What is a test in a text, and how each of them went: top-level statements, check(candidate), functions and classes as pytest
and unittest have them.  tests.py loads this file, and it loads neither of the two: the test code does, if it wants them.
"""

import ast
import sys
from _contextvars import copy_context
from itertools import product
from time import perf_counter, process_time

TO_ENGINE = load_part('role')['TO_ENGINE']
Verdict = load_part('tests')['Verdict']
NAME_MAX, DETAIL_MAX, REPR_MAX = 200, 2000, 200
FUTURE_FLAGS = 0x1fe0000        # what `from __future__` leaves in co_flags
LEFT, RIGHT = '@left', '@right'
SIGNS = {ast.Eq: '==', ast.NotEq: '!=', ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>=', ast.Is: 'is', ast.IsNot: 'is not',
         ast.In: 'in', ast.NotIn: 'not in'}


class Unmet(Exception):
    """A test needs something that we do not have."""


class Tape:
    """Stands in for a stream, and keeps the beginning and the end of what is written."""

    encoding, errors, newlines, closed = 'utf-8', 'strict', None, False

    def __init__(self, limit):
        self.half = max(limit // 2, 1)
        self.head = self.tail = ''
        self.lost = False

    def write(self, text):
        if type(text) is not str:
            raise TypeError('write() argument must be str, not %s' % type(text).__name__)
        room = self.half - len(self.head)
        self.head += text[:room]
        tail = self.tail + text[max(room, 0):]
        self.lost = self.lost or len(tail) > self.half
        self.tail = tail[-self.half:]
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def writable(self):
        return True

    def getvalue(self):
        return self.head + ('\n...\n' if self.lost else '') + self.tail


def clean(text, limit):
    """A text that any reader of JSON takes."""
    return text[:limit].encode('utf-8', 'backslashreplace').decode().replace('\0', '\\0')


class Trial:
    """One test while it goes on."""

    def __init__(self, suite, name, line):
        self.suite, self.name, self.line = suite, name, line

    def __enter__(self):
        limit = self.suite.output_max
        self.streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self.tapes = Tape(limit), Tape(limit)
        self.times = process_time(), perf_counter()
        self.suite.link.begin_test(self.suite.test_ms)
        return self

    def __exit__(self, *_):
        self.suite.link.finish_test()
        sys.stdout, sys.stderr = self.streams
        self.cpu_ms, self.wall_ms = ((now - then) * 1000 for now, then in zip((process_time(), perf_counter()), self.times))

    def tell(self, status, detail, line=None):
        """What could not be judged, or was ended, did not pass, whatever the code of the test made of that."""
        if self.suite.link.verdict is not None:
            status, detail = self.suite.link.verdict
        self.suite.link.verdict = None
        stdout, stderr = (tape.getvalue() for tape in self.tapes)
        self.suite.tell(self.name, status, detail, line or self.line, round(self.cpu_ms, 3), round(self.wall_ms, 3), stdout, stderr)

    def pass_on(self):
        """Of a statement that is no test."""
        for stream, tape in zip(self.streams, self.tapes):
            if stream is not None:
                stream.write(tape.getvalue())


def is_of(value, module, name):
    """Whether it is of a class that the test code has imported, and not of one that says it is."""
    return isinstance(value, getattr(sys.modules.get(module), name, ()))


class Stopped(Exception):
    """The first test that did not pass was the last."""


class Suite:
    def __init__(self, role, link, module, tree):
        begin = role.begin
        self.talk, self.link, self.module, self.tree = role.talk, link, module, tree
        self.path = role.runner.path
        self.lines = role.runner.source.decode('utf-8', 'replace').splitlines()
        self.flags = role.program[0].co_flags & FUTURE_FLAGS
        self.test_ms, self.output_max = begin.get('test_ms') or 10000, begin.get('output_max') or 2000
        self.stop_on_fail = begin.get('stop_on_fail') is True
        self.defined = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
        self.called = set()
        self.check_with = None          # changes check() where helpers are asked for

    def tell(self, name, status, detail, line, cpu_ms=0.0, wall_ms=0.0, stdout='', stderr=''):
        self.talk.send(TO_ENGINE, {'op': 'test', 'name': clean(name, NAME_MAX), 'status': status, 'detail': clean(detail, DETAIL_MAX), 'line': line,
                                   'cpu_ms': cpu_ms, 'wall_ms': wall_ms, 'stdout': clean(stdout, 2 * self.output_max),
                                   'stderr': clean(stderr, 2 * self.output_max)})
        if self.stop_on_fail and status not in ('passed', 'skipped'):
            raise Stopped

    # ---- one test, or a statement

    def test(self, name, line, function, notes=()):
        error = None
        with Trial(self, name, line) as trial:
            try:
                copy_context().run(function)
            except BaseException as caught:
                error = caught
        where = self.line_of(error)
        status, detail = self.judge(error, where or line, notes)
        trial.tell(status, detail, where)

    def statement(self, name, line, function):
        """What is no test unless it fails."""
        error = None
        with Trial(self, name, line) as trial:
            try:
                function()
            except BaseException as caught:
                error = caught
        if error is None and self.link.verdict is None:
            trial.pass_on()
        else:
            where = self.line_of(error)
            trial.tell(*self.judge(error, where or line), where)

    def line_of(self, error):
        """The innermost line of the test code that an exception went through."""
        found, trace = None, error and error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.path:
                found = trace.tb_lineno
            trace = trace.tb_next
        return found

    def judge(self, error, line=None, notes=()):
        """(status, detail)"""
        if error is None:
            return 'passed', ''
        if isinstance(error, Verdict):
            return self.link.verdict or ('error', 'the test was ended')
        if is_of(error, '_pytest.outcomes', 'Skipped') or is_of(error, 'unittest.case', 'SkipTest'):
            return 'skipped', self.text_of(error)
        if isinstance(error, AssertionError) or is_of(error, '_pytest.outcomes', 'Failed'):
            return 'failed', '\n'.join((self.text_of(error) or self.source_line(line), *notes))
        if isinstance(error, Unmet):
            return 'error', self.text_of(error)
        return 'error', ('%s: %s' % (type(error).__name__, self.text_of(error))).rstrip(': ')

    @staticmethod
    def text_of(error):
        try:
            return str(error)
        except BaseException:
            return ''

    def source_line(self, number):
        return self.lines[number - 1].strip() if number and number <= len(self.lines) else ''

    # ---- top-level statements

    def run(self, entry_point):
        try:
            for node in self.tree.body:
                self.run_statement(node)
            self.run_check(entry_point)
            for name, node in self.defined.items():
                self.run_definition(name, node)
        except Stopped:
            pass

    def run_statement(self, node):
        title = self.source_line(node.lineno)
        if is_runner_call(node):
            return
        if isinstance(node, ast.Assert):
            self.run_assert(node, title)
            return
        name = called_name(node)
        if name is not None:
            self.called.add(name)
        run = self.code_of(node)
        if is_test_statement(node, self.defined):
            self.test(name if name == 'check' else title, node.lineno, run)
        else:
            self.statement(title, node.lineno, run)
            if self.check_with and isinstance(node, ast.FunctionDef) and node.name == 'check':
                self.module.check = self.check_with(self.module.check)

    def code_of(self, node):
        code = compile(ast.Module([node], []), self.path, 'exec', self.flags, True)
        return lambda: exec(code, self.module.__dict__)

    def run_assert(self, node, title):
        """With both sides of a comparison kept, so that the answer can tell what they were."""
        names, test, notes = self.module.__dict__, node.test, []
        sign = SIGNS[type(test.ops[0])] if isinstance(test, ast.Compare) and len(test.ops) == 1 else None
        if sign:
            test.left, test.comparators[0] = kept_as(LEFT, test.left), kept_as(RIGHT, test.comparators[0])
        run = self.code_of(node)

        def run_and_note():
            try:
                run()
            except AssertionError:
                # Here, where time is limited: an object of the submission is asked what it looks like.
                if sign and LEFT in names and RIGHT in names:
                    notes.append('%s %s %s is not so' % (brief(names[LEFT]), sign, brief(names[RIGHT])))
                raise

        try:
            self.test(title, node.lineno, run_and_note, notes)
        finally:
            names.pop(LEFT, None)
            names.pop(RIGHT, None)

    def run_check(self, entry_point):
        if not entry_point or 'check' in self.called or not isinstance(self.defined.get('check'), ast.FunctionDef):
            return
        self.test('check', self.defined['check'].lineno, lambda: self.module.check(self.candidate(entry_point)))

    def candidate(self, entry_point):
        name, *rest = entry_point.split('.')
        if name not in vars(self.module):
            if self.link.gone is not None:
                raise self.link.end_test('error', self.link.gone)
            raise NameError('the submission has no %r' % name)
        value = vars(self.module)[name]
        for part in rest:
            value = getattr(value() if isinstance(value, type) else value, part)
        return value

    # ---- functions and classes

    def run_definition(self, name, node):
        value = vars(self.module).get(name)
        if isinstance(node, ast.ClassDef):
            if isinstance(value, type) and issubclass(value, getattr(sys.modules.get('unittest'), 'TestCase', ())):
                load_part('unittest_record')['run_test_case'](self, value)
            elif isinstance(value, type) and name.startswith('Test') and '__init__' not in vars(value):
                self.run_class(name, value)
        elif name.startswith('test') and name not in self.called and callable(value):
            self.run_function(name, value, node.lineno)

    def run_class(self, title, cls):
        for name, function in list(vars(cls).items()):
            if name.startswith('test') and callable(getattr(cls, name)):
                line = getattr(getattr(function, '__code__', None), 'co_firstlineno', None)
                self.run_function('%s.%s' % (title, name), function, line, cls)

    def run_function(self, name, function, line, cls=None):
        marks = [*getattr(cls, 'pytestmark', []), *getattr(function, 'pytestmark', [])]
        try:
            rows = list(parameter_rows(marks))
        except Exception as error:
            self.tell(name, 'error', 'parametrize: %s' % error, line)
            return
        for label, arguments, row_marks in rows:
            for params, labels in self.fixture_rows(function, cls, arguments):
                labels = [*([label] if label is not None else []), *labels]
                self.run_row('%s[%s]' % (name, '-'.join(labels)) if labels else name, function, line, cls, arguments, [*marks, *row_marks], params)

    def fixture_rows(self, function, cls, arguments):
        """(parameters of fixtures, their labels) for each call of a function that its fixtures ask for."""
        try:
            instance = None if cls is None else object.__new__(cls)
            bound = getattr(function, '__func__', function)
            parameters = Fixtures(self.module, instance, {**arguments, 'self': None}).parameters(bound)
        except Exception:               # the call itself will say what is wrong
            parameters = {}
        for row in product(*parameters.values()):
            yield {name: values[name] for name, (_, values, _) in zip(parameters, row)}, [label for label, _, _ in row]

    def run_row(self, name, function, line, cls, arguments, marks, params=None):
        why = skip_reason(marks)
        if why is not None:
            self.tell(name, 'skipped', why, line)
            return

        def run():
            instance = None if cls is None or isinstance(function, (staticmethod, classmethod)) else cls()
            with Fixtures(self.module, instance, arguments, params) as fixtures:
                bound = getattr(cls if instance is None else instance, name.partition('[')[0].rpartition('.')[2]) if cls else function
                with around(instance if cls else self.module, bound):
                    finish(fixtures.call(bound))

        expected = any(mark.name == 'xfail' for mark in marks)
        self.test(name, line, lambda: expect_failure(run, expected))


def is_runner_call(node):
    """unittest.main(), pytest.main(): we are that."""
    call = node.value if isinstance(node, ast.Expr) else None
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args and call.func.id == 'exit':
        call = call.args[0]
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ('unittest.main', 'pytest.main')


def called_name(node):
    """Of the function that a statement calls and does nothing else."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
        return node.value.func.id
    return None


def is_test_statement(node, defined):
    """A call of a function of the test code or of one that asserts, or a compound statement with an assert in it."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ''
        return name in defined and not isinstance(defined[name], ast.ClassDef) or name.startswith('assert')
    return isinstance(node, (ast.For, ast.While, ast.With, ast.If, ast.Try)) and has_assert(node) and not is_main_guard(node)


def is_main_guard(node):
    return isinstance(node, ast.If) and '__name__' in {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}


def has_assert(node):
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return any(has_assert(part) for part in ast.iter_child_nodes(node))


def kept_as(name, value):
    """An expression that also binds a name."""
    return ast.copy_location(ast.NamedExpr(ast.copy_location(ast.Name(name, ast.Store()), value), value), value)


def brief(value):
    try:
        text = repr(value)
    except Exception:
        text = '<%s>' % type(value).__name__
    return text if len(text) <= REPR_MAX else text[:REPR_MAX] + '...'


# ----------------------------------------------------------------------------------------------------- what pytest offers

def parameter_rows(marks):
    """(label, arguments, marks) for each call that parametrize asks for."""
    tables = []
    for mark in marks:
        if mark.name == 'parametrize':
            names, values = mark.args[0], (mark.args[1] if len(mark.args) > 1 else mark.kwargs['argvalues'])
            names = [name.strip() for name in names.split(',') if name.strip()] if isinstance(names, str) else list(names)
            ids = mark.kwargs.get('ids')
            tables.append([parameter_row(names, value, ids[number] if isinstance(ids, (list, tuple)) else None) for number, value in enumerate(values)])
    if not tables:
        yield None, {}, []
        return
    for rows in product(*tables[::-1]):
        yield ('-'.join(label for label, _, _ in rows), {name: value for _, row, _ in rows for name, value in row.items()},
               [mark for _, _, more in rows for mark in more])


def parameter_row(names, value, label):
    marks = []
    if type(value).__name__ == 'ParameterSet':
        marks, label, value = list(value.marks), value.id or label, value.values
        values = list(value)
    else:
        values = [value] if len(names) == 1 else list(value)
    if len(values) != len(names):
        raise ValueError('%d values for %s' % (len(values), ', '.join(names)))
    return label or '-'.join(brief(part)[:40] for part in values), dict(zip(names, values)), marks


def finish(value):
    """What a test function gives: a coroutine has yet to be run, and a generator never is."""
    if hasattr(value, 'cr_frame'):
        __import__('asyncio').run(value)
    elif hasattr(value, 'gi_frame'):
        raise Unmet('a test that yields is not supported')


def skip_reason(marks):
    for mark in marks:
        if mark.name == 'skip' or mark.name == 'skipif' and mark.args and mark.args[0]:
            return str(mark.kwargs.get('reason') or (mark.args[0] if mark.name == 'skip' and mark.args else 'skipped'))
    return None


def expect_failure(run, expected):
    if not expected:
        run()
        return
    try:
        run()
    except Exception:
        return
    raise AssertionError('it passed, and is marked xfail')


class around:
    """setup_method(), setup_function() and the like."""

    def __init__(self, home, bound):
        self.home = home
        self.kind = 'method' if hasattr(bound, '__self__') else 'function'
        self.bound = bound

    def call(self, when):
        hook = getattr(self.home, '%s_%s' % (when, self.kind), None)
        if hook is not None:
            hook(self.bound) if hook.__code__.co_argcount > (1 if self.kind == 'method' else 0) else hook()

    def __enter__(self):
        self.call('setup')

    def __exit__(self, *_):
        self.call('teardown')


def arguments_of(function, given=()):
    """Names of fixtures that a function wants.  The first arguments may be mocks of unittest.mock.patch."""
    import inspect
    names = [name for name, parameter in inspect.signature(function).parameters.items() if name in given or parameter.default is parameter.empty]
    patched = [one for one in getattr(function, 'patchings', ()) if not one.attribute_name and one.new is sys.modules['unittest.mock'].DEFAULT]
    return names[len(patched):]


class Request:
    """What a fixture is told of who asks for it."""

    def __init__(self, fixtures, param):
        self.param, self.fixtures = param, fixtures

    def getfixturevalue(self, name):
        return self.fixtures.get(name)

    def addfinalizer(self, function):
        self.fixtures.endings.append(function)


class Fixtures:
    """The arguments of a test: parameters, fixtures of the test code itself, and tmp_path, capsys and monkeypatch."""

    def __init__(self, module, instance, arguments, params=None):
        self.params = params or {}
        self.homes = ([(vars(type(instance)), instance)] if instance is not None else []) + [(vars(module), None)]
        self.made = dict(arguments)
        self.endings = []

    def __enter__(self):
        for names, _ in self.homes[::-1]:
            for name, value in list(names.items()):
                if getattr(getattr(value, '_pytestfixturefunction', None), 'autouse', False) is True:
                    self.get(name)
        return self

    def find(self, name):
        """A fixture of the test code, as a function without `self`."""
        for names, instance in self.homes:
            wrapped = getattr(names.get(name), '__pytest_wrapped__', None)
            if wrapped is not None:
                return wrapped.obj if instance is None else wrapped.obj.__get__(instance)
        return None

    def __exit__(self, *_):
        for ending in self.endings[::-1]:
            ending()

    def call(self, function):
        return function(**{name: self.get(name) for name in arguments_of(function, self.made)})

    def get(self, name):
        if name not in self.made:
            own = self.find(name)
            known = getattr(self, 'make_' + name, None)
            if own is None and known is None:
                raise Unmet('there is no fixture %r here' % name)
            self.made[name] = known() if own is None else self.run(name, own)
        return self.made[name]

    def parameters(self, function, seen=None):
        """{fixture: its parameters and their labels}, of those that a function wants, and that they want."""
        found, seen = {}, set() if seen is None else seen
        autouse = [name for names, _ in self.homes for name, value in names.items()
                   if getattr(getattr(value, '_pytestfixturefunction', None), 'autouse', False) is True] if not seen else []
        for name in [*autouse, *arguments_of(function)]:
            own = None if name in self.made or name in seen else self.find(name)
            if own is None:
                continue
            seen.add(name)
            marker = next(names[name] for names, _ in self.homes if name in names)._pytestfixturefunction
            if marker.params:
                ids = marker.ids if isinstance(marker.ids, (list, tuple)) else ()
                found[name] = [parameter_row([name], value, ids[number] if number < len(ids) else None) for number, value in enumerate(marker.params)]
            found.update(self.parameters(own, seen))
        return found

    def run(self, name, function):
        self.made['request'] = Request(self, self.params.get(name))
        value = self.call(function)
        if not hasattr(value, 'gi_frame') or not function.__code__.co_flags & 0x20:
            return value
        self.endings.append(lambda: next(value, None))
        return next(value)

    def make_tmp_path(self):
        import pathlib
        import tempfile
        folder = tempfile.TemporaryDirectory()
        self.endings.append(folder.cleanup)
        return pathlib.Path(folder.name)

    def make_monkeypatch(self):
        patch = __import__('pytest').MonkeyPatch()
        self.endings.append(patch.undo)
        return patch

    def make_tmpdir(self):
        return self.make_tmp_path()

    def make_capsys(self):
        return Captured()

    make_capfd = make_capsys

    def make_caplog(self):
        log = load_part('logs')['Log']()
        self.endings.append(log.end)
        return log

    def make_recwarn(self):
        warnings = __import__('warnings')
        catching = warnings.catch_warnings(record=True)
        caught = catching.__enter__()
        warnings.simplefilter('always')
        self.endings.append(lambda: catching.__exit__(None, None, None))
        return caught


class Captured:
    def readouterr(self):
        from collections import namedtuple
        limit = 2 * sys.stdout.half
        texts = namedtuple('CaptureResult', 'out err')(sys.stdout.getvalue(), sys.stderr.getvalue())
        sys.stdout.__init__(limit)
        sys.stderr.__init__(limit)
        return texts
