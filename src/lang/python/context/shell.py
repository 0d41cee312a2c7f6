"""What get_ipython() returns in a context: of IPython's shell as much as libraries and notebooks look for.

It is made when it is first asked for.  Magics are those of magics.py, pictures and tables go the way of display().
"""

import sys

magics, display, report = load_part('magics'), load_part('display'), load_part('report')
VERSION = 8, 5, 0, ''           # of the IPython whose names these are
EVENTS = 'pre_execute', 'pre_run_cell', 'post_execute', 'post_run_cell', 'shell_initialized'


class Config(dict):
    """A section of settings; nothing is set.  What is asked for by an attribute is made, as traitlets do it."""

    def __getattr__(self, name):
        if name[:1] == '_':
            raise AttributeError(name)
        if name[:1].isupper():
            return self.setdefault(name, Config())
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Events:
    """Functions of the program's that are called before and after an execution."""

    def __init__(self):
        self.callbacks = {name: [] for name in EVENTS}

    def register(self, event, function):
        if not callable(function):
            raise TypeError('Need a callable, got %r' % function)
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        if function not in self.callbacks[event]:
            raise ValueError('Function %r is not registered as a %s callback' % (function, event))
        self.callbacks[event].remove(function)


class Printer:
    """What a function for text/plain is given to write to."""

    def __init__(self):
        self.parts = []

    def text(self, text):
        self.parts.append(text)

    def pretty(self, value):
        self.parts.append(repr(value))

    def breakable(self, text=' '):
        self.parts.append(text)

    def break_(self):
        self.parts.append('\n')

    def begin_group(self, indent=0, text=''):
        self.parts.append(text)

    def end_group(self, dedent=0, text=''):
        self.parts.append(text)


class Formatter:
    """Functions for one media type, by the type of what is shown."""

    def __init__(self, kind):
        self.format_type = kind
        self.enabled = True
        self.type_printers, self.deferred_printers = {}, {}

    def for_type(self, kind, function=None):
        if type(kind) is str:
            module, _, name = kind.rpartition('.')
            return self.for_type_by_name(module, name, function)
        before = self.type_printers.get(kind)
        if function is not None:
            self.type_printers[kind] = function
        return before

    def for_type_by_name(self, module, name, function=None):
        before = self.deferred_printers.get((module, name))
        if function is not None:
            self.deferred_printers[module, name] = function
        return before

    def pop(self, kind, default=None):
        if type(kind) is str:
            module, _, name = kind.rpartition('.')
            return self.deferred_printers.pop((module, name), default)
        return self.type_printers.pop(kind, default)

    def lookup_by_type(self, kind):
        for base in type.__dict__['__mro__'].__get__(kind):
            for function in self.type_printers.get(base), self.deferred_printers.get((base.__module__, base.__name__)):
                if function is not None:
                    return function
        raise KeyError('No registered printer for %s' % kind)

    def lookup(self, value):
        return self.lookup_by_type(type(value))

    def find(self, kind):
        """What has been registered for a type, as a function of the value; or None."""
        try:
            function = self.enabled and self.lookup_by_type(kind)
        except KeyError:
            return None
        return (lambda value: self.printed(function, value)) if function and self.format_type == 'text/plain' else function or None

    @staticmethod
    def printed(function, value):
        printer = Printer()
        function(value, printer, False)
        return ''.join(printer.parts)


class DisplayFormatter:
    def __init__(self, shell):
        self.shell = shell
        self.formatters = {kind: Formatter(kind) for kind in ('text/plain', *display['METHODS'])}
        self.active_types = list(self.formatters)

    def format(self, obj, include=None, exclude=None):
        """(data, metadata) of what display() shows of an object."""
        bundle = self.shell.session.bundle_of(obj)
        loads = sys.modules['json'].loads
        data = {kind: loads(text) for kind, text in bundle.data.items()
                if (include is None or kind in include) and kind not in (exclude or ())}
        return data, {kind: loads(text) for kind, text in bundle.metadata.items()}


class DisplayPublisher:
    def __init__(self, session):
        self.session = session

    def publish(self, data, metadata=None, source=None, **others):
        self.session.show(data, data, metadata)

    def clear_output(self, wait=False):
        """What was sent is not taken back."""


class Manager:
    """The magics that there are: {'line': {name: function}, 'cell': {name: function}}."""

    def __init__(self, of):
        self.of = of

    @property
    def magics(self):
        return {kind: {name: self.of.find(kind, name) for name in self.of.known(kind)} for kind in ('line', 'cell')}

    def lsmagic(self):
        return {kind: self.of.known(kind) for kind in ('line', 'cell')}


class Kernel:
    implementation, language = 'caisson', 'python'

    def __init__(self, shell):
        self.shell = shell


