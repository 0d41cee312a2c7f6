"""The roles of Python's runner that grade by cases: `cases` calls functions, `judge` compares what came.

Each on all roads: started cold, and forked from a zygote with a stub in place of most of its C side, one that was prepared for no program
or one for these (usual.h).
"""
# shards: 3

import collections
import datetime
import decimal
import fractions
import json
import math
import socket
import subprocess
import time
import uuid

import pytest
from runners import COMMANDS, Process, runner_of, talk
from test_canon import CANON
from zygotes import NAMESPACE, Zygote

pytest.importorskip('numpy')

READY = b'E{"op":"ready"}'


@pytest.fixture(scope='module')
def zygote(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('runners'), 'system')
    yield zygote
    zygote.stop()


def without_ready(outcome):
    """Every case comes after that message; what is looked at are the others."""
    told = [packet[12:] for packet in outcome.packets]
    results = [n for n, text in enumerate(told) if b'"op":"result"' in text]
    assert told.count(READY) == (1 if results else told.count(READY)) and (not results or told.index(READY) < results[0])
    outcome.packets = [packet for packet in outcome.packets if packet[12:] != READY]
    return outcome


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """prepared(options) -> a zygote for runs with these, whose output keeps nothing back, as in a sandbox."""
    zygotes = {}

    def start(options):
        if options not in zygotes:
            zygotes[options] = Zygote(tmp_path_factory.mktemp('runners'), 'system', '1', usual=options, environment={'PYTHONUNBUFFERED': '1'})
        return zygotes[options]

    yield start
    for zygote in zygotes.values():
        zygote.stop()


@pytest.fixture(params=['cold', 'forked', 'usual'])
def run(request, tmp_path):
    """run(role, source, *messages) -> Outcome"""

    def start(role, source, first, *messages, options=''):
        packets = [packet for message in ({**first, 'role': role}, *messages) for packet in talk(message)]
        options = 'graded=1,' + options
        if request.param == 'cold':
            return without_ready(runner_of('cold', tmp_path)('main.py', source, options=options, told=packets))
        zygote = request.getfixturevalue('zygote') if request.param == 'forked' else request.getfixturevalue('prepared')(options)
        folder = zygote.work or tmp_path
        (folder / 'main.py').write_text(source)
        return without_ready(zygote.run(folder, [options, str(folder / 'main.py')], told=packets))

    return start


def case(i, function, args='[]', **members):
    return {'i': i, 'function': function, 'args': args, 'cpu_ms': 5000, 'wall_ms': 15000, **members}


def begin(*cases, setup='', function=None, output_max=2000):
    return {'op': 'begin', 'setup': setup, 'function': function, 'cases': list(cases), 'output_max': output_max}


def results_of(run, source, *cases, **settings):
    """The results of an orderly run, each without what is the same for all."""
    outcome = run('cases', source, begin(*cases, **settings))
    assert (outcome.kinds.split()[:2], outcome.kinds.split()[-1], outcome.status) == (['HELLO', 'STARTED'], 'DONE', 0), outcome.stderr
    *results, end = outcome.messages
    assert end['op'] == 'end' and [result['i'] for result in results] == [one['i'] for one in cases]
    for result in results:
        assert result.pop('op') == 'result'
        assert type(result['cpu_ms']) is float and type(result['wall_ms']) is float
    return results


def result_of(run, source, args='[]', **members):
    return results_of(run, source, case(0, 'f', args, **members))[0]


def verdicts_of(run, *entries, language='python', code=''):
    message = {'op': 'judge', 'id': 7, 'language': language, 'code': code, 'cpu_ms': 20000, 'last': True,
               'cases': [{'i': i, 'case': spec, 'result': result} for i, (spec, result) in enumerate(entries)]}
    outcome = run('judge', '', {'op': 'begin'}, message)
    assert (outcome.kinds, outcome.status, outcome.stderr) == ('HELLO STARTED MESSAGE DONE', 0, '')
    answer, = outcome.messages
    assert (answer['op'], answer['id']) == ('verdicts', 7)
    assert [verdict['i'] for verdict in answer['verdicts']] == list(range(len(entries)))
    for verdict in answer['verdicts']:
        assert verdict['passed'] == (verdict['status'] == 'passed')
        assert len(verdict['output']) <= 200 and len(verdict['expected']) <= 200
    return answer['verdicts'], answer['signs']


# ----------------------------------------------------------------------------------------------------- how a role begins

@pytest.mark.parametrize('source, setup, kinds, status', [
    ('x = 1', '', 'HELLO STARTED MESSAGE DONE', 0),
    ('x = y', 'y = 1', 'HELLO STARTED MESSAGE MESSAGE DONE', 0),
    ('1 / 0', 'y = 1', 'HELLO STARTED MESSAGE ERROR DONE', 1),
    ('x = = 1', '', 'HELLO SYNTAX', 1),
    ('1 / 0', '', 'HELLO STARTED ERROR DONE', 1),
    ('x = 1', '1 / 0', 'HELLO STARTED ERROR DONE', 1),
    ('x = 1', 'x = = 1', 'HELLO STARTED ERROR DONE', 1),
    ('import sys\nsys.exit(0)', '', 'HELLO STARTED DONE', 0),
    ('raise SystemExit(3)', '', 'HELLO STARTED DONE', 3),
    ('import os\nos._exit(0)', '', 'HELLO STARTED', 0),
])
def test_set_up_and_program_end_as_in_a_usual_run(run, source, setup, kinds, status):
    outcome = run('cases', source, begin(setup=setup))
    assert (outcome.kinds, outcome.status) == (kinds, status)


def test_the_set_up_is_named_in_what_goes_wrong_and_ours_is_not(run):
    outcome = run('cases', 'x = 1', begin(setup='def f():\n    return 1 / 0\nf()'))
    assert outcome.error['type'] == 'ZeroDivisionError'
    assert '"<setup>", line 2, in f' in outcome.stderr and 'role.py' not in outcome.stderr


def test_the_program_is_a_module_in_its_file(run):
    source = ('import sys, __main__\nme = sys.modules[__name__]\ndef f():\n    return (__name__, __spec__.name, __package__, me is __main__, '
              '__file__ == __spec__.origin == sys.argv[0], sys.argv[1:], sys.path[0] == __file__[:-8], globals() is vars(me))')
    assert result_of(run, source)['value'] == '{"t":"tuple","v":["solution","solution","",true,true,[],true,true]}'


@pytest.mark.parametrize('packets, status', [
    ([], 0), (talk({'op': 'end', 'role': 'cases'}), 70), (talk({'op': 'begin', 'role': 'cases'}, 'P'), 70), (talk({'op': 'begin'}), 70),
    (talk({'op': 'begin', 'role': 'nothing'}), 70), (talk({'op': 'begin', 'role': '../run'}), 70), (talk({'op': 'begin', 'role': ['cases']}), 70), (talk([]), 70), ([b'CSN1'], 70),
    ([b'CSN1\x0a\0\0\0\1\0\0\0E'], 70), ([b'CSN1\x0a\0\0\0\3\0\0\0E{}'.replace(b'CSN1', b'CSN2')], 70),
])
def test_without_a_word_to_begin_nothing_is_run(tmp_path, packets, status):
    (tmp_path / 'main.py').write_text('print("ran")')
    process = Process([*COMMANDS['py'], 'graded=1', str(tmp_path / 'main.py')], tmp_path)
    for packet in packets:
        process.ours.send(packet)
    process.ours.shutdown(socket.SHUT_WR)
    outcome = process.end()
    assert (outcome.status, outcome.stdout, outcome.kinds) == (status, '', 'HELLO')


def test_without_a_channel_there_is_no_role(tmp_path):
    outcome = runner_of('cold', tmp_path)('main.py', 'print("ran")', options='graded=1', channel=False)
    assert outcome.status == 70 and outcome.stdout == '' and 'run.py' in outcome.stderr


def test_a_role_ends_when_the_engine_is_gone(tmp_path):
    (tmp_path / 'main.py').write_text('import time\ndef f(): time.sleep(60)')
    process = Process([*COMMANDS['py'], 'graded=1', str(tmp_path / 'main.py')], tmp_path)
    for packet in talk({**begin(case(0, 'f')), 'role': 'cases'}):
        process.ours.send(packet)
    while len(process.packets) < 2:
        time.sleep(0.01)
    process.ours.shutdown(socket.SHUT_RDWR)
    started = time.monotonic()
    assert process.end().status == 0 and time.monotonic() - started < 20


