"""Test code and a submission in two runners (docs/protocols/grading-roles.md): what passes, and what must not."""

import gzip
import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from caisson_testing import ROOT, TESTS
from peers import MODULES, Peer, grade
from runners import PYTHON, talk
from zygotes import Zygote

DATA = Path(os.environ.get('CAISSON_DATA', ROOT.parent / 'shared' / 'data')) / 'HumanEval.jsonl.gz'
CASES = TESTS / 'cases' / 'grade'
# The submission is what the tests expect to find where both are one program.
PLAIN = '''
import sys, types
solution, tests = types.ModuleType('solution'), {'__name__': 'tests'}
exec(sys.argv[1], solution.__dict__)
sys.modules.update(solution=solution, submission=solution, main=solution)
tests.update((name, value) for name, value in vars(solution).items() if name[:2] != '__')
exec(sys.argv[2], tests)
'''
OFF_BY_ONE = '''
def _off(function):
    def call(*arguments):
        value = function(*arguments)
        kind = type(value)
        more = {bool: lambda: not value, int: lambda: value + 1, float: lambda: value + 1, str: lambda: value + 'x', list: lambda: value + [0],
                tuple: lambda: value + (0,), dict: lambda: {**value, 'x': 0}}
        return more.get(kind, lambda: 0)()
    return call
%s = _off(%s)
'''


def read_pairs(name):
    """[(title, submission, tests)] of a file of programs."""
    for block in ('\n' + (CASES / name).read_text(encoding='utf-8')).split('\n### ')[1:]:
        title, _, rest = block.partition('\n')
        submission, _, tests = ('\n' + rest).partition('\n---\n')
        yield pytest.param(submission + '\n', tests, id=title)


@pytest.fixture(scope='module')
def problems():
    if not DATA.exists():
        pytest.skip(f'needs data: {DATA.name} is not beside the project; set CAISSON_DATA')
    with gzip.open(DATA, 'rt', encoding='utf-8') as lines:
        found = [json.loads(line) for line in lines]
    assert len(found) == 164
    return found


def outcomes(tmp_path, problems, program):
    def run(problem):
        folder = tmp_path / problem['task_id'].replace('/', '-')
        return grade(folder, program(problem), problem['test'], entry_point=problem['entry_point'])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip((problem['task_id'] for problem in problems), pool.map(run, problems)))


def reference(problem):
    return problem['prompt'] + problem['canonical_solution'] + '\n'


def test_every_reference_solution_of_humaneval_passes(tmp_path, problems):
    judged = outcomes(tmp_path, problems, reference)
    assert {name: found for name, found in judged.items() if not found.passed or len(found.tests) != 1} == {}


@pytest.mark.parametrize('program', [
    pytest.param(lambda problem: problem['prompt'] + '    pass\n', id='empty'),
    pytest.param(lambda problem: problem['prompt'] + '    raise ValueError\n', id='raising'),
    pytest.param(lambda problem: reference(problem) + OFF_BY_ONE % (problem['entry_point'], problem['entry_point']), id='off by one'),
])
def test_no_wrong_solution_of_humaneval_passes(tmp_path, problems, program):
    judged = outcomes(tmp_path, problems, program)
    assert {name: found for name, found in judged.items() if not found.ended or 'passed' in found.statuses} == {}


@pytest.mark.parametrize('submission, tests', read_pairs('pass.txt'))
def test_passes_as_in_one_process(tmp_path, submission, tests):
    plain = subprocess.run([PYTHON, '-c', PLAIN, submission, tests], capture_output=True, text=True, timeout=60, check=False)
    if "No module named 'numpy'" in plain.stderr:
        pytest.skip('needs numpy: not here')
    assert plain.returncode == 0, plain.stderr
    judged = grade(tmp_path, submission, tests)
    assert judged.passed, judged


@pytest.mark.parametrize('submission, tests', read_pairs('forge.txt'))
def test_forging_passes_nothing(tmp_path, submission, tests):
    judged = grade(tmp_path, submission, tests, call_s=3)
    assert judged.ended and judged.tests and 'passed' not in judged.statuses, judged


