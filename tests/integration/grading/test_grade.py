"""caisson grade: requests, functions, standard output, results, and what is in the way."""

import json
import os
import signal
import subprocess
import time
from xml.etree import ElementTree

import pytest

from cli import CAISSON, caisson, environment, on_terminal, tree
from daemon import commands, until
from grading import calls, check, grade, one, statuses

ADD = 'def f(a, b=0):\n    return a + b\n'


def stream(code, stdin, expected, language='python', **more):
    return one(language=language, code=code, cases=[{'stdin': stdin, 'expected_stdout': expected}], **more)


# ---- calls of functions ----

def test_values_types_and_exceptions():
    result = calls(ADD, {'args': [1, 2], 'expected': 3}, {'args': [1], 'kwargs': {'b': 2}, 'expected': 4}, {'args': ['a'], 'expected': 'a'},
                   {'args': ['a', 'b'], 'expected_type': 'str'}, {'args': [1, 2], 'expected_type': 'str'},
                   {'args': ['a', 1], 'expected_exception': 'TypeError'}, {'args': [1, 2], 'expected_exception': 'ValueError'},
                   {'args_python': '((1, 2), (3,))', 'expected_python': '(1, 2, 3)'}, {'args_python': '((1,), ())', 'expected': [1]})
    assert statuses(result) == ['passed', 'failed', 'error', 'passed', 'failed', 'passed', 'failed', 'passed', 'failed']
    assert [case['detail'] for case in result['cases']][:7] == [
        'OK', 'Expected 4, got 3', result['cases'][2]['detail'], 'OK', 'Type mismatch: got int, expected str', 'Expected exception TypeError raised',
        'Expected exception ValueError but none raised']
    assert result['cases'][2]['detail'].startswith('TypeError: ') and result['cases'][2]['error_type'] == 'TypeError' and result['cases'][2]['line'] == 2
    assert result['cases'][8]['detail'] == 'Expected [1], got (1,)'
    assert result['score'] == pytest.approx(4 / 9) and result['status'] == 'completed' and not result['signs']


def test_null_is_expected_where_it_stands():
    result = calls('def f(x): return x', {'args': [None], 'expected': None}, {'args': [5], 'expected': None}, {'args': [5]})
    assert statuses(result) == ['passed', 'failed', 'passed']


def test_weights_make_the_score():
    result = calls('def f(x): return x', {'args': [1], 'expected': 1}, {'args': [1], 'expected': 1}, {'args': [1], 'expected': 2, 'weight': 2})
    assert result['score'] == 0.5 and not result['all_passed']


def test_cases_do_not_touch_each_other():
    code = ('import os, signal, time\nseen = []\ndef f(what):\n    seen.append(what)\n    if what == "loop":\n        while True: pass\n'
            '    if what == "exit": os._exit(0)\n    if what == "kill": os.kill(os.getpid(), signal.SIGKILL)\n'
            '    if what == "parent": os.kill(os.getppid(), signal.SIGKILL); time.sleep(100)\n    return len(seen)\n')
    result = calls(code, *({'args': [what], 'expected': 1} for what in ('', 'loop', '', 'exit', '', 'kill', '', 'parent', '')), case_cpu_ms=500)
    assert statuses(result) == ['passed', 'timeout', 'passed', 'crash', 'passed', 'crash', 'passed', 'crash', 'passed']
    assert result['runs'] >= 2      # the sandbox that it killed, and another


def test_a_case_that_eats_all_memory_is_the_only_one():
    result = calls('def f(n):\n    return len(bytes(range(256)) * 4096 * n) >> 20\n', {'args': [1], 'expected': 1}, {'args': [900], 'expected': 900}, {'args': [2], 'expected': 2})
    assert statuses(result)[::2] == ['passed', 'passed'] and result['cases'][1]['status'] in ('memory_exceeded', 'error', 'crash')


def test_values_that_are_too_much_together_are_told():
    result = calls('def f(n):\n    return "x" * (n << 20)\n', *({'args': [7], 'expected_type': 'str'} for _ in range(12)))
    assert statuses(result)[:9] == ['passed'] * 9 and statuses(result)[-1] == 'unencodable'


