"""Calls between the process of the tests and that of the submission: both ends of it (docs/protocols/grading-roles.md).

A Link sends requests and answers as messages, and serves those of the other side while it waits for an answer.  tests.py and
subject.py say what may be asked of them.  A message, with `n` its number in a request and `re` that of the request in an answer:

    {"n", "op", "h": handle, "a": [VALUE...], "k": [[name, VALUE]...], "gone": [[handle, count]...], and what the op needs}
    {"re", "v": VALUE, or "error": VALUE, or "refused": text, "c": changed arguments, "f": changed contents of handles}

and in both, from a submission, "o": what it has written to its standard output and error.
"""

import sys
from sys import getrefcount
from _thread import RLock
from _weakref import ref
from posix import _exit

canon, proxy, handover, role = load_part('canon'), load_part('proxy'), load_part('marshal'), load_part('role')
CanonError, deep, expect, mro_of, module_of, tagged, read_json, write_json = (
    canon[name] for name in ('CanonError', 'deep', 'expect', 'mro_of', 'module_of', 'tagged', 'read_json', 'write_json'))
CONTENT, COPIED, FORWARD, MADE, MUTABLE, MUTATORS, SPECIAL, STATE = (
    proxy[name] for name in ('CONTENT', 'COPIED', 'FORWARD', 'MADE', 'MUTABLE', 'MUTATORS', 'SPECIAL', 'STATE'))
Coroutine, Forwarded, Mirror, Root, State = (proxy[name] for name in ('Coroutine', 'Forwarded', 'Mirror', 'Root', 'State'))
content_type, is_known, lookup, state_of = (proxy[name] for name in ('content_type', 'is_known', 'lookup', 'state_of'))
Decoder, Encoder, differ, expect_error, parts_of = (
    handover[name] for name in ('Decoder', 'Encoder', 'differ', 'expect_error', 'parts_of'))
library = load_part('library')
MESSAGE_MAX, TO_ENGINE, TO_PEER = (role[name] for name in ('MESSAGE_MAX', 'TO_ENGINE', 'TO_PEER'))

CALLS_MAX = 100                 # one within the other
HANDLES_MAX = 100000
FRAMES_PER_CALL = 20            # of ours, which the program's recursion limit is not meant for
OF_ITERATORS = 'builtins', 'itertools', '_collections', '_sre', 'functools'     # modules whose iterators are nothing else
KEPT_MAX = 32                   # arguments that are kept in step after their call has ended
REFERENCES = 5                  # of an argument that nobody has kept
BATCH_FROM, BATCH = 16, 64      # an iterator that is only iterated over gives so many items at once, after so many one by one


class Broken(Exception):
    """What came is no message, or not one that may come now."""


def next_items(iterator, count):
    """[items, ending]: None if there may be more, True at the end, or what was raised instead of an item."""
    items = []
    try:
        while len(items) < count:
            items.append(next(iterator))
    except StopIteration as ending:
        return [items, ending if ending.value is not None else True]
    except Exception as error:
        return [items, error]
    return [items, None]