def test_there_are_enough_programs():
    assert len(list(read_pairs('pass.txt'))) >= 45 and len(list(read_pairs('forge.txt'))) >= 150


# ---- what is a test

def by_name(judged):
    return {test['name']: (test['status'], test['detail']) for test in judged.tests}


def test_each_assertion_at_the_top_is_a_test(tmp_path):
    text = 'assert add(1, 2) == 3\nassert add(1, 2) == 4, "four"\nx = add(1, "2")\nassert x\nassert add(2, 2) == 4\n'
    judged = grade(tmp_path, 'def add(a, b): return a + b', text)
    assert [(test['name'], test['status'], test['line']) for test in judged.tests] == [
        ('assert add(1, 2) == 3', 'passed', 1), ('assert add(1, 2) == 4, "four"', 'failed', 2), ('x = add(1, "2")', 'error', 3),
        ('assert x', 'error', 4), ('assert add(2, 2) == 4', 'passed', 5)]
    assert judged.tests[1]['detail'] == 'four\n3 == 4 is not so'
    assert judged.tests[2]['detail'].startswith('TypeError: unsupported operand')
    assert judged.kinds[0] == ['HELLO', 'STARTED', 'DONE']


PYTEST_TEXT = '''
import pytest
from solution import divide

@pytest.mark.parametrize('a, b, q', [(4, 2, 2), (9, 3, 3), pytest.param(1, 1, 5, id='wrong')])
def test_divide(a, b, q):
    assert divide(a, b) == q

def test_zero():
    with pytest.raises(ZeroDivisionError, match='division'):
        divide(1, 0)

def test_approx():
    assert divide(1, 3) == pytest.approx(0.3333333, rel=1e-4)

@pytest.mark.skip(reason='later')
def test_skipped(): assert False

@pytest.mark.skipif(True, reason='never')
def test_skipped_if(): assert False

@pytest.mark.xfail
def test_expected(): assert divide(1, 2) == 3

def test_by_itself(): pytest.skip('by itself')
def test_fails(): pytest.fail('by itself')

@pytest.fixture
def pair():
    yield 6, 3

def test_fixture(pair): assert divide(*pair) == 2
def test_unknown(requests_mock): assert divide(1, 1) == 1

def test_files(tmp_path, capsys):
    (tmp_path / 'x').write_text('7')
    print((tmp_path / 'x').read_text())
    assert capsys.readouterr().out == '7\\n'

@pytest.fixture(params=[1, 2])
def number(request): return request.param
def test_parameters(number): assert divide(number, 1) == number

counted = []
@pytest.fixture(autouse=True)
def count(): counted.append(1)
def test_counted(): assert divide(len(counted), 1) > 1

class TestDivide:
    @pytest.fixture
    def three(self): return self.n - 5
    def test_three(self, three): assert divide(three, 3) == 1
    def setup_method(self): self.n = 8
    @pytest.mark.parametrize('by', [1, 2])
    def test_by(self, by): assert divide(self.n, by) == 8 // by
    def test_wrong(self): assert divide(self.n, 1) == 7
'''


def test_functions_and_classes_as_pytest_has_them(tmp_path):
    pytest.importorskip('pytest')
    judged = grade(tmp_path, 'def divide(a, b): return a / b', PYTEST_TEXT)
    assert {name: status for name, (status, _) in by_name(judged).items()} == {
        'test_divide[4-2-2]': 'passed', 'test_divide[9-3-3]': 'passed', 'test_divide[wrong]': 'failed', 'test_zero': 'passed', 'test_approx': 'passed',
        'test_skipped': 'skipped', 'test_skipped_if': 'skipped', 'test_expected': 'passed', 'test_by_itself': 'skipped', 'test_fails': 'failed',
        'test_fixture': 'passed', 'test_unknown': 'error', 'test_files': 'passed',
        'test_parameters[1]': 'passed', 'test_parameters[2]': 'passed', 'test_counted': 'passed', 'TestDivide.test_three': 'passed', 'TestDivide.test_by[1]': 'passed',
        'TestDivide.test_by[2]': 'passed', 'TestDivide.test_wrong': 'failed'}
    assert by_name(judged)['test_skipped'][1] == 'later'
    assert by_name(judged)['test_unknown'][1] == "there is no fixture 'requests_mock' here"
    assert by_name(judged)['test_divide[wrong]'][1] == 'assert divide(a, b) == q'


