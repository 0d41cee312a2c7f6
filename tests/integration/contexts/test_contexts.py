"""Context runners: interpreters that live on from one execution to the next.

Python is tested on both roads: started for it, and forked from a zygote.

    /usr/bin/python3 -m pytest -q tests/integration/contexts/test_contexts.py
"""

import base64
import marshal
import os
import re
import select
import socket
import subprocess
import time

import pytest
from contexts import COMMANDS, Context, Ended, Started
from runners import ENVIRONMENT
from zygotes import IS_WARM, Zygote

PNG = b'\x89PNG\r\n\x1a\n'
CHART, TABLE = 'application/vnd.caisson.chart+json', 'application/vnd.caisson.table+json'


@pytest.fixture
def start(tmp_path):
    """start('python', 'options') -> Started, ended with the test"""
    contexts = []

    def begin(language, options='', **settings):
        contexts.append(Started(language, tmp_path, options, **settings))
        return contexts[-1]

    yield begin
    for context in contexts:
        if context.channel.fileno() >= 0:
            assert context.end() == 0


# --------------------------------------------------------------------------------------------------- Python, both roads

class Forked(Context):
    """One of a process that a zygote has forked."""

    def __init__(self, zygote, home, options, environment=()):
        self.zygote = zygote
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid, way, *outputs = zygote.fork(home, theirs)
        variables = {**zygote.environment, **dict(environment)}
        null = os.open(os.devnull, os.O_RDONLY)
        words = marshal.dumps(([os.fsencode('context=1,' + options)], [os.fsencode('%s=%s' % pair) for pair in variables.items()]))
        socket.send_fds(way, [words], [null])
        os.close(null)
        way.close()
        super().__init__(ours, outputs)

    def status(self):
        self.zygote.control.settimeout(60)
        status = os.waitstatus_to_exitcode(int(self.zygote.control.recv(100)))
        self.read_outputs()
        return status

    def end(self):
        self.channel.close()
        status = self.status()
        for fd in self.outputs:
            os.close(fd)
        return status


@pytest.fixture(scope='module')
def zygote(tmp_path_factory):
    zygote = Zygote(tmp_path_factory.mktemp('runners'), 'data')
    yield zygote
    zygote.stop()


@pytest.fixture(params=['cold', 'forked'])
def python_with(request, tmp_path):
    """python_with(options) -> Context"""
    contexts = []

    def begin(options='', **settings):
        if request.param == 'cold':
            contexts.append(Started('python', tmp_path, options, **settings))
        else:
            contexts.append(Forked(request.getfixturevalue('zygote'), tmp_path, options, **settings))
        return contexts[-1]

    yield begin
    for context in contexts:
        if context.channel.fileno() >= 0:
            assert context.end() == 0


@pytest.fixture
def python(python_with):
    return python_with()


def needs(context, module):
    if context.execute('import ' + module).error:
        pytest.skip('needs %s: not here' % module)


def test_python_hello(python):
    assert python.hello['runner'] == 'python' and python.hello['context'] is True
    assert python.execute('import os\nos.getpid()').value['value'] == python.hello['pid']


def test_python_variables_last(python):
    assert python.execute('import math\nx = 2\ndef f(y): return x + y').kinds == 'STARTED DONE'
    assert python.execute('class A: pass\nx = 40').kinds == 'STARTED DONE'
    outcome = python.execute('f(2), A.__module__, math.floor(1.5), __name__')
    assert outcome.kinds == 'STARTED VALUE DONE'
    assert outcome.value == {'type': 'tuple', 'value': [42, '__main__', 1, '__main__']}
    assert outcome.data == {'text/plain': "(42, '__main__', 1, '__main__')"}


@pytest.mark.parametrize('code, has_value', [
    ('5', True), ('None', False), ('5;', False), ('5 ; # shown not', False), ('5 # ends in ;', True), ('";"', True), ('(5);', False),
    ('x = 5', False), ('', False), ('5\n', True), ('"é"; # "é";', False), ('if 1:\n    5', False), ('print()', False),
])
def test_python_value_of_the_last_expression(python, code, has_value):
    assert ('VALUE' in python.execute(code).kinds.split()) == has_value


def test_python_quiet_errors_are_told_and_not_printed(python):
    for code, kind in ('1/0', 'ERROR'), ('foo bar', 'SYNTAX'), ('exit("why")', 'ERROR'):
        outcome = python.execute(code, quiet=True)
        assert (outcome.stderr, kind in outcome.kinds) == ('', True)
        assert python.execute(code).stderr != ''


def test_python_underscore_is_the_last_value(python):
    python.execute('6 * 7')
    python.execute('"not this";')
    python.execute('x = 1')
    assert python.execute('_ + 1').value['value'] == 43


def test_python_syntax_error_runs_nothing(python):
    outcome = python.execute('x = 1\ny = = 2\n')
    assert outcome.kinds == 'SYNTAX DONE'
    mistake = outcome.one('SYNTAX')
    assert (mistake['type'], mistake['line'], mistake['column'], mistake['text']) == ('SyntaxError', 2, 5, 'y = = 2')
    assert 'SyntaxError' in outcome.stderr
    assert python.execute('x').error['name'] == 'x'


@pytest.mark.parametrize('code', ['\0', '[' * 100000, '(' * 1000 + ')' * 1000, '\ud800', '"' * 9999, '%', '!', '%%', '%%%', '!"', '\\'])
def test_python_odd_texts_end_in_an_orderly_way(python, code):
    assert python.execute(code).kinds.split()[0] in ('SYNTAX', 'STARTED')
    assert python.execute('1 + 1').value['value'] == 2


def test_python_tracebacks_have_the_lines_of_the_cell_and_no_frames_of_ours(python):
    python.execute('def f(n):\n    return 1 / n')
    outcome = python.execute('try:\n    f(0)\nexcept ZeroDivisionError as e:\n    raise ValueError("é") from e')
    assert outcome.kinds == 'STARTED ERROR DONE'
    error = outcome.error
    assert (error['type'], error['message'], error['line']) == ('ValueError', 'é', 4)
    text = '\n'.join(error['traceback'])
    assert outcome.stderr == text + '\n'
    for part in ('File "<cell 1>", line 2, in f\n    return 1 / n', 'File "<cell 2>", line 2, in <module>\n    f(0)',
                 'raise ValueError("é") from e', 'direct cause'):
        assert part in text
    assert str(COMMANDS['python'][1]).rpartition('/')[0] not in text and 'session' not in text and 'runner' not in text


