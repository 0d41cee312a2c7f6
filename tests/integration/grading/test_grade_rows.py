"""Gradings as the users of agentos' code sandbox know them: rows S1-01 to S1-44 of the checklist, and U-44."""

import json

import pytest

from cli import caisson
from grading import calls, check, grade, one, statuses

ADD = 'def add(a, b):\n    return a + b\n'


# ---- names of older systems ----

def test_a_result_has_the_names_of_agentos_on_request():
    """S1-01 and S1-38: nine names, and the record of each test."""
    result = one(code=ADD, function='add', aliases=True, cases=[{'name': '1+2', 'args': [1, 2], 'expected': 3}, {'name': 'no', 'args': [1, 2], 'expected': 4}])
    aliases = result['aliases']
    assert set(aliases) == {'success', 'exit_code', 'stdout', 'stderr', 'exception', 'duration', 'max_memory_mb', 'test_results', 'all_passed'}
    assert (aliases['success'], aliases['all_passed'], aliases['exit_code'], aliases['exception'], aliases['stdout'], aliases['stderr']) == (False, False, 0, '', '', '')
    assert aliases['duration'] == pytest.approx(result['wall_ms'] / 1000) and aliases['max_memory_mb'] == pytest.approx(result['memory_peak_bytes'] / 2**20)
    first, second = aliases['test_results']
    assert set(first) == {'name', 'passed', 'output', 'expected', 'detail', 'duration_ms'}
    assert {k: v for k, v in first.items() if k != 'duration_ms'} == {'name': '1+2', 'passed': True, 'output': '3', 'expected': '3', 'detail': 'OK'}
    assert second['detail'] == 'Expected 4, got 3' and second['duration_ms'] == round(second['duration_ms'], 2) > 0
    assert 'aliases' not in one(code=ADD, function='add', cases=[{'args': [1, 2], 'expected': 3}])


@pytest.mark.parametrize('request_, exception', [
    ({'code': 'import subprocess', 'policy': 'agentos'}, 'Security check failed'),          # S1-13
    ({'code': 'x = 1\ndef f(:\n'}, 'Syntax error: Line 2: invalid syntax'),                   # S1-17
    ({'code': 'while True: pass', 'limits': {'wall_ms': 1000}}, 'Timeout after 1s'),          # S1-29
    ({'code': 'print(undefined)'}, "NameError: name 'undefined' is not defined"),             # S2-38
])
def test_what_does_not_run_has_the_exception_of_agentos(request_, exception):
    result = one(**request_, aliases=True)
    assert (result['aliases']['exception'], result['aliases']['exit_code'], result['aliases']['success']) == (exception, -1, False), result


def test_a_refused_submission_gets_the_sentence_and_the_lines():
    """S1-56 and U-48: the feedback of a refused submission is that of a refused run."""
    code = 'import subprocess\ndef f(x):\n    return eval(x)'
    result = one(code=code, policy='agentos', function='f', cases=[{'args': ['1'], 'expected': 1}])
    run = json.loads(caisson('run', '--json', '-l', 'python', '--policy', 'agentos', '-c', code).out)
    assert (result['status'], result['feedback']) == ('blocked', run['feedback'])
    assert result['feedback'][0] == 'Code violates sandbox security rules; avoid system calls and I/O.'
    assert {'Line 1: Forbidden import: subprocess', 'Line 3: eval() is forbidden'} <= set(result['feedback'])


def test_the_documented_names_of_a_case_work():
    """S1-04 and S1-05: the names of the docstring and those of the class, with every field."""
    cases = [{'name': '1+2', 'args': [1, 2], 'expected': 3}, {'name': '1+2', 'input_args': [1], 'input_kwargs': {'b': 2}, 'expected_output': 3, 'expected_type': 'int', 'weight': 2.0},
             {'name': 'type', 'input_args': [1, 'x'], 'expected_exception': 'TypeError'}]
    assert one(code=ADD, func_name='add', test_cases=cases)['all_passed']


# ---- without tests ----

