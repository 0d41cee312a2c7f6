"""A submission whose functions are called, or tested by test code, is a module; for standard input it is the main program."""

import pytest

from grading import calls, one, statuses

SOLVE = 'def solve(x):\n    return x + 1\n\n'
BODIES = [
    'print(solve(int(input())))',
    'import sys; sys.exit(0)',
    'import sys; sys.exit(3)',
    'import os; os._exit(0)',
    'raise SystemExit',
    'import unittest; unittest.main()',
    'import sys; print(sys.argv[1])',
    'import argparse; p = argparse.ArgumentParser(); p.add_argument("--n", required=True); p.parse_args()',
    'import sys; print(sys.stdin.read().split()[0])',
    'print(open("input.txt").read())',
    'assert solve(1) == 3',
    'import pytest, sys; sys.exit(pytest.main([__file__]))',
    'while True: pass',
]
GUARDS = ['if __name__ == "__main__":', "if '__main__' == __name__:", 'if __name__ in ("__main__", "__mp_main__"):', 'if globals()["__name__"] == "__main__":',
          'if __spec__ is None:', 'if not __name__ != "__main__":']


@pytest.mark.parametrize('body', BODIES)
def test_the_main_guard_is_no_part_of_a_submission_whose_function_is_called(body):
    result = calls(f'{SOLVE}{GUARDS[0]}\n    {body}\n', {'args': [1], 'expected': 2}, function='solve')
    assert result['all_passed'] and result['signs'] == [] and result.get('stdout', '') == '', result


@pytest.mark.parametrize('guard', GUARDS)
def test_a_main_guard_of_any_form_is_false(guard):
    result = calls(f'{SOLVE}{guard}\n    raise SystemExit(1)\nelse:\n    kept = solve\n\ndef f(x):\n    return kept(x)\n', {'args': [1], 'expected': 2})
    assert result['all_passed'] and result['signs'] == [], result


@pytest.mark.parametrize('tests', ['from solution import solve\nassert solve(1) == 2', 'import solution\ndef test_it():\n    assert solution.solve(1) == 2',
                                   'def check(candidate):\n    assert candidate(1) == 2',
                                   'import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(solve(1), 2)\n'
                                   'if __name__ == "__main__":\n    unittest.main()'])
@pytest.mark.parametrize('shared', [False, True])
@pytest.mark.parametrize('body', BODIES[:2])
def test_the_main_guard_is_no_part_of_a_submission_with_test_code(body, tests, shared):
    result = one(code=f'{SOLVE}{GUARDS[0]}\n    {body}\n', tests=tests, entry_point='solve', shared_process=shared)
    assert result['all_passed'] and result['signs'] == [], result


def test_with_standard_input_the_main_guard_runs():
    code = f'{SOLVE}{GUARDS[0]}\n    print(solve(int(input())), __name__)\n'
    result = one(code=code, cases=[{'stdin': '1\n', 'expected_stdout': '2 __main__'}, {'stdin': '5', 'expected_stdout': '6 __main__'}])
    assert result['all_passed'] and result['signs'] == []


def test_an_exit_outside_of_a_guard_is_still_the_end():
    result = calls(f'{SOLVE}import sys; sys.exit(0)\n', {'args': [1], 'expected': 2}, function='solve')
    assert not result['all_passed'] and [sign['sign'] for sign in result['signs']] == ['early_exit']


# What asks the module by the name that a class or function tells.
BY_NAME = '''
import collections, concurrent.futures, copy, dataclasses, doctest, enum, inspect, multiprocessing, pickle, sys, timeit, typing, unittest

class Colour(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Node:
    """
    >>> Node(1).value
    1
    """
    value: int
    next: 'typing.Optional[Node]' = None

Pair = collections.namedtuple('Pair', 'a b')

class Tests(unittest.TestCase):
    def test_it(self):
        self.assertEqual(square(2), 4)

def square(x: 'int') -> 'Node':
    return x * x

def f(what):
    module = sys.modules[Node.__module__]
    if what == 'pickle':
        same = [Node(1, Node(2)), Pair(1, 2), Colour.RED, square, Node]
        return pickle.loads(pickle.dumps(same)) == same and copy.deepcopy(same) == same
    if what == 'hints':
        return typing.get_type_hints(Node) == {'value': int, 'next': typing.Optional[Node]} and typing.get_type_hints(square) == {'x': int, 'return': Node}
    if what == 'module':
        return module.Node is Node and inspect.getmodule(square) is module and vars(module) is globals()
    if what == 'source':
        return 'return x * x' in inspect.getsource(square) and inspect.getsource(Node).startswith('@dataclasses.dataclass')
    if what == 'main':
        from __main__ import square as same
        return same is square and timeit.timeit('square(2)', 'from __main__ import square', number=1) > 0
    if what == 'doctest':
        return doctest.testmod().attempted == doctest.testmod(module).attempted == 1
    if what == 'unittest':
        return unittest.defaultTestLoader.loadTestsFromModule(module).countTestCases() == 1
    if what == 'pool':
        with multiprocessing.Pool(2) as pool:
            return pool.map(square, [1, 2, 3]) == [1, 4, 9]
    if what == 'executor':
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            return list(pool.map(square, [1, 2, 3])) == [1, 4, 9]

if __name__ == '__main__':
    raise SystemExit(input())
'''


