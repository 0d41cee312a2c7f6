"""The canonical form of values (canon.py of Python's runner), by itself."""

import builtins
import collections
import datetime
import decimal
import fractions
import json
import math
import uuid

import pytest
from runners import LANG

numpy = pytest.importorskip('numpy')


def canon_names():
    path = LANG / 'python' / 'canon.py'
    names = {'__builtins__': dict(vars(builtins)), '__name__': 'canon'}
    exec(compile(path.read_text(), str(path), 'exec'), names)
    return names


CANON = canon_names()
CanonError = CANON['CanonError']
VALUES = [
    None, True, False, 0, -1, 2 ** 63, 10 ** 400, 2 ** 5000, -2 ** 100000, 0.0, -0.0, 1.0, 1e300, 5e-324, math.nan, math.inf, -math.inf,
    '', 'é\0"\\\u2028', '\ud800', 'a\udfffb', '\U0001f600', [], [1, [2, []]], (), (1, (2,)), {}, {1: 2, 'a': [], (1, 2): {}, None: 1}, set(), {1, 'a', (1, 2)},
    frozenset(), frozenset({frozenset({1})}), b'', bytes(range(256)), bytearray(b'ab'), 1j, complex(math.nan, -math.inf), range(5), range(9, 0, -2),
    slice(1), slice(None, 'a', [1]), ..., collections.deque([1, [2]]), collections.OrderedDict([('b', 1), ('a', 2)]), collections.Counter('abca'),
    decimal.Decimal('1.500'), decimal.Decimal('-Infinity'), decimal.Decimal('NaN123'), fractions.Fraction(-1, 3), datetime.date(2020, 2, 29),
    datetime.datetime(1, 1, 1), datetime.datetime(2020, 1, 1, 1, 2, 3, 4, datetime.timezone.utc, fold=1), datetime.time(1, 2, 3, 4),
    datetime.time(1, tzinfo=datetime.timezone(datetime.timedelta(hours=-1), 'X')), datetime.timedelta(-1, 5, 7), datetime.timezone.utc,
    datetime.timezone(datetime.timedelta(seconds=5)), uuid.UUID(int=2 ** 127), numpy.arange(6.0).reshape(2, 3), numpy.zeros((0, 4), 'int8'),
    numpy.array(['ab', 'c']), numpy.array([True]), numpy.array(5), numpy.float32(1.5), numpy.int64(-1), numpy.str_('x'), numpy.bool_(True),
    numpy.datetime64('2020-01-01'), numpy.array([b'x']), numpy.complex128(1j),
]


@pytest.mark.parametrize('value', VALUES, ids=range(len(VALUES)))
def test_canonical_form_and_back(value):
    text = CANON['encode'](value)
    assert text.isascii() and (type(value) not in (str, bool) or json.loads(text) == value)
    back = CANON['decode'](text)
    assert type(back) is type(value)
    if isinstance(value, (set, frozenset)):   # which have no order: it depends on the hashes of this process, and on what came first
        assert back == value
    else:                                     # repr() tells -0.0 from 0.0, and finds that nan is nan; of a large int it would be refused
        assert back == value if type(value) is int else repr(back) == repr(value)
        assert CANON['encode'](back) == text


def test_a_defaultdict_comes_back_without_its_factory():
    back = CANON['decode'](CANON['encode'](collections.defaultdict(list, {1: [2]})))
    assert type(back) is collections.defaultdict and back == {1: [2]} and back.default_factory is None


def test_what_is_shared_comes_back_shared():
    inner, buffer = [1], bytearray(b'x')
    value = [inner, {'k': inner}, (inner, buffer), collections.deque([buffer])]
    value.append(value)
    back = CANON['decode'](CANON['encode'](value))
    assert back[0] is back[1]['k'] is back[2][0] and back[2][1] is back[3][0] and back[4] is back
    named = {}
    named['me'] = collections.OrderedDict(a=named)
    back = CANON['decode'](CANON['encode'](named))
    assert back['me']['a'] is back


class Int(int):
    pass


Point = collections.namedtuple('Point', 'x y')
Fake = type('Decimal', (), {'__module__': 'decimal', '__str__': lambda self: '1'})
NOT_CANONICAL = [
    object(), Int(5), Point(1, 2), type('L', (list,), {})(), type('D', (dict,), {})(), Fake(), int, len, lambda: 0, iter([]), (x for x in ()), NotImplemented,
    json, Exception(), {1: object()}, [Point(1, 2)], memoryview(b''), {}.keys(), datetime.tzinfo(), numpy.array([object()]), 'x' * (9 << 20), bytes(7 << 20),
    numpy.zeros(8 << 20, 'int8'), [0] * (9 << 20), 1 << (40 << 20),
]


@pytest.mark.parametrize('value', NOT_CANONICAL, ids=range(len(NOT_CANONICAL)))
def test_what_has_no_canonical_form(value):
    with pytest.raises(CanonError):
        CANON['encode'](value)