def test_python_names_of_cells(python):
    error = python.execute('\n\n1/0', name='analysis.py').error
    assert error['line'] == 3 and '  File "analysis.py", line 3, in <module>' in error['traceback']
    assert '    1/0' in error['traceback']
    assert python.execute('import inspect\ndef g():\n    return 7\ninspect.getsource(g)').value['value'] == 'def g():\n    return 7\n'


@pytest.mark.parametrize('code, message', [
    ('import sys; sys.exit(3)', '3'), ('exit()', '0'), ('quit(4)', '4'), ('raise SystemExit("why")', 'why'), ('raise SystemExit', '0'),
])
def test_python_exit_is_an_error_and_the_context_lives_on(python, code, message):
    python.execute('x = 5')
    outcome = python.execute(code)
    assert outcome.kinds == 'STARTED ERROR DONE'
    assert (outcome.error['type'], outcome.error['message']) == ('SystemExit', message)
    assert outcome.stderr == ('why\n' if message == 'why' else '')
    assert python.execute('x').value['value'] == 5


def test_python_input_does_not_wait(python):
    for _ in range(2):
        assert python.execute('input()').error['type'] == 'EOFError'
        python.execute('exit()')


def test_python_top_level_await(python):
    outcome = python.execute('import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x\ny = await f(4)\n'
                             'task = asyncio.ensure_future(f(6))\nawait f(y + 1)')
    assert outcome.value == {'type': 'int', 'value': 5}
    assert python.execute('await task').value['value'] == 6
    error = python.execute('async def bad():\n    raise KeyError(1)\nawait bad()').error
    assert error['type'] == 'KeyError'
    assert [line for line in error['traceback'] if line.startswith('  File')] == [
        '  File "<cell 3>", line 3, in <module>', '  File "<cell 3>", line 2, in bad']
    assert python.execute('asyncio.run(f(3))').value['value'] == 3
    assert python.execute('async def g():\n    for i in range(2): yield i\n[i async for i in g()]').value['value'] == [0, 1]


def test_python_annotations_of_the_future_last(python):
    python.execute('from __future__ import annotations')
    assert python.execute('def f(x: Nowhere): pass\nf.__annotations__').value['value'] == {'x': 'Nowhere'}


def test_python_output_streams(python, tmp_path):
    python.ask('import os, sys, time\nprint("line")\nsys.stderr.write("50%\\r")\nsys.stderr.write("part")\n'
               'while not os.path.exists("go"): time.sleep(0.01)\nprint("tail", end="")')
    python.wait_for_output('line\n')
    python.wait_for_output('50%\rpart', 1)
    assert [name for name, _ in python.until('STARTED')] == ['STARTED']
    assert not select.select([python.channel], [], [], 0)[0]
    (tmp_path / 'go').write_text('')
    assert [name for name, _ in python.until('DONE')] == ['DONE']
    python.read_outputs()
    assert python.written[python.outputs[0]] == b'line\ntail'


def test_python_order_of_output_and_displays(python):
    outcome = python.execute('print("a", end="")\ndisplay(1)')
    assert outcome.kinds == 'STARTED DISPLAY DONE' and outcome.stdout == 'a'


def test_python_folder_and_environment(python, tmp_path):
    folder = tmp_path / 'sub'
    folder.mkdir()
    (folder / 'mine.py').write_text('here = 1')
    code = 'import os, mine\nmine.here, os.getcwd(), os.environ.get("A"), os.environ["HOME"]'
    home = python.execute('import os; os.environ["HOME"]').value['value']
    assert python.execute(code, cwd=str(folder), env={'A': 'é', 'HOME': '/x'}).value['value'] == [1, str(folder), 'é', '/x']
    assert python.execute(code).value['value'] == [1, str(folder), None, home]
    outcome = python.execute('never = 1', cwd='/nowhere/at/all')
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['type'] == 'FileNotFoundError'
    assert '/nowhere/at/all' in outcome.error['message']
    assert python.execute('never').error['type'] == 'NameError'


# ---- interrupts

@pytest.mark.parametrize('code', [
    'print("on", flush=True)\nwhile True: pass',
    'import time\nprint("on", flush=True)\ntime.sleep(1000)',
    'import asyncio\nasync def f():\n    print("on", flush=True)\n    await asyncio.sleep(1000)\nawait f()',
    'print("on", flush=True)\n!sleep 1000',
    'print("on", flush=True)\nx = !sleep 1000',
    'class R:\n    def _repr_html_(self):\n        print("on", flush=True)\n        while True: pass\nR()',
    'import threading\nprint("on", flush=True)\nthreading.Event().wait()',
])
def test_python_interrupt(python, code):
    python.execute('x = 1')
    python.ask(code)
    python.wait_for_output('on')
    python.interrupt()
    outcome = python.answer()
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['type'] == 'KeyboardInterrupt'
    assert 'session.py' not in outcome.stderr
    assert python.execute('x').value['value'] == 1


def test_python_interrupt_while_idle_is_ignored(python):
    for _ in range(3):
        python.wait_until_idle()
        python.interrupt()
        python.wait_until_idle()
        assert python.execute('1').value['value'] == 1
        python.ask('a b')
        python.interrupt()
        assert python.answer().kinds == 'SYNTAX DONE'
        python.wait_until_idle()
        assert python.execute('1').value['value'] == 1


def test_python_interrupt_of_what_was_just_asked_for_is_not_lost(python):
    """However early: the request is on the channel before the signal is sent."""
    for _ in range(50):
        python.ask('while True: pass')
        python.interrupt()
        assert python.answer().error['type'] == 'KeyboardInterrupt'


def test_python_interrupt_never_breaks_what_is_sent(python):
    for n in range(40):
        python.ask('try:\n    while True: display("x" * 300000)\nexcept KeyboardInterrupt: pass')
        time.sleep(0.001 * n)
        python.interrupt()
        python.answer()
    assert python.execute('1').value['value'] == 1


