"""Programs that look at their own stack, its depth and their imports print what python3 prints, started cold and forked.

The programs are generated: each way of looking, at each place in a program, in front of each kind of last statement.
"""

import itertools
import re
import shutil
import subprocess

import pytest
from runners import COMMANDS, ENVIRONMENT, LANG, PYTHON
from zygotes import Zygote

LOOKS = {
    'stack': 'print([(one.filename, one.lineno, one.function) for one in inspect.stack()])',
    'print_stack': 'traceback.print_stack()',
    'extract_stack': 'print(len(traceback.extract_stack()))',
    'getframe': 'print(sys._getframe().f_back if sys._getframe().f_code.co_name == "<module>" else sys._getframe(1).f_lineno)',
    'faulthandler': 'faulthandler.dump_traceback(all_threads=False)',
    'log': 'logging.warning("w", stack_info=True)',
    'warn': 'warnings.warn("w")',
    'warn_above': 'warnings.warn("w", stacklevel=2)',
    'warn_far': 'warnings.warn("w", stacklevel=9)',
    'exc_info': 'print(sys.exc_info(), [name for name in dir(sys) if name.startswith("last_")])',
    'depth': 'print(deepest(plain), deepest(through_c), deepest(through_eval))',
    'hooks': 'print(sys.excepthook, sys.gettrace(), sys.getprofile(), __import__)',
    'context': 'try: 1 / 0\nexcept ZeroDivisionError as error: print(error.__context__, traceback.format_exc())',
}
HEAD = '''import atexit, faulthandler, functools, inspect, logging, sys, threading, traceback, warnings
def plain(n): return n and plain(n - 1)
def through_c(n): return n and functools.reduce(lambda a, b: through_c(n - 1), [1, 2])
def through_eval(n): return n and eval('through_eval(n - 1)', globals(), {'n': n})
def deepest(function):
    n = 1
    while True:
        try:
            function(n)
        except RecursionError:
            return n - 1
        n += 1
def look():
'''
PLACES = {
    'module': '{module}',
    'function': 'look()',
    'class body': 'class C:\n    look()',
    'generator': 'for _ in (look() for _ in [1]): pass',
    'thread': 'thread = threading.Thread(target=look)\nthread.start()\nthread.join()',
    'exit': 'atexit.register(look)',
    'exception hook': 'sys.excepthook = lambda *_: look()\n1 / 0',
    'del': 'class D:\n    def __del__(self): look()\nd = D()\ndel d',
    'coroutine': 'import asyncio\nasync def main(): look()\nasyncio.run(main())',
}
LASTS = {'expression': 'look()', 'statement': 'x = 1', 'block': 'if True:\n    look()', 'error': 'def f(): raise ValueError(1)\nf()'}


def indented(text):
    return ''.join('    %s\n' % line for line in text.split('\n'))


def programs():
    for (name, look), (place, text), (last, end) in itertools.product(LOOKS.items(), PLACES.items(), LASTS.items()):
        if name == 'depth' and place not in ('module', 'function') or last != 'expression' and (name not in ('stack', 'warn_above') or place == 'depth'):
            continue            # each takes two interpreters
        yield '%s-%s-%s' % (name, place, last), HEAD + indented(look) + text.format(module=look) + '\n' + end + '\n'


PROGRAMS = dict(programs())
ALONE = {
    'a coroutine is the value': 'import asyncio\n\nasync def main():\n    print("hi")\n\nmain()\n',
    'a list of coroutines is the value': 'async def main(): pass\n[main(),\n main()]\n',
    'an open file is the value': 'import warnings\nwarnings.simplefilter("always")\nopen(__file__)\n',
    'recursion at the usual limit': 'def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(997))\n',
    'recursion one deeper': 'def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(998))\n',
    'recursion with another limit': 'import sys\nsys.setrecursionlimit(50)\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n'
                                    'for n in range(40, 50): print(f(n))\n',
    'traced': 'import sys\nsys.settrace(lambda frame, event, _: print(frame.f_code.co_filename, event))\ndef f(): pass\nf()\n',
    'profiled': 'import sys\nsys.setprofile(lambda frame, event, _: print(frame.f_code.co_filename, event))\ndef f(): pass\nf()\n',
}


def cold(folder, source):
    return plain(folder, source, COMMANDS['py'][1], '')


def plain(folder, source, *runner):
    (folder / 'main.py').write_text(source)
    outcome = subprocess.run([PYTHON, *runner, str(folder / 'main.py')], cwd=folder, env={**ENVIRONMENT, 'HOME': str(folder)}, text=True,
                             capture_output=True, stdin=subprocess.DEVNULL, timeout=100)
    clear(folder)
    return outcome.returncode, told(outcome.stdout), told(outcome.stderr)