# --------------------------------------------------------------------------------------------------- functions and cases

FUNCTIONS = '''
import asyncio
def f(*args, **named): return args, named
class C:
    def __init__(self): self.x = 5
    def method(self, y): return self.x + y
    @staticmethod
    def static(y): return y
    @classmethod
    def of_class(cls, y): return cls.__name__, y
    class Inner:
        def method(self): return 'inner'
async def g(x):
    await asyncio.sleep(0)
    return x
h = lambda: 1
n = 5
'''
ARGUMENTS = [
    ('f', {'args': '[1, null, "é", [2.5], {"a": true}, NaN]', 'kwargs': '{"k": 1}'}),
    ('f', {'args_python': '(1, None, "é", [2.5], {"a": True}, nan)', 'kwargs_python': "{'k': 1}"}),
]


@pytest.mark.parametrize('function, members', ARGUMENTS)
def test_arguments_are_json_or_literals(run, function, members):
    result = results_of(run, FUNCTIONS, {'i': 0, 'function': function, **members})[0]
    assert json.loads(result['value'])['v'] == [
        {'t': 'tuple', 'v': [1, None, 'é', [2.5], {'t': 'dict', 'v': [['a', True]]}, {'t': 'float', 'v': 'nan'}]},
        {'t': 'dict', 'v': [['k', 1]]}]


@pytest.mark.parametrize('literal', [
    '(1, -2.5, 1+2j, -3-1j, b"a", True, None, ..., "x" "y")', '[{1, 2}, set(), frozenset({3}), {}]', '(nan, inf, -inf)',
    '(deque([1]), Decimal("1.50"), fractions.Fraction(1, 3), datetime.date(2020, 1, 2), bytearray(b"x"), range(1, 9, 2))',
    '(collections.Counter({"a": 2}), OrderedDict([("a", 1)]), datetime.timedelta(days=1), UUID("%s"))' % uuid.UUID(int=5),
])
def test_literals_are_those_that_repr_writes(run, literal):
    result = results_of(run, 'def f(*args): return args', {'i': 0, 'function': 'f', 'args_python': literal})[0]
    names = {name: value for module in (collections, decimal, fractions, datetime, uuid) for name, value in vars(module).items()}
    expected = eval(literal, {**names, 'nan': math.nan, 'inf': math.inf, 'datetime': datetime, 'fractions': fractions,
                              'collections': collections})
    assert repr(CANON['decode'](result['value'])) == repr(tuple(expected))


@pytest.mark.parametrize('members, part', [
    ({'args': '5'}, 'args'), ({'args': '{}'}, 'args'), ({'args': '['}, 'args'), ({'args': '[1] 2'}, 'args'), ({'args': '[' * 100000}, 'args'),
    ({'kwargs': '[]'}, 'kwargs'), ({'kwargs_python': '{1: 2}'}, 'kwargs'), ({'args_python': '5'}, 'args'),
    ({'args_python': '(open("/etc/passwd"),)'}, 'args'), ({'args_python': '(__import__("os"),)'}, 'args'), ({'args_python': '[x]'}, 'args'),
    ({'args_python': '[1 + 1]'}, 'args'), ({'args_python': '["a" * 9]'}, 'args'), ({'args_python': '[{[]}]'}, 'args'),
    ({'args_python': '[set(range(10))]'}, 'args'), ({'args_python': '(' * 500}, 'args'), ({'args_python': '[\0]'}, 'args'),
    ({'args_python': '[' + '-' * 50000 + '1]'}, 'args'), ({'args_python': '[bytearray(9)]'}, 'args'), ({'args_python': ''}, 'args'),
    ({'args_python': '[{**{}}]'}, 'args'), ({'args_python': '[f"{1}"]'}, 'args'), ({'args_python': '[Fraction(1, 0)]'}, 'args'),
    ({'function': ''}, 'function'),
])
def test_arguments_that_are_none_are_a_bad_case(run, members, part):
    bad, good = results_of(run, 'def f(): return 1', {'i': 0, 'function': 'f', **members}, case(1, 'f'))
    assert bad['how'] == 'bad_case' and part in bad['message'] and good['value'] == '1'


@pytest.mark.parametrize('function, args, value', [
    ('C.method', '[1]', '6'), ('C.static', '[1]', '1'), ('C.of_class', '[1]', '{"t":"tuple","v":["C",1]}'), ('C.Inner.method', '[]', '"inner"'),
    ('g', '[3]', '3'), ('h', '[]', '1'),
])
def test_functions_are_found_by_dotted_names(run, function, args, value):
    assert results_of(run, FUNCTIONS, case(0, function, args))[0]['value'] == value


@pytest.mark.parametrize('function', ['nothing', 'n', 'C.nothing', 'n.x', 'f.', '.f', '__builtins__.x.y'])
def test_a_function_that_is_missing_is_told_with_those_that_are_there(run, function):
    outcome = run('cases', FUNCTIONS, begin(function=function))
    assert outcome.messages == [{'op': 'missing', 'function': function, 'functions': ['f', 'g', 'h']}]
    assert (outcome.status, outcome.kinds) == (1, 'HELLO STARTED MESSAGE DONE')


def test_a_function_without_cases_only_has_to_be_there(run):
    assert run('cases', FUNCTIONS, begin(function='C.method')).messages == [{'op': 'end', 'signs': []}]


