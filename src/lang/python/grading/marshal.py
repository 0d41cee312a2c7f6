"""How values go from one process to the other, where tests and submission are in two (docs/protocols/grading-roles.md).

They go in canonical form (canon.py).  What has none stays where it is, and the other side gets a handle, for which it makes a
proxy (proxy.py).  What a submission sends is hostile to the tests: nothing here evaluates, unpickles or looks a name up that
came in a message, but in tables; whatever is wrong is an exception.
"""

import sys
from _collections import defaultdict

canon, proxy = load_part('canon'), load_part('proxy')
CanonError, expect, mro_of, name_of, module_of, tagged = (
    canon[name] for name in ('CanonError', 'expect', 'mro_of', 'name_of', 'module_of', 'tagged'))
CONTENT, FACED, LIBRARY, MUTABLE, SPECIAL, STATE, builtin_types = (
    proxy[name] for name in ('CONTENT', 'FACED', 'LIBRARY', 'MUTABLE', 'SPECIAL', 'STATE', 'builtin_types'))
Callable, Iterator, Mirror, Root, State = (proxy[name] for name in ('Callable', 'Iterator', 'Mirror', 'Root', 'State'))
content_type, is_known, is_proxy, lookup, state_of = (
    proxy[name] for name in ('content_type', 'is_known', 'is_proxy', 'lookup', 'state_of'))

MESSAGE_MAX = load_part('role')['MESSAGE_MAX']
library = load_part('library')
NAMES_MAX = 1000                # public names of a class
VIEWS = {'dict_keys': 'keys', 'dict_values': 'values', 'dict_items': 'items',
         'odict_keys': 'keys', 'odict_values': 'values', 'odict_items': 'items'}
view_of = {'keys': dict.keys, 'values': dict.values, 'items': dict.items}
Function = type(load_part)
KINDS_OF_FUNCTION = 0x2a0       # co_flags of generators, coroutines and asynchronous generators


def flags_of(function):
    flags = function.__code__.co_flags
    return int(flags) & KINDS_OF_FUNCTION


def is_array(kind):
    return canon['type_name'](kind) == 'numpy.ndarray'


