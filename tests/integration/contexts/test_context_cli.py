"""caisson context, against a daemon: interpreters whose variables last, from the command line."""

import json
import signal
import subprocess

import pytest

from cli import CAISSON, checked
from daemon import Daemon


@pytest.fixture(scope='module')
def daemon(tmp_path_factory):
    one = Daemon(tmp_path_factory.mktemp('daemon')).ready()
    yield one
    one.stop(signal.SIGTERM)


@pytest.fixture(scope='module')
def sandbox(daemon):
    return daemon.caisson('sandbox', 'create').out.strip()


@pytest.fixture
def context(daemon, sandbox):
    done = daemon.caisson('context', 'create', sandbox)
    assert done.status == 0, done.err
    yield done.out.strip()
    daemon.caisson('context', 'close', done.out.strip())


def run(daemon, context, code, *args, **more):
    return daemon.caisson('context', 'run', *args, context, '-c', code, **more)


def test_variables_last_and_the_value_is_shown(daemon, context):
    done = run(daemon, context, 'x = 41')
    assert (done.status, done.out, done.err) == (0, '', '')
    done = run(daemon, context, 'print("first"); x + 1')
    assert (done.status, done.out, done.err) == (0, 'first\n42\n', '')
    assert run(daemon, context[:12], '"text"').out == "'text'\n"


def test_a_program_comes_from_a_file_or_from_standard_input(daemon, context, tmp_path):
    (tmp_path / 'program.py').write_text('y = 6\ny * 7\n')
    assert daemon.caisson('context', 'run', context, tmp_path / 'program.py').out == '42\n'
    assert daemon.caisson('context', 'run', context, stdin=b'print(y)').out == '6\n'
    assert daemon.caisson('context', 'run', context, '-', stdin=b'print(y + 1)').out == '7\n'
    done = daemon.caisson('context', 'run', context, tmp_path / 'nix')
    assert done.status == 64 and 'nix' in done.err
    assert daemon.caisson('context', 'run', context, tmp_path / 'program.py', '-c', '1').status == 64


def test_errors_are_shown_and_the_context_lives_on(daemon, context):
    run(daemon, context, 'x = 1')
    done = run(daemon, context, '1 / 0')
    assert done.status == 1 and 'ZeroDivisionError' in done.err and done.out == ''
    done = run(daemon, context, 'def (')
    assert done.status == 1 and 'SyntaxError' in done.err
    assert run(daemon, context, 'x').out == '1\n'


def test_the_record_is_that_of_a_run(daemon, context):
    done = run(daemon, context, 'print("out"); [1, 2]', '--json')
    record = checked(done.out)
    assert (record['status'], record['stdout'], record['result']['value']) == ('completed', 'out\n', [1, 2])


def test_a_long_record_is_whole(daemon, context):
    done = run(daemon, context, 'print("x" * 900000); print("y" * 50000)', '--json')
    assert len(json.loads(done.out)['stdout']) == 950002
    done = run(daemon, context, 'import sys\nfor i in range(30): print("x" * 99999)')
    assert done.out == ('x' * 99999 + '\n') * 30


def test_a_time_out_is_that_of_the_execution(daemon, context):
    done = run(daemon, context, 'import time; time.sleep(100)', '--timeout', '1s')
    assert done.status == 124


def test_an_interrupt_is_for_what_goes_on(daemon, context):
    run(daemon, context, 'x = 5')
    env = {**daemon.env, 'CAISSON_ENGINE_SOCKET': str(daemon.path)}
    process = subprocess.Popen([CAISSON, 'context', 'run', context, '-c', 'import time; print("here"); time.sleep(100)'], env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout.readline() == b'here\n'
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 1
    assert b'KeyboardInterrupt' in process.stderr.read()
    process = subprocess.Popen([CAISSON, 'context', 'run', context, '-c', 'print("here"); time.sleep(100)'], env=env, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'here\n'
    assert daemon.caisson('context', 'interrupt', context).status == 0
    assert process.wait(60) == 1
    assert run(daemon, context, 'x').out == '5\n'


def test_what_is_displayed_is_shown_as_text(daemon, context):
    done = run(daemon, context, 'display("shown")')
    assert done.status == 0 and "'shown'" in done.out, (done.out, done.err)


def test_contexts_are_listed_restarted_and_closed(daemon, sandbox, context):
    other = daemon.caisson('context', 'create', '-l', 'javascript', '--cwd', '/tmp', '--env', 'A=b', sandbox).out.strip()
    assert run(daemon, other, 'process.cwd() + process.env.A').out == "'/tmpb'\n"
    listed = json.loads(daemon.caisson('context', 'list', '--json', sandbox).out)
    assert {one['id']: one['language'] for one in listed} == {context: 'python', other: 'javascript'}
    table = daemon.caisson('context', 'list').out
    assert context in table and other in table
    run(daemon, context, 'x = 1')
    assert daemon.caisson('context', 'restart', context).status == 0
    assert 'NameError' in run(daemon, context, 'x').err
    assert daemon.caisson('context', 'close', other).status == 0
    assert other not in daemon.caisson('context', 'list').out
    for command in (('close', other), ('restart', other), ('interrupt', other), ('run', other, '-c', '1'), ('run', 'zzz', '-c', '1'), ('create', 'zzz')):
        done = daemon.caisson('context', *command)
        assert done.status == 64 and 'there is no' in done.err, (command, done.err)
    done = daemon.caisson('context', 'create', '-l', 'cobol', sandbox)
    assert done.status in (64, 125) and 'cobol' in done.err