HOW = [
    ('return [1, 2]', {'how': 'returned', 'value': '[1,2]', 'type': 'list', 'mro': ['list', 'object']}),
    ('return -5', {'how': 'returned', 'value': '-5', 'type': 'int', 'mro': ['int', 'object']}),
    ('return 0', {'how': 'returned', 'value': '0', 'type': 'int', 'mro': ['int', 'object']}),
    ('return (1 << 63) - 1', {'how': 'returned', 'value': str((1 << 63) - 1)}),
    ('return 1 << 63', {'how': 'returned', 'value': str(1 << 63)}),
    ('return -1 << 63', {'how': 'returned', 'value': str(-1 << 63)}),
    ('return (-1 << 63) - 1', {'how': 'returned', 'value': str((-1 << 63) - 1)}),
    ('return False', {'how': 'returned', 'value': 'false', 'type': 'bool', 'mro': ['bool', 'int', 'object']}),
    ('return True', {'how': 'returned', 'value': 'true', 'type': 'bool', 'mro': ['bool', 'int', 'object']}),
    ('return', {'how': 'returned', 'value': 'null', 'type': 'NoneType', 'mro': ['NoneType', 'object']}),
    ('return E(1)', {'how': 'unencodable', 'type': 'solution.E', 'mro': ['solution.E', 'ValueError', 'Exception', 'BaseException', 'object'],
                     'repr': 'E(1)'}),
    ('return I(1)', {'how': 'returned', 'type': 'solution.I', 'mro': ['solution.I', 'int', 'object'], 'value': '{"t":"alike","v":["solution.I",1]}'}),
    ('return "x" * 9000000', {'how': 'unencodable', 'type': 'str'}),
    ('return "\\\\" * 8000000', {'how': 'unencodable', 'type': 'str'}),
    ('x = []\n    for _ in range(2000): x = [x]\n    return x', {'how': 'unencodable', 'type': 'list'}),
    ('x = 1,\n    for _ in range(60): x = x, x\n    return x', {'how': 'unencodable', 'type': 'tuple'}),
    ('return (i for i in ())', {'how': 'unencodable', 'type': 'generator'}),
    ('yield 1', {'how': 'unencodable', 'type': 'generator'}),
    ('return object', {'how': 'unencodable', 'type': 'type', 'repr': "<class 'object'>"}),
    ('return R()', {'how': 'unencodable', 'type': 'solution.R', 'repr': '<R object; its __repr__ raised KeyError>'}),
    ('return Builtin()', {'how': 'unencodable', 'type': '?.int', 'mro': ['?.int', 'object']}),
    ('raise KeyError("x")', {'how': 'raised', 'type': 'KeyError', 'mro': ['KeyError', 'LookupError', 'Exception', 'BaseException', 'object'],
                             'message': "'x'", 'line': 2}),
    ('raise E("é" * 9000)', {'how': 'raised', 'type': 'solution.E', 'message': 'é' * 2000, 'line': 2}),
    ('raise V("x")', {'how': 'raised', 'type': 'solution.ValueError', 'mro': ['solution.ValueError', 'Exception', 'BaseException', 'object']}),
    ('import json\n    json.loads("{")', {'how': 'raised', 'type': 'json.decoder.JSONDecodeError', 'line': 3}),
    ('f()', {'how': 'raised', 'type': 'RecursionError', 'line': 2}),
    ('return f(1)', {'how': 'raised', 'type': 'TypeError', 'line': 2}),
    ('raise S()', {'how': 'raised', 'type': 'solution.S', 'message': '<exception str() failed>'}),
    ('raise E("\\ud800\\0")', {'how': 'raised', 'message': '\\ud800\0'}),
    ('raise KeyboardInterrupt', {'how': 'raised', 'type': 'KeyboardInterrupt'}),
    ('raise GeneratorExit', {'how': 'raised', 'type': 'GeneratorExit'}),
    ('import sys\n    sys.exit(0)', {'how': 'exited', 'exit_code': 0}),
    ('import sys\n    sys.exit("told")', {'how': 'exited', 'exit_code': 1, 'stderr': 'told\n'}),
    ('raise SystemExit(3)', {'how': 'exited', 'exit_code': 3}),
    ('import os\n    os._exit(0)', {'how': 'exited', 'exit_code': 0}),
    ('import os\n    os.execv("/bin/false", ["false"])', {'how': 'exited', 'exit_code': 1}),
    ('import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)', {'how': 'signalled', 'signal': 11}),
    ('import os\n    os.abort()', {'how': 'signalled', 'signal': 6}),
    ('while True: pass', {'how': 'timeout', 'by': 'cpu'}),
    ('import time\n    time.sleep(60)', {'how': 'timeout', 'by': 'wall'}),
    ('import os, signal\n    os.kill(os.getpid(), signal.SIGSTOP)', {'how': 'timeout', 'by': 'wall'}),
    ('import signal\n    for n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)\n    while True: pass',
     {'how': 'timeout', 'by': 'cpu'}),
    ('class Slow:\n        def __repr__(self):\n            while True: pass\n    return Slow()', {'how': 'timeout', 'by': 'cpu'}),
    ('import sys\n    print("out")\n    print("err", file=sys.stderr)', {'how': 'returned', 'stdout': 'out\n', 'stderr': 'err\n'}),
    ('import sys\n    sys.stdout.reconfigure(write_through=False)\n    print("kept back")\n    return 1', {'how': 'returned', 'stdout': 'kept back\n'}),
    ('import sys\n    sys.stderr.reconfigure(write_through=False)\n    sys.stderr.write("kept back")\n    return 1', {'how': 'returned', 'stderr': 'kept back'}),
    ('import sys\n    sys.stdout.flush = lambda: sys.stderr.write("told")\n    return 1', {'how': 'returned', 'stderr': 'told'}),
    ('import sys\n    del sys.stdout.mode\n    sys.stdout.flush = lambda: sys.stderr.write("told")\n    return 1', {'how': 'returned', 'stderr': 'told'}),
    ('import os, sys\n    sys.stdout.buffer.flush = lambda: os.write(2, b"told")\n    return 1', {'how': 'returned', 'stderr': 'told'}),
    ('import io, sys\n    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))\n    print("another")\n    return 1',
     {'how': 'returned', 'stdout': 'another\n'}),
    ('import sys\n    del sys.stdout\n    return 1', {'how': 'returned', 'value': '1'}),
    ('return later(5)', {'how': 'returned', 'value': '5'}),
    ('return later(KeyError("x"))', {'how': 'raised', 'type': 'KeyError'}),
    ('return forked()', {'how': 'returned', 'value': '1', 'signs': []}),
    ('import os\n    if os.fork() == 0: return 7\n    os.wait()\n    return 8', {'how': 'returned', 'value': '8'}),
    ('import os\n    os.system("echo from a shell")', {'how': 'returned', 'stdout': 'from a shell\n'}),
    ('print("before")\n    raise E("x")', {'how': 'raised', 'stdout': 'before\n', 'stderr': ''}),
    ('import os\n    os.write(1, b"\\xff\\0")\n    os.write(2, "é".encode()[:1])', {'stdout': '\ufffd\0', 'stderr': '\ufffd'}),
    ('return input()', {'how': 'raised', 'type': 'EOFError'}),
]
CLASSES = '''
class E(ValueError): pass
class I(int): pass
class S(Exception):
    def __str__(self): raise KeyError
class R:
    def __repr__(self): raise KeyError
async def forked():
    import os
    os.fork()
    return 1
async def later(value):
    if isinstance(value, Exception): raise value
    return value
V = type('ValueError', (Exception,), {})
Builtin = type('int', (), {'__module__': 'builtins', '__repr__': lambda self: '5'})
'''


@pytest.mark.parametrize('body, expected', HOW, ids=range(len(HOW)))
def test_how_a_case_ends(run, body, expected):
    limits = {'cpu': {'cpu_ms': 1000, 'wall_ms': 60000}, 'wall': {'cpu_ms': 60000, 'wall_ms': 1500}}.get(expected.get('by'), {})
    result, after = results_of(run, 'def f():\n    %s\n%s' % (body, CLASSES), case(0, 'f', **limits), case(1, 'E.mro'))
    assert {name: result[name] for name in expected} == expected
    assert after['how'] == 'returned' or after['type'] == 'list'


# Whether a case is ended by grader.c, or by tell_outcome().
WAY = '''import os, sys
start = sys._getframe(1).f_locals['self'].runner.compiled
def grader():
    frame = sys._getframe(1)
    while 'native' not in getattr(frame.f_locals.get('self'), '__dict__', ()): frame = frame.f_back
    return frame.f_locals['self']
def f():
    grader().answer.__func__.__globals__['tell_outcome'] = lambda *_: os._exit(7)
    %s
def g(): return start is not None
'''


@pytest.mark.parametrize('way, body', [
    ('short', 'return 5'), ('short', 'return'), ('short', 'return True'), ('short', 'return -1 << 63'), ('short', 'print("x")'),
    ('short', 'sys.stdout = sys.stderr'), ('long', 'return 1 << 63'), ('long', 'return "x"'), ('long', 'return 1.0'), ('long', '1 / 0'), ('long', 'sys.exit(0)'),
    ('long', 'sys.settrace(print)'), ('long', 'sys.setprofile(print)'), ('long', 'import builtins\n    builtins.len = print'),
])
def test_which_cases_end_the_short_way(prepared, way, body):
    zygote = prepared('graded=1,')
    main = zygote.work / 'main.py'
    main.write_text(WAY % body)
    outcome = zygote.run(zygote.work, ['graded=1,', str(main)], told=talk({**begin(case(0, 'f'), case(1, 'g')), 'role': 'cases'}))
    _, ended, started, _ = outcome.messages
    assert ended['how'] == ('returned' if way == 'short' else 'exited') and started['value'] == 'true'


@pytest.mark.parametrize('body', [
    'sys.setprofile(lambda frame, event, _: event == "return" or 1 / 0)\n    return [1]',
    'def tracer(*_): 1 / 0\n    sys._getframe(1).f_trace = tracer\n    sys.settrace(tracer)\n    return [1]',
    'sys._getframe(1).f_globals.clear()\n    return 1',
])
def test_what_a_case_does_to_our_frames_is_nothing_to_its_result(prepared, body):
    zygote = prepared('graded=1,')
    main = zygote.work / 'main.py'
    main.write_text('import sys\ndef f():\n    %s\n' % body)
    outcome = zygote.run(zygote.work, ['graded=1,', str(main)], told=talk({**begin(case(0, 'f'), case(1, 'f')), 'role': 'cases'}))
    _, *ended, _ = outcome.messages
    assert [(one['how'], one['value'], one['stderr']) for one in ended] == [('returned', '1' if 'clear' in body else '[1]', '')] * 2


