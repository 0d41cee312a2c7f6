"""Values of the library, as they go between tests and submission: paths, patterns, enumerations, frames of pandas.

They are copied, so that what compares them is the library of whoever has the copy.  A table says what each is made of; its parts are
values again.  Others of its objects stay where they are: see face_of().
"""

import sys
from opcode import opname

canon = load_part('canon')
CanonError, expect, module_of, name_of, tagged = (
    canon[name] for name in ('CanonError', 'expect', 'module_of', 'name_of', 'tagged'))
PATTERN_FLAGS = 0x17e                   # of those that a pattern can have; not DEBUG, which prints
# Modules whose objects are compared, and taken apart, by functions that ask for their class.
OF_DATA = 'numpy', 'pandas'
KEPT_FROM = 'unittest', 'antigravity', 'this', 'idlelib', 'turtle', 'turtledemo', 'test', 'lib2to3', 'tkinter', '__main__', 'doctest'


def find(module, name):
    """What a module has under a dotted name; it is imported if it is the library's, or one of those with data."""
    top = module.partition('.')[0]
    if top not in OF_DATA and (top not in sys.stdlib_module_names or top in KEPT_FROM):
        raise CanonError('there is no such class here')
    __import__(module)
    found = sys.modules[module]
    for part in name.split('.'):
        found = vars(found)[part]
    return found


def pandas():
    return __import__('pandas')


# ---------------------------------------------------------------------------------------------------- what each is made of

def compiled(pattern, flags):
    return __import__('re').compile(pattern, expect(flags, int) & PATTERN_FLAGS)


def parts_of_values(values):
    """Of an array of pandas: how it is to be made, and of what."""
    kind = type(values).__name__
    if kind == 'Categorical':
        return ['categories', values.codes.copy(), values.categories, bool(values.ordered)]
    if getattr(values, 'tz', None) is not None:
        return ['times', values.asi8.copy(), str(values.tz)]
    if kind in ('ndarray', 'PandasArray', 'DatetimeArray', 'TimedeltaArray'):
        return ['array', values.to_numpy() if hasattr(values, 'to_numpy') else values]
    missing = pandas().NA
    return ['other', str(values.dtype), [None if value is missing else value for value in values]]


def values_of(how, *parts):
    if how == 'categories':
        return pandas().Categorical.from_codes(parts[0], parts[1], ordered=parts[2])
    if how == 'times':
        return pandas().DatetimeIndex(parts[0], tz='UTC').tz_convert(parts[1]).array
    return parts[0] if how == 'array' else pandas().array(parts[1], dtype=expect(parts[0], str))


def parts_of_index(index):
    return [parts_of_values(index.array), index.name, getattr(index, 'freqstr', None)]


def index_of(values, name, frequency):
    index = pandas().Index(values_of(*values), name=name)
    if frequency is not None:
        index.freq = expect(frequency, str)
    return index


def frame_of(columns, index, values):
    frame = pandas().DataFrame({number: values_of(*column) for number, column in enumerate(values)}, index=index)
    if not values:
        frame = pandas().DataFrame(index=index, columns=columns)
    frame.columns = columns
    return frame


def text(kind):
    return (lambda value: [str(value)]), kind


# By the module and name of a class: what its objects are made of, and how they are made, if not by calling the class.
VALUES = {
    'pathlib.PosixPath': text(None), 'pathlib.PurePosixPath': text(None), 'pathlib.PureWindowsPath': text(None),
    'ipaddress.IPv4Address': text(None), 'ipaddress.IPv6Address': text(None), 'ipaddress.IPv4Network': text(None),
    'ipaddress.IPv6Network': text(None), 'ipaddress.IPv4Interface': text(None), 'ipaddress.IPv6Interface': text(None),
    'zoneinfo.ZoneInfo': text(None),
    're.Pattern': (lambda value: [value.pattern, value.flags], compiled),
    'types.SimpleNamespace': (lambda value: [vars(value)], lambda names: __import__('types').SimpleNamespace(**names)),
    'array.array': (lambda value: [value.typecode, value.tobytes()], None),
    'collections.ChainMap': (lambda value: list(value.maps), None),
    'collections.UserDict': (lambda value: [value.data], None), 'collections.UserList': (lambda value: [value.data], None),
    'collections.UserString': (lambda value: [value.data], None),
    'string.Template': (lambda value: [value.template], None),
    'numpy.ndarray': (lambda value: [list(value.shape), value.ravel().tolist()], lambda shape, items: array_of_objects(shape, items)),
    'pandas._libs.tslibs.timestamps.Timestamp': (lambda value: [value.value, value.tz and str(value.tz)],
                                                 lambda number, zone: pandas().Timestamp(number, tz=zone)),
    'pandas._libs.tslibs.timedeltas.Timedelta': (lambda value: [value.value], lambda number: pandas().Timedelta(number, 'ns')),
    'pandas._libs.tslibs.nattype.NaTType': (lambda value: [], lambda: pandas().NaT),
    'pandas._libs.missing.NAType': (lambda value: [], lambda: pandas().NA),
    'pandas.core.indexes.range.RangeIndex': (lambda value: [value.start, value.stop, value.step, value.name],
                                             lambda start, stop, step, name: pandas().RangeIndex(start, stop, step, name=name)),
    'pandas.core.indexes.multi.MultiIndex': (lambda value: [list(value.levels), [codes.tolist() for codes in value.codes], list(value.names)],
                                             lambda levels, codes, names: pandas().MultiIndex(levels, codes, names=names)),
    'pandas.core.series.Series': (lambda value: [parts_of_values(value.array), value.index, value.name],
                                  lambda values, index, name: pandas().Series(values_of(*values), index=index, name=name)),
    'pandas.core.frame.DataFrame': (lambda value: [value.columns, value.index, [parts_of_values(value.iloc[:, number].array) for number in range(value.shape[1])]],
                                    frame_of),
    **{'pandas.core.indexes.' + name: (parts_of_index, index_of) for name in (
        'base.Index', 'numeric.Int64Index', 'numeric.Float64Index', 'numeric.UInt64Index', 'datetimes.DatetimeIndex', 'timedeltas.TimedeltaIndex',
        'category.CategoricalIndex')},
}


