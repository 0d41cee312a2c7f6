"""What must not be the same in two runs, though both were forked from one process; and what is a run's own.

What can be made ready is made in the zygote (settle()), for whatever a run does to an object of the zygote's copies the page
that it is in.  state() is called in each run, before the program is there.
"""

import gc
import sys
from _thread import get_native_id
from posix import close, dup, dup2, fstat, getcwd, pipe, putenv, unsetenv
from time import time, time_ns

STREAMS = (('stdin', 0, 'r'), ('stdout', 1, 'w'), ('stderr', 2, 'w'))
BLAS_NAMES = (b'OPENBLAS_NUM_THREADS', b'GOTO_NUM_THREADS', b'OMP_NUM_THREADS')     # in OpenBLAS's own order
BLAS_SETTERS = ('openblas_set_num_threads', 'openblas_set_num_threads64_', 'scipy_openblas_set_num_threads',
                'scipy_openblas_set_num_threads64_')
RTLD_LAZY, RTLD_NOLOAD = 1, 4
USUAL_THREAD = 2        # a sandbox has its first process, and then the interpreter
KEY_SIZE = 32


def instances(module, *names):
    """Every object there is of the named types, and of types made from them."""
    wanted = tuple(getattr(sys.modules[module], name) for name in names) if module in sys.modules else ()
    return [thing for thing in gc.get_objects() if wanted and issubclass(type(thing), wanted)]


def find_blas():
    """Addresses of functions that set the number of threads, one for each OpenBLAS that is loaded."""
    ctypes = sys.modules.get('_ctypes')
    found = []
    if ctypes is None or 'numpy' not in sys.modules:
        return found
    with open('/proc/self/maps', encoding='utf-8', errors='surrogateescape') as maps:
        paths = {line.split(None, 5)[5].rstrip('\n') for line in maps if 'blas' in line.lower()}
    for path in sorted(paths):
        for name in BLAS_SETTERS:
            try:
                found.append(ctypes.dlsym(ctypes.dlopen(path, RTLD_LAZY | RTLD_NOLOAD), name))
                break
            except OSError:
                pass
    return found


def reseeders():
    """For each generator what gives it new random numbers: of most it is the C function below random.Random.seed()."""
    base, usual = sys.modules.get('_random'), getattr(sys.modules.get('random'), 'Random', None)
    found = []
    for one in instances('random', 'Random'):
        if type(one) is usual and one.gauss_next is None:
            found.append(base.Random.seed.__get__(one))
        elif type(one).__name__ != 'SystemRandom':
            found.append(one.seed)
    return found