def test_without_function_and_tests_the_code_is_executed():
    """S1-23: a plain run; engine lines are not in its output."""
    result = one(code='print("hi")', aliases=True)
    assert (result['status'], result['total'], result['all_passed'], result['error'], result['feedback']) == ('completed', 0, False, None, [])
    assert result['stdout'] == 'hi\n' and result['aliases']['success'] and result['aliases']['test_results'] == []
    assert one(language='bash', code='echo hi')['stdout'] == 'hi\n' and one(language='js', code='console.log("hi")')['stdout'] == 'hi\n'
    done = caisson('grade', '-v', stdin=json.dumps({'id': 'x', 'code': 'print(1)'}).encode())
    assert done.status == 0 and 'ok     x  Code executed, no tests' in done.out, done.out


@pytest.mark.parametrize('request_, status', [
    ({'code': 'import sys; sys.exit(3)'}, 'failed'), ({'code': '1 / 0'}, 'failed'), ({'code': 'def f(:'}, 'syntax_error'),
    ({'code': 'import os; os._exit(0)'}, 'failed'), ({'language': 'bash', 'code': 'exit 3'}, 'failed'),
    ({'code': 'import os', 'policy': 'kodeagent'}, 'blocked'),
])
def test_code_that_fails_is_no_success_without_tests(request_, status):
    """S1-41 and S1-42: by the status, not by what is on standard error."""
    result = one(**request_, aliases=True)
    assert result['status'] == status and not result['aliases']['success'] and result['error'], result


def test_a_warning_on_standard_error_is_no_failure():
    """S1-42."""
    assert one(code='import sys; print("warning", file=sys.stderr)', aliases=True)['aliases']['success']


def test_a_function_without_tests_has_to_be_there():
    """S1-24 and S1-25: a function that is missing fails, with the names of those that exist; nothing else does."""
    result = one(code=ADD, function='add', aliases=True)
    assert result['status'] == 'completed' and result['total'] == 0 and not result['all_passed'] and result['aliases']['success']
    for more in ({}, {'cases': [{'args': [1, 2], 'expected': 3}]}):
        result = one(code=ADD + 'class C:\n    def m(self): pass\n', function='sub', **more)
        assert (result['status'], result['error']['code']) == ('failed', 'function_not_found'), result
        assert result['error']['message'].startswith("Function 'sub' not found in code; there are: ") and 'add' in result['error']['message']
    assert one(code=ADD + 'class C:\n    def m(self): pass\n', function='C.m')['status'] == 'completed'
    assert one(language='js', code='exports.f = () => 1', function='g')['error']['code'] == 'function_not_found'


# ---- set-up ----

@pytest.mark.parametrize('setup, message', [
    ('import os\n\nraise ValueError("no")', 'the set-up failed in line 3: ValueError: no'),
    ('x = 1\ndef f(:\n', 'the set-up failed in line 2: SyntaxError: '),
])
def test_a_broken_set_up_is_an_error_of_the_caller_with_its_line(setup, message):
    """S1-18: the submission has no part in it."""
    result = calls(ADD, {'args': [1, 2], 'expected': 3}, function='add', setup=setup)
    assert (result['status'], result['error']['field']) == ('bad_request', '/setup') and result['error']['message'].startswith(message), result
    assert statuses(result) == ['not_run'] and result['failed'] == 1 and 'memory_peak_bytes' not in result['cases'][0]


# ---- values ----

NAMED = '''
import enum
from collections import namedtuple
Point = namedtuple('Point', 'x y')
class Level(enum.IntEnum): HIGH = 3
class Text(str): pass
class Liar(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
class Quiet(tuple):
    def __ne__(self, other): return False
def f(name):
    return {'point': Point(1, 2), 'level': Level.HIGH, 'text': Text('a'), 'nested': [Point(1, Level.HIGH)], 'liar': Liar(5), 'quiet': Quiet((1,))}[name]
'''