def test_a_submission_that_ends_every_sandbox_is_given_up():
    code = 'import os, signal, time\ndef f(n):\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(100)\n'
    result = calls(code, *({'args': [n], 'expected': n} for n in range(120)))
    assert result['status'] == 'failed' and 'sandbox' in result['error']['message'] and result['runs'] == 100
    assert statuses(result) == ['crash'] * 100 + ['not_run'] * 20


@pytest.mark.alone('machine')
def test_the_text_is_searched_for_signs_though_the_first_case_ended_the_sandbox():
    code = 'import ctypes, os\ndef f(x):\n    if x == 0: os.kill(os.getppid(), 9)\n    return x\n'
    result = one(code=code, function='f', cases=[{'args': [n], 'expected': n} for n in range(3)])
    assert [case['passed'] for case in result['cases']] == [False, True, True], result['cases']
    assert [(sign['sign'], sign['detail']) for sign in result['signs'] if sign['sign'] == 'reads_internals'] == [('reads_internals', 'ctypes, line 1')], result['signs']


def test_a_submission_that_sleeps_is_graded_once_and_holds_up_nobody():
    sleeping = 'import time\ndef f(seconds):\n    time.sleep(seconds)\n    return seconds\n'
    slow = {'code': sleeping, 'function': 'f', 'cases': [{'args': [60], 'expected': 60, 'wall_ms': 3000}]}
    stream = {'code': 'import time; time.sleep(60)', 'cases': [{'stdin': '', 'expected_stdout': '', 'wall_ms': 3000}]}
    tests = {'code': sleeping, 'tests': 'assert f(60) == 60', 'limits': {'wall_ms': 2000}}
    script = {'language': 'javascript', 'function': 'f', 'cases': [{'expected': 1, 'wall_ms': 3000}],
              'code': 'exports.f = () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60000); return 1; };'}
    quick = [{'code': ADD, 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]}] * 20
    started = time.monotonic()
    results = grade(slow, slow, slow, stream, tests, script, *quick, options=('-j', '8'))
    assert time.monotonic() - started < 15, 'one after the other they take 18 s, and 36 s if each is graded twice'
    assert not any(result['retried'] for result in results)
    assert [statuses(result)[-1] for result in results[:6]] == ['timeout'] * 6
    assert all(result['all_passed'] for result in results[6:])


@pytest.mark.alone('machine')
def test_a_case_that_waits_for_the_cpu_has_its_time_nevertheless():
    """Six on each core compute at once: each has its CPU time, though by the wall clock it takes more than its limit."""
    code = 'import time\ndef f():\n    until = time.process_time() + 0.5\n    while time.process_time() < until: pass\n    return 1\n'
    computing = {'code': code, 'function': 'f', 'cases': [{'expected': 1, 'cpu_ms': 2000, 'wall_ms': 2000}]}
    results = grade(*[computing] * 6 * os.cpu_count(), options=('-j', str(6 * os.cpu_count())))
    assert max(result['cases'][0]['duration_ms'] for result in results) > 2000
    assert all(result['all_passed'] for result in results), [result['cases'] for result in results]


@pytest.mark.parametrize('value, expected, passed', [
    ('Decimal("0.1000001")', 'Decimal("0.1")', True), ('Decimal("0.2")', 'Decimal("0.1")', False), ('Fraction(1, 3)', '0.33333', True),
    ('Fraction(1, 3)', 'Fraction(333333, 1000000)', True), ('Fraction(1, 3)', 'Decimal("0.33333")', True), ('[Decimal("0.1000001")]', '[0.1]', True),
    ('{"a": Fraction(1, 3)}', '{"a": 0.3}', False), ('10 ** 400 + 1', '1' + 400 * '0', True), ('2 * 10 ** 400', '1' + 400 * '0', False),
    ('Decimal("1e999999")', 'Decimal("1.0000001e999999")', True), ('Decimal("1e999999")', '1', False), ('True', '1.0000001', True),
    ('Decimal("NaN")', 'Decimal("1")', False), ('10 ** 400', '1e300', False),
    ('1.00009', '1.0', True), ('1.00012', '1.0', False), ('10000.9', '10000.0', True), ('10001.1', '10000.0', False),
    ('Decimal("1.00009")', '1', True), ('Decimal("1.00012")', '1', False), ('Fraction(100009, 100000)', '1', True), ('Fraction(100012, 100000)', '1', False),
    ('1.00009 + 1j', '1 + 1j', True), ('1.0002 + 1j', '1 + 1j', False), ('-10001.1', '-10000.0', False),
])
def test_tolerance_holds_for_every_number_type(value, expected, passed):
    code = f'from decimal import Decimal\nfrom fractions import Fraction\ndef f(): return {value}'
    result = calls(code, {'expected_python': expected, 'tolerance': 1e-4})
    assert statuses(result) == ['passed' if passed else 'failed'], result['cases']


