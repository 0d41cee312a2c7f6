"""The zygote's side: the modules of an image, and what has to be true of a process before it is forked for every run.

No program of a tenant runs here; packages of a layer and modules of an image may be imported (foreign.py).  What a preloaded module leaves behind that a program could tell from a cold
start is either put back here, once, or made anew by reset_state.py in every run.
"""

import _signal
import builtins
import gc
import sys
from _contextvars import copy_context
from posix import X_OK, access, environ, execve, getcwdb, listdir, stat

TASKS = '/proc/self/task'
MACHINERY = 'importlib._bootstrap', 'importlib._bootstrap_external'     # they import for others, which need it
REHEARSALS = 12         # the interpreter adapts code in its first runs, which is better done before the fork

# Usual in programs, and cheap; docs/design/runners.md has what an image adds to every fork.
SYSTEM = '''
    abc argparse array ast asyncio base64 binascii bisect calendar cmath collections collections.abc concurrent.futures
    concurrent.futures.thread contextlib copy csv dataclasses datetime decimal difflib enum fractions functools glob
    gzip hashlib heapq html inspect io itertools json linecache locale logging math multiprocessing numbers operator os
    os.path pathlib pickle platform pprint queue random re secrets select shlex shutil signal socket sqlite3 statistics
    string struct subprocess sys tempfile textwrap threading time timeit traceback types typing unicodedata unittest
    urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
'''.split()
# Most of what programs of one page import, for less than half of what the others add to a fork.
SMALL = '''
    bisect collections collections.abc copy dataclasses datetime decimal enum fractions functools heapq itertools json math operator
    random re statistics string time typing
'''.split()
DATA = '''
    numpy numpy.linalg numpy.fft numpy.random pandas matplotlib matplotlib.pyplot matplotlib.backends.backend_agg
    openpyxl xlrd docx pptx PyPDF2 pypdf PIL.Image tabulate scipy scipy.stats scipy.optimize sympy seaborn
    plotly.graph_objects
'''.split()
ROLES = 'cases', 'judge', 'subject', 'tests'
GRADERS = 'small'       # the image that grading asks for; the others need not wait for all its rehearsals
IMAGES = {'none': [], 'small': SMALL, 'system': SYSTEM, 'data': SYSTEM + DATA}

# Read when the interpreter starts, or by a preloaded module at its import: another value needs another interpreter.
EARLY_NAMES = {b'HOME', b'LANG', b'LANGUAGE', b'GLIBC_TUNABLES'}
EARLY_PREFIXES = (b'PYTHON', b'LC_', b'LD_', b'MALLOC_', b'MPL', b'XDG_', b'NPY_', b'NUMPY_', b'OPENBLAS_', b'OMP_', b'KMP_',
                  b'MKL_', b'NUMEXPR_', b'GOTO_')
# These have such names, but are read late or can be made good in the run.
LATE_NAMES = {b'PYTHONUNBUFFERED', b'OPENBLAS_NUM_THREADS', b'GOTO_NUM_THREADS', b'OMP_NUM_THREADS', b'MKL_NUM_THREADS',
              b'NUMEXPR_NUM_THREADS', b'VECLIB_MAXIMUM_THREADS'}
# Set by the engine, and for this program alone.
WITHOUT, PRELOAD, WALL = b'CAISSON_ZYGOTE_WITHOUT', b'CAISSON_ZYGOTE_PRELOAD', b'CAISSON_ZYGOTE_WALL'
OWN_VARIABLES = WITHOUT, PRELOAD, WALL
LAYER = b'/opt/packages'      # SANDBOX_PYTHON_LAYER of sandbox/sandbox.h
THREAD_NAMES = [name for name in LATE_NAMES if name.endswith(b'_THREADS')]


def early(pairs):
    return {name: value for name, value in pairs.items()
            if name not in LATE_NAMES and (name in EARLY_NAMES or name.startswith(EARLY_PREFIXES))
            and (name != b'PYTHONPATH' or value != LAYER)}      # reset_state adds the folder to sys.path


