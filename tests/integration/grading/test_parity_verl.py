"""200 submissions, and the verdicts of verl on them: of its remote grader on output, of its local one on values."""

import json
import random

import pytest
from parity import ALWAYS_EQUAL, COUNTER, N, OUTPUTS, VALUES, Submission, check, of_output, of_value, spread

pytest.importorskip('numpy')
COMPARE = {'compare': 'verl', 'instance': 'fresh'}

# What verl says of a program that has written the right output and then ends like this; each is a process.
ENDS = {
    'at its end': ('', True),
    'by exit status 0': ('sys.exit(0)', True),
    'by another exit status': ('sys.exit(3)', False),
    'by an exception': ('raise ValueError', False),
    'by os._exit() after a flush': ('sys.stdout.flush()\nimport os\nos._exit(0)', True),
    'by os._exit() without a flush': ('import os\nos._exit(0)', False),
    'below the guard of a main program': ('if __name__ == "__main__":\n    pass', True),
}


def accepts_output(output, expected):
    return output.rstrip('\n') == expected.rstrip('\n')


def expected_by_verl(want):
    """Its text keys as integers; a dict becomes a list of one on the way."""
    if isinstance(want, dict) and all(key.isdigit() for key in want):
        want = [{int(key): item for key, item in want.items()}]
    if isinstance(want, list) and want and isinstance(want[0], dict) and all(str(key).isdigit() for key in want[0]):
        want = [{int(key): item for key, item in want[0].items()}]
    return want


def accepts_value(value, want):
    """A value that JSON takes; a tuple counts as a list; the first expected item will do, also for lists of tuples."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    want = expected_by_verl(want)
    value = list(value) if isinstance(value, tuple) else value
    results = [value == want]
    if isinstance(want, list) and want:
        results.append(value == want[0])
        if isinstance(value, list) and value and isinstance(value[0], tuple) and all(hasattr(item, '__iter__') for item in value):
            results.append([list(item) for item in value] == want[0])
    return any(result is True for result in results)


def submissions():
    rng = random.Random(7853)
    rows = [of_output(rng, kind, accepts_output, **COMPARE) for kind in spread([*OUTPUTS, 'the same', 'line feeds at the end', 'no line feed at the end'], 90)]
    rows += [Submission(how, accepted, code='import sys\nsys.stdout.write(str(int(input()) + 1))\n' + end + '\n', cases=[{'stdin': '1\n', 'expected_stdout': '2\n'}], **COMPARE)
             for how, (end, accepted) in ENDS.items()]
    # An object that equals everything is no JSON, so verl refuses it as well.
    rows += [Submission('a value that is equal to everything', False, code=ALWAYS_EQUAL, function='f', cases=[{'args': [], 'expected': 5}], **COMPARE),
             Submission('state that is kept between cases', True, code=COUNTER, function='f', cases=[{'args': [], 'expected': n} for n in (1, 2, 3)], **COMPARE)]
    return rows + [of_value(rng, kind, accepts_value, **COMPARE) for kind in spread(VALUES, N - len(rows))]


def test_the_verdicts_are_those_of_verl():
    check('verl', submissions())
