"""The runners, each on both roads: started with the program, and as a worker that has waited for it.

    /usr/bin/python3 -m pytest -q tests/integration/pool/test_runners.py
"""
# shards: 3

import re
import signal
import subprocess

import pytest

from runners import COMMANDS, LANG, NODE, PYTHON, plain, runner_of


def pytest_generate_tests(metafunc):
    if 'run' in metafunc.fixturenames:
        only_python = metafunc.function.__name__.startswith('test_python')
        metafunc.parametrize('run', ['cold'] if only_python else ['cold', 'waiting'], indirect=True)


@pytest.fixture
def run(request, tmp_path):
    return runner_of(request.param, tmp_path)


# ------------------------------------------------------------------------------------------------------- all of them

@pytest.mark.parametrize('name, source', [
    ('main.py', 'print("hello")\n'),
    ('main.js', 'console.log("hello")\n'),
    ('main.mjs', 'console.log("hello")\n'),
    ('main.ts', 'const s: string = "hello"\nconsole.log(s)\n'),
    ('main.sh', 'echo hello\n'),
])
def test_hello(run, name, source):
    outcome = run(name, source)
    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, 'hello\n', '')
    assert outcome.kinds == ('HELLO STARTED' if name == 'main.sh' else 'HELLO STARTED DONE')
    hello = outcome.document('HELLO')
    assert hello['runner'] == {'py': 'python', 'sh': 'bash'}.get(name[5:], 'node')
    assert hello['version'][0].isdigit()


@pytest.mark.parametrize('name, source', [
    ('main.py', 'import os\nprint("hello", 1)\nos.fstat(1)\n[1]'),
    ('main.js', 'console.log("hello", 1);\n[1];'),
    ('main.sh', 'echo hello 1\n'),
])
def test_runs_without_a_channel(run, name, source):
    outcome = run(name, source, channel=False)
    assert (outcome.status, outcome.stdout, outcome.packets) == (0, 'hello 1\n', [])


@pytest.mark.parametrize('name, source', [
    ('main.py', 'import subprocess\nprint(subprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, '
                'capture_output=True, text=True).stdout.count("socket"))'),
    ('main.js', 'console.log(String(require("child_process").execFileSync("ls", ["-l", "/proc/self/fd"], '
                '{stdio: ["ignore", "pipe", "ignore"]})).split("\\n").filter(l => /\\b3 -> socket/.test(l)).length)'),
    ('main.sh', 'ls -l /proc/self/fd > fds; grep -c socket fds\n'),
])
def test_children_do_not_inherit_the_channel(run, name, source):
    assert run(name, source).stdout == '0\n'


@pytest.mark.parametrize('name, source', [
    ('main.py', 'import sys\nprint(sys.argv[1:], sys.argv[0] == __file__)'),
    ('main.js', 'console.log(process.argv.slice(2), process.argv[1] === __filename)'),
    ('main.sh', 'echo "$@" "$0"\n'),
])
def test_arguments(run, tmp_path, name, source):
    expected = {'main.py': "['a b', '-c'] True\n", 'main.js': "[ 'a b', '-c' ] true\n",
                'main.sh': 'a b -c %s\n' % (tmp_path / 'main.sh')}
    assert run(name, source, 'a b', '-c').stdout == expected[name]


@pytest.mark.parametrize('name, source, line', [
    ('main.py', 'x = 1\nif x:\n    def f(:\n', 3),
    ('main.js', 'let x = 1;\nif (x) {\n    foo bar;\n}\n', 3),
    ('main.mjs', 'import fs from "fs";\nlet a = 1;\n    let b = = 2;\n', 3),
    ('main.ts', 'let x: number = 1;\n\nlet y: = 2;\n', 3),
    ('main.sh', 'echo never\n\nif true; then fi\n', 3),
])
def test_syntax_error(run, name, source, line):
    outcome = run(name, source)
    assert outcome.kinds == 'HELLO SYNTAX'
    assert outcome.status == (2 if name == 'main.sh' else 1)
    assert outcome.stdout == ''
    assert outcome.syntax['type'] == 'SyntaxError'
    assert outcome.syntax['line'] == line
    assert outcome.syntax['text'] == source.split('\n')[line - 1]
    assert name in outcome.stderr and str(line) in outcome.stderr
    assert str(LANG) not in outcome.stderr


@pytest.mark.parametrize('name', ['main.py', 'main.js', 'main.mjs', 'main.ts'])
@pytest.mark.parametrize('source', [b'[' * 100000, b'-' * 200000 + b'1', b'a' + b'.b' * 100000, b'x = 1\n\0\n',
                                    b'(' * 1000 + b')' * 1000, b'"' * 99999, b'\xff\xfe\n', b''])
def test_odd_texts_end_in_an_orderly_way(run, name, source):
    outcome = run(name, source)
    if outcome.status < 0:
        pytest.skip('the parser of this interpreter crashes: signal %d' % -outcome.status)
    assert outcome.kinds.split()[:2] in (['HELLO', 'SYNTAX'], ['HELLO', 'STARTED'])
    if outcome.syntax:
        assert outcome.status == 1 and outcome.syntax['type'] and outcome.syntax['message']


# ------------------------------------------------------------------------------------------------------------ Python

PYTHON_VALUES = [
    ('{"a": [1, 2.5, None, True], "b": (1, "é\\n\\u2028")}', 'dict', {'a': [1, 2.5, None, True], 'b': [1,
     'é\n\u2028']}),
    ('1 + 1', 'int', 2),
    ('"x" * 3', 'str', 'xxx'),
    ('False', 'bool', False),
    ('2 ** 100', 'int', 2 ** 100),
    ('import collections\ncollections.OrderedDict(a=1)', 'OrderedDict', {'a': 1}),
    ('import collections\ncollections.namedtuple("P", "x y")(1, 2)', 'P', [1, 2]),
    ('import enum\nclass E(enum.IntEnum):\n    A = 7\nE.A', 'E', 7),
    ('x = 5\nx; x + 1', 'int', 6),
    ('"""\nafter a docstring\n"""', 'str', '\nafter a docstring\n'),
    ('x = (1,\n     2)\n(x\n [0]\n)  # a comment\n# another', 'int', 1),
    ('__return_value__ = {"r": 1}\n"not this"', 'dict', {'r': 1}),
    ('def f():\n    global __return_value__\n    __return_value__ = 3\nf()', 'int', 3),
    ('import os; 5', 'int', 5),
    ('*[1], 2', 'tuple', [1, 2]),
    ('x = 1\r\nx', 'int', 1),
    ('# coding: latin-1\n"é"', 'str', 'Ã©'),
    ('"""\nfor a in b: pass\n#"""', 'str', '\nfor a in b: pass\n#'),
    ('x = "\\\nprint(1)"\nx', 'str', 'print(1)'),
]


