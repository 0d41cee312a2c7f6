"""200 submissions, and the verdicts of LiveCodeBench on them."""

import random
from decimal import Decimal, InvalidOperation

import pytest
from parity import ALWAYS_EQUAL, COUNTER, N, OUTPUTS, VALUES, Submission, check, of_output, of_value, spread

pytest.importorskip('numpy')
COMPARE = {'compare': 'lcb', 'instance': 'fresh'}

# What LiveCodeBench says of a program that has written the right output and then ends like this.
ENDS = {
    'at its end': ('', True),
    'by exit status 0': ('sys.exit(0)', True),
    'by another exit status': ('sys.exit(3)', True),          # SystemExit is caught, whatever its status
    'by an exception': ('raise ValueError', False),
    'by os._exit() after a flush': ('sys.stdout.flush()\nimport os\nos._exit(0)', False),   # the process of the grader ends
    'below the guard of a main program': ('if __name__ == "__main__":\n    pass', True),
    'with a thread that writes': ('import threading\nt = threading.Thread(target=lambda: None)\nt.start()\nt.join()', True),
}


def numbers(line):
    try:
        return [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None


def accepts_output(output, expected):
    """Stripped texts, stripped lines, as many; a line is equal, or a line of equal decimal numbers."""
    ours, theirs = ([line.strip() for line in text.strip().split('\n')] for text in (expected, output))
    return len(ours) == len(theirs) and all(a == b or (numbers(b) is not None and numbers(a) == numbers(b)) for a, b in zip(ours, theirs))


def accepts_value(value, want):
    try:
        return bool((list(value) if isinstance(value, tuple) else value) == want)
    except ValueError:          # the truth of an array
        return False


def submissions():
    rng = random.Random(2024)
    rows = [of_output(rng, kind, accepts_output, **COMPARE) for kind in spread(OUTPUTS, 90)]
    rows += [Submission(how, accepted, code='import sys\nsys.stdout.write(str(int(input()) + 1))\n' + end + '\n', cases=[{'stdin': '1\n', 'expected_stdout': '2\n'}], **COMPARE)
             for how, (end, accepted) in ENDS.items()]
    rows += [Submission('a value that is equal to everything', True, code=ALWAYS_EQUAL, function='f', cases=[{'args': [], 'expected': 5}], **COMPARE),
             Submission('state that is kept between cases', True, code=COUNTER, function='f', cases=[{'args': [], 'expected': n} for n in (1, 2, 3)], **COMPARE)]
    return rows + [of_value(rng, kind, accepts_value, **COMPARE) for kind in spread(VALUES, N - len(rows))]


def test_the_verdicts_are_those_of_livecodebench():
    check('lcb', submissions())
