"""Values compared as trainers compare them: the rules of LiveCodeBench, verl, Prime and EvalPlus.

Each rule is that of the original, with its oddities, since a trainer that changes the grader wants the same rewards.  Values
come from the decoder, so `==` calls no method of a program.  An expected value is a tree, which bounds the work of `==`.
An error on the way is a wrong answer, as in the originals.
"""

import math

canon, literal = load_part('canon'), load_part('literal')
type_name = canon['type_name']

EVALPLUS_FLOATS = 1e-6          # absolute tolerance where the request has none and floats are expected
EVALPLUS_ROOT = 1e-4            # the same for HumanEval/32
EVALPLUS_RELATIVE = 1e-7
PLAIN_KEYS = {True: 'true', False: 'false', None: 'null'}


# ------------------------------------------------------------------------------------------------------- JSON, and back

class NoJson(Exception):
    """json.dumps() refuses the value."""


class Json:
    """What json.loads(json.dumps(value)) gives.  A value that is referred to twice is converted once."""

    def __init__(self):
        self.open, self.done = set(), {}

    def value(self, value):
        if value is None or isinstance(value, (str, bool, int, float)):
            return value
        if not isinstance(value, (list, tuple, dict)) or id(value) in self.open:
            raise NoJson
        if id(value) not in self.done:
            self.open.add(id(value))
            self.done[id(value)] = (self.items(value), value)
            self.open.remove(id(value))
        return self.done[id(value)][0]

    def items(self, value):
        if isinstance(value, dict):
            return {self.key(key): self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value]

    @staticmethod
    def key(key):
        if isinstance(key, str):
            return key
        if key is None or isinstance(key, bool):
            return PLAIN_KEYS[key]
        if isinstance(key, int):
            return int.__repr__(key)
        if isinstance(key, float):
            return {'nan': 'NaN', 'inf': 'Infinity', '-inf': '-Infinity'}.get(float.__repr__(key), float.__repr__(key))
        raise NoJson


def through_json(value):
    return Json().value(value)


# ---------------------------------------------------------------------------------------------------------------- rules

def same_lcb(got, case):
    """A tuple counts as a list, on top only."""
    return bool((list(got) if isinstance(got, tuple) else got) == case.want)


def with_integer_keys(want):
    """verl undoes JSON's text keys, and makes a list of one dict on the way."""
    for dicts in ([want], want):
        if type(dicts) is list and dicts and type(dicts[0]) is dict:
            try:
                want = [{int(key): item for key, item in dicts[0].items()}]
            except ValueError:
                pass
    return want


def same_verl(got, case):
    through_json(got)           # verl writes the value as JSON for its log, and an error there is a failure
    want = with_integer_keys(case.want)
    if isinstance(got, tuple):
        got = list(got)
    tries = [(got, want)]
    if type(want) is list and want:
        tries.append((got, want[0]))
        if type(got) is list and got and isinstance(got[0], tuple) and all(isinstance(row, (list, tuple, str, dict)) for row in got):
            tries.append(([list(row) for row in got], want[0]))
    return any((one == other) is True for one, other in tries)


def same_prime(got, case):
    """The value leaves the sandbox as JSON; the first element of an expected list will do."""
    got = through_json(got)
    return bool(got == case.want or (type(case.want) is list and got == case.want[0]))


# ------------------------------------------------------------------------------------------------------------- EvalPlus

def root_of_polynomial(got, case):
    coefficients, = case.arguments()
    return abs(sum(factor * math.pow(got, power) for power, factor in enumerate(coefficients))) <= (case.tolerance or EVALPLUS_ROOT)


def surface_of_pyramid(got, case):
    edge, height = case.arguments()
    surface = round(edge ** 2 + 4 * (edge * math.sqrt((edge / 2) ** 2 + height ** 2)) / 2)
    return got == case.want or abs(got - surface) <= (case.tolerance or 0)


def distance_of_digits(got, case):
    first, second = map(str, case.arguments())
    length = max(len(first), len(second))
    return got == case.want or got == sum(abs(int(a) - int(b)) for a, b in zip(first.zfill(length), second.zfill(length)))


def same_set(got, case):
    return set(got) == set(case.want)


def is_a_match(got, case):
    return got == case.want if isinstance(got, bool) else case.want == (got is not None)