@pytest.mark.parametrize('source, kind, value', PYTHON_VALUES)
def test_python_value(run, source, kind, value):
    outcome = run('main.py', source)
    assert outcome.stderr == ''
    assert outcome.value == {'type': kind, 'value': value}
    assert outcome.kinds == 'HELLO STARTED VALUE DONE'


@pytest.mark.parametrize('source, kind, text', [
    ('float("nan")', 'float', 'nan'),
    ('[1, float("inf")]', 'list', '[1, inf]'),
    ('{1: 2}', 'dict', '{1: 2}'),
    ('{"a": {2}, "b": frozenset(), (1,): ()}', 'dict', "{'a': {2}, 'b': frozenset(), (1,): ()}"),
    ('object', 'type', "<class 'object'>"),
    ('b"\\xff"', 'bytes', "b'\\xff'"),
    ('"\\ud800"', 'str', "'\\ud800'"),
    ('a = []\na.append(a)\na', 'list', '[[...]]'),
    ('1j', 'complex', '1j'),
    ('10 ** 300000', 'int', '<int of 996579 bits>'),
    ('[1 << 20000]', 'list', '[%s]' % hex(1 << 20000)),
    ('class L(list):\n    def __repr__(self): return "mine"\nL([{3}])', 'L', 'mine'),
])
def test_python_value_that_json_cannot_express(run, source, kind, text):
    assert run('main.py', source).value == {'type': kind, 'repr': text}


@pytest.mark.parametrize('source', ['None', 'print(1)', 'x = 1', 'def f(): return 1', 'if True:\n    5', '',
                                    '__return_value__ = None\n5', '# only a comment', 'x = [1,\n5\n]', 'x = 1 + \\\n5',
                                    'if False:\n    1\nelse:\n    5', 'try:\n    5\nfinally:\n    6', 'for i in "ab":\n    i'])
def test_python_without_a_value(run, source):
    assert run('main.py', source).kinds == 'HELLO STARTED DONE'


