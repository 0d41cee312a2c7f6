"""The Python zygote, with a stub in place of most of its C side: a run in a forked process is like a run started cold.

Every test of test_runners.py that runs Python is collected here again, with a `run` that forks.
"""
# shards: 4

import json
import re
import runpy
import shutil
import subprocess
import types

import pytest
import test_runners
from caisson_testing import LIB
from runners import LANG, PYTHON, runner_of, talk
from test_runners import addresses_removed
from zygotes import BUILD, IS_WARM, NAMESPACE, Zygote, copy_runners


@pytest.fixture(scope='module', params=['system', 'data', 'usual'])
def zygote(request, tmp_path_factory):
    usual = request.param == 'usual'
    zygote = Zygote(tmp_path_factory.mktemp('runners'), 'system' if usual else request.param, usual='' if usual else None)
    yield zygote
    zygote.stop()


@pytest.fixture
def tmp_path(request, tmp_path):
    """Where programs are: in the folder that the zygote was prepared for, if there is one."""
    work = request.getfixturevalue('zygote').work if 'zygote' in request.fixturenames else None
    if work:
        for path in work.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return work or tmp_path


@pytest.fixture
def run(zygote, tmp_path):
    """As in test_runners.py, but forked."""

    def start(name, source, *arguments, files=(), options='', **settings):
        for other, text in dict(files).items():
            (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other).write_text(text)
        main = tmp_path / name
        main.write_bytes(source if isinstance(source, bytes) else source.encode())
        return zygote.run(tmp_path, [options, str(main), *arguments], **settings)

    return start


# ------------------------------------------------------------------------------------- everything that holds for cold

def python_only(test):
    """The same test for those of its programs that are Python; None if there are none."""
    copy = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    marks = []
    for mark in getattr(test, 'pytestmark', ()):
        if mark.name == 'parametrize' and mark.args[0].split(',')[0] == 'name':
            rows = [row for row in mark.args[1] if (row if isinstance(row, str) else row[0]) == 'main.py']
            if not rows:
                return None
            mark = pytest.mark.parametrize(mark.args[0], rows).mark
        marks.append(mark)
    copy.pytestmark = marks
    return copy


def cold_tests():
    """Those named for another language, and one that is about what only a cold start can promise, are left out."""
    for name, test in vars(test_runners).items():
        if not name.startswith('test_') or name.startswith(('test_node', 'test_bash')):
            continue
        test = name != 'test_python_imports_nothing_for_itself' and python_only(test)
        if test:
            yield name, test


globals().update(cold_tests())


# -------------------------------------------------------------------------------------------- as if it had just started

def cold(zygote, folder, source, *arguments, environment=()):
    main = folder / 'main.py'
    main.write_text(source)
    return subprocess.run([PYTHON, str(zygote.folder / 'run.py'), '', str(main), *arguments], cwd=folder, text=True,
                          env={**zygote.environment, **dict(environment)}, capture_output=True, stdin=subprocess.DEVNULL,
                          start_new_session=True, timeout=60, check=False)


STATE = (LIB / 'interpreter_state.py').read_text()


@pytest.mark.parametrize('environment', [
    {}, {'PYTHONUNBUFFERED': ''}, {'TZ': 'America/New_York'}, {'A': 'b=c', 'EMPTY': ''}, {'OMP_NUM_THREADS': '2'},
    {'LANG': 'C'}, {'HOME': '/nowhere'}, {'PYTHONHASHSEED': '1'}, {'PYTHONPATH': '/nowhere'}, {'PYTHONWARNINGS': 'error'},
    {'PYTHONIOENCODING': 'utf-8:replace'}, {'PYTHONOPTIMIZE': '1'}, {'PYTHONNOUSERSITE': '1'},
])
def test_everything_that_a_program_can_ask_is_as_cold(zygote, run, tmp_path, environment):
    outcome = run('main.py', STATE, 'a b', 'é', environment=environment, channel=False)
    expected = cold(zygote, tmp_path, STATE, 'a b', 'é', environment=environment)
    assert outcome.stderr == expected.stderr
    # pybind11, on which scipy stands, keeps what its modules share among the builtins.
    seen = re.sub(r"(, )?'__pybind11_internals[^']*'", '', outcome.stdout)
    assert addresses_removed(seen).split('\n') == addresses_removed(expected.stdout).split('\n')


