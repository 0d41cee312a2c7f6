"""Test code, in a sandbox of its own: what passes under plain Python passes, and what forges does not."""

import pytest

from cli import ROOT
from grading import grade, one, statuses
from test_humaneval import problems_fixture  # noqa: F401


def programs(name):
    """[(title, submission, tests)] of a file in tests/cases/grade."""
    parts = (ROOT / 'tests/cases/grade' / name).read_text().split('\n### ')
    rows = []
    for part in parts:
        title, _, text = part.removeprefix('### ').partition('\n')
        code, _, tests = text.partition('\n---\n')
        rows.append((title, code, tests))
    return rows


def test_what_passes_under_plain_python_passes():
    rows = programs('pass.txt')
    assert len(rows) >= 48
    for (title, *_), result in zip(rows, grade(*({'code': code, 'tests': tests} for _, code, tests in rows))):
        assert result['all_passed'], (title, result['error'], [case for case in result['cases'] if not case['passed']])


def test_what_forges_does_not_pass():
    rows = programs('forge.txt')
    assert len(rows) >= 150
    results = grade(*({'code': code, 'tests': tests, 'case_cpu_ms': 1000, 'limits': {'wall_ms': 5000}} for _, code, tests in rows), options=('-j', '4'))
    for (title, *_), result in zip(rows, results):
        assert not result['all_passed'] and result['status'] not in ('engine_error', 'capacity', 'bad_request'), (title, result)


def test_a_shared_process_is_marked_and_can_be_forged():
    code = 'class Equal:\n    def __eq__(self, other): return True\ndef f(): return Equal()'
    assert statuses(one(code=code, tests='assert f() == 3')) == ['unproxyable']
    shared = one(code=code, tests='assert f() == 3', shared_process=True)
    assert shared['all_passed'] and shared['shared_process'] and not one(code=code, tests='assert f() == 3')['shared_process']


def test_kinds_of_test_code():
    code = 'def add(a, b):\n    return a + b\n'
    tests = ('import unittest\nassert add(1, 2) == 3\nassert add(1, 2) == 4\n'
             'def test_good(): assert add(1, 1) == 2\ndef test_bad(): assert add(1, 1) == 3\n'
             'class T(unittest.TestCase):\n    def test_a(self): self.assertEqual(add(2, 2), 4)\n    def test_b(self): self.assertEqual(add(2, 2), 5)\n'
             'def check(candidate):\n    assert candidate(0, 0) == 0\n')
    result = one(code=code, tests=tests, entry_point='add')
    assert [case['passed'] for case in result['cases']].count(True) == 4 and result['total'] == 7, result
    assert {'passed', 'failed'} == set(statuses(result)) and result['runs'] == 2


def test_cases_and_test_code_in_one_request():
    result = one(code='def f(x): return x', function='f', cases=[{'args': [1], 'expected': 1}], tests='assert f(2) == 2\nassert f(2) == 3')
    assert statuses(result) == ['passed', 'passed', 'failed'] and result['score'] == pytest.approx(2 / 3, abs=1e-6)


@pytest.mark.parametrize('code, status', [('def f(', 'syntax_error'), ('import nope', 'failed'), ('import os; os._exit(0)', 'failed'), ('while True: pass', 'timeout')])
def test_a_submission_that_does_not_load(code, status):
    limits = {'limits': {'wall_ms': 1500}} if status == 'timeout' else {}      # or it would be how long an interpreter takes to start
    result = one(code=code, tests='assert True', **limits)
    assert result['status'] == status and not result['all_passed'] and result['error']['message'], result


def test_test_code_that_does_not_parse_is_a_wrong_request():
    result = one(code='def f(): pass', tests='assert (')
    assert result['status'] == 'bad_request' and result['error']['field'] == '/tests' and result['error']['line'] == 1


def test_a_submission_that_dies_fails_what_comes_after():
    result = one(code='import os\ndef f(x):\n    if x: os._exit(0)\n    return x', tests='assert f(0) == 0\nassert f(1) == 1\nassert f(0) == 0')
    assert statuses(result)[0] == 'passed' and not any(case['passed'] for case in result['cases'][1:]) and result['total'] == 3


def test_a_submission_that_breaks_its_channel_ends():
    flood = 'import os, time\ndef flood():\n    for fd in range(3, 1100):\n        try: os.write(fd, b"junk" * 10)\n        except OSError: pass\n'
    loading = one(code=flood + 'flood()\ndef f(x): return x', tests='assert f(1) == 1')
    calling = one(code=flood + 'def f(x):\n    flood()\n    time.sleep(1000)', tests='assert f(1) == 1')
    assert (loading['status'], loading['error']['message'], loading['signs']) == ('failed', 'it wrote to the channel of its runner', []), loading
    assert [(case['status'], case['detail']) for case in calling['cases']] == [('crash', 'it wrote to the channel of its runner')], calling


def test_a_submission_that_does_not_come_back_has_a_time_limit():
    result = one(code='def f(x):\n    while x: pass', tests='assert f(0) is None\nassert f(1) is None', limits={'wall_ms': 2000})
    assert statuses(result) == ['passed', 'timeout'], result


def test_an_exception_in_test_code_has_its_advice():
    result = one(code='def f(x): return 1 / x', tests='assert f(0) == 1')
    assert statuses(result) == ['error'] and result['cases'][0]['error_type'] == 'ZeroDivisionError'
    assert result['feedback'] == ["Test 'assert f(0) == 1' failed: ZeroDivisionError: division by zero", 'Division by zero. Add guard for zero denominator.']


def test_what_the_submission_prints_is_kept():
    result = one(code='print("loading")\ndef f(x):\n    print("called", x)\n    return x', tests='assert f(7) == 7')
    assert result['all_passed'] and result['stdout'] == 'loading\ncalled 7\n'


# ---- datasets ----

def test_a_line_of_mbpp():
    result = one(task_id=11, text='Write a function.', code='def twice(x):\n    return x * 2\n', test_setup_code='', test_list=['assert twice(2) == 4', 'assert twice("a") == "aa"'],
                 challenge_test_list=[])
    assert result['all_passed'] and result['total'] == 2 and result['id'] == '11'


def wrong_of(problem, how):
    """The program without its body, off by one, or with an exception."""
    head = problem['prompt'] + problem['canonical_solution']
    name = problem['entry_point']
    return {'id': f'{problem["task_id"]}-{how}', 'entry_point': name, 'tests': problem['test'], 'code': {
        'empty': problem['prompt'] + '    pass\n',
        'raises': problem['prompt'] + '    raise RuntimeError("wrong")\n',
        'off by one': head + f'\n\ndef _off(value):\n'
                      '    if isinstance(value, bool) or value is None: return not value\n'
                      '    if isinstance(value, (int, float)): return value + 1\n'
                      '    if isinstance(value, str): return value + "x"\n'
                      '    if isinstance(value, (list, tuple)): return type(value)([*value, 1])\n'
                      '    return None\n'
                      f'_right = {name}\n\ndef {name}(*arguments, **named):\n    return _off(_right(*arguments, **named))\n'}[how]}


def test_human_eval(problems):
    assert all(result['all_passed'] for result in grade(*(dict(problem) for problem in problems), status=0))
    for how in 'empty', 'raises', 'off by one':
        results = grade(*(wrong_of(problem, how) for problem in problems), status=1)
        assert not [result['id'] for result in results if result['all_passed'] or result['status'] != 'completed'], how