def test_python_program_that_traces_itself_sees_one_frame(run, tmp_path):
    source = ('import sys\ndef see(frame, event, argument):\n    print(event, frame.f_code.co_name, frame.f_lineno)\n    return see\n'
              'sys.settrace(see)\nfor i in range(2):\n    (lambda: 1)()\n    if i:\n        sys.settrace(None)\n')
    plain = subprocess.run([PYTHON, '-c', source], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert plain.stdout.count('call') == 2 and run('main.py', source).stdout == plain.stdout


def test_python_program_that_profiles_itself_sees_one_call(run, tmp_path):
    source = ('import cProfile, pstats\nprofile = cProfile.Profile()\nprofile.enable()\nif True:\n    sorted([2, 1])\n    profile.disable()\n'
              '    print(sorted(name for _, _, name in pstats.Stats(profile).stats))\n')
    plain = subprocess.run([PYTHON, '-c', source], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert 'sorted' in plain.stdout and run('main.py', source).stdout == plain.stdout


def test_python_statement_that_is_wrong_only_because_of_others(run):
    outcome = run('main.py', 'x = 1\nif x:\n    global x\n')
    assert outcome.kinds == 'HELLO SYNTAX' and "name 'x' is used prior to global declaration" in outcome.stderr


def test_python_generator_is_not_consumed(run):
    outcome = run('main.py', '(print("ran") for _ in range(3))')
    assert outcome.value['type'] == 'generator' and outcome.stdout == ''


def test_python_value_in_pieces(run):
    outcome = run('main.py', '"é" * 90000')
    assert outcome.value == {'type': 'str', 'value': 'é' * 90000}
    assert len(outcome.packets) == 6        # HELLO STARTED, three pieces, DONE


@pytest.mark.parametrize('source', [
    '"x" * 10_000_000',
    '["ab"] * 5_000_000',
    'bytes(10_000_000)',
    '[10 ** 4000] * 100',
    'x = [1]\nfor _ in range(60): x = [x, x]\nx',
    'x = {1}\nfor _ in range(60): x = [x, x]\nx',
    'class A:\n    def __repr__(self): return "\\0" * 10_000_000\nA()',
])
def test_python_value_over_the_limit(run, source):
    outcome = run('main.py', source, options='value_max=50000')
    assert outcome.status == 0 and outcome.value['truncated'] is True
    assert len(outcome.packets[2]) < 51000


@pytest.mark.parametrize('source', [
    'class A:\n    def __repr__(self): raise ValueError("no")\nA()',
    'class A:\n    def __repr__(self): raise SystemExit(3)\nA()',
    'class A:\n    def __repr__(self): return 5\nA()',
    'class A:\n    def __repr__(self): return repr(self)\nA()',
    'class A:\n    __class__ = dict\n    def __getattribute__(self, name): raise KeyError(name)\nA()',
    'class M(type):\n    def __getattribute__(cls, name): raise OSError\nclass A(metaclass=M): pass\nA()',
    'class A(dict):\n    def items(self): raise ValueError\n    def __iter__(self): raise ValueError\n'
    '    def __len__(self): raise ValueError\nA(a=1)',
    'class A(str):\n    def __str__(self): raise ValueError\n    def encode(self, *a): raise ValueError\nA("text")',
    'x = []\nfor _ in range(100000): x = [x]\nx',
    'import sys\nsys.setrecursionlimit(60)\n[[[[[[1]]]]]]',
    'import builtins\nfor n in "range", "print", "iter", "sorted", "issubclass": setattr(builtins, n, None)\n[1, {2}]',
    'import sys\nsys.settrace(lambda *a: 1 / 0)\n__return_value__ = [1]',
    'import sys, json\nsys.modules.clear()\n[1]',
    'import os\nos.write = os.fstat = os.getpid = None\n[1]',
])
def test_python_broken_objects_do_not_break_the_report(run, source):
    outcome = run('main.py', source)
    assert outcome.kinds == 'HELLO STARTED VALUE DONE'
    assert outcome.status == 0


PYTHON_FAILURES = [
    'def f(n):\n    return 1 / n\n\nf(0)\n',
    'class E(Exception): pass\nraise E("é" * 10)\n',
    'try:\n    {}["a"]\nexcept KeyError as e:\n    raise ValueError("second") from e\n',
    'import json\njson.loads("{")\n',
    'raise ExceptionGroup("g", [ValueError(1), TypeError(2)])\n',
    'import sys\nsys.exit("a message")\n',
    'import sys\nsys.exit(7)\n',
    'raise SystemExit(None)\n',
    'raise SystemExit((1, 2))\n',
    'import sys\nsys.exit(-1)\n',
    'raise KeyboardInterrupt\n',
    'import sys\nsys.excepthook = lambda *a: print("hooked", a[0].__name__)\n1/0\n',
    'import sys\ndef hook(*a): raise ValueError("in hook")\nsys.excepthook = hook\n1/0\n',
    'import sys\ndel sys.excepthook\n1/0\n',
    'import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1/0\n',
    'exec("x = = 1")\n',
    'import atexit, threading\natexit.register(print, "atexit")\n'
    'threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()\nprint("main")\n',
    'class A:\n    def __del__(self): print("del")\ndef f():\n    a = A()\n    raise SystemExit(4)\n'
    'import atexit\natexit.register(print, "atexit")\nf()\n',
    'import os\nos._exit(5)\n',
    'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n',
    'x: int = "a"\nprint(__annotations__, __name__, __spec__, __doc__, __package__, __cached__)\n',
    '"""doc"""\nprint(__doc__, sorted(globals()))\n',
    'from __future__ import annotations\nx: undefined = 1\nprint(__annotations__)\n',
    '# -*- coding: latin-1 -*-\nprint(len("\xe9"))\n',
    'import warnings\nwarnings.warn("careful")\nprint(1 is 1)\n',
    'return 5\n',
    'if True:\n\tx = 1\n        y = 2\n',
    'print(f"{x!z}")\n',
    'async def f(): pass\nawait f()\n',
    'class A: __slots__ = ("a",)\nA().b = 1\n',
    'import sys\nprint(sys.path[0] == __file__.rpartition("/")[0], sys.flags.optimize, len(sys.orig_argv))\n',
    'import __main__\nprint(__main__.__dict__ is globals())\n',
    'def f():\n    raise ValueError\nimport threading\nt = threading.Thread(target=f)\nt.start()\nt.join()\n',
]


@pytest.mark.parametrize('source', PYTHON_FAILURES)
def test_python_prints_and_exits_as_without_us(run, tmp_path, source):
    outcome = run('main.py', source)
    expected = plain(PYTHON, tmp_path, 'main.py')
    assert outcome.stdout == expected.stdout
    assert thread_names_removed(outcome.stderr) == thread_names_removed(expected.stderr)
    assert outcome.status == expected.returncode


def thread_names_removed(text):
    return text.replace('Thread-1 (f)', 'Thread-1')


DEL = 'class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print("del", self.n)\n'
PYTHON_ENDINGS = [
    DEL + 'a = A(1)\nb = A(2)\n_c = A(3)\n__d = A(4)\n',
    DEL + 'def f(): return a\na = A(1)\nb = A(2)\n_c = A(3)\nimport builtins\nbuiltins.f = f\n',
    DEL + 'import builtins, sys\nbuiltins.x = A(0)\nsys.y = A(5)\na = A(1)\n',
    DEL + 'a = A(1)\na.self = a\nimport gc\ngc.disable()\n',
    'import builtins, sys\nclass K:\n    def __hash__(self): return 1\n    def __eq__(self, other): print("asked"); return False\n'
    'for module in builtins, sys: vars(module)[K()] = 1\n',
    'import builtins\nclass K(str):\n    bad = False\n    def __hash__(self):\n        if self.bad: raise ValueError\n        return hash(str(self))\n'
    'k = K("strange")\nvars(builtins)[k] = 1\nK.bad = True\n',
    'import helper\nb = helper.A("main")\nhelper.keep = b\n',
    'import helper, sys\nsys.modules["other"] = helper\nhelper.me = helper\n',
    'import sys\nclass A:\n    def __del__(self): print(sys.is_finalizing(), sys.meta_path, sys.path, sys.argv)\na = A()\n',
    'class A:\n    def __del__(self):\n        import tabnanny\na = A()\ndef f(): a\n',
    'class A:\n    def __del__(self): raise ValueError(1)\na = A()\n',
    'import sys\nsys.unraisablehook = lambda u: print("hook", u.err_msg, u.exc_value)\n'
    'class A:\n    def __del__(self): 1/0\na = A()\n',
    'import atexit, sys\natexit.register(print, "last")\natexit.register(lambda: 1/0)\natexit.register(lambda: sys.exit(5))\n',
    'import atexit, os\natexit.register(os._exit, 5)\n',
    'import sys\nsys.exit(257)\n',
    'import sys\nsys.exit(2 ** 70)\n',
    'import sys\nsys.exit(2 ** 40 + 3)\n',
    'import sys\nsys.exit(True)\n',
    'import sys\nsys.stderr = None\nsys.exit("x")\n',
    'import sys\nprint(1)\nsys.stdout.close()\n',
    'import sys\ndel sys.stdout\n',
    'import os\nos.close(1)\nprint(1)\n',
    'import sys\nclass S:\n    closed = False\n    def flush(self): raise OSError("no")\nsys.stdout = S()\n',
    'import sys\nclass S:\n    closed = False\n    def flush(self): raise OSError("no")\nsys.stderr = S()\n',
    'import threading, time\nthreading.Thread(target=time.sleep, args=[20], daemon=True).start()\n' + DEL + 'a = A(1)\n',
    'import threading, sys\nthreading.Thread(target=sys.exit).start()\n1/0\n',
    'import atexit\natexit.register(print, "a")\n' + DEL + 'a = A(1)\nraise KeyboardInterrupt("x")\n',
    'import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n',
    'import os, sys\nif os.fork(): os.wait()\nprint(end="x")\nsys.exit(4)\n',
    'import os\nf = open("o", "w")\nf.write("text")\nclass A:\n'
    '    def __del__(self, size=os.path.getsize): print(size("o"))\na = A()\ng = open("p", "w")\ng.write("x")\n',
    'import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, "fin")\nr = weakref.ref(a, print)\n',
    'class A:\n    __slots__ = ()\n    def __del__(self): print("del")\na = A()\n',
    'def g():\n    try: yield\n    finally: print("end")\na = g()\nnext(a)\n',
    'async def f(): pass\na = f()\n',
    'import weakref\nclass A: pass\na = A()\nr = weakref.ref(a, lambda ref: print("gone"))\n',
    'import weakref\nclass R(weakref.ref): pass\nclass A: pass\na = A()\nr = R(a, lambda ref: print("gone"))\n',
    'import weakref\nclass R(weakref.ref):\n    __callback__ = property(lambda self: 1 / 0)\nclass A: pass\na = A()\nr = R(a)\n',
    'import gc\ndel gc.callbacks, gc.get_objects, gc.collect, gc.isenabled\n',
    'import gc\ngc.callbacks.append(lambda phase, info: print(phase) if phase == "start" else None)\n',
    'import logging.handlers\nm = logging.handlers.MemoryHandler(9, target=logging.StreamHandler())\n'
    'logging.getLogger().addHandler(m)\nlogging.warning("x")\n',
    'from concurrent.futures import ThreadPoolExecutor\ne = ThreadPoolExecutor(2)\nf = e.submit(print, "in")\n',
    'import sys\nsys.modules.clear()\n' + DEL + 'a = A(1)\n',
    'import sys\nsys.modules = 5\n' + DEL + 'a = A(1)\n',
    'import sys, threading\nsys.modules["threading"] = None\n',
    'import threading\nthreading._shutdown = lambda: 1/0\n',
    'import ctypes\nctypes.CDLL(None).puts(b"C")\nctypes.CDLL(None).fflush(None)\n',
]


@pytest.mark.parametrize('unbuffered', ['', '1'])
@pytest.mark.parametrize('source', PYTHON_ENDINGS)
def test_python_ends_as_without_us(run, tmp_path, source, unbuffered):
    helper = DEL + 'a = A("h1")\n_b = A("h2")\ndef f(): return a\nc = A("h3")\n'
    outcome = run('main.py', source, files={'helper.py': helper}, environment={'PYTHONUNBUFFERED': unbuffered})
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    expected = plain(PYTHON, tmp_path, 'main.py', PYTHONUNBUFFERED=unbuffered)
    assert (outcome.status, addresses_removed(outcome.stdout)) \
        == (expected.returncode, addresses_removed(expected.stdout))
    assert addresses_removed(outcome.stderr) == addresses_removed(expected.stderr)
    assert files == {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}


def addresses_removed(text):
    return re.sub('0x[0-9a-f]+', '0x', text)


@pytest.mark.parametrize('unbuffered', ['', '1'])
@pytest.mark.parametrize('source', ['print("x" * 100)', 'print("x" * 100000)', 'import sys\nprint(1)\nsys.exit(3)',
                                    'class A:\n    def __del__(self): print("late")\na = A()'])
def test_python_broken_output(run, tmp_path, source, unbuffered):
    """Nobody reads: the program is told, and the status says that something was lost."""
    closed = 'import os\nr, w = os.pipe()\nos.dup2(w, 1)\nos.close(r)\nos.close(w)\n'
    outcome = run('main.py', closed + source, environment={'PYTHONUNBUFFERED': unbuffered})
    expected = plain(PYTHON, tmp_path, 'main.py', PYTHONUNBUFFERED=unbuffered)
    assert (outcome.status, addresses_removed(outcome.stderr)) \
        == (expected.returncode, addresses_removed(expected.stderr))


@pytest.mark.parametrize('source', [
    b'\xef\xbb\xbfprint("bom")\r\nprint(2)\r\n',
    b'print(1)\r\nif True:\r\n    print(2)',
    b'# coding: latin-1\nprint(ascii("\xe9"))\n',
    b'#!/usr/bin/python3\nprint(1)\n\x0c\nprint(2)',
])
def test_python_encodings(run, tmp_path, source):
    outcome = run('main.py', source)
    assert outcome.stdout and outcome.stdout == plain(PYTHON, tmp_path, 'main.py').stdout


def test_python_error_document(run):
    outcome = run('main.py', 'import os\nfor name in ["é", "b"]:\n    x = "é" + name; open("/none/" + name)\n')
    error = outcome.error
    assert outcome.kinds == 'HELLO STARTED ERROR DONE' and outcome.status == 1
    assert (error['type'], error['module'], error['errno'], error['line']) == ('FileNotFoundError', 'builtins', 2, 3)
    assert error['column'] in (21, None)
    assert error['message'] == "[Errno 2] No such file or directory: '/none/é'"
    assert error['traceback'] == outcome.stderr.rstrip('\n').split('\n')


@pytest.mark.parametrize('source, name', [
    ('import numpyy', 'numpyy'),
    ('import os.nothing', 'os.nothing'),
    ('print(undefined_name)', 'undefined_name'),
    ('{}["key"]', None),
])
def test_python_missing_names(run, source, name):
    assert run('main.py', source).error['name'] == name


def test_python_position_is_in_the_main_file(run):
    outcome = run('main.py', 'import helper\n\nhelper.f()\n', files={'helper.py': '\n\n\n\ndef f(): 1/0\n'})
    assert outcome.error['line'] == 3


@pytest.mark.parametrize('source', [
    'class E(Exception):\n    def __str__(self): raise ValueError\nraise E("x")',
    'class E(Exception):\n    def __getattribute__(self, name): raise ValueError\nraise E("x")',
    'raise ValueError("x" * 10_000_000)',
    'raise ValueError("\\0" * 100000)',
    'raise ValueError("\\ud800")',
    'e = ValueError("\\n" * 100000)\nraise e',
    'e = None\nfor i in range(20000):\n    n = ValueError(i); n.__cause__ = e; e = n\nraise e',
    'type("N" * 100000, (Exception,), {"__module__": 5})\nraise type("N" * 100000, (Exception,), {"__module__": 5})',
    'import sys\nsys.stderr = None\n1/0',
    'import sys\nsys.stderr.close()\n1/0',
    'import sys\nclass S:\n    def write(self, t): raise OSError\nsys.stderr = S()\n1/0',
])
def test_python_broken_exceptions(run, tmp_path, source):
    outcome = run('main.py', source)
    assert outcome.kinds == 'HELLO STARTED ERROR DONE'
    assert outcome.status == plain(PYTHON, tmp_path, 'main.py').returncode
    assert len(outcome.error['traceback']) <= 100


def test_python_value_survives_an_error(run):
    outcome = run('main.py', '__return_value__ = [1]\n1/0\n')
    assert outcome.kinds == 'HELLO STARTED ERROR VALUE DONE'
    assert run('main.py', '__return_value__ = 2\nraise SystemExit(0)').value['value'] == 2


def test_python_modules_of_the_program_win(run, tmp_path):
    names = ['json', 'ast', 'traceback', 're', 'linecache', 'report', 'runner', 'run', 'fcntl2', 'tokenize', 'enum']
    files = {name + '.py': 'NAME = %r\nraise_me = 1\n' % name for name in names}
    source = ''.join('import %s; print(%s.__file__)\n' % (name, name) for name in names) + '{"v": undefined}'
    outcome = run('main.py', source, files=files, options='preload=json:math')
    assert outcome.stdout == plain(PYTHON, tmp_path, 'main.py').stdout
    assert str(tmp_path / 'json.py') in outcome.stdout
    assert outcome.error['type'] == 'NameError'
    assert run('main.py', 'import json\n{"v": json.NAME}', files=files).value['value'] == {'v': 'json'}


def test_python_preload(run):
    outcome = run('main.py', 'print(json.dumps(math.pi), "os" in globals())',
                  options='x=y,preload=json:math:os.path:no_such')
    assert (outcome.status, outcome.stdout) == (0, '3.141592653589793 True\n')
    assert run('main.py', 'json').error['name'] == 'json'


def test_python_imports_nothing_for_itself(run, tmp_path):
    source = 'import sys\nprint(sorted(sys.modules))\n'
    ours = set(eval(run('main.py', source).stdout))
    assert ours - set(eval(plain(PYTHON, tmp_path, 'main.py').stdout)) <= {'_ast', 'fcntl'}


MULTIPROCESSING = '''
import multiprocessing, pickle, sys
class Point:
    def __init__(self, x): self.x = x
def double(p): return Point(p.x * 2)
if __name__ == '__main__':
    assert pickle.loads(pickle.dumps(Point(1))).x == 1
    with multiprocessing.get_context(%r).Pool(2) as pool:
        print([p.x for p in pool.map(double, [Point(1), Point(2)])])
'''


@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])
def test_python_multiprocessing(run, method):
    outcome = run('main.py', MULTIPROCESSING % method)
    assert (outcome.stdout, outcome.stderr, outcome.kinds) == ('[2, 4]\n', '', 'HELLO STARTED DONE')


