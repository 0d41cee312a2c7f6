"""What tests change around a submission, where the two are in two processes: environment, working folder, seeds, patches of the
library, files, levels of loggers.  Before a call the process of the tests tells what is different from what it told last; after it
come files, and with each answer what was logged and what was warned of.

Nothing is told that the test code did not put there for the submission: files only below paths that were arguments, and never
those that were there before the tests began.
"""

import os
import stat
import sys

MISSING = object()
FILES_MAX, BYTES_MAX = 1000, 4 << 20    # that are kept in step at a call
RECORDS_MAX = 1000              # of a logger, or warnings, in one message
LISTENERS = {'logs': {'caplog', 'assertLogs', 'assertNoLogs', 'getLogger'},
             'warnings': {'warns', 'assertWarns', 'assertWarnsRegex', 'catch_warnings', 'recwarn', 'deprecated_call', 'simplefilter', 'filterwarnings'}}
# The streams of each process are its own; what the submission writes comes with its answers.
KEPT_HERE = {('sys', '', 'stdout'), ('sys', '', 'stderr'), ('sys', '', 'modules'), ('sys', '', 'path'), ('sys', '', 'settrace'), ('sys', '', 'setprofile')}


# ------------------------------------------------------------------------------------------------------------------ files

def files_below(top):
    """(path, mode, bytes) of a file, or of what a folder holds; bytes are None for a folder.  Links are not followed."""
    try:
        kind = os.lstat(top)
    except (OSError, ValueError):
        return
    if stat.S_ISDIR(kind.st_mode):
        yield top, kind, None
        for name in sorted(os.listdir(top)):
            yield from files_below(os.path.join(top, name))
    elif stat.S_ISREG(kind.st_mode):
        yield top, kind, kind.st_size


class Files:
    """Below some paths, and what of them the other side has."""

    def __init__(self):
        self.known = {}

    def changes(self, tops):
        """[[path, text of its bytes or None for a folder]], [paths that are gone]"""
        changed, seen, room = [], set(), BYTES_MAX
        for path, kind, size in (found for top in tops for found in files_below(top)):
            seen.add(path)
            mark = kind.st_mtime_ns, size, kind.st_ino
            if self.known.get(path) == mark or size is None and path in self.known:
                continue
            room -= size or 0
            if room < 0 or len(seen) > FILES_MAX:
                raise ValueError('the files of the tests are too many, or too large')
            changed.append([path, None if size is None else read_file(path)])
            self.known[path] = mark
        gone = [path for path in self.known if path not in seen and any(is_below(path, top) for top in tops)]
        for path in gone:
            del self.known[path]
        return changed, gone

    def take(self, changed, gone, tops):
        """What the other side has changed: below these paths, or anywhere, and through no link."""
        for path in sorted(gone, reverse=True):
            if tops is None or allowed(path, tops):
                remove(path)
                self.known.pop(path, None)
        for path, content in changed:
            if tops is None or allowed(path, tops):
                write(path, content)
                kind = os.lstat(path)
                self.known[path] = kind.st_mtime_ns, None if content is None else kind.st_size, kind.st_ino


def read_file(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, 'rb') as file:
        return file.read(BYTES_MAX).decode('latin-1')


def is_below(path, top):
    return path == top or path.startswith(top.rstrip('/') + '/')


def allowed(path, tops):
    if type(path) is not str or '\0' in path or os.path.normpath(path) != path or not any(is_below(path, top) for top in tops):
        return False
    folder = os.path.dirname(path)
    return os.path.realpath(folder) == folder


def write(path, content):
    if content is None:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    with open(descriptor, 'wb') as file:
        file.write(content.encode('latin-1'))


def remove(path):
    try:
        os.rmdir(path) if stat.S_ISDIR(os.lstat(path).st_mode) else os.unlink(path)
    except OSError:
        pass


# -------------------------------------------------------------------------------------------------- in the process of the tests

