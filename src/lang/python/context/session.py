"""The executions of a context: one after the other in the same __main__, told over the channel.

runner.py loads this file, for context.py and for a forked process of the zygote.  As in runner.py, what calls code of the program's
is a generator.  What one execution needs is here;
magics.py reads texts that are not quite Python, display.py makes pictures, tables and texts of objects.
"""

import builtins
import linecache
import sys
import traceback
from _signal import SIGINT, default_int_handler, signal
from _thread import RLock, get_ident
from fcntl import ioctl
from io import BufferedWriter, TextIOWrapper, open as open_file
from json import loads
from posix import _exit, chdir, getcwd, getpid, listdir, lstat, read, stat
from select import POLLIN, poll
from time import monotonic, sleep, time_ns

HELLO, SYNTAX, STARTED, ERROR, VALUE, DONE, _, DISPLAY, EXECUTE = range(1, 10)
FRAME_MAX = 65536
HEADER_SIZE = 12
FLAG_MORE = 1
BROKEN_EXIT = 70
TIOCOUTQ = 0x5411               # of a socket: what its reader has not taken
PATIENCE_S, TAKE_S = 5, 0.0005  # how long an execution waits for that, all its waits together, and how often it looks
CLOCK_NS = 20_000_000            # how much the time of a file may be behind the clock, at most
TOP_LEVEL_AWAIT = 0x2000        # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
IS_COROUTINE = 0x80             # inspect.CO_COROUTINE
FUTURE_ANNOTATIONS = 0x1000000  # the one __future__ that still changes anything lasts, as in an interactive interpreter
PRELUDE = 'prelude.py'          # in tracebacks; a context has no file of it
PLAIN = type(None), str, int, float, bool, bytes
LIMITS = {'value_max': 200000, 'display_max': 16777216, 'displays_max': 100}

magics, display = load_part('magics'), load_part('display')
report = load_part('report')
report['LET_THROUGH'] = (KeyboardInterrupt,)
print_exception = traceback.print_exception
set_trace_of = BaseException.__traceback__.__set__
trace_of = BaseException.__traceback__.__get__


class Broken(Exception):
    """What came over the channel is no request."""


class Request:
    def __init__(self, document, number):
        if type(document) is not dict or type(document.get('code')) is not str:
            raise Broken('an execution needs "code", a text')
        self.take(document['code'])
        self.name = document.get('name') or '<cell %d>' % number
        self.cwd = document.get('cwd')
        self.environment = document.get('env') or {}
        self.svg = document.get('svg') is True
        self.quiet = document.get('quiet') is True
        self.show_saved = document.get('show_saved') is True
        self.value_max = document.get('value_max')
        self.interactivity = 'last_expr'
        self.prelude = document.get('prelude')
        self.is_in_prelude = False

    def take(self, code):
        self.code = code
        self.source = code.encode('utf-8', 'surrogatepass')


def take_options(text):
    options = parse_options(text)
    return {name: int(options[name]) if options.get(name, '').isdigit() else usual for name, usual in LIMITS.items()}


def become_main():
    """As in an interactive interpreter: no file, and modules are found in whatever folder is the current one."""
    main = type(sys)('__main__')
    main.__dict__.update(__builtins__=builtins)
    have_annotations(main)
    sys.modules['__main__'] = main
    sys.argv = ['']
    sys.orig_argv[:] = [sys.executable]
    if sys.path and sys.path[0] == sys.modules['posixpath'].realpath(HERE):
        sys.path[0] = ''
    return main.__dict__


def stream_at_once():
    """What is written is seen: a line of output when it ends, and every part of what goes to stderr."""
    stdout, stderr = sys.stdout, sys.stderr
    if stdout is not None:
        stdout.reconfigure(line_buffering=True)
    if stderr is not None and type(stderr.buffer) is BufferedWriter:
        sys.stderr = sys.__stderr__ = TextIOWrapper(open_file(2, 'wb', 0, closefd=False), stderr.encoding, stderr.errors,
                                                    write_through=True)
        sys.stderr.mode = 'w'