def test_a_handler_that_raises_ends_a_case_and_nothing_else(prepared):
    zygote = prepared('graded=1,')
    main = zygote.work / 'main.py'
    main.write_text('import atexit, signal\ndef raiser(*_): raise KeyError("late")\ndef f():\n    atexit.register(print, "over")\n'
                    '    signal.signal(signal.SIGALRM, raiser)\n    signal.setitimer(signal.ITIMER_REAL, 0.00001, 0.00001)\n    return [1]\n')
    outcome = zygote.run(zygote.work, ['graded=1,', str(main)], told=talk({**begin(case(0, 'f'), case(1, 'f')), 'role': 'cases'}))
    _, *ended, _ = outcome.messages
    assert [(one['how'] != 'signalled', one['stdout'], one['stderr']) for one in ended] == [(True, '', '')] * 2


def test_a_long_output_keeps_its_beginning_and_its_end(run):
    result, small = results_of(run, 'def f(n): print("é" * n + "end")', case(0, 'f', '[100000]'), case(1, 'f', '[10]'), output_max=300)
    assert len(result['stdout']) in (299, 300)
    assert result['stdout'].startswith('é' * 100) and result['stdout'].endswith('éend\n') and '200004 bytes' in result['stdout']
    assert small['stdout'] == 'é' * 10 + 'end\n'


def test_an_endless_output_ends_the_case_and_not_the_memory(run):
    result, after = results_of(run, 'def f():\n    while True: print("x" * 100000)\ndef g(): return 1', case(0, 'f'), case(1, 'g'))
    assert result['how'] == 'raised' and result['type'] == 'OSError' and len(result['stdout']) <= 2000 and after['value'] == '1'


SPOILERS = [
    'global g\n    g = None\n    state.append(1)',
    'import builtins\n    builtins.len = builtins.print = None',
    'import os\n    os.closerange(0, 65536)',
    'import os\n    for n in range(1100):\n        try: os.write(n, b"CSN1" + bytes(100))\n        except OSError: pass',
    'import os\n    os.fork()\n    return 1',
    'import os, time\n    if os.fork(): time.sleep(0.3)\n    return 1',
    'import threading, time\n    threading.Thread(target=lambda: time.sleep(60)).start()',
    'import sys\n    sys.settrace(lambda *a: 1 / 0)',
    'import sys\n    sys.setprofile(lambda *a: sys.exit(5))',
    'import sys\n    sys.setrecursionlimit(30)\n    return [[[[[[[[1]]]]]]]]',
    'import sys\n    sys.stdout = sys.stderr = None',
    'import sys\n    sys.modules.clear()',
    'import os, signal, sys\n    signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n    os.kill(os.getpid(), 9)',
    'import atexit\n    atexit.register(print, "late")',
    'import resource\n    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))',
    'import gc\n    for x in gc.get_objects():\n        if type(x) is dict: x.clear()',
    'import json, os\n    json.dumps = os.write = os.fork = os.getpid = lambda *a, **k: "5"',
    'import os\n    os.chdir("/")\n    os.environ.clear()',
]


@pytest.mark.parametrize('body', SPOILERS, ids=range(len(SPOILERS)))
def test_a_case_spoils_no_other(run, body):
    source = 'state = []\ndef f():\n    %s\ndef g(): return [state, len(state), 5]' % body
    first, second = results_of(run, source, case(0, 'f', cpu_ms=2000, wall_ms=4000), case(1, 'g'))
    assert second['value'] == '[[],0,5]' and second['stdout'] == '' and second['signs'] == []
    assert 'op' not in first


SPOILED_LOADS = [
    'import signal\nsignal.signal(signal.SIGCHLD, lambda *a: 1 / 0)',
    'import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)',
    'import signal\nsignal.alarm(1)\nimport time',
    'import sys\nsys.settrace(lambda *a: 1 / 0)',
    'import sys\nsys.stdout = None',
    'import sys\nsys.modules.clear()',
    'import sys\nsys.setrecursionlimit(60)',
    'import os, json, time\nos.fork = os.read = os.write = json.dumps = json.loads = time.monotonic = None',
    'import builtins\nfor n in "len", "isinstance", "type", "map", "min", "max": setattr(builtins, n, lambda *a: 5)',
    'import gc\ngc.disable()',
    'import atexit, os\natexit.register(os._exit, 0)',
    'import threading, time\nthreading.Thread(target=time.sleep, args=[0.5]).start()',
]


@pytest.mark.parametrize('text', SPOILED_LOADS)
def test_what_the_program_does_to_its_process_as_it_is_loaded_changes_no_result(run, text):
    source = 'def f(x): return [x, 2.5]\ndef g(): import time; time.sleep(1.2)\n' + text
    first, second = results_of(run, source, case(0, 'f', '[1]'), case(1, 'g' if 'alarm' in text else 'f', '[]' if 'alarm' in text else '[1]'))
    assert first['value'] == '[1,2.5]' and second['how'] == 'returned'


def test_random_numbers_are_those_of_the_programs_seed(run):
    source = 'import random\nrandom.seed(42)\ndef f(): return random.random()'
    assert [result['value'] for result in results_of(run, source, case(0, 'f'), case(1, 'f'))] == ['0.6394267984578837'] * 2


def test_a_handler_that_the_program_sets_as_it_is_loaded_works_in_a_case(run):
    source = ('import os, signal\nseen = []\nsignal.signal(signal.SIGUSR1, lambda *a: seen.append(1))\n'
              'def f():\n    os.kill(os.getpid(), signal.SIGUSR1)\n    return seen')
    assert result_of(run, source)['value'] == '[1]'


@pytest.mark.parametrize('body, signs', [
    ('import builtins\n    builtins.len = None', [{'sign': 'patched_builtins', 'detail': 'len'}]),
    ('return Equal()', [{'sign': 'suspicious_eq', 'detail': 'solution.Equal'}]),
    ('import os\n    for n in range(3, 1100):\n        try: os.write(n, b"{}")\n        except OSError: pass',
     [{'sign': 'foreign_descriptor', 'detail': 'what came is no result: its length is another'}]),
    ('return 5', []),
])
def test_signs_of_a_case(run, body, signs):
    source = 'class Equal:\n    def __eq__(self, other): return True\ndef f():\n    ' + body
    assert result_of(run, source)['signs'] == signs


def test_signs_of_the_program(run):
    outcome = run('cases', 'import builtins\nbuiltins.sum = max\ndef f(): return 1', begin(case(0, 'f')))
    assert outcome.messages[-1] == {'op': 'end', 'signs': [{'sign': 'patched_builtins', 'detail': 'sum'}]}
    assert outcome.messages[0]['signs'] == []


FORGED = '''
import json, os
def put(text, head=None):
    for n in range(3, 1100):
        try: os.write(n, (len(text).to_bytes(8, 'little') if head is None else head) + text)
        except OSError: pass
    os._exit(0)
'''


@pytest.mark.parametrize('text', [
    'b"{}"', 'b"[]"', 'b"null"', 'b"\\xff"', 'b"{" * 100000', 'b"[" * 1000000', 'b"1" * 100000', "b'\"'", 'b""',
    'json.dumps({"how": "passed", "signs": []}).encode()',
    'json.dumps({"how": [], "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int", "mro": ["int"]}).encode()',
    'json.dumps({"how": "returned", "value": 5, "type": "int", "mro": ["int"], "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int", "mro": [["int"]], "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int" * 99, "mro": ["int"], "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int", "mro": ["int"] * 101, "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int", "mro": ["int"], "signs": [{"sign": "x", "detail": ""}]}).encode()',
    'json.dumps({"how": "returned", "value": "5", "type": "int", "mro": ["int"], "signs": [], "op": "end"}).encode()',
    'json.dumps({"how": "raised", "message": "", "line": True, "type": "int", "mro": [], "signs": []}).encode()',
    'json.dumps({"how": "timeout", "by": "cpu", "signs": []}).encode()',
    'json.dumps({"how": "returned", "value": "x" * (17 << 20), "type": "int", "mro": [], "signs": []}).encode()',
])
def test_what_is_no_result_is_none(run, text):
    result, after = results_of(run, FORGED + 'def f(): put(%s)\ndef g(): return 1' % text, case(0, 'f'), case(1, 'g'))
    assert result['how'] in ('exited', 'signalled') and [sign['sign'] for sign in result['signs']] == ['foreign_descriptor']
    assert after['value'] == '1'


