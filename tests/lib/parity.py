"""What the parity suites share: submissions with the verdict of an original, beside the verdicts of `caisson grade`.

A suite states the rule of an original as a short function of its own.  Each submission has a kind; the kinds whose verdicts differ
have to be those that docs/use/grading.md lists for the original, with a reason.
"""

import json
import re

from cli import ROOT, caisson

N = 200


class Submission:
    def __init__(self, kind, accepted, **request):
        self.kind, self.accepted, self.request = kind, bool(accepted), request


def listed_differences(original):
    """The kinds in the table of docs/use/grading.md, below "Differences to the originals"."""
    section = (ROOT / 'docs/use/grading.md').read_text().partition('## Differences to the originals')[2].partition('\n## ')[0]
    rows = re.findall(r'^\| `([\w-]+)` \| ([^|]+) \| [^|]+ \| [^|]+ \|$', section, re.MULTILINE)
    return {kind for name, kind in rows if name == original}


def verdicts(submissions):
    text = ''.join(json.dumps({'id': str(number), **submission.request}) + '\n' for number, submission in enumerate(submissions)).encode()
    done = caisson('grade', '--json', '-j', '4', '-', stdin=text)
    results = list(map(json.loads, done.out.strip('\n').split('\n')))
    assert len(results) == len(submissions), done.err
    assert not any(result['mask'] or result['status'] == 'bad_request' for result in results), results
    return results


def check(original, submissions):
    """Verdict by verdict: differences are of the listed kinds, and each listed kind does differ."""
    assert len(submissions) == N
    assert .2 * N < sum(submission.accepted for submission in submissions) < .8 * N, 'a suite of one verdict shows nothing'
    listed, found, wrong = listed_differences(original), set(), []
    for submission, result in zip(submissions, verdicts(submissions)):
        if result['all_passed'] == submission.accepted:
            continue
        found.add(submission.kind)
        if submission.kind not in listed:
            wrong.append((submission.kind, submission.accepted, submission.request, result['status'], [case['detail'] for case in result['cases']]))
    assert not wrong, '\n'.join(map(repr, wrong))
    assert found == listed, 'listed and the same: %s' % (listed - found)


# ---- outputs

def writes(output):
    return 'import sys\nsys.stdin.read()\nsys.stdout.buffer.write(%r)\n' % output.encode()


def random_text(rng):
    """Lines of numbers and words."""
    words = [lambda: str(rng.randint(-50, 50)), lambda: str(rng.randint(0, 10 ** 18)), lambda: '%.3f' % rng.uniform(-9, 9), lambda: rng.choice(['YES', 'no', 'a-b', 'x'])]
    kind = rng.choice([words, words[:2], words[:3], words[3:]])
    return '\n'.join(' '.join(rng.choice(kind)() for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 4))) + '\n'


def change_word(text, rng, change):
    """The text with one of its words changed, of those that are numbers if there are any."""
    parts = re.split(r'(\s+)', text)
    numbers = [n for n, part in enumerate(parts) if re.fullmatch(r'-?\d+(\.\d+)?', part)]
    place = rng.choice(numbers or [n for n, part in enumerate(parts) if part.strip()])
    parts[place] = change(parts[place])
    return ''.join(parts)


def other_digits(word):
    return word.translate({ord('0') + n: 0x660 + n for n in range(10)})


# How an output differs from what is expected.
OUTPUTS = {
    'the same': lambda text, rng: text,
    'no line feed at the end': lambda text, rng: text.rstrip('\n'),
    'line feeds at the end': lambda text, rng: text + '\n\n',
    'an empty line at the beginning': lambda text, rng: '\n' + text,
    'blanks at the ends of lines': lambda text, rng: text.replace('\n', ' \t\n'),
    'blanks at the beginnings of lines': lambda text, rng: '  ' + text.rstrip('\n').replace('\n', '\n  ') + '\n',
    'an empty line in the middle': lambda text, rng: text.replace('\n', '\n\n', 1),
    'carriage returns': lambda text, rng: text.replace('\n', '\r\n'),
    'carriage returns alone': lambda text, rng: text.replace('\n', '\r'),
    'wide blanks between words': lambda text, rng: text.replace(' ', '  '),
    'tabs between words': lambda text, rng: text.replace(' ', '\t'),
    'white space of Unicode at the end': lambda text, rng: text.rstrip('\n') + '\u3000\u00a0\u2028',
    'separators of Unicode in place of line feeds': lambda text, rng: text.rstrip('\n').replace('\n', '\u2028'),
    'a form feed in place of a blank': lambda text, rng: text.replace(' ', '\f', 1),
    'one line': lambda text, rng: text.replace('\n', ' '),
    'a word a line': lambda text, rng: text.replace(' ', '\n'),
    'nothing': lambda text, rng: '',
    'a line more': lambda text, rng: text + '0\n',
    'a line less': lambda text, rng: text.rstrip('\n').rpartition('\n')[0],
    'a word more': lambda text, rng: text.rstrip('\n') + ' 0\n',
    'other case': lambda text, rng: text.swapcase(),
    'zeros after the point': lambda text, rng: change_word(text, rng, lambda word: word + ('0' if '.' in word else '.00')),
    'an exponent': lambda text, rng: change_word(text, rng, lambda word: word + 'e0'),
    'a plus sign': lambda text, rng: change_word(text, rng, lambda word: word if word.startswith('-') else '+' + word),
    'zeros in front': lambda text, rng: change_word(text, rng, lambda word: word.replace('-', '-00') if '-' in word else '00' + word),
    'underscores': lambda text, rng: change_word(text, rng, lambda word: word + '_'),
    'other digits': lambda text, rng: change_word(text, rng, other_digits),
    'off by one': lambda text, rng: change_word(text, rng, lambda word: str(int(float(word)) + 1) if re.fullmatch(r'-?\d+(\.\d+)?', word) else word + '1'),
    'off by a millionth': lambda text, rng: change_word(text, rng, lambda word: (word if '.' in word else word + '.000') + '0001'),
    'off by a thousandth': lambda text, rng: change_word(text, rng, lambda word: (word if '.' in word else word + '.') + ('001' if '.' not in word else '9')),
    'off by a hundredth': lambda text, rng: change_word(text, rng, lambda word: word + '.01' if '.' not in word else word.replace('.', '.9')),
    'not a number': lambda text, rng: change_word(text, rng, lambda word: 'nan'),
    'infinite': lambda text, rng: change_word(text, rng, lambda word: 'inf'),
    'hexadecimal': lambda text, rng: change_word(text, rng, lambda word: '0x' + word),
}


