"""Whether a value is the expected one.

Equal is what Python calls equal, with two differences: nan is equal to nan, since somebody who expects nan means it, and a
request can ask for less (tolerance) or more (types that are the same) all the way down.  The values come from the decoder, so
they have no methods of a program's.  An expected value is a tree, which bounds the work: a hostile value may be small and yet,
with what it refers to twice written out twice, endless.
"""

import math

javascript = load_part('javascript_values')
Date, Map, Set, Undefined = (javascript[name] for name in ('Date', 'Map', 'Set', 'Undefined'))

PAIRS_MAX = 1 << 20             # tries to find a partner for something in a set
NUMBERS = bool, int, float, complex
REALS = bool, int, float
ROWS = list, tuple


def is_numpy(value):
    return type(value).__module__ == 'numpy'


def is_real(kind):
    return kind in REALS or (kind.__module__, kind.__name__) in (('decimal', 'Decimal'), ('fractions', 'Fraction'))


def fraction_of(number):
    return __import__('fractions').Fraction(number)


def decimal_of(number):
    Decimal = __import__('decimal').Decimal
    return Decimal(number.numerator) / number.denominator if type(number).__name__ == 'Fraction' else Decimal(number)


def hashed(kind, items):
    try:
        return kind(items)
    except TypeError:           # there is something in it that no expected value can have at this place
        return Undefined


class Comparison:
    def __init__(self, strict=False, tolerance=None, is_javascript=False):
        self.strict = strict
        self.tolerance = tolerance
        self.is_javascript = is_javascript
        self.tries = PAIRS_MAX
        self.open = set()

    def same(self, want, got):
        pair = id(want), id(got)
        if pair in self.open:
            return True
        self.open.add(pair)
        try:
            return self.compare(want, got)
        finally:
            self.open.remove(pair)

    def compare(self, want, got):
        if is_numpy(want) or is_numpy(got):
            return self.same_arrays(want, got)
        if self.is_javascript:
            got = self.in_terms_of(want, got)
        kinds = type(want), type(got)
        if self.strict and kinds[0] is not kinds[1] and not (self.is_javascript and set(kinds) == {int, float}):
            return False
        if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            return self.same_numbers(want, got)
        if isinstance(want, dict) and isinstance(got, dict):
            return self.same_dicts(want, got)
        if isinstance(want, (set, frozenset)) and isinstance(got, (set, frozenset)):
            return self.same_sets(want, got)
        if kinds[0] is kinds[1] and (kinds[0] in ROWS or kinds[0].__name__ == 'deque'):
            return len(want) == len(got) and all(map(self.same, want, got))
        try:
            if want == got or (want != want and got != got):
                return True
            return self.tolerance is not None and all(map(is_real, kinds)) and self.are_close(want, got)
        except ArithmeticError:         # a Decimal that signals
            return False

    def are_close(self, want, got):
        """Numbers of any type that is equal to another one's, without the bounds of a float."""
        if any(type(number).__name__ == 'Decimal' for number in (want, got)):
            want, got = map(decimal_of, (want, got))
            tolerance = decimal_of(self.tolerance)
        elif float in (type(want), type(got)):
            return math.isclose(want, got, rel_tol=self.tolerance, abs_tol=self.tolerance)
        else:
            tolerance = fraction_of(self.tolerance)
        return abs(want - got) <= max(tolerance, tolerance * max(abs(want), abs(got)))

    def in_terms_of(self, want, got):
        """A value of JavaScript's as people write one: there is no JSON for a Map.  Strictly, only what is of its kind will do."""
        kind = type(got)
        if kind is Set and type(want) is set:
            return hashed(set, got)
        if kind is Map and type(want) is dict:
            return hashed(dict, got)
        if self.strict:
            return got
        if got is Undefined:
            return None
        if kind is Date:
            return javascript['iso_of'](got) if type(want) is str else got.ms
        if kind is Map and type(want) is list:
            return [list(pair) for pair in got]
        return list(got) if kind in (Set, bytes) and type(want) is list else got

    def same_numbers(self, want, got):
        if want == got:
            return True
        if want != want or got != got:
            return self.same_nan(complex(want), complex(got))
        if self.tolerance is None:
            return False
        try:
            if complex in (type(want), type(got)):
                return abs(want - got) <= max(self.tolerance, self.tolerance * max(abs(want), abs(got)))
            return math.isclose(want, got, rel_tol=self.tolerance, abs_tol=self.tolerance)
        except OverflowError:           # an int that no float is as large as
            return float not in (type(want), type(got)) and complex not in (type(want), type(got)) and self.are_close(want, got)

    @staticmethod
    def same_nan(want, got):
        return all(a == b or (a != a and b != b) for a, b in ((want.real, got.real), (want.imag, got.imag)))

    def same_dicts(self, want, got):
        if type(want) is type(got) and type(want).__name__ == 'OrderedDict':
            return len(want) == len(got) and all(self.same(*keys) and self.same(want[keys[0]], got[keys[1]])
                                                 for keys in zip(want, got))
        if type(want).__name__ == type(got).__name__ == 'Counter':
            want, got = ({key: count for key, count in counter.items() if count} for counter in (want, got))
        partners = self.partners(want, got)
        return partners is not None and all(self.same(want[key], got[other]) for key, other in partners)

    def same_sets(self, want, got):
        return self.partners(want, got) is not None

    def partners(self, want, got):
        """For each of these things one of the others that is the same: a list of pairs, or None."""
        if len(want) != len(got):
            return None
        known = {key: key for key in got}
        pairs, left = [], []
        for key in want:
            other = known.pop(key, Undefined)
            if other is Undefined:
                left.append(key)
            elif self.strict and not self.same(key, other):
                return None
            else:
                pairs.append((key, other))
        left, rest = map(self.in_order, (left, known))
        if all(map(self.same, left, rest)):
            return pairs + list(zip(left, rest))
        found = self.search(left, rest)
        return None if found is None else pairs + found

    @staticmethod
    def in_order(keys):
        try:
            return sorted(keys)
        except (TypeError, ArithmeticError):
            return list(keys)

    def search(self, left, rest):
        """Where sorting does not help: nan, or keys of several types."""
        pairs = []
        for key in left:
            for number, other in enumerate(rest):
                self.tries -= 1
                if self.tries < 0:
                    return None
                if self.same(key, other):
                    pairs.append((key, rest.pop(number)))
                    break
            else:
                return None
        return pairs

    def same_arrays(self, want, got):
        """numpy's: of one another also their shapes and, if it matters, their types; of lists and numbers what is in them."""
        if self.strict and (type(want) is not type(got) or want.dtype != got.dtype):
            return False
        if is_numpy(want) and is_numpy(got) and want.shape != got.shape:
            return False
        return self.same(*(value.tolist() if is_numpy(value) else value for value in (want, got)))


def same(want, got, **rules):
    with load_part('canon')['deep']():
        return Comparison(**rules).same(want, got)
