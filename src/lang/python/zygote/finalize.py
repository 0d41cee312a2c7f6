"""The end of a forked run: what the interpreter does when it ends, as far as a program can observe it, and no more.

Taking down modules that the zygote loaded would take longer than most programs run.  So we do here what
Py_FinalizeEx() does, in its order, to what is the program's own, and then the process goes.  With threads still
running that order cannot be kept from here: then the interpreter ends by itself.
"""

import atexit
import builtins
import gc
import sys
from _io import BufferedRandom, BufferedWriter, TextIOWrapper
from _signal import SIG_DFL, SIGINT, signal
from _thread import _count as count_threads
from posix import getpid, kill, write
from _weakref import ref

BROKEN_OUTPUT_EXIT = 120
DONE = 6
# finalize_modules_delete_special() in Python's pylifecycle.c
SYS_FORGETS = ('path', 'argv', 'ps1', 'ps2', 'last_type', 'last_value', 'last_traceback', 'path_hooks',
               'path_importer_cache', 'meta_path', '__interactivehook__', *(('last_exc',) if sys.version_info >= (3, 12) else ()))
# What the interpreter says of an error at its end, when nobody can catch it any more.  Before Python 3.13 it names an object instead.
ON_FLUSHING = ('Exception ignored while flushing sys.stdout' if sys.version_info >= (3, 14)
               else 'Exception ignored on flushing sys.stdout' if sys.version_info >= (3, 13) else None)
ON_SHUTDOWN = 'Exception ignored on threading shutdown' if sys.version_info >= (3, 13) else None
STREAMS = 'stdin', 'stdout', 'stderr'

get_enabled, get_debug, get_objects, callbacks = gc.isenabled, gc.get_debug, gc.get_objects, gc.callbacks
# A warning about what is collected tells where; of the interpreter's own end that is line 1 of sys, and since Python 3.13 line 0 of <sys>.
collect = eval(compile('lambda: collect()', '<sys>' if sys.version_info >= (3, 13) else 'sys', 'eval'), {'collect': gc.collect})
if sys.version_info >= (3, 13):
    collect.__code__ = collect.__code__.replace(co_firstlineno=0)
run_exit_functions = atexit._run_exitfuncs
get_trace, get_profile = sys.gettrace, sys.getprofile
Module = type(sys)
module_names_of = Module.__dict__['__dict__'].__get__


class Unhappy:
    def __del__(self):
        raise ValueError


def unraisable_type():
    """The type of what sys.unraisablehook is given.  Python has no name for it, so we look at one."""
    hook, shown = sys.unraisablehook, []
    sys.unraisablehook = lambda unraisable: shown.append(type(unraisable))
    Unhappy()
    sys.unraisablehook = hook
    return shown[0]


UnraisableHookArgs = unraisable_type()


def show_unraisable(error, thing, trace, message):
    try:
        sys.unraisablehook(UnraisableHookArgs((type(error), error, trace, message, None if message else thing)))
    except BaseException:
        pass


def is_closed(stream):
    try:
        return bool(stream.closed)
    except BaseException:
        return False


def flush_streams():
    """Whether nothing was lost."""
    kept = True
    stdout, stderr = getattr(sys, 'stdout', None), getattr(sys, 'stderr', None)
    for stream in stdout, stderr:
        if stream is None or is_closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as error:
            kept = False
            if stream is stdout:
                show_unraisable(error, stream, error.__traceback__.tb_next, ON_FLUSHING)
    return kept


def exit_code(code):
    """The status for the code of a SystemExit; what is no number is told to the user."""
    if code is None:
        return 0
    if issubclass(type(code), int):
        return int.__and__(code, 0xff) if -1 << 63 <= code < 1 << 63 else 0xff
    stderr = getattr(sys, 'stderr', None)
    for text in (code, '\n'):
        try:
            if stderr is None:
                write(2, str(text).encode('utf-8', 'backslashreplace'))
            else:
                stderr.write(str(text))
        except BaseException:
            pass
    return 1


def clear_names(names):
    """Let go of a module's objects, private names first (_PyModule_Clear() in moduleobject.c)."""
    for name in list(names):
        if type(name) is str and name[:1] == '_' and name[1:2] != '_':
            names[name] = None
    for name in list(names):
        if type(name) is str and name != '__builtins__':
            names[name] = None