@pytest.mark.parametrize('name, expected', [('point', '(1, 2)'), ('level', '3'), ('text', "'a'"), ('nested', '[(1, 3)]')])
def test_a_subclass_that_compares_as_its_base_equals_the_plain_value(name, expected):
    """S1-34 and U-44: a named tuple or an IntEnum passes where `!=` of Python would pass."""
    assert calls(NAMED, {'args': [name], 'expected_python': expected})['all_passed']
    wrong = calls(NAMED, {'args': [name], 'expected_python': '99'})['cases'][0]
    assert wrong['status'] == 'failed' and wrong['detail'].startswith('Expected 99, got '), wrong
    assert calls(NAMED, {'args': [name], 'expected_python': expected, 'strict_type': True})['cases'][0]['status'] == 'failed'


@pytest.mark.parametrize('name, expected', [('liar', '4'), ('liar', '5'), ('quiet', '(2,)')])
def test_equality_of_the_submission_never_decides(name, expected):
    """S1-34: `__eq__` and `__ne__` of the code under test."""
    assert statuses(calls(NAMED, {'args': [name], 'expected_python': expected})) == ['unencodable']


# ---- memory ----

def test_each_case_has_a_memory_figure():
    """S1-01: max_memory_mb is filled; a case cannot have used more than its sandbox."""
    code = 'def f(n): return len(bytearray(n * 1000000))'
    result = calls(code, {'args': [1], 'expected': 1000000}, {'args': [60], 'expected': 60000000})
    small, large = (case['memory_peak_bytes'] for case in result['cases'])
    assert 60e6 <= large <= result['memory_peak_bytes'] and small < large - 30e6, result


@pytest.mark.parametrize('language, code', [
    ('python', 'input(); x = bytearray(60000000); print(1)'), ('js', 'const x = Buffer.alloc(60000000, 1); console.log(1)'),
])
def test_a_case_with_a_sandbox_of_its_own_has_the_figure_of_the_sandbox(language, code):
    result = one(language=language, code=code, cases=[{'stdin': 'a\n', 'expected_stdout': '1\n'}])
    assert result['all_passed'] and result['cases'][0]['memory_peak_bytes'] == result['memory_peak_bytes'] >= 60e6, result


def test_a_figure_from_inside_is_held_to_that_of_the_sandbox():
    """The runner reads the figure in a process that has loaded the submission, so the submission may change it."""
    code = 'import os\nreal = os.wait4\n' \
           'def liar(*a):\n    pid, status, usage = real(*a)\n    return pid, status, type(usage)(usage[:2] + (10**12,) + usage[3:])\n' \
           'os.wait4 = liar\ndef f(): return 1\n'
    result = calls(code, {'args': [], 'expected': 1})
    assert result['all_passed'] and result['cases'][0]['memory_peak_bytes'] <= result['memory_peak_bytes'] < 1e9, result


# ---- programs in Markdown ----

FENCED = 'Sure, here it is:\n\n```python\ndef add(a, b):\n    return a + b\n```\n\nIt adds.\n'


def test_a_submission_is_taken_out_of_the_markdown_around_it():
    """S0-92 for gradings: lines are those of the submission."""
    case = {'args': [1, 2], 'expected': 3}
    for extract in ('last_fence', 'tagged_fence'):
        result = calls(FENCED, case, function='add', extract=extract)
        assert result['all_passed'] and [w['code'] for w in result['warnings']] == ['extracted'], result
        assert result['warnings'][0]['text'] == f'the submission begins in line 4 of code, because extract is {extract}'
    assert calls(FENCED, case, function='add')['status'] == 'syntax_error'
    broken = calls(FENCED.replace('return a + b', 'return a +'), case, function='add', extract='last_fence')
    assert (broken['status'], broken['error']['line']) == ('syntax_error', 2)
    assert one(code='```sh\necho hi\n```', extract='tagged_fence')['stdout'] == 'hi\n'
    plain = grade({'code': ADD, 'extract': 'tagged_fence', 'function': 'add', 'cases': [case]}, status=0)[0]
    assert check(plain)['all_passed'] and 'warnings' not in plain
