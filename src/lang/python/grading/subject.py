"""Role `subject`: the program whose functions and classes the tests of another process call (docs/protocols/grading-roles.md).

What the tests ask for is done as if they were here: they may do with a program what they like.
"""

import sys
from _thread import get_ident
from posix import _exit

link = load_part('link')
world = load_part('world')
Link, next_items = link['Link'], link['next_items']
role_names = load_part('role')
Failed, TO_ENGINE = role_names['Failed'], role_names['TO_ENGINE']


ECHO_MAX = 1 << 20              # characters of a stream in one message


class End(BaseException):
    """The engine needs us no longer."""


class Echo:
    """A standard stream; what is written during a call goes to the tests as well, which may look at it."""

    def __init__(self, stream):
        self.stream, self.written, self.room = stream, [], ECHO_MAX

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, text):
        count = self.stream.write(text)
        self.written.append(text[:self.room])
        self.room -= len(self.written[-1])
        return count

    def take(self):
        text, self.written, self.room = ''.join(self.written), [], ECHO_MAX
        return text


class Subject(Link):
    def __init__(self, role):
        super().__init__(role.talk)
        self.echoes = sys.stdout, sys.stderr = Echo(sys.stdout), Echo(sys.stderr)
        self.names, self.given = role.runner.names, role.given
        self.world = world['Inside']()
        self.thread = get_ident()
        self.ops = {name[3:]: getattr(self, name) for name in vars(Subject) if name[:3] == 'do_'}

    def from_engine(self, document):
        if self.depth:          # within a call that nobody waits for any more
            _exit(0)
        raise End

    def send(self, message, encoder):
        written = [echo.take() for echo in self.echoes]
        logged, warned = self.world.take()
        if any(written):
            message['o'] = written
        if logged:
            message['l'] = logged
        if warned:
            message['w'] = [encoder.encode_error(warning) for warning in warned]
        super().send(message, encoder)

    def request(self, *arguments, **more):
        if get_ident() != self.thread:
            raise RuntimeError('only the main thread can call functions of the tests')
        return super().request(*arguments, **more)

    def real_error(self, module, qualname):
        """A class that the tests have imported is known here by the same name."""
        if module in ('tests', '__main__', SUBMISSION):
            return None
        found = vars(sys.modules.get(module, sys)).get(qualname)
        return found if isinstance(found, type) and issubclass(found, BaseException) else None

    def find_module(self, name):
        __import__(name)
        return sys.modules[name]

    def find_in_library(self, module, name):
        found = self.find_module(module)
        for part in name.split('.'):
            found = getattr(found, part)
        return found

    def perform(self, op, target, positional, named, message):
        return self.ops[op](target, positional, named, message)

    def do_names(self, target, positional, named, message):
        """Those of the program: the tests have imports of a prelude themselves."""
        return [name for name, value in self.names.items() if name[:2] != '__' and (name not in self.given or self.given[name] is not value)]

    def do_value(self, target, positional, named, message):
        if message['name'] not in self.names:
            raise AttributeError(message['name'])
        return self.names[message['name']]

    def do_assign(self, target, positional, named, message):
        if positional:
            self.names[message['name']] = positional[0]
        else:
            del self.names[message['name']]

    def do_call(self, target, positional, named, message):
        return target(*positional, **named)

    def do_world(self, target, positional, named, message):
        self.world.change(*positional)

    def do_patch(self, target, positional, named, message):
        self.world.patch(message['place'], message['gone_'], positional)

    def do_files(self, target, positional, named, message):
        return self.world.changed_files(*positional)

    def do_method(self, target, positional, named, message):
        return getattr(target, message['name'])(*positional)

    def do_get(self, target, positional, named, message):
        return getattr(target, message['name'])

    def do_set(self, target, positional, named, message):
        setattr(target, message['name'], *positional)

    def do_delete(self, target, positional, named, message):
        delattr(target, message['name'])

    def do_special(self, target, positional, named, message):
        return getattr(type(target), message['name'])(target, *positional)

    def do_dir(self, target, positional, named, message):
        return dir(target)

    def do_copy(self, target, positional, named, message):
        return __import__('copy').copy(target)

    def do_deepcopy(self, target, positional, named, message):
        return __import__('copy').deepcopy(target)

    def do_next(self, target, positional, named, message):
        return next_items(target, message['count'])

    def do_iter(self, target, positional, named, message):
        return iter(target)

    def do_len(self, target, positional, named, message):
        return len(target)

    def do_wait(self, target, positional, named, message):
        return __import__('asyncio').run(target)

    def do_fields(self, target, positional, named, message):
        return [field.name for field in __import__('dataclasses').fields(target)]

    def do_signature(self, target, positional, named, message):
        parameters = __import__('inspect').signature(target).parameters.values()
        return [[one.name, int(one.kind), [] if one.default is one.empty else [one.default]] for one in parameters]

    def do_item(self, target, positional, named, message):
        return target[positional[0]]


def load(role):
    """Set-up and program; a set-up that makes objects of the program's classes, for tests to use, comes behind it."""
    early = None
    role.run_prelude()
    try:
        role.run_setup()
    except Failed as failed:
        if not isinstance(failed.error, NameError):
            raise
        early = failed
    role.leave_setup()
    for code in role.program:
        if code is not None:
            role.run(code)
    if early is not None:
        role.run_setup()
    role.adapt_program()


def serve(role):
    load(role)
    role.talk.send(TO_ENGINE, {'op': 'ready'})
    subject = Subject(role)
    try:
        while True:
            subject.serve(subject.receive())
    except End:
        return 0