def test_a_frame_of_a_case_never_gets_to_the_engine(run):
    """Neither on the channel, which a case has not, nor as part of a result."""
    frame = talk({'op': 'result', 'i': 0, 'how': 'returned', 'value': '5'})[0]
    source = ('import os\ndef f():\n    for n in range(1100):\n        try: os.write(n, %r)\n        except OSError: pass\n    return 4' % frame)
    result = result_of(run, source)
    assert result['how'] == 'exited' and 'value' not in result


def test_whatever_a_case_has_started_ends_with_it(run, tmp_path):
    source = ('import subprocess\ndef f(): subprocess.Popen(["sh", "-c", "sleep 1; touch late"])\n'
              'def g():\n    import os, time\n    time.sleep(2)\n    return os.path.exists("late")')
    assert results_of(run, source, case(0, 'f'), case(1, 'g'))[1]['value'] == 'false'


def test_alone_in_a_sandbox_sessions_of_their_own_end_too(tmp_path):
    """As process 2 of a namespace, which is all that kill(-1) reaches."""
    if subprocess.run([*NAMESPACE, 'true'], capture_output=True, check=False).returncode:
        pytest.skip('needs userns: no process namespaces for this user')
    (tmp_path / 'main.py').write_text(
        'import subprocess\ndef f(): subprocess.Popen(["sh", "-c", "sleep 1; touch late"], start_new_session=True)\n'
        'def g():\n    import os, time\n    time.sleep(2)\n    return os.path.exists("late"), os.listdir("/proc")')
    for first in ['sh', '-c', '"$@"; exit $?', 'sh'], []:
        process = Process([*NAMESPACE, *first, *COMMANDS['py'], 'graded=1,alone=1', str(tmp_path / 'main.py')], tmp_path)
        outcome = process.end(told=talk({**begin(case(0, 'f'), case(1, 'g')), 'role': 'cases'}))
        is_late, entries = CANON['decode'](without_ready(outcome).messages[1]['value'])
        assert is_late is False and sum(entry.isdigit() for entry in entries) == 2 + bool(first)
        assert outcome.status == 0


def test_limits_are_each_cases_own(run):
    source = 'import time\ndef f():\n    while time.process_time() < 0.4: pass\n    return 1'
    results = results_of(run, source, *(case(i, 'f', cpu_ms=1000 if i % 2 else 200) for i in range(4)))
    assert [result['how'] for result in results] == ['timeout', 'returned'] * 2
    assert all(200 <= result['cpu_ms'] < 1000 for result in results)


def test_threads_use_up_the_time_of_their_case(run):
    source = ('import hashlib, threading\ndef f():\n    def work():\n        while True: hashlib.sha256(bytes(10000000))\n'
              '    for _ in range(2): threading.Thread(target=work).start()\n    work()')
    result = result_of(run, source, cpu_ms=600, wall_ms=10000)
    assert (result['how'], result['by']) == ('timeout', 'cpu') and result['cpu_ms'] < 2000


# -------------------------------------------------------------------------------------------------------------- the judge

def returned(value, kind='int', *mro):
    return {'how': 'returned', 'value': value, 'type': kind, 'mro': [kind, *mro, 'object']}


def raised(kind, *mro, message='m'):
    return {'how': 'raised', 'type': kind, 'mro': [kind, *mro], 'message': message, 'line': 1}


def other(kind, shown='<it>'):
    return {'how': 'unencodable', 'type': kind, 'mro': [kind, 'object'], 'repr': shown}


