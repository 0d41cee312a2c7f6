"""What run.py does before and after the program: channel, compilation, the disguise as MAINFILE, and the end.

run.py and zygote.py execute this file with HERE and FileLoader among its names.

Whatever calls code of the program's is a generator, which yields that code (drive.h): (code, names, tracing), or a function and
its arguments.  It is sent (error, value, tracing).  Its frame is on no stack meanwhile.
"""

import builtins
import sys
from _ast import Expr, Expression, PyCF_ONLY_AST
from _warnings import filters
from fcntl import F_DUPFD_CLOEXEC, fcntl
from posix import O_CLOEXEC, O_RDONLY, close, dup2, fstat, getcwd, getpid, listdir, lstat, open, read, register_at_fork, set_inheritable, write

HELLO, SYNTAX, STARTED, ERROR, VALUE, DONE = range(1, 7)
CHANNEL_FD = 3
FRAME_MAX = 65536
HEADER_SIZE = 12
PIECE_MAX = FRAME_MAX - HEADER_SIZE
FLAG_MORE = 1
S_IFMT, S_IFSOCK, S_IFLNK = 0o170000, 0o140000, 0o120000
USAGE_EXIT = 2
NO_BEGINNING = b' \t\f#)]}@'         # of the line on which a statement begins
CONTINUATIONS = {b'elif', b'else', b'except', b'finally'}
STATEMENTS = {b'async', b'class', b'def', b'for', b'if', b'try', b'while', b'with'}      # whose lines all are theirs
# Other ends of lines; what reaches into the next statement; what would see that there are two frames.
HARD = b'\r', b'__future__', b'global', b'settrace', b'set_trace', b'breakpoint', b'import trace', b'rofile', b'coverage'
FUTURES = 0x1fe0000                      # flags of `from __future__`, since Python 3.9 (PyCF_MASK)
WARNINGS_FAIL, WARNINGS_SILENT = ('error', None, Warning, None, 0), ('ignore', None, Warning, None, 0)     # as in warnings.filters
MODULE_MAX = 1 << 20             # bytes of a module beside the program that are searched for the word `show`
TRACERS = b'settrace', b'setprofile'      # they would tell of two frames, so there is no value
SUBMISSION = 'solution'          # what a program is called whose functions are to be graded
HELLO_TEXT = b'{"runner":"python","version":"%d.%d.%d"}' % sys.version_info[:3]

UNTRACED = None, None
PLAIN = str, int, float, bool, bytes     # what ends in silence

print_traceback = sys.__excepthook__
parts = {}
channels = []


def load_part(name):
    """Run a file beside this one, once, and return its names.

    Not an import: the program may have a module of that name, and would find ours in sys.modules.
    """
    if name not in parts:
        names = {'__builtins__': __builtins__, '__name__': name, 'HERE': HERE, 'FileLoader': FileLoader,
                 'load_part': load_part, 'compile_program': compile_program, 'compile_tree': compile_tree, 'complain': complain,
                 'folder_of': folder_of, 'absolute': absolute, 'parse_options': parse_options, 'send_report': send_report,
                 'show_error': show_error, 'drop_own_frame': drop_own_frame, 'drive_here': drive_here, 'call_by': call_by,
                 'have_annotations': have_annotations,
                 'line_of_last': line_of_last, 'SUBMISSION': SUBMISSION, 'Channel': Channel, 'bind_tools': bind_tools}
        exec(FileLoader(name, '%s/%s.py' % (HERE, name)).get_code(name), names)
        parts[name] = names
    return parts[name]


def find_cold():
    """The C side of what is started for one program, _cold; None for an interpreter that cannot load it."""
    global share_constants
    bootstrap = sys.modules['_frozen_importlib_external']
    try:
        loader = bootstrap.ExtensionFileLoader('_cold', HERE + '/_cold.abi3.so')
        cold = loader.create_module(sys.modules['_frozen_importlib'].ModuleSpec('_cold', loader, origin=loader.path))
        share_constants = cold.share_constants
        return cold
    except ImportError:
        return None
    finally:
        sys.modules.pop('_cold', None)


def perform(work, given):
    """What a generator has yielded, here: there is a frame of ours then, which tracebacks are told without."""
    try:
        if type(work) is not tuple:
            return None, work(*given)
        value = eval(work[0], given)
        return None, value if work[1] is None else eval(work[1], given)
    except BaseException as error:
        drop_own_frame(error)
        return error, None


