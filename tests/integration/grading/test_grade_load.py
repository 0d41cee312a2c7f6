"""The same batch on an idle machine and beside 16 busy loops: the same verdicts.

    /usr/bin/python3 -m pytest -q tests/integration/grading/test_grade_load.py
"""

import subprocess

import pytest

from grading import grade

pytestmark = pytest.mark.alone('machine')

BUSY = 16
PROGRAMS = {
    'good': 'def f(x):\n    return x * x\n',
    'wrong': 'def f(x):\n    return x + x\n',
    'raises': 'def f(x):\n    return 1 // (x - 1)\n',
    'loops': 'def f(x):\n    while x == 1: pass\n    return x * x\n',
    'sleeps': 'import time\ndef f(x):\n    if x == 1: time.sleep(60)\n    return x * x\n',
    'works': 'import time\ndef f(x):\n    until = time.thread_time() + 0.1\n    while time.thread_time() < until: pass\n    return x * x\n',
    'dies': 'import os\ndef f(x):\n    if x == 1: os._exit(1)\n    return x * x\n',
    'crashes': 'import os\ndef f(x):\n    if x == 2: os.kill(os.getpid(), 11)\n    return x * x\n',
    'prints': 'def f(x):\n    print(x)\n    return x * x\n',
}
MAIN = 'print(f(int(input())))\n'


def batch():
    """Each program by calls and by standard input, in both instances."""
    limits = {'case_cpu_ms': 1000}
    for name, code in PROGRAMS.items():
        for instance in ('fresh', 'shared'):
            wall = {'wall_ms': 3000} if name == 'sleeps' else {'wall_ms': 30000}
            yield {'id': f'{name}, calls, {instance}', 'code': code, 'function': 'f', 'instance': instance, **limits,
                   'cases': [{'args': [x], 'expected': x * x, **wall} for x in range(4)]}
            yield {'id': f'{name}, inputs, {instance}', 'code': code + MAIN, 'instance': instance, **limits,
                   'cases': [{'stdin': f'{x}\n', 'expected_stdout': f'{x * x}\n', **wall} for x in range(4)]}


def verdicts():
    return {result['id']: (result['status'], result['score'], [case['status'] for case in result['cases']]) for result in grade(*batch(), options=('-j', '4'))}


def test_verdicts_do_not_depend_on_the_load():
    idle = verdicts()
    assert idle['good, calls, shared'] == ('completed', 1, ['passed'] * 4) and idle['loops, calls, fresh'][2] == ['passed', 'timeout', 'passed', 'passed']
    loops = [subprocess.Popen(['/bin/sh', '-c', 'while :; do :; done']) for _ in range(BUSY)]
    try:
        busy = verdicts()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert busy == idle, {name: (idle[name], busy[name]) for name in idle if idle[name] != busy[name]}
