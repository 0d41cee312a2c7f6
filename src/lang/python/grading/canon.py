"""Values of a program as JSON, and back: what cases, tests and the judge tell each other (docs/protocols/grading-roles.md).

An Encoder looks at objects that a program made, after the program may have changed anything.  So it asks type(x) and never
x.__class__, knows a type by what it is and not by what it inherits, and calls methods of builtin types as functions.  A
Decoder reads what a hostile program may have written: whatever is wrong with it is a CanonError, nothing in it is evaluated,
and what it costs to read and to hash grows with its length.  That is why only what can change is told by reference: a tuple
of two tuples of two tuples... is written out, since its hash, too, is made from each of them.

Imports are few, because a run is not to find ours.  The types of a module are known by its name, and it is there when a
program has such a value.
"""

import sys
from _json import encode_basestring_ascii, make_encoder, make_scanner
from binascii import a2b_base64, b2a_base64

SIZE_MAX = 8 << 20
DEPTH_MAX = 1000
TAG_SIZE = 20                   # of {"t":"tuple","v":[]}
FRAMES_PER_LEVEL = 8            # of ours and of the scanner's in C, at most
INT_MAX = 1 << 4000             # digits in decimal take time that grows with their square; hexadecimal ones do not
RATIO_BITS_MAX = 1 << 17        # as does bringing a fraction to its lowest terms
HEAP_TYPE = 1 << 9              # Py_TPFLAGS_HEAPTYPE: made by a class statement, or by an extension that was made lately
DATE_TIME = 'year', 'month', 'day', 'hour', 'minute', 'second', 'microsecond', 'fold'
ARRAY_KINDS = 'biufcSUmM'       # of numpy's, those that are bytes and nothing else

NoneType = type(None)
Ellipsis_ = type(...)
module_of = type.__dict__['__module__'].__get__
name_of = type.__dict__['__qualname__'].__get__
flags_of = type.__dict__['__flags__'].__get__
mro_of = type.__dict__['__mro__'].__get__
get_limit, set_limit = sys.getrecursionlimit, sys.setrecursionlimit
modules = sys.modules


class CanonError(Exception):
    """A value that has no canonical form, or a text that is none."""


def type_name(kind):
    """What a type is called: a builtin by its name, others with their module.  A class that only says it is builtin is not."""
    name, module = name_of(kind), module_of(kind)
    name = str.__str__(name) if type(name) is str else '?'
    if module == 'builtins' and (__builtins__.get(name) is kind or not flags_of(kind) & HEAP_TYPE):
        return name
    return '%s.%s' % (module if type(module) is str and module != 'builtins' else '?', name)


def mro_names(kind):
    return [type_name(base) for base in mro_of(kind)[:100]]


class deep:
    """While it lasts, a value may be as deep as it is allowed to, whatever the program's own limit is."""

    def __enter__(self):
        self.limit = get_limit()
        set_limit(max(self.limit, DEPTH_MAX * FRAMES_PER_LEVEL))

    def __exit__(self, *_):
        set_limit(self.limit)


# ----------------------------------------------------------------------------------------------------------- JSON as such

def refuse_constant(name):
    raise CanonError('%s is not JSON' % name)


def read_float(text):
    number = float(text)
    if number - number != 0:
        raise CanonError('a number is too large')
    return number


class Scanning:
    """What the scanner wants to know (json.decoder.JSONDecoder)."""

    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant = staticmethod(read_float), int, staticmethod(refuse_constant)


class LooseScanning(Scanning):
    """For texts of people: they write NaN, as Python's own json does."""

    parse_float, parse_constant = float, staticmethod({'NaN': float('nan'), 'Infinity': float('inf'), '-Infinity': -float('inf')}.get)


scan_strictly, scan_loosely = make_scanner(Scanning()), make_scanner(LooseScanning())
write_pieces = make_encoder(None, None, encode_basestring_ascii, None, ':', ',', False, False, False)


def read_json(text, scan=scan_strictly):
    text = text.strip(' \t\n\r')
    try:
        with deep():
            document, end = scan(text, 0)
    except CanonError:
        raise
    except (ValueError, RecursionError) as error:
        raise CanonError('no JSON: %.200s' % (error,)) from None
    except Exception:           # StopIteration; and where nobody has imported json, a SystemError, as there is no type for an error
        raise CanonError('no JSON: something is missing') from None
    if end != len(text):
        raise CanonError('no JSON: there is more behind its end')
    return document