def of_output(rng, kind, rule, **request):
    expected = random_text(rng)
    output = OUTPUTS[kind](expected, rng)
    return Submission(kind, rule(output, expected), code=writes(output), cases=[{'stdin': 'x\n', 'expected_stdout': expected}], **request)


# ---- values

def random_value(rng, depth=2):
    kind = rng.randrange(7 if depth else 4)
    if kind < 4:
        return rng.choice([rng.randint(-9, 9), 10 ** 20, rng.choice(['a', '', 'é']), rng.random() < .5, None, round(rng.uniform(-9, 9), 3)])
    if kind == 4:
        return {rng.choice(['1', '22', 'k']): random_value(rng, depth - 1)}
    return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]


def tuples(value):
    """All lists as tuples."""
    if isinstance(value, dict):
        return {key: tuples(item) for key, item in value.items()}
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def integer_keys(value):
    if isinstance(value, dict):
        return {int(key) if key.isdigit() else key: integer_keys(item) for key, item in value.items()}
    return list(map(integer_keys, value)) if isinstance(value, list) else value


def near(value):
    """All floats a bit larger."""
    if isinstance(value, list):
        return list(map(near, value))
    return value * (1 + 1e-9) if isinstance(value, float) else value


# How a value differs from the expected one: Python's text of what comes, by what is expected.
VALUES = {
    'the same': repr,
    'a tuple on top': lambda want: repr(tuple(want) if isinstance(want, list) else want),
    'tuples all the way down': lambda want: repr(tuples(want)),
    'lists of tuples': lambda want: repr([tuple(item) if isinstance(item, list) else item for item in want] if isinstance(want, list) else want),
    'the first item': lambda want: repr(want[0] if isinstance(want, list) and want else want),
    'in a list': lambda want: repr([want]),
    'integer keys': lambda want: repr(integer_keys(want)),
    'a named tuple': lambda want: '__import__("collections").namedtuple("P", "x y")(1, 2)',
    'a deque': lambda want: '__import__("collections").deque(%r)' % (want if isinstance(want, list) else [want],),
    'a set': lambda want: '{1, 2}',
    'an ordered dict': lambda want: '__import__("collections").OrderedDict(%r)' % (want if isinstance(want, dict) else {'a': want},),
    'a generator': lambda want: '(x for x in %r)' % ([want],),
    'a text': lambda want: repr(str(want)),
    'JSON': lambda want: repr(json.dumps(want)),
    'nothing': lambda want: 'None',
    'a number more': lambda want: repr([want, 1]),
    'floats for integers': lambda want: repr(float(want) if isinstance(want, int) and not isinstance(want, bool) else want),
    'integers for booleans': lambda want: repr(int(want) if isinstance(want, bool) else want),
    'a bit more': lambda want: repr(near(want)),
    'an integer of numpy': lambda want: '__import__("numpy").int64(7)',
    'a float of numpy': lambda want: '__import__("numpy").float64(7)',
    'an array of numpy': lambda want: '__import__("numpy").array([7, 8])',
    'an array of one item': lambda want: '__import__("numpy").array([7])',
    'an exception': lambda want: '1 / 0',
    'an exit': lambda want: 'exit(0)',
    'a shared item': lambda want: '(lambda item: [item, item])(%r)' % ([want],),
}
# What such a value is expected to be where it is not random.
FIXED = {'a named tuple': [1, 2], 'a set': [1, 2], 'an integer of numpy': 7, 'a float of numpy': 7, 'an array of numpy': [7, 8], 'an array of one item': [7]}

ALWAYS_EQUAL = 'class Equal:\n    def __eq__(self, other): return True\n    __hash__ = None\ndef f(): return Equal()\n'
COUNTER = 'calls = []\ndef f():\n    calls.append(1)\n    return len(calls)\n'


def evaluate(text):
    """The value of a submission, or the exception that it raises."""
    try:
        return eval(text, {})
    except BaseException as error:      # an exit is one
        return error


def of_value(rng, kind, rule, **request):
    """rule(value, expected), which is called with what the submission returns."""
    want = FIXED[kind] if kind in FIXED else random_value(rng)
    if kind == 'a shared item':
        text, want = VALUES[kind](want), [[want], [want]]
    else:
        text = VALUES[kind](want)
    value = evaluate(text)
    accepted = not isinstance(value, BaseException) and rule(value, want)
    return Submission(kind, accepted, code='def f():\n    return %s\n' % text, function='f', cases=[{'args': [], 'expected': want}], **request)


def spread(kinds, n):
    """Each kind as often as the others, n together."""
    kinds = list(kinds)
    return [kinds[i % len(kinds)] for i in range(n)]