def parse_environment(entries):
    """As Python reads it: the first of a name counts, and what has no name or value is no variable."""
    pairs = {}
    for entry in entries:
        name, sign, value = entry.partition(b'=')
        if name and sign:
            pairs.setdefault(name, value)
    return pairs


def site_times():
    """When something was last put into the folders of installed packages, of all users."""
    times = []
    for folder in sys.modules['site'].getsitepackages():
        try:
            times.append(stat(folder).st_mtime_ns)
        except OSError:
            times.append(None)
    return times


def is_alone():
    """Whether this is the only thread; one that is just ending is given the time."""
    for _ in range(100):
        if len(listdir(TASKS)) == 1:
            return True
        sys.modules['time'].sleep(0.005)
    return False


def start_cold(arguments, environment, context):
    for number in _signal.SIGPIPE, _signal.SIGXFSZ:
        _signal.signal(number, _signal.SIG_DFL)
    program = HERE.encode() + (b'/context.py' if context else b'/run.py')
    execve(sys.executable, [sys.executable.encode(), program, *arguments], environment)


def place_of(module, path):
    """The index in path of the folder that a module was found in; -1 for what no folder can come before."""
    spec = getattr(module, '__spec__', None)
    origin = getattr(spec, 'origin', None)
    where = origin if type(origin) is str and '/' in origin else next(iter(getattr(spec, 'submodule_search_locations', None) or ()), '')
    folder = where.rpartition('/')[0]
    if origin == where and getattr(spec, 'submodule_search_locations', None) is not None:
        folder = folder.rpartition('/')[0]
    return path.index(folder) if folder in path else -1


class Needs:
    """What each module imports when it is imported: names by name.  find() is __import__() with notes."""

    def __init__(self, find):
        self.find = find
        self.of = {}

    def note(self, name, globals=None, locals=None, fromlist=(), level=0):
        before = len(sys.modules)
        try:
            return self.find(name, globals, locals, fromlist, level)
        finally:
            package = (globals or {}).get('__package__') or ''
            if level:
                base = package.rsplit('.', level - 1)[0]
                name = base + '.' + name if name else base
            importer = (globals or {}).get('__name__')
            importer = None if importer in MACHINERY else importer
            self.of.setdefault(importer, set()).update((name, *('%s.%s' % (name, one) for one in fromlist or ())))
            if len(sys.modules) > before:   # by whatever way: it came with this one
                self.of.setdefault(name, set()).update(list(sys.modules)[before:])

    def lists(self, names):
        """For each name the indexes of those it needs; a part of a package needs the package."""
        index = {name: number for number, name in enumerate(names)}
        found = []
        for name in names:
            needed = {*self.of.get(name, ()), name.rpartition('.')[0]}
            parts = {part.rsplit('.', n)[0] for part in needed for n in range(part.count('.') + 1)}
            found.append(sorted(index[part] for part in parts if part in index and part != name))
        return found


