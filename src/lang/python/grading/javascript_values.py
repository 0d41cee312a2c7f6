"""Values of JavaScript in the judge: what Python has no type for, and how values are shown to whom wrote JavaScript."""

canon = load_part('canon')
CanonError, DECODERS, expect = canon['CanonError'], canon['DECODERS'], canon['expect']
write_json = canon['write_json']

SHARED = 'float', 'ref', 'dict', 'bytes'


class Undefined:
    """What a function gives that returns nothing."""


class Set(list):
    """What is in it need not be something that can be hashed."""


class Map(list):
    """Pairs, likewise."""


class Date:
    def __init__(self, ms):
        self.ms = ms


def decode_set(decoder, document):
    value = decoder.begin(Set())
    value.extend(decoder.items(document))
    return value


def decode_map(decoder, document):
    value = decoder.begin(Map())
    value.extend(decoder.pairs(document))
    return value


def decode_date(decoder, document):
    ms = decoder.value(document)
    if type(ms) not in (int, float):
        raise CanonError('a date is no number')
    return Date(ms)


TABLE = {**{tag: DECODERS[tag] for tag in SHARED},
         'set': decode_set, 'map': decode_map, 'js.Date': decode_date, 'bigint': lambda decoder, text: int(expect(text, str))}


def other(document, decoder):
    if document != {'t': 'undefined'}:
        raise CanonError('%.100r is no type' % (document.get('t'),))
    return Undefined


def decode(text):
    return canon['decode'](text, other, table=TABLE)


def iso_of(date):
    """As toJSON() writes it, or None for a date that there is not."""
    datetime = __import__('datetime')
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=date.ms)
        return '%sT%02d:%02d:%02d.%03dZ' % (moment.date(), moment.hour, moment.minute, moment.second, moment.microsecond // 1000)
    except (OverflowError, ValueError):
        return None


class Full(Exception):
    pass


class Writer:
    """The beginning of a value's text."""

    def __init__(self, room):
        self.parts = []
        self.room = room
        self.open = set()

    def put(self, text):
        self.parts.append(text[:self.room])
        self.room -= len(text)
        if self.room <= 0:
            raise Full

    def show(self, value):
        kind = type(value)
        if kind is list or kind is Set or kind is Map or kind is dict:
            if id(value) in self.open:
                self.put('[Circular]')
                return
            self.open.add(id(value))
            self.show_items(value, kind)
            self.open.remove(id(value))
        elif value is Undefined:
            self.put('undefined')
        elif kind is Date:
            self.put(iso_of(value) or 'Invalid Date')
        elif kind is float and value - value:
            self.put({'nan': 'NaN', 'inf': 'Infinity', '-inf': '-Infinity'}[repr(value)])
        elif kind is int and value.bit_length() > 8 * self.room:
            self.put(hex(value))
        elif kind is str:
            self.put(write_json(value[:self.room]) if value.isascii() else '"%s"' % value[:self.room])
        else:
            self.put(write_json(value) if value is None or kind in (bool, int, float) else repr(value))

    def show_items(self, value, kind):
        before, after = {list: '[]', dict: '{}', Set: ('Set {', '}'), Map: ('Map {', '}')}[kind]
        self.put(before)
        for number, item in enumerate(value.items() if kind is dict else value):
            if number:
                self.put(', ')
            if kind in (dict, Map):
                self.show(item[0])
                self.put(': ' if kind is dict else ' => ')
                item = item[1]
            self.show(item)
        self.put(after)


def show(value, room):
    writer = Writer(room)
    try:
        writer.show(value)
    except Full:
        pass
    return ''.join(writer.parts)