class Encoder(canon['Encoder']):
    def __init__(self, link, theirs=()):
        super().__init__(self.encode_other, MESSAGE_MAX)
        self.link = link
        self.theirs = {id(container): number for number, container in enumerate(theirs)}
        self.objects = set()    # handles of those with a content that are in this message
        self.described = []

    def document(self, value):
        if type(value) is defaultdict:
            return self.begin(value) or tagged('defaultdict', [self.document(value.default_factory), self.pairs(dict.items(value))])
        if is_array(type(value)):
            if value.dtype.kind == 'O':
                return self.encode_other(value, self)
            return self.begin(value) or tagged('array', canon['encode_array'](self, value)['v'])
        return super().document(value)

    def begin(self, value):
        """What the other side sent, as it was sent."""
        number = self.theirs.get(id(value))
        return super().begin(value) if number is None else tagged('arg', number)

    def contents(self, container):
        if issubclass(type(container), dict):
            return self.pairs(dict.items(container))
        if is_array(type(container)):
            return canon['encode_array'](self, container)['v']
        return self.document(bytes(container)) if issubclass(type(container), bytearray) else self.items(container)

    def encode_other(self, value, _):
        """Of what has no canonical form."""
        kind = type(value)
        if is_proxy(value):
            return tagged('yours', state_of(value).handle)
        if kind is Mirror:
            return tagged('yours', self.link.class_handles[value])
        if value is NotImplemented:
            return tagged('notimplemented', None)
        view = VIEWS.get(canon['type_name'](kind))
        if view:
            return self.encode_view(view, value)
        if kind is type(sys):
            return tagged('module', value.__name__)
        document = self.link.copies(value) and library['encode'](value, self)
        if document:
            return document
        name = self.link.library_name(value)
        if name:
            return tagged('library', name)
        self.link.may_export(value)
        if issubclass(kind, type):
            return self.encode_class(value)
        if issubclass(kind, BaseException):
            return self.encode_error(value)
        if self.link.is_callable(value):
            return tagged('callable', [self.link.export(value), self.name_of(value), kind is Function, flags_of(value) if kind is Function else 0])
        if self.link.is_iterator(value):
            return tagged('iterator', [self.link.export(value), kind.__name__])
        return self.encode_object(value, kind)

    @staticmethod
    def name_of(value):
        name = getattr(value, '__name__', None)
        return name if type(name) is str else '?'

    def encode_view(self, name, value):
        pairs = list(value) if name == 'items' else [(item, None) if name == 'keys' else (number, item) for number, item in enumerate(value)]
        return tagged('view', [name, self.pairs(pairs)])

    def encode_class(self, cls, of_instance=False):
        if is_known(cls) and not of_instance:
            return tagged('type', [module_of(cls), name_of(cls)])
        return self.describe(cls)

    def describe(self, cls):
        handle = self.link.export(cls)
        if handle in self.link.told or handle in self.described:
            return tagged('class', [handle])
        self.described.append(handle)
        bases = [self.describe_base(base) for base in cls.__bases__ if base is not object]
        own = [base for base in mro_of(cls) if base is not object and not is_known(base)] if content_type(cls) or issubclass(cls, BaseException) else []
        names = sorted({name for base in own for name in vars(base) if type(name) is str and name[:1] != '_'})[:NAMES_MAX]
        return tagged('class', [handle, name_of(cls).rpartition('.')[2], name_of(cls), str(module_of(cls)), bases, self.specials(cls), names])

    def describe_base(self, base):
        if is_known(base) and (base in CONTENT or issubclass(base, BaseException)):
            return self.encode_class(base)
        return self.describe(base)

    @staticmethod
    def specials(cls):
        """Special methods that are the class's own, and not of a base that both sides have.  "!": it says that it has none."""
        found = []
        for name in sorted(SPECIAL):
            method, base = lookup(cls, name)
            if base is not None and base is not object and not (base in CONTENT or is_known(base) and issubclass(base, BaseException)):
                found.append(name if method is not None else '!' + name)
        return found

    def encode_object(self, value, kind):
        handle = self.link.export(value)
        base = content_type(kind)
        if base is None:
            return tagged('object', [handle, self.encode_class(kind, True)])
        if handle in self.objects:
            return tagged('same', handle)
        self.objects.add(handle)
        content = CONTENT[base](value)
        content = content if base in (int, float, complex, str, bytes, bytearray) else [
            [self.document(part) for part in item] if base is dict else self.document(item) for item in content]
        return tagged('object', [handle, self.encode_class(kind, True), content if type(content) is list else self.document(content)])

    def encode_error(self, error):
        kind = type(error)
        state = names_of_error(error).get(STATE)
        if state is not None:
            return tagged('yours', state.handle)
        handle = self.link.export_error(error)
        cause = error.__cause__
        self.depth += 1
        if self.depth > canon['DEPTH_MAX']:
            raise CanonError('too many causes')
        document = tagged('error', [handle, self.encode_class(kind), self.parts_of_error(error), self.state_of_error(error),
                                    None if cause is None else self.encode_error(cause)])
        self.depth -= 1
        return document

    def parts_of_error(self, error):
        """An assertion's message may tell what was expected.  Who raised it gets it back as it was."""
        if self.link.keeps_errors and issubclass(type(error), AssertionError):
            return []
        return [self.lossy(part) for part in BaseException.args.__get__(error)]

    def lossy(self, value):
        try:
            return self.document(value)
        except CanonError:
            return '?'

    @staticmethod
    def state_of_error(error):
        """What the classes of the library keep in their instances: numbers and texts."""
        names = dict(names_of_error(error))
        if issubclass(type(error), OSError):
            names.update(filename=error.filename)
        if issubclass(type(error), (ImportError, NameError)):
            names.update(name=error.name)
        return [[name, value] for name, value in names.items() if type(name) is str and name[:1] != '_' and type(value) in (str, int, bool)
                and (type(value) is not int or abs(value) < 1 << 64)][:NAMES_MAX]