class Leave:
    def __init__(self, caisson, main_names):
        self.leave, self.quit = caisson.leave, caisson.quit
        self.strangers, self.have_ends, self.logging_shutdown = caisson.strangers, caisson.have_ends, caisson.logging_shutdown
        self.main_names = main_names
        self.channel = None
        self.is_done = False
        self.modules = sys.modules
        self.last_name = next(reversed(sys.modules))
        self.kept = {id(module): module for module in sys.modules.values()}
        self.sys_names = dict(vars(sys))
        self.threading = sys.modules.get('threading')
        self.shutdown = getattr(self.threading, '_shutdown', None)
        self.usual_exits = len(getattr(self.threading, '_threading_atexits', ()))

    def usual(self):
        """What fastpath.c has to know to do in C what end() does."""
        return {'get_trace': get_trace, 'get_profile': get_profile,
                'modules': self.modules, 'threading': self.threading, 'shutdown': self.shutdown, 'exits': self.usual_exits,
                'run_exits': run_exit_functions, 'idle_exits': self.idle_exits(), 'count_exits': atexit._ncallbacks, 'count_threads': count_threads,
                'stdout': sys.stdout, 'stdout_names': sys.stdout.__dict__, 'flush_stdout': sys.stdout.flush,
                'stderr': sys.stderr, 'stderr_names': sys.stderr.__dict__, 'flush_stderr': sys.stderr.flush,
                'get_objects': get_objects, 'ref': ref, 'callbacks': callbacks, 'get_debug': get_debug}

    def idle_exits(self):
        """How many functions are registered that do nothing, or -1 if others are."""
        logging, n = sys.modules.get('logging'), atexit._ncallbacks()
        if logging is None or n != 1:
            return -1 if n else 0
        atexit.unregister(logging.shutdown)
        atexit.register(self.logging_shutdown(logging.shutdown, logging._handlerList))
        return atexit._ncallbacks()

    def end(self, ending, tracing):
        """Ends the process, or returns what to raise so that the interpreter does.  A generator."""
        interrupted = type(ending) is KeyboardInterrupt
        status = 0 if ending is None or interrupted else exit_code(ending.code)
        ending = ending if interrupted else SystemExit(status)
        if self.has_threads_to_end():
            threading = self.modules.get('threading')
            error, shutdown, tracing = yield getattr, (threading, '_shutdown'), tracing
            if error is None:
                error, _, tracing = yield shutdown, (), tracing
            if error is not None:
                show_unraisable(error, threading, error.__traceback__, ON_SHUTDOWN)
        error, _, tracing = yield run_exit_functions, (), tracing
        if count_threads():
            self.say_done()
            return ending
        if not flush_streams():
            status = BROKEN_OUTPUT_EXIT
        sys.is_finalizing = True.__bool__
        if self.have_ends(get_objects(), ref) or callbacks or get_debug():
            if get_enabled():
                collect()
            callbacks.clear()           # of later collections nobody is told
            self.clear_modules()
        self.say_done()
        if interrupted:
            signal(SIGINT, SIG_DFL)
            kill(getpid(), SIGINT)
        self.leave(status, self.channel.where)

    def has_threads_to_end(self):
        """Whether threading._shutdown() would do more than mark the main one."""
        threading = self.modules.get('threading')
        return 'threading' in self.modules and not (
            threading is self.threading and not count_threads() and getattr(threading, '_shutdown', None) is self.shutdown
            and len(threading._threading_atexits) == self.usual_exits)

    def say_done(self):
        if self.is_done:
            self.channel.send(DONE)

    def clear_modules(self):
        if '_' in vars(builtins):
            builtins._ = None
        for name in SYS_FORGETS:
            setattr(sys, name, None)
        for name in STREAMS:
            setattr(sys, name, getattr(sys, '__%s__' % name, None))
        own = []
        for name in self.own_names():
            module = self.modules[name]
            if issubclass(type(module), Module) and id(module) not in self.kept:
                own.append(ref(module))
            self.modules[name] = module = None
        # Without it the interpreter shows no source lines, as when there are no modules left.
        self.modules.pop('io', None)
        self.restore_builtins()
        collect()
        for reference in reversed(own):
            module = reference()
            if module is not None:
                clear_names(module_names_of(module))
        module = None
        collect()
        self.clear_rest()

    def restore_builtins(self):
        names = vars(builtins)
        if self.strangers(names, __builtins__, True) or len(names) != len(__builtins__):
            replaced = names.copy()
            names.clear()
            names.update(__builtins__)
            replaced = None

    def own_names(self):
        """What the program imported, oldest first.  To look at the others would copy the memory that they are in."""
        names = []
        for name in reversed(self.modules):
            if name == self.last_name:
                break
            names.append(name)
        return [name for name in self.main_names if name in self.modules] + names[::-1]

    def clear_rest(self):
        """What the program hung on to sys, and what it wrote to files that something still holds."""
        for name in STREAMS[1:]:
            flush_silently(getattr(sys, name, None))
        for name in STREAMS:
            setattr(sys, name, None)
        for name in self.strangers(vars(sys), self.sys_names, False):
            if type(name) is str:
                setattr(sys, name, None)
        for kinds in (TextIOWrapper,), (BufferedWriter, BufferedRandom):
            for thing in get_objects():
                if issubclass(type(thing), kinds):
                    flush_silently(thing)


def flush_silently(stream):
    try:
        if not is_closed(stream):
            stream.flush()
    except BaseException:
        pass