NAN = '{"t":"float","v":"nan"}'
BOOL = returned('true', 'bool', 'int')
NOT_FOUND = raised('FileNotFoundError', 'OSError', 'Exception')
OWN_VALUE_ERROR = raised('solution.ValueError', 'Exception')
DEQUE = '{"t":"collections.deque","v":[1]}'
ARRAY = '{"t":"numpy.ndarray","v":["<i8",[2],"AQAAAAAAAAACAAAAAAAAAA=="]}'
VERDICTS = [
    # S1-32 to S1-38
    ({'expected_exception': 'ValueError'}, returned('5'), 'failed', 'Expected exception ValueError but none raised'),
    ({'expected_exception': 'ValueError', 'expected': '5'}, returned('5'), 'failed', 'Expected exception ValueError but none raised'),
    ({'expected_exception': 'ValueError'}, other('solution.A'), 'failed', 'Expected exception ValueError but none raised'),
    ({'expected_type': 'str'}, returned('5'), 'failed', 'Type mismatch: got int, expected str'),
    ({'expected_type': 'str', 'expected': '5'}, returned('5'), 'failed', 'Type mismatch: got int, expected str'),
    ({'expected_type': 'str'}, other('solution.A'), 'failed', 'Type mismatch: got solution.A, expected str'),
    ({'expected': '3'}, returned('4'), 'failed', 'Expected 3, got 4'),
    ({'expected': '"a"'}, returned('"b\\u00e9"'), 'failed', "Expected 'a', got 'bé'"),
    ({'expected': '3'}, returned('3'), 'passed', 'OK'),
    ({'expected': 'null'}, returned('5'), 'failed', 'Expected None, got 5'),
    ({'expected': 'null'}, returned('null', 'NoneType'), 'passed', 'OK'),
    ({'expected_python': 'None'}, returned('5'), 'failed', 'Expected None, got 5'),
    ({}, returned('5'), 'passed', 'OK'),
    ({}, other('solution.A'), 'passed', 'OK'),
    ({'expected_exception': 'ValueError'}, raised('ValueError', 'Exception'), 'passed', 'Expected exception ValueError raised'),
    ({'expected_exception': 'ValueError'}, raised('KeyError', 'LookupError', message="'x'"), 'failed', "KeyError: 'x'"),
    ({'expected_exception': 'ValueError'}, raised('KeyError', message='x' * 300), 'failed', 'KeyError: ' + 'x' * 200),
    ({'expected': '3'}, raised('KeyError', 'LookupError', message="'x'"), 'error', "KeyError: 'x'"),
    ({}, raised('solution.MyError', message='why'), 'error', 'MyError: why'),
    # exceptions
    ({'expected_exception': 'OSError'}, NOT_FOUND, 'passed', 'Expected exception OSError raised'),
    ({'expected_exception': 'IOError'}, NOT_FOUND, 'passed', 'Expected exception IOError raised'),
    ({'expected_exception': 'OSError', 'exact': True}, NOT_FOUND, 'failed', 'FileNotFoundError: m'),
    ({'expected_exception': 'FileNotFoundError', 'exact': True}, NOT_FOUND, 'passed', None),
    ({'expected_exception': 'ValueError'}, OWN_VALUE_ERROR, 'failed', 'ValueError: m'),
    ({'expected_exception': '__main__.ValueError'}, OWN_VALUE_ERROR, 'passed', None),
    ({'expected_exception': 'Exception'}, OWN_VALUE_ERROR, 'passed', None),
    ({'expected_exception': 'MyError'}, raised('solution.MyError', 'Exception'), 'passed', None),
    ({'expected_exception': 'JSONDecodeError'}, raised('json.decoder.JSONDecodeError', 'ValueError'), 'passed', None),
    ({'expected_exception': 'json.JSONDecodeError'}, raised('json.decoder.JSONDecodeError', 'ValueError'), 'passed', None),
    ({'expected_exception': 'json.decoder.JSONDecodeError'}, raised('json.decoder.JSONDecodeError', 'ValueError'), 'passed', None),
    ({'expected_exception': 'xml.JSONDecodeError'}, raised('json.decoder.JSONDecodeError', 'ValueError'), 'failed', None),
    ({'expected_exception': 'SystemExit'}, {'how': 'exited', 'exit_code': 0}, 'passed', None),
    # types
    ({'expected_type': 'int'}, BOOL, 'passed', 'OK'),
    ({'expected_type': 'int', 'strict_type': True}, BOOL, 'failed', 'Type mismatch: got bool, expected int'),
    ({'expected_type': 'int | None'}, returned('null', 'NoneType'), 'passed', None),
    ({'expected_type': 'Optional[int]'}, returned('null', 'NoneType'), 'passed', None),
    ({'expected_type': 'typing.Optional[int]'}, returned('""', 'str'), 'failed', None),
    ({'expected_type': 'Union[int, str]'}, returned('""', 'str'), 'passed', None),
    ({'expected_type': 'list[int]'}, returned('["a"]', 'list'), 'passed', None),
    ({'expected_type': 'List[int]'}, returned('[]', 'list'), 'passed', None),
    ({'expected_type': 'typing.Dict[str, List[int]]'}, returned('[]', 'list'), 'failed', None),
    ({'expected_type': 'Sequence[int]'}, returned('{"t":"tuple","v":[]}', 'tuple'), 'passed', None),
    ({'expected_type': 'Any'}, returned('5'), 'passed', None),
    ({'expected_type': '"int"'}, returned('5'), 'passed', None),
    ({'expected_type': 'deque'}, returned(DEQUE, 'collections.deque'), 'passed', None),
    ({'expected_type': 'collections.deque'}, returned(DEQUE, 'collections.deque'), 'passed', None),
    ({'expected_type': 'Point'}, other('solution.Point'), 'passed', None),
    ({'expected_type': '__main__.Point'}, other('solution.Point'), 'passed', None),
    ({'expected_type': 'int'}, other('solution.int'), 'failed', None),
    ({'expected_type': 'int('}, returned('5'), 'bad_case', 'expected_type: int( is no type'),
    ({'expected_type': '__import__("os").system("x")'}, returned('5'), 'bad_case', None),
    ({'expected_type': '-' * 100000}, returned('5'), 'bad_case', None),
    # values
    ({'expected': '1'}, returned('1.0', 'float'), 'passed', None),
    ({'expected': '1'}, BOOL, 'passed', None),
    ({'expected': '1', 'strict_type': True}, BOOL, 'failed', 'Expected 1, got True'),
    ({'expected': '[[1]]', 'strict_type': True}, returned('[[1.0]]', 'list'), 'failed', None),
    ({'expected': '{"a": [1]}', 'strict_type': True}, returned('{"t":"dict","v":[["a",[true]]]}', 'dict'), 'failed', None),
    ({'expected_python': '{1: 2}', 'strict_type': True}, returned('{"t":"dict","v":[[true,2]]}', 'dict'), 'failed', None),
    ({'expected_python': '{1: 2}'}, returned('{"t":"dict","v":[[true,2]]}', 'dict'), 'passed', None),
    ({'expected_python': '{1}', 'strict_type': True}, returned('{"t":"set","v":[1.0]}', 'set'), 'failed', None),
    ({'expected_python': '{1}', 'strict_type': True}, returned('{"t":"set","v":[1]}', 'set'), 'passed', None),
    ({'expected_python': '{1}'}, returned('{"t":"frozenset","v":[1]}', 'frozenset'), 'passed', None),
    ({'expected_python': '(1, 2)'}, returned('[1,2]', 'list'), 'failed', 'Expected (1, 2), got [1, 2]'),
    ({'expected_python': '(1, 2)'}, returned('{"t":"tuple","v":[1,2]}', 'tuple'), 'passed', None),
    ({'expected': '"1"'}, returned('1'), 'failed', "Expected '1', got 1"),
    ({'expected': 'NaN'}, returned(NAN, 'float'), 'passed', None),
    ({'expected': '[NaN, {"a": NaN}]'}, returned('[%s,{"t":"dict","v":[["a",%s]]}]' % (NAN, NAN), 'list'), 'passed', None),
    ({'expected_python': '{nan, 1, (nan, 2)}'}, returned('{"t":"set","v":[{"t":"tuple","v":[%s,2]},%s,1]}' % (NAN, NAN), 'set'), 'passed', None),
    ({'expected_python': '{nan: 1}'}, returned('{"t":"dict","v":[[%s,1]]}' % NAN, 'dict'), 'passed', None),
    ({'expected': 'NaN'}, returned('1.0', 'float'), 'failed', 'Expected nan, got 1.0'),
    ({'expected': 'Infinity'}, returned('{"t":"float","v":"inf"}', 'float'), 'passed', None),
    ({'expected_python': 'nan+0j'}, returned('{"t":"complex","v":[%s,0.0]}' % NAN, 'complex'), 'passed', None),
    ({'expected_python': 'b"a"'}, returned('{"t":"bytes","v":"YQ=="}', 'bytes'), 'passed', None),
    ({'expected': str(2 ** 5000)[:4000]}, returned(str(2 ** 5000)[:4000]), 'passed', None),
    ({'expected_python': 'Decimal("1.50")'}, returned('{"t":"decimal.Decimal","v":"1.5"}', 'decimal.Decimal'), 'passed', None),
    ({'expected': '1'}, returned('{"t":"decimal.Decimal","v":"sNaN"}', 'decimal.Decimal'), 'failed', None),
    ({'expected_python': 'Counter({"a": 1})'}, returned('{"t":"collections.Counter","v":[["a",1],["b",0]]}', 'collections.Counter'), 'passed', None),
    ({'expected_python': 'OrderedDict([(1, 2), (3, 4)])'}, returned('{"t":"collections.OrderedDict","v":[[3,4],[1,2]]}', 'x'), 'failed', None),
    ({'expected': '{"1": 2}'}, returned('{"t":"collections.OrderedDict","v":[["1",2]]}', 'x'), 'passed', None),
    ({'expected': '[1, 2]'}, returned(ARRAY, 'numpy.ndarray'), 'passed', None),
    ({'expected': '[1, 3]'}, returned(ARRAY, 'numpy.ndarray'), 'failed', 'Expected [1, 3], got array([1, 2])'),
    ({'expected': '[1, 2]', 'strict_type': True}, returned(ARRAY, 'numpy.ndarray'), 'failed', None),
    # tolerance
    ({'expected': '0.3'}, returned('0.30000000000000004', 'float'), 'failed', None),
    ({'expected': '0.3', 'tolerance': 1e-9}, returned('0.30000000000000004', 'float'), 'passed', None),
    ({'expected': '[[1], {"a": 1000000}]', 'tolerance': 1e-3}, returned('[[1.0009],{"t":"dict","v":[["a",1000900]]}]', 'list'), 'passed', None),
    ({'expected': '[1]', 'tolerance': 1e-3}, returned('[1.01]', 'list'), 'failed', None),
    ({'expected_python': '{1, 2, 3}', 'tolerance': 0.1}, returned('{"t":"set","v":[3.01,1.01,2.01]}', 'set'), 'passed', None),
    ({'expected_python': '{1, 2, 3}', 'tolerance': 0.1}, returned('{"t":"set","v":[3.01,1.01,2.31]}', 'set'), 'failed', None),
    ({'expected_python': '1+1j', 'tolerance': 0.01}, returned('{"t":"complex","v":[1.01,1.1]}', 'complex'), 'failed', None),
    ({'expected_python': '(1+1j)', 'tolerance': 0.1}, returned('{"t":"complex","v":[1.01,1.01]}', 'complex'), 'passed', None),
    ({'expected': '1', 'tolerance': 0.1}, returned('9' * 4000), 'failed', None),
    ({'expected': '"a"', 'tolerance': 0.1}, returned('1'), 'failed', None),
    ({'expected': '1', 'tolerance': -1}, returned('1'), 'bad_case', None),
    # how it ended
    ({'expected': '1'}, other('solution.A', '<A>'), 'unencodable', 'A value of type solution.A cannot be compared from outside: <A>'),
    ({'expected': '1'}, {'how': 'timeout', 'by': 'cpu', 'cpu_ms': 5004.2}, 'timeout', 'Timeout after 5s of CPU time'),
    ({'expected': '1'}, {'how': 'timeout', 'by': 'wall', 'wall_ms': 15004.2}, 'timeout', 'Timeout after 15s'),
    ({'expected': '1'}, {'how': 'exited', 'exit_code': 0}, 'crash', 'The process ended with exit status 0 before there was a value'),
    ({}, {'how': 'exited', 'exit_code': 0}, 'crash', None),
    ({'expected': '1'}, {'how': 'signalled', 'signal': 11}, 'crash', 'The process was ended by SIGSEGV'),
    ({'expected': '1'}, {'how': 'bad_case', 'message': 'args: no'}, 'bad_case', 'args: no'),
    ({'expected': '['}, returned('1'), 'bad_case', None),
    ({'expected_python': 'open("x")'}, returned('1'), 'bad_case', None),
    # what nobody honest sends
    ({}, None, 'crash', 'There is no result of this case'),
    ({}, [], 'crash', None),
    ({}, {}, 'crash', None),
    ({}, {'how': 'passed'}, 'crash', None),
    ({}, {'how': ['returned']}, 'crash', None),
    ({}, {'how': 'returned'}, 'unencodable', None),
    ({}, {'how': 'returned', 'value': 5}, 'unencodable', None),
    ({'expected_type': 'int'}, {'how': 'returned', 'value': '5', 'mro': 'int', 'type': ['int']}, 'failed', None),
    ({'expected_type': 'int'}, {'how': 'returned', 'value': '5', 'mro': [['int'], None], 'type': 'int'}, 'failed', None),
    ({'expected_exception': 'KeyError'}, {'how': 'raised'}, 'failed', None),
    ({'expected': '1'}, {'how': 'exited', 'exit_code': [[]]}, 'crash', None),
    ({'expected': '1'}, {'how': 'signalled', 'signal': 'x'}, 'crash', None),
    ({'expected': '1'}, {'how': 'timeout', 'by': [], 'wall_ms': 'x'}, 'timeout', None),
    ({'expected': '1'}, returned('[' * 100000, 'list'), 'unencodable', None),
    ({'expected': '[]'}, returned('[' * 900 + ']' * 900, 'list'), 'failed', None),
    ({'expected': '[[]]'}, returned('[{"t":"ref","v":0}]', 'list'), 'failed', 'Expected [[]], got [[...]]'),
    ({'expected': '[[1,1],[1,1]]'}, returned('[' * 40 + '1' + ''.join(',{"t":"ref","v":%d}]' % (n + 1) for n in range(38, -1, -1)) + ']',
                                             'list'), 'failed', None),
]