def write_json(document):
    """For documents of exactly the types that JSON has."""
    with deep():
        return ''.join(write_pieces(document, 0))


# --------------------------------------------------------------------------------------------------------------- encoding

def tagged(tag, value):
    return {'t': tag, 'v': value}


def base64_of(value):
    return b2a_base64(value, newline=False).decode()


class Encoder:
    """Makes documents of values.  Several values of one Encoder share their references.

    other(value, encoder) is asked for the document of what has no canonical form; it raises CanonError if it has none either.
    """

    def __init__(self, other=None, size_max=SIZE_MAX):
        self.other = other
        self.room = size_max
        self.depth = 0
        self.containers = []    # what can change, in the order in which it was begun
        self.numbers = {}

    def document(self, value):
        kind = type(value)
        if value is None or kind is bool:
            self.take(4)
            return value
        if kind is int:
            self.take(int.bit_length(value) >> 2)
            return value if -INT_MAX < value < INT_MAX else tagged('int', hex(value))
        if kind is str:
            self.take(str.__len__(value))
            return value
        encode = ENCODERS.get(kind) or NAMED_ENCODERS.get(self.name_if_known(kind))
        if encode is None and is_numpy_scalar(kind):
            encode = encode_array
        if encode is None:
            if self.other is None:
                raise CanonError('%s has no canonical form' % type_name(kind))
            return self.other(value, self)
        self.take(1 if kind is list else TAG_SIZE)
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise CanonError('the value is nested more than %d levels deep' % DEPTH_MAX)
        document = encode(self, value)
        self.depth -= 1
        return document

    def take(self, size):
        self.room -= size + 1
        if self.room < 0:
            raise CanonError('the value is too large')

    def begin(self, value):
        """A reference, if this container has been begun before."""
        number = self.numbers.get(id(value))
        if number is not None:
            return tagged('ref', number)
        self.numbers[id(value)] = len(self.containers)
        self.containers.append(value)
        return None

    def items(self, items):
        document = self.document
        return [document(item) for item in items]

    def pairs(self, pairs):
        document = self.document
        return [[document(key), document(item)] for key, item in pairs]

    @staticmethod
    def name_if_known(kind):
        """The name of a type in NAMED_ENCODERS, if it is the one that its module has under that name."""
        module, name = module_of(kind), name_of(kind)
        if type(module) is not str or type(name) is not str:
            return None
        home = modules.get(module)
        return '%s.%s' % (module, name) if type(home) is type(sys) and vars(home).get(name) is kind else None


def encode_float(encoder, value):
    encoder.take(20)
    return value if value - value == 0 else tagged('float', float.__repr__(value))