class Decoder(canon['Decoder']):
    def __init__(self, link, ours=()):
        super().__init__(self.decode_other)
        self.link = link
        self.ours = ours        # containers of the request that this answers
        self.objects = {}
        self.frames = []        # of pandas, with what they were
        self.changeable = []    # objects of ours with a content, which this request may change

    def decode_other(self, document, _):
        tag = document.get('t')
        decode = self.TAGS.get(tag) if type(tag) is str else None
        if decode is None or len(document) != 2 or 'v' not in document:
            raise CanonError('%.100r is no type' % (tag,))
        return decode(self, document['v'])

    def decode_defaultdict(self, document):
        factory, pairs = expect(document, list)
        value = self.begin(defaultdict())
        value.default_factory = self.value(factory)
        for key, item in self.pairs(pairs):
            value[key] = item
        return value

    def decode_array(self, document):
        return self.begin(canon['decode_array'](self, document))

    def decode_arg(self, number):
        if not 0 <= expect(number, int) < len(self.ours):
            raise CanonError('there is no such argument')
        return self.ours[number]

    def decode_yours(self, handle):
        return self.note_changeable(self.link.exported(handle))

    def note_changeable(self, value):
        if type(value) not in MUTABLE and content_type(type(value)) in MUTABLE:
            self.changeable.append(value)
        return value

    def decode_notimplemented(self, document):
        return NotImplemented

    def decode_view(self, document):
        name, pairs = expect(document, list)
        return view_of[name](dict(self.pairs(pairs)))

    def decode_module(self, name):
        return self.link.find_module(expect(name, str))

    def decode_library(self, document):
        module, name = expect(document, list)
        return self.link.find_in_library(module, name)

    def decode_type(self, document):
        module, name = expect(document, list)
        if module == 'builtins':
            return builtin_types[name]
        if name not in LIBRARY[module]:
            raise CanonError('there is no such type')
        return canon['found'](module, name)

    def decode_callable(self, document):
        handle, name, binds, flags = expect(document, list)
        return self.proxy(handle, Callable, name=expect(name, str), binds=expect(binds, bool), flags=expect(flags, int))

    def decode_iterator(self, document):
        handle, name = expect(document, list)
        return self.proxy(handle, FACED.get(expect(name, str), Iterator))

    def proxy(self, handle, kind, **members):
        known = self.link.find_proxy(expect(handle, int))
        if known is not None:
            return known
        proxy = object.__new__(kind)
        return self.link.keep_proxy(proxy, handle, **members)

    def decode_class(self, document):
        mirror = self.mirror(document)
        self.link.class_was_given(mirror)
        return mirror

    def mirror(self, document):
        handle = expect(expect(document, list)[0], int)
        known = self.link.classes.get(handle)
        if known is not None:
            return known
        _, name, qualname, module, bases, specials, own = document
        real = self.link.real_error(expect(module, str), expect(qualname, str))
        if real is not None:
            self.link.classes[handle] = real
            return real
        bases = [self.class_of(base) for base in expect(bases, list)]
        return self.link.make_mirror(handle, expect(name, str), qualname, module, bases, specials, own)

    def class_of(self, document):
        if expect(document, dict).get('t') == 'class':
            return self.mirror(document['v'])
        return expect(self.value(document), type)

    def decode_object(self, document):
        handle, cls, *content = expect(document, list)
        mirror = self.class_of(cls)
        if type(mirror) is not Mirror or issubclass(mirror, BaseException):
            raise CanonError('an object has no such class')
        base = content_type(mirror)
        known = self.link.find_proxy(expect(handle, int))
        if (base is None) != (content == []) or (known is not None and type(known) is not mirror):
            raise CanonError('an object has a content that is not its own')
        if known is not None:
            state_of(known).came = True
        if base is None:
            return known if known is not None else self.link.keep_proxy(object.__new__(mirror), handle)
        if base in MUTABLE:
            proxy = known if known is not None else self.link.keep_proxy(base.__new__(mirror), handle)
            self.objects[handle] = proxy
            self.refill(proxy, content[0])
            return proxy
        content = content[0] if base in (tuple, frozenset) else self.value(content[0])
        content = base(self.items(content)) if base in (tuple, frozenset) else expect(content, base)
        if known is None:
            known = self.link.keep_proxy(base.__new__(mirror, content), handle)
        self.objects[handle] = known
        return known

    def decode_same(self, handle):
        return self.objects[handle]

    def refill(self, container, document):
        """Give a container, ours or a proxy, the contents that it has on the other side."""
        base = content_type(type(container))
        if is_array(type(container)):
            array = canon['decode_array'](self, document)
            if array.shape != container.shape or array.dtype != container.dtype:
                raise CanonError('an array has another shape than before')
            container[...] = array
        elif base is None:              # a deque
            items = self.items(document)
            container.clear()
            container.extend(items)
        elif base is dict:
            pairs = list(self.pairs(document))
            dict.clear(container)
            setter = next(kind for kind in mro_of(type(container)) if type(kind) is not Mirror and kind is not Root).__setitem__
            for key, item in pairs:
                setter(container, key, item)
        elif base is bytearray:
            bytearray.__setitem__(container, slice(None), expect(self.value(document), bytes))
        elif base is list:
            list.__setitem__(container, slice(None), self.items(document))
        else:
            items = self.items(document)
            set.clear(container)
            set.update(container, items)

    def decode_error(self, document):
        handle, cls, parts, state, cause = expect(document, list)
        cls = self.class_of(cls)
        parts = self.items(parts)
        if not issubclass(cls, BaseException):
            raise CanonError('a class is no exception')
        known = self.link.find_proxy(handle) if handle is not None and type(cls) is Mirror else None
        error = known if known is not None else cls.__new__(cls, *parts)
        BaseException.args.__set__(error, tuple(parts))
        if type(cls) is not Mirror:
            fill_error(error, parts, {expect(name, str): item for name, item in expect(state, list)})
            if handle is not None:
                names_of_error(error)[STATE] = State(self.link, expect(handle, int))
        elif known is None:
            self.link.keep_proxy(error, expect(handle, int))
        if cause is not None:
            error.__cause__ = expect_error(self.value(cause))
        return error

    TAGS = {'defaultdict': decode_defaultdict, 'array': decode_array, 'arg': decode_arg, 'yours': decode_yours, 'notimplemented': decode_notimplemented,
            'view': decode_view, 'module': decode_module, 'type': decode_type, 'library': decode_library, 'callable': decode_callable,
            'iterator': decode_iterator, 'class': decode_class, 'object': decode_object, 'same': decode_same, 'error': decode_error, **library['TAGS']}


names_of_error = BaseException.__dict__['__dict__'].__get__


def expect_error(value):
    if not issubclass(type(value), BaseException):
        raise CanonError('it is no exception')
    return value


def fill_error(error, parts, state):
    if issubclass(type(error), OSError) and 'filename' in state and type(error).__init__ is OSError.__init__:
        OSError.__init__(error, *parts[:2], state.pop('filename'))
    elif type(error).__module__ == 'builtins':
        type(error).__init__(error, *parts)
    for name, value in state.items():
        if name[:1] != '_' and type(value) in (str, int, bool):
            object.__setattr__(error, name, value)


def parts_of(container):
    """What tells whether it was changed: the very objects that it holds."""
    base = content_type(type(container))
    if base is bytearray:
        return bytes(container)
    if is_array(type(container)):
        return container.tobytes()
    if base is dict:
        return [part for pair in dict.items(container) for part in pair]
    return list((base or type(container)).__iter__(container))


def differ(before, after):
    if type(before) is bytes:
        return before != after
    return len(before) != len(after) or any(one is not other for one, other in zip(before, after))
