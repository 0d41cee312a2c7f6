"""The border between tests and submission (docs/design/grading-border.md), by generation: each way in which an object of a submission
reaches test code, each question that test code can ask of it, in each style.  Nothing passes, and the submission sees no expected value."""

import pytest

from grading import grade, one, statuses
from test_grade_code import programs

SECRET = '8128'
# It says yes to all, gives itself, and prints what it is shown.
LIAR = '''
import builtins
PREDICATES = sorted({name for kind in (int, float, str, bytes, list, set, frozenset, dict, tuple, complex) for name in dir(kind) if name[0] != '_'})
def yes(name):
    def answer(self, *rest, **more):
        for one in (*rest, *more.values()):
            if type(one) in (int, float, str, list, set, dict, tuple): print('saw', one)
        return True
    answer.__name__ = name
    return answer
SPECIAL = ['__%s__' % name for name in 'eq ne lt le gt ge contains array_function array_ufunc'.split()]
NUMBERS = ['__%s%s__' % (r, name) for r in ('', 'r') for name in 'add sub mul truediv floordiv mod pow and or xor matmul'.split()]
def lie(*bases):
    names = {name: yes(name) for name in SPECIAL}
    names.update({name: lambda self, other: (print('saw', other), 0)[1] for name in NUMBERS})
    if not bases: names.update({name: yes(name) for name in (*PREDICATES, 'equals', 'all', 'item')})
    else: names.update({name: yes(name) for name in ('startswith', 'issuperset', 'is_integer', 'isdigit', 'count', 'index', 'find')})
    names.update(__hash__=lambda self: 1, __bool__=lambda self: True, __exit__=lambda self, *rest: True)
    if not bases: names.update(__abs__=lambda self: 0, __float__=lambda self: 1.0, __enter__=lambda self: self)
    return type('Liar', bases, names)
Liar = lie()
'''
WAYS = {
    'a value': ('def f(): return Liar()', 'f()'),
    'an int': ('Int = lie(int)\ndef f(): return Int(1)', 'f()'),
    'a text': ('Text = lie(str)\ndef f(): return Text("x")', 'f()'),
    'a list': ('List = lie(list)\ndef f(): return List()', 'f()'),
    'a set': ('Set = lie(set)\ndef f(): return Set()', 'f()'),
    'a dict': ('Dict = lie(dict)\ndef f(): return Dict()', 'f()'),
    'a float': ('Float = lie(float)\ndef f(): return Float(.5)', 'f()'),
    'self': ('Box = type("Box", (Liar,), {"put": lambda self, x: self, "x": 1})\nbox = Box', 'made.put(1)'),
    'an attribute': ('Box = type("Box", (Liar,), {"put": lambda self, x: None, "x": property(lambda self: self)})\nbox = Box', 'made.x'),
    'an item': ('def f(): return [Liar()]', 'f()[0]'),
    'a member': ('def f(): return {"a": Liar()}', 'f()["a"]'),
    'a generator': ('def f():\n    yield Liar()', 'next(f())'),
    'a coroutine': ('async def f(): return Liar()', '__import__("asyncio").run(f())'),
    'a call back': ('def f(call): call(Liar())', 'caught(f)'),
    'an argument': ('def f(x): x.append(Liar())', 'filled(f)'),
    'an error': ('def f():\n    e = ValueError()\n    e.x = Liar()\n    raise type("E", (ValueError,), {"x": property(lambda self: Liar())})', 'raised(f)'),
    'a class': ('def f(): return type("K", (), {name: staticmethod(lambda *rest: True) for name in PREDICATES})', 'f()'),
    'a function': ('def f():\n    def g(): return Liar()\n    g.startswith = g.issuperset = g.equals = lambda *rest: True\n    return g', 'f()'),
}
QUESTIONS = [
    '{e} == 8128', '8128 == {e}', 'not {e} != 8128', '{e} in [8128]', '8128 in {e}', '{e} > 8127', '{e} >= 8128', 'abs({e} - 8128) < 1', 'abs(8128 - {e}) < 1',
    '[{e}] == [8128]', '{{"a": {e}}} == {{"a": 8128}}', '({e}, 1) == (8128, 1)', '{e}.startswith("8128")', '{e}.issuperset({{8128}})', '{e}.equals(8128)',
    'max({e}, 8127) == 8128', '[8128].index({e}) == 0', '{e} in {{8128: 1}}', '{e} % 8128 == 0 and {e} == 8128', 'operator.eq({e}, 8128)', '{e}.__eq__(8128) is True',
    'pytest.approx(8128) == {e}', '{e} == pytest.approx(8128)', 'np.allclose({e}, 8128)', 'np.array_equal({e}, [8128])', 'isinstance({e}, str) and {e} == "8128"',
    'mock.call({e}) == mock.call(8128)', 'bisect.bisect_left([8127, 8128], {e}) == 1 and {e} == 8128',
]
HEAD = '''
import bisect, doctest, operator, unittest
from unittest import mock
import numpy as np
import pytest
def caught(f):
    got = []
    f(got.append)
    return got[0]
def filled(f):
    got = []
    f(got)
    return got[0]
def raised(f):
    try: f()
    except ValueError as error: return error.x
'''


