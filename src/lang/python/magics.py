"""Reads the text of an execution: Python, and the few things besides that people write in notebooks.

A text that is Python is left alone.  Only where it does not parse are `!command`, `x = !command`, `%name` and `%%name`
replaced by calls of __caisson__, which is a Magics.  That happens where a statement begins, never inside of strings or
brackets, and every line stays where it was.  So is what all lines have of the first one's indentation.
"""

import sys
from _ast import Expr, PyCF_ONLY_AST
from posix import chdir, getcwd, times
from time import perf_counter

SHELL = '/bin/bash'
TOKEN = r'''#[^\n]*|(?:"""|\'\'\')|["\']|[([{]|[)\]}]|\\\r?\n|\n'''
STATEMENT = (r'(?P<indent>[ \t]*)(?P<target>[^\W\d][\w.]*(?:[ \t]*,[ \t]*[^\W\d][\w.]*)*[ \t]*=[ \t]*)?'
             r'(?P<mark>!!?|%)(?P<text>(?:[^\n\\]|\\\r?\n|\\.)*\\?)')
CELL = r'\s*%%(\w+)[ \t]*([^\n]*)(?:\n(.*))?\Z'
# ${NAME} and {} are the shell's own.
EXPANSION = r'\$\$|\$([^\W\d]\w*)|(?<![$\\{])\{([^\W\d]\w*(?:\.[^\W\d]\w*|\[[^\[\]{}]*\])*)\}(?!\})'
LINE_MAGICS = '%cd, %env, %matplotlib, %pip, %pwd, %time'
CELL_MAGICS = '%%bash, %%sh, %%time'


class Cell:
    """What read_cell() makes of a text: code, the code of the last expression if there is one, and how to run it."""

    def __init__(self, code, last, is_silent, is_timed):
        self.code = code
        self.last = last
        self.is_silent = is_silent
        self.is_timed = is_timed


class UsageError(Exception):
    """A magic that we do not have, or that was called in a way which it does not know."""

    __module__ = 'builtins'


def read_cell(request, flags):
    """Raises what compile() does.  Where it was a text with replacements, the exception has it as caisson_source."""
    try:
        return compile_cell(request.code, request.name, flags, False)
    except SyntaxError as error:
        mistake = error
    text = without_indent(request.code)
    if text != request.code:
        request.take(text)
        try:
            return compile_cell(text, request.name, flags, False)
        except SyntaxError as error:
            mistake = error
    if '!' not in text and '%' not in text:
        raise mistake
    replaced, is_timed = replace(text)
    if replaced == text:
        raise mistake
    try:
        return compile_cell(replaced, request.name, flags, is_timed)
    except SyntaxError as error:
        error.caisson_source = replaced.encode('utf-8', 'surrogatepass')
        raise


def without_indent(text):
    """A text that is indented as a whole, as it is where somebody has cut it out of another one."""
    import re
    first = re.match(r'(?:[ \t]*\r?\n)*([ \t]+)\S', text)
    return re.sub('(?m)^' + first[1], '', text) if first else text


def compile_cell(text, name, flags, is_timed):
    try:
        tree = compile(text, name, 'exec', PyCF_ONLY_AST | flags, True)
        is_silent = ends_with_semicolon(text, tree)
        return Cell(*compile_tree(tree, name, flags), is_silent, is_timed)
    except (MemoryError, RecursionError):
        # The objects of a tree may nest less deeply than what the compiler itself reads.
        return Cell(compile(text, name, 'exec', flags, True), None, False, is_timed)


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
        name, _, rest = text.partition(' ')
        return '%s__caisson__.line(%r, %r)' % (head, name.strip(), rest.strip())
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


def duration(seconds):
    for unit, size in (('s', 1), ('ms', 1e-3), ('µs', 1e-6)):
        if seconds >= size:
            return '%.3g %s' % (seconds / size, unit)
    return '%.3g ns' % (seconds * 1e9)


class Magics:
    """What the replaced lines call, as __caisson__ among the builtins."""

    def __init__(self, session):
        self.session = session
        self.folder_before = None

    # ---- commands

    def shell(self, command, frame=None):
        """!command: it writes where we do, and its status is _exit_code."""
        command = self.expand(command, frame or sys._getframe(1))
        self.run([SHELL, '-c', command])

    def lines(self, command):
        """x = !command"""
        text = self.run([SHELL, '-c', self.expand(command, sys._getframe(1))], capture=True)
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

    def line(self, name, rest):
        action = getattr(self, 'line_' + name, None)
        if action is None:
            raise UsageError('there is no line magic %%%s here; there are %s' % (name, LINE_MAGICS))
        return action(rest, sys._getframe(1))

    def cell(self, name, rest, body):
        if name not in ('bash', 'sh', 'time'):
            raise UsageError('there is no cell magic %%%%%s here; there are %s' % (name, CELL_MAGICS))
        if rest:
            raise UsageError('%%%%%s takes nothing behind it on its line, and not %r' % (name, rest))
        self.run([SHELL if name == 'bash' else '/bin/sh', '-c', body])
        status = self.session.names['_exit_code']
        if status:
            raise sys.modules['subprocess'].CalledProcessError(status, name)

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

    @staticmethod
    def line_matplotlib(rest, frame):
        """Figures are shown inline in any case."""

    def line_pip(self, rest, frame):
        self.shell('%s -m pip %s' % (sys.executable, rest), frame)

    def line_time(self, rest, frame):
        name = self.session.request.name
        tree = compile(rest, name, 'exec', PyCF_ONLY_AST | self.session.flags, True)
        code, last = compile_tree(tree, name, self.session.flags)
        meter = Meter()
        try:
            value = drive_here(self.session.evaluate(code))
            return value if last is None else drive_here(self.session.evaluate(last))
        finally:
            meter.tell()