class Fresh:
    def __init__(self, caisson):
        self.is_usual_stream, self.renew = caisson.is_usual_stream, caisson.renew
        self.wrapping = {name: (getattr(sys, name).encoding, getattr(sys, name).errors) for name, _, _ in STREAMS}
        self.open = sys.modules['io'].open
        self.text = sys.modules['io'].TextIOWrapper
        self.numpy_states = instances('numpy.random', 'RandomState')
        seeded = [state._bit_generator for state in self.numpy_states]
        self.numpy_bits = [bits for bits in instances('numpy.random', 'BitGenerator') if bits not in seeded]
        self.blas = find_blas()
        self.unbuffered = bool(sys.modules['os'].environb.get(b'PYTHONUNBUFFERED'))
        sys.path_importer_cache[HERE + '/run.py'] = sys.path_importer_cache.pop(HERE + '/zygote.py', None)

    # ---- in the zygote

    def settle(self):
        """After all that a zygote does itself."""
        for name, reset in ONCE.items():
            if name in sys.modules:
                reset(sys.modules[name])
        for module in list(sys.modules.values()):
            module_names = getattr(module, '__dict__', {})
            if module_names.get('__warningregistry__') is not None:
                del module_names['__warningregistry__']
        self.reseeders = reseeders()
        self.logging = sys.modules.get('logging')
        self.main_thread = sys.modules['threading'].main_thread() if 'threading' in sys.modules else None
        self.key = (sys.modules['multiprocessing.process'].current_process()._config['authkey']
                    if 'multiprocessing.process' in sys.modules else None)

    def usual_streams(self, environment):
        """Those that nearly every run needs: its descriptors have the same numbers, and are of the same kinds."""
        kept, ends = (dup(1), dup(2)), pipe()
        for fd in 1, 2:
            dup2(ends[1], fd)
        self.streams(environment)
        for fd, old in zip((1, 2), kept):
            dup2(old, fd)
        for fd in kept + ends:
            close(fd)

    def usual(self):
        """What fastpath.c has to know to do in C what state() does."""
        reseeders = self.reseeders + [self.numpy_state] * bool(self.numpy_bits or self.numpy_states)
        start = getattr(self.logging, '_startTime', None)
        return {'reseeders': reseeders, 'key': self.key, 'start_time': start if type(start) is float else None, 'main_thread': self.main_thread}

    def late(self, environment):
        """And what environment() does, if it is the zygote's: a list of functions."""
        found = [lambda: self.blas_threads(environment)] if self.blas else []
        if type(getattr(self.logging, '_startTime', 0.0)) is not float:
            found.append(lambda: begin_logging(self.logging))
        return found

    # ---- before there is a program

    def state(self, rehearsed):
        self.unusual_streams(1, 2)
        for reseed in self.reseeders:
            reseed()
        self.numpy_state()
        if self.logging is not None:
            begin_logging(self.logging)
        # Python before 3.12 keeps the number of the process that it was forked from.
        if self.main_thread is not None and get_native_id() != USUAL_THREAD and not rehearsed:
            self.main_thread._set_native_id()
        if self.key is not None:
            self.renew(self.key)

    def numpy_state(self):
        for bits in self.numpy_bits:
            bits.state = type(bits)().state
        for state in self.numpy_states:
            state.seed()

    # ---- as the program comes

    def streams(self, environment):
        """The three streams as the interpreter makes them (create_stdio() in its pylifecycle.c)."""
        self.unbuffered = bool(environment.get(b'PYTHONUNBUFFERED'))
        for name, fd, mode in STREAMS:
            self.stream(name, fd, mode)

    def unusual_streams(self, *fds):
        for fd in fds:
            if not self.is_usual_stream(fd):
                self.stream(*STREAMS[fd])

    def stream(self, name, fd, mode):
        stream = None
        try:
            fstat(fd)
            size = 0 if self.unbuffered and mode == 'w' else -1
            buffer = self.open(fd, mode + 'b', size, None, None, None, False)
            raw = buffer.raw if size else buffer
            raw.name = '<%s>' % name
            stream = self.text(buffer, *self.wrapping[name], '\n', not self.unbuffered and (fd == 2 or raw.isatty()),
                               self.unbuffered)
            stream.mode = mode
        except OSError:         # closed, or a folder
            pass
        setattr(sys, name, stream)
        setattr(sys, '__%s__' % name, stream)

    def place(self):
        """The working directory, where it may be another one than the zygote's."""
        if 'multiprocessing.process' in sys.modules:
            sys.modules['multiprocessing.process'].ORIGINAL_DIR = getcwd()

    def environment(self, environment, before):
        if environment is before:
            self.unusual_streams(0)
        else:
            self.other_environment(environment, before)
        if self.blas:
            self.blas_threads(environment)

    def other_environment(self, environment, before):
        data = sys.modules['os'].environ._data
        if list(environment)[:len(data)] != list(data):     # otherwise the order comes right by itself
            for name in data:
                unsetenv(name)
            data.clear()
        for name, value in environment.items():
            if data.get(name) != value:
                putenv(name, value)
                data[name] = value
        if b'PYTHONPATH' in environment and b'PYTHONPATH' not in before:    # a layer of packages; with another value the program starts cold
            sys.path.insert(1, environment[b'PYTHONPATH'].decode())     # behind the program's folder
        if environment.get(b'TZ') != before.get(b'TZ'):
            sys.modules['time'].tzset()
        if bool(environment.get(b'PYTHONUNBUFFERED')) == self.unbuffered:
            self.unusual_streams(0)
        else:
            self.streams(environment)

    def blas_threads(self, environment):
        wanted = [int(environment[name]) for name in BLAS_NAMES if environment.get(name, b'').isdigit()]
        wanted = [number for number in wanted if number > 0]
        if wanted and wanted[0] > 1:
            for function in self.blas:
                sys.modules['_ctypes'].call_function(function, (wanted[0],))


def begin_logging(logging):
    # A number of its own, which nobody else has.  From Python 3.13 on it counts nanoseconds.
    logging._startTime = time() if type(logging._startTime) is float else time_ns()


def reset_logging(logging):
    begin_logging(logging)
    # What is written with no handler goes to standard error, which nobody has to flush for it at the end.
    logging._handlerList.clear()


def reset_tempfile(tempfile):
    tempfile._name_sequence = tempfile.tempdir = None


def reset_uuid(uuid):
    uuid._node = uuid._last_timestamp = None


def reset_platform(platform):
    # They know the host's name.
    platform._uname_cache = None
    platform._platform_cache.clear()


def reset_threading(threading):
    threading.main_thread()._native_id = USUAL_THREAD
    threading._counter = threading._count(1).__next__


def reset_multiprocessing(process):
    process.ORIGINAL_DIR = getcwd()
    # An object of its own, which nobody has hashed.
    process.current_process()._config['authkey'] = process.AuthenticationString(KEY_SIZE)


def reset_warnings(warnings):
    warnings.onceregistry.clear()
    warnings._filters_mutated()


# OpenSSL is not here: its generator is made at its first use, and a zygote has none for it.
# What each run writes to comes first, where there is nothing yet between what was just made.
ONCE = {
    'logging': reset_logging,
    'multiprocessing.process': reset_multiprocessing,
    'tempfile': reset_tempfile,
    'uuid': reset_uuid,
    'platform': reset_platform,
    'warnings': reset_warnings,
    'linecache': lambda linecache: linecache.clearcache(),
    'threading': reset_threading,
}