class Zygote:
    def __init__(self, names, image, arguments):
        if image not in IMAGES:
            sys.stderr.write('zygote.py: no image %r; there are %s\n' % (image, ', '.join(IMAGES)))
            raise SystemExit(2)
        self.runner, self.channel, self.channels = names['Runner'], names['Channel'], names['channels']
        self.hello, self.compile_whole = names['HELLO_TEXT'], names['compile_whole']
        self.filters, self.warnings_fail = names['filters'], names['WARNINGS_FAIL']
        self.image = image
        environb = sys.modules['os'].environb
        self.own_variables = {name: environb.pop(name) for name in OWN_VARIABLES if name in environb}
        without = self.own_variables.get(WITHOUT, b'').decode()
        self.unwanted = {name: reason for name, _, reason in (entry.partition('=') for entry in without.split(':') if entry)}
        self.foreign, self.watch = [], None
        if PRELOAD in self.own_variables:
            self.prepare_foreign()
        self.caisson = __import__('_caisson')
        self.run_cases = self.caisson.run_cases
        del sys.modules['_caisson']
        # Ours too: what is compared with the builtins that Python came with finds no other.
        self.needs = Needs(builtins.__import__)
        builtins.__import__ = __builtins__['__import__'] = self.caisson.__import__
        self.bootstrap = sys.modules['_frozen_importlib']
        self.caisson.set_gcd_import(self.bootstrap._gcd_import)
        self.environment = dict(environ)
        self.expected = [sys.modules['os'].fsencode(word) for word in arguments[1:3]]
        folder, _, name = self.expected[1].rpartition(b'/') if self.expected else (b'', b'', b'')
        self.main_file = name if folder == getcwdb() else b''
        self.expected_run = None
        self.entries = [name + b'=' + value for name, value in environ.items()]
        self.early = early(self.environment)
        self.own_modules = set(sys.modules)
        self.loaded, self.failed = {}, {}
        self.site_times = site_times()
        # What modules set in their context (decimal has one) is not what a program starts with.
        copy_context().run(self.load_modules)
        main = sys.modules['__main__']
        self.program = load_part('warmup')['program'](int(arguments[0]) if arguments else 1)     # for what is loaded
        self.main_names = [name for name, module in sys.modules.items() if module is main]  # multiprocessing has another
        self.fresh = load_part('reset_state')['Fresh'](self.caisson)
        self.leave = load_part('finalize')['Leave'](self.caisson, self.main_names)
        load_part('report')
        load_part('figures')
        self.load_roles()
        self.preloaded = {name.partition('.')[0] for name in set(sys.modules) - self.own_modules}

    def prepare_foreign(self):
        """What is imported beside the modules of the image, and all of it with a watch (foreign.py)."""
        foreign = load_part('foreign')
        if len(self.unwanted) <= foreign['LEFT_OUT_MAX']:
            self.foreign = foreign['wanted'](self.own_variables[PRELOAD].decode())
        self.watch = foreign['Watch'](int(self.own_variables[WALL]), is_alone)

    def import_ahead(self, name):
        """Import a module.  Returns the reason why a zygote cannot have it, or None."""
        if self.watch:
            self.watch.begin(lambda reason: self.start_without(name, reason))
        try:
            builtins.__import__(name, {'__name__': None})
        except ModuleNotFoundError:
            self.failed[name] = 'missing'
        except Exception as error:
            self.failed[name] = '%s: %s' % (type(error).__name__, error)
        else:
            self.loaded[name] = str(getattr(sys.modules[name], '__version__', ''))
        if self.watch:
            return self.watch.end()
        return None if is_alone() else 'starts threads'

    def load_modules(self):
        """Import what there is.  A thread would be lost in a fork with whatever lock it holds, so none may start."""
        for name in THREAD_NAMES:
            sys.modules['os'].environb[name] = b'1'
        own_folder = sys.path.pop(0)
        limit, threshold = sys.getrecursionlimit(), gc.get_threshold()
        hooks = {name: getattr(sys, name) for name in ('excepthook', 'displayhook', 'unraisablehook')}
        warning_filters = __import__('warnings').filters[:]     # from Python 3.13 on not every start imports it
        handlers = {number: _signal.getsignal(number) for number in range(1, 32)}
        self.path = sys.path[:]
        builtins.__import__ = self.needs.note
        for name in dict.fromkeys([*IMAGES[self.image], *self.foreign]):
            if name in self.unwanted:
                self.failed[name] = self.unwanted[name]
                continue
            reason = self.import_ahead(name)
            if reason:
                self.start_without(name, reason)
        builtins.__import__ = self.caisson.__import__
        for name in THREAD_NAMES:
            del sys.modules['os'].environb[name]
        sys.modules['os'].environb.update(self.environment)
        sys.path.insert(0, own_folder)
        sys.setrecursionlimit(limit)
        gc.set_threshold(*threshold)
        for name, hook in hooks.items():
            setattr(sys, name, hook)
        sys.modules['warnings'].filters[:] = warning_filters
        for number, handler in handlers.items():
            if _signal.getsignal(number) is not handler:
                _signal.signal(number, handler)

    def load_roles(self):
        """The files of a grader, which no other program is to find; neither what they import."""
        before = set(sys.modules)
        for name in (*ROLES, 'suite') if self.image == GRADERS else ROLES:
            load_part(name)
        for name in set(sys.modules) - before:
            del sys.modules[name]

    def start_without(self, name, reason):
        """A thread cannot be stopped from outside, but an interpreter can be started again."""
        if self.watch:
            load_part('foreign')['end_children']()
        without = ':'.join('%s=%s' % pair for pair in [*self.unwanted.items(), (name, reason)]).encode()
        own = {**self.own_variables, WITHOUT: without, b'LD_PRELOAD': self.caisson.__file__.encode()}
        execve(sys.executable, sys.orig_argv, {**self.environment, **own})

    def ready_message(self):
        dumps = __import__('json').dumps
        if self.watch:
            shorten = load_part('foreign')['shorten']
            left_out = {name: why for name, why in self.failed.items() if name in self.foreign and why != 'missing'}
            return dumps({'image': self.image, 'python': '%d.%d.%d' % sys.version_info[:3],
                          'modules': shorten({name: self.loaded[name] for name in self.foreign if name in self.loaded}, 1500),
                          'left_out': shorten(left_out, 1500)}).encode()
        return dumps({'image': self.image, 'python': '%d.%d.%d' % sys.version_info[:3],
                      'modules': self.loaded, 'left_out': self.failed}).encode()

    def prepare(self):
        """Make ready what each process needs that is forked from here on.  Returns what serve() wants."""
        info = self.ready_message()
        self.own_folder = sys.path[0]
        if self.program is not None:
            load_part('role')['prepare_preludes']()
            self.warm()
            self.caisson.forget_text()
            copy_context().run(self.rehearse)
        gc.unfreeze()           # a rehearsal has frozen all, and collects nothing
        gc.enable()
        self.caisson.begin_room()
        self.fresh.usual_streams(self.environment)
        self.caisson.fill_room()
        self.fresh.settle()
        self.caisson.fill_room()
        self.tell_what_is_ahead()
        # All that a run has to do with is made anew, to be in one place.
        self.expected, self.entries = self.expected[:], self.entries[:]
        usual = self.usual()
        # Or a collection in a run would write to every object there is.
        gc.freeze()
        self.caisson.fill_room()
        gc.disable()
        if self.expected:
            self.expected_run = self.become(self.expected)
            self.expected_run.channel = self.leave.channel
            self.caisson.usual({**usual, **self.usual_run()})
        if not is_alone():
            sys.stderr.write('zygote.py: there are other threads, which would not live on in a fork\n')
            raise SystemExit(1)
        gc.enable()
        return info, self.expected or None, self.entries, *self.sample()

    def tell_what_is_ahead(self):
        """From here on a module that was imported ahead is imported only if a cold start would find the same (imports.h)."""
        names = [name for name in sys.modules if name not in self.own_modules]
        places = [-1 if '.' in name else place_of(sys.modules[name], self.path) for name in names]
        self.caisson.ahead(names, places, self.needs.lists(names), self.path)
        self.bootstrap._gcd_import = self.caisson._gcd_import

    def begin(self, rehearsed):
        """Before the program comes, in a process for which _caisson has not done it."""
        self.fresh.state(rehearsed)
        self.channels.clear()
        self.leave.channel = self.channel()

    def sample(self):
        """What a process goes the whole way with, to find out what a run touches: a program, and what a role is told."""
        if not self.expected or self.program is None:
            return ()
        message = b''
        if self.expected_run.is_graded:
            message, = self.messages('cases')
        return self.program, message

    def usual(self):
        """What there is to know of any usual run (fastpath.h)."""
        self.leave.channel = self.channel(-1)
        self.leave.channel.fd, self.leave.channel.where = self.caisson.CHANNEL, (-1, 0, 0, 0)   # its usual descriptor; the one that _caisson has
        self.channels.append(self.leave.channel)
        return {'arguments': self.expected, 'entries': self.entries, 'main_file': self.main_file, 'hello': self.hello,
                'compile_whole': self.compile_whole, 'filters': self.filters, 'warnings_fail': self.warnings_fail, 'channel': self.leave.channel, **self.fresh.usual(), **self.leave.usual()}

    def usual_run(self):
        """And of the one that is expected."""
        run, options = self.expected_run, self.expected_run.options
        more = options['preload'] or options['compile_only'] != '0' or b'CAISSON_TOOLS' in self.environment
        prepare, shows = self.fresh.late(self.environment), []
        if options['figures'] == '1':
            prepare.append(load_part('figures')['save_what_is_shown'])
        else:
            shows.append(load_part('figures')['tell_what_is_not_shown'])
        return {'run': run, 'graded': run.is_graded, 'names': run.names, 'path': run.path, 'compile': None if more else compile,
                'nothing': compile(b'', run.path, 'exec', 0, True), 'prepare': prepare, 'shows': shows}

    def warm(self):
        try:
            copy_context().run(self.rehearse)
        except Exception as error:      # a module of this host is not what the sample expects of it
            sys.stderr.write('zygote.py: the sample program failed: %r\n' % error)
            self.program = load_part('warmup')['LITTLE']
        for _ in range(REHEARSALS):
            copy_context().run(self.rehearse)

    def rehearse(self):
        """Go the ways of a run and of a grading, with a channel that nobody reads, and go back: their code is then as fast as
        it gets."""
        for role in ('', *load_part('warmup')['ROLES']) if self.image == GRADERS else ('', 'cases', 'shared'):
            socket = __import__('_socket')
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            before = sys.argv, sys.orig_argv[:], sys.path[0], sys.modules['__main__']
            streams = sys.stdin, sys.stdout, sys.stderr
            try:
                self.needs_cold_start([b'', getcwdb() + b'/none'], self.environment)
                self.fresh.environment(self.environment, self.environment)
                runner = self.runner('graded=%d' % bool(role), '/dev/null', [])
                runner.open_channel(self.channel(theirs.detach()))
                self.play_role(role, runner, ours) if role else self.play_program(runner)
                runner.channel.close()
            finally:
                ours.close()
                sys.stdin, sys.stdout, sys.stderr = streams
                sys.argv, sys.orig_argv[:], sys.path[0], sys.modules['__main__'] = before
                sys.modules.pop(SUBMISSION, None)

    def play_program(self, runner):
        runner.start()
        sys.stdout = sys.modules['io'].TextIOWrapper(sys.modules['io'].BytesIO(), 'utf-8', write_through=True)
        code, last = compile_program(self.program, '<warm>')
        exec(code, runner.names)
        drive_here(runner.finish(None, [last and eval(last, runner.names)]))

    @staticmethod
    def messages(role):
        """What a role is told, in frames."""
        head = b'CSN1' + bytes((load_part('role')['MESSAGE'], 0, 0, 0))
        return [head + len(text).to_bytes(4, 'little') + text for text in load_part('warmup')['ROLES'][role][1]]

    def play_role(self, role, runner, ours):
        runner.run_cases, runner.leave, runner.is_sample = self.run_cases, self.leave, True
        runner.source = load_part('warmup')['ROLES'][role][0]
        for message in self.messages(role):
            ours.send(message)
        handler = _signal.getsignal(_signal.SIGPROF)
        try:
            runner.start()
        except SystemExit:
            pass
        finally:
            _signal.signal(_signal.SIGPROF, handler)
            sys.modules.pop('tests', None)

    def receive(self, came):
        """Take the arguments and the environment of a program.  Returns a Runner for it."""
        run, self.expected_run = self.expected_run, None
        if run is not None and run.compiled is not None:    # start() has done all that, for a role
            return run
        arguments, entries, only = came
        environment = self.environment if entries is self.entries else parse_environment(entries)
        context = len(arguments) == 1 and b'context=1' in arguments[0].split(b',')
        source = self.usual_source(arguments, environment, only)
        if source is None:
            if self.needs_cold_start(arguments, environment, context):
                self.leave.channel.put_back()
                start_cold(arguments, environment, context)
            self.fresh.place()
        self.fresh.environment(environment, self.environment)
        if context:
            run = self.become_context(arguments[0])
        else:
            run = run if arguments is self.expected else self.become(arguments)
        if source:
            run.source = source
        run.open_channel(self.leave.channel)
        return run

    def become(self, arguments):
        """The runner for a program with these arguments, whose names and search path are in place then."""
        sys.argv = [HERE + '/run.py', *map(sys.modules['os'].fsdecode, arguments)]
        sys.orig_argv[:] = [sys.executable, *sys.argv]
        sys.path[0] = self.own_folder
        sys.modules.pop(SUBMISSION, None)       # of a run that was expected, and is not this one
        run = self.runner(*sys.argv[1:3], sys.argv[3:])
        run.run_cases, run.leave = self.run_cases, self.leave
        for name in self.main_names:
            sys.modules[name] = sys.modules['__main__']
        return run

    def become_context(self, options):
        sys.path[0] = self.own_folder
        sys.modules.pop(SUBMISSION, None)
        run = load_part('session')['Session'](sys.modules['os'].fsdecode(options))
        for name in self.main_names:
            sys.modules[name] = sys.modules['__main__']
        return run

    def usual_source(self, arguments, environment, only):
        """The program's text, if it is what the interpreter was prepared for and all that there is at its home."""
        if arguments is self.expected and environment is self.environment and only and only[0] == self.main_file:
            return only[1]
        return None

    def needs_cold_start(self, arguments, environment, context=False):
        """Whether the program could tell that this interpreter was started for another."""
        if (len(arguments) < 2 and not context) or (environment is not self.environment and early(environment) != self.early):
            return True
        site = sys.modules['site']
        if site.ENABLE_USER_SITE and access(site.USER_SITE, X_OK):
            return True
        # A sandbox with root may have installed other versions of what is loaded here.
        if context and site_times() != self.site_times:
            return True
        # A namesake in the program's folder comes before what is installed; some that we have would use it, too.
        try:
            entries = listdir('.' if context else folder_of(absolute(sys.modules['os'].fsdecode(arguments[1]))))
        except OSError:
            return True
        return not self.preloaded.isdisjoint([entry.partition('.')[0] for entry in entries])

    def runs(self):
        """The zygote's whole life; from wait() on, that of a run."""
        caisson, came = self.caisson, None
        rehearsed = caisson.serve(*self.prepare())
        # From here on we are a run, usual (fastpath.h) or not.
        if not caisson.begin():
            self.begin(rehearsed)
        came = caisson.wait()
        runner, program = None, caisson.start(came)
        if not program:
            runner = self.receive(came)
            came = None
            program = yield from self.start(runner)
            if type(program) is not tuple:
                return (yield from self.end(program, (None, None)))
        error, value, tracing = yield program, runner and runner.names, runner and runner.tracing
        runner, ending = runner or self.expected_run, None
        if not caisson.is_plain(error, value):
            value = [value]
            ending = yield from runner.finish(error, value, program[1])
            error = value = None
        _, has_threads, _ = yield caisson.end, (ending, *tracing), None
        came = runner = program = self.expected_run = None
        if has_threads:
            return SystemExit(0), (None, None)
        self.leave.is_done = True
        return (yield from self.end(ending, tracing))

    @staticmethod
    def start(runner):
        """The code of a run, or how it ends before its program begins.  A context is served here, and does not come back."""
        try:
            program = runner.start()
            if type(program) is not tuple:
                return (yield from program)
            return (yield from runner.run_prelude()) or program
        except SystemExit as ending:
            code = ending.code
        return SystemExit(code)

    def end(self, ending, tracing):
        self.caisson = None
        return (yield from self.leave.end(ending, tracing)), tracing