@pytest.mark.parametrize('number', [2 ** 63 - 1, 2 ** 63, 2 ** 64, -2 ** 63, -2 ** 63 - 1, 15511210043330985984000000, 10 ** 1000])
def test_integers_of_any_size(number):
    code = 'def f(x, y=0): return {"is": [x, -y]}'
    result = calls(code, {'args': [number], 'kwargs': {'y': number}, 'expected': {'is': [number, -number]}},
                   {'args': [number], 'expected': {'is': [number + 1, 0]}}, {'args': [str(number)], 'expected': {'is': [str(number), 0]}}, id=number)
    assert statuses(result) == ['passed', 'failed', 'passed'] and result['id'] == str(number), result


SLOW_SET = 'S = frozenset(n * (2 ** 61 - 1) for n in range(20000))\ndef f():\n    return S\n'      # all have one hash


def test_values_that_are_slow_to_compare_hold_up_nobody_and_have_failed():
    slow = {'id': 'slow', 'code': SLOW_SET, 'function': 'f', 'cases': [{'expected': 1}] * 9}
    quick = [{'id': str(n), 'code': ADD, 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]} for n in range(60)]
    first, *others = grade(slow, *quick, options=('-j', '4'))
    assert set(statuses(first)) == {'failed'} and first['status'] == 'completed'
    assert 'too long to compare' in first['cases'][-1]['detail']        # the budget of the grading is used up
    # Decoding the set alone may take the time of one comparison on a busy machine.
    assert any(text in first['cases'][0]['detail'] for text in ('frozenset', 'too long to compare'))
    assert all(result['all_passed'] and result['wall_ms'] < first['wall_ms'] / 2 for result in others)


def test_dotted_names_and_set_up():
    code = 'class Box:\n    def get(self): return SIZE\n    @staticmethod\n    def two(): return 2\n'
    result = one(code=code, setup='SIZE = 7', function='Box.get', cases=[{'expected': 7}, {'function': 'Box.two', 'expected': 2}])
    assert result['all_passed'], result


def test_output_of_a_case_is_its_own():
    result = calls('import sys\nprint("loaded")\ndef f(x):\n    print("out", x)\n    print("err", file=sys.stderr)\n    return x\n', {'args': [1], 'expected': 1}, {'args': [2], 'expected': 2})
    assert [case['stdout'] for case in result['cases']] == ['out 1\n', 'out 2\n'] and result['cases'][0]['stderr'] == 'err\n'


def test_what_c_code_wrote_before_is_of_no_case():
    code = 'import ctypes\nc = ctypes.CDLL(None)\nc.fopen.restype = ctypes.c_void_p\nfile = c.fopen(b"/tmp/log", b"w")\n'
    code += 'c.fputs(b"loaded", ctypes.c_void_p(file))\ndef f():\n    return open("/tmp/log").read()'
    request = {'code': code, 'function': 'f', 'cases': [{'expected': ''}, {'expected': ''}]}
    for result in grade(*[request] * 150):      # the first ones are not forked from a zygote
        assert result['all_passed'], result


@pytest.mark.parametrize('language', ['javascript', 'typescript'])
def test_functions_of_javascript(language):
    typed = ': any' if language == 'typescript' else ''
    code = f'function f(a{typed}, b{typed}) {{ if (a === null) throw new TypeError("null"); return {{sum: [a + b]}}; }}'
    result = calls(code, {'args': [1, 2], 'expected': {'sum': [3]}}, {'args': [1, 2], 'expected': {'sum': [4]}}, {'args': [None, 2], 'expected_exception': 'TypeError'},
                   language=language)
    assert statuses(result) == ['passed', 'failed', 'passed'], result