def usable_stdin():
    """exit() and quit() close it before they raise."""
    stdin = sys.__stdin__
    if stdin is not None and stdin.closed:
        sys.stdin = sys.__stdin__ = open_file(0, encoding=stdin.encoding, errors=stdin.errors, closefd=False)


def lines_of(text):
    """As linecache has those of a file: each ends with a line end, and no other character ends one."""
    lines = text.replace('\r\n', '\n').replace('\r', '\n').split('\n')
    return [line + '\n' for line in (lines if lines[-1] else lines[:-1])]


def flush_streams():
    for stream in {id(one): one for one in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            stream.flush()
        except BaseException:   # None, closed, or an object of the program's
            pass


def print_user_exception(kind, error, trace):
    """Python's own printer looks for source lines in files only."""
    print_exception(kind, error, trace)


def without_our_frames(error, cell_names):
    """Cut from a traceback, and those of its causes, what comes before the cell, and every frame of this folder."""
    waiting, seen = [error], set()
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        waiting += error.__cause__, error.__context__
        set_trace_of(error, cut(trace_of(error), cell_names))


def cut(trace, cell_names):
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    ours = HERE + '/'
    if any(file.startswith(ours) for file in files):
        first = next((index for index, file in enumerate(files) if file in cell_names), len(files))
        entries = [entry for entry, file in list(zip(entries, files))[first:] if not file.startswith(ours)]
    for entry, following in zip(entries, [*entries[1:], None]):
        entry.tb_next = following
    return entries[0] if entries else None


def new_path_files(folder, since):
    """The names of the .pth files that came into a site folder after this time."""
    try:
        if stat(folder).st_ctime_ns <= since:
            return []
        return [name for name in sorted(listdir(folder)) if name.endswith('.pth') and lstat('%s/%s' % (folder, name)).st_ctime_ns > since]
    except OSError:
        return []


class Session:
    def __init__(self, options):
        self.channel = None
        self.limits = take_options(options)
        self.names = become_main()
        self.pid = getpid()
        self.cells = 0
        self.cell_names = set()
        self.flags = TOP_LEVEL_AWAIT
        self.loop = self.asyncio = None
        self.lock = RLock()
        self.running = False
        self.displays = self.patience = 0
        self.request = None
        self.main_thread = get_ident()
        self.handler = default_int_handler
        self.interrupted = False        # by a signal that is for the next execution, or for when a document is out
        self.is_calm = True
        self.tracing = None, None
        self.looked = time_ns() - CLOCK_NS      # when site folders were last searched for .pth files
        sys.excepthook = print_user_exception
        self.shell = None
        self.magics = builtins.__caisson__ = magics['Magics'](self)
        self.screen = display['Screen'](self.show, self.is_showing_saved, {'asyncio': self.use_asyncio}, self.find_installed, self.find_shell)
        builtins.display = self.screen.names['display']
        builtins.get_ipython, builtins.__IPYTHON__ = self.screen.get_ipython, True

    def open_channel(self, channel):
        stream_at_once()
        self.channel = channel
        if channel.fd < 0:
            complain('context.py: descriptor 3 is no channel; nobody can ask for anything\n')
            raise SystemExit(BROKEN_EXIT)
        signal(SIGINT, self.idle_signal)
        self.channel.send(HELLO, b'{"runner":"python","version":"%d.%d.%d","pid":%d,"context":true}'
                          % (*sys.version_info[:3], self.pid))

    def start(self):
        """Serve until there is nobody to serve.  Ends with a SystemExit, as a run does that may not begin."""
        bind_tools(getcwd(), self.names)
        self.magics.names_before.update(self.names)
        while True:
            try:
                document = yield from self.receive()
                if document is None:
                    break
                self.cells += 1
                request = Request(document, self.cells)
                request.interactivity = self.interactivity()
            except (Broken, ValueError, RecursionError) as error:
                complain('context.py: what came over the channel is no request: %s\n' % error)
                self.channel.close()
                raise SystemExit(BROKEN_EXIT) from None
            yield from self.execute(request)
        self.channel.close()
        signal(SIGINT, default_int_handler)
        raise SystemExit(0)

    # ---- the channel

    def receive(self):
        """The next request's document; None at the end of file."""
        yield from self.go_on()
        self.is_asked(None)
        signal(SIGINT, self.remember_signal)
        pieces = b''
        while True:
            try:
                frame = read(self.channel.fd, FRAME_MAX + 1)
            except OSError:
                return None
            if not frame and not pieces:
                return None
            if (len(frame) < HEADER_SIZE or len(frame) > FRAME_MAX or frame[:4] != b'CSN1' or frame[4] != EXECUTE
                    or frame[5] > FLAG_MORE or frame[6:8] != b'\0\0'
                    or int.from_bytes(frame[8:HEADER_SIZE], 'little') != len(frame) - HEADER_SIZE):
                raise Broken('a frame has a wrong header')
            pieces += frame[HEADER_SIZE:]
            if not frame[5]:
                return loads(pieces)

    def send_display(self, payload):
        """Behind all that was written before; and all pieces of it or none, whatever interrupts."""
        if get_ident() != self.main_thread:
            flush_streams()
            self.channel.send(DISPLAY, payload)
            self.let_it_be_taken()
            return
        handler = signal(SIGINT, self.remember_signal)
        try:
            flush_streams()
            self.channel.send(DISPLAY, payload)
            self.let_it_be_taken()
        finally:
            signal(SIGINT, handler)
        self.pass_signal_on(handler)

    def let_it_be_taken(self):
        """Or what is printed next would be found together with what was printed before.  Who takes nothing is not waited for."""
        try:
            while self.patience > 0 and any(ioctl(self.channel.fd, TIOCOUTQ, bytes(4))):
                began = monotonic()
                sleep(TAKE_S)
                self.patience -= monotonic() - began
        except OSError:
            pass

    def remember_signal(self, number, frame):
        self.interrupted = True

    def idle_signal(self, number, frame):
        """It is for the execution that has been asked for, if there is one."""
        if self.is_asked(0):
            self.interrupted = True

    def is_asked(self, timeout):
        ready = poll()
        ready.register(self.channel.fd, POLLIN)
        return bool(ready.poll(timeout))

    def pass_signal_on(self, handler):
        if self.interrupted:
            self.interrupted = False
            if callable(handler):
                handler(SIGINT, None)

    def show(self, value, raw=None, metadata=None):
        """Send a DISPLAY for a value, or for a bundle that there is already.  Of other processes nobody wants one."""
        if getpid() != self.pid or not self.running:
            return
        request = self.request
        if raw is None:
            bundle = self.bundle_of(value)
        else:
            bundle = display['Bundle'](self.limits['display_max'])
            bundle.put_all(raw)
        bundle.metadata.update(display['metadata_of'](metadata))
        payload = bundle.document()
        with self.lock:
            if not self.running:
                return
            self.displays += 1
            if self.displays <= self.limits['displays_max']:
                self.send_display(payload)
            elif self.displays == self.limits['displays_max'] + 1:
                complain('caisson: displays_max=%d of this execution are used up; later ones are left out\n'
                         % self.limits['displays_max'])

    # ---- what get_ipython() returns

    def find_shell(self):
        if self.shell is None:
            self.shell = load_part('shell')['ZMQInteractiveShell'](self)
            formatters = self.shell.display_formatter.formatters
            display['LOOKUPS'].append(lambda media, kind: media in formatters and formatters[media].find(kind))
        return self.shell

    def interactivity(self):
        """Which expressions of an execution are shown."""
        return 'last_expr' if self.shell is None else self.shell.ast_node_interactivity

    def bundle_of(self, value):
        return display['bundle_of'](value, self.request.svg, self.limits['display_max'], self.value_max(self.request))

    def show_exception(self, error):
        """As that of an execution, which goes on."""
        without_our_frames(error, self.cell_names)
        print_exception(type(error), error, trace_of(error))

    def tell_events(self, event, *given):
        """Call what the program has registered with get_ipython().events."""
        for function in self.shell.events.callbacks[event][:] if self.shell else ():
            try:
                yield from self.perform(function, given)
            except Exception as error:
                complain('Error in callback %r (for %s):\n' % (function, event))
                self.show_exception(error)

    @staticmethod
    def find_user_site():
        """The folder of what pip installs for this user, if it came to be after the start; in its usual place then."""
        site = sys.modules.get('site')
        folder = getattr(site, 'USER_SITE', None)
        if not folder or not site.ENABLE_USER_SITE or folder in sys.path or not sys.modules['os'].path.isdir(folder):
            return False
        before = sys.path[:]
        site.addsitedir(folder)
        added = [entry for entry in sys.path if entry not in before]
        others = site.getsitepackages()
        at = next((index for index, entry in enumerate(before) if entry in others), len(before))
        sys.path[:] = before[:at] + added + before[at:]
        return bool(added)

    def find_installed(self):
        """Search again, after an import that failed: what a start does that was installed since.  Whether something is new."""
        site, os = sys.modules.get('site'), sys.modules['os']
        looked, self.looked, before = self.looked, time_ns() - CLOCK_NS, sys.path[:]
        self.find_user_site()
        others = site.getsitepackages() if site else []
        for folder in others:
            if folder not in sys.path and os.path.isdir(folder):
                site.addsitedir(folder)
        for folder in [entry for entry in before if entry in others or entry == getattr(site, 'USER_SITE', None)]:
            for name in new_path_files(folder, looked):
                site.addpackage(folder, name, None)
        appeared = [entry for entry, finder in sys.path_importer_cache.items() if finder is None and os.path.isdir(entry)]
        for entry in appeared:
            sys.path_importer_cache.pop(entry, None)
        return bool(appeared) or sys.path != before

    def is_showing_saved(self):
        return self.running and self.request.show_saved

    def value_max(self, request):
        asked = request.value_max
        return asked if type(asked) is int and asked >= 0 else self.limits['value_max']

    # ---- one execution

    def execute(self, request):
        mistake = cell = None
        try:
            cell = magics['read_cell'](request, self.flags)
        except BaseException as error:
            mistake = error
        if mistake is not None:
            yield from self.refuse(request, mistake)
            return
        linecache.cache[request.name] = len(request.code), None, lines_of(request.code), request.name
        self.cell_names.add(request.name)
        self.flags |= cell.code.co_flags & FUTURE_ANNOTATIONS
        self.request, self.displays, self.patience = request, 0, PATIENCE_S
        report['PLACE'][:] = request.name, line_of_last(cell.last or cell.code), self.names
        self.find_user_site()
        usable_stdin()
        self.channel.send(STARTED)
        self.running = True
        error, value = yield from self.run(request, cell)
        with self.lock:
            self.running = False
        if getpid() != self.pid:
            yield from self.leave_child(error)
        if error is not None:
            yield from self.fail(request, error)
        elif value is not None:
            self.channel.send(VALUE, value)
        error = value = cell = None
        flush_streams()
        self.channel.send(DONE)

    def refuse(self, request, mistake):
        signal(SIGINT, self.idle_signal)
        self.interrupted = False
        set_trace_of(mistake, None)
        mistake.__context__ = None
        source = getattr(mistake, 'caisson_source', request.source)
        if issubclass(type(mistake), SyntaxError) and type(mistake.lineno) is int:
            mistake.text = report['source_line'](request.source, mistake.lineno).decode('utf-8', 'replace')
        send_report(self.channel, SYNTAX, 'syntax_document', mistake, source)
        try:
            if not request.quiet:
                yield from show_error(mistake, None)
        except BaseException:           # the program's stderr, or its excepthook, is broken
            pass
        flush_streams()
        self.channel.send(DONE)

    def run(self, request, cell):
        """Returns the exception that ended it, and the document of its value."""
        error = value = None
        try:
            try:
                self.is_calm = False
                signal(SIGINT, self.handler)
                self.pass_signal_on(self.handler)
                value = yield from self.work(request, cell)
            finally:
                self.calm()
        except BaseException as caught:
            error = caught
        self.calm()
        return error, value

    def calm(self):
        """From here on an interrupt is not for this execution."""
        if self.is_calm:
            return
        while True:
            try:
                self.handler = signal(SIGINT, self.idle_signal)
                break
            except BaseException:       # it came as we were about to
                pass
        self.interrupted = False
        self.is_calm = True

    def work(self, request, cell):
        folder, before = request.cwd, {}
        environ = sys.modules['os'].environ
        if folder is not None:
            chdir(folder)
        for name, text in request.environment.items():
            before[name] = environ.get(name)
            environ[name] = text
        try:
            try:
                yield from self.tell_events('pre_execute')
                if type(request.prelude) is str:
                    yield from self.run_prelude(request)
                value = yield from self.run_code(cell)
                yield from self.begin_tasks()
                yield from self.tell_events('post_execute')
                return None if value is None or cell.is_silent else (yield from self.describe(request, cell, value))
            finally:
                value = None
                self.screen.show_open_figures()
        finally:
            for name, text in before.items():
                if text is None:
                    environ.pop(name, None)
                else:
                    environ[name] = text

    def run_prelude(self, request):
        request.is_in_prelude = True
        linecache.cache[PRELUDE] = len(request.prelude), None, lines_of(request.prelude), PRELUDE
        self.cell_names.add(PRELUDE)
        yield from self.evaluate(compile(request.prelude.encode('utf-8', 'surrogatepass'), PRELUDE, 'exec', 0, True))
        request.is_in_prelude = False

    def run_code(self, cell):
        meter = cell.is_timed and magics['Meter']()
        try:
            value = yield from self.evaluate(cell.code)
            return value if cell.last is None else (yield from self.evaluate(cell.last))
        finally:
            if meter:
                meter.tell()

    def perform(self, work, given):
        """What it returns; or raises, with the traceback of the program's frames."""
        error, value, self.tracing = yield work, given, self.tracing
        if error is not None:
            raise error
        return value

    def evaluate(self, code):
        value = yield from self.perform((code, None), self.names)
        return (yield from self.wait_for(value)) if code.co_flags & IS_COROUTINE else value

    # ---- one event loop for all executions, in which tasks go on between them

    def use_asyncio(self, asyncio):
        """At the top level of an execution there is a loop, as in a notebook; asyncio.run() works all the same."""
        events = sys.modules['asyncio.events']
        policy = getattr(events, '_get_event_loop_policy', events.get_event_loop_policy)()
        running, find_running, find = events.get_running_loop, events._get_running_loop, policy.get_event_loop

        def is_top():
            return self.running and find_running() is None and get_ident() == self.main_thread and getpid() == self.pid

        def get_running_loop():
            """Return the running event loop; at the top level of an execution that of its context."""
            return self.open_loop() if is_top() else running()

        def get_event_loop():
            """Likewise; one that the program has set comes first."""
            return getattr(policy._local, '_loop', None) or self.open_loop() if is_top() else find()

        events.get_running_loop = asyncio.get_running_loop = get_running_loop
        policy.get_event_loop = get_event_loop
        self.asyncio = asyncio

    def open_loop(self):
        asyncio = __import__('asyncio')
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        return self.loop

    def has_tasks(self):
        return (self.asyncio is not None and self.loop is not None and not self.loop.is_closed()
                and not self.loop.is_running() and bool(sys.modules['asyncio.tasks'].all_tasks(self.loop)))

    def begin_tasks(self):
        """What an execution has begun and not awaited gets as far as it can at once."""
        if self.has_tasks():
            self.loop.call_soon(self.loop.stop)
            yield from self.perform(self.loop.run_forever, ())

    def go_on(self):
        """Until the next request is there, the tasks go on.  Whatever they raise is told, and not fatal."""
        while self.has_tasks() and not self.is_asked(0):
            self.loop.add_reader(self.channel.fd, self.loop.stop)
            for task in sys.modules['asyncio.tasks'].all_tasks(self.loop):
                task.add_done_callback(self.stop_loop)
            try:
                yield from self.perform(self.loop.run_forever, ())
            except BaseException as error:
                without_our_frames(error, self.cell_names)
                print_exception(type(error), error, trace_of(error))
            finally:
                self.loop.remove_reader(self.channel.fd)
            flush_streams()

    def stop_loop(self, task):
        if not self.running:
            self.loop.stop()

    def wait_for(self, coroutine):
        """Top-level await."""
        task = None
        try:
            asyncio = __import__('asyncio')
            asyncio.set_event_loop(self.open_loop())
            task = self.loop.create_task(coroutine)
            return (yield from self.perform(self.loop.run_until_complete, (task,)))
        except BaseException:
            if task is None:
                coroutine.close()
            elif not task.done():
                task.cancel()
                yield from self.perform(self.loop.run_until_complete, (asyncio.wait([task]),))
            raise

    def describe(self, request, cell, value):
        """The document of a value; and `_` is the last one, as in an interactive interpreter."""
        value_max = self.value_max(request)
        before = [vars(builtins).get('_')]
        builtins._ = value
        if type(before[0]) not in PLAIN:
            yield call_by(before.clear, request.name, line_of_last(cell.last or cell.code), self.names), (), None
        members = report['value_members'](value, value_max)
        bundle = display['bundle_of'](value, request.svg, self.limits['display_max'], value_max, members)
        self.screen.close_figure(value)
        members.update(bundle.members())
        return report['document'](**members)

    def fail(self, request, error):
        """Report and show an exception.  Whatever the program broke, the context goes on."""
        try:
            without_our_frames(error, self.cell_names)
            trace = trace_of(error)
            if request.is_in_prelude:
                source = request.prelude.encode('utf-8', 'surrogatepass')
                send_report(self.channel, ERROR, 'prelude_document', error, trace, PRELUDE, source, print_user_exception)
                yield from show_error(error, trace)
                return
            if issubclass(type(error), SystemExit):
                self.fail_exit(request, error, trace)
                return
            send_report(self.channel, ERROR, 'error_document', error, trace, request.name, request.source, print_user_exception)
            if not request.quiet:
                yield from show_error(error, trace)
        except BaseException:           # the program's stderr, or its excepthook, is broken
            pass

    def fail_exit(self, request, error, trace):
        """A SystemExit is reported with its code, and a text is shown as the interpreter would."""
        code = error.code
        kept = error.args
        error.args = (0 if code is None else code,)
        send_report(self.channel, ERROR, 'error_document', error, trace, request.name, request.source, print_user_exception)
        error.args = kept
        if code is not None and not issubclass(type(code), int) and not request.quiet:
            complain('%s\n' % code)

    def leave_child(self, error):
        """A process that the program forked, and that came to the end of the execution.  Its parent goes on, not it."""
        status = 0
        if error is not None:
            status = 1
            try:
                if issubclass(type(error), SystemExit):
                    status = load_part('finalize')['exit_code'](error.code)
                else:
                    without_our_frames(error, self.cell_names)
                    yield from show_error(error, trace_of(error))
            except BaseException:
                pass
        flush_streams()
        _exit(status)