def array_of_objects(shape, items):
    array = __import__('numpy').empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def place_of(kind):
    """(module, name) of a class that its module has under its name, or None."""
    module, name = module_of(kind), name_of(kind)
    if type(module) is not str or type(name) is not str:
        return None
    home = sys.modules.get(module)
    found = vars(home).get(name) if type(home) is type(sys) else None
    return (module, name) if found is kind else None


def encode(value, encoder):
    """The document of a value of the library, or None if it is none."""
    kind = type(value)
    place = place_of(kind)
    if place is None:
        return None
    top = place[0].partition('.')[0]
    if top in sys.stdlib_module_names and top not in KEPT_FROM:
        if type(kind) is vars(sys.modules.get('enum', sys)).get('EnumType'):
            return tagged('member', [*place, value.name]) if type(value.name) is str and kind.__members__.get(value.name) is value else None
        if issubclass(kind, tuple) and type(getattr(kind, '_fields', None)) is tuple:
            return tagged('fields', [*place, encoder.items(tuple.__iter__(value))])
    known = VALUES.get('%s.%s' % place)
    if known is None:
        return None
    try:
        parts = known[0](value)
    except Exception:                   # whatever a program has made of it
        return None
    room, containers, numbers = encoder.room, list(encoder.containers), dict(encoder.numbers)
    try:
        return tagged('value', ['%s.%s' % place, encoder.items(parts)])
    except CanonError:                  # a part has no form: the whole stays where it is
        encoder.room, encoder.containers[:], encoder.numbers = room, containers, numbers
        return None


def decode_value(decoder, document):
    place, parts = expect(document, list)
    make = VALUES[expect(place, str)][1]
    parts = decoder.items(parts)
    value = (make or find(*split(place)))(*parts)
    if place in FRAMES:
        decoder.frames.append((value, value.copy()))
    return value


FRAMES = 'pandas.core.frame.DataFrame', 'pandas.core.series.Series'


def expect_unchanged(frames):
    """Frames that were arguments: a change in place would not be seen by the caller."""
    for value, before in frames:
        if not (value.equals(before) and (not hasattr(before, 'columns') or value.columns.equals(before.columns)) and value.index.equals(before.index)):
            raise CanonError('a %s was changed in place, and is a copy' % type(value).__name__)


def split(place):
    module, _, name = place.rpartition('.')
    return module, name


def decode_member(decoder, document):
    module, name, member = (expect(part, str) for part in expect(document, list))
    kind = find(module, name)
    return expect_kind(kind, __import__('enum').EnumType).__members__[member]


def decode_fields(decoder, document):
    module, name, items = expect(document, list)
    kind = find(expect(module, str), expect(name, str))
    if not (type(kind) is type and issubclass(kind, tuple) and hasattr(kind, '_fields')):
        raise CanonError('it is no class of tuples with names')
    return tuple.__new__(kind, decoder.items(items))


def expect_kind(value, kind):
    if not isinstance(value, kind):
        raise CanonError('it is no %s' % kind.__name__)
    return value


TAGS = {'value': decode_value, 'member': decode_member, 'fields': decode_fields}


# ---------------------------------------------------------------------------------------------- objects that stay where they are

def face_of(proxy, link, module, name):
    """What isinstance() is to think of an object of a library's class, or of one that derives from it."""
    kind = type(proxy)
    if asks_by_name(sys._getframe(2)) and (module_of(kind), name_of(kind)) != (module, name):
        return kind
    if module.partition('.')[0] in OF_DATA:
        raise link.unable('an object of %s.%s cannot be handed over' % (module, name))
    found = sys.modules.get(module)
    for part in name.split('.'):
        found = vars(found).get(part) if found is not None else None
    return found if isinstance(found, type) else kind


def asks_by_name(frame):
    """Whether the code of a frame is at `x.__class__`, and not at a call that looks at it."""
    at = frame.f_lasti
    return opname[frame.f_code.co_code[at]].startswith(('LOAD_ATTR', 'LOAD_METHOD'))


def has_face(module):
    top = module.partition('.')[0]
    return top in OF_DATA or top in sys.stdlib_module_names and top not in KEPT_FROM and top != 'builtins'