def test_python_a_handler_of_the_program_stays(python):
    python.execute('import signal, time\nsignal.signal(signal.SIGINT, lambda *a: seen.append(1))\nseen = []')
    python.wait_until_idle()
    python.interrupt()
    python.wait_until_idle()
    python.ask('print("on", flush=True)\nwhile not seen: time.sleep(0.01)\nseen')
    python.wait_for_output('on')
    python.interrupt()
    assert python.answer().value['value'] == [1]


# ---- processes and threads

def test_python_a_forked_child_does_not_answer(python):
    outcome = python.execute('import os\nif (pid := os.fork()) == 0:\n    display("child")\n    1 / 0\nos.waitpid(pid, 0)[1] >> 8')
    assert outcome.kinds == 'STARTED VALUE DONE' and outcome.value['value'] == 1
    assert 'ZeroDivisionError' in outcome.stderr
    outcome = python.execute('if (pid := os.fork()) == 0:\n    raise SystemExit(7)\nos.waitpid(pid, 0)[1] >> 8')
    assert outcome.value['value'] == 7
    assert python.execute('if (pid := os.fork()) == 0:\n    "x"\nelse: os.waitpid(pid, 0)').kinds == 'STARTED DONE'
    assert python.execute('2').value['value'] == 2


def test_python_children_do_not_inherit_the_channel(python):
    code = ('import subprocess\nsubprocess.run(["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, '
            'text=True).stdout.count("socket")')
    assert python.execute(code).value['value'] == 0


def test_python_multiprocessing_and_threads(python):
    code = ('import multiprocessing, concurrent.futures, threading\ndef square(x): return x * x\n'
            'with multiprocessing.Pool(2) as pool: a = pool.map(square, range(4))\n'
            'with concurrent.futures.ThreadPoolExecutor(2) as pool: b = list(pool.map(square, range(4)))\n'
            'with concurrent.futures.ProcessPoolExecutor(2) as pool: c = list(pool.map(square, range(4)))\n'
            't = threading.Thread(target=lambda: (display("thread"), print("from a thread")))\nt.start(); t.join()\n[a, b, c]')
    outcome = python.execute(code)
    assert outcome.kinds == 'STARTED DISPLAY VALUE DONE', outcome.stderr
    assert outcome.value['value'] == [[0, 1, 4, 9]] * 3 and outcome.stdout == 'from a thread\n'


def test_python_a_thread_that_shows_after_the_end_breaks_nothing(python):
    python.execute('import threading\ngo = threading.Event()\ndef late():\n    go.wait()\n    for i in range(2000): display(i)\n'
                   't = threading.Thread(target=late)\nt.start()')
    python.execute('go.set()')
    for _ in range(20):
        python.execute('1')
    assert python.execute('t.join()\n5').value['value'] == 5


# ---- what is not quite Python

def test_python_shell_commands(python):
    outcome = python.execute('word = "a  b"\nclass o: n = [3]\n!echo "{word}" $word {o.n[0]} {nothing} ${HOME:+home} $$word >&1; exit 3\n_exit_code')
    assert outcome.stdout == 'a  b a b 3 {nothing} home %s\n' % outcome.stdout.split()[-1] and outcome.value['value'] == 3
    assert python.execute('x = !printf "1\\n2"; echo 3 >&2\nx').value['value'] == ['1', '23']
    assert python.execute('for i in range(2):\n    !echo {i}').stdout == '0\n1\n'
    assert python.execute('!echo a \\\n  b\nprint("c")\n1/0').error['line'] == 4
    assert python.execute('def f(v):\n    !echo local {v}\nf(9)').stdout == 'local 9\n'


def test_python_text_may_be_indented_as_a_whole(python):
    outcome = python.execute('\n    x = 1\n    if x:\n        y = """a\n  b"""\n\n    !echo $x\n    y')
    assert (outcome.stdout, outcome.value['value']) == ('1\n', 'a\n  b')
    assert python.execute('  x = 1\n     y = 2').one('SYNTAX')['line'] == 2
    assert python.execute('  x =\n').one('SYNTAX')['line'] == 1


def test_python_text_that_is_python_is_never_changed(python):
    code = 's = """\n!no\n%no\n"""\nx = 7\ny = (x\n%4)\n'
    assert python.execute(code + '[s, y]').value['value'] == ['\n!no\n%no\n', 3]
    # The same beside lines that are replaced.
    assert python.execute('!true\n' + code + '[s, y, "#", """ " """]  # "\n').value['value'] == ['\n!no\n%no\n', 3, '#', ' " ']


def test_python_magics(python, tmp_path):
    folder = tmp_path / 'there'
    folder.mkdir()
    assert python.execute('%cd there').stdout == str(folder) + '\n'
    assert python.execute('%pwd').value['value'] == str(folder)
    assert python.execute('%cd -').stdout == str(tmp_path) + '\n'
    assert python.execute('%env CAISSON_A=1 2').stdout == 'env: CAISSON_A=1 2\n'
    assert python.execute('x = %env CAISSON_A\nx').value['value'] == '1 2'
    assert python.execute('%env').value['value']['CAISSON_A'] == '1 2'
    assert python.execute('%matplotlib inline').kinds == 'STARTED DONE'
    outcome = python.execute('%time y = sum([1, 2])\ny')
    assert outcome.value['value'] == 3 and 'Wall time: ' in outcome.stdout
    outcome = python.execute('%%time\nz = 4\n!echo in\nz')
    assert outcome.value['value'] == 4 and 'Wall time: ' in outcome.stdout and outcome.stdout.startswith('in\n')
    outcome = python.execute('%%bash\nfor i in 1 2; do\n  echo "$i"\ndone\n')
    assert outcome.stdout == '1\n2\n' and outcome.kinds == 'STARTED DONE'
    assert python.execute('%%bash\nexit 3').error['type'] == 'CalledProcessError'
    assert '-m pip' not in python.execute('%pip --version').stderr


@pytest.mark.parametrize('code, part', [('%nothing 1', '%nothing'), ('%%nothing\nx', '%%nothing'), ('x = %nothing', '%nothing')])
def test_python_unknown_magics_are_named(python, code, part):
    outcome = python.execute(code)
    assert outcome.kinds == 'STARTED ERROR DONE' and outcome.error['type'] == 'UsageError'
    assert part in outcome.error['message'] and '%cd' in outcome.error['message'] + '%cd'