class Outside:
    def __init__(self, link, spoken, own_file):
        self.link, self.own_file = link, own_file
        self.environment, self.encoded, self.folder = dict(os.environ), dict(os.environ._data), os.getcwd()
        self.home = self.folder
        self.listening = {name for name, words in LISTENERS.items() if words & spoken}
        self.told_to_listen = False
        self.levels = {}
        self.seeds = []
        self.touched = {}               # (module, class, name): what it was
        self.sent = {}
        self.tops, self.files = [], Files()
        self.busy = False
        self.unable = None              # why the submission cannot be called in this test
        self.roots = {os.path.realpath(__import__('tempfile').gettempdir()), self.home} if spoken & {'tmp_path', 'tmpdir', 'tempfile', 'open', 'Path', 'write_text'} else set()

    def before(self, values):
        if self.busy:
            return
        if self.unable is not None:
            raise self.link.unable(self.unable)
        self.busy = True
        try:
            changes = self.changes(values)
            if changes:
                self.link.request('world', None, (changes,))
            self.tell_patches()
        finally:
            self.busy = False

    def after(self):
        if self.busy or not self.tops or self.link.gone is not None:
            return
        self.busy = True
        try:
            answer = self.link.request('files', None, (self.tops,))
            self.files.take(answer[0], answer[1], self.tops)
        except (TypeError, ValueError, KeyError, IndexError, OSError, AttributeError) as error:
            raise self.link.unable('files of the submission cannot be taken over: %.100s' % error) from None
        finally:
            self.busy = False

    def end_test(self):
        self.tops, self.files, self.unable = [], Files(), None

    def changes(self, values):
        changes = {}
        if os.environ._data != self.encoded:    # as it is kept: to decode it takes as long as a call
            self.encoded = dict(os.environ._data)
            environment = dict(os.environ)
            changes['environment'] = {name: environment.get(name) for name in environment.keys() | self.environment.keys()
                                      if environment.get(name) != self.environment.get(name)}
            self.environment = environment
        if self.listening and not self.told_to_listen:
            changes['listen'], self.told_to_listen = sorted(self.listening), True
        if 'logs' in self.listening and 'logging' in sys.modules:
            levels = levels_of(sys.modules['logging'])
            if levels != self.levels:
                changes['levels'], self.levels = {**dict.fromkeys(self.levels, 0), **levels}, levels
        if self.seeds:
            changes['seeds'], self.seeds = self.seeds, []
        if self.roots:
            self.add_files(changes, values)
        return changes

    def add_files(self, changes, values):
        for path in paths_in(values, 3):
            full = os.path.abspath(path)
            if full not in self.tops and full != self.own_file and self.is_of_tests(full):
                self.tops.append(full)
                changes.setdefault('files', [[], [], None])[0].append([os.path.dirname(full), None])
        folder = os.getcwd()
        if folder != self.folder:
            if self.is_of_tests(folder) and folder not in self.tops:
                self.tops.append(folder)
            changes['folder'] = self.folder = folder
        if self.tops:
            try:
                changed, gone = self.files.changes(self.tops)
            except (OSError, ValueError) as error:
                raise self.link.unable(str(error)) from None
            if changed or gone:
                files = changes.setdefault('files', [[], [], None])
                files[0].extend(changed)
                files[1].extend(gone)

    def is_of_tests(self, path):
        """Below a folder where tests make files, and not the folder itself; our own home has the text of the tests."""
        top = next((root for root in self.roots if is_below(path, root) and path != root), None)
        return top is not None and os.path.dirname(path) == os.path.realpath(os.path.dirname(path)) and not is_below(self.own_file, path)

    # ---- patches

    def touch(self, target, name):
        """Something is about to be replaced in the library."""
        place = place_of(target)
        if place is not None and type(name) is str and (*place, name) not in KEPT_HERE:
            self.touched.setdefault((*place, name), (target, vars(target).get(name, MISSING)))

    def tell_patches(self):
        for place, (target, original) in self.touched.items():
            value = vars(target).get(name_in(place), MISSING)
            if value is self.sent.get(place, original):
                continue
            self.sent[place] = value
            self.link.request('patch', None, () if value is original else (plain_function(value),), place=list(place), gone_=value is MISSING)