def drive_here(steps):
    """Do all that a generator asks for, and return what it returns."""
    reply = None
    while True:
        try:
            work, given, _ = steps.send(reply)
        except StopIteration as end:
            return end.value
        reply = *perform(work, given), UNTRACED


def call_by(function, path, line, names, arguments=(), settings={}):
    """A function that calls this one from a frame of the program's, for warnings to tell of."""
    caller = (lambda function, arguments, settings: lambda: function(*arguments, **settings))(function, arguments, settings)
    code = caller.__code__.replace(co_filename=path, co_name='<module>', co_firstlineno=line)
    return type(caller)(code, names, '<module>', None, caller.__closure__)


def line_of_last(code):
    """The last line that the code of a statement has, where it is done with its value."""
    lines = [line for _, _, line in code.co_lines() if line] if hasattr(code, 'co_lines') else []
    return lines[-1] if lines else code.co_firstlineno


def close_channels():
    """A child that outlives us must not hold a channel open."""
    while channels:
        channels[-1].close()


register_at_fork(after_in_child=close_channels)


def send_frame(where, kind, flags, payload):
    """Whether it was sent.  A program may have closed our descriptor and got the same number for a file of its own.

    A zygote has this in C.
    """
    try:
        fd = where[0]
        about = fstat(fd)
        if where != (fd, getpid(), about.st_dev, about.st_ino):
            return False
        write(fd, b'CSN1' + bytes((kind, flags, 0, 0)) + len(payload).to_bytes(4, 'little') + payload)
        return True
    except OSError:
        return False


class Channel:
    """The sending end.  Sending never fails: a lost channel must not change what a program does."""

    def __init__(self, fd=CHANNEL_FD):
        self.fd, self.where = -1, None
        try:
            about = fstat(fd)
            if about.st_mode & S_IFMT != S_IFSOCK:
                return
            self.fd = self.move_away(fd)
        except OSError:
            return
        self.where = self.fd, getpid(), about.st_dev, about.st_ino
        channels.append(self)

    @staticmethod
    def move_away(fd):
        """Programs that close or count the low descriptors should not meet ours."""
        for lowest in 900, 200, 20:
            try:
                high = fcntl(fd, F_DUPFD_CLOEXEC, lowest)
            except OSError:     # lowest is above RLIMIT_NOFILE
                continue
            close(fd)
            return high
        set_inheritable(fd, False)
        return fd

    def leave_to_others(self):
        """Forks will close it that run no handlers."""
        channels.remove(self)

    def put_back(self):
        """To where another interpreter looks for it."""
        if self.fd >= 0:
            dup2(self.fd, CHANNEL_FD)

    def close(self):
        try:
            if self.fd >= 0:
                close(self.fd)
        except OSError:
            pass
        self.fd, self.where = -1, None
        if self in channels:
            channels.remove(self)

    def send(self, kind, payload=b''):
        start, last = 0, len(payload) - PIECE_MAX
        while self.where and start < last and send_frame(self.where, kind, FLAG_MORE, payload[start:start + PIECE_MAX]):
            start += PIECE_MAX
        if self.where and start >= last:
            send_frame(self.where, kind, 0, payload[start:])


COROUTINE = b'async def __program__():\n pass\n__import__("asyncio").run(__program__())\n'


def parse_options(text, **defaults):
    defaults.update(pair.partition('=')[::2] for pair in text.split(','))
    return defaults


def read_options(text):
    options = parse_options(text, value_max='200000', preload='', compile_only='0', graded='0', alone='0', figures='0', prelude='', awaits='0')
    limit = options['value_max']
    options['value_max'] = int(limit) if limit.isdigit() else 200000
    options['preload'] = [name for name in options['preload'].split(':') if name]
    return options


def read_file(path):
    # Without the three objects that open() makes of a file.
    fd = open(path, O_RDONLY | O_CLOEXEC)
    try:
        text = piece = read(fd, fstat(fd).st_size + 1)
        while piece:
            piece = read(fd, 1 << 20)
            text += piece
        return text
    finally:
        close(fd)


def has_word(path):
    """Whether a module has the word `show`."""
    try:
        about = lstat(path)
        return about.st_mode & 0o170000 == 0o100000 and about.st_size <= MODULE_MAX and b'show' in read_file(path)
    except OSError:
        return False


def share_constants(code, last):
    """Two pieces of one text have the same objects for equal constants; in C (constants.h)."""
    return last