def test_python_files_are_written_by_a_magic(python, tmp_path):
    assert python.execute('%%writefile a b.py\n!x = "%d" \\\ny').stdout == 'Writing a b.py\n'
    assert (tmp_path / 'a b.py').read_text() == '!x = "%d" \\\ny\n'
    assert python.execute('%%writefile -a "a b.py"\nz\n').stdout == 'Appending to a b.py\n'
    assert python.execute('name = "a b"\n%cat "{name}.py"').stdout == '!x = "%d" \\\ny\nz\n'
    assert python.execute('%%file {name}.py\n\n').stdout == 'Overwriting a b.py\n'
    assert (tmp_path / 'a b.py').read_text() == '\n'
    assert python.execute('%ls').stdout == 'a b.py\n' and python.execute('%ls -a').stdout == './\n../\na b.py\n'
    assert python.execute('%mkdir new\n%mv a\\ b.py new\n%ls new').stdout == 'a b.py\n'
    assert python.execute('%%writefile none/a.py\nx').error['type'] == 'FileNotFoundError'
    assert 'needs the name of a file' in python.execute('%%writefile\nx').error['message']


def test_python_statements_are_timed(python):
    result = r'^\d+(\.\d+)? [mµn]?s ± \d+(\.\d+)? [mµn]?s per loop \(mean ± std\. dev\. of %s, %s each\)\n$'
    assert re.search(result % ('3 runs', '10 loops'), python.execute('x = 1\n%timeit -n 10 -r3 y = x + 1').stdout.splitlines(True)[-1])
    assert re.search(result % ('1 run', '1 loop'), python.execute('%%timeit -n1 -r 1 z = 2\nfor i in range(x):\n    z += i').stdout.splitlines(True)[-1])
    assert re.search(result % ('7 runs', '1 loop'), python.execute('import time\n%timeit time.sleep(0.21)').stdout.splitlines(True)[-1])
    outcome = python.execute('seen = []\nr = %timeit -qo -n 2 -r 2 seen.append(1)\n[r.loops, r.repeat, len(r.all_runs), r.best <= r.average <= r.worst, len(seen)]')
    assert (outcome.value['value'], outcome.stdout) == ([2, 2, 2, True, 4], '')
    assert python.execute('"y" in globals() or "z" in globals()').value['value'] is False
    assert python.execute('%timeit 1 / 0').error['type'] == 'ZeroDivisionError'
    assert python.execute('%timeit').error['type'] == 'UsageError' == python.execute('%%timeit -n 1\n').error['type']


def test_python_variables_are_listed(python):
    assert python.execute('%who').stdout == 'Interactive namespace is empty.\n'
    python.execute('b = 1\na = [1, 2]\n_hidden = 3\nimport math')
    assert python.execute('%who').stdout.split() == ['a', 'b', 'math'] and python.execute('%who int').stdout.split() == ['b']
    assert python.execute('%who float').stdout == 'No variables match your requested type.\n'
    assert python.execute('%who_ls list int').value['value'] == ['a', 'b']
    assert [line.split() for line in python.execute('%whos int list').stdout.splitlines()[2:]] == [['a', 'list', 'n=2'], ['b', 'int', '1']]


def test_python_texts_are_shown_by_magics(python):
    for name, kind in (('html', 'text/html'), ('markdown', 'text/markdown'), ('latex', 'text/latex'), ('svg', 'image/svg+xml')):
        assert python.execute(f'%%{name}\n<b>x</b>\n').displays[0]['data'][kind] == '<b>x</b>\n'


# --------------------------------------------------------------------------------------------------- what get_ipython() returns

def test_python_the_shell_has_what_libraries_look_for(python):
    outcome = python.execute('''
ip = get_ipython()
import IPython
from IPython.core.getipython import get_ipython as other
assert ip is get_ipython() is IPython.get_ipython() is other()
assert __IPYTHON__ and IPython.version_info >= (8,)
assert ip.__class__.__name__ == 'ZMQInteractiveShell' and isinstance(ip, IPython.core.interactiveshell.InteractiveShell)
assert IPython.core.interactiveshell.InteractiveShell.initialized()
assert 'IPKernelApp' not in ip.config and ip.config.InlineBackend == {} and ip.kernel.shell is ip
assert ip.user_ns is globals() and ip.ast_node_interactivity == 'last_expr'
ip.push({'pushed': 1})
assert pushed == 1 and ip.ev('pushed + 1') == 2 and ip.run_cell('pushed + 2').result == 3
assert ip.run_line_magic('pwd', '') == ip.magic('%pwd') and ip.find_line_magic('nothing') is None
ip.run_cell_magic('writefile', 'of_shell.txt', 'x')
ip.system('cat of_shell.txt; rm of_shell.txt')
assert ip.getoutput('echo {pushed}; echo 2') == ['1', '2']
ip.display_pub.publish({'text/plain': 'published'}, {})
''')
    assert outcome.error is None, outcome.stderr
    assert outcome.stdout == 'Writing of_shell.txt\nx\n' and outcome.displays[0]['data'] == {'text/plain': 'published'}
    assert 'get_ipython' in python.execute('import builtins\ndir(builtins)').value['value']
    failed = python.execute('ip.run_cell("1/0").success')
    assert failed.value['value'] is False and 'ZeroDivisionError' in failed.stderr and '/python/' not in failed.stderr


def test_python_the_program_has_its_own_magics(python):
    python.execute('from IPython.core.magic import register_line_magic, register_cell_magic\n@register_line_magic\ndef twice(line): return line * 2\n'
                   '@register_cell_magic("both")\ndef _(line, cell): return [line, cell]')
    assert python.execute('%twice ab').value['value'] == 'abab' and python.execute('%%both a b\nc\n').value['value'] == ['a b', 'c\n']
    assert '%twice' in python.execute('%nothing').error['message'] and '%%both' in python.execute('%lsmagic').stdout


def test_python_the_program_is_called_before_and_after_executions(python):
    python.execute('ip = get_ipython()\nimport inspect\nip.events.register("pre_execute", lambda: print("before", len(inspect.stack())))\n'
                   'ip.events.register("post_execute", lambda: 1 / 0)')
    outcome = python.execute('print("now")')
    assert outcome.stdout == 'before 1\nnow\n' and outcome.error is None
    assert 'ZeroDivisionError' in outcome.stderr and '/python/' not in outcome.stderr