# A task by its data set and number or function, and the oracle in place of `==`.
ORACLES = {
    ('humaneval', '32', 'find_zero'): root_of_polynomial,
    ('mbpp', '164', 'are_equivalent'): lambda got, case: True,
    ('mbpp', '295', 'sum_div'): lambda got, case: got == case.want or got == 0,
    ('mbpp', '581', 'surface_Area'): surface_of_pyramid,
    ('mbpp', '558', 'digit_distance_nums'): distance_of_digits,
    ('mbpp', '', 'check_str'): is_a_match,
    ('mbpp', '', 'text_match_three'): is_a_match,
    ('mbpp', '', 'text_starta_endb'): is_a_match,
    ('mbpp', '2', 'similar_elements'): same_set,
    ('mbpp', '7', 'find_char_long'): same_set,
    ('mbpp', '111', 'common_in_nested_lists'): same_set,
    ('mbpp', '140', 'extract_singly'): same_set,
    ('mbpp', '232', 'larg_nnum'): same_set,
    ('mbpp', '249', 'intersection_array'): same_set,
    ('mbpp', '579', 'find_dissimilar'): same_set,
    ('mbpp', '769', 'Diff'): same_set,
}
DATA_SETS = {'humanevalplus': 'humaneval', 'mbppplus': 'mbpp'}


def oracle_of(case):
    """By the number of a task in its id, HumanEval/32, or by the function of a task of a known data set."""
    name, slash, rest = case.text_of('task').partition('/')
    data = name.lower() if slash and name.lower() in DATA_SETS.values() else DATA_SETS.get(case.text_of('format'))
    number = rest[:len(rest) - len(rest.lstrip('0123456789'))].lstrip('0')
    function = case.text_of('function').rpartition('.')[2]
    for (of_data, of_number, of_function), oracle in ORACLES.items():
        if data == of_data and (function == of_function or (number and number == of_number)):
            return oracle
    return None


def has_floats(want):
    if type(want) in (list, tuple) and want:
        return all(isinstance(item, float) for item in want)
    return isinstance(want, float) or (is_array(want) and want.dtype.name in ('float32', 'float64'))


def is_array(value):
    return type(value).__module__ == 'numpy' and type(value).__name__ == 'ndarray'


def flat(value):
    """(shape, numbers) of a number or of lists of numbers in lists, as numpy.array() reads them."""
    if not isinstance(value, (list, tuple)):
        if not isinstance(value, (int, float, complex)):
            raise TypeError
        return (), [value]
    parts = list(map(flat, value))
    if any(shape != parts[0][0] for shape, _ in parts):
        raise ValueError
    numbers = [number for _, numbers in parts for number in numbers]
    return (len(parts), *(parts[0][0] if parts else ())), numbers


def are_objects(numbers):
    """Integers of more than 64 bits make an array of objects of numpy's, for which it has no distances."""
    return any(isinstance(number, int) and not -1 << 63 <= number < 1 << 64 for number in numbers)


def are_close(got, want, tolerance):
    """As numpy.allclose() for numbers, and for lists of numbers of the same shape; nan is close to nothing."""
    (shape, numbers), (of_want, wanted) = flat(got), flat(want)
    if shape != of_want or are_objects(numbers) or are_objects(wanted):
        return False
    return all(a == b or abs(a - b) <= tolerance + EVALPLUS_RELATIVE * abs(b) < math.inf for a, b in zip(numbers, wanted))


def same_arrays(got, want, tolerance):
    numpy = __import__('numpy')
    if numpy.size(got) == numpy.size(want) == 1 and bool(numpy.all(got == want)):
        return True
    return type(got) is type(want) and got.shape == want.shape and bool(numpy.allclose(got, want, rtol=EVALPLUS_RELATIVE, atol=tolerance))


def same_evalplus(got, case):
    oracle = oracle_of(case)
    if oracle is root_of_polynomial:
        return root_of_polynomial(got, case)
    if not case.has_want:
        return True
    tolerance = case.tolerance or 0
    if not tolerance and has_floats(case.want):
        tolerance = EVALPLUS_FLOATS
    if is_array(case.want) or is_array(got):
        return same_arrays(got, case.want, tolerance)
    if oracle(got, case) if oracle else got == case.want:
        return True
    return bool(tolerance) and case.type == type_name(type(case.want)) and are_close(got, case.want, tolerance)


# ------------------------------------------------------------------------------------------------------- what is judged

RULES = {'lcb': same_lcb, 'verl': same_verl, 'prime': same_prime, 'evalplus': same_evalplus}


class Case:
    """What a rule needs besides the value: the expected value, the name of the value's type, and the SPEC of the case."""

    def __init__(self, spec, has_want, want, type_of_value, tolerance):
        self.spec, self.has_want, self.want = spec, has_want, want
        self.type, self.tolerance = type_of_value, tolerance
        self.rule = RULES.get(self.text_of('compare'))

    def text_of(self, name):
        text = self.spec.get(name)
        return text if type(text) is str else ''

    def arguments(self):
        return literal['read_value'](self.spec, 'args')[0]

    def needs_no_value(self):
        """EvalPlus has a rule for values that cannot be compared: whether there is one."""
        return self.has_want and self.rule is same_evalplus and oracle_of(self) is is_a_match and self.want is True

    def accepts(self, got):
        if not self.has_want and self.rule is not same_evalplus:
            return True
        try:
            with canon['deep']():
                return bool(self.rule(got, self))
        except Exception:               # as the originals: a value that their rule cannot take is wrong
            return False
