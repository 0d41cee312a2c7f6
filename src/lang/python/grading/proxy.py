"""Proxies: what stands for an object of the other process, where tests and submission are in two (docs/protocols/grading-roles.md).

A proxy of an instance has a class that mirrors the instance's own, so that isinstance() and except work.  All that is done with
it is asked for by its Link (link.py).  What comes from a submission is hostile to the tests: a proxy asks Link.may_decide()
before its object is shown a value to compare or to reckon with, and what len() or str() give has to be of a builtin type.
"""

import sys

canon = load_part('canon')
expect, mro_of, name_of, module_of = (canon[name] for name in ('expect', 'mro_of', 'name_of', 'module_of'))

STATE = ' caisson'              # no program's own attribute

COMPARISONS = '__eq__', '__ne__', '__lt__', '__le__', '__gt__', '__ge__'
ARITHMETIC = tuple('__%s%s__' % (kind, name) for kind in ('', 'r', 'i') for name in (
    'add', 'sub', 'mul', 'truediv', 'floordiv', 'mod', 'divmod', 'pow', 'matmul', 'lshift', 'rshift', 'and', 'or', 'xor')
    if (kind, name) != ('i', 'divmod'))
# Whoever has these is shown a value that somebody may have expected.
DECIDING = frozenset((*COMPARISONS, *ARITHMETIC, '__contains__'))
# What an object that the tests made may be shown besides, if it is what came of reckoning with one, or of entering one.
WEIGHING = DECIDING - frozenset(COMPARISONS)
# What these give must be of a type that has no mind of its own.
RESULTS = {'__hash__': int, '__bool__': bool, '__len__': int, '__length_hint__': int, '__contains__': bool, '__repr__': str, '__str__': str,
           '__format__': str, '__bytes__': bytes, '__int__': int, '__float__': float, '__complex__': complex, '__index__': int,
           '__fspath__': str}
SPECIAL = frozenset((*DECIDING, *RESULTS, '__iter__', '__next__', '__reversed__', '__getitem__', '__setitem__', '__delitem__',
                     '__call__', '__enter__', '__exit__', '__round__', '__trunc__', '__floor__', '__ceil__', '__neg__', '__pos__',
                     '__abs__', '__invert__', '__missing__', '__aenter__', '__aexit__', '__aiter__', '__anext__'))
# Other names with underscores are asked for by libraries, to let an object decide for them; these only tell what it is.
TELLING = frozenset(('__name__', '__qualname__', '__module__', '__doc__', '__dict__', '__annotations__', '__members__', '__slots__', '__match_args__',
                     '__wrapped__', '__abstractmethods__', '__dataclass_params__', '__dataclass_fields__', '__defaults__', '__kwdefaults__', '__closure__',
                     '__mro__', '__bases__', '__all__', '__self__', '__func__', '_fields', '_field_defaults', '_asdict', '_replace', '_make'))
# A text, a number or a set says yes or no by these, and nobody but the tests may say that of a value.
PREDICATES = frozenset(('equals', 'startswith', 'endswith')).union(
    name for kind in (int, float, complex, str, bytes, bytearray, tuple, frozenset, list, set, dict, range) for name in dir(kind) if name[:2] == 'is')
# How the interpreter steers itself: raised by a call, they would end the loops and tasks of the tests, and not the test.
STEERING = {'StopIteration', 'StopAsyncIteration', 'GeneratorExit', 'CancelledError'}
GIVES_ITSELF = ('__enter__', '__iter__', *(name for name in ARITHMETIC if name[2] == 'i'))
# A value with a handle has these from its base, which was copied.
COPIED = COMPARISONS + ('__hash__', '__bool__', '__len__', '__iter__', '__contains__')
MADE, DERIVED = 2, 1            # by a call of its class from here; by an operator, from such an object
STABLE = '__bool__', '__len__'  # what an object says as long as nothing has changed it
CHANGING = frozenset(('append', 'extend', 'insert', 'remove', 'pop', 'clear', 'sort', 'reverse', 'add', 'discard', 'update', 'setdefault', 'popitem',
                      'intersection_update', 'difference_update', 'symmetric_difference_update'))
MUTATORS = '__setitem__', '__delitem__', '__iadd__', '__imul__', '__ior__', '__iand__', '__isub__', '__ixor__'