def test_a_loop_in_javascript_is_the_only_one():
    result = calls('exports.f = (x) => { while (x); return x; }', {'args': [0], 'expected': 0}, {'args': [1], 'expected': 1}, {'args': [0], 'expected': 0},
                   language='javascript', case_cpu_ms=500)
    assert statuses(result) == ['passed', 'timeout', 'passed']


# ---- what is in the way of all cases ----

@pytest.mark.parametrize('code, status, words', [
    ('def f(:', 'syntax_error', 'invalid syntax'),
    ('import nope', 'failed', "No module named 'nope'"),
    ('raise SystemExit(0)', 'failed', 'exit(0)'),
    ('import os; os._exit(0)', 'failed', 'exit(0)'),
    ('import os; os.kill(os.getpid(), 9)', 'crashed', 'signal 9'),
    ('def g(): pass\ndef h(): pass', 'failed', "Function 'f' not found in code; there are: g, h"),
    ('f = 1', 'failed', "Function 'f' not found"),
    ('while True: pass', 'timeout', 'Timeout after'),
])
def test_a_submission_that_does_not_load(code, status, words):
    limits = {'limits': {'wall_ms': 1500}} if status == 'timeout' else {}      # or it would be how long an interpreter takes to start
    result = calls(code, {'expected': None}, {'expected': 1}, **limits)
    assert result['status'] == status and words in result['error']['message'], result
    assert statuses(result) == ['not_run', 'not_run'] and result['score'] == 0 and result['feedback']


def test_a_policy_refuses_before_anything_runs():
    result = calls('import subprocess\ndef f(): return 1', {'expected': 1}, policy='agentos')
    assert result['status'] == 'blocked' and result['findings'] and result['boundary'] is None


def test_a_submission_has_files_and_environment():
    result = one(code='import os\ndef f(): return open("data").read() + os.environ["X"]', function='f', files=[{'name': 'data', 'content': 'a'}], env={'X': 'b'},
                 cases=[{'expected': 'ab'}])
    assert result['all_passed'], result


# ---- standard input and output ----

@pytest.mark.parametrize('language, code', [
    ('python', 'a, b = map(int, input().split())\nprint(a + b)'),
    ('javascript', "const [a, b] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number); console.log(a + b)"),
    ('typescript', "const n: number[] = require('fs').readFileSync(0, 'utf8').split(' ').map(Number); console.log(n[0] + n[1])"),
    ('bash', 'read a b; echo $((a + b))'),
])
def test_programs_that_read_and_write(language, code):
    result = one(language=language, code=code, cases=[{'stdin': '1 2\n', 'expected_stdout': '3\n'}, {'stdin': '2 2\n', 'expected_stdout': '5\n', 'name': 'wrong'}])
    assert statuses(result) == ['passed', 'failed'] and result['runs'] == (1 if language == 'python' else 2)
    assert result['cases'][1]['detail'] == "line 1: expected '5', got '4'" and result['cases'][1]['name'] == 'wrong'


@pytest.mark.parametrize('checker, expected, got, passes', [
    ('trimmed', 'a\nb\n', 'a \nb\n\n', True), ('exact', 'a\n', 'a', False), ('tokens', '1 2', '1\n2', True), ('floats', '0.3', '0.30000000001', True),
    ('floats', '0.3', '0.31', False), ('lines', 'b\na', 'a\nb', True), ('lines', 'b\na', 'a\na', False)])
def test_checkers(checker, expected, got, passes):
    assert stream(f'import sys; sys.stdout.write({got!r})', '', expected, checker=checker)['all_passed'] is passes


def test_a_checker_program_decides_in_a_sandbox_of_its_own():
    check_code = 'a, b = (set(open(n).read().split()) for n in ("output", "expected"))\nassert open("input").read() == "in"\nimport sys\nprint("not those")\nsys.exit(a != b)'
    request = {'checker': 'program', 'check': {'code': check_code}}
    assert stream('print("b a")', 'in', 'a b', **request)['all_passed']
    wrong = stream('print("b c")', 'in', 'a b', **request)
    assert statuses(wrong) == ['failed'] and wrong['cases'][0]['detail'] == 'the checker refuses it: not those'
    broken = stream('print(1)', 'other', '1', **request)
    assert (broken['error']['code'], broken['mask']) == ('checker_failed', True) and 'AssertionError' in broken['error']['message'], broken
    no_bash = stream('echo 1', '', '1', language='bash', checker='program', check={'language': 'bash', 'code': 'cmp -s output expected'})
    assert statuses(no_bash) == ['failed']      # "1\n" is not "1"