def test_python_forked_child_does_not_speak_for_us(run):
    outcome = run('main.py', 'import os\npid = os.fork()\nif pid: os.wait()\nprint(bool(pid))\n[1]')
    assert outcome.kinds == 'HELLO STARTED VALUE DONE'
    assert outcome.stdout == 'False\nTrue\n'


def test_python_os_exit_sends_no_end(run):
    outcome = run('main.py', 'import os\nprint("x")\nos._exit(0)')
    assert (outcome.kinds, outcome.stdout, outcome.status) == ('HELLO STARTED', 'x\n', 0)


def test_python_closes_everything(run):
    outcome = run('main.py', 'import os\nprint("before")\nos.closerange(3, 70000)\nf = open("out", "w")\n'
                             'for _ in range(1500):\n    try: os.dup(f.fileno())\n    except OSError: break\n[1]')
    assert outcome.kinds == 'HELLO STARTED' and outcome.status == 0


def test_python_does_not_write_frames_into_files_of_the_program(run, tmp_path):
    run('main.py', 'import os, stat\nfds = [int(n) for n in os.listdir("/proc/self/fd")]\n'
                   's = [n for n in fds if n > 3 and os.path.exists(f"/proc/self/fd/{n}") is False or '
                   '"socket" in (os.path.islink(f"/proc/self/fd/{n}") and os.readlink(f"/proc/self/fd/{n}") or "")]\n'
                   'out = os.open("out", os.O_RDWR | os.O_CREAT)\nfor n in s: os.dup2(out, n)\n[1]')
    assert (tmp_path / 'out').read_bytes() == b''