def is_wrong(expression, path, flags):
    filters.insert(0, WARNINGS_SILENT)
    try:
        compile(expression, path, 'eval', flags, True)
    except SyntaxError:
        return True
    finally:
        del filters[0]
    return False


def compile_tree(tree, path, flags=0):
    if not tree.body or type(tree.body[-1]) is not Expr:
        return compile(tree, path, 'exec', flags, True), None
    last = Expression(tree.body[-1].value)
    if is_wrong(last, path, flags):         # which mistake comes first, and what is told before it, the compiler knows of all of it
        return compile(tree, path, 'exec', flags, True), None
    tree.body.pop()
    code = compile(tree, path, 'exec', flags, True)
    return code, share_constants(code, compile(last, path, 'eval', flags | code.co_flags & FUTURES, True))


def split_last(source):
    """(all before the last statement, that statement after as many empty lines, its mode), where that is easy; otherwise None.

    It is a guess: only if both can be compiled is the line the beginning of a statement.
    """
    if any(word in source for word in HARD) or b'coding' in b'\n'.join(source.split(b'\n', 2)[:2]):
        return None
    end = len(source.rstrip())
    while end > 0:
        start = source.rfind(b'\n', 0, end) + 1
        first = source[start:end].replace(b':', b' ').partition(b' ')[0]
        if first and first[0] not in NO_BEGINNING and first not in CONTINUATIONS:
            mode = 'exec' if first in STATEMENTS else 'eval'
            return source[:start], b'\n' * source.count(b'\n', 0, start) + source[start:], mode
        end = start - 1
    return None


def compile_program(source, path):
    """Return the code of the module, and that of its last statement if it is an expression; of another it may be None."""
    parts = split_last(source)
    filters.insert(0, WARNINGS_FAIL)
    try:
        # To ask a tree of objects takes longer than all the rest, and they write to memory that is shared.
        if parts:
            last = compile(parts[1], path, parts[2], 0, True)
            code = compile(parts[0], path, 'exec', 0, True)
            return code, share_constants(code, last)
    except Exception:       # of a mistake, a wrong guess or a warning: all of the text is compiled, and tells its own in their order
        pass
    finally:
        del filters[0]
    return compile_whole(source, path)


def compile_whole(source, path):
    if any(word in source for word in TRACERS):
        return compile(source, path, 'exec', 0, True), None
    try:
        return compile_tree(compile(source, path, 'exec', PyCF_ONLY_AST, True), path)
    except (MemoryError, RecursionError):
        # The objects of a tree may nest less deeply than what the compiler itself reads.
        return compile(source, path, 'exec', 0, True), None


def compile_awaiting(source, path):
    """The same of a program that may have `await` and `return` outside of functions: then its statements are the body of a coroutine."""
    try:
        return compile_program(source, path)
    except SyntaxError as mistake:
        try:
            tree, body = compile(COROUTINE, path, 'exec', PyCF_ONLY_AST, True), compile(source, path, 'exec', PyCF_ONLY_AST, True).body
            tree.body[0].body = body or tree.body[0].body
            return compile(tree, path, 'exec', 0, True), None
        except SyntaxError:
            BaseException.__traceback__.__set__(mistake, None)
            mistake.__context__ = None
            raise mistake from None


def folder_of(path):
    """Of the file that an absolute path leads to."""
    folder = path.rpartition('/')[0]
    try:
        if folder == getcwd() and lstat(path).st_mode & S_IFMT != S_IFLNK:
            return folder
    except OSError:
        pass
    return sys.modules['posixpath'].realpath(path).rpartition('/')[0] or '/'


def absolute(path):
    return path if path.startswith('/') else '%s/%s' % (getcwd(), path[2:] if path[:2] == './' else path)


def have_annotations(main):
    """Up to Python 3.13 the main module has them from the start."""
    if sys.version_info < (3, 14):
        main.__annotations__ = {}


def spec_of(module):
    spec = sys.modules['_frozen_importlib'].ModuleSpec(module.__name__, module.__loader__, origin=module.__file__)
    spec.has_location = True
    return spec


