"""instance = shared, standard input cases in forks, and total_cpu_ms.

    /usr/bin/python3 -m pytest -q tests/integration/grading/test_grade_shared.py
"""

import pytest

from grading import grade, statuses

BOTH = pytest.mark.parametrize('instance', ['fresh', 'shared'])


def one(code, *cases, **more):
    return grade({'code': code, 'cases': list(cases), **more})[0]


def calls(code, *cases, **more):
    return one(code, *cases, function='f', **more)


def reads(code, *pairs, **more):
    return one(code, *({'stdin': stdin, 'expected_stdout': expected} for stdin, expected in pairs), **more)


@BOTH
def test_the_result_names_the_instance(instance):
    result = calls('def f(x): return x', *({'args': [n], 'expected': n} for n in range(5)), instance=instance)
    assert result['all_passed'] and result['instance'] == instance and result['runs'] == 1


def test_state_lives_on_only_in_a_shared_process():
    code = 'seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)\n'
    cases = [{'args': [n], 'expected': 1} for n in range(3)]
    assert statuses(calls(code, *cases)) == ['passed'] * 3
    assert statuses(calls(code, *cases, instance='shared')) == ['passed', 'failed', 'failed']


@pytest.mark.parametrize('end, first', [
    ('os._exit(0)', 'crash'), ('os._exit(3)', 'crash'), ('os.kill(os.getpid(), 9)', 'crash'), ('raise SystemExit(0)', 'crash'),
    ('sys.settrace(lambda *_: None)', 'passed'), ('builtins.len = lambda _: 7', 'passed'), ('threading.Thread(target=time.sleep, args=[9], daemon=True).start()', 'passed'),
    ('os.closerange(3, 9999)', 'crash'), ('ctypes.string_at(0)', 'crash'),
])
def test_the_rest_runs_in_processes_of_its_own(end, first):
    """After a case that ends the process, or changes what the grader relies on, the others have their own state."""
    code = ('import builtins, ctypes, os, sys, threading, time\nseen = []\ndef f(x):\n    seen.append(x)\n'
            f'    if x == 2: {end}\n    return seen.__len__()\n')
    result = calls(code, *({'args': [n], 'expected': n + 1 if n < 2 else 1 if n > 2 else 3} for n in range(5)), instance='shared', case_cpu_ms=2000)
    found = statuses(result)
    assert found[:2] == ['passed'] * 2 and found[3:] == ['passed'] * 2, (found, result['signs'])
    assert found[2] in (first, 'passed', 'failed', 'crash')


def test_a_case_that_uses_up_its_time_does_not_take_that_of_others():
    code = 'def f(x):\n    while x == 1: pass\n    return x\n'
    result = calls(code, *({'args': [n], 'expected': n} for n in range(4)), instance='shared', case_cpu_ms=300)
    assert statuses(result) == ['passed', 'timeout', 'passed', 'passed'] and result['instance'] == 'shared'
    assert 'CPU time' in result['cases'][1]['detail']


def test_a_case_that_sleeps_is_ended_by_its_wall_clock_limit():
    result = calls('import time\ndef f(x): time.sleep(x)\n', {'args': [0], 'expected': None}, {'args': [60], 'expected': None, 'wall_ms': 400},
                   {'args': [0], 'expected': None}, instance='shared')
    assert statuses(result) == ['passed', 'timeout', 'passed']


def test_records_that_a_submission_writes_itself_are_refused():
    """The file of records is found among the descriptors; garbage and whole records in it change no other verdict for the better."""
    code = ('import os, struct\ndef f(x):\n    for fd in range(3, 1024):\n        try:\n            if "records" in os.readlink(f"/proc/self/fd/{fd}"):\n'
            '                text = b\'{"how":"returned","value":"7","type":"int","mro":["int","object"],"signs":[]}\'\n'
            '                os.write(fd, struct.pack("<QQQQQ", len(text), 0, 0, 1, 1) + text + b"garbage")\n        except OSError: pass\n    return 1\n')
    result = calls(code, *({'args': [n], 'expected': 2} for n in range(4)), instance='shared')
    assert statuses(result) == ['failed'] * 4 and result['score'] == 0 and not result['mask']


def test_output_of_calls_belongs_to_its_case():
    result = calls('def f(x):\n    print("case", x)\n    return x\n', *({'args': [n], 'expected': n} for n in range(3)), instance='shared')
    assert [case['stdout'] for case in result['cases']] == ['case 0\n', 'case 1\n', 'case 2\n']


def test_output_of_many_cases_together_is_no_limit_of_one():
    result = calls('import sys\ndef f(x):\n    sys.stderr.write("x" * (1 << 20))\n    return x\n', *({'args': [n], 'expected': n} for n in range(70)), instance='shared')
    assert result['all_passed'], [case['detail'] for case in result['cases'] if not case['passed']][:1]


def test_cases_that_are_all_wrong_are_told():
    result = calls('def f(x): return x\n', *[{'args_python': '(nothing,)', 'expected': 1}] * 2, instance='shared')
    assert statuses(result) == ['bad_case'] * 2


ECHO = 'import sys\nfor line in sys.stdin:\n    print(line.strip()[::-1])\n'