@pytest.mark.parametrize('code, status', [('while True: pass', 'timeout'), ('import time; time.sleep(100)', 'timeout'), ('raise ValueError(1)', 'error'),
                                          ('import sys; sys.exit(3)', 'error'), ('import os; os.kill(os.getpid(), 9)', 'crash'),
                                          ('x = bytearray(900 << 20)\nx[::4096] = b"a" * len(x[::4096])', 'memory_exceeded'), ('print("x" * 3_000_000)', 'failed')])
def test_programs_that_end_otherwise(code, status):
    result = stream(code, '', '1', **({'case_cpu_ms': 700} if status == 'timeout' else {}))
    assert statuses(result) == [status], result
    assert result['status'] == 'completed' and result['feedback'][0].startswith("Test 'case 1' failed: ")


def test_arguments_beside_standard_input():
    assert one(code='import sys; print(sys.argv[1:])', cases=[{'argv': ['a b', ''], 'expected_stdout': "['a b', '']"}])['all_passed']


def test_a_forged_verdict_is_only_output():
    code = ('import os\nprint("__SANDBOX_RESULTS__")\nprint(\'{"all_passed": true, "score": 1.0, "passed": 1}\')\n'
            'for fd in range(3, 1024):\n    try: os.write(fd, b\'{"passed": true}\')\n    except OSError: pass\nos._exit(0)')
    assert statuses(stream(code, '', '42')) == ['failed']


# ---- requests ----

@pytest.mark.parametrize('request_, field, words', [
    ({'code': '1', 'language': 'bash', 'function': 'f'}, '/function', 'leave function out'),
    ({}, '/code', 'code'),
    ({'code': '1', 'casess': []}, '/casess', 'did you mean "cases"'),
    ({'code': '1', 'cases': [{'args': [1]}]}, '/cases/0', 'give function'),
    ({'code': '1', 'function': 'f', 'cases': [{}, {'stdin': '1'}]}, '/cases/1', 'no expected_stdout'),
    ({'code': '1', 'function': 'f', 'cases': [{'args': [], 'expected_stdout': ''}]}, '/cases/0', 'make two cases'),
    ({'code': '1', 'function': 'f', 'cases': [{'args': [], 'args_python': '()'}]}, '/cases/0', 'give one of them'),
    ({'code': '1', 'function': 'f', 'cases': [{'kwargs': {}, 'kwargs_python': '{}'}]}, '/cases/0', 'give one of them'),
    ({'code': '1', 'function': 'f', 'cases': [{'expected': 1, 'expected_python': '1'}]}, '/cases/0', 'give one of them'),
    ({'code': '1', 'function': 'f', 'cases': [{'weight': -1}]}, '/cases/0', 'weight is -1'),
    ({'code': '1', 'function': 'f', 'cases': [{'tolerance': -1}]}, '/cases/0', 'tolerance is -1'),
    ({'code': '1', 'tolerance': -1, 'function': 'f', 'cases': [{}]}, '/tolerance', 'tolerance is -1'),
    ({'code': '1', 'checker': 'program', 'cases': [{'expected_stdout': ''}]}, '/checker', 'give checker'),
    ({'code': '1', 'checker': 'nose', 'cases': [{'expected_stdout': ''}]}, '/compare', 'trimmed'),
    ({'code': '1', 'language': 'bash', 'function': 'f', 'cases': [{}]}, '/cases/0', 'give stdin and expected_stdout'),
    ({'code': '1', 'language': 'javascript', 'tests': 'assert True'}, '/tests', 'for Python'),
    ({'code': '1', 'language': 'javascript', 'setup': '1', 'cases': [{'expected_stdout': ''}]}, '/setup', 'for Python'),
    ({'code': '1', 'function': 'f', 'func_name': 'f', 'cases': [{}]}, None, 'mean the same'),
    ({'code': '1', 'function': 'f', 'cases': [{'args': [], 'input_args': []}]}, '/cases/0', 'mean the same'),
    ({'prompt': 'x'}, '/code', 'neither code nor completion'),
    ({'code': '1', 'test_list': 'assert'}, None, 'test_list'),
])
def test_wrong_requests_name_the_field(request_, field, words):
    result = grade({'id': 'x', **request_}, status=64)[0]
    assert result['status'] == 'bad_request' and words in result['error']['message'], result
    assert field is None or result['error']['field'] == field
    assert result['boundary'] is None and result['runs'] == 0