def example(text):
    return f'>>> bool({text})\nTrue\n'


STYLES = {
    'assert': lambda number, text: f'assert {text}\n',
    'check': lambda number, text: f'def check_{number}(candidate):\n    assert {text}\ncheck_{number}(None)\n',
    'unittest': lambda number, text: f'class T{number}(unittest.TestCase):\n    def test_it(self): self.assertTrue({text})\n',
    'pytest': lambda number, text: f'def test_{number}():\n    assert {text}\n',
    'examples': lambda number, text: (f'def test_{number}():\n    test = doctest.DocTestParser().get_doctest({example(text)!r}, globals(), "x", None, 0)\n'
                                      '    assert not doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed\n'),
}


def test_nothing_of_a_submission_decides_about_itself():
    requests = []
    for code, expression in WAYS.values():
        head = HEAD + ('made = box()\nmade.put(2)\n' if 'made' in expression else '')
        texts = [wrap(f'{style}_{number}', question.format(e=expression)) for style, wrap in STYLES.items() for number, question in enumerate(QUESTIONS)]
        requests.append({'code': LIAR + code + '\n', 'tests': head + ''.join(texts), 'case_cpu_ms': 5000})
    for way, result in zip(WAYS, grade(*requests, options=('-j', '2'))):
        passed = [case['name'] for case in result['cases'] if case['passed']]
        assert not passed and result['total'] == len(STYLES) * len(QUESTIONS) and result['status'] == 'completed', (way, passed, result['error'], statuses(result))
        seen = result['stdout'] + ''.join(case.get('stdout') or '' for case in result['cases'])
        assert SECRET not in seen, (way, seen)


def test_honest_test_code_passes():
    rows = programs('honest.txt')
    assert len(rows) + len(programs('pass.txt')) >= 150
    for (title, *_), result in zip(rows, grade(*({'code': code, 'tests': tests} for _, code, tests in rows), options=('-j', '3'))):
        assert result['all_passed'], (title, result['error'], [case for case in result['cases'] if not case['passed']])


def test_what_needs_one_process_passes_in_one():
    rows = programs('apart.txt')
    apart = grade(*({'code': code, 'tests': tests} for _, code, tests in rows))
    shared = grade(*({'code': code, 'tests': tests, 'shared_process': True} for _, code, tests in rows))
    assert [title for (title, *_), result in zip(rows, apart) if result['all_passed']] == []
    assert [title for (title, *_), result in zip(rows, shared) if not result['all_passed']] == []
    said = {title for (title, *_), result in zip(rows, apart) if 'unproxyable' in statuses(result)}
    assert {title for title, *_ in rows} - said == {'the doc string of a function of the tests', 'the exact type of an object of the library'}