def test_verdicts(run):
    verdicts, _ = verdicts_of(run, *((spec, result) for spec, result, _, _ in VERDICTS))
    for verdict, (spec, result, status, detail) in zip(verdicts, VERDICTS):
        assert (verdict['status'], verdict['detail']) == (status, verdict['detail'] if detail is None else detail), (spec, result)


JAVASCRIPT_VERDICTS = [
    ({'expected': '[1, null]'}, '[1,{"t":"undefined"}]', True), ({'expected': 'null', 'strict_type': True}, '{"t":"undefined"}', False),
    ({'expected': '[1, 2]'}, '{"t":"set","v":[1,2]}', True), ({'expected_python': '{2, 1}'}, '{"t":"set","v":[1,2]}', True),
    ({'expected_python': '{1}'}, '{"t":"set","v":[[]]}', False), ({'expected': '[1]', 'strict_type': True}, '{"t":"set","v":[1]}', False),
    ({'expected': '{"a": 1}'}, '{"t":"map","v":[["a",1]]}', True), ({'expected': '[[[], 1]]'}, '{"t":"map","v":[[[],1]]}', True),
    ({'expected': '{"a": 1}'}, '{"t":"map","v":[[[],1]]}', False), ({'expected': '1', 'strict_type': True}, '1.0', True),
    ({'expected': '5'}, '{"t":"bigint","v":"5"}', True), ({'expected': '"1970-01-01T00:00:00.005Z"'}, '{"t":"js.Date","v":5}', True),
    ({'expected': '5'}, '{"t":"js.Date","v":5}', True), ({'expected': '5'}, '{"t":"js.Date","v":{"t":"float","v":"nan"}}', False),
    ({'expected': '[97]'}, '{"t":"bytes","v":"YQ=="}', True), ({'expected': '1'}, '{"t":"decimal.Decimal","v":"1"}', False),
    ({'expected': '1'}, '{"t":"undefined","v":1}', False), ({'expected': '{"a":[1]}', 'tolerance': 0.1}, '{"t":"dict","v":[["a",[1.05]]]}', True),
]


def test_verdicts_on_values_of_javascript(run):
    verdicts, _ = verdicts_of(run, *((spec, returned(value, 'x')) for spec, value, _ in JAVASCRIPT_VERDICTS), language='javascript')
    assert [verdict['passed'] for verdict in verdicts] == [passed for _, _, passed in JAVASCRIPT_VERDICTS]


def test_values_of_javascript_are_shown_as_such(run):
    value = ('[true,null,{"t":"undefined"},"a\\u00e9",1.5,{"t":"float","v":"nan"},{"t":"set","v":[1]},{"t":"map","v":[[1,2]]},'
             '{"t":"dict","v":[["k",{"t":"ref","v":0}]]},{"t":"js.Date","v":0}]')
    verdict = verdicts_of(run, ({'expected': '[true]'}, returned(value, 'Array')), language='typescript')[0][0]
    assert verdict['detail'] == ('Expected [true], got [true, null, undefined, "aé", 1.5, NaN, Set {1}, Map {1 => 2}, {"k": [Circular]}, '
                                 '1970-01-01T00:00:00.000Z]')


@pytest.mark.parametrize('wanted, mro, passed', [
    ('number', ['number', 'int', 'float'], True), ('int', ['number', 'int', 'float'], True), ('string | null', ['null', 'NoneType'], True),
    ('number[]', ['Array', 'Object', 'list'], True), ('Map<string, number>', ['Map', 'Object'], True), ('string', ['number'], False),
])
def test_types_of_javascript(run, wanted, mro, passed):
    result = {'how': 'returned', 'value': '1', 'type': mro[0], 'mro': mro}
    assert verdicts_of(run, ({'expected_type': wanted}, result), language='typescript')[0][0]['passed'] is passed


@pytest.mark.parametrize('value', [
    '{"t":"set","v":[%s]}' % ','.join(str(n * (2 ** 61 - 1)) for n in range(200000)),
    '{"t":"dict","v":[%s]}' % ','.join('[%d,0]' % (n * (2 ** 61 - 1)) for n in range(200000)),
], ids=['set', 'dict'])
def test_a_value_that_takes_for_ever_does_not_keep_the_judge(tmp_path, value):
    verdicts, _ = verdicts_of(lambda role, source, *messages: runner_of('cold', tmp_path)(
        'main.py', source, options='graded=1', told=[packet for one in messages for packet in talk({'role': role, **one})], timeout=250),
        ({'expected': '1'}, returned(value)), ({'expected': '1'}, returned('1')))
    assert [verdict['status'] for verdict in verdicts] == ['failed', 'passed']


def test_cases_for_which_there_is_no_time_have_no_verdict(tmp_path):
    slow = '{"t":"set","v":[%s]}' % ','.join(str(n * (2 ** 61 - 1)) for n in range(200000))
    entries = [({'expected': '1'}, returned(value)) for value in ('1', slow, '1')]
    message = {'op': 'judge', 'id': 7, 'language': 'python', 'code': '', 'cpu_ms': 300,
               'cases': [{'i': i, 'case': spec, 'result': result} for i, (spec, result) in enumerate(entries)]}
    told = [packet for one in ({'role': 'judge', 'op': 'begin'}, message, {**message, 'id': 8, 'cases': message['cases'][1:], 'last': True})
            for packet in talk(one)]
    first, second = runner_of('cold', tmp_path)('main.py', '', options='graded=1', told=told, timeout=60).messages
    assert [verdict['status'] for verdict in first['verdicts']] == ['passed'] and 290 < first['cpu_ms'] < 2000
    assert [(verdict['i'], verdict['status']) for verdict in second['verdicts']] == [(1, 'failed')]


def test_the_judge_goes_on_from_one_message_to_the_next(run):
    messages = [{'op': 'judge', 'id': number, 'language': 'python', 'code': '', 'cases': [
        {'i': 3, 'case': {'expected': '1'}, 'result': returned(str(number))}]} for number in range(3)]
    outcome = run('judge', '', {'op': 'begin'}, *messages)
    assert [answer['id'] for answer in outcome.messages] == [0, 1, 2] and outcome.status == 0
    assert [answer['verdicts'][0]['passed'] for answer in outcome.messages] == [False, True, False]