def test_python_all_expressions_are_shown_where_the_program_wants_that(python):
    python.execute('from IPython.core.interactiveshell import InteractiveShell\nget_ipython()\nInteractiveShell.ast_node_interactivity = "all"')
    outcome = python.execute('1\nx = 2\n"a"\nNone\nx\n')
    assert [one['data'] for one in outcome.displays] == [{'text/plain': '1'}, {'text/plain': "'a'"}] and outcome.value['value'] == 2
    python.execute('get_ipython().ast_node_interactivity = "none"')
    assert python.execute('1').value is None


def test_python_functions_for_a_type_make_its_media_types(python):
    outcome = python.execute('class T: pass\nall = get_ipython().display_formatter.formatters\nall["text/html"].for_type(T, lambda one: "<t>")\n'
                             'all["text/plain"].for_type("__main__.T", lambda one, p, cycle: p.text("T"))\nT()')
    assert outcome.data == {'text/html': '<t>', 'text/plain': 'T'}


# ---------------------------------------------------------------------------------------------------------- warnings

WARNING = 'import warnings\nclass W:\n    def %s(self, *_, **__):\n        warnings.warn("w", stacklevel=2)\n        return "r"\n'


@pytest.mark.parametrize('method, use, line', [
    ('__repr__', 'W()', 8), ('_repr_html_', 'W()', 8), ('_repr_html_', 'display(W())', 8), ('_repr_html_', 'if 1:\n    display(W())\n\n0', 9),
    ('__repr__', 'display([W()])', 8),
])
def test_python_a_warning_names_the_program_and_no_file_of_ours(python, method, use, line):
    outcome = python.execute(WARNING % method + '\n\n' + use)
    assert outcome.stderr.startswith(f'<cell 1>:{line}: UserWarning: w\n') and '/python/' not in outcome.stderr


def test_python_a_missing_glyph_is_the_programs(python):
    needs(python, 'matplotlib')
    for cell, use in enumerate(('plt.show()', 'fig.show()', 'fig;', 'display(fig)', 'x = 1'), 2):
        outcome = python.execute('import matplotlib.pyplot as plt; fig = plt.figure()\nfig.suptitle("\u4e2d")' + '\n' * cell + use)     # told once a line
        assert re.findall(r'^(.*): UserWarning: Glyph', outcome.stderr, re.M) == [f'<cell {cell}>:{cell + 2}'], outcome.stderr
        assert '/python/display' not in outcome.stderr


def test_python_syntax_error_beside_a_command_has_its_own_line(python):
    mistake = python.execute('!true \\\n x\nif x\n').one('SYNTAX')
    assert (mistake['line'], mistake['text']) == (3, 'if x')


# ---- what is shown

def test_python_representations(python):
    python.execute('class A:\n    def _repr_html_(self): return "<b>é</b>"\n    def _repr_png_(self): return b"\\x89PNG"\n'
                   '    def _repr_json_(self): return {"a": [1, None]}\n    def _repr_latex_(self): return None\n'
                   '    def _repr_svg_(self): return "<svg/>", {"width": 3}\n    def _repr_markdown_(self): raise SystemExit(1)\n'
                   '    def __repr__(self): return "an A"')
    expected = {'text/plain': 'an A', 'text/html': '<b>é</b>', 'image/png': 'iVBORw==', 'application/json': {'a': [1, None]},
                'image/svg+xml': '<svg/>'}
    outcome = python.execute('display(A(), A())\nA()')
    assert outcome.kinds == 'STARTED DISPLAY DISPLAY VALUE DONE'
    assert outcome.displays == [{'data': expected, 'metadata': {'image/svg+xml': {'width': 3}}}] * 2
    assert outcome.data == expected and outcome.value == {'type': 'A', 'repr': 'an A'}
    # The class itself has none of these.
    assert python.execute('A').data == {'text/plain': "<class '__main__.A'>"}


@pytest.mark.parametrize('code, expected', [
    ('class M:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {"text/plain": "t", "x/y": b"1", "a+json": {"b": 1}}\nM()',
     {'text/plain': 't', 'x/y': 'MQ==', 'a+json': {'b': 1}}),
    ('class M:\n    def _repr_mimebundle_(self, **k): return ({"text/html": "h"}, {})\n    def __repr__(self): return "r"\nM()',
     {'text/plain': 'r', 'text/html': 'h'}),
    ('class M:\n    def _repr_mimebundle_(self, **k): raise OSError\n    def __repr__(self): raise OSError\nM()',
     {'text/plain': '<M object; its __repr__ raised OSError>'}),
    ('class M:\n    def __getattr__(self, name): return lambda *a, **k: 1 / 0\n    def __repr__(self): return "r"\nM()', {'text/plain': 'r'}),
    ('class T(type):\n    def __getattribute__(cls, name): raise OSError\nclass M(metaclass=T):\n    def __repr__(self): return "r"\nM()',
     {'text/plain': 'r'}),
])
def test_python_representations_that_are_odd(python, code, expected):
    assert python.execute(code).data == expected


def test_python_names_of_ipython(python):
    if python.execute('import importlib.metadata as m\n"ipython" in [d.name.lower() for d in m.distributions()]').value['value']:
        pytest.skip('needs a Python without IPython')
    outcome = python.execute('from IPython.display import display, HTML, Image, Markdown, JSON, SVG, Latex, clear_output\n'
                             'import IPython\nclear_output(wait=True)\n'
                             'for one in HTML("<p>"), Markdown("# m"), JSON({"a": 1}), SVG("<svg/>"), Latex("$x$"), '
                             'Image(data=b"\\x89PNG\\r\\n\\x1a\\n", width=3): display(one)\n'
                             'display({"text/x": "raw"}, raw=True)\ntype(IPython.get_ipython()).__name__')
    assert outcome.value['value'] == 'ZMQInteractiveShell', outcome.stderr
    shown = [{kind: text for kind, text in one['data'].items() if kind != 'text/plain'} for one in outcome.displays]
    assert shown == [{'text/html': '<p>'}, {'text/markdown': '# m'}, {'application/json': {'a': 1}}, {'image/svg+xml': '<svg/>'},
                     {'text/latex': '$x$'}, {'image/png': base64.b64encode(PNG).decode()}, {'text/x': 'raw'}]
    assert outcome.displays[5]['metadata'] == {'image/png': {'width': 3}}