# ---- what the tests change around a submission

def test_patched_builtins_reach_a_submission_in_both_modes():
    code = 'import time\ndef ask(): return int(input()) * 2\ndef show(x): print("x", x)\ndef read(n): return open(n).read()\ndef wait(): time.sleep(100)\n'
    tests = '''
import builtins
from unittest.mock import mock_open, patch
def test_input():
    with patch('builtins.input', return_value='4'): assert ask() == 8
def test_print():
    with patch('builtins.print') as out: show(1)
    out.assert_called_once_with('x', 1)
def test_open():
    with patch('builtins.open', mock_open(read_data='abc')): assert read('x') == 'abc'
def test_sleep():
    with patch('time.sleep') as sleep: wait()
    sleep.assert_called_once_with(100)
def test_assignment():
    before, builtins.input = builtins.input, lambda *rest: '5'
    try: assert ask() == 10
    finally: builtins.input = before
'''
    for shared in False, True:
        result = one(code=code, tests=tests, shared_process=shared)
        assert result['all_passed'] and result['passed'] == 5, result


def test_files_cross_only_below_paths_that_were_arguments():
    code = 'import os\ndef read(path):\n    with open(path) as f: return f.read()\ndef names(folder): return sorted(os.listdir(folder)) if os.path.exists(folder) else None\n'
    tests = '''
import os, pytest
def test_it(tmp_path):
    (tmp_path / 'given').mkdir()
    (tmp_path / 'kept').mkdir()
    (tmp_path / 'given' / 'a').write_text('1')
    (tmp_path / 'kept' / 'expected').write_text('2')
    assert read(tmp_path / 'given' / 'a') == '1'
    assert names(tmp_path / 'kept' / '..' / 'other') is None
def test_apart(tmp_path):
    (tmp_path / 'expected').write_text('2')
    given = tmp_path / 'given'
    given.mkdir()
    assert names(given) == []
    assert names(os.path.dirname(os.path.abspath('main.py'))) != []
'''
    result = one(code=code, tests=tests)
    assert result['all_passed'], result


def test_what_skips_itself_does_not_count():
    tests = 'import pytest\ndef test_f(): assert f() == 1\ndef test_g(): pytest.skip("later")\n'
    result = one(code='def f(): return 1', tests=tests)
    assert result['all_passed'] and result['score'] == 1 and (result['passed'], result['skipped'], result['failed']) == (1, 1, 0)
    result = one(code='def f(): return 1', tests='import pytest\ndef test_g(): pytest.skip("later")\n')
    assert not result['all_passed'] and result['skipped'] == 1
    wrong = one(code='def f(): return 2', tests=tests)
    assert not wrong['all_passed'] and wrong['score'] == 0 and wrong['failed'] == 1


@pytest.mark.parametrize('tests', ['def test_g(nothing_of_that_name): assert f() == 1\n', 'def test_g():\n    yield f()\n'])
def test_what_cannot_be_run_is_no_skip(tests):
    result = one(code='def f(): return 1', tests='assert f() == 1\n' + tests)
    assert not result['all_passed'] and statuses(result) == ['passed', 'error']


def test_cases_of_a_submission_share_its_files_and_nothing_that_it_assigns():
    """As docs/use/grading.md says."""
    code = ('import os, mmap\nshared = mmap.mmap(-1, 10)\nn = 0\ndef f(path):\n    global n\n    n += 1\n    seen = [os.path.exists(path), shared[0], n]\n'
            '    open(path, "w").close()\n    shared[0] = 7\n    return seen\n')
    rows = [('mark', [False, 0, 1]), ('mark', [True, 7, 1]), ('/dev/shm/mark', [False, 7, 1]), ('/dev/shm/mark', [True, 7, 1])]
    result = one(code=code, function='f', cases=[{'args': [path], 'expected': want} for path, want in rows])
    assert result['all_passed'], result