UNITTEST_TEXT = '''
import unittest
from main import Counter, parse

class TestCounter(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.start = 5
    def setUp(self): self.counter = Counter(self.start)
    def tearDown(self): self.counter = None
    def test_up(self):
        self.counter.up()
        self.assertEqual(self.counter.n, 6)
    def test_wrong(self): self.assertEqual(self.counter.n, 7)
    def test_raises(self):
        with self.assertRaisesRegex(ValueError, 'no number'):
            parse('x')
    def test_error(self): parse('x')
    def test_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)
    @unittest.skip('not now')
    def test_skipped(self): self.fail()
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(1, 2)
    @unittest.expectedFailure
    def test_unexpected(self): self.assertEqual(1, 1)

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError('no set-up')
    def test_never(self): pass

if __name__ == '__main__':
    unittest.main()
'''


def test_classes_as_unittest_has_them(tmp_path):
    submission = '''
class Counter:
    def __init__(self, n): self.n = n
    def up(self): self.n += 1
def parse(text):
    if not text.isdigit():
        raise ValueError('no number: ' + text)
    return int(text)
'''
    judged = grade(tmp_path, submission, UNITTEST_TEXT)
    assert {name: status for name, (status, _) in by_name(judged).items()} == {
        'TestCounter.test_up': 'passed', 'TestCounter.test_wrong': 'failed', 'TestCounter.test_raises': 'passed', 'TestCounter.test_error': 'error',
        'TestCounter.test_subtests': 'failed', 'TestCounter.test_skipped': 'skipped', 'TestCounter.test_expected': 'passed',
        'TestCounter.test_unexpected': 'failed', 'setUpClass (tests.Broken)': 'error'}
    assert by_name(judged)['TestCounter.test_error'][1] == 'ValueError: no number: x'
    assert [test['line'] for test in judged.tests if test['name'] == 'TestCounter.test_wrong'] == [13]


def test_coroutines_run(tmp_path):
    text = '''
import asyncio
async def test_right(): assert await f(1) == 2
async def test_wrong(): assert await f(1) == 3
def test_run():
    assert asyncio.run(f(2)) == 3
    async def both(): return await asyncio.gather(f(1), f(2))
    assert asyncio.run(both()) == [2, 3]
def test_raises():
    try:
        asyncio.run(f('x'))
    except TypeError:
        return
    assert False
def test_yields():
    yield f(1)
'''
    judged = grade(tmp_path, 'import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    return x + 1', text)
    assert judged.statuses == ['passed', 'failed', 'passed', 'passed', 'error'], judged


def test_the_output_of_a_test_is_its_own(tmp_path):
    text = ('import sys\nprint("between")\ndef test_a():\n    print("x" * 5000, file=sys.stderr)\n    print("a", f())\n'
            'def test_b():\n    print("b")\n    assert False\n')
    judged = grade(tmp_path, 'def f(): return 1', text, output_max=100)
    assert [(test['status'], test['stdout']) for test in judged.tests] == [('passed', 'a 1\n'), ('failed', 'b\n')]
    assert len(judged.tests[0]['stderr']) < 200 and 'xxx\n...\nxxx' in judged.tests[0]['stderr']
    assert judged.outputs[0] == 'between\n'


def test_the_first_failure_can_be_the_last_test(tmp_path):
    text = 'assert f() == 1\nassert f() == 2\nassert f() == 1\ndef test_more(): pass\n'
    assert grade(tmp_path, 'def f(): return 1', text, stop_on_fail=True).statuses == ['passed', 'failed']


def test_the_set_up_is_there_on_both_sides(tmp_path):
    setup = 'import math\nclass Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\ndef total(pair): return pair.a + pair.b\n'
    judged = grade(tmp_path, 'def make(a, b): return Pair(a, b)\ndef twice(pair): return 2 * total(pair)\ndef total(pair): return 12', setup=setup,
                   tests='assert total(make(1, 2)) == 3\nassert twice(Pair(1, 2)) == 24\nassert math.pi > 3')
    assert judged.statuses == ['passed'] * 3, judged
    assert grade(tmp_path, 'def total(pair): return 3', 'assert total(Pair(5, 2)) == 3', setup=setup).statuses == ['failed']


