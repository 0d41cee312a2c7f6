"""Values that are equal by Python's own equality, without being of the same type."""

import pytest

from grading import calls, statuses

HEAD = '''
import collections, collections.abc, decimal, enum, fractions, http, time, types, typing
Pair = collections.namedtuple('Pair', 'a b')
class Point(typing.NamedTuple):
    x: int
    y: float = 0.5
class Colour(enum.IntEnum):
    RED = 1
class Shade(str, enum.Enum):
    DARK = 'dark'
class Bits(enum.IntFlag):
    A = 1
    B = 2
class Int(int): pass
class Float(float): pass
class Complex(complex): pass
class Text(str): pass
class Bytes(bytes): pass
class Array(bytearray): pass
class List(list):
    def total(self): return sum(self)
class Tuple(tuple): pass
class Dict(dict):
    def __missing__(self, key): return 0
class Set(set): pass
class Frozen(frozenset): pass
class Money(decimal.Decimal): pass
class Ratio(fractions.Fraction): pass
class Deque(collections.deque): pass
class Tally(collections.Counter): pass
class Ordered(collections.OrderedDict): pass
class Default(collections.defaultdict): pass
class Liar(int):
    def __int__(self): return 7
    def __index__(self): return 7
    def __repr__(self): return '7'
    __class__ = str
class LyingList(list):
    def __iter__(self): return iter([7])
    def __len__(self): return 1
    def __getitem__(self, key): return 7
class LyingDict(dict):
    def items(self): return [(7, 7)]
    def __iter__(self): return iter([7])
def f(text):
    return eval(text)
'''
EQUAL = [
    ('Pair(1, [2])', '(1, [2])'), ('Point(1)', '(1, 0.5)'), ('[Pair(1, 2), Pair(3, 4)]', '[(1, 2), (3, 4)]'), ('{Pair(1, 2): Pair(3, 4)}', '{(1, 2): (3, 4)}'),
    ('Colour.RED', '1'), ('{Colour.RED: Colour.RED}', '{1: 1}'), ('Shade.DARK', '"dark"'), ('Bits.A | Bits.B', '3'), ('http.HTTPStatus.OK', '200'),
    ('Int(5)', '5'), ('Int(2**70)', str(2 ** 70)), ('Float(1.5)', '1.5'), ('Complex(1, 2)', '1+2j'), ('Text("ä")', '"ä"'), ('Bytes(b"a")', 'b"a"'), ('Array(b"a")', 'b"a"'),
    ('List([1, Int(2)])', '[1, 2]'), ('Tuple((1, 2))', '(1, 2)'), ('Dict(a=1)', '{"a": 1}'), ('Set({1, 2})', '{1, 2}'), ('Frozen({1})', '{1}'), ('{Frozen({1}): 2}', '{frozenset({1}): 2}'),
    ('Money("1.50")', 'Decimal("1.5")'), ('Money("2")', '2'), ('Ratio(1, 2)', '0.5'), ('Deque([1, 2])', 'deque([1, 2])'),
    ('Tally("aab")', '{"a": 2, "b": 1}'), ('Ordered(a=1, b=2)', '{"b": 2, "a": 1}'), ('Default(list, {1: [2]})', '{1: [2]}'),
    ('collections.Counter("aab")', '{"a": 2, "b": 1}'), ('collections.defaultdict(int, a=1)', '{"a": 1}'), ('collections.OrderedDict(a=1)', '{"a": 1}'),
    ('collections.deque([1, 2])', 'deque([1, 2])'), ('{1: 2}.keys()', '{1}'), ('{1: 2}.items()', '{(1, 2)}'), ('collections.OrderedDict(a=1).keys()', '{"a"}'),
    ('collections.UserDict(a=1)', '{"a": 1}'), ('collections.UserList([1])', '[1]'), ('collections.UserString("a")', '"a"'), ('time.gmtime(0)', '(1970, 1, 1, 0, 0, 0, 3, 1, 0)'),
    ('Liar(5)', '5'), ('LyingList([1, 2])', '[1, 2]'), ('LyingDict({1: 2})', '{1: 2}'), ('(lambda x: [x, x])(List([1]))', '[[1], [1]]'), ('True', '1'),
]
DIFFERENT = [
    ('Pair(1, 2)', '[1, 2]'), ('Pair(1, 2)', '(1, 3)'), ('Colour.RED', '2'), ('Int(5)', '7'), ('Liar(5)', '7'), ('LyingList([1, 2])', '[7]'), ('LyingDict({1: 2})', '{7: 7}'),
    ('collections.deque([1, 2])', '[1, 2]'), ('{1: 2}.keys()', '[1]'), ('Ordered(a=1, b=2)', 'OrderedDict([("b", 2), ("a", 1)])'), ('Tuple((1,))', '[1]'), ('Text("a")', 'b"a"'),
    ('collections.UserList([1])', '(1,)'),
]