def encode_bytes(encoder, value):
    encoder.take(bytes.__len__(value) * 4 // 3)
    return tagged('bytes', base64_of(value))


def encode_bytearray(encoder, value):
    encoder.take(bytearray.__len__(value) * 4 // 3)
    return encoder.begin(value) or tagged('bytearray', base64_of(value))


def encode_array(encoder, value):
    kind = value.dtype
    if kind.kind not in ARRAY_KINDS or value.nbytes * 4 // 3 > encoder.room:
        raise CanonError('an array of %s has no canonical form, or is too large' % kind.str)
    encoder.take(value.nbytes * 4 // 3)
    tag = 'numpy.ndarray' if name_of(type(value)) == 'ndarray' else 'numpy.generic'
    return tagged(tag, [kind.str, list(value.shape), base64_of(value.tobytes())])


def is_numpy_scalar(kind):
    return (module_of(kind) == 'numpy' and not flags_of(kind) & HEAP_TYPE
            and any(module_of(base) == 'numpy' and name_of(base) == 'generic' for base in mro_of(kind)))


def encode_timezone(encoder, value):
    return tagged('datetime.timezone', encoder.items(value.__getinitargs__()))


def mutable(tag, items_of):
    if tag is None:             # JSON has lists
        return lambda encoder, value: encoder.begin(value) or encoder.items(items_of(value))
    return lambda encoder, value: encoder.begin(value) or tagged(tag, encoder.items(items_of(value)))


def mapping(tag, pairs_of=dict.items):
    return lambda encoder, value: encoder.begin(value) or tagged(tag, encoder.pairs(pairs_of(value)))


def fixed(tag, *attributes):
    """For types whose attributes nobody can replace."""
    return lambda encoder, value: tagged(tag, encoder.items([getattr(value, name) for name in attributes]))


ENCODERS = {
    float: encode_float,
    list: mutable(None, list.__iter__),
    tuple: lambda encoder, value: tagged('tuple', encoder.items(value)),
    dict: mapping('dict'),
    set: mutable('set', set.__iter__),
    frozenset: lambda encoder, value: tagged('frozenset', encoder.items(value)),
    bytes: encode_bytes,
    bytearray: encode_bytearray,
    complex: fixed('complex', 'real', 'imag'),
    range: fixed('range', 'start', 'stop', 'step'),
    slice: fixed('slice', 'start', 'stop', 'step'),
    Ellipsis_: lambda encoder, value: tagged('ellipsis', None),
}
NAMED_ENCODERS = {
    'collections.deque': mutable('collections.deque', iter),
    'collections.OrderedDict': mapping('collections.OrderedDict', lambda value: value.items()),
    'collections.Counter': mapping('collections.Counter'),
    'collections.defaultdict': mapping('collections.defaultdict'),
    'decimal.Decimal': lambda encoder, value: tagged('decimal.Decimal', encoder.document(str(value))),
    'fractions.Fraction': fixed('fractions.Fraction', '_numerator', '_denominator'),
    'datetime.datetime': fixed('datetime.datetime', *DATE_TIME, 'tzinfo'),
    'datetime.date': fixed('datetime.date', *DATE_TIME[:3]),
    'datetime.time': fixed('datetime.time', *DATE_TIME[3:], 'tzinfo'),
    'datetime.timedelta': fixed('datetime.timedelta', 'days', 'seconds', 'microseconds'),
    'datetime.timezone': encode_timezone,
    'uuid.UUID': lambda encoder, value: tagged('uuid.UUID', encoder.document('%032x' % value.int)),
    'numpy.ndarray': encode_array,
}


def encode(value, other=None, size_max=SIZE_MAX):
    """The canonical form of a value.  Raises CanonError if there is none, or if it is longer than size_max."""
    try:
        with deep():
            text = ''.join(write_pieces(Encoder(other, size_max).document(value), 0))
    except CanonError:
        raise
    except Exception as error:          # a thread changes it as we read, or the program has broken one of its modules
        raise CanonError('the value cannot be read: %s' % type_name(type(error))) from None
    if len(text) > size_max:
        raise CanonError('the value is too large')
    return text


# --------------------------------------------------------------------------------------------------------------- decoding

class Decoder:
    """Makes values of documents.  other(document, decoder) is asked for those with a "t" that is not in the table."""

    def __init__(self, other=None, table=None):
        self.other = other
        self.table = DECODERS if table is None else table
        self.depth = 0
        self.containers = []

    def value(self, document):
        kind = type(document)
        if kind is not list and kind is not dict:
            return document
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise CanonError('the text is nested more than %d levels deep' % DEPTH_MAX)
        if kind is list:
            value = self.begin([])
            value.extend(map(self.value, document))
        else:
            value = self.tagged(document)
        self.depth -= 1
        return value

    def tagged(self, document):
        tag = document.get('t')
        decode = self.table.get(tag) if type(tag) is str else None
        if decode is not None:
            if len(document) != 2 or 'v' not in document:
                raise CanonError('a document of type %s has not exactly "t" and "v"' % tag)
            return decode(self, document['v'])
        if self.other is None:
            raise CanonError('%.100r is no type' % (tag,))
        return self.other(document, self)

    def begin(self, value):
        self.containers.append(value)
        return value

    def items(self, document):
        return [self.value(item) for item in expect(document, list)]

    def pairs(self, document):
        for pair in expect(document, list):
            if type(pair) is not list or len(pair) != 2:
                raise CanonError('a pair is none')
            yield self.value(pair[0]), self.value(pair[1])

    def exactly(self, document, *kinds):
        """Values of these types, and no others."""
        values = self.items(document)
        if len(values) != len(kinds) or not all(type(value) is kind for value, kind in zip(values, kinds)):
            raise CanonError('parts of a value are missing, or of other types')
        return values


def expect(value, kind):
    if type(value) is not kind:
        raise CanonError('%s is there in place of %s' % (type_name(type(value)), kind.__name__))
    return value


def bytes_of(text):
    return a2b_base64(expect(text, str), strict_mode=True)


def found(module, name):
    return getattr(__import__(module), name)


def decode_float(decoder, text):
    if text not in ('nan', 'inf', '-inf'):
        raise CanonError('%.100r is no such float' % (text,))
    return float(text)


def decode_int(decoder, text):
    return int(expect(text, str), 16)


def decode_ref(decoder, number):
    if type(number) is not int or not 0 <= number < len(decoder.containers):
        raise CanonError('a reference leads nowhere')
    return decoder.containers[number]


def decode_fraction(decoder, document):
    parts = decoder.exactly(document, int, int)
    if max(map(int.bit_length, parts)) > RATIO_BITS_MAX:
        raise CanonError('a fraction is too large')
    return found('fractions', 'Fraction')(*parts)


def decode_zoned(name, numbers):
    def decode(decoder, document):
        *parts, fold, zone = decoder.exactly(document[:-1], *[int] * numbers) + decoder.items(document[-1:])
        if zone is not None:
            expect(zone, found('datetime', 'timezone'))
        return found('datetime', name)(*parts, zone, fold=fold)
    return decode


def decode_timezone(decoder, document):
    offset, *name = decoder.items(document)
    return found('datetime', 'timezone')(offset, *name)


def decode_array(decoder, document):
    kind, shape, text = expect(document, list)
    size = expect(kind, str).lstrip('<>|=')
    if size[:1] not in ARRAY_KINDS or not size[1:].split('[')[0].isdigit() or len(kind) > 20:
        raise CanonError('%.100r is no type of an array' % kind)
    if any(type(length) is not int or length < 0 for length in expect(shape, list)):
        raise CanonError('an array has no such shape')
    # Its own memory, or the array could not be written to.
    return __import__('numpy').frombuffer(bytearray(bytes_of(text)), kind).reshape(shape)


def decode_scalar(decoder, document):
    return decode_array(decoder, document)[()]


def decode_container(make, fill):
    def decode(decoder, document):
        value = decoder.begin(make())
        fill(value, decoder.items(document))
        return value
    return decode


def decode_mapping(make):
    def decode(decoder, document):
        value = decoder.begin(make())
        for key, item in decoder.pairs(document):
            value[key] = item
        return value
    return decode


def add_all(values, items):
    """One by one, so that a caller's time limit can end it: all of them may have the same hash."""
    for item in items:
        values.add(item)


def decode_frozenset(decoder, document):
    values = set()
    add_all(values, decoder.items(document))
    return frozenset(values)


def decode_parts(make, *kinds):
    return lambda decoder, document: make()(*decoder.exactly(document, *kinds))


DECODERS = {
    'float': decode_float,
    'int': decode_int,
    'ref': decode_ref,
    'tuple': lambda decoder, document: tuple(decoder.items(document)),
    'set': decode_container(set, add_all),
    'frozenset': decode_frozenset,
    'dict': decode_mapping(dict),
    'bytes': lambda decoder, text: bytes_of(text),
    'bytearray': lambda decoder, text: decoder.begin(bytearray(bytes_of(text))),
    'complex': decode_parts(lambda: complex, float, float),
    'range': decode_parts(lambda: range, int, int, int),
    'slice': lambda decoder, document: slice(*decoder.items(document)),
    'ellipsis': lambda decoder, document: expect(document, NoneType) or ...,
    'collections.deque': decode_container(lambda: found('collections', 'deque')(), lambda deque, items: deque.extend(items)),
    'collections.OrderedDict': decode_mapping(lambda: found('collections', 'OrderedDict')()),
    'collections.Counter': decode_mapping(lambda: found('collections', 'Counter')()),
    'collections.defaultdict': decode_mapping(lambda: found('collections', 'defaultdict')()),
    'decimal.Decimal': lambda decoder, text: found('decimal', 'Decimal')(expect(text, str)),
    'fractions.Fraction': decode_fraction,
    'datetime.datetime': decode_zoned('datetime', 8),
    'datetime.date': decode_parts(lambda: found('datetime', 'date'), int, int, int),
    'datetime.time': decode_zoned('time', 5),
    'datetime.timedelta': decode_parts(lambda: found('datetime', 'timedelta'), int, int, int),
    'datetime.timezone': decode_timezone,
    'uuid.UUID': lambda decoder, text: found('uuid', 'UUID')(expect(text, str)),
    'numpy.ndarray': decode_array,
    'numpy.generic': decode_scalar,
}


def decode(text, other=None, size_max=SIZE_MAX, table=None):
    """The value of a canonical form.  Raises CanonError for all that is none."""
    if len(text) > size_max:
        raise CanonError('the text is too long')
    try:
        with deep():
            return Decoder(other, table).value(read_json(text))
    except CanonError:
        raise
    except Exception as error:          # a date that there is not, an item that cannot be hashed, no numpy here
        raise CanonError('%s: %.200s' % (type_name(type(error)), error)) from None