def test_a_set_up_may_use_the_submission(tmp_path):
    setup = 'root = Node(1)\nroot.next = Node(2)\n'
    submission = 'class Node:\n    def __init__(self, n): self.n, self.next = n, None\ndef total(node): return node.n + total(node.next) if node else 0'
    assert grade(tmp_path, submission, 'assert total(root) == 3', setup=setup).passed
    judged = grade(tmp_path, 'x = 1', 'assert x == 1', setup=setup)
    assert 'passed' not in judged.statuses and judged.kinds[1][:3] == ['HELLO', 'STARTED', 'ERROR'], judged


def test_a_missing_function_is_an_error(tmp_path):
    judged = grade(tmp_path, 'def ad(a, b): return a + b', 'def check(candidate):\n    assert candidate(1, 2) == 3\n', entry_point='add')
    assert by_name(judged) == {'check': ('error', "NameError: the submission has no 'add'")}


def test_a_method_can_be_what_is_tested(tmp_path):
    for definition in 'def add(self, a, b)', '@staticmethod\n    def add(a, b)', '@classmethod\n    def add(cls, a, b)':
        judged = grade(tmp_path, f'class Solution:\n    {definition}: return a + b', 'def check(candidate):\n    assert candidate(1, 2) == 3\n',
                       entry_point='Solution.add')
        assert judged.passed, judged


def test_wrong_syntax_ends_the_runner(tmp_path):
    judged = grade(tmp_path, 'def f(): pass', 'assert f( is None')
    assert judged.tests == [] and not judged.ended and judged.kinds[0] == ['HELLO', 'SYNTAX']


def test_a_submission_that_raises_fails_every_test_that_needs_it(tmp_path):
    text = 'assert f(1) == 1\nassert 1 == 1\ndef check(candidate): pass\nimport solution\nassert solution.f(1)'
    judged = grade(tmp_path, 'raise RuntimeError("at once")', text, entry_point='f')
    assert judged.statuses == ['error', 'passed', 'error', 'error'], judged
    assert judged.kinds[1][:3] == ['HELLO', 'STARTED', 'ERROR']


# ---- limits

@pytest.mark.parametrize('body', [
    'while True: pass',
    'while True: f(1)',
    '[0 for _ in iter(int, 1)]',
])
def test_a_test_that_never_ends_is_ended(tmp_path, body):
    judged = grade(tmp_path, 'def f(x): return x', f'def test_a():\n    {body}\ndef test_b():\n    assert f(1) == 1\n', test_ms=200)
    assert judged.statuses == ['timeout', 'passed'], judged


# A signal at any one event of what a profiler sees.  Whose frame it meets is not the test code's, but where the event was.
AT_EVENT = '''
import signal, sys
exec(compile("""
def at_event(number):
    left = number
    def at(frame, event, arg):
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGPROF)
    return at
""", 'elsewhere', 'exec'), globals())
def end_at(number, call):
    at = at_event(number)       # Python 3.11 crashes if the last reference to it goes while it runs
    sys.setprofile(at)
    try:
        call()
    finally:
        sys.setprofile(None)
'''
WANTED = '''
class Thing:
    x = 1
def f(x): return x
def back(function): return function()
def items(): yield from range(5)
def change(them): them[0] = Thing()
'''


@pytest.mark.parametrize('call', ['f(1)', 'back(lambda: f(2))', 'Thing().x', 'list(items())', 'change([[[1]]])'])
def test_a_test_can_be_ended_at_any_moment(tmp_path, call):
    tests = AT_EVENT + ''.join(f'def test_{number}(): end_at({number}, lambda: {call})\ndef test_then_{number}(): assert back(lambda: f(1)) == 1\n'
                               for number in range(500))
    judged = grade(tmp_path, WANTED, tests)
    assert judged.ended and set(judged.statuses[1::2]) == {'passed'}, judged
    assert judged.statuses[::2].count('timeout') > 100 and set(judged.statuses[::2]) <= {'passed', 'timeout'}, judged


