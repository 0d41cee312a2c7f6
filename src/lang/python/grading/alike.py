"""Values that Python's own equality takes for a value with a canonical form: instances of subclasses, and views of containers.

`Point(1, 2) == (1, 2)` for a named tuple and `Colour.RED == 1` for an IntEnum are decided by tuple and int, which compare what the
objects hold.  So what they hold is told, read by the base's own functions, together with the name of the class.  Nothing of a class of
the program's is called, and a class that has an equality or a hash of its own is none of these.

    {"t": "alike", "v": [name of the class, form of what it holds]}
"""

import sys

canon = load_part('canon')
CanonError, ENCODERS, module_of, mro_of, name_of, tagged, type_name = (
    canon[name] for name in ('CanonError', 'ENCODERS', 'module_of', 'mro_of', 'name_of', 'tagged', 'type_name'))
dict_of = type.__dict__['__dict__'].__get__
state_of = object.__getattribute__
modules = sys.modules

EQUALITY = '__eq__', '__ne__', '__hash__'
# What equality of these asks an object for, being written in Python itself.
ASKED = {'collections.Counter': ('__getitem__', '__missing__', '__iter__', '__contains__', 'items', 'keys', 'values', 'get'),
         'collections.OrderedDict': ('__getitem__', '__missing__', '__iter__', '__contains__', 'items', 'keys', 'values'),
         'fractions.Fraction': ('numerator', 'denominator', '_numerator', '_denominator')}


def named(place):
    """A class by its module and name, if the program has brought in its module."""
    module, _, name = place.rpartition('.')
    home = modules.get(module)
    return vars(home).get(name) if type(home) is type(sys) else None


def deque_items(encoder, value):
    return encoder.begin(value) or tagged('collections.deque', encoder.items(named('collections.deque').__iter__(value)))


def ordered(encoder, value):
    keys = named('collections.OrderedDict').__iter__(value)
    return encoder.begin(value) or tagged('collections.OrderedDict', encoder.pairs((key, dict.__getitem__(value, key)) for key in keys))


def mapping(tag):
    return lambda encoder, value: encoder.begin(value) or tagged(tag, encoder.pairs(dict.items(value)))


def plain(function):
    """Of what a base makes of an instance that is exactly of the base."""
    return lambda encoder, value: encoder.document(function(value))


def row(tag, items_of):
    return lambda encoder, value: tagged(tag, encoder.items(items_of(value)))


def of_decimal(encoder, value):
    return tagged('decimal.Decimal', encoder.document(named('decimal.Decimal').__str__(value)))


def of_fraction(encoder, value):
    kind = dict_of(named('fractions.Fraction'))
    return tagged('fractions.Fraction', encoder.items([kind[name].__get__(value) for name in ('_numerator', '_denominator')]))


# How what an instance of a subclass holds is told, by functions of the base.
BASES = {
    int: plain(int.__int__), float: plain(float.__float__), str: plain(str.__str__), complex: plain(complex.__pos__),
    bytes: plain(lambda value: bytes.__getitem__(value, slice(None))),
    bytearray: lambda encoder, value: encoder.begin(value) or tagged('bytearray', canon['base64_of'](bytearray.__getitem__(value, slice(None)))),
    tuple: row('tuple', tuple.__iter__), frozenset: row('frozenset', frozenset.__iter__),
    list: ENCODERS[list], set: ENCODERS[set], dict: ENCODERS[dict],
}
NAMED_BASES = {
    'collections.deque': deque_items, 'collections.OrderedDict': ordered, 'collections.Counter': mapping('collections.Counter'),
    'collections.defaultdict': mapping('collections.defaultdict'), 'decimal.Decimal': of_decimal, 'fractions.Fraction': of_fraction,
}
# Views and wrappers of the library, which compare what they show.
VIEWS = {'dict_keys': dict, 'odict_keys': dict, 'dict_items': dict, 'odict_items': dict}
WRAPPERS = {'collections.UserDict': 'data', 'collections.UserList': 'data', 'collections.UserString': 'data'}


def base_of(kind):
    """(base, how it is told): the nearest one whose instances have a form, or None."""
    for base in mro_of(kind)[1:]:
        if base in BASES:
            return base, BASES[base]
        for place, tell in NAMED_BASES.items():
            if name_of(base) == place.rpartition('.')[2] and base is named(place):
                return base, tell
    return None


def keeps_equality(kind, base):
    """Whether no class before the base has a word in what its instances are equal to."""
    mro = mro_of(kind)
    before = mro[:mro.index(base)]
    names = EQUALITY + ASKED.get(type_name(base), ())
    return not any(name in dict_of(one) for one in before for name in names)


def of_view(encoder, value, kind):
    items = encoder.items(list(value)) if name_of(kind).endswith('keys') else [tagged('tuple', encoder.items(pair)) for pair in list(value)]
    return tagged('alike', [type_name(kind), tagged('set', items)])


def document_of(value, encoder):
    """For canon's Encoder: the document of what has no canonical form of its own."""
    kind = type(value)
    name = type_name(kind)
    if name in VIEWS:
        encoder.begin([])               # the set that the decoder makes of it
        return of_view(encoder, value, kind)
    if name in WRAPPERS and named(name) is kind:
        return tagged('alike', [name, encoder.document(state_of(value, '__dict__').get('data'))])
    found = base_of(kind)
    if found is None or not keeps_equality(kind, found[0]):
        raise CanonError('%s has no canonical form' % name)
    encoder.take(len(name) + canon['TAG_SIZE'])
    encoder.depth += 1
    if encoder.depth > canon['DEPTH_MAX']:
        raise CanonError('the value is nested more than %d levels deep' % canon['DEPTH_MAX'])
    told = found[1](encoder, value)
    encoder.depth -= 1
    return tagged('alike', [name, told])


class Alike:
    """In place of what an instance of a subclass holds, where types have to be the same: it is equal to nothing."""

    __hash__ = object.__hash__

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __repr__(self):
        return '<%s %r>' % (self.name, self.value)


def decoder_of(strict):
    """For canon's Decoder."""
    def decode(document, decoder):
        parts = document.get('v')
        if document.get('t') != 'alike' or len(document) != 2 or type(parts) is not list or len(parts) != 2 or type(parts[0]) is not str:
            raise CanonError('%.100r is no type' % (document.get('t'),))
        value = decoder.value(parts[1])
        return Alike(parts[0], value) if strict else value
    return decode