@pytest.mark.parametrize('environment, warm', [
    ({}, True), ({'A': 'b', 'TZ': 'Asia/Tokyo', 'PYTHONUNBUFFERED': '', 'OPENBLAS_NUM_THREADS': '3'}, True),
    ({'HOME': '/'}, False), ({'PYTHONPATH': '/'}, False), ({'LC_ALL': 'C'}, False), ({'MPLBACKEND': 'svg'}, False),
])
def test_another_interpreter_is_started_only_where_it_must_be(run, environment, warm):
    source = 'import gc, os\nprint(%s, [n for n in os.environ if n.startswith("CAISSON")])' % IS_WARM
    assert run('main.py', source, environment=environment).stdout == '%s []\n' % warm


def test_user_site_and_namesakes_start_cold(zygote, run):
    source = f'import gc\nprint({IS_WARM})'
    assert run('main.py', source, files={'json.txt': ''}).stdout == 'False\n'
    site = zygote.home / '.local/lib/python3.11/site-packages'
    site.mkdir(parents=True)
    try:
        assert run('main.py', source).stdout == 'False\n'
    finally:
        shutil.rmtree(zygote.home / '.local')


def test_nothing_of_ours_is_to_be_seen(run):
    source = ('import sys, os\nnames = "_caisson zygote preload fresh leave warm runner report run canon role cases judge same signs".split()\n'
              'print([n for n in names if n in sys.modules], os.listdir("/proc/self/task") == [str(os.getpid())],\n'
              '      [n for n in os.listdir("/proc/self/fd") if int(n) > 3 and int(n) < 900])')
    assert run('main.py', source).stdout == '[] True []\n'


# ------------------------------------------------------------------------------------------ two runs are never the same

VALUES = {
    'random': 'import random; v = random.random(), random.getrandbits(64)',
    'gauss': 'import random; v = random.gauss(0, 1), random.gauss(0, 1)',
    'state': 'import random; v = hash(random.getstate())',
    'SystemRandom': 'import random; v = random.SystemRandom().random()',
    'secrets': 'import secrets; v = secrets.token_hex(), secrets.choice(range(1 << 60))',
    'urandom': 'import os; v = os.urandom(8)',
    'uuid4': 'import uuid; v = uuid.uuid4()',
    'uuid1': 'import uuid; v = uuid.uuid1()',
    'tempfile': 'import tempfile; v = tempfile.mktemp(), next(tempfile._get_candidate_names())',
    'ssl': 'import ssl; v = ssl.RAND_bytes(16)',
    'authkey': 'import multiprocessing; v = bytes(multiprocessing.current_process().authkey)',
    'semaphore': 'import multiprocessing.synchronize as s; v = s.SemLock._make_name()',
    'pid': 'import os; v = os.getpid()',
    'native_id': 'import threading, os; v = threading.main_thread().native_id; assert v == os.getpid()',
    'numpy': 'import numpy; v = tuple(numpy.random.rand(3)), tuple(numpy.random.normal(size=3))',
    'default_rng': 'import numpy; v = tuple(numpy.random.default_rng().random(3))',
    'numpy state': 'import numpy; v = numpy.random.get_state()[1].tobytes()',
    'SeedSequence': 'import numpy; v = numpy.random.SeedSequence().entropy',
    'RandomState': 'import numpy; v = tuple(numpy.random.RandomState().rand(2))',
    'pandas': 'import pandas; v = tuple(pandas.Series(range(1000)).sample(9))',
}


for absent in 'numpy', 'pandas':       # in an interpreter of another Debian
    if subprocess.run([PYTHON, '-c', 'import ' + absent], capture_output=True, check=False).returncode:
        VALUES = {name: text for name, text in VALUES.items() if 'import ' + absent not in text}


def same_values(run):
    source = 'values = {}\n' + ''.join('%s\nvalues[%r] = repr(v)\n' % (text, name) for name, text in VALUES.items())
    first, second = run('main.py', source + 'values'), run('main.py', source + 'values')
    assert first.stderr == second.stderr == ''
    return [name for name in VALUES if first.value['value'][name] == second.value['value'][name]]


def test_two_runs_never_see_the_same_values(run):
    assert same_values(run) == []