def test_python_an_installed_ipython_comes_first(python, tmp_path):
    (tmp_path / 'IPython.py').write_text('mine = 1')
    assert python.execute('import IPython\nIPython.mine').value['value'] == 1


def test_python_limits(python_with):
    python = python_with('value_max=1000,display_max=5000,displays_max=3,unknown=7')
    outcome = python.execute('display("x" * 3000)\nclass H:\n    def _repr_html_(self): return "y" * 10000\ndisplay(H())\n'
                             'class J:\n    def _repr_json_(self): return [1] * 10000\ndisplay(J())\ndisplay(4)\ndisplay(5)\nH()')
    first, second, third = outcome.displays
    assert first['data']['text/plain'].startswith("'xxx") and first['data']['text/plain'].endswith('(truncated)')
    assert len(first['data']['text/plain']) < 1100
    for one in second, third, outcome.one('VALUE'):
        assert list(one['data']) == ['text/plain'] and 'display_max=5000' in one['data']['text/plain']
    assert outcome.stderr.count('displays_max=3') == 1
    assert python.execute('display(1)').kinds == 'STARTED DISPLAY DONE'
    assert python.execute('"x" * 2000').value['truncated'] is True
    assert python.execute('"x" * 2000', value_max=5000).value['value'] == 'x' * 2000


def test_python_large_documents_come_in_pieces(python):
    python.execute('class H:\n    def _repr_html_(self): return "é" * 200000\n')
    outcome = python.execute('# ' + 'c' * 200000 + '\ndisplay(H())\nH()')
    assert outcome.displays[0]['data']['text/html'] == outcome.data['text/html'] == 'é' * 200000


def test_python_figures(python):
    needs(python, 'matplotlib')
    outcome = python.execute('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint(plt.get_fignums())\n'
                             'plt.figure(figsize=(2, 1)).add_subplot()\nplt.figure(figsize=(1, 2)).add_subplot()\nplt.figure();')
    assert outcome.kinds == 'STARTED DISPLAY DISPLAY DISPLAY DONE', outcome.stderr
    assert (outcome.stdout, outcome.stderr) == ('[]\n', '')
    sizes = []
    for one in outcome.displays:
        assert sorted(one['data']) == [CHART, 'image/png', 'text/plain'] and one['data']['text/plain'].startswith('<Figure size')
        picture = base64.b64decode(one['data']['image/png'])
        assert picture.startswith(PNG)
        sizes.append((int.from_bytes(picture[16:20], 'big'), int.from_bytes(picture[20:24], 'big')))
    assert sizes[1][0] > sizes[1][1] and sizes[2][0] < sizes[2][1]
    assert python.execute('plt.get_fignums()').value['value'] == []
    outcome = python.execute('fig, ax = plt.subplots()\nfig', svg=True)
    assert outcome.kinds == 'STARTED VALUE DONE'
    assert sorted(outcome.data) == [CHART, 'image/png', 'image/svg+xml', 'text/plain'] and '<svg' in outcome.data['image/svg+xml']
    outcome = python.execute('plt.plot([1])\n1/0')
    assert outcome.kinds == 'STARTED DISPLAY ERROR DONE'
    outcome = python.execute('fig, ax = plt.subplots()\nfig.show()\nax.set_title("$\\\\nothing$");')
    assert outcome.kinds == 'STARTED DISPLAY DONE'


def test_python_a_backend_that_the_program_chose_is_shown_at_the_end(python):
    needs(python, 'matplotlib')
    outcome = python.execute('import matplotlib\nmatplotlib.use("Agg")\nimport matplotlib.pyplot as plt\nplt.plot([1]);')
    assert outcome.kinds == 'STARTED DISPLAY DONE' and 'image/png' in outcome.displays[0]['data']


def test_python_other_programs_do_not_see_our_backend(python):
    needs(python, 'matplotlib')
    outcome = python.execute('import sys\n!{sys.executable} -c "import matplotlib.pyplot as p; p.plot([1]); print(p.get_backend())"')
    assert outcome.stdout.strip().lower() == 'agg', outcome.stderr


def test_python_a_figure_that_cannot_be_drawn_is_told(python):
    needs(python, 'matplotlib')
    outcome = python.execute('import matplotlib.pyplot as plt\nplt.title("$\\\\nothing$")\n7')
    assert python.execute('plt.get_fignums()').value['value'] == []
    assert outcome.value['value'] == 7 and 'figure' in outcome.stderr and 'ValueError' in outcome.stderr


def test_python_tables(python):
    needs(python, 'pandas')
    outcome = python.execute('import pandas as pd\ndf = pd.DataFrame({"a": range(3), "é": ["x", None, "z"]})\ndf')
    assert outcome.data['text/html'].startswith('<div>') and '<td>z</td>' in outcome.data['text/html']
    assert outcome.data['application/json'] == {'columns': ['a', 'é'], 'index': [0, 1, 2], 'data': [[0, 'x'], [1, None], [2, 'z']]}
    assert outcome.data['text/plain'].startswith('   a')
    outcome = python.execute('display(pd.Series(range(5000), name="s"))')
    shown = outcome.displays[0]
    assert len(shown['data']['application/json']['data']) == 1000 and '<table' in shown['data']['text/html']
    assert shown['metadata'] == {'application/json': {'rows': 5000, 'truncated': True}}


def test_python_columns_of_tables(python):
    needs(python, 'pandas')
    outcome = python.execute("""
    import pandas as pd
    from decimal import Decimal
    pd.DataFrame({'n': [1, None], 'at': pd.to_datetime(['2024-01-02', None]), 'x': [float('inf'), 2], 3: [Decimal('1.5'), {'k': [1]}]})""")
    assert outcome.data[TABLE] == {'n': [1.0, None], 'at': ['2024-01-02T00:00:00', None], 'x': ['inf', 2.0], '3': ['1.5', {'k': [1]}]}
    assert TABLE not in python.execute('pd.DataFrame({"a": range(200001)})').data
    assert TABLE not in python.execute('pd.DataFrame({"a": ["x" * 5000000]})').data
    assert TABLE not in python.execute('pd.Series([1])').data