@pytest.mark.parametrize('wrap', [lambda x: [x], lambda x: (x,), lambda x: {1: x}, lambda x: collections.deque([x]), lambda x: slice(x)])
def test_depth_has_a_limit(wrap):
    value = 1
    for _ in range(1000):
        value = wrap(value)
    text = CANON['encode'](value)
    assert CANON['encode'](CANON['decode'](text)) == text
    with pytest.raises(CanonError):
        CANON['encode'](wrap(value))
    with pytest.raises(CanonError):
        CANON['decode']('[%s]' % text)


HOSTILE = [
    '', ' ', 'nan', 'NaN', 'Infinity', '[', ']', '[1', '[1,]', '{"t":"tuple"', '"', '"\x01"', '1 2', '[1] 2', '1e999', '-1e999', '9' * 5000, '[' * 1000000,
    '{"t":' * 100000, '[' * 1001 + ']' * 1001, '{}', '{"v":1}', '{"t":"x","v":1}', '{"t":["a"],"v":1}', '{"t":null,"v":1}', '{"t":"tuple"}', '{"t":"tuple","v":5}',
    '{"t":"tuple","v":[],"x":1}', '{"t":"set","v":[[]]}', '{"t":"frozenset","v":[{"t":"dict","v":[]}]}', '{"t":"dict","v":[[1]]}', '{"t":"dict","v":[1]}',
    '{"t":"dict","v":[[[],1]]}', '{"t":"dict","v":{}}', '{"t":"ref","v":0}', '{"t":"ref","v":-1}', '{"t":"ref","v":true}', '[{"t":"ref","v":1}]',
    '[{"t":"ref","v":"0"}]', '{"t":"set","v":[{"t":"ref","v":0}]}', '{"t":"int","v":5}', '{"t":"int","v":"x"}', '{"t":"float","v":"1"}', '{"t":"float","v":[]}',
    '{"t":"bytes","v":"a"}', '{"t":"bytes","v":"YQ==YQ=="}', '{"t":"bytes","v":"\\u00e9"}', '{"t":"bytes","v":5}', '{"t":"complex","v":[1,2]}', '{"t":"complex","v":[1.0]}',
    '{"t":"range","v":[1,2]}', '{"t":"range","v":[1,2,0]}', '{"t":"range","v":["a",1,2]}', '{"t":"slice","v":[1,2,3,4]}', '{"t":"ellipsis","v":1}',
    '{"t":"decimal.Decimal","v":"x"}', '{"t":"decimal.Decimal","v":1}', '{"t":"fractions.Fraction","v":[1,0]}', '{"t":"fractions.Fraction","v":[1.0,2]}',
    '{"t":"fractions.Fraction","v":[1,{"t":"int","v":"0x%s"}]}' % ('f' * 100000), '{"t":"datetime.date","v":[2020,13,1]}', '{"t":"datetime.date","v":[%s,1,1]}' % ('9' * 30),
    '{"t":"datetime.datetime","v":[]}', '{"t":"datetime.datetime","v":"x"}', '{"t":"datetime.datetime","v":[2020,1,1,0,0,0,0,0,"UTC"]}',
    '{"t":"datetime.timedelta","v":[%s,0,0]}' % ('9' * 30), '{"t":"datetime.timezone","v":[5]}', '{"t":"datetime.timezone","v":[]}', '{"t":"uuid.UUID","v":"x"}',
    '{"t":"numpy.ndarray","v":["O",[1],"AAAAAAAAAAA="]}', '{"t":"numpy.ndarray","v":["O8",[1],"AAAAAAAAAAA="]}', '{"t":"numpy.ndarray","v":["i4,O",[1],"AAAAAAAAAAA="]}',
    '{"t":"numpy.ndarray","v":["<f8",[2],"AAAAAAAAAAA="]}', '{"t":"numpy.ndarray","v":["<f8",[-1],"AAAAAAAAAAA="]}', '{"t":"numpy.ndarray","v":["<f8",[99999999999999999999],""]}',
    '{"t":"numpy.ndarray","v":["<f8",1]}', '{"t":"numpy.generic","v":["V8",[],"AAAAAAAAAAA="]}', '{"t":"os.system","v":"x"}', '{"t":"handle","v":1}', 'x' * (9 << 20),
]


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_documents_are_refused(text):
    with pytest.raises(CanonError):
        CANON['decode'](text)


def test_what_has_no_form_can_be_given_one():
    seen = []

    def encode_other(value, encoder):
        seen.append(value)
        return {'t': 'handle', 'v': len(seen) - 1, 'of': encoder.document(value.__name__)}

    text = CANON['encode']([len, (max,)], encode_other)
    assert CANON['decode'](text, lambda document, decoder: seen[document['v']]) == [len, (max,)]
    with pytest.raises(CanonError):
        CANON['decode'](text)