def test_a_test_may_end_a_call_itself(tmp_path):
    judged = grade(tmp_path, 'import time\ndef f(s):\n    time.sleep(s)\n    return s', '''
import signal
def too_late(*_): raise TimeoutError
signal.signal(signal.SIGALRM, too_late)
def test_a():
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        f(1)
    except TimeoutError:
        return
    assert False
def test_b(): assert f(0) == 0
''')
    assert judged.statuses == ['passed', 'passed'], judged


def test_a_call_that_never_ends_is_ended_by_the_engine(tmp_path):
    judged = grade(tmp_path, 'def f(x):\n    while x: pass\n    return x', 'assert f(0) == 0\nassert f(1) == 1\nassert f(0) == 0\n', call_s=1)
    assert judged.statuses == ['passed', 'crash', 'error']
    assert by_name(judged)['assert f(1) == 1'][1] == 'the submission has ended'


def test_calls_within_calls_have_a_limit(tmp_path):
    judged = grade(tmp_path, 'def bounce(n, f): return n if n == 0 else f(n - 1)', '''
def back(n): return bounce(n, back)
assert back(45) == 0
try:
    back(200)
    assert False
except RecursionError:
    pass
assert back(3) == 0
''')
    assert judged.passed, judged


def test_what_is_too_large_is_not_handed_over(tmp_path):
    text = 'assert len(f(10 << 20)) == 10 << 20\nassert f(17 << 20)\nassert g("x" * (17 << 20))\nassert f(1)'
    judged = grade(tmp_path, 'def f(n): return "x" * n\ndef g(x): return 1', text)
    assert judged.statuses == ['passed', 'unproxyable', 'unproxyable', 'passed'], judged


def test_objects_are_let_go(tmp_path):
    submission = ('class A: pass\nimport weakref\nlive = weakref.WeakSet()\ndef make():\n    a = A()\n    live.add(a)\n    return a\n'
                  'def count(): return len(live)')
    judged = grade(tmp_path, submission, 'for _ in range(500):\n    make()\n    assert count() < 5\n')
    assert judged.passed, judged


def test_too_many_objects_end_a_test(tmp_path):
    submission = 'class A: pass\ndef make(n): return [A() for _ in range(n)]'
    judged = grade(tmp_path, submission, 'assert len(make(1000)) == 1000\nassert len(make(100001)) == 100001\n')
    assert judged.statuses == ['passed', 'unproxyable'], judged


def test_one_process_for_both_where_that_is_asked_for(tmp_path):
    submission = 'class Equal:\n    def __eq__(self, other): return True\ndef f(): return Equal()\n'
    text = 'assert f() == 1\nfrom solution import f as g\nassert g() == 2\ndef check(c):\n    assert c() == 3\n'
    judged = grade(tmp_path, 'def f(): pass', text, shared=submission, entry_point='f')
    assert judged.statuses == ['passed'] * 3, judged


def test_a_role_ends_with_its_channel(tmp_path):
    for name, source, begin in ('subject', 'x = 1', {'setup': ''}), ('tests', 'import time\ntime.sleep(0.2)\nassert f()', {'modules': []}):
        peer = Peer(name, tmp_path / name, source, begin)
        while peer.kinds != ['HELLO', 'STARTED']:
            peer.read()
        peer.socket.close()
        assert peer.popen.wait(20) == 0
        peer.end()