def test_python_writes_junk_into_every_descriptor(run):
    outcome = run('main.py', 'import os\nfor n in range(3, 2000):\n    try: os.write(n, b"CSN1junk")\n'
                  '    except OSError: pass\n[1]')
    assert outcome.status == 0
    assert outcome.packets[-1][:5] == b'CSN1\6' and b'CSN1junk' in outcome.packets


def test_python_output_is_not_lost_when_killed(run):
    outcome = run('main.py', 'import os, signal\nprint("kept", end="")\nos.kill(os.getpid(), signal.SIGKILL)')
    assert (outcome.stdout, outcome.status) == ('kept', -signal.SIGKILL)


def test_python_stdin(run):
    assert run('main.py', 'print(input() + input())', stdin=b'a\nb\n').stdout == 'ab\n'


def test_python_dataclasses_inspect_and_doctest(run):
    source = ('import dataclasses, inspect, doctest, typing\n@dataclasses.dataclass\nclass P:\n    """\n'
              '    >>> P(1).x\n    1\n    """\n'
              '    x: "int"\nprint(typing.get_type_hints(P), inspect.getsource(P).count("\\n"), doctest.testmod())\n'
              'P(2)')
    outcome = run('main.py', source)
    assert outcome.stdout == "{'x': <class 'int'>} 7 TestResults(failed=0, attempted=1)\n"
    assert outcome.value == {'type': 'P', 'repr': 'P(x=2)'}


