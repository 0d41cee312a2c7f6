"""A part in grading: what a runner is if its OPTIONS have graded=1 (docs/protocols/grading-roles.md).

runner.py loads this file and asks it within Runner.start(), as it does a context.  What all roles have in common is here:
messages in both directions, the set-up, the program as a module, and the end.  The first message names the role, and a file of that
name has the rest, in one function:

    serve(role) -> the exit status

It is called after STARTED.  role.talk is the way to the engine, role.begin its first message, and role.run_program() runs
set-up and program; if they raise, that ends the role as it would a usual run.
"""

import builtins
import sys
from posix import read, set_blocking

STARTED, ERROR, DONE, MESSAGE = 3, 4, 6, 10
FRAME_MAX = 65536
HEADER_SIZE = 12
FLAG_MORE = 1
MESSAGE_MAX = 16 << 20
BROKEN_EXIT = 70
NAMES = 'cases', 'judge', 'subject', 'tests'
TO_ENGINE, TO_PEER = b'E', b'P'

canon = load_part('canon')
CanonError, read_json, write_json = canon['CanonError'], canon['read_json'], canon['write_json']
set_trace, set_profile = sys.settrace, sys.setprofile
# Text: (a module of builtins and of the names that the prelude binds, the recursion limit).  A zygote has made those of the
# preludes that the engine sends, so that a fork counts no references to 500 objects.
preludes = {}
# Of sys, and another for each program.
OF_PROGRAM = 'stdin', 'stdout', 'stderr', 'argv', 'orig_argv', 'path', 'modules'


def prepare_preludes():
    limit = sys.getrecursionlimit()
    for text, needed in load_part('preludes')['TEXTS'].values():
        if needed in sys.modules:
            names = {'__name__': 'prelude'}
            exec(text, names)
            space = type(sys)('builtins')
            space.__dict__.update(vars(builtins))
            space.__dict__.update((name, value) for name, value in names.items() if name[:2] != '__' and name not in OF_PROGRAM)
            preludes[text] = space, sys.getrecursionlimit()
            sys.setrecursionlimit(limit)


class Gone(Exception):
    """There is no engine any more, or what it sends is no message."""


class Failed(Exception):
    """The set-up or the program has raised."""

    def __init__(self, error):
        self.error = error


class Talk:
    """Whole messages over the channel, in both directions.  What they are made of is JSON's."""

    def __init__(self, channel):
        self.channel = channel
        set_blocking(channel.fd, True)

    def send(self, whom, document):
        self.send_text(whom, write_json(document))

    def send_text(self, whom, text):
        self.channel.send(MESSAGE, whom + text.encode('ascii'))

    def receive(self):
        """(whom it is from, document); waits for it.  None at the end of file."""
        message = self.read_message()
        if message is None:
            return None
        if message[:1] not in (TO_ENGINE, TO_PEER):
            raise Gone('it is from nobody')
        try:
            return message[:1], read_json(message[1:].decode('ascii'))
        except (CanonError, UnicodeDecodeError) as error:
            raise Gone(str(error)) from None

    def read_message(self):
        pieces, size = [], 0
        while True:
            frame = read(self.channel.fd, FRAME_MAX + 1)
            if not frame:
                return None
            if (len(frame) < HEADER_SIZE or len(frame) > FRAME_MAX or frame[:4] != b'CSN1' or frame[4] != MESSAGE
                    or frame[5] > FLAG_MORE or frame[6:8] != b'\0\0'
                    or int.from_bytes(frame[8:HEADER_SIZE], 'little') != len(frame) - HEADER_SIZE):
                raise Gone('a frame has a wrong header')
            pieces.append(frame[HEADER_SIZE:])
            size += len(frame) - HEADER_SIZE
            if size > MESSAGE_MAX:
                raise Gone('it is longer than %d bytes' % MESSAGE_MAX)
            if not frame[5]:
                return b''.join(pieces)


class Role:
    def __init__(self, runner):
        """Waits for the engine's word to begin."""
        self.runner = runner
        if runner.channel.fd < 0:
            complain('run.py: descriptor 3 is no channel; a role needs one\n')
            raise SystemExit(BROKEN_EXIT)
        self.talk = Talk(runner.channel)
        self.program = None
        self.given = {}         # names that are there before the set-up
        try:
            message = self.talk.receive()
            if message is None:
                raise SystemExit(0)
            whom, self.begin = message
            if whom != TO_ENGINE or type(self.begin) is not dict or self.begin.get('op') != 'begin':
                raise Gone('the first message is not "begin"')
            if self.begin.get('role') not in NAMES:
                raise Gone('there is no role %r' % (self.begin.get('role'),))
        except Gone as error:
            complain('run.py: what came over the channel is no message: %s\n' % error)
            raise SystemExit(BROKEN_EXIT) from None
        self.serve = load_part(self.begin['role'])['serve']

    def play(self, *program):
        """From STARTED to DONE.  Returns what ends the interpreter; program is what compile_program() has made of it."""
        self.program = program
        try:
            ending = SystemExit(self.serve(self))
        except Failed as failed:
            ending = drive_here(self.runner.ending_of(failed.error))
        except Gone as error:
            complain('run.py: what came over the channel is no message: %s\n' % error)
            ending = SystemExit(BROKEN_EXIT)
        self.runner.channel.send(DONE)
        return ending

    def run_program(self):
        """Prelude, set-up and program, in the names of the module."""
        self.run_prelude()
        self.run_setup()
        self.leave_setup()
        self.run(self.program[0])
        if self.program[1] is not None:
            self.run(self.program[1])
        self.adapt_program()

    def run_prelude(self):
        """Imports of the engine's, and helper classes: neither is a set-up, which can fail."""
        names = self.runner.names
        if self.begin.get('prelude'):
            self.bind_prelude(names, self.begin['prelude'])
        if self.begin.get('helpers') == 'leetcode':
            load_part('leetcode')['define'](names)

    def bind_prelude(self, names, text):
        if text not in preludes:
            self.run(text, '<prelude>')
            self.given = dict(names)
            return
        names['__builtins__'], limit = preludes[text]
        names.update((name, getattr(sys, name)) for name in OF_PROGRAM)
        self.given = {name: names[name] for name in OF_PROGRAM}
        sys.setrecursionlimit(limit)

    def adapt_program(self):
        if self.begin.get('helpers') == 'leetcode':
            load_part('leetcode')['adapt'](self.runner.names)

    def run_setup(self):
        self.run(self.begin.get('setup') or '', '<setup>')

    def leave_setup(self):
        """What goes wrong from here on is the program's doing, and what did before was that of the request."""
        if self.begin.get('setup'):
            self.talk.send(TO_ENGINE, {'op': 'set_up'})

    def run(self, code, name=None):
        """Code, or a text that will be known as name.  What it traces is its own code, and not what we do then."""
        error = None
        try:
            exec(compile(code, name, 'exec', 0, True) if name else code, self.runner.names)
        except BaseException as caught:
            error = caught
        set_trace(None)
        set_profile(None)
        if error is not None:
            drop_own_frame(error)
            raise Failed(error)