@pytest.mark.parametrize('prepared', [{}, {'usual': 'graded=1', 'environment': {'PYTHONUNBUFFERED': '1'}}], ids=['forked', 'usual'])
def test_roles_in_processes_of_a_zygote(tmp_path, prepared):
    """Each with the other's lines read from a sheet, as no engine is there to hand them on."""
    zygote = Zygote(tmp_path, 'system', **prepared)
    home = zygote.work or tmp_path
    main = home / 'main.py'

    def run(role, source, *messages):
        main.write_text(source)
        outcome = zygote.run(home, ['graded=1', str(main)], told=[packet for whom, one in messages for packet in talk(one, whom)])
        assert outcome.status == 0, outcome.stderr
        return [(payload[:1], json.loads(payload[1:])) for name, payload in outcome.frames() if name == 'MESSAGE']

    try:
        ready, *answers = run('subject', 'def f(x): return x + 1', ('E', {'op': 'begin', 'role': 'subject', 'setup': ''}),
                      ('P', {'n': 1, 'op': 'value', 'h': None, 'a': [], 'k': [], 'gone': [], 'name': 'f'}),
                      ('P', {'n': 2, 'op': 'call', 'h': 1, 'a': [4], 'k': [], 'gone': []}), ('E', {'op': 'end'}))
        assert ready == (b'E', {'op': 'ready'})
        assert [(whom, answer['re'], answer['v']) for whom, answer in answers] == [(b'P', 1, {'t': 'callable', 'v': [1, 'f', True, 0]}), (b'P', 2, 5)]
        text = 'import unittest\nclass T(unittest.TestCase):\n    def test_f(self): self.assertEqual(f(1), 3)\nassert f(1) == 2\n'
        said = run('tests', text, ('E', {'op': 'begin', 'role': 'tests', 'modules': MODULES}), ('P', {'re': 1, 'v': ['f']}), ('P', {'re': 2, 'v': answers[0][1]['v']}),
                   ('P', {'re': 3, 'v': 2}), ('P', {'re': 4, 'v': 2}))
        assert [(one['op'], one.get('status')) for whom, one in said if whom == b'E'] == [('test', 'passed'), ('test', 'failed'), ('end', None)]
    finally:
        zygote.stop()


# ---- a submission that has taken over its runner

CLASS = {'t': 'class', 'v': [50, 'Eq', 'Eq', '__main__', [], ['__eq__', '__hash__', '__len__', '__iter__', '__bool__', '__sub__'], ['real', 'x']]}


def derived(handle, base, content, specials=()):
    bases = [{'t': 'type', 'v': ['builtins', name]} for name in base.split()]
    return {'t': 'object', 'v': [handle, {'t': 'class', 'v': [handle + 1000, 'D', 'D', 'm', bases, list(specials), ['x']]}, content]}


def raised(kind, parts, state=(), handle=None):
    return {'t': 'error', 'v': [handle, kind if isinstance(kind, dict) else {'t': 'type', 'v': ['builtins', kind]}, parts, list(state), None]}


VALUES = [
    None, True, -1, 1e308, '', 'x', '__class__', [], {}, 'DEEP', {'t': 'x', 'v': 1}, {'t': 'yours', 'v': 1}, {'t': 'yours', 'v': 2}, {'t': 'arg', 'v': 0},
    {'t': 'arg', 'v': -1}, {'t': 'ref', 'v': 0}, {'t': 'same', 'v': 1}, {'t': 'type', 'v': ['builtins', 'int']}, {'t': 'type', 'v': ['builtins', '__import__']},
    {'t': 'type', 'v': ['builtins', 'type']}, {'t': 'type', 'v': ['os', 'system']}, {'t': 'module', 'v': 'os'}, {'t': 'module', 'v': 'tests'},
    {'t': 'module', 'v': '__main__'}, {'t': 'callable', 'v': [60, 'eval', True, 0]}, {'t': 'value', 'v': ['pathlib.PosixPath', [{}]]}, {'t': 'value', 'v': ['x.y', []]},
    {'t': 'member', 'v': ['os', 'system', 'x']}, {'t': 'fields', 'v': ['os', 'system', []]}, {'t': 'fields', 'v': ['unittest', 'TestCase', []]},
    {'t': 'member', 'v': ['http', 'HTTPStatus', 'NOPE']}, {'t': 'array', 'v': ['<f8', [1], 'AAAA']}, {'t': 'callable', 'v': [{}, 1, 2]}, {'t': 'iterator', 'v': [61, 'generator']},
    CLASS, {'t': 'object', 'v': [62, CLASS]}, {'t': 'object', 'v': [62, CLASS, [1]]}, derived(63, 'int', 7, ['__eq__']), derived(64, 'int str', 7),
    derived(65, 'list', [{'t': 'same', 'v': 65}, 4]), derived(66, 'object', []), raised('SystemExit', [0]), raised('int', [0]), raised('KeyboardInterrupt', []),
    raised({'t': 'class', 'v': [55, 'SkipTest', 'SkipTest', 'unittest.case', [{'t': 'type', 'v': ['builtins', 'Exception']}], [], []]}, ['x'],
           [['__class__', 1], ['args', 2]], 70),
    raised({'t': 'class', 'v': [56, 'Verdict', 'Verdict', 'tests', [{'t': 'type', 'v': ['builtins', 'BaseException']}], ['__str__', '__eq__'], ['args']]},
           ['x'], handle=71),
    raised('UnicodeDecodeError', [0]), raised('ExceptionGroup', [0, [1]]), {'t': 'view', 'v': ['keys', [[1, 2]]]}, {'t': 'view', 'v': ['__class__', []]},
    {'t': 'defaultdict', 'v': [5, []]}, {'t': 'defaultdict', 'v': [{'t': 'type', 'v': ['builtins', 'int']}, [[[], 1]]]}, {'t': 'set', 'v': [[1]]},
    {'t': 'set', 'v': [{'t': 'object', 'v': [62, CLASS]}]}, {'t': 'notimplemented', 'v': None}, {'t': 'int', 'v': '0x' + 'f' * 5000},
]
MESSAGES = [b'', b'{', b'[]', b'null', b'{"re":1}', b'{"re":true,"v":8}', b'\xff', b'{"n":5}', b'{"re":1,"v":1}{}', b'{"re":[],"v":1}']
REQUESTS = [{'n': 1, 'op': op, 'h': handle, 'a': [{'t': 'object', 'v': [62, CLASS]}], 'k': [], 'name': name, 'count': 1, 'gone': [[1, 1]]}
            for op in ('call', 'get', 'set', 'special', 'dir', 'copy', 'next', 'value', 'assign', None, []) for handle in (1, 2, None, 'a')
            for name in ('__globals__', 'x', '__call__', '__eq__', 'append', None)]
