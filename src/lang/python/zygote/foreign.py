"""The modules that a zygote with foreign code imports ahead: those of a layer of packages, those that an image names, and those of the
setting packages.preload.

Foreign code may leave something that a fork cannot have, or that a run would not expect.  Such a module is left out: the zygote starts
again without the module, and the run imports the module itself.
"""

import _signal
import sys
from posix import WEXITED, WNOHANG, WNOWAIT, P_ALL, getpid, kill, listdir, readlink, waitid, waitpid
from time import monotonic

os = sys.modules['os']

LAYER = '/opt/packages'
LIST_OF_IMAGE = '/usr/share/caisson/preload'
MODULES_MAX = 64
LEFT_OUT_MAX = 8            # a zygote that left out more imports nothing of this kind
TEXT_MAX = 100              # of a name and of a reason, in the list for the engine
SUFFIXES = '.py', '.so'
FORKS = 'fork', 'forkpty'
NO_MODULES = {'test', 'tests', 'docs', 'doc', 'examples', 'setup'}


def read(path, size=-1):
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read(size)
    except OSError:
        return ''


def normalise(name):
    """As PEP 503 has it."""
    word = ''.join(c if c.isalnum() else '-' for c in name.lower())
    return '-'.join(part for part in word.split('-') if part)


class Distribution:
    def __init__(self, folder):
        self.folder = folder
        self.name, self.needs = '', set()
        for line in read(folder + '/METADATA').split('\n\n', 1)[0].split('\n'):
            field, _, value = line.partition(':')
            if field == 'Name':
                self.name = normalise(value.strip())
            elif field == 'Requires-Dist' and 'extra ==' not in value:
                word = value.strip()
                end = next((at for at, c in enumerate(word) if not (c.isalnum() or c in '-_.')), len(word))
                self.needs.add(normalise(word[:end]))

    def modules(self):
        """Its top-level names that a program may import."""
        found = set()
        for line in read(self.folder + '/RECORD').split('\n'):
            path = line.partition(',')[0].strip('"')
            first, _, rest = path.partition('/')
            if rest and path.endswith(SUFFIXES):
                found.add(first)
            elif not rest and first.endswith(SUFFIXES):
                found.add(first.partition('.')[0])
        return sorted(name for name in found if name.isidentifier() and not name.startswith('_') and name not in NO_MODULES)


def of_layer():
    """The modules of the distributions that no other one needs: they import those of the others."""
    try:
        folders = sorted(name for name in listdir(LAYER) if name.endswith('.dist-info'))
    except OSError:
        return []
    all_of_them = [Distribution(LAYER + '/' + name) for name in folders]
    needed = {name for one in all_of_them for name in one.needs if name != one.name}
    return [name for one in all_of_them if one.name not in needed for name in one.modules()]


def words(text):
    return [word for word in text.replace(',', ' ').split() if all(part.isidentifier() for part in word.split('.'))]


def wanted(of_settings):
    """Each name once, at most MODULES_MAX."""
    lines = (line.partition('#')[0] for line in read(LIST_OF_IMAGE, 65536).split('\n'))
    return list(dict.fromkeys([*of_layer(), *words(' '.join(lines)), *words(of_settings)]))[:MODULES_MAX]


def has_children():
    try:
        waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_children():
    """Processes that a module left would count against each module that follows, also after execve(2)."""
    own = getpid()
    for pid in [int(name) for name in listdir('/proc') if name.isdigit()]:
        stat = read('/proc/%d/stat' % pid).rpartition(')')[2].split()
        if stat[1:2] == [str(own)]:
            kill(pid, _signal.SIGKILL)
            waitpid(pid, 0)


def descriptors():
    """Numbers with what they lead to; the one by which the folder is read is gone again."""
    found = {}
    for number in listdir('/proc/self/fd'):
        try:
            found[number] = readlink('/proc/self/fd/' + number)
        except OSError:
            pass
    return found


def handlers():
    masks = [line for line in read('/proc/self/status').split('\n') if line[:6] in ('SigBlk', 'SigIgn', 'SigCgt')]
    return masks, [_signal.getsignal(number) for number in range(1, 32) if number != _signal.SIGALRM]


class Watch:
    """What a module does at its import that a fork cannot have."""

    def __init__(self, wall_ms, is_alone):
        self.wall = wall_ms / 1000
        self.is_alone = is_alone

    def begin(self, give_up):
        """give_up(reason) starts the zygote again.  Python code that takes too long is interrupted by it."""
        self.before = descriptors(), handlers(), getpid()
        self.forks = []
        self.usual_forks = {name: getattr(os, name) for name in FORKS}
        for name, function in self.usual_forks.items():
            setattr(os, name, self.noting(function))
        self.started = monotonic()
        self.usual = _signal.signal(_signal.SIGALRM, lambda *_: give_up(self.too_slow()))
        _signal.setitimer(_signal.ITIMER_REAL, self.wall)

    def noting(self, function):
        """A program that was started and has ended left nothing, so fork_exec() of subprocess is none of these."""
        def fork():
            self.forks.append(function)
            return function()
        return fork

    def too_slow(self):
        return 'takes longer than %d ms' % (self.wall * 1000)

    def end(self):
        """The reason to leave the module out, or None."""
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _signal.signal(_signal.SIGALRM, self.usual)
        for name, function in self.usual_forks.items():
            setattr(os, name, function)
        of_files, of_signals, pid = self.before
        if getpid() != pid:
            sys.stderr.write('zygote.py: a module went on in a child process\n')
            raise SystemExit(1)
        if monotonic() - self.started > self.wall:
            return self.too_slow()
        if not self.is_alone():
            return 'starts threads'
        if self.forks or has_children():
            return 'forks'
        if descriptors() != of_files:
            return 'leaves a descriptor'
        if handlers() != of_signals:
            return 'changes signal handlers'
        return None


def shorten(pairs, room):
    """As many as fit."""
    kept = {}
    for name, text in pairs.items():
        room -= min(len(name), TEXT_MAX) + min(len(text), TEXT_MAX) + 8
        if room < 0:
            break
        kept[name[:TEXT_MAX]] = text[:TEXT_MAX]
    return kept