builtin_types = {name: kind for name, kind in __builtins__.items() if type(kind) is type}
builtin_types.update((kind.__name__, kind) for kind in map(type, (None, ..., NotImplemented)))
# Classes that are the same on both sides, by the module that they are said to be of.
LIBRARY = {'collections': ('deque', 'OrderedDict', 'Counter', 'defaultdict'), 'decimal': ('Decimal',), 'fractions': ('Fraction',),
           'datetime': ('datetime', 'date', 'time', 'timedelta', 'timezone'), 'uuid': ('UUID',)}
Generator = type((lambda: (yield))())
Function = type(lambda: None)


async def nothing():
    pass


coroutine = nothing()
coroutine.close()
Coroutine = type(coroutine)
FACES = {kind.__name__: kind for kind in (Generator, Coroutine, map, filter, zip, enumerate, reversed)}
MUTABLE = list, set, dict, bytearray
# How a copy of what an instance of a subclass holds is had, whatever that class has overridden.
CONTENT = {int: int.__int__, float: float.__float__, str: str.__str__, complex: complex.__complex__, bytes: lambda value: bytes.__getitem__(value, slice(None)),
           tuple: lambda value: list(tuple.__iter__(value)), frozenset: lambda value: list(frozenset.__iter__(value)),
           list: lambda value: list(list.__iter__(value)), set: lambda value: list(set.__iter__(value)),
           dict: lambda value: [list(pair) for pair in dict.items(value)], bytearray: lambda value: bytes(value)}


def lookup(kind, name):
    """What a type has under a name, and the class that has it."""
    for base in mro_of(kind):
        names = vars(base)
        if name in names:
            return names[name], base
    return None, None


def content_type(kind):
    return next((base for base in mro_of(kind) if base in CONTENT), None)


def is_known(kind):
    """Whether a class is the same on both sides."""
    module, name = module_of(kind), name_of(kind)
    if type(module) is not str:
        return False
    return builtin_types.get(name) is kind or (name in LIBRARY.get(module, ()) and vars(sys.modules.get(module, sys)).get(name) is kind)


def state_of(proxy):
    return object.__getattribute__(proxy, STATE)


class State:
    """What a proxy is made of."""

    __slots__ = 'link', 'handle', 'count', 'name', 'binds', 'flags', 'made', 'came', 'said', 'items', 'row', 'ending', '__weakref__'

    def __init__(self, link, handle):
        self.link, self.handle = link, handle
        self.count = 1                  # how often the other side has sent it, and thinks that we have it
        self.name, self.binds, self.flags = None, False, 0
        self.made = 0                   # MADE or DERIVED
        self.came = False               # as the value of something else than what made it
        self.said = {}
        self.items, self.row, self.ending = [], 0, None


class Root:
    """What the classes of all proxies inherit."""

    def __getattr__(self, name):
        if name[:2] == '__' and issubclass(type(self), BaseException):
            raise AttributeError(name)  # whoever prints one looks for notes
        if name == '__dataclass_fields__':
            return getattr(type(self), name)
        state = state_of(self)
        state.link.may_read(self, name)
        return state.link.request('get', state.handle, name=name)

    def __setattr__(self, name, value):
        if name[:2] == '__' or name == STATE:
            object.__setattr__(self, name, value)
        else:
            state = state_of(self)
            state.link.request('set', state.handle, (value,), name=name)

    def __delattr__(self, name):
        state = state_of(self)
        state.link.request('delete', state.handle, name=name)

    def __eq__(self, other):
        state = state_of(self)
        if not state.link.defines(type(self), '__eq__') or other is None:
            return True if is_proxy(other) and state_of(other).handle == state.handle else NotImplemented
        return special(self, '__eq__', other)

    def __hash__(self):
        state = state_of(self)
        return special(self, '__hash__') if state.link.defines(type(self), '__hash__') else hash((STATE, state.handle))

    def __repr__(self):
        return special(self, '__repr__')

    def __str__(self):
        return special(self, '__str__')

    def __format__(self, how):
        return special(self, '__format__', how)

    def __dir__(self):
        state = state_of(self)
        return [name for name in state.link.request('dir', state.handle) if type(name) is str]

    def __copy__(self):
        state = state_of(self)
        return state.link.request('copy', state.handle)

    def __deepcopy__(self, memo):
        state = state_of(self)
        return memo.setdefault(id(self), state.link.request('deepcopy', state.handle))

    def __reduce_ex__(self, protocol):
        raise state_of(self).link.unable('an object of the submission cannot be pickled')

    @property
    def __dict__(self):
        state = state_of(self)
        return state.link.request('get', state.handle, name='__dict__')

    def __del__(self):
        try:
            state = state_of(self)
            state.link.released.append([state.handle, state.count])
        except AttributeError:          # it was never finished
            pass