def levels_of(logging):
    named = {name: logger.level for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)}
    return {name: level for name, level in {'': logging.root.level, **named}.items() if level}


def plain_function(value):
    return value.__func__ if type(value) in (staticmethod, classmethod) else value


def name_in(place):
    return place[2]


def place_of(target):
    """(module, class or '') of a module or class of the library, or None."""
    if type(target) is type(sys) or type(target).__bases__ == (type(sys),):
        name = target.__name__
        return (name, '') if sys.modules.get(name) is target and is_shared(name) else None
    if isinstance(target, type) and type(target).__name__ != 'Mirror':
        module, name = target.__module__, target.__qualname__
        return (module, name) if is_shared(module) and vars(sys.modules.get(module, sys)).get(name) is target else None
    return None


def is_shared(module):
    top = module.partition('.')[0]
    return top in sys.stdlib_module_names and top not in ('unittest', 'solution') or top not in ('tests', 'solution', 'submission', 'main') and \
        bool(getattr(sys.modules.get(top), '__file__', None)) and top not in ('pytest', '_pytest')


def is_file_name(text):
    """Whether a text looks like the name of a file, which may be there only after the call."""
    stem, _, ending = text.rpartition('.')
    return bool(stem) and 0 < len(ending) <= 5 and ending.isalnum() and not ending.isdigit() and not any(map(str.isspace, text))


def paths_in(values, depth):
    for value in values:
        if type(value) is str:
            if 0 < len(value) < 4096 and '\0' not in value and (value[0] == '/' or is_file_name(value) or os.path.lexists(value)):
                yield value
        elif hasattr(type(value), '__fspath__') and type(value).__module__.startswith('pathlib'):
            yield str(value)
        elif depth and type(value) in (list, tuple, set):
            yield from paths_in(value, depth - 1)
        elif depth and type(value) is dict:
            yield from paths_in(value.values(), depth - 1)


# --------------------------------------------------------------------------------------------- in the process of the submission

class Inside:
    """Does there what the tests have told."""

    def __init__(self):
        self.files, self.originals = Files(), {}
        self.logged, self.warned = [], []

    def change(self, changes):
        for name, value in changes.get('environment', {}).items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        if 'files' in changes:
            self.files.take(*changes['files'])
        if 'folder' in changes:
            os.chdir(changes['folder'])
        for kind in changes.get('listen', ()):
            getattr(self, 'listen_to_' + kind)()
        for name, level in changes.get('levels', {}).items():
            __import__('logging').getLogger(name or None).setLevel(level)
        for module, seed in changes.get('seeds', ()):
            getattr(__import__(module), 'random' if module == 'numpy' else 'seed')
            (__import__('numpy').random if module == 'numpy' else __import__(module)).seed(seed)

    def patch(self, place, gone, values):
        module, name, attribute = place
        __import__(module)
        target = sys.modules[module]
        for part in filter(None, name.split('.')):
            target = getattr(target, part)
        original = self.originals.setdefault(tuple(place), vars(target).get(attribute, MISSING))
        if values:
            setattr(target, attribute, values[0])
        elif gone or original is MISSING:
            delattr(target, attribute)
        else:
            setattr(target, attribute, original)

    def changed_files(self, tops):
        return list(self.files.changes(tops))

    def listen_to_logs(self):
        logging = __import__('logging')
        call_handlers = logging.Logger.callHandlers

        def callHandlers(logger, record):
            if len(self.logged) < RECORDS_MAX:
                self.logged.append([record.name, record.levelno, record.getMessage()])
            call_handlers(logger, record)

        logging.Logger.callHandlers = callHandlers

    def listen_to_warnings(self):
        warnings = __import__('warnings')
        warnings.simplefilter('always')

        def showwarning(message, category, filename, lineno, file=None, line=None):
            if len(self.warned) < RECORDS_MAX:
                self.warned.append(message)

        warnings.showwarning = showwarning

    def take(self):
        logged, self.logged = self.logged, []
        warned, self.warned = self.warned, []
        return logged, warned
