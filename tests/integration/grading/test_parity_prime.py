"""200 submissions, and the verdicts of Prime's code environment on them."""

import json
import random
from decimal import Decimal, InvalidOperation

import pytest
from parity import ALWAYS_EQUAL, COUNTER, N, OUTPUTS, VALUES, Submission, check, of_output, of_value, spread

pytest.importorskip('numpy')
COMPARE = {'compare': 'prime', 'instance': 'fresh'}

# What Prime says of a program that has written the right output and then ends like this; each case is a process.
ENDS = {
    'at its end': ('', True),
    'by exit status 0': ('sys.exit(0)', True),
    'by another exit status': ('sys.exit(3)', False),
    'by an exception': ('raise ValueError', False),
    'by os._exit() after a flush': ('sys.stdout.flush()\nimport os\nos._exit(0)', True),
}


def accepts_output(output, expected):
    """Words of the lines that are not blank; else, without lines, numbers of which none is off by more than 1e-3."""
    lines = [[line.split() for line in text.splitlines() if line.strip()] for text in (expected, output)]
    if lines[0] == lines[1]:
        return True
    ours, theirs = ([word for line in text for word in line] for text in lines)
    try:
        pairs = [(Decimal(a), Decimal(b)) for a, b in zip(ours, theirs)]
        return bool(ours) and len(ours) == len(theirs) and not any(abs(a - b) > Decimal(1e-3) for a, b in pairs)
    except InvalidOperation:
        return False


def accepts_value(value, want):
    """What comes through JSON is the expected value, or its first item."""
    try:
        value = json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return False
    return value == want or (isinstance(want, list) and bool(want) and value == want[0])


def submissions():
    rng = random.Random(1e-3)
    rows = [of_output(rng, kind, accepts_output, **COMPARE) for kind in spread(OUTPUTS, 110)]
    rows += [Submission(how, accepted, code='import sys\nsys.stdout.write(str(int(input()) + 1))\n' + end + '\n', cases=[{'stdin': '1\n', 'expected_stdout': '2\n'}], **COMPARE)
             for how, (end, accepted) in ENDS.items()]
    # Each case is a process there, too, and an object that equals everything is no JSON.
    rows += [Submission('a value that is equal to everything', False, code=ALWAYS_EQUAL, function='f', cases=[{'args': [], 'expected': 5}], **COMPARE),
             Submission('state that is kept between cases', False, code=COUNTER, function='f', cases=[{'args': [], 'expected': n} for n in (1, 2, 3)], **COMPARE)]
    return rows + [of_value(rng, kind, accepts_value, **COMPARE) for kind in spread(VALUES, N - len(rows))]


def test_the_verdicts_are_those_of_prime():
    check('prime', submissions())