def test_python_syntax_position(run):
    assert run('main.py', 'é = "é" é\n').syntax['column'] == 9
    assert run('main.py', 'def f():\n  x\n y\n').syntax['type'] == 'IndentationError'
    assert run('main.py', b'x = 1\ny = "\xff"\n').syntax['line'] == 2
    assert run('main.py', b'x = 1\ny = 2\0\n').syntax['line'] in (1, 2)
    assert 100 < len(run('main.py', 'x = "' + 'a ' * 100000).syntax['text']) <= 1000


# -------------------------------------------------------------------------------------------------------------- Node

@pytest.mark.parametrize('name, source, kind, value', [
    ('main.js', '[1, 2].map(x => x * 2)', 'Array', [2, 4]),
    ('main.js', 'const a = {x: 1, y: [null, "é\\u2028"], z: undefined};\na;', 'Object', {'x': 1, 'y': [None,
     'é\u2028']}),
    ('main.js', 'async function main() { return 5; }\n\nmain();\n', 'number', 5),
    ('main.js', '(async () => {\n  await null;\n  return [1];\n})();', 'Array', [1]),
    ('main.js', 'const f = () => 1\n1, f()', 'number', 1),
    ('main.js', '#!/usr/bin/env node\n"use strict";\nconst f = () => "v" // c\n/* d */\nf() // e', 'string', 'v'),
    ('main.js', '__return_value__ = {a: 1};\n5', 'Object', {'a': 1}),
    ('main.js', '"use strict";\n__return_value__ = 6;', 'number', 6),
    ('main.js', 'const __return_value__ = [7]\nconsole.log(1) // last', 'Array', [7]),
    ('main.js', 'let __return_value__;\nsetTimeout(() => { __return_value__ = 8 }, 10)', 'number', 8),
    ('main.js', 'globalThis.__return_value__ = Promise.resolve(9);', 'number', 9),
    ('main.js', 'const s = `\n${1}`\ns\n', 'string', '\n1'),
    ('main.js', 'x = 4;\nprocess.exit(0)\nx', None, None),
    ('main.js', 'globalThis.__return_value__ = 3; process.exit(0)', 'number', 3),
    ('main.js', 'const v = await Promise.resolve(4);\nconst fs = require("fs");\nv + typeof fs', 'string', '4object'),
    ('main.mjs', 'import path from "path";\nawait Promise.resolve(path.sep)', 'string', '/'),
    ('main.js', 'import path from "path";\nconst fs = require("fs");\n[path.sep, typeof fs.readFileSync]', 'Array',
     ['/', 'function']),
    ('main.js', 'import { createRequire } from "module";\nconst require = createRequire(import.meta.url);\n'
                'typeof require("fs")', 'string', 'object'),
    ('main.mjs', 'const __return_value__ = 1;\nexport default 5;', 'number', 1),
    ('main.ts', 'interface A { x: number }\nconst a: A = { x: 1 };\nfunction id<T>(v: T): T { return v; }\n\n'
     'id<A>(a);', 'Object', {'x': 1}),
    ('main.ts', 'import * as fs from "fs";\nenum E { A = 1, B }\n'
     'const n: number = await Promise.resolve(E.B as number);\n[n]', 'Array', [2]),
    ('main.mts', 'const x: number = 2;\nx * 2', 'number', 4),
    ('main.cts', 'const path = require("path");\nconst x: string = path.sep;\nx', 'string', '/'),
    ('main.cjs', 'module.exports = 5;\n7', 'number', 7),
    ('main.js', '42n', 'bigint', 42),
    ('main.js', '({ n: 2 ** 64, big: [-(2n ** 64n)] })', 'Object', {'n': 18446744073709552000, 'big': [-2 ** 64]}),
])
def test_node_value(run, name, source, kind, value):
    outcome = run(name, source)
    assert outcome.stderr == ''
    assert outcome.value == (kind and {'type': kind, 'value': value})
    assert outcome.kinds.endswith('DONE') and outcome.status == 0


@pytest.mark.parametrize('source, kind, text', [
    ('NaN', 'number', 'NaN'),
    ('[1, Infinity]', 'Array', '[ 1, Infinity ]'),
    ('new Map([[1, {a: 2}]])', 'Map', 'Map(1) { 1 => { a: 2 } }'),
    ('(function named() {})', 'function', '[Function: named]'),
    ('(() => 1)', 'function', '[Function (anonymous)]'),
    ('Symbol("s")', 'symbol', 'Symbol(s)'),
    ('class P { constructor() { this.x = 1 } }\nnew P()', 'P', 'P { x: 1 }'),
    ('const a = [];\na.push(a);\na', 'Array', '<ref *1> [ [Circular *1] ]'),
    ('const o = { get x() { throw 1 } };\no', 'Object', '{ x: [Getter] }'),
    ('new Date(0)', 'Date', '1970-01-01T00:00:00.000Z'),
    ('new Promise(() => {})', 'Promise', 'Promise { <pending> }'),
    ('"\\ud800"', 'string', "'\\ud800'"),
])
def test_node_value_that_json_cannot_express(run, source, kind, text):
    assert run('main.js', source).value == {'type': kind, 'repr': text}


@pytest.mark.parametrize('source', [
    '', 'undefined', 'void 0', 'console.log(1)', 'console.log(\n1\n)', 'const x = 5;', 'function f() {}',
    'module.exports = { a: 1 };', 'if (true) return;\n5',
])
def test_node_without_a_value(run, source):
    assert run('main.js', source).kinds == 'HELLO STARTED DONE'


@pytest.mark.parametrize('source', [
    'new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 } })',
    'const util = require("util");\n({ [util.inspect.custom]() { throw new Error("no") }, f() {} })',
    'let x = [];\nfor (let i = 0; i < 100000; i++) x = [x];\nx',
    'JSON.stringify = Array.isArray = Object.keys = () => { throw 1 };\n[1]',
    'delete globalThis.Buffer; String.prototype.slice = null; Array.prototype.join = null;\n[1]',
    'Object.create({ constructor: { name: 5 } })',
    'class A { static name = 5; f() {} }\nnew A()',
    'let x = 1n;\nfor (let i = 0; i < 40; i++) x = [x, x];\nx',
])
def test_node_broken_objects_do_not_break_the_report(run, source):
    outcome = run('main.js', source)
    assert outcome.kinds in ('HELLO STARTED VALUE DONE', 'HELLO STARTED DONE') and outcome.status == 0