@pytest.mark.parametrize('shape', ['%s', '[%s]', '{"k": (%s, 1)}'], ids=['alone', 'in a list', 'deeper'])
def test_equal_is_what_python_calls_equal(shape):
    def cases(pairs):
        return ({'args': [shape % got], 'expected_python': shape % want} for got, want in pairs)

    result = calls(HEAD, *cases(EQUAL))
    assert result['all_passed'], [(pair, case['detail']) for pair, case in zip(EQUAL, result['cases']) if not case['passed']]
    result = calls(HEAD, *cases(DIFFERENT))
    assert statuses(result) == ['failed'] * len(DIFFERENT), [(pair, case['detail']) for pair, case in zip(DIFFERENT, result['cases'])]


def test_scalars_and_arrays_of_numpy():
    code = 'import numpy as np\ndef f(text): return eval(text)\n'
    pairs = [('np.float64(1.5)', '1.5'), ('np.int64(3)', '3'), ('np.bool_(True)', 'True'), ('[np.int32(1), np.float32(0.5)]', '[1, 0.5]'), ('np.arange(3)', '[0, 1, 2]'),
             ('np.str_("a")', '"a"'), ('{np.int64(1): np.float64(2)}', '{1: 2.0}'), ('np.complex128(1j)', '1j')]
    result = calls(code, *({'args': [got], 'expected_python': want} for got, want in pairs), image='data')
    assert result['all_passed'], [case['detail'] for case in result['cases']]


def test_types_are_still_told_apart():
    result = calls(HEAD, {'args': ['Pair(1, 2)'], 'expected_python': '(1, 2)', 'strict_type': True}, {'args': ['[Int(1)]'], 'expected': [1], 'strict_type': True},
                   {'args': ['Pair(1, 2)'], 'expected_type': 'tuple'}, {'args': ['Pair(1, 2)'], 'expected_type': 'Pair'}, {'args': ['Pair(1, 2)'], 'expected_type': 'list'})
    assert statuses(result) == ['failed', 'failed', 'passed', 'passed', 'failed']
    assert 'Pair' in result['cases'][0]['detail']


# A class that would decide the verdict, in every way in which it can say something of its equality.
DECIDING = '''
import collections, decimal, enum, fractions
class Meta(type):
    def __eq__(self, other): return True
    __hash__ = type.__hash__
def always(self, *other): return True
def f(n):
    bases = [int, str, list, tuple, dict, set, frozenset, float, bytes, complex, collections.deque, collections.Counter, collections.OrderedDict,
             collections.defaultdict, decimal.Decimal, fractions.Fraction]
    base = bases[n // 4]
    how = n % 4
    if how == 0: return type('Own', (base,), {'__eq__': always, '__hash__': base.__hash__})()
    if how == 1: return type('Own', (type('Middle', (base,), {'__eq__': always}),), {})()
    if how == 2: return type('Own', (type('Mixin', (), {'__eq__': always, '__ne__': lambda *_: False}), base), {})()
    own = type('Own', (base,), {})
    own.__eq__ = always
    return own()
'''


def test_a_class_with_an_equality_of_its_own_decides_nothing():
    result = calls(DECIDING, *({'args': [n], 'expected': 'SECRET'} for n in range(64)))
    assert statuses(result) == ['unencodable'] * 64, [(n, case['detail']) for n, case in enumerate(result['cases']) if case['status'] != 'unencodable']
    assert {sign['sign'] for sign in result['signs']} == {'suspicious_eq'}


@pytest.mark.parametrize('value', ['type("T", (int,), {"__hash__": lambda self: 1})(5)', 'type("T", (collections.Counter,), {"__getitem__": lambda self, key: 5})()',
                                   'type("T", (collections.UserList,), {"__eq__": lambda *_: True})([1])',
                                   'type("T", (), {"__eq__": lambda *_: True})()', 'type("dict_keys", (), {"__module__": "builtins"})()', '[object()]', 'collections.ChainMap({})'])
def test_what_nobody_can_compare_is_said(value):
    result = calls(f'import collections\ndef f(): return {value}', {'expected': 5})
    assert statuses(result) == ['unencodable']