def become_main(path, arguments, name):
    """Put the module, arguments and search path in place that MAINFILE would have found without us.

    Under another name than __main__ it is as if it had been imported: its main guard is false, and what it defines is found in
    the module that it names.  There is no other main program, so that name leads to it as well.
    """
    main = type(sys)(name)
    full_path = absolute(path)
    main.__dict__.update(__builtins__=builtins, __file__=full_path, __cached__=None, __loader__=FileLoader(name, full_path))
    have_annotations(main)
    if name != '__main__':
        main.__dict__.update(__package__='', __spec__=spec_of(main))
        sys.modules[name] = main
    sys.modules['__main__'] = main
    if hasattr(sys, 'orig_argv'):
        sys.orig_argv[-len(sys.argv):] = [path, *arguments]
    sys.argv = [path, *arguments]
    folder = folder_of(full_path)
    if sys.path and sys.path[0] == sys.modules['posixpath'].realpath(HERE):
        sys.path[0] = folder
    return full_path, folder, main.__dict__


def files_in(folder):
    try:
        return listdir(folder)
    except OSError:             # then nothing can be imported from there either
        return []


def preload(wanted, folder, names):
    """Import modules for the program, but none that has a namesake in its own folder: that one is its to import."""
    shadows = {entry.partition('.')[0] for entry in files_in(folder)}
    before = set(sys.modules)
    own_folder = sys.path[0] == folder and sys.path.pop(0)
    try:
        for name in wanted:
            top = name.partition('.')[0]
            if top in shadows:
                continue
            try:
                names[top] = __import__(name)
            except Exception:       # the program will be told when it imports the module itself
                pass
    finally:
        if own_folder:
            sys.path.insert(0, own_folder)
    for name in set(sys.modules) - before:
        if name.partition('.')[0] in shadows:
            del sys.modules[name]


def bind_tools(folder, names):
    """Where the sandbox was given tools: the stub that calls them, as a module and as a name."""
    if b'CAISSON_TOOLS' in sys.modules['os'].environ._data:
        path = HERE.rpartition('/')[0] + '/tools/python'
        if path not in sys.path:
            sys.path.append(path)
        preload(['tools'], folder, names)


def drop_own_frame(error):
    """Remove the outermost frame, which is ours, from a traceback, and return the rest."""
    traceback = BaseException.__traceback__
    traceback.__set__(error, traceback.__get__(error).tb_next)
    return traceback.__get__(error)


def complain(text):
    if sys.stderr is not None:
        sys.stderr.write(text)