@pytest.mark.parametrize('image', ['small', 'data'])
def test_what_is_found_by_the_name_of_the_module_is_the_submissions(image):
    asked = ['pickle', 'hints', 'module', 'source', 'main', 'doctest', 'unittest', 'pool', 'executor']
    result = calls(BY_NAME, *({'args': [what], 'expected': True} for what in asked), image=image, limits={'pids': 64})
    assert dict(zip(asked, statuses(result))) == dict.fromkeys(asked, 'passed'), [case['detail'] for case in result['cases']]
    tests = ''.join(f'assert f({what!r}) is True\n' for what in asked)
    result = one(code=BY_NAME, tests=tests, image=image, limits={'pids': 64})
    assert result['all_passed'], [case['detail'] for case in result['cases']]


def test_types_of_the_submission_go_by_any_name_of_its_module():
    code = 'class Point: pass\nclass Odd(ValueError): pass\ndef f(x):\n    if x: raise Odd("no")\n    return Point()\n'
    names = [{'args': [0], 'expected_type': name} for name in ('Point', 'solution.Point', '__main__.Point')]
    errors = [{'args': [1], 'expected_exception': name} for name in ('Odd', 'solution.Odd', '__main__.Odd', 'ValueError')]
    assert calls(code, *names, *errors)['all_passed']
    assert calls(code, {'args': [1]})['cases'][0]['detail'] == 'Odd: no'


# ---- JavaScript ----

MAIN = 'require.main === module'
NODE = [
    ('javascript', f'function f(x) {{ return x + 1 }}\nif ({MAIN}) {{ process.exit(1) }}\n'),
    ('javascript', f'const f = (x) => x + 1;\nif ({MAIN}) {{ for (;;); }}\nmodule.exports = {{ f }}\n'),
    ('javascript', 'function f(x) { return x + 1 }\nif (!module.parent) process.exit(0)\n'),
    ('javascript', 'function f(x) { return x + 1 }\nif (process.mainModule === module || module.id === ".") throw new Error("main")\n'),
    ('javascript', 'function f(x) { return x + 1 }\nif (process.argv[1] === __filename) { throw new Error("main") }\n'),
    ('javascript', 'function f(x) { return x + 1 }\nif (require.main.filename === __filename) { console.log(require("fs").readFileSync(0, "utf8").split("\\n")[1].length) }\n'),
    ('javascript', 'import fs from "fs";\nimport { fileURLToPath, pathToFileURL } from "url";\nexport function f(x) { return x + 1 }\n'
                   'if (import.meta.url === pathToFileURL(process.argv[1]).href) process.exit(1)\n'
                   'if (fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) process.exit(1)\nif (import.meta.main) process.exit(1)\n'),
    ('typescript', f'function f(x: number): number {{ return x + 1 }}\nif ({MAIN}) {{ process.exit(1) }}\n'),
    ('typescript', 'import { pathToFileURL } from "url";\nexport function f(x: number): number { return x + 1 }\n'
                   'if (import.meta.url === pathToFileURL(process.argv[1]).href) process.exit(1)\n'),
]


@pytest.mark.parametrize('language, code', NODE)
def test_a_submission_for_node_has_been_required(language, code):
    result = calls(code, {'args': [1], 'expected': 2}, {'args': [2], 'expected': 3}, language=language)
    assert result['all_passed'] and result['signs'] == [], result


def test_with_standard_input_a_program_of_node_is_the_main_one():
    code = ('if (require.main === module && !module.parent && process.mainModule === module && module.id === "." && process.argv[1] === __filename)\n'
            '  console.log(Number(require("fs").readFileSync(0, "utf8")) + 1)\n')
    assert one(language='javascript', code=code, cases=[{'stdin': '1', 'expected_stdout': '2'}])['all_passed']
    code = ('import fs from "fs";\nimport { pathToFileURL } from "url";\n'
            'if (import.meta.url === pathToFileURL(process.argv[1]).href) console.log(Number(fs.readFileSync(0, "utf8")) + 1)\n')
    assert one(language='javascript', code=code, cases=[{'stdin': '1', 'expected_stdout': '2'}])['all_passed']