def clear(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def told(text):
    """Addresses and threads are not compared."""
    return re.sub(r'0x[0-9a-f]+', '0x', text)


@pytest.fixture(scope='module')
def forked(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('plain'), 'system', usual='')

    def run(source):
        clear(zygote.work)
        (zygote.work / 'main.py').write_text(source)
        outcome = zygote.run(zygote.work, ['', str(zygote.work / 'main.py')])
        clear(zygote.work)
        return outcome.status, told(outcome.stdout), told(outcome.stderr)

    run.folder = zygote.work
    yield run
    zygote.stop()


@pytest.mark.parametrize('look', LOOKS)
def test_forked_programs_see_what_python3_shows_them(forked, look):
    for name, source in PROGRAMS.items():
        if name.partition('-')[0] == look:
            assert (name, *forked(source)) == (name, *plain(forked.folder, source))


@pytest.mark.parametrize('look', LOOKS)
def test_cold_programs_see_what_python3_shows_them(tmp_path, look):
    for name, source in PROGRAMS.items():
        if name.partition('-')[0] == look and name.endswith('-expression'):
            assert (name, *cold(tmp_path, source)) == (name, *plain(tmp_path, source))


@pytest.mark.parametrize('name', ALONE)
def test_programs_that_end_in_an_odd_way_are_told_the_same(forked, tmp_path, name):
    assert forked(ALONE[name]) == plain(forked.folder, ALONE[name])
    assert cold(tmp_path, ALONE[name]) == plain(tmp_path, ALONE[name])


def test_without_the_library_there_are_two_frames_and_nothing_else_is_different(tmp_path):
    (tmp_path / 'main.py').write_text('import inspect\nprint(len(inspect.stack()))\ndef f(): raise ValueError(1)\nf()\n')
    shutil.copytree(LANG / 'python', tmp_path / 'python', ignore=shutil.ignore_patterns('_cold*'))
    outcome = subprocess.run([PYTHON, str(tmp_path / 'python' / 'run.py'), '', str(tmp_path / 'main.py')], text=True, capture_output=True)
    assert (outcome.returncode, outcome.stdout) == (1, '3\n') and '/python/' not in outcome.stderr


# ------------------------------------------------------------------------------------------------- a text is one text

CONSTANTS = '"a b"', 'b"a b"', '300', '-300', '1.5', '0.0', '-0.0', '2j', '(1, "a b")', '((1, 1.5), ("a b",))', '"ab"', '7', 'None', '"a" " b"', '150 * 2', '(300, )[0]'
DEFINITIONS = {
    'a name': 'x{n} = {c}\n',
    'a function': 'def f{n}(y=0): return {c}\nx{n} = f{n}()\n',
    'a function in a function': 'def f{n}():\n    def g(): return {c}\n    return g()\nx{n} = f{n}()\n',
    'a default': 'def f{n}(y={c}): return y\nx{n} = f{n}()\n',
    'a tuple': 'x{n}, = {c},\n',
    'a class': 'class C{n}:\n    y = {c}\nx{n} = C{n}.y\n',
    'a text that is not split': 'global z{n}\nx{n} = {c}\n',
}
USES = {
    'the last expression': 'print({all}, id(x0) == id("a b"))\n',
    'a function in the last expression': 'print((lambda: [{all}])(), [({all}) for _ in [1]])\n',
    'a block': 'if True:\n    print({all})\n',
    'a function that is last': 'def last(): print({all})\nlast()\n',
}


@pytest.mark.parametrize('definition', DEFINITIONS)
def test_equal_constants_of_a_text_are_one_object_where_they_are_in_python3(forked, tmp_path, definition):
    defined = ''.join(DEFINITIONS[definition].format(n=n, c=constant) for n, constant in enumerate(CONSTANTS))
    each = ', '.join('x%d is %s' % pair for pair in [*enumerate(CONSTANTS), *enumerate(CONSTANTS[1:])])     # and of others
    for use, text in USES.items():
        source = defined + text.format(all=each)
        expected = plain(tmp_path, source, '-Wignore')
        assert 'True' in expected[1] and 'False' in expected[1]
        assert (use, *forked(source)[:2]) == (use, *expected[:2])
        assert (use, *cold(tmp_path, source)[:2]) == (use, *expected[:2])


TEXTS = {
    'warnings of both pieces': '1 is 1\nprint("x" is 2)\n',
    'a warning of the first piece': 'assert (1, "x")\nprint(1)\n',
    'a warning of the last piece': 'x = 1\nprint(x is "a b")\n',
    'a warning of a last block': 'x = 1\nif x is 300:\n    pass\n',
    'warnings of a text without an expression at its end': '1 is 1\nx = 2 is 2\n',
    'warnings before a mistake that the parser finds': '1 is 1\nx = (\n',
    'warnings before a mistake that the compiler finds': '1 is 1\nreturn\n2 is 2\n',
    'a mistake in the last piece': '1 is 1\nprint(2 is 2, __debug__ := 1)\n',
    'escapes': 'x = "\\d"\nprint("\\w", x)\n',
    'calls of what is no function': 'x = "a"("b") if 0 else 1\nprint(1[0] if 0 else 2)\n',
    'a filter': 'import warnings\nprint(len(warnings.filters), warnings.filters[0])\n',
    'a document': '"""a text"""\nprint(__doc__, __doc__ is "a text", __debug__)\n',
    'a document alone': '"""a text"""\n',
    'no document': 'x = 1\n"a text"\nprint(__doc__)\n',
    'a future': 'from __future__ import annotations\nexec("def f(x: y): pass\\nprint(f.__annotations__)")\n',
    'a future in a lambda': 'from __future__ import annotations\n(lambda: exec("def f(x: y): pass\\nprint(f.__annotations__)"))()\n',
    'annotations': 'x: int = 300\nprint(__annotations__, x is 300)\n',
    'an assignment in an expression': 'x = 300\nprint(y := 300, y is x)\n',
}


@pytest.mark.parametrize('name', TEXTS)
def test_what_the_compiler_tells_is_told_once_and_in_order(forked, tmp_path, name):
    assert forked(TEXTS[name]) == plain(forked.folder, TEXTS[name])
    assert cold(tmp_path, TEXTS[name]) == plain(tmp_path, TEXTS[name])


# ------------------------------------------------------------------------------------------------------ the same imports

WRITE = '''import os, sys
def write(path, text):
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    with open(path, 'w') as file: file.write(text)
def zipped(path, text):
    import zipfile
    with zipfile.ZipFile('a.zip', 'w') as file: file.writestr(path, text)
    sys.path.insert(0, 'a.zip')
'''
MODULES = 'queue', 'json', 'random', 'asyncio', 'time', 're'
WAYS = {
    'a file': 'write("{0}.py", "X = 1")',
    'a package': 'write("{0}/__init__.py", "X = 1")',
    'a folder that is none': 'write("{0}/other.txt", "")',
    'a file that is none': 'write("{0}.txt", "")',
    'a folder of the search path': 'write("lib/{0}.py", "X = 1"); sys.path.insert(0, "lib")',
    'a folder behind all': 'write("lib/{0}.py", "X = 1"); sys.path.append("lib")',
    'a zip file': 'zipped("{0}.py", "X = 1")',
    'another process': 'import subprocess; subprocess.run(["touch", "{0}.py"])',
}
IMPORTS = {
    'import': 'import {0} as m',
    'from': 'from {0} import __name__ as n; m = sys.modules["{0}"]',
    'importlib': 'import importlib; m = importlib.import_module("{0}")',
    '__import__': 'm = __import__("{0}")',
}


@pytest.mark.parametrize('module', MODULES)
def test_a_module_that_the_program_makes_comes_before_one_that_was_imported_ahead(forked, module):
    tail = '\nprint(getattr(m, "X", "none"), os.path.relpath(getattr(m, "__file__", None) or "/", os.getcwd()).startswith(".."), m.__name__)\n'
    for (way, write), (how, get) in itertools.product(WAYS.items(), IMPORTS.items()):
        if way != 'a file' and how != 'import':
            continue            # each takes two interpreters
        for known in ('', get.format(module) + '\n'):       # one that the program has imported before is the one that there is
            source = WRITE + known + write.format(module) + '\n' + get.format(module) + tail
            expected = plain(forked.folder, source)
            assert (way, how, known, *forked(source)[:2]) == (way, how, known, *expected[:2])


def test_what_imports_a_module_of_the_program_is_imported_anew(forked):
    source = WRITE + ('write("heapq.py", "from _heapq import *\\nmerge = nlargest = nsmallest = None\\nprint(\\"mine\\")")\n'
                      'import collections, queue, asyncio, json\nprint(json.dumps([1]), queue.heappush)\n')
    assert forked(source) == plain(forked.folder, source)


def test_what_was_imported_with_another_module_stays(forked):
    source = WRITE + 'import decimal\nwrite("numbers.py", "X = 1")\nimport numbers\nprint(hasattr(numbers, "X"))\n'
    assert forked(source) == plain(forked.folder, source)