def show_error(error, trace):
    """What the interpreter does with an exception that nobody caught.  A generator."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, 'excepthook', None)
    if hook is None:
        complain('sys.excepthook is missing\n')
        print_traceback(type(error), error, trace)
        return
    sys.audit('sys.excepthook', hook, type(error), error, trace)
    second, _, _ = yield hook, (type(error), error, trace), None
    if second is None:
        return
    if issubclass(type(second), SystemExit):
        raise second
    complain('Error in sys.excepthook:\n')
    print_traceback(type(second), second, BaseException.__traceback__.__get__(second))
    complain('\nOriginal exception was:\n')
    print_traceback(type(error), error, trace)


def send_report(channel, kind, function, *details):
    """Let report.py build a document and send it.  Whatever the program broke, it is not told here."""
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, 2000))
        channel.send(kind, load_part('report')[function](*details))
    except BaseException:
        pass
    finally:
        sys.setrecursionlimit(limit)


class Runner:
    """One run: made by run.py, asked for code to execute, and told how that went."""

    def __init__(self, options, path, arguments):
        self.channel = None
        self.options = read_options(options)
        self.is_graded = self.options['graded'] == '1'
        self.run_cases = self.leave = None   # the zygote's, where there is one
        self.is_sample = False  # of the zygote itself
        self.path, self.folder, self.names = become_main(path, arguments, SUBMISSION if self.is_graded else '__main__')
        self.tracing = UNTRACED     # the functions that a prelude has set
        self.mistake = None     # that a zygote knows of
        self.source = b''       # until it is read, or a zygote knows it
        self.compiled = None    # likewise

    def open_channel(self, channel):
        self.channel = channel
        if self.is_graded:              # is asked who it is; in a run it goes with what comes next, or somebody is woken for it
            channel.send(HELLO, HELLO_TEXT)

    def start(self):
        """Return the two code objects of compile_program() when the program may begin.  A role is served here, to its end."""
        role = load_part('role')['Role'](self) if self.is_graded else None
        try:
            self.source = self.source or read_file(self.path)
        except OSError as error:
            complain("%s: can't open file %r: [Errno %d] %s\n"
                     % (sys.executable, self.path, error.errno, error.strerror))
            raise SystemExit(USAGE_EXIT) from None
        mistake = self.mistake
        try:
            compiled = self.compiled or (compile_awaiting if self.options['awaits'] == '1' else compile_program)(self.source, self.path) if mistake is None else None
            code, last = compiled or (None, None)
        except BaseException as error:
            mistake = error
        if not role:
            self.channel.send(HELLO, HELLO_TEXT)
        if mistake is not None:
            BaseException.__traceback__.__set__(mistake, None)
            mistake.__context__ = None
            send_report(self.channel, SYNTAX, 'syntax_document', mistake, self.source)
            drive_here(show_error(mistake, None))
            raise SystemExit(1)
        if self.options['compile_only'] == '1':
            raise SystemExit(0)
        bind_tools(self.folder, self.names)
        if self.options['figures'] == '1':
            load_part('figures')['save_what_is_shown']()
        elif not role and self.may_show():
            load_part('figures')['tell_what_is_not_shown']()
        if self.options['preload']:
            preload(self.options['preload'], self.folder, self.names)
        self.channel.send(STARTED)
        if role:
            raise role.play(code, last)
        return code, last

    def run_prelude(self):
        """Run the prelude in the names of the program.  Returns None, or how the interpreter ends without the program.  A generator."""
        if not self.options['prelude']:
            return None
        path, source, error, trace = '%s/%s' % (self.folder, self.options['prelude']), b'', None, None
        try:
            source = read_file(path)
            code = compile(source, path, 'exec', 0, True)
        except BaseException as mistake:
            BaseException.__traceback__.__set__(mistake, None)
            error, error.__context__ = mistake, None
        if error is None:
            error, _, self.tracing = yield (code, None), self.names, None
            if error is None:
                return None
            trace = BaseException.__traceback__.__get__(error)
        send_report(self.channel, ERROR, 'prelude_document', error, trace, path, source, print_traceback)
        try:
            yield from show_error(error, trace)
        except BaseException:       # what the prelude has put in the place of sys.excepthook
            pass
        if self.leave:              # which sends DONE before EXITING
            self.leave.is_done = True
        else:
            self.channel.send(DONE)
        return SystemExit(1)

    def may_show(self):
        """Whether the word is in the text, or in a module beside it."""
        return b'show' in self.source or any(name.endswith('.py') and has_word('%s/%s' % (self.folder, name)) for name in files_in(self.folder))

    def finish(self, error, box, last=None):
        """Report and show how the program ended.  Returns what to raise so that the interpreter ends likewise.  A generator.

        box: a list of the value, which nobody else has; it is let go of where the program would.
        """
        ending = None if error is None else (yield from self.ending_of(error))
        error = None
        told = self.names.get('__return_value__', box[0])
        if told is not None:
            place = load_part('report')['PLACE']
            place[:] = self.path, line_of_last(last) if last else 1, self.names
            send_report(self.channel, VALUE, 'value_document', told, self.options['value_max'])
            place.clear()
        told = None
        if last is not None and box[0] is not None and type(box[0]) not in PLAIN:
            yield call_by(box.clear, self.path, line_of_last(last), self.names), (), None
        if not self.leave:      # a zygote says so with EXITING
            self.channel.send(DONE)
        return ending

    def ending_of(self, error):
        try:
            return (yield from self.fail(error))
        except SystemExit as exit:              # the program's sys.excepthook may say how to end
            return SystemExit(exit.code)
        except BaseException:                   # the program's stderr, or its own kind of SystemExit, is broken
            return SystemExit(1)

    def fail(self, error):
        if issubclass(type(error), SystemExit):
            # A new exception, because the old one holds the program's frames and thereby its objects.
            return SystemExit(error.code)
        trace = BaseException.__traceback__.__get__(error)
        send_report(self.channel, ERROR, 'error_document', error, trace, self.path, self.source, print_traceback)
        yield from show_error(error, trace)
        if type(error) is not KeyboardInterrupt:
            return SystemExit(1)
        # The interpreter itself dies of SIGINT, after its exit handlers.
        return KeyboardInterrupt()

    def steps(self):
        """The whole run in an interpreter of its own."""
        self.open_channel(Channel())
        code, last = self.start()
        ending = yield from self.run_prelude()
        if ending is not None:
            return ending, UNTRACED
        error, value, tracing = yield (code, last), self.names, self.tracing
        value = [value]
        ending = yield from self.finish(error, value, last)
        error = None
        return ending, tracing