def test_python_pictures(python, tmp_path):
    needs(python, 'PIL')
    outcome = python.execute('from PIL import Image\nimage = Image.new("RGB", (2, 2))\nimage')
    assert base64.b64decode(outcome.data['image/png']).startswith(PNG)
    outcome = python.execute('image.show()')
    assert outcome.kinds == 'STARTED DISPLAY DONE' and 'image/png' in outcome.displays[0]['data']
    path = tmp_path / 'a.png'
    code = 'image.save(%r)' % str(path)
    assert python.execute(code).kinds == 'STARTED DONE'
    outcome = python.execute(code, show_saved=True)
    assert outcome.kinds == 'STARTED DISPLAY DONE' and 'image/png' in outcome.displays[0]['data'] and path.read_bytes().startswith(PNG)
    assert python.execute('import io\nimage.save(io.BytesIO(), "png")', show_saved=True).kinds == 'STARTED DONE'


# ---- charts

def chart_of(python, code):
    outcome = python.execute('import matplotlib.pyplot as plt\n' + code + '\nplt.show()')
    assert outcome.stderr == '', outcome.stderr
    return outcome.displays[0]['data'][CHART]


LABELS = {'x_label': None, 'x_unit': None, 'y_label': None, 'y_unit': None}


def test_python_charts_of_lines(python):
    needs(python, 'matplotlib')
    chart = chart_of(python, """import datetime
days = [datetime.date(2023, 9, 1) + datetime.timedelta(days=one) for one in range(3)]
plt.plot(days, [1, 2.5, float('nan')], label='up')
plt.plot(days, [3, 2, 1])
plt.axhline(2)
plt.grid(True)
plt.title('T')
plt.xlabel('Time (s)')
plt.ylabel('Level [Hz]')""")
    assert (chart['type'], chart['title']) == ('line', 'T')
    assert [chart[name] for name in LABELS] == ['Time (s)', 's', 'Level [Hz]', 'Hz']
    assert (chart['x_scale'], chart['y_scale']) == ('datetime', 'linear')
    assert all(isinstance(tick, str) for tick in [*chart['x_ticks'], *chart['x_tick_labels'], *chart['y_tick_labels']])
    assert all(isinstance(tick, float) for tick in chart['y_ticks'])
    assert chart['elements'] == [
        {'label': 'up', 'points': [['2023-09-01', 1.0], ['2023-09-02', 2.5], ['2023-09-03', None]]},
        {'label': 'Line 1', 'points': [['2023-09-01', 3.0], ['2023-09-02', 2.0], ['2023-09-03', 1.0]]}]


@pytest.mark.parametrize('code, scales', [
    ('plt.plot([1, 2], ["a", "b"])', ('linear', 'categorical')),
    ('plt.plot([1, 20])\nplt.yscale("log")', ('linear', 'log')),
    ('plt.plot([.1, .2])\nplt.xscale("symlog")\nplt.yscale("logit")', ('symlog', 'logit')),
    ('plt.plot([1, 2])\nplt.xticks([0, 1], ["p", "q"])', ('categorical', 'linear')),
])
def test_python_charts_have_scales(python, code, scales):
    needs(python, 'matplotlib')
    chart = chart_of(python, code)
    assert (chart['x_scale'], chart['y_scale']) == scales


def test_python_charts_of_markers(python):
    needs(python, 'matplotlib')
    chart = chart_of(python, 'plt.scatter([1, 2], [3, 4], label="d")\nplt.axvline(1)\nplt.grid(True)')
    assert chart['type'] == 'scatter' and chart['elements'] == [{'label': 'd', 'points': [[1.0, 3.0], [2.0, 4.0]]}]


def test_python_charts_of_bars(python):
    needs(python, 'matplotlib')
    chart = chart_of(python, 'plt.bar(["a", "b"], [1, 1])\nplt.bar(["a", "b"], [3, 4], bottom=[1, 1], label="g")\nplt.ylabel("n")')
    assert chart == {'type': 'bar', 'title': None, **LABELS, 'y_label': 'n', 'elements': [
        {'label': 'a', 'group': 'Group 0', 'value': 1.0}, {'label': 'b', 'group': 'Group 0', 'value': 1.0},
        {'label': 'a', 'group': 'g', 'value': 3.0}, {'label': 'b', 'group': 'g', 'value': 4.0}]}
    chart = chart_of(python, 'plt.barh(["a", "b"], [1, 2])\nplt.xlabel("n (kg)")')
    assert (chart['x_label'], chart['y_label'], chart['y_unit']) == (None, 'n (kg)', 'kg')
    assert [(one['label'], one['value']) for one in chart['elements']] == [('a', 1.0), ('b', 2.0)]


def test_python_charts_of_wedges(python):
    needs(python, 'matplotlib')
    chart = chart_of(python, 'plt.pie([90, 10], labels=["p", "q"], autopct="%1.1f%%", startangle=90)')
    assert chart == {'type': 'pie', 'title': None, 'elements': [{'label': 'p', 'angle': 324.0, 'radius': 1.0},
                                                                {'label': 'q', 'angle': 36.0, 'radius': 1.0}]}


@pytest.mark.parametrize('standing', [True, False])
def test_python_charts_of_boxes(python, standing):
    needs(python, 'matplotlib')
    chart = chart_of(python, """plt.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87], [2, 2, 2]], labels=["a", "b", "c"],
            patch_artist=True, vert=%r)\nplt.%slabel("v")""" % (standing, 'y' if standing else 'x'))
    assert (chart['type'], chart['x_label'], chart['y_label']) == ('box_and_whisker', None, 'v')
    names = 'label', 'min', 'first_quartile', 'median', 'third_quartile', 'max', 'outliers'
    assert [tuple(one[name] for name in names) for one in chart['elements']] == [
        ('a', 78.0, 85.0, 88.0, 90.0, 92.0, []), ('b', 84.0, 84.75, 88.0, 90.5, 95.0, [76.0]), ('c', 2.0, 2.0, 2.0, 2.0, 2.0, [])]


def test_python_charts_of_several_axes_and_of_others(python):
    needs(python, 'matplotlib')
    chart = chart_of(python, 'fig, both = plt.subplots(1, 2)\nboth[0].plot([1])\nboth[1].imshow([[1]])\nfig.suptitle("S")')
    assert (chart['type'], chart['title']) == ('superchart', 'S')
    assert [one['type'] for one in chart['elements']] == ['line', 'unknown']
    assert chart['elements'][1] == {'type': 'unknown', 'title': None, 'elements': []}