def test_a_language_that_there_is_not():
    result = grade({'code': '1', 'language': 'cobol', 'cases': [{'expected_stdout': ''}]}, status=64)[0]
    assert result['status'] == 'unsupported_language' and 'python' in result['error']['message']


def test_names_of_older_systems():
    result = one(task_id=3, code=ADD, func_name='f', setup_code='', test_cases=[{'name': '1+2', 'input_args': [1], 'input_kwargs': {'b': 2}, 'expected_output': 3}])
    assert result['all_passed'] and result['id'] == '3' and result['cases'][0]['name'] == '1+2'
    assert one(code='print(input())', cases=[{'input': 'a', 'output': 'a'}, {'stdin': 'b', 'expected_output': 'b'}])['all_passed']


def test_lines_that_are_no_requests_are_answered_in_their_place():
    done = caisson('grade', '--json', stdin=b'nonsense\n\n[1]\n{"id": "good", "code": "print(1)", "cases": [{"expected_stdout": "1"}]}\n')
    results = [check(json.loads(line)) for line in done.out.splitlines()]
    assert [r['status'] for r in results] == ['bad_request', 'bad_request', 'completed'] and done.status == 64
    assert '-, line 1: the line is not JSON (' in results[0]['error']['message'] and results[2]['id'] == 'good'
    done = caisson('grade', stdin=b'import os\n')
    assert done.status == 64 and 'not JSON' in done.out and '1 submission: 0 passed, 0 failed, 1 not graded' in done.out and 'a second' not in done.out, done.out


@pytest.mark.parametrize('text', [b'', b'\n \n'])
@pytest.mark.parametrize('form', [[], ['--json'], ['--junit']])
def test_an_empty_input_is_an_error(text, form, tmp_path):
    (tmp_path / 'empty.jsonl').write_bytes(text)
    for done, name in ((caisson('grade', *form, stdin=text), 'standard input'), (caisson('grade', *form, tmp_path / 'empty.jsonl'), 'empty.jsonl')):
        assert done.status == 64 and 'there is no submission in' in done.err and name in done.err and 'one submission a line' in done.err, done.err


def test_results_come_in_the_order_of_the_input():
    requests = [{'id': str(n), 'language': 'bash', 'code': f'sleep 0.{(7 * n) % 5}; echo {n}', 'cases': [{'expected_stdout': str(n)}]} for n in range(12)]
    assert all(result['all_passed'] for result in grade(*requests, options=('-j', '6'), status=0))


def test_no_room_is_no_wrong_answer():
    requests = [{'language': 'bash', 'code': 'cat', 'cases': [{'stdin': str(n), 'expected_stdout': str(n)}] * 3} for n in range(8)]
    results = grade(*requests, options=('-j', '8', '--set', 'engine.queue_max=1', '--set', 'engine.running_max=1'))
    assert {result['status'] for result in results} <= {'completed', 'capacity'}
    assert [result for result in results if result['all_passed']] and all(case['status'] in ('passed', 'not_run') for result in results for case in result['cases'])


BROKEN = ['1 / 0', 'def f(:', 'import nosuchmodule', 'x = nosuchname', 'import sys; sys.exit(0)', 'import os; os._exit(0)', 'raise SystemExit(3)', 'assert False', 'while True: pass']
ALL = [{'function': 'f', 'cases': [{'args': [1], 'expected': 1}] * 3}, {'tests': 'assert f(1) == 1'}, {'tests': 'assert f(1) == 1', 'shared_process': True}]


