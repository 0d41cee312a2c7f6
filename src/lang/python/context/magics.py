"""Reads the text of an execution: Python, and the few things besides that people write in notebooks.

A text that is Python is left alone.  Only where it does not parse are `!command`, `x = !command`, `%name` and `%%name`
replaced by calls of __caisson__, which is a Magics.  That happens where a statement begins, never inside of strings or
brackets, and every line stays where it was.  So is what all lines have of the first one's indentation.
"""

import sys
from _ast import Attribute, Call, Expr, Load, Name, PyCF_ONLY_AST
from posix import chdir, getcwd, listdir, times
from time import perf_counter

SHELL = '/bin/bash'
LAYER = '/opt/packages'         # SANDBOX_PYTHON_LAYER of sandbox/sandbox.h
TOKEN = r'''#[^\n]*|(?:"""|\'\'\')|["\']|[([{]|[)\]}]|\\\r?\n|\n'''
STATEMENT = (r'(?P<indent>[ \t]*)(?P<target>[^\W\d][\w.]*(?:[ \t]*,[ \t]*[^\W\d][\w.]*)*[ \t]*=[ \t]*)?'
             r'(?P<mark>!!?|%)(?P<text>(?:[^\n\\]|\\\r?\n|\\.)*\\?)')
CELL = r'\s*%%(\w+)[ \t]*([^\n]*)(?:\n(.*))?\Z'
# ${NAME} and {} are the shell's own.
EXPANSION = r'\$\$|\$([^\W\d]\w*)|(?<![$\\{])\{([^\W\d]\w*(?:\.[^\W\d]\w*|\[[^\[\]{}]*\])*)\}(?!\})'
MARKS = {'line': '%', 'cell': '%%'}
ALIASES = {'cat': 'cat', 'cp': 'cp', 'll': 'ls -lF', 'ls': 'ls -F', 'mkdir': 'mkdir', 'mv': 'mv', 'rm': 'rm', 'rmdir': 'rmdir'}
TIMEIT_OPTION = r'\s*-(?:([nrp])\s*(\d+)|([tcqo]+))(?!\S)'
TIMEIT_LEAST_S = 0.2            # what a number of loops has to take that is found by trying


def is_install(command):
    """Whether a line of the shell is one call of pip install that wants an index: not one that names a file or a folder."""
    words = command.split()
    if words[1:3] == ['-m', 'pip'] and words[0].rpartition('/')[2].startswith('python'):
        words = words[2:]
    is_local = any(word in ('.', '--no-index', '-f', '--find-links') or word.startswith(('./', '../', '/', 'file:')) or word.endswith('.whl') for word in words[2:])
    return words[:1] in (['pip'], ['pip3']) and words[1:2] == ['install'] and not is_local and not set(command) & set(';|&`$')


class Cell:
    """What read_cell() makes of a text: code, the code of the last expression if there is one, and how to run it."""

    def __init__(self, code, last, is_silent, is_timed):
        self.code = code
        self.last = last
        self.is_silent = is_silent
        self.is_timed = is_timed


class Piece:
    """A text that a magic executes, as read_cell() has it of an execution."""

    def __init__(self, code, name):
        self.name = name
        self.interactivity = 'last_expr'
        self.take(code)

    def take(self, code):
        self.code = code


class UsageError(Exception):
    """A magic that we do not have, or that was called in a way which it does not know."""

    __module__ = 'builtins'


def read_cell(request, flags):
    """Raises what compile() does.  Where it was a text with replacements, the exception has it as caisson_source."""
    try:
        return compile_cell(request, request.code, flags, False)
    except SyntaxError as error:
        mistake = error
    text = without_indent(request.code)
    if text != request.code:
        request.take(text)
        try:
            return compile_cell(request, text, flags, False)
        except SyntaxError as error:
            mistake = error
    if '!' not in text and '%' not in text:
        raise mistake
    replaced, is_timed = replace(text)
    if replaced == text:
        raise mistake
    try:
        return compile_cell(request, replaced, flags, is_timed)
    except SyntaxError as error:
        error.caisson_source = replaced.encode('utf-8', 'surrogatepass')
        raise