def test_nor_if_all_have_the_number_of_the_zygote(tmp_path):
    """In process namespaces of their own they have, and then nobody can see from the number that there was a fork."""
    if subprocess.run([*NAMESPACE, 'true'], capture_output=True, check=False).returncode:
        pytest.skip('needs userns: no process namespaces for this user')
    zygote = Zygote(tmp_path, 'data', '2', wrapper=NAMESPACE, environment={'CAISSON_STUB_NAMESPACE': '1'})
    main = tmp_path / 'main.py'

    def run(name, source):
        main.write_text(source)
        return zygote.run(tmp_path, ['', str(main)])

    assert run('main.py', 'import os\nos.getpid()').value['value'] == 1
    assert same_values(run) == ['pid', 'native_id']
    zygote.stop()


def test_the_hash_seed_is_the_zygotes(run):
    """It cannot be changed in a running interpreter.  PYTHONHASHSEED is honoured: such a run starts cold."""
    assert run('main.py', 'hash("a")').value == run('main.py', 'hash("a")').value
    seeded = {'PYTHONHASHSEED': '7'}
    first = run('main.py', 'hash("a")', environment=seeded).value
    assert first == run('main.py', 'hash("a")', environment=seeded).value != run('main.py', 'hash("a")').value


# --------------------------------------------------------------------------------------------------------- the zygote

def test_a_module_that_starts_threads_or_fails_is_left_out_and_named(tmp_path):
    modules = tmp_path / 'modules'
    modules.mkdir()
    for name in 'numpy', 'pandas', 'matplotlib', 'PIL':
        (modules / (name + '.py')).write_text('raise ImportError("not now")')
    (modules / 'openpyxl.py').write_text('import threading, time\nthreading.Thread(target=time.sleep, args=[9]).start()')
    (modules / 'xlrd.py').write_text('1 / 0')
    (modules / 'docx.py').write_text('__version__ = "7"')
    zygote = Zygote(tmp_path, 'data', environment={'PYTHONPATH': str(modules)})
    assert zygote.info['modules']['docx'] == '7' and 'json' in zygote.info['modules']
    left_out = zygote.info['left_out']
    assert left_out['openpyxl'] == 'starts threads' and left_out['xlrd'] == 'ZeroDivisionError: division by zero'
    assert left_out['numpy'] == 'ImportError: not now'
    (tmp_path / 'main.py').write_text('import os, subprocess\nprint(len(os.environ), subprocess.check_output("env"))')
    seen = zygote.run(tmp_path, ['', str(tmp_path / 'main.py')]).stdout
    assert seen.startswith('%d b' % len(zygote.environment)) and 'THREADS' not in seen and 'CAISSON' not in seen
    zygote.stop()


def test_threads_of_blas_are_as_the_run_wants_them(tmp_path):
    """numpy may be built with another BLAS; so this is a library that has the function and counts."""
    if not shutil.which('cc'):
        pytest.skip('needs cc: not here')
    modules = tmp_path / 'modules'
    modules.mkdir()
    library = modules / 'libopenblas-test.so'
    subprocess.run(['cc', '-shared', '-fPIC', '-o', str(library), '-xc', '-'], check=True,
                   input=b'int n = 1; void openblas_set_num_threads(int k) { n = k; } int threads(void) { return n; }')
    (modules / 'numpy.py').write_text('import ctypes, os\nlibrary = ctypes.CDLL(%r)\n'
                                      'at_import = os.environ["OPENBLAS_NUM_THREADS"]' % str(library))
    zygote = Zygote(tmp_path, 'data', environment={'PYTHONPATH': str(modules)})
    (tmp_path / 'main.py').write_text('import numpy\nprint(numpy.library.threads(), numpy.at_import)')
    for environment, threads in (({}, 1), ({'OMP_NUM_THREADS': '3'}, 3), ({'OPENBLAS_NUM_THREADS': 'x'}, 1),
                                 ({'OMP_NUM_THREADS': '3', 'OPENBLAS_NUM_THREADS': '2'}, 2)):
        outcome = zygote.run(tmp_path, ['', str(tmp_path / 'main.py')], environment=environment)
        assert (outcome.stdout, outcome.stderr) == ('%d 1\n' % threads, '')
    zygote.stop()