def test_python_a_chart_with_too_many_values_is_left_out(python):
    needs(python, 'matplotlib')
    data = python.execute('import matplotlib.pyplot as plt\nplt.plot(range(500000))\nplt.show()').displays[0]['data']
    assert CHART not in data and 'image/png' in data


def test_python_a_figure_of_a_failed_execution_has_a_chart(python):
    needs(python, 'matplotlib')
    outcome = python.execute('import datetime\nimport matplotlib.pyplot as plt\nplt.plot([datetime.date(2023, 9, 1)], [1, 2])')
    assert outcome.error['type'] == 'ValueError' and outcome.displays[0]['data'][CHART]['x_scale'] == 'datetime'


# ---- the end

def test_python_ends_with_the_channel(python):
    python.execute('import atexit\natexit.register(print, "bye")')
    assert python.end() == 0


@pytest.mark.parametrize('packet', [b'x', b'CSN1\x09\0\0\0\x05\0\0\0{}', b'CSN1\x03\0\0\0\0\0\0\0', b'CSN1\x09\0\0\0\x02\0\0\0{}',
                                    b'CSN1\x09\0\0\0\x01\0\0\0[', b'CSN1\x09\x02\0\0\x0b\0\0\0{"code":"1"}'])
def test_python_a_broken_frame_ends_it(python, packet):
    python.channel.send(packet)
    with pytest.raises(Ended):
        python.receive()
    assert python.status() == 70
    assert b'context.py: ' in python.written[python.outputs[1]]
    python.channel.close()


def test_python_without_a_channel_it_says_so():
    done = subprocess.run([*COMMANDS['python'], ''], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, env=ENVIRONMENT)
    assert done.returncode == 70 and 'channel' in done.stderr


def test_python_forks_of_the_zygote_are_warm_unless_they_must_not_be(zygote, tmp_path):
    code = f'import gc\n{IS_WARM}'
    context = Forked(zygote, tmp_path, '')
    assert context.execute(code).value['value'] is True
    assert context.end() == 0
    context = Forked(zygote, tmp_path, '', environment={'PYTHONHASHSEED': '1'})
    assert context.execute(code).value['value'] is False
    assert context.end() == 0
    (tmp_path / 'json.py').write_text('')
    context = Forked(zygote, tmp_path, '')
    assert context.execute(code).value['value'] is False
    assert context.end() == 0


# ---------------------------------------------------------------------------- one event loop for all executions of Python

def test_python_tasks_of_one_execution_are_awaited_in_another(python):
    context = python
    first = context.execute('import asyncio\nasync def g(): return 3\nt = asyncio.ensure_future(g())')
    assert first.error is None and first.stderr == ''
    assert context.execute('await t').value['value'] == 3
    assert context.execute('u = asyncio.create_task(g())\nu.done()').value['value'] is False
    assert context.execute('u.result()').value['value'] == 3
    assert context.execute('asyncio.get_event_loop() is asyncio.get_running_loop() is u.get_loop()').value['value'] is True


def test_python_a_task_goes_on_between_executions(python):
    python.execute('import asyncio\nseen = []\nasync def g():\n    for n in range(3):\n        seen.append(n)\n        await asyncio.sleep(0.02)\n'
                   't = asyncio.create_task(g())')
    time.sleep(0.5)
    assert python.execute('seen, t.done()').value['value'] == [[0, 1, 2], True]


def test_python_asyncio_run_works_at_the_top_level_as_well(python):
    python.execute('import asyncio\nasync def g(): return asyncio.get_running_loop()\nt = asyncio.create_task(g())')
    assert python.execute('asyncio.run(g()) is not t.get_loop()').value['value'] is True
    assert python.execute('asyncio.new_event_loop().run_until_complete(g()) is not t.get_loop()').value['value'] is True
    assert python.execute('await t is t.get_loop()').value['value'] is True
    assert python.execute('asyncio.create_task(g()).get_loop() is t.get_loop()').value['value'] is True


def test_python_a_task_that_fails_between_executions_ends_nothing(python):
    python.execute('import asyncio\nasync def g():\n    await asyncio.sleep(0.01)\n    raise SystemExit(3)\nt = asyncio.create_task(g())')
    time.sleep(0.2)
    assert python.execute('1 + 1').value['value'] == 2


# -------------------------------------------------------------------------- frames, lines and folders of an execution

def test_python_an_execution_sees_its_own_frames_alone(python):
    execution = python.execute('import inspect, sys, traceback\ndef f(): return [one.filename for one in inspect.stack()]\n'
                               'print(f(), sys._getframe().f_back)\ntraceback.print_stack()', name='<mine>')
    assert execution.stdout == "['<mine>', '<mine>'] None\n"
    assert execution.stderr.count('File') == 1


@pytest.mark.parametrize('end', ['', '\n', '\r\n'])
def test_python_marks_are_below_the_expression_whatever_ends_the_text(python, end):
    execution = python.execute('x = [1, 2]; y = "\x0c\u2028"\n1 + x[5]' + end, name='<mine>')
    line, marks = execution.stderr.split('\n')[2:4]
    assert line[marks.index('~'):].startswith('x[5]')


def test_python_a_coroutine_that_is_not_awaited_is_told_with_the_line_of_the_execution(python):
    python.execute('async def f(): pass')
    python.execute('1\nf()', name='<mine>')
    execution = python.execute('2', name='<next>')
    assert '/python/' not in execution.stderr and 'never awaited' in execution.stderr and execution.stderr.startswith('<next>:1:')


def test_python_a_user_site_that_is_made_later_is_found(python, tmp_path):
    code = ('import os, site\nsite.USER_SITE = %r\nsite.ENABLE_USER_SITE = True\nos.makedirs(site.USER_SITE)\n'
            'open(site.USER_SITE + "/made_later.py", "w").write("x = 4")\n' % str(tmp_path / 'site'))
    assert python.execute(code + 'import made_later\nmade_later.x').value['value'] == 4
    assert python.execute('import sys\nsys.path.index(site.USER_SITE) < min(map(sys.path.index, [e for e in site.getsitepackages() '
                          'if e in sys.path]), default=99)').value['value'] is True