@pytest.mark.parametrize('source', [
    '"x".repeat(10_000_000)',
    'new Array(5_000_000).fill("ab")',
    'Buffer.alloc(10_000_000).toString("hex")',
    'let x = [1];\nfor (let i = 0; i < 60; i++) x = [x, x];\nx',
    'const f = () => 1; f.text = "\\0".repeat(9_000_000);\nf',
])
def test_node_value_over_the_limit(run, source):
    outcome = run('main.js', source, options='value_max=50000')
    assert outcome.status == 0 and outcome.value['truncated'] is True
    assert len(outcome.packets[2]) < 51000


@pytest.mark.parametrize('name, source, line, column, kind', [
    ('main.js', 'const a = 1;\n\nfunction f() { null.x }\nf();\n', 3, 21, 'TypeError'),
    ('main.js', 'const a = 1\n\n\nundefinedName.x', 4, 1, 'ReferenceError'),
    ('main.js', 'setTimeout(() => {\n  throw new RangeError("late") }, 1);\n', 2, 9, 'RangeError'),
    ('main.js', 'async function f() {\n  throw new Error("r") }\nf();\n', 2, 9, 'Error'),
    ('main.mjs', 'import fs from "fs";\nfs.readFileSync("/none");\n', 2, 4, 'Error'),
    ('main.js', 'import fs from "fs";\nawait 1;\nthrow new Error("x");', 3, 7, 'Error'),
    ('main.ts', 'const x: number = 1;\nfunction f(): never { throw new Error("t") }\nf();', 2, 29, 'Error'),
    ('main.ts', 'enum E { A }\nnamespace N { export const q = 1 }\n\nfunction f(): never { throw new Error("t") }\n'
     'f();', 4, 29, 'Error'),
    ('main.ts', 'import fs from "fs";\nenum E { A }\nconst s: string = "";\n\nthrow new Error(s);', 5, 7, 'Error'),
])
def test_node_error(run, name, source, line, column, kind):
    outcome = run(name, source)
    error = outcome.error
    assert (error['type'], error['line'], error['column']) == (kind, line, column)
    assert outcome.status == 1
    assert '%s:%d' % (name, line) in outcome.stderr and str(LANG) not in outcome.stderr
    assert error['traceback'][0] in outcome.stderr
    assert outcome.kinds == 'HELLO STARTED ERROR DONE'


def test_node_error_details(run):
    error = run('main.js', 'require("fs").readFileSync("/none")').error
    assert (error['errno'], error['name']) == (2, None)
    assert run('main.js', 'require("leftpad")').error['name'] == 'leftpad'
    assert run('main.mjs', 'import x from "leftpad"').error['name'] == 'leftpad'
    assert run('main.js', 'nope()').error['name'] == 'nope'
    assert run('main.js', 'throw 42').error['message'] == '42'


@pytest.mark.parametrize('source', [
    'class E extends Error { get message() { throw 1 } get stack() { throw 2 } get name() { throw 3 } }\nthrow new E()',
    'throw new Error("x".repeat(10_000_000))',
    'throw new Error("\\0".repeat(100000))',
    'throw new Error("\\ud800")',
    'throw null',
    'throw Object.create(null)',
    'Promise.reject(undefined)',
    'function f() { f() }\nf()',
    'Error.stackTraceLimit = 1000;\nfunction f(n) { if (n) f(n - 1); else throw new Error("deep") }\nf(900)',
])
def test_node_broken_errors(run, source):
    outcome = run('main.js', source)
    assert outcome.kinds == 'HELLO STARTED ERROR DONE' and outcome.status == 1
    assert len(outcome.error['traceback']) <= 100


@pytest.mark.parametrize('source, status, stdout, kinds', [
    ('process.on("uncaughtException", e => console.log("caught", e.message));\nthrow new Error("x")', 0, 'caught x\n',
     'HELLO STARTED DONE'),
    ('process.on("unhandledRejection", e => { console.log("caught", e.message) });\nPromise.reject(new Error("x"));',
     0, 'caught x\n',
     None),
    ('const p = Promise.reject(new Error("x"));\np.catch(() => console.log("handled"));\np', 0, 'handled\n', None),
    ('process.on("exit", c => console.log("exit", c));\nprocess.exitCode = 4;', 4, 'exit 4\n', None),
    ('process.exit(3)', 3, '', 'HELLO STARTED DONE'),
    ('process.kill(process.pid, "SIGKILL"); setTimeout(() => {}, 1000)', -9, '', 'HELLO STARTED'),
    ('process.stdout.write("x".repeat(200000), () => process.exit(0))', 0, 'x' * 200000, None),
    ('process.removeAllListeners();\nconsole.log(1)', 0, '1\n', 'HELLO STARTED'),
    ('const fs = require("fs");\nfs.closeSync(3);\nfs.openSync("out", "w");\n[1]', 0, '', 'HELLO STARTED'),
    ('require("fs").writeSync(3, "junk");\n[1]', 0, '', None),
])
def test_node_endings(run, tmp_path, source, status, stdout, kinds):
    outcome = run('main.js', source)
    assert (outcome.status, outcome.stdout) == (status, stdout)
    if kinds:
        assert outcome.kinds == kinds
    if (tmp_path / 'out').exists():
        assert (tmp_path / 'out').read_bytes() == b''


def test_node_main_module(run):
    source = ('console.log(require.main === module, module.id, module.parent ?? null, __filename === process.argv[1],\n'
              '  __dirname === process.cwd(), this === module.exports, require("./lib/helper").from,\n'
              '  module.children.length, arguments.length);\nimport("./lib/esm.mjs").then(m => console.log(m.default));\n')
    files = {'lib/helper.js': 'exports.from = module.parent.id;', 'lib/esm.mjs': 'export default "esm"'}
    outcome = run('main.js', source, files=files)
    assert (outcome.stdout, outcome.stderr) == ('true . null true true true . 1 5\nesm\n', '')