class Result:
    """Of run_cell()."""

    def __init__(self):
        self.result = self.error_before_exec = self.error_in_exec = None
        self.execution_count = None

    @property
    def success(self):
        return self.error_before_exec is None and self.error_in_exec is None

    def raise_error(self):
        for error in self.error_before_exec, self.error_in_exec:
            if error is not None:
                raise error


class InteractiveShell:
    """Base of what there is one of."""

    ast_node_interactivity = 'last_expr'
    colors = 'NoColor'
    autoawait = True
    _instance = None

    @classmethod
    def initialized(cls):
        return InteractiveShell._instance is not None

    @classmethod
    def instance(cls, *arguments, **settings):
        return InteractiveShell._instance


class ZMQInteractiveShell(InteractiveShell):
    __module__ = 'ipykernel.zmqshell'

    def __init__(self, session):
        InteractiveShell._instance = self
        self.session = session
        self.config = Config()
        self.events = Events()
        self.display_pub = DisplayPublisher(session)
        self.display_formatter = DisplayFormatter(self)
        self.magics_manager = Manager(session.magics)
        self.kernel = Kernel(self)
        self.parent = None

    # ---- names

    @property
    def user_ns(self):
        return self.session.names

    user_global_ns = user_ns

    @property
    def user_module(self):
        return sys.modules['__main__']

    @property
    def execution_count(self):
        return self.session.cells

    def push(self, variables, interactive=True):
        """Set variables of the program's."""
        if issubclass(type(variables), dict):
            self.user_ns.update(variables)
            return
        frame = sys._getframe(1)
        for name in variables.split() if issubclass(type(variables), str) else variables:
            self.user_ns[name] = eval(name, frame.f_globals, frame.f_locals)

    def drop_by_id(self, variables):
        for name, value in variables.items():
            if self.user_ns.get(name) is value:
                del self.user_ns[name]

    # ---- code

    def run_line_magic(self, magic_name, line, _stack_depth=1):
        return self.session.magics.line(magic_name, line, sys._getframe(1))

    def run_cell_magic(self, magic_name, line, cell):
        return self.session.magics.cell(magic_name, line, cell, sys._getframe(1))

    def magic(self, text):
        name, _, rest = text.lstrip('%').partition(' ')
        return self.session.magics.line(name, rest.strip(), sys._getframe(1))

    def find_magic(self, magic_name, magic_kind='line'):
        return self.session.magics.find(magic_kind, magic_name)

    find_line_magic = find_magic

    def find_cell_magic(self, magic_name):
        return self.session.magics.find('cell', magic_name)

    def register_magic_function(self, func, magic_kind='line', magic_name=None):
        """A function of the program's as a magic: func(line), or func(line, cell)."""
        self.session.magics.add(func, magic_kind, magic_name or func.__name__)

    def run_cell(self, raw_cell, store_history=False, silent=False, **others):
        result = Result()
        try:
            result.result = self.session.magics.execute(raw_cell)
        except SyntaxError as error:
            result.error_before_exec = error
        except Exception as error:
            result.error_in_exec = error
        if not result.success:
            self.showtraceback_of(result.error_before_exec or result.error_in_exec)
        return result

    def ex(self, cmd):
        exec(cmd, self.user_ns)

    def ev(self, expr):
        return eval(expr, self.user_ns)

    def system(self, cmd):
        self.session.magics.shell(cmd, sys._getframe(1))

    system_raw = system_piped = system

    def getoutput(self, cmd, split=True, depth=0):
        lines = self.session.magics.lines(cmd, sys._getframe(1))
        return lines if split else '\n'.join(lines)

    def var_expand(self, cmd, depth=0, formatter=None):
        return self.session.magics.expand(cmd, sys._getframe(1))

    # ---- what is shown

    def showtraceback(self, *arguments, **settings):
        error = sys.exc_info()[1]
        if error is not None:
            self.showtraceback_of(error)

    def showtraceback_of(self, error):
        self.session.show_exception(error)

    def write(self, text):
        sys.stdout.write(text)

    write_err = write

    # ---- what there is no screen or terminal for

    def enable_gui(self, gui=None):
        """No window could be seen."""

    def enable_matplotlib(self, gui=None):
        """Figures are shown in any case."""
        return 'inline', 'module://' + display['FIGURES']

    def set_next_input(self, text, replace=False):
        """There is no input line."""

    def register_post_execute(self, function):
        self.events.register('post_execute', function)


def register_magic(kinds, shell):
    """A decorator of IPython.core.magic, bare or with the magic's name."""
    def register(given):
        def add(function, name=None):
            for kind in kinds:
                shell().register_magic_function(function, kind, name)
            return function

        return (lambda function: add(function, given)) if type(given) is str else add(given)

    return register