def without_indent(text):
    """A text that is indented as a whole, as it is where somebody has cut it out of another one."""
    import re
    first = re.match(r'(?:[ \t]*\r?\n)*([ \t]+)\S', text)
    return re.sub('(?m)^' + first[1], '', text) if first else text


def compile_cell(request, text, flags, is_timed):
    name = request.name
    try:
        tree = compile(text, name, 'exec', PyCF_ONLY_AST | flags, True)
        is_silent = request.interactivity == 'none' or ends_with_semicolon(text, tree)
        if request.interactivity == 'all':
            show_expressions(tree.body)
        return Cell(*compile_tree(tree, name, flags), is_silent, is_timed)
    except (MemoryError, RecursionError):
        # The objects of a tree may nest less deeply than what the compiler itself reads.
        return Cell(compile(text, name, 'exec', flags, True), None, False, is_timed)


def show_expressions(statements):
    """All expressions but the last one, which is the value, become calls of Magics.shown()."""
    for one in statements[:-1]:
        if type(one) is Expr:
            place = {name: getattr(one, name) for name in ('lineno', 'col_offset', 'end_lineno', 'end_col_offset')}
            one.value = Call(Attribute(Name('__caisson__', Load(), **place), 'shown', Load(), **place), [one.value], [], **place)


def ends_with_semicolon(text, tree):
    if not tree.body or type(tree.body[-1]) is not Expr:
        return False
    last = tree.body[-1]
    lines = text.encode('utf-8', 'surrogatepass').replace(b'\r\n', b'\n').replace(b'\r', b'\n').split(b'\n')
    return lines[last.end_lineno - 1][last.end_col_offset:].lstrip().startswith(b';')


def replace(text):
    """The text as Python, and whether it is to be timed."""
    import re
    cell = re.match(CELL, text, re.DOTALL)
    if cell is None:
        return replace_lines(re, text), False
    name, rest, body = cell[1], cell[2].strip(), cell[3] or ''
    if name == 'time' and not rest:
        return '\n' * text.count('\n', 0, cell.start(3) if cell[3] is not None else 0) + replace_lines(re, body), True
    return '__caisson__.cell(%r, %r, %r)' % (name, rest, body), False


def replace_lines(re, text):
    token, statement = re.compile(TOKEN), re.compile(STATEMENT)
    out, at, depth, begins = [], 0, 0, True
    while at < len(text):
        found = statement.match(text, at) if begins else None
        if found:
            line = call_of(found)
            out.append(line + '\n' * found[0].count('\n'))
            at, begins = found.end(), False
            continue
        mark = token.search(text, at)
        if mark is None:
            break
        end = mark.end()
        if mark[0] in ('"', "'", '"""', "'''"):
            end = end_of_string(re, text, end, mark[0])
        elif mark[0] in '([{':
            depth += 1
        elif mark[0] in ')]}':
            depth = max(depth - 1, 0)
        begins = mark[0] == '\n' and depth == 0
        out.append(text[at:end])
        at = end
    return ''.join(out) + text[at:]


def end_of_string(re, text, at, quote):
    end = re.compile(r'(?:[^\\]|\\.)*?(?:%s)' % (quote if len(quote) == 3 else quote + r'|(?=\n)'), re.DOTALL).match(text, at)
    return end.end() if end else len(text)


def call_of(found):
    head = found['indent'] + (found['target'] or '')
    text = found['text'].strip()
    if found['mark'] == '%':
        name, rest = (*text.split(None, 1), '', '')[:2]
        return '%s__caisson__.line(%r, %r)' % (head, name, rest)
    return '%s__caisson__.%s(%r)' % (head, 'lines' if found['target'] or found['mark'] == '!!' else 'shell', text)


class Meter:
    def __init__(self):
        self.before = times()
        self.start = perf_counter()

    def tell(self):
        wall = perf_counter() - self.start
        now = times()
        user, system = (now[index] - self.before[index] + now[index + 2] - self.before[index + 2] for index in (0, 1))
        sys.stdout.write('CPU times: user %s, sys: %s, total: %s\nWall time: %s\n'
                         % tuple(map(duration, (user, system, user + system, wall))))