VICTIM = '''
class S:
    def __init__(self): self.x = [1]
    def push(self, x): self.x.append(x)
    def __len__(self): return 9
def add(a, b): return 0
def rows(f, l):
    f(1)
    l.append(5)
    return [S(), (1,), {'a': 1.5}]
def gen(n):
    yield 9
    raise ValueError('x')
'''
EXPECTING = '''
assert add(1, 2) == 3
class Node:
    def __init__(self): self.x = 1
log = []
assert rows(log.append, [7]) == 3
assert list(gen(2)) == [3]
s = S()
s.push(4)
assert s.x == [3]
assert len(s) == 3
assert rows(lambda n: n == 3, [Node()])[0] == 3
try:
    add('x', Node())
except Exception:
    assert add(1, 2) == 3
else:
    assert add(1, 2) == 3
def test_f():
    assert add(1, 2) in (3, 4)
'''


def places(document, path=()):
    yield path
    for key, part in enumerate(document) if type(document) is list else document.items() if type(document) is dict else ():
        yield from places(part, (*path, key))


def with_another_value(chance, document):
    *path, last = chance.choice(list(places(document))) or (None,)
    value = json.loads(json.dumps(chance.choice(VALUES)))
    if last is None:
        return value
    place = document
    for key in path:
        place = place[key]
    place[last] = value
    return document


def liar(seed):
    """Now and then says something else than the submission."""
    chance = random.Random(seed)

    def alter(message):
        luck = chance.random()
        if luck > 0.25:
            return message
        if luck < 0.025:
            return b'P' + chance.choice(MESSAGES)
        if luck < 0.075:
            return b'P' + json.dumps(chance.choice(REQUESTS)).encode()
        text = json.dumps(with_another_value(chance, json.loads(message[1:])))
        return b'P' + text.replace('"DEEP"', '[' * 1200 + ']' * 1200).encode()

    return alter


def test_no_message_makes_a_test_pass_or_ends_the_tests(tmp_path):
    def run(seed):
        return seed, grade(tmp_path / str(seed), VICTIM, EXPECTING, alter=liar(seed), call_s=0.5)

    with ThreadPoolExecutor(2) as pool:
        wrong = {seed: judged for seed, judged in pool.map(run, range(80))
                 if not judged.ended or len(judged.tests) < 8 or 'passed' in judged.statuses or judged.outputs[0]}
    assert wrong == {}