class Mirror(type):
    """The class of classes that stand for one of the other side."""

    def __new__(cls, name, bases, names, **options):
        link = next(link for base in bases for link in [getattr(base, STATE, None)] if link)
        raise link.unable('%s derives from a class of the submission, which is in another process' % name)

    def __init__(cls, *arguments, **options):
        pass

    def __call__(cls, *positional, **named):
        return link_of(cls).make(cls, positional, named)

    def __getattr__(cls, name):
        link = link_of(cls)
        if name == '__dataclass_fields__':
            return {field: data_field(field) for field in link.request('fields', link.class_handles[cls])}
        link.may_read(cls, name)
        return link.request('get', link.class_handles[cls], name=name)

    def __setattr__(cls, name, value):
        if name[:2] == '__':            # abc and typing keep their notes so
            type.__setattr__(cls, name, value)
        else:
            link = link_of(cls)
            link.request('set', link.class_handles[cls], (value,), name=name)

    def __delattr__(cls, name):
        link = link_of(cls)
        link.request('delete', link.class_handles[cls], name=name)

    def __iter__(cls):
        link = link_of(cls)
        return link.request('iter', link.class_handles[cls])

    def __len__(cls):
        link = link_of(cls)
        return expect(link.request('len', link.class_handles[cls]), int)

    def __bool__(cls):
        return True

    def __getitem__(cls, key):
        link = link_of(cls)
        return link.request('item', link.class_handles[cls], (key,))


def data_field(name):
    """As the library makes them: it looks for its own objects in there."""
    library = __import__('dataclasses')
    field = library.field()
    field.name, field._field_type = expect(name, str), library._FIELD
    return field


def link_of(cls):
    return type.__getattribute__(cls, STATE)


class Code:
    """What is known of the code of a function of the other side."""

    def __init__(self, state):
        self.co_name, self.co_flags, self.state = state.name, state.flags, state

    def __getattr__(self, name):
        raise self.state.link.unable('the code of %s() is in another process' % self.state.name)


class Callable(Root):
    def __call__(self, *positional, **named):
        state = state_of(self)
        return state.link.call(self, state.handle, positional, named)

    def __get__(self, instance, owner=None):
        return self if instance is None or not state_of(self).binds else type(self.__call__)(self, instance)

    @property
    def __signature__(self):
        inspect = __import__('inspect')
        state = state_of(self)
        return inspect.Signature([inspect.Parameter(name, inspect._ParameterKind(kind), **({'default': default[0]} if default else {}))
                                  for name, kind, default in state.link.request('signature', state.handle)])

    @property
    def __class__(self):
        return Function if state_of(self).binds else type(self)

    @property
    def __code__(self):
        state = state_of(self)
        if not state.binds:
            raise AttributeError('__code__')
        return Code(state)

    __name__ = property(lambda self: state_of(self).name)
    __doc__ = property(lambda self: Root.__getattr__(self, '__doc__'))
    __module__ = property(lambda self: Root.__getattr__(self, '__module__'))


class Iterator(Root):
    """Items come one by one, since to make one may show; more at once when nothing else is asked meanwhile."""

    def __iter__(self):
        return self

    def __next__(self):
        state = state_of(self)
        if not state.items and state.ending is None:
            state.link.fetch(state)
        if state.items:
            return state.items.pop()
        ending, state.ending = state.ending, StopIteration()
        raise ending


class GeneratorProxy(Iterator):
    def send(self, value):
        return self.drive('send', value)

    def throw(self, *error):
        return self.drive('throw', *error)

    def close(self):
        return self.drive('close')

    def drive(self, name, *positional):
        state = state_of(self)
        return state.link.request('method', state.handle, positional, name=name)