class Link:
    """One end.  The other is as this one; what differs is what subject.py and tests.py let be done."""

    keeps_errors = False            # an exception of ours that comes back is what it was

    def __init__(self, talk):
        self.talk = talk
        self.lock = RLock()
        self.number = 0
        self.depth = 0
        self.last = None                # what the last request was for
        self.abandoned = set()
        self.exports, self.export_handles = {}, {}
        self.next_handle = 0
        self.told = set()
        self.proxies = {}
        self.classes, self.class_handles, self.specials = {}, {}, {}
        self.released = []
        self.kept, self.handed = [], {}   # arguments that who was called has kept, and who called

    # ---- what the ends have of their own

    def perform(self, op, handle, positional, named, message):
        """Do what the other side asks for."""
        raise NotImplementedError

    def from_engine(self, document):
        raise NotImplementedError

    def may_export(self, value):
        """Raises if the other side must not have a handle for this."""

    def may_decide(self, proxy, name, other):
        """Raises if the object of a proxy must not be shown another value to compare or to reckon with."""

    def may_read(self, proxy, name):
        """Raises if an object, or a class, must not be asked for what it has under a name."""

    def may_swallow(self, error, swallows):
        """What __exit__() of a proxy gives."""
        return swallows

    def is_value(self, proxy):
        """Whether it came as a value, and its base's methods are those of its copy."""
        return False

    def still_says(self, proxy, name, value):
        """Raises if an object has changed its mind."""

    def had_items(self, proxy, number, length):
        """Raises if an object that was iterated over has given more or fewer items than it says it has."""

    def call(self, proxy, handle, positional, named):
        return self.request('call', handle, positional, named)

    def special(self, proxy, name, positional):
        return self.request('special', state_of(proxy).handle, positional, name=name)

    def copies(self, value):
        """Whether a value of the library is copied, if it can be."""
        return True

    def library_name(self, value):
        """(module, name) of what the other side has as well, and should use there."""
        return None

    def class_was_given(self, mirror):
        """A class came as a value, and not as that of an object."""

    def unable(self, message):
        """The exception for what cannot be done between two processes."""
        return TypeError(message)

    def broken(self, message):
        """The exception for a message that is none."""
        return Broken(message)

    # ---- objects of ours

    def export(self, value):
        handle = self.export_handles.get(id(value))
        if handle is None:
            if len(self.exports) >= HANDLES_MAX:
                raise CanonError('there are too many objects')
            handle = self.next_handle = self.next_handle + 1
            self.export_handles[id(value)] = handle
            self.exports[handle] = [value, 0]
        self.exports[handle][1] += 1
        return handle

    def export_error(self, error):
        """A handle, if it needs one: those of classes that both sides know are made anew."""
        return None if is_known(type(error)) else self.export(error)

    def exported(self, handle):
        entry = self.exports.get(handle) if type(handle) is int else None
        if entry is None:
            raise CanonError('there is no such object')
        return entry[0]

    def release(self, pairs):
        for handle, count in pairs:
            entry = self.exports.get(handle)
            if entry is None or type(count) is not int or issubclass(type(entry[0]), type):
                continue
            entry[1] -= count
            if entry[1] <= 0:
                del self.export_handles[id(entry[0])], self.exports[handle]

    @staticmethod
    def is_callable(value):
        """A function of whatever kind; an object of a class that can be called is an object."""
        return callable(value) and module_of(type(value)) in ('builtins', 'functools', '_functools', 'operator')

    @staticmethod
    def is_iterator(value):
        kind = type(value)
        return kind is Coroutine or lookup(kind, '__next__')[0] is not None and module_of(kind) in OF_ITERATORS

    # ---- objects of theirs

    def find_proxy(self, handle):
        reference = self.proxies.get(handle)
        proxy = reference and reference()
        if proxy is not None:
            state_of(proxy).count += 1
        return proxy

    def keep_proxy(self, proxy, handle, **members):
        if len(self.proxies) >= HANDLES_MAX:
            self.proxies = {number: reference for number, reference in self.proxies.items() if reference() is not None}
            if len(self.proxies) >= HANDLES_MAX:
                raise CanonError('there are too many objects')
        state = State(self, handle)
        for name, value in members.items():
            setattr(state, name, value)
        object.__setattr__(proxy, STATE, state)
        try:
            self.proxies[handle] = ref(proxy)
        except TypeError:               # tuples and numbers have no room for it
            pass
        return proxy

    def defines(self, mirror, name):
        return name in self.specials.get(mirror, ())

    def make_mirror(self, handle, name, qualname, module, bases, specials, own):
        if len(self.classes) >= HANDLES_MAX:
            raise CanonError('there are too many classes')
        mirrored = [base for base in bases if type(base) is Mirror]
        real = [base for base in bases if type(base) is not Mirror]
        if not all(base in CONTENT or issubclass(base, BaseException) for base in real):
            raise CanonError('a class has a base that it cannot have')
        self_link = self
        names = {'__module__': module, '__qualname__': qualname, '__doc__': Forwarded('__doc__'), STATE: self}
        specials = {text for text in expect(specials, list) if type(text) is str and text.lstrip('!') in SPECIAL}
        probe = type.__new__(Mirror, name, (*mirrored, *([] if mirrored else [Root]), *real), dict(names))
        base = content_type(probe) or (next(kind for kind in mro_of(probe) if kind not in self.class_handles and kind is not probe and kind is not Root)
                                       if issubclass(probe, BaseException) else None)
        if base is not None:
            self.add_content_names(names, base, specials, own)
        if base is None and {'__len__', '__getitem__'} <= specials and '__iter__' not in specials and '__class_getitem__' not in specials:
            names['__iter__'] = proxy['iterate_by_number']
        names.update((text, FORWARD[text]) for text in specials if text[0] != '!' and text not in names and text != '__eq__')
        if library['has_face'](module):
            names['__class__'] = property(lambda self: library['face_of'](self, self_link, module, qualname))
        if '!__hash__' in specials and base is None:
            names['__hash__'] = None
        mirror = type.__new__(Mirror, name, (*mirrored, *([] if mirrored else [Root]), *real), names)
        self.specials[mirror] = specials
        self.classes[handle] = mirror
        self.class_handles[mirror] = handle
        return mirror

    @staticmethod
    def add_content_names(names, base, specials, own):
        """A copy of what the object holds is here, so whoever compares it compares that."""
        for name in COPIED:
            if hasattr(base, name):
                names[name] = getattr(base, name)
        for name in '__repr__', '__str__', '__format__', '__dir__', '__reduce_ex__':
            if name not in specials:
                names[name] = getattr(base, name)
        own = {name for name in expect(own, list) if type(name) is str and name[:1] != '_'}
        forwarded = set(own)
        if base in MUTABLE:
            forwarded.update(name for name in dir(base) if name[:1] != '_')
            names.update((name, FORWARD.get(name)) for name in MUTATORS if hasattr(base, name))
        names.update((name, Forwarded(name, name in own)) for name in forwarded)

    def make(self, mirror, positional, named):
        """Call a class of the other side."""
        made = self.request('call', self.class_handles[mirror], positional, named)
        if type(made) is mirror and not issubclass(mirror, BaseException) and not state_of(made).came:
            state_of(made).made = MADE
        return made

    def fetch(self, state):
        """The next items of an iterator."""
        state.row = state.row + 1 if self.last is state else 0
        answer = self.request('next', state.handle, count=BATCH if state.row >= BATCH_FROM else 1)
        self.last = state
        if type(answer) is not list or len(answer) != 2 or type(answer[0]) is not list or answer == [[], None]:
            raise self.broken('an iterator has given no items')
        state.items = answer[0][::-1]
        if answer[1] is not None:
            state.ending = answer[1] if issubclass(type(answer[1]), BaseException) else StopIteration()

    # ---- requests and answers

    def request(self, op, handle=None, positional=(), named=(), **more):
        with self.lock:
            self.last = None
            if self.depth >= CALLS_MAX:
                raise RecursionError('more than %d calls between tests and submission, one within the other' % CALLS_MAX)
            self.depth += 1
            try:
                encoder = Encoder(self)
                self.number += 1
                number = self.number
                message = {'n': number, 'op': op, 'h': handle, **more}
                try:
                    with deep():
                        message['a'] = encoder.items(positional)
                        message['k'] = [[name, encoder.document(value)] for name, value in dict(named).items()]
                except CanonError as error:
                    raise self.unable('an argument cannot be handed over: %s' % error) from None
                message['gone'], self.released = self.released, []
                try:
                    self.send(message, encoder)
                    answer = self.wait(number)
                except BaseException:   # perhaps of a signal, anywhere between the two
                    self.abandoned.add(number)
                    raise
                value, error = self.read_answer(answer, encoder.containers)
            finally:
                self.depth -= 1
            if error is not None:
                raise error
            return value

    def send(self, message, encoder):
        text = write_json(message)
        if len(text) >= MESSAGE_MAX:
            if 're' not in message:
                raise self.unable('a value is too large')
            text = write_json({'re': message['re'], 'refused': 'it is too large'})
        self.talk.send_text(TO_PEER, text)
        self.told.update(encoder.described)

    def receive(self):
        while True:
            try:
                text = self.talk.read_message()
            except OSError as error:
                if error.errno is None:     # raised by a signal handler of the program's
                    raise
                text = None
            if text is None:
                _exit(0)
            if text[:1] == TO_ENGINE:
                self.from_engine(read_json(text[1:].decode('ascii')))
                continue
            try:
                message = expect(read_json(text[1:].decode('ascii')), dict)
            except (CanonError, UnicodeDecodeError) as error:
                raise self.broken(str(error)) from None
            return message

    def wait(self, number):
        """The answer to a request.  What the other side asks for until then is served."""
        while True:
            message = self.receive()
            answered = message.get('re')
            if answered is None:
                self.serve(message)
            elif type(answered) is int and answered in self.abandoned:
                self.abandoned.discard(answered)
            elif answered != number or type(answered) is not int:
                raise self.broken('an answer to no question')
            else:
                return message

    def read_answer(self, answer, containers):
        """(value, exception)"""
        decoder = Decoder(self, containers)
        try:
            with deep():
                if 'refused' in answer:
                    return None, self.unable('a value cannot be handed over: %s' % expect(answer['refused'], str)[:200])
                for number, document in expect(answer.get('c', []), list):
                    decoder.refill(decoder.decode_arg(number), document)
                for number, index, document in expect(answer.get('g', []), list):
                    container = self.handed.get((number, index))
                    if container is not None:
                        decoder.refill(container, document)
                for handle, document in expect(answer.get('f', []), list):
                    reference = self.proxies.get(handle)
                    proxy = reference and reference()
                    if proxy is not None and content_type(type(proxy)) in MUTABLE:
                        decoder.refill(proxy, document)
                if 'error' in answer:
                    return None, expect_error(decoder.value(answer['error']))
                value = decoder.value(answer['v'])
                self.lend(answer, containers)
                return value, None
        except Exception as error:
            raise self.unable('a value cannot be read: %s: %.200s' % (type(error).__name__, error)) from None

    # ---- arguments that the other side has kept

    def tell_kept(self, answer, encoder):
        """What was changed of arguments of earlier requests."""
        changes = []
        for entry in self.kept:
            number, index, container, before = entry
            now = parts_of(container)
            if differ(before, now):
                entry[3] = now
                changes.append([number, index, encoder.contents(container)])
        if changes:
            answer['g'] = changes

    def keep(self, answer, containers):
        kept = [index for index in range(len(containers)) if getrefcount(containers[index]) > REFERENCES]
        for index in kept:
            self.kept.append([answer['re'], index, containers[index], parts_of(containers[index])])
        if kept:
            answer['kept'] = kept
        while len(self.kept) > KEPT_MAX:
            self.kept.pop(0)

    def lend(self, answer, containers):
        for index in expect(answer.get('kept', []), list):
            if type(index) is int and 0 <= index < len(containers):
                self.handed[answer['re'], index] = containers[index]
        while len(self.handed) > KEPT_MAX:
            del self.handed[next(iter(self.handed))]

    def serve(self, message):
        """One request of the other side."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(limit + FRAMES_PER_CALL)
        self.depth += 1
        escaping = None
        try:
            decoder = Decoder(self)
            answer, encoder = {'re': message.get('n')}, None
            try:
                answer, encoder = self.answer(message, decoder)
            except CanonError as error:
                answer['refused'] = str(error)[:200]
            except BaseException as error:
                escaping = self.escapes(error)
                encoder = Encoder(self, decoder.containers)
                answer['error'] = self.encode_raised(encoder, error)
            self.send(answer, encoder or Encoder(self))
        finally:
            self.depth -= 1
            if sys.getrecursionlimit() == limit + FRAMES_PER_CALL:
                sys.setrecursionlimit(limit)
        if escaping is not None:
            raise escaping

    def escapes(self, error):
        """The exception that goes on from here, too."""
        return None

    def encode_raised(self, encoder, error):
        with deep():
            try:
                return encoder.encode_error(error)
            except Exception:
                return tagged('error', [None, tagged('type', ['builtins', 'RuntimeError']), [type(error).__name__], [], None])

    def answer(self, message, decoder):
        self.release(expect(message.get('gone', []), list))
        if self.depth > CALLS_MAX:
            raise RecursionError('more than %d calls between tests and submission, one within the other' % CALLS_MAX)
        with deep():
            positional = decoder.items(message['a'])
            named = {expect(name, str): decoder.value(value) for name, value in expect(message['k'], list)}
        handle = message.get('h')
        target = None if handle is None else decoder.note_changeable(self.exported(handle))
        if self.is_callable(target):
            decoder.note_changeable(getattr(target, '__self__', None))
        containers = [*decoder.containers, *decoder.changeable]
        before = [parts_of(container) for container in containers]
        value = self.perform(message.get('op'), target, positional, named, message)
        library['expect_unchanged'](decoder.frames)
        changed = [differ(old, parts_of(container)) for old, container in zip(before, containers)]
        before = None                   # or it would count as somebody who has kept an argument
        count = len(decoder.containers)
        encoder = Encoder(self, decoder.containers)
        answer = {'re': message.get('n')}
        with deep():
            answer['c'] = [[number, encoder.contents(container)] for number, container in enumerate(decoder.containers) if changed[number]]
            self.tell_kept(answer, encoder)
            answer['f'] = [[self.export_handles[id(container)], encoder.contents(container)]
                           for number, container in enumerate(decoder.changeable) if changed[count + number]]
            answer['v'] = encoder.document(value)
        self.keep(answer, containers[:count])
        return answer, encoder