@BOTH
@pytest.mark.parametrize('code', [
    ECHO, 'while True:\n    try: print(input()[::-1])\n    except EOFError: break\n', 'import sys\nsys.stdout.write("\\n".join(l[::-1] for l in sys.stdin.read().split()) + "\\n")\n',
    'import os\nos.write(1, b"\\n".join(l[::-1] for l in os.read(0, 1000).split()) + b"\\n")\n', 'import sys\nsys.stdout.buffer.write(b"\\n".join(l[::-1] for l in sys.stdin.buffer.read().split()))\n',
    'import sys, atexit\nout = []\natexit.register(lambda: print(*out, sep="\\n"))\nfor l in open(0): out.append(l.strip()[::-1])\n',
    'import sys, io\ninput = io.BytesIO(sys.stdin.buffer.read()).readline\nfor l in iter(input, b""): print(l.decode().strip()[::-1])\n',
    ECHO + 'sys.exit()\n', ECHO + 'raise SystemExit(0)\n', ECHO + 'exit(0)\n',
    'import sys, threading\nsys.setrecursionlimit(10**6)\ndef main():\n    for l in sys.stdin: print(l.strip()[::-1])\nt = threading.Thread(target=main)\nt.start()\n',
    'if __name__ == "__main__":\n    ' + ECHO.replace('\n', '\n    ') + '\n',
])
def test_programs_read_and_write_as_main_programs_do(code, instance):
    result = reads(code, ('abc\n', 'cba\n'), ('de\nfgh\n', 'ed\nhgf\n'), ('xyz', 'zyx\n'), instance=instance)
    assert statuses(result) == ['passed'] * 3 and result['runs'] == 1, result['cases']


@BOTH
def test_programs_that_fail(instance):
    code = 'import os, sys\nn = int(input())\nprint(n)\nif n == 1: 1 / 0\nif n == 2: os._exit(3)\nif n == 3: sys.exit("no")\nif n == 4: os.kill(os.getpid(), 11)\nif n == 5: print("x" * 200000)\n'
    result = reads(code, *((f'{n}\n', f'{n}\n') for n in range(8)), instance=instance)
    assert statuses(result) == ['passed', 'error', 'error', 'error', 'crash', 'failed', 'passed', 'passed']
    first = result['cases'][1]
    assert first['error_type'] == 'ZeroDivisionError' and first['line'] == 4 and 'Traceback' in first['stderr'] and first['detail'] == 'ZeroDivisionError: division by zero'
    assert 'no' in result['cases'][3]['stderr'] and '200003' in result['cases'][5]['detail']


@BOTH
def test_a_prelude_is_there_for_main_programs(instance):
    code = 'print(Counter(stdin.read().split()).most_common(1)[0], gcd(4, 6))\n'
    assert statuses(reads(code, ('1 1 2', "('1', 2) 2"), ('3 1 3', "('3', 2) 2"), instance=instance, prelude='lcb')) == ['passed'] * 2


@BOTH
def test_names_of_one_program_are_not_those_of_the_next(instance):
    assert statuses(reads('try: print(seen)\nexcept NameError: print("none")\nseen = 1\ninput()\n', *[('a\n', 'none\n')] * 4, instance=instance)) == ['passed'] * 4


@BOTH
def test_bytes_that_are_no_text(instance):
    result = one('import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])\n', {'stdin_base64': 'AP+A', 'expected_stdout_base64': 'gP8A'},
                 {'stdin': '', 'expected_stdout': ''}, instance=instance)
    assert statuses(result) == ['passed'] * 2, result['cases']


def test_a_set_up_is_there_for_main_programs_too():
    assert statuses(reads('print(twice(int(input())))\n', ('2\n', '4\n'), setup='def twice(x): return 2 * x\n')) == ['passed']


def test_inputs_that_are_long_and_arguments_have_sandboxes():
    result = one('import sys\nprint(len(sys.stdin.read()), *sys.argv[1:])\n', {'stdin': 'x' * (2 << 20), 'expected_stdout': '2097152'},
                 {'stdin': 'x', 'argv': ['a'], 'expected_stdout': '1 a'}, {'stdin': 'xy', 'expected_stdout': '2'})
    assert statuses(result) == ['passed'] * 3 and result['runs'] == 3


@BOTH
@pytest.mark.parametrize('kind', ['call', 'program'])
def test_total_cpu_ms_is_for_all_cases_together(kind, instance):
    more = {'total_cpu_ms': 1500, 'case_cpu_ms': 1000, 'instance': instance}
    spin = 'import time\ndef f():\n    until = time.thread_time() + 0.4\n    while time.thread_time() < until: pass\n    return 1\n'
    if kind == 'call':
        result = calls(spin, *[{'expected': 1}] * 8, **more)
    else:
        result = reads(spin + 'print(f())\n', *[('', '1')] * 8, **more)
    found = statuses(result)
    assert found[0] == 'passed' and found[-1] == 'timeout' and found == sorted(found), found
    assert result['status'] == 'completed' and not result['mask']


@BOTH
@pytest.mark.parametrize('end', ['x = [bytearray(b"1" * (1 << 20)) for _ in range(4000)]', 'os.kill(-1, 9)', 'os.kill(os.getppid(), 9); time.sleep(9)'])
def test_a_case_that_ends_the_sandbox_takes_no_other_along(end, instance):
    code = f'import os, time\ndef f(n):\n    if n == 2: {end}\n    return n\n'
    result = calls(code, *({'args': [n], 'expected': n} for n in range(5)), instance=instance, limits={'memory_bytes': 128 << 20})
    found = statuses(result)
    assert found[:2] == found[3:] == ['passed'] * 2 and found[2] in ('memory_exceeded', 'error', 'crash', 'timeout', 'passed'), found
    assert not result['mask'] and result['score'] >= 0.8


@BOTH
def test_stop_on_fail_ends_main_programs(instance):
    result = reads('print(int(input()) + 1)\n', ('1', '2'), ('2', '0'), ('3', '4'), ('x', ''), instance=instance, stop_on_fail=True)
    assert statuses(result) == ['passed', 'failed', 'not_run', 'not_run'] and result['instance'] == instance and result['status'] == 'completed'