def duration(seconds, precision=3):
    for unit, size in (('s', 1), ('ms', 1e-3), ('µs', 1e-6)):
        if seconds >= size:
            return '%.*g %s' % (precision, seconds / size, unit)
    return '%.*g ns' % (precision, seconds * 1e9)


class TimeitResult:
    """What %timeit has measured, in seconds."""

    def __init__(self, loops, times, precision):
        self.loops, self.repeat, self.all_runs, self._precision = loops, len(times), times, precision
        self.timings = [one / loops for one in times]
        self.best, self.worst = min(self.timings), max(self.timings)
        self.average = sum(self.timings) / len(self.timings)
        self.stdev = (sum((one - self.average) ** 2 for one in self.timings) / len(self.timings)) ** 0.5

    def __str__(self):
        return '%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)' % (
            duration(self.average, self._precision), duration(self.stdev, self._precision),
            self.repeat, 's' * (self.repeat != 1), format(self.loops, ','), 's' * (self.loops != 1))

    def __repr__(self):
        return '<TimeitResult : %s>' % self


class Magics:
    """What the replaced lines call, as __caisson__ among the builtins.

    A magic is a method: line_NAME(rest, frame) or cell_NAME(rest, body, frame), with the frame of who called it.
    """

    def __init__(self, session):
        self.session = session
        self.folder_before = None
        self.names_before = set(session.names)
        self.added = {'line': {}, 'cell': {}}   # by the program (get_ipython())

    # ---- commands

    def shell(self, command, frame=None):
        """!command: it writes where we do, and its status is _exit_code."""
        command = self.expand(command, frame or sys._getframe(1))
        if is_install(command) and 'HTTPS_PROXY' not in sys.modules['os'].environ:
            self.refuse_install()
        else:
            self.run([SHELL, '-c', command])

    def lines(self, command, frame=None):
        """x = !command"""
        text = self.run([SHELL, '-c', self.expand(command, frame or sys._getframe(1))], capture=True)
        return text.decode('utf-8', 'replace').splitlines()

    def run(self, words, capture=False):
        import subprocess
        for stream in sys.stdout, sys.stderr:
            if stream is not None:
                stream.flush()
        outputs = {'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT} if capture else {}
        process = subprocess.Popen(words, start_new_session=True, **outputs)
        try:
            text = process.communicate()[0]
        except BaseException:           # an interrupt ends all of it
            self.end(process)
            raise
        self.session.names['_exit_code'] = process.returncode
        return text

    @staticmethod
    def end(process):
        from os import killpg
        from signal import SIGINT, SIGKILL
        from subprocess import TimeoutExpired
        for number in SIGINT, SIGKILL:
            try:
                killpg(process.pid, number)
            except OSError:
                pass
            try:
                process.wait(1)
                break
            except TimeoutExpired:
                pass

    @staticmethod
    def expand(command, frame):
        """Put the values of {name} and $name in, where the program has such a variable."""
        import re

        def value(found):
            if found[0] == '$$':
                return '$$'
            name = found[1] or found[2]
            first = re.match(r'\w+', name)[0]
            try:
                if first in frame.f_locals or first in frame.f_globals:
                    return str(eval(name, frame.f_globals, frame.f_locals))
            except Exception:
                pass
            return found[0]

        return re.sub(EXPANSION, value, command)

    # ---- magics

    def find(self, kind, name):
        """The magic of that name as a function, or None."""
        return self.added[kind].get(name) or getattr(self, '%s_%s' % (kind, name), None) or self.alias(kind, name)

    def alias(self, kind, name):
        command = ALIASES.get(name) if kind == 'line' else None
        return command and (lambda rest, frame: self.shell('%s %s' % (command, rest), frame))

    def known(self, kind):
        own = {name.partition('_')[2] for name in dir(type(self)) if name.startswith(kind + '_')}
        return sorted({*own, *self.added[kind], *(ALIASES if kind == 'line' else ())})

    def add(self, function, kind, name):
        """Of the program's: function(line), or function(line, body)."""
        if kind == 'line_cell':
            self.add(function, 'line', name)
            self.add(function, 'cell', name)
        elif kind in MARKS:
            self.added[kind][name] = lambda *given: function(*given[:-1])
        else:
            raise ValueError('a magic is of the kind line, cell or line_cell, and not %r' % (kind,))

    def needed(self, kind, name):
        magic = self.find(kind, name)
        if magic is None:
            mark = MARKS[kind]
            raise UsageError('there is no %s magic %s%s here; there are %s'
                             % (kind, mark, name, ', '.join(mark + one for one in self.known(kind))))
        return magic

    def line(self, name, rest, frame=None):
        return self.needed('line', name)(rest, frame or sys._getframe(1))

    def cell(self, name, rest, body, frame=None):
        return self.needed('cell', name)(rest, body, frame or sys._getframe(1))

    def shown(self, value):
        """An expression that is not the last one, where all of them are shown."""
        if value is not None:
            self.session.show(value)

    def execute(self, text, is_timed=False):
        """A text as an execution has it, within one; its value."""
        session = self.session
        cell = read_cell(Piece(text, session.request.name), session.flags)
        meter = is_timed and Meter()
        try:
            value = drive_here(session.evaluate(cell.code))
            return value if cell.last is None else drive_here(session.evaluate(cell.last))
        finally:
            if meter:
                meter.tell()

    def line_lsmagic(self, rest, frame):
        for kind, mark in MARKS.items():
            sys.stdout.write('Available %s magics:\n%s\n' % (kind, '  '.join(mark + name for name in self.known(kind))))

    # ---- folders, files and the environment

    def line_cd(self, rest, frame):
        folder = self.expand(rest.strip('\'"'), frame) or '~'
        if folder == '-':
            folder = self.folder_before or getcwd()
        before = getcwd()
        chdir(sys.modules['os'].path.expanduser(folder))
        self.folder_before = before
        sys.stdout.write(getcwd() + '\n')

    @staticmethod
    def line_pwd(rest, frame):
        return getcwd()

    def line_env(self, rest, frame):
        environ = sys.modules['os'].environ
        name, sign, text = rest.partition('=' if '=' in rest else ' ')
        if not rest:
            return dict(environ)
        if not sign:
            if name not in environ:
                raise UsageError('there is no environment variable %s' % name)
            return environ[name]
        name, text = name.strip(), self.expand(text.strip(), frame)
        environ[name] = text
        sys.stdout.write('env: %s=%s\n' % (name, text))
        return None

    line_set_env = line_env

    def cell_writefile(self, rest, body, frame):
        os = sys.modules['os']
        words = self.expand(rest, frame).split(None, 1)
        appends = words[:1] == ['-a'] or words[:1] == ['--append']
        name = ' '.join(words[appends:]).strip('\'"')
        if not name:
            raise UsageError('%%writefile needs the name of a file behind it; -a before the name appends to it')
        path = os.path.expanduser(name)
        said = 'Writing' if not os.path.exists(path) else 'Appending to' if appends else 'Overwriting'
        with open(path, 'a' if appends else 'w', encoding='utf-8') as file:
            file.write(body if body.endswith('\n') else body + '\n')
        sys.stdout.write('%s %s\n' % (said, name))

    cell_file = cell_writefile

    # ---- programs of other languages, and pictures of texts

    def run_cell(self, name, shell, rest, body):
        if rest:
            raise UsageError('%%%%%s takes nothing behind it on its line, and not %r' % (name, rest))
        self.run([shell, '-c', body])
        status = self.session.names['_exit_code']
        if status:
            raise sys.modules['subprocess'].CalledProcessError(status, name)

    def cell_bash(self, rest, body, frame):
        self.run_cell('bash', SHELL, rest, body)

    def cell_sh(self, rest, body, frame):
        self.run_cell('sh', '/bin/sh', rest, body)

    def show_as(self, kind, body):
        self.session.show(self.session.screen.names[kind](body))

    def cell_html(self, rest, body, frame):
        self.show_as('HTML', body)

    cell_HTML = cell_html

    def cell_markdown(self, rest, body, frame):
        self.show_as('Markdown', body)

    def cell_latex(self, rest, body, frame):
        self.show_as('Latex', body)

    def cell_svg(self, rest, body, frame):
        self.session.show(None, {'image/svg+xml': body})

    # ---- the interpreter

    @staticmethod
    def line_matplotlib(rest, frame):
        """Figures are shown inline in any case."""

    def line_pip(self, rest, frame):
        self.shell('%s -m pip %s' % (sys.executable, rest), frame)

    def refuse_install(self):
        """Say in one line what pip would find out after some attempts, what is there, and how to ask for more."""
        try:
            names = sorted(name[:-10].replace('-', ' ') for name in listdir(LAYER) if name.endswith('.dist-info'))
        except OSError:
            names = []
        sys.stderr.write('pip: this sandbox has no network. Name packages in the field "packages" of the request that makes the sandbox; %s.\n'
                         % ('its packages are ' + ', '.join(names) if names else 'it has those of the image'))
        self.session.names['_exit_code'] = 1

    def variables(self, rest):
        """Names of the program's variables, of the types that are named if some are."""
        kinds, names = rest.split(), self.session.names
        return sorted(name for name in list(names) if type(name) is str and name[:1] != '_' and name not in self.names_before
                      and (not kinds or type(names[name]).__name__ in kinds))

    def line_who_ls(self, rest, frame):
        return self.variables(rest)

    def line_who(self, rest, frame):
        names = self.variables(rest)
        none = 'No variables match your requested type.' if rest else 'Interactive namespace is empty.'
        sys.stdout.write(''.join('%s\t \n' % '\t '.join(names[at:at + 9]) for at in range(0, len(names), 9)) or none + '\n')

    def line_whos(self, rest, frame):
        names = self.variables(rest)
        if not names:
            self.line_who(rest, frame)
            return
        values = [self.session.names[name] for name in names]
        rows = [('Variable', 'Type', 'Data/Info'), *((name, type(value).__name__, summary(value)) for name, value in zip(names, values))]
        widths = [max(len(row[at]) for row in rows) + 3 for at in (0, 1)]
        lines = [(row[0].ljust(widths[0]) + row[1].ljust(widths[1]) + row[2]).rstrip() for row in rows]
        sys.stdout.write('\n'.join([lines[0], '-' * len(lines[0]), *lines[1:]]) + '\n')

    def line_time(self, rest, frame):
        return self.execute(rest, True)

    def cell_time(self, rest, body, frame):
        return self.execute(body, True)

    def line_timeit(self, rest, frame):
        return self.time_it(rest, None)

    def cell_timeit(self, rest, body, frame):
        return self.time_it(rest, body)

    def time_it(self, rest, body):
        """[-n LOOPS] [-r RUNS] [-p DIGITS] [-q] [-o] [-t] [-c] STATEMENT, or a statement before each run and what is timed below it."""
        import re
        import timeit
        numbers, flags = {'n': 0, 'r': 7, 'p': 3}, ''
        while True:
            option = re.match(TIMEIT_OPTION, rest)
            if option is None:
                break
            if option[1]:
                numbers[option[1]] = int(option[2])
            flags += option[3] or ''
            rest = rest[option.end():]
        rest = rest.strip()
        if not (body or rest).strip() or not numbers['r']:
            raise UsageError('%timeit needs a statement to time, and one run or more')
        clock = timeit.time.process_time if 'c' in flags else timeit.time.time if 't' in flags else timeit.default_timer
        timer = timeit.Timer(rest if body is None else replace_lines(re, body).rstrip('\n'), rest if body is not None and rest else 'pass', clock,
                             self.session.names)
        loops = numbers['n'] or next((10 ** n for n in range(9) if timer.timeit(10 ** n) >= TIMEIT_LEAST_S), 10 ** 9)
        result = TimeitResult(loops, timer.repeat(numbers['r'], loops), numbers['p'])
        if 'q' not in flags:
            if result.worst > 4 * result.best and result.best > 0 and result.worst > 1e-6:
                sys.stdout.write('The slowest run took %0.2f times longer than the fastest. This could mean that an intermediate result '
                                 'is being cached.\n' % (result.worst / result.best))
            sys.stdout.write('%s\n' % result)
        return result if 'o' in flags else None


def summary(value):
    """What %whos tells of a value, in one line."""
    try:
        if issubclass(type(value), (list, tuple, dict, set, frozenset)):
            return 'n=%d' % len(value)
        text = str(value).replace('\n', '\\n')
        return text if len(text) < 50 else text[:25] + '<...>' + text[-25:]
    except Exception as error:
        return '<%s>' % type(error).__name__