def test_node_tick_order(run, tmp_path):
    source = ('setImmediate(() => console.log("immediate"));\nPromise.resolve().then(() => console.log("micro"));\n'
              'process.nextTick(() => console.log("tick"));\nconsole.log("sync")')
    assert run('main.js', source).stdout == plain(NODE, tmp_path, 'main.js').stdout == 'sync\ntick\nmicro\nimmediate\n'


def test_node_live_bindings_and_relative_imports(run):
    source = 'import { n, inc } from "./counter.mjs";\ninc();\nn\n'
    files = {'counter.mjs': 'export let n = 1;\nexport function inc() { n++ }'}
    assert run('main.mjs', source, files=files).value['value'] == 2
    assert run('main.js', source, files=files).value['value'] == 2


def test_node_module_in_a_commonjs_package(run):
    outcome = run('main.js', 'import fs from "fs";\nconsole.log(typeof fs)',
                  files={'package.json': '{"type": "commonjs"}'})
    assert (outcome.stdout, outcome.stderr) == ('object\n', '')


def test_node_typescript_imports(run):
    files = {'helper.ts': 'export interface H { v: number }\nexport function h(n: number): H { return { v: n } }',
             'old.ts': 'module.exports = { twice: (x: number): number => x * 2 }'}
    module = ('import { h, type H } from "./helper";\nimport { h as same } from "./helper.ts";\n'
              'const r: H = h(3);\n[r.v, same === h]')
    assert run('main.ts', module, files=files).value['value'] == [3, True]
    assert run('main.ts', 'const { twice } = require("./old");\ntwice(4 as number)', files=files).value['value'] == 8


def test_node_workers_and_children(run):
    source = ('const { Worker, isMainThread } = require("worker_threads");\n'
              'const { fork } = require("child_process");\n'
              'if (!isMainThread) require("worker_threads").parentPort.postMessage(process.argv.length)\n'
              'else if (process.send) { process.send("child"); process.disconnect(); }\n'
              'else {\n  new Worker(__filename).on("message", m => { console.log("worker", m);\n'
              '    fork(__filename).on("message", m => console.log(m)); });\n}\n')
    outcome = run('main.js', source)
    assert (outcome.stdout, outcome.stderr, outcome.kinds) == ('worker 2\nchild\n', '', 'HELLO STARTED DONE')


def test_node_unsettled_await(run):
    outcome = run('main.mjs', 'await new Promise(() => {})')
    assert outcome.status == 13 and 'unsettled top-level await' in outcome.stderr


def test_node_preload(run):
    outcome = run('main.js', 'console.log(path.sep, typeof child_process.spawn)',
                  options='preload=path:child_process:nothing')
    assert outcome.stdout == '/ function\n'


def test_node_syntax_positions(run):
    syntax = run('main.js', 'const é = "é"; é é').syntax
    assert (syntax['line'], syntax['column']) == (1, 18)
    outcome = run('main.js', 'const a = 1;\nconst a = 2;')
    assert (outcome.syntax['line'], outcome.syntax['column']) == (2, 7)
    expected = "%s:2\nconst a = 2;\n      ^\n\nSyntaxError: Identifier 'a' has already been declared\n" % 'main.js'
    assert expected in outcome.stderr
    assert run('main.cjs', 'import fs from "fs"').syntax['message'].startswith('Cannot use import')
    assert run('main.mjs', 'with (x) {}').kinds == 'HELLO SYNTAX'
    assert run('main.js', 'console.log(await f(;').kinds == 'HELLO SYNTAX'


# -------------------------------------------------------------------------------------------------------------- Bash

@pytest.mark.parametrize('source, status, stdout', [
    ('exit 3', 3, ''),
    ('shopt -s extglob\nx=aab\necho "${x/#+(a)/z}"\ncase $x in @(a|aab)) echo m;; esac', 0, 'zb\nm\n'),
    ('trap "echo bye" EXIT\necho hi', 0, 'hi\nbye\n'),
    ('kill -9 $$', -9, ''),
    ('read -r line; echo "<$line>"', 0, '<in>\n'),
    ('echo x >&3', 1, ''),
    ('', 0, ''),
    ('declare -F; echo ${main-unset} ${message-unset}', 0, 'unset unset\n'),
    ('trap', 0, ''),
])
def test_bash(run, source, status, stdout):
    outcome = run('main.sh', source, stdin=b'in\n')
    assert (outcome.status, outcome.stdout) == (status, stdout)
    assert outcome.kinds == 'HELLO STARTED'


def test_bash_arguments(run):
    assert run('main.sh', 'echo "$1"; shift; echo $#', 'one', 'two').stdout == 'one\n1\n'


@pytest.mark.parametrize('source', [
    b'echo "unfinished\n', b'if\n', b'echo \xff\xfe "\t\x01 ( \\" \xc3\xa9\n',
    b'for\xe2\x82\xac ) \xf0\x9f\x98\x80 \xed\xa0\x80 \xe2\x82\n',
    b') ' + b'x' * 100000, b') ' + b'"' * 3000, b') ' + b'\x02' * 3000] + [b') ' + b'y' * n for n in range(0, 260, 13)])
def test_bash_syntax_errors_are_valid_frames(run, tmp_path, source):
    outcome = run('main.sh', source)
    assert outcome.kinds == 'HELLO SYNTAX' and outcome.status == 2
    assert outcome.syntax['line'] >= 1 and outcome.syntax['column'] is None
    assert outcome.stderr.startswith('%s: line ' % (tmp_path / 'main.sh'))


def test_bash_every_payload_length(run, tmp_path):
    """A length with a byte 10 in it is where Bash would split the write."""
    for length in range(1, 300, 7):
        outcome = run('main.sh', 'case ' + 'z' * length + ')\n')
        assert outcome.kinds == 'HELLO SYNTAX'


def test_bash_missing_file(run, tmp_path):
    outcome = run('main.sh', '')
    process = subprocess.run([*COMMANDS['sh'], '', str(tmp_path / 'none.sh')], capture_output=True, text=True,
                             check=False)
    assert process.returncode == 127 and 'No such file' in process.stderr and outcome.status == 0