class CoroutineProxy(Root):
    """It runs over there, in one go, when it is first waited for."""

    def send(self, value):
        state = state_of(self)
        raise StopIteration(state.link.request('wait', state.handle))

    def throw(self, kind, value=None, trace=None):
        raise kind if value is None else value

    def close(self):
        pass

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)


def with_face(base, face):
    """isinstance() believes this; the interpreter itself does not."""
    return type(face.__name__, (base,), {'__class__': property(lambda self: face)})


BASES = {Generator: GeneratorProxy, Coroutine: CoroutineProxy}
FACED = {name: with_face(BASES.get(face, Iterator), face) for name, face in FACES.items()}


PROXIES = frozenset((Callable, Iterator, *FACED.values()))


def is_proxy(value):
    kind = type(value)
    return type(kind) is Mirror or kind in PROXIES


def special(proxy, name, *positional):
    """Ask the object of a proxy for what a special method of its class does."""
    state = state_of(proxy)
    if name in DECIDING:
        state.link.may_decide(proxy, name, positional[0])
    before = state.made, state.came
    value = state.link.special(proxy, name, positional)
    if name in RESULTS and type(value) is not RESULTS[name] and value is not NotImplemented:
        raise TypeError('%s() of %s gave %s' % (name, type(proxy).__name__, type(value).__name__))
    if name in STABLE:
        state.link.still_says(proxy, name, value)
    if is_proxy(value):
        if value is proxy and name in GIVES_ITSELF:
            state.made, state.came = before if name in ARITHMETIC else (min(before[0], DERIVED), before[1])
        elif name in ARITHMETIC and before[0] and type(value) is type(proxy) and not state_of(value).came:
            state_of(value).made = DERIVED
    return value


def forward(name):
    def method(self, *positional):
        return special(self, name, *positional)
    method.__name__ = name
    return method


def leave(self, kind, error, trace):
    """It may swallow what its own side raised, and what was raised to be swallowed; never what says that a test has failed."""
    swallows = special(self, '__exit__', kind, error, None)
    return state_of(self).link.may_swallow(error, swallows)


async def leave_later(self, kind, error, trace):
    swallows = await special(self, '__aexit__', kind, error, None)
    return state_of(self).link.may_swallow(error, swallows)


async def follow(self):
    """The next item of an asynchronous iterator: the end of it is one that the tests wait for."""
    coroutine = special(self, '__anext__')      # which is there for as long as we have it
    state = state_of(coroutine)
    return state.link.request('wait', state.handle, name='__anext__')


def iterate(self):
    """Of what has a length, as many items come as it says: who counts first and looks afterwards sees the same."""
    items = special(self, '__iter__')
    link = state_of(self).link
    return counted(self, items) if items is not self and link.defines(type(self), '__len__') and type(items) in PROXIES else items


def iterate_by_number(self):
    """As the interpreter does it where there is no __iter__()."""
    return counted(self, items_by_number(self))


def items_by_number(container):
    number = 0
    try:
        while True:
            yield special(container, '__getitem__', number)
            number += 1
    except IndexError:
        return


def counted(container, items):
    number = 0
    for item in items:
        number += 1
        yield item
    state_of(container).link.had_items(container, number, len(container))


class Forwarded:
    """An attribute of a class, and of its instances, that have a copy of what they hold and do without Root.__getattr__()."""

    def __init__(self, name, own=False):
        self.name, self.own = name, own

    def __get__(self, instance, owner):
        if instance is None or self.name == '__doc__':
            return Mirror.__getattr__(owner, self.name)
        base = content_type(owner)
        if base is not None and hasattr(base, self.name) and state_of(instance).link.is_value(instance) and self.name not in CHANGING:
            if self.own:
                raise state_of(instance).link.unable('the submission gave a %s of its own, whose %s() is not that of %s' % (
                    owner.__name__, self.name, base.__name__))
            return getattr(base, self.name).__get__(instance, owner)
        return Root.__getattr__(instance, self.name)

    def __set__(self, instance, value):
        Root.__setattr__(instance, self.name, value)


FORWARD = {**{name: forward(name) for name in SPECIAL}, '__call__': Callable.__call__, '__exit__': leave, '__aexit__': leave_later, '__anext__': follow, '__iter__': iterate}