def test_a_broken_set_up_is_the_fault_of_the_request():
    code = 'def f(x): return x'
    requests = [{'id': f'{n} {m}', 'code': code, 'setup': setup, 'limits': {'wall_ms': 1500}, **how} for n, setup in enumerate(BROKEN) for m, how in enumerate(ALL)
                if setup != 'x = nosuchname' or m != 1]     # with test code a set-up may use names of the submission
    good = {'id': 'good', 'code': code, 'setup': 'y = 1', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]}
    *results, last = grade(*requests, good, status=64)
    for result in results:
        assert (result['status'], result['error']['field'], result['error']['code']) == ('bad_request', '/setup', 'bad_request'), result
        assert result['error']['message'].startswith('the set-up failed') and result['signs'] == [], result
        assert set(statuses(result)) <= {'not_run'}
    assert results[0]['error']['message'] == 'the set-up failed in line 1: ZeroDivisionError: division by zero'
    assert last['all_passed']


@pytest.mark.parametrize('setup', ['throw new RangeError("s")', 'let = ;', 'process.exit(0)', 'nosuchname', 'await null; null.x', 'for (;;);'])
def test_a_broken_set_up_of_node_is_the_fault_of_the_request(setup):
    result = calls('function f(x) { return x }', {'args': [1], 'expected': 1}, {'args': [2], 'expected': 2}, language='javascript', setup=setup, limits={'wall_ms': 1500})
    assert (result['status'], result['error']['field'], result['signs']) == ('bad_request', '/setup', []), result


@pytest.mark.parametrize('how', ALL)
@pytest.mark.parametrize('code, status', [('1 / 0', 'failed'), ('def f(:', 'syntax_error'), ('import sys; sys.exit(0)', 'failed'), ('while True: pass', 'timeout')])
def test_a_submission_that_fails_behind_a_set_up_fails_by_itself(how, code, status):
    # Only the endless program waits for its limit; the others have time on a loaded machine, too.
    result = one(code=code, setup='import math\nSIZE = 1', limits={'wall_ms': 4000 if status == 'timeout' else 60000}, **how)
    assert result['status'] == status or how.get('shared_process') and result['status'] == 'completed', result
    assert not result['all_passed'] and (result['error'] or {}).get('field') != '/setup'


def test_a_set_up_that_needs_what_a_submission_lacks_is_the_submissions_failure():
    result = one(code='class Other: pass', setup='root = Node(1)', tests='assert root.value == 1')
    assert result['status'] == 'failed' and 'Node' in result['error']['message']


def test_a_time_out_is_no_early_exit():
    assert calls('while True: pass', {'expected': 1}, limits={'wall_ms': 1000})['signs'] == []
    assert [sign['sign'] for sign in calls('import os; os._exit(0)', {'expected': 1})['signs']] == ['early_exit']
    assert [sign['sign'] for sign in one(code='import os; os._exit(0)', tests='assert True')['signs']] == ['early_exit']


def test_stop_on_fail_ends_a_submission():
    cases = [{'expected_stdout': '1'}, {'expected_stdout': '2'}, {'expected_stdout': '1'}]
    assert statuses(one(code='print(1)', cases=cases, stop_on_fail=True)) == ['passed', 'failed', 'not_run']
    assert statuses(grade({'code': 'print(1)', 'cases': cases}, options=['--stop-on-fail'])[0]) == ['passed', 'failed', 'not_run']
    calling = [{'args': [n], 'expected': n if n != 3 else 0} for n in range(40)]
    assert statuses(calls('def f(x): return x', *calling, stop_on_fail=True)).count('not_run') >= 20


def test_what_is_expected_can_be_hidden():
    secret = 'SECRET7781'
    result = one(code='def f(): return 1', function='f', show_expected=False, cases=[{'expected': secret}, {'expected_type': secret}, {'expected_exception': secret}])
    streams = stream('print(1)', '', secret, show_expected=False)
    tests = one(code='def f(): return 1', tests=f'assert f() == "{secret}"', show_expected=False)
    for one_of_them in result, streams, tests:
        assert secret not in json.dumps(one_of_them) and one_of_them['failed'] == one_of_them['total'] > 0, one_of_them
    assert secret in json.dumps(stream('print(1)', '', secret))


def test_feedback_keeps_to_its_budget():
    cases = [{'args': [n], 'expected': 'x' * 100} for n in range(50)]
    assert sum(map(len, calls('def f(x): return x', *cases, feedback_chars=300)['feedback'])) <= 300
    assert calls('def f(x): return x', *cases, feedback_chars=0)['feedback'] == []
    advice = calls('def f(x): return y', {'args': [1], 'expected': 1})['feedback']
    assert advice == ["Test 'case 1' failed: NameError: name 'y' is not defined", 'Variable or function not defined. Check spelling and scope.']