@pytest.mark.parametrize('arguments', [[], ['nowhere'], ['none', '1', '2']])
def test_wrong_usage(tmp_path, arguments):
    copy_runners(tmp_path)
    done = subprocess.run([PYTHON, str(tmp_path / 'zygote.py'), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'zygote.py' in done.stderr and 'Traceback' not in done.stderr


@pytest.mark.parametrize('depth', ['0', '1', '2'])
def test_warming_leaves_nothing_behind(tmp_path, depth):
    zygote = Zygote(tmp_path, 'small', depth)
    source = ('import sys, gc, warnings, signal\nprint(sys.stdout.name, sys.gettrace(), gc.garbage, hasattr(sys, "last_type"),\n'
              '      warnings.filters, sys.getrecursionlimit(), gc.isenabled(), len(threading.enumerate()),\n'
              '      signal.getsignal(signal.SIGPROF), signal.getitimer(signal.ITIMER_PROF), sorted({"tests", "solution"} & set(sys.modules)))')
    (tmp_path / 'main.py').write_text('import threading\n' + source)
    outcome = zygote.run(tmp_path, ['', str(tmp_path / 'main.py')])
    zygote.stop()
    assert outcome.stdout == cold(zygote, tmp_path, 'import threading\n' + source).stdout


@pytest.mark.parametrize('role, last', [
    ('cases', ['result', 'result', 'end']), ('subject', ['ready']), ('tests', ['test', 'end'])])
def test_a_rehearsed_role_goes_its_whole_way(tmp_path, role, last):
    """In a zygote nobody reads what it sends, and one that stopped half-way would only be slower."""
    warm = runpy.run_path(str(LANG / 'python/warmup.py'))
    source, messages = warm['ROLES'][role]
    packets = [packet for message in messages for packet in talk(json.loads(message[1:]), message[:1].decode())]
    outcome = runner_of('cold', tmp_path)('main.py', source, options='graded=1', told=packets)
    said = [json.loads(payload[1:]) for name, payload in outcome.frames() if name == 'MESSAGE' and payload[:1] == b'P']
    assert (outcome.status, outcome.stderr, [message['op'] for message in outcome.messages][-len(last):]) == (0, '', last)
    assert [message for message in outcome.messages if message.get("status", "passed") != "passed"] == []
    assert [message['re'] for message in said if 're' in message] == [1, 2, 3, 4][:4 if role == 'subject' else 0]
    assert role != 'subject' or [message['v'] for message in said[2:]] == [[1, 2, 1, 2], 'aa']


# ------------------------------------------------------------------------------------ the way of a usual run (usual.h)

# Says whether the start was the short one, and whether the end is the long one.
WAY = '''import gc, os, sys
gc.unfreeze()
zygote = next(one for one in gc.get_objects() if type(one).__name__ == 'Zygote')
gc.freeze()
os.write(1, b'short, ' if zygote.expected_run else b'long, ')
def end(*_):
    os.write(1, b'long')
    os._exit(7)
type(zygote.leave).end = end
'''


@pytest.fixture(scope='module')
def usual(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('usual'), 'system', usual='')
    yield zygote
    zygote.stop()


@pytest.mark.parametrize('start, end, source', [
    ('short', '', ''),
    ('short', '', '41 + 1'),
    ('short', '', '__return_value__ = [1]'),
    ('short', '', '"settrace"'),                                                # one that is not split
    ('short', '', 'x = (1,\n  2\n)'),                                           # nor this, as it turns out
    ('short', '', 'import atexit\natexit.register(os.write, 1, b"said")'),
    ('short', '', 'import _thread, time\n_thread.start_new_thread(print, ("said",))\nwhile _thread._count(): time.sleep(0.01)'),
    ('short', 'long', '1 / 0'),
    ('short', 'long', 'raise SystemExit(3)'),
    ('short', 'long', 'class C:\n    def __del__(self): pass\nx = C()'),
    ('short', 'long', 'import weakref\nx = {1}\ny = weakref.ref(x, print)'),
    ('short', 'long', 'import threading, time\nthreading.Thread(target=time.sleep, args=[9]).start()'),
    ('short', 'long', 'import threading\nthreading._shutdown = print'),
    ('short', 'long', 'import threading\nthreading._register_atexit(print)'),
    ('short', 'long', 'del sys.modules["threading"]'),
    ('short', 'long', 'sys.stdout = sys.stderr'),
    ('short', 'long', 'sys.stdout.close()'),
    ('short', 'long', 'del sys.stdout.mode\nsys.stdout.flush = lambda: print(end="")'),
    ('short', 'long', 'import gc\ngc.callbacks.append(print)'),
    ('short', 'long', 'import gc\ngc.set_debug(gc.DEBUG_STATS)\ngc.disable()'),
    ('short', 'long', 'sys.settrace(lambda *_: None)'),
    ('short', 'long', 'sys.setprofile(lambda *_: None)'),
])
def test_which_runs_go_the_short_way(usual, start, end, source):
    main = usual.work / 'main.py'
    main.write_text(WAY + source)
    outcome = usual.run(usual.work, ['', str(main)])
    assert outcome.stdout.replace('said', '').replace('\n', '') == start + ', ' + end
    assert outcome.status == (7 if end else 0)


@pytest.mark.parametrize('start, settings', [
    ('short', {}), ('long', {'stdin': b'x'}), ('long', {'environment': {'A': 'b'}}), ('long', {'arguments': ['', 'x']}),
    ('long', {'options': 'value_max=1'}), ('long', {'beside': 'other.txt'}), ('short', {'channel': False}),
])
def test_what_is_expected_goes_the_short_way(usual, start, settings):
    main = usual.work / 'main.py'
    main.write_text(WAY)
    settings = dict(settings)
    beside = settings.pop('beside', None)
    if beside:
        (usual.work / beside).write_text('')
    outcome = usual.run(usual.work, [settings.pop('options', ''), str(main), *settings.pop('arguments', ())], **settings)
    if beside:
        (usual.work / beside).unlink()
    assert (outcome.stdout, outcome.status) == (start + ', ' + ('long' if start == 'long' else ''), 7 if start == 'long' else 0)


def test_what_is_forked_has_no_channel(usual):
    main = usual.work / 'main.py'
    main.write_text('import os\nhad = os.path.exists("/proc/self/fd/900")\npid = os.fork()\n'
                    'if pid:\n    os.waitpid(pid, 0)\nelse:\n    print(had, os.path.exists("/proc/self/fd/900"))')
    outcome = usual.run(usual.work, ['', str(main)])
    assert (outcome.stdout, outcome.kinds, outcome.status) == ('True False\n', 'HELLO STARTED DONE', 0)


def test_a_wrong_program_is_told_as_ever(usual):
    main = usual.work / 'main.py'
    main.write_text('x = (')
    outcome = usual.run(usual.work, ['', str(main)])
    assert (outcome.kinds, outcome.status) == ('HELLO SYNTAX', 1) and "'(' was never closed" in outcome.stderr


@pytest.mark.parametrize('source', [
    # Of a thread that an exit function leaves nobody waits for the end; the interpreter then ends by itself.
    'import atexit, _thread, time, os\nclass A:\n    def __del__(self, write=os.write): write(1, b"gone")\na = A()\n'
    'atexit.register(lambda: (_thread.start_new_thread(time.sleep, (60,)), time.sleep(0.1)))\n',
    'import atexit, sys, os\ndef tracer(frame, event, arg):\n    if "/runners" in frame.f_code.co_filename: os.write(1, frame.f_code.co_name.encode())\n'
    'class A:\n    def __del__(self): pass\na = A()\natexit.register(sys.settrace, tracer)\n',
    'import os, sys\nclass A:\n    def __del__(self): pass\na = A()\nsys.stdout.flush = lambda: os.write(1, b"flush%d " % sys.is_finalizing())\n',
    'import atexit\natexit.register(lambda: 1 / 0)\n',
    'import atexit\natexit.register(print, 1)\nx = atexit.register(print, 2)\n',
    'import atexit, logging\natexit.unregister(logging.shutdown)\nx = atexit.register(print, "instead")\n',
    'import atexit, logging\natexit.unregister(logging.shutdown)\natexit.register(print, "before")\nx = atexit.register(logging.shutdown)\n',
    'import logging.handlers, sys\nlog = logging.getLogger()\n'
    'log.addHandler(logging.handlers.MemoryHandler(99, target=logging.StreamHandler(sys.stdout)))\nlog.warning("kept to the end")\n',
    'import logging\nlogging.shutdown.__defaults__[0].append(lambda: print("no handler"))\n',
    'import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint(not pid)\n',
    # What comes while the last operation goes on, which is one of C.
    'import signal\ndef late(*_): raise ValueError("late")\nsignal.signal(signal.SIGALRM, late)\na = [0] * 8_000_000\n'
    'signal.setitimer(signal.ITIMER_REAL, 0.002)\nx = 1 in a',
    'import atexit, logging\natexit._clear()\nx = atexit.register(logging.shutdown, [lambda: print("no handler")])\n',
    'import atexit\natexit._run_exitfuncs()\nx = atexit.register(print, "again")\n',
    'import sys\nsys.addaudithook(lambda event, _: print(event) if event == "exec" else None)\nprint(1)',
    'del __builtins__\nprint("__builtins__" in globals())',
    'import atexit\nclass Equal:\n    def __eq__(self, other): return True\n    def __call__(self): print("called")\nx = atexit.register(Equal())\n',
    'import atexit\nclass Equal:\n    def __eq__(self, other): return True\n    def __call__(self): print("called")\n'
    'atexit._clear()\nx = atexit.register(Equal())\n',
    'import atexit, logging\nprint([one == logging.shutdown for one in (logging.shutdown, print)])\n'
    'logging._handlerList.append(lambda: print("handler"))\natexit.unregister(logging.shutdown)\n',
    'for one in object.__subclasses__():\n    if one.__module__ == "_caisson":\n        try: print(one() == 1, one() < 1)\n        except TypeError: pass\nx = 1\n',
    'assert (1, 2), 3\nbreak',
    'assert (1, 2)\nx = "\\d"\nf(1)\nf(2) + (\n  3',
    'x = 1\nprint(\n  x is 1\n)',
])
def test_nothing_is_told_twice_or_forgotten(usual, source):
    main = usual.work / 'main.py'
    main.write_text(source)
    outcome = usual.run(usual.work, ['', str(main)])
    expected = cold(usual, usual.work, source)
    assert (outcome.stdout, outcome.status) == (expected.stdout, expected.returncode)
    assert addresses_removed(outcome.stderr) == addresses_removed(expected.stderr)


SPLIT = '''
import importlib.machinery, importlib.util, pathlib, random, sys
HERE, extension = sys.argv[1:3]
names = {'__builtins__': __builtins__, '__name__': 'runner', 'HERE': HERE, 'FileLoader': importlib.machinery.SourceFileLoader}
exec(open(HERE + '/runner.py').read(), names)
loader = importlib.machinery.ExtensionFileLoader('_caisson', extension)
ours = loader.create_module(importlib.util.spec_from_loader('_caisson', loader)).split_last
words = [*names['HARD'], *names['STATEMENTS'], *names['CONTINUATIONS'], *(bytes([byte]) for byte in names['NO_BEGINNING'])]
texts = [form % word for word in words for form in (b'x\\n%s', b'%s y\\n', b'x\\ny%s:', b'%s\\nx')]
texts += [b'', b'\\n', b' \\n\\t', b'x', b'\\0', b'a\\n\\0', b'x\\n)', b'\\ncoding', b'#\\n#\\ncoding', b'if x:\\n  y\\nelse: z', b'else', b'a:b', b':', b'x\\x0b']
random.seed(1)
for path in sorted(pathlib.Path('/usr/lib/python3.11').glob('*.py')):
    text = path.read_bytes()
    for _ in range(20):
        start = random.randrange(len(text) + 1)
        texts.append(text[start:start + random.randrange(400)])
        texts.append(bytes(random.choices(b'a \\n\\t:#)else@\\r', k=9)))
wrong = [text for text in texts if ours(text) != names['split_last'](text)]
print(len(texts), sum(ours(text) is None for text in texts), wrong)
'''


def test_the_last_statement_is_found_as_in_python(tmp_path):
    done = subprocess.run([PYTHON, '-c', SPLIT, str(LANG / 'python'), str(BUILD / '_caisson.abi3.so')], capture_output=True, text=True, check=False)
    n, none, wrong = done.stdout.split(maxsplit=2)
    assert done.stderr == '' and wrong == '[]\n' and int(n) > 4000 and 1000 < int(none) < int(n) * 2 / 3