def test_the_judge_ends_at_what_is_no_request(run):
    assert run('judge', '', {'op': 'begin'}, {'op': 'nothing'}).status == 70


@pytest.mark.parametrize('result, signs', [
    ({'stdout': 'x\n__SANDBOX_RESULTS__\n{"all_passed": true}'}, ['forged_marker', 'verdict_shaped_output']),
    ({'stdout': '{"score": 1}'}, ['verdict_shaped_output']), ({'stdout': '===== 3 passed in 0.01s ====='}, ['verdict_shaped_output']),
    ({'stdout': 'Ran 3 tests in 0.1s\n\nOK'}, ['verdict_shaped_output']), ({'stdout': 'it is OK, passed it on'}, []),
    ({'how': 'exited', 'exit_code': 0}, ['early_exit']), ({'signs': [{'sign': 'suspicious_eq', 'detail': 'A'}]}, ['suspicious_eq']),
    ({'signs': [{'sign': 'mine', 'detail': 'A'}, 5, {'sign': []}]}, []), ({'signs': 5, 'stdout': []}, []),
])
def test_signs_in_a_result(run, result, signs):
    verdicts, found = verdicts_of(run, ({'expected': '1'}, {**returned('1'), 'stdout': '', **result}))
    assert [sign['sign'] for sign in found] == signs and all(sign['i'] == 0 for sign in found)
    assert verdicts[0]['passed'] == ('how' not in result)


@pytest.mark.parametrize('language, code, details', [
    ('python', 'import sys\nsys._getframe()', ['reads_internals: sys._getframe, line 2']),
    ('python', 'import inspect as i\ni.stack()', ['reads_internals: inspect.stack, line 2']),
    ('python', 'from gc import get_objects as g\ng()', ['reads_internals: gc.get_objects, line 1']),
    ('python', 'import ctypes', ['reads_internals: ctypes, line 1']),
    ('python', 'import sys\ngetattr(sys, "settrace")', ['reads_internals: sys.settrace, line 2']),
    ('python', 'open("/proc/self/mem")', ['reads_internals: /proc/self/mem, line 1']),
    ('python', 'print(test_cases)', ['reads_tests: test_cases, line 1']),
    ('python', 'import os\nos.environ.get("PYTEST_CURRENT_TEST")', ['reads_tests: PYTEST_CURRENT_TEST, line 2']),
    ('python', '"""sys._getframe, /proc/self"""\n# gc.get_objects\nprint("see sys.settrace and test_cases")', []),
    ('python', 'def f(test_cases, expected_output): return test_cases', []),
    ('python', 'class A:\n    def stack(self): pass\nA().stack()\nsys = 1', []),
    ('python', 'x = = 1', []), ('python', '-' * 100000 + '1', []), ('python', '\0', []),
    ('javascript', 'const a = 1;\nprocess.binding("fs")', ['reads_internals: process.binding, line 2']),
    ('javascript', 'console.log(testCases)', ['reads_tests: testCases, line 1']),
    ('javascript', 'console.log("hello")', []),
])
def test_signs_in_a_text(run, language, code, details):
    _, found = verdicts_of(run, language=language, code=code)
    assert ['%(sign)s: %(detail)s' % sign for sign in found] == details


# ------------------------------------------------------------------------------------------------ the forging of verdicts

EXPECTED = 5        # of f(2, 3), in all of these
FORGERIES = {
    'sentinel and exit': 'import os\ndef f(a, b):\n    print("__SANDBOX_RESULTS__\\n" + \'{"status": "complete", "all_passed": true}\', flush=True)\n'
                         '    os._exit(0)',
    'sentinel as it is loaded': 'import os\nprint(\'__SANDBOX_RESULTS__\\n{"all_passed": true}\', flush=True)\nos._exit(0)',
    '__eq__': 'class E:\n    def __eq__(self, o): return True\n    def __ne__(self, o): return False\n    __hash__ = None\ndef f(a, b): return E()',
    'exit at import': 'import sys\ndef f(a, b): return 1\nsys.exit(0)',
    'exit in the function': 'import sys\ndef f(a, b): sys.exit(0)',
    'class ValueError': 'class ValueError(Exception): pass\ndef f(a, b): raise ValueError',
    'subclass of int': 'class I(int):\n    def __repr__(self): return "5"\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\n'
                       'def f(a, b): return I(4)',
    '/proc': 'import os, re\ndef f(a, b):\n    seen = b""\n    for n in os.listdir("/proc/self/fd"):\n        try: seen += os.pread(int(n), 99999, 0)\n'
             '        except OSError: pass\n    seen += open("/proc/%d/cmdline" % os.getppid(), "rb").read()\n'
             '    seen += open("/proc/self/environ", "rb").read()\n    m = re.search(rb"expected\\D*(\\d+)", seen)\n    return int(m[1]) if m else None',
    'memory': 'import gc\ndef f(a, b):\n    for x in gc.get_objects():\n        if type(x) is dict and ("expected" in x or "expected_python" in x):\n'
              '            return int(x.get("expected") or x["expected_python"])\n    return None',
    'frames': 'import sys\ndef f(a, b):\n    frame = sys._getframe()\n    while frame:\n        for d in frame.f_locals, frame.f_globals:\n'
              '            for k, v in d.items():\n                if k.startswith("expected"): return v\n        frame = frame.f_back\n    return None',
    'every descriptor': 'import os, json\ndef f(a, b):\n    for n in range(1100):\n        for t in (b\'{"passed": true}\', b"CSN1\\x0a\\0\\0\\0\\2\\0\\0\\0E1"):\n'
                        '            try: os.write(n, t)\n            except OSError: pass\n    return 0',
    'closing': 'import os\nos.closerange(3, 65536)\ndef f(a, b): return 0',
    'patched json': 'import json, builtins, time\njson.dumps = lambda *a, **k: \'{"passed": true}\'\nbuiltins.isinstance = lambda *a: True\n'
                    'time.monotonic = time.time = lambda: 0\ndef f(a, b): return 0',
    'atexit': 'import atexit\natexit.register(print, \'{"passed": true}\')\ndef f(a, b): return 0',
    'settrace': 'import sys\ndef t(frame, event, arg):\n    frame.f_locals.update(status="passed", how="returned", value="5")\n    return t\n'
                'def f(a, b):\n    sys.settrace(t)\n    return 0',
    'the child answers': 'import os\ndef f(a, b): return 0 if os.fork() else 5',
    'a thread answers later': 'import threading, time\ndef f(a, b):\n    threading.Thread(target=lambda: (time.sleep(0.2), print(5))).start()\n    return 0',
    'kill the runner': 'import os, signal\ndef f(a, b):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return 0',
    'kill before': 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\ndef f(a, b): return 0',
    'generator': 'def f(a, b):\n    yield 5',
    'property': 'class P:\n    @property\n    def __class__(self): return int\n    def __int__(self): return 5\n    def __index__(self): return 5\n'
                'def f(a, b): return P()',
    'much output': 'def f(a, b):\n    print("x" * (1 << 22) * 4)\n    return 0',
    'a canonical text': 'def f(a, b): return \'{"t":"int","v":"0x5"}\'',
    'reports itself': FORGED + 'import sys\ndef f(a, b):\n    put(json.dumps({"how": "passed", "status": "passed", "value": "5", "signs": []}).encode())',
}


@pytest.mark.parametrize('instance', ['fresh', 'shared'])
@pytest.mark.parametrize('name', FORGERIES)
def test_forgeries_do_not_pass(run, name, instance):
    outcome = run('cases', FORGERIES[name], {**begin(case(0, 'f', '[2, 3]', cpu_ms=3000, wall_ms=5000)), 'instance': instance})
    results = [message for message in outcome.messages if message['op'] == 'result']
    spec = {'expected_exception': 'ValueError'} if name == 'class ValueError' else {'expected': str(EXPECTED)}
    verdict = verdicts_of(run, (spec, results[0] if results else None), code=FORGERIES[name])[0][0]
    assert not verdict['passed'] and verdict['status'] != 'passed', verdict


def test_the_same_without_forgery_passes(run):
    result = run('cases', 'def f(a, b): return a + b', begin(case(0, 'f', '[2, 3]'))).messages[0]
    assert verdicts_of(run, ({'expected': str(EXPECTED)}, result))[0][0]['passed']