# ---- forms ----

def test_for_people():
    done = caisson('grade', '-', stdin=b'{"id": "a\\u001b[31m", "code": "print(1)", "cases": [{"expected_stdout": "2"}]}\n{"id": "b", "code": "print(1)", "cases": [{"expected_stdout": "1"}]}\n')
    assert done.status == 1 and '\x1b' not in done.out and 'FAIL' in done.out and 'ok ' not in done.out
    assert "case 1: line 1: expected '2', got '1'" in done.out and '2 submissions: 1 passed, 1 failed; 1 of 2 cases, mean score 0.500' in done.out
    assert 'ok     b  1/1, score 1.00' in caisson('grade', '-v', stdin=b'{"id": "b", "code": "print(1)", "cases": [{"expected_stdout": "1"}]}\n').out


def test_a_masked_grading_has_no_score_and_is_no_part_of_the_mean():
    broken = {'id': 'a', 'code': 'print(1)', 'checker': {'kind': 'testlib', 'code': 'raise SystemExit(3)'}, 'cases': [{'expected_stdout': '1'}]}
    good = {'id': 'b', 'code': 'print(1)', 'cases': [{'expected_stdout': '1'}]}
    done = caisson('grade', '-', stdin=''.join(json.dumps(one) + '\n' for one in (broken, good)).encode())
    assert done.status == 125 and 'ERROR  a  no score\n' in done.out and '1 passed, 0 failed, 1 not graded' in done.out and 'mean score 1.000' in done.out
    done = caisson('grade', '-', stdin=json.dumps(broken).encode())
    assert 'mean' not in done.out and 'checker_failed' not in done.err


def test_junit():
    lines = [{'id': 'a<&"\x01', 'code': 'print(1)', 'cases': [{'expected_stdout': '1'}, {'expected_stdout': '<2>'}]}, {'id': 'b', 'code': 'x'},
             {'id': 'c', 'code': 'while True: pass', 'case_cpu_ms': 300, 'cases': [{'expected_stdout': ''}]}]
    done = caisson('grade', '--junit', stdin=''.join(json.dumps(line) + '\n' for line in lines).encode())
    suites = ElementTree.fromstring(done.out)
    rows = [(suite.get('name'), suite.get('tests'), suite.get('failures'), suite.get('errors'), len(suite)) for suite in suites]
    assert rows == [('a<&"\ufffd', '2', '1', '0', 2), ('b', '1', '0', '1', 1), ('c', '1', '0', '1', 1)]
    assert suites[0][1][0].get('message') == "line 1: expected '<2>', got '1'" and suites[2][0][0].get('type') == 'timeout'


def test_a_progress_bar_is_for_terminals(tmp_path):
    path = tmp_path / 'lines'
    path.write_text('{"id": "a", "code": "print(1)", "cases": [{"expected_stdout": "1"}]}\n' * 3)
    assert caisson('grade', path).err == '' and '] ' in caisson('grade', '--progress', path).err
    status, shown = on_terminal('grade', path)
    assert status == 0 and b'3 submissions: 3 passed' in shown and b'/3, ' in shown
    assert b'/3, ' not in on_terminal('grade', '--no-progress', path)[1]


@pytest.mark.parametrize('arguments, words', [(['/no/such'], 'No such file'), (['-j', '0'], '1 to'), (['-j', 'x'], '1 to'), (['--json', '--junit'], 'do not go together'),
                                              (['--checker', 'x', '-'], 'trimmed'), (['--nope'], 'no option')])
def test_wrong_options(arguments, words):
    done = caisson('grade', *arguments)
    assert done.status == 64 and words in done.err


def test_an_interrupt_ends_it_and_leaves_nothing():
    line = json.dumps({'code': 'import time; time.sleep(100)', 'cases': [{'expected_stdout': ''}], 'case_cpu_ms': 60000})
    process = subprocess.Popen([CAISSON, 'grade', '--json', '-'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    process.stdin.write((line + '\n').encode())
    process.stdin.close()
    until(lambda: any(name == 'python3' for name in commands(tree(process.pid))))      # its zygote, or the program
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert [json.loads(text)['status'] for text in process.stdout.read().splitlines()] == ['cancelled']
    process.stdout.close()
