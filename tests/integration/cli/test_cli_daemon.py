"""The command line as a client of caissond: the same over both roads, and what goes which way."""

import base64
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from cli import CAISSON, caisson, checked, environment, write
from daemon import ASK, Daemon, commands, frame, until


@pytest.fixture(scope='module')
def place():
    folder = Path(tempfile.mkdtemp(prefix='caissond-'))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope='module')
def daemon(place):
    one = Daemon(place).ready()
    yield one
    assert one.stop(signal.SIGTERM) == 0


@pytest.fixture
def own(tmp_path_factory):
    """A daemon that the test may treat badly."""
    folder = Path(tempfile.mkdtemp(prefix='caissond-'))
    one = Daemon(folder).ready()
    yield one
    one.stop()
    shutil.rmtree(folder)


def way(done):
    """'daemon', or why it ran alone."""
    words = re.search(r'^caisson: (by way of the daemon|running alone: (.*))', done.err, flags=re.M)
    return words[2] or 'daemon'


# ---- the same over both roads ----

SAME = {
    'output and status': ['-l', 'bash', '-c', 'echo out; echo err >&2; exit 3'],
    'any bytes': ['-l', 'python', '-c', r'import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stderr.buffer.write(b"\xff\0")'],
    'a value': ['-l', 'python', '-c', '{"stdout_base64": [1, 2.5, "\\0é", None], "stdout": {"a": 10**17, "b": 0.1}}'],
    'a deep value': ['-l', 'python', '-c', 'x = []\nfor i in range(50): x = [x]\nx'],
    'an exception': ['-l', 'python', '-c', 'print(x)'],
    'a syntax error': ['-l', 'javascript', '-c', 'let let = 1'],
    'a signal': ['-l', 'bash', '-c', 'kill -SEGV $$'],
    'a time-out': ['-l', 'bash', '-c', 'echo before; sleep 97', '--timeout', '1s'],
    'too much output': ['-l', 'bash', '-c', 'yes | head -c 300000', '--output', '1000'],
    'output that ends it': ['-l', 'bash', '-c', 'printf %3000s x; sleep 97', '--output', '1000', '--output-action', 'kill'],
    'arguments and variables': ['-l', 'bash', '-c', 'echo "$@" "$A"', '--env', 'A= é=', '--', '-x', 'ü', ''],
    'labels and aliases': ['-l', 'bash', '-c', 'echo x > f', '--label', 'a=b', '--task-id', 't', '--user', 'u', '--aliases'],
    'no such language': ['-l', 'nosuch', '-c', '1'],
    'a limit above its ceiling': ['-l', 'bash', '-c', '1', '--pids', '100000', '--profile', 'nosuch'],
    'a package': ['-l', 'python', '-c', '1', '--packages', 'no such'],
    'a wrong option': ['-l', 'bash', '-c', '1', '--nosuch'],
    'an environment that is refused': ['-l', 'bash', '-c', '1', '--env', 'LD_PRELOAD=x'],
    'the host': ['-l', 'bash', '-c', '1', '--backend', 'host'],
}
# What two runs never have in common.
OWN = {'id', 'usage', 'timings', 'stages', 'started_at', 'finished_at', 'boundary'}
OWN_ALIASES = {'execution_id', 'sandbox_id', 'duration', 'execution_time', 'execution_time_seconds', 'max_memory_mb', 'metrics',
               'started_at', 'completed_at'}


def common(record):
    rest = {name: value for name, value in record.items() if name not in OWN}
    rest['aliases'] = {name: value for name, value in record.get('aliases', {}).items() if name not in OWN_ALIASES}
    rest['inputs'] = [{**one, 'ms': 0} for one in record['inputs']]
    return rest, list(record), (record['boundary'] or {}).get('seccomp')


def printed(done):
    """Status and output, without the CPU time of the run, which is measured."""
    return done.status, *(re.sub(rb'CPU time used: [\d.]+ s', b'', text) for text in (done.bytes, done.err.encode()))


@pytest.mark.parametrize('args', SAME.values(), ids=SAME.keys())
def test_both_roads_lead_to_the_same(daemon, args):
    alone, by_daemon = caisson('run', *args), daemon.caisson('run', *args, env={'CAISSON_DAEMON': 'auto'})
    assert printed(alone) == printed(by_daemon)
    alone, by_daemon = caisson('run', '--json', *args), daemon.caisson('run', '--json', *args, env={'CAISSON_DAEMON': 'auto'})
    assert alone.status == by_daemon.status and common(checked(alone.out)) == common(checked(by_daemon.out))
    for form in ('plain', 'linx', 'codemie', 'kodeagent', 'mcp-light'):
        alone, by_daemon = (road('run', '--format', form, *args) for road in (caisson, daemon.caisson))
        if args not in (SAME['the host'],):      # which --daemon always refuses
            assert printed(alone) == printed(by_daemon), form


def test_most_of_these_went_by_way_of_the_daemon(daemon):
    ways = {name: way(daemon.caisson('run', '-v', *args, env={'CAISSON_DAEMON': 'auto'})) for name, args in SAME.items()
            if name not in ('a wrong option', 'a package')}
    assert {name for name, road in ways.items() if road != 'daemon'} == {'the host'}, ways


def test_standard_input_and_files_are_sent(daemon, tmp_path):
    plain, odd = write(tmp_path / 'plain', 'text'), write(tmp_path / 'odd é', bytes(range(256)))
    args = ['run', '--json', '-l', 'bash', '-c', 'cat; wc -c < "sub/x"; cat plain; touch plain; echo > new', '--stdin', '-',
            '--file', plain, '--file', f'{odd}:sub/x']
    alone, by_daemon = caisson(*args, stdin=b'in\xff\n'), daemon.caisson(*args, stdin=b'in\xff\n')
    records = [checked(done.out) for done in (alone, by_daemon)]
    assert base64.b64decode(records[1]['stdout_base64']) == b'in\xff\n256\ntext' and common(records[0]) == common(records[1])
    assert [file['name'] for file in records[1]['inputs']] == ['plain', 'sub/x']


@pytest.mark.parametrize('path', ['/dev/zero', '/nosuch', '/'])
def test_a_file_that_cannot_be_taken_is_refused_in_the_same_words(daemon, path):
    args = ['run', '-l', 'bash', '-c', '1', '--file', path]
    alone, by_daemon = caisson(*args), daemon.caisson(*args, env={'CAISSON_DAEMON': 'auto'})
    assert (alone.status, alone.err) == (by_daemon.status, by_daemon.err) and alone.status == 64


def test_a_request_in_json_is_sent(daemon, tmp_path):
    request = {'language': 'python', 'code': 'print(open("a").read())', 'files': [{'name': 'a', 'content_base64': 'eA=='}]}
    done = daemon.caisson('run', '--request', write(tmp_path / 'r.json', json.dumps(request)))
    assert (done.status, done.out) == (0, 'x\n')


def test_a_file_in_json_without_a_name_is_refused(daemon):
    done = daemon.caisson('run', '--json', '--request', '-', stdin=b'{"language":"bash","code":"1","files":[{"content":"a"}]}')
    assert checked(done.out)['status'] == 'bad_request'


# ---- what goes which way ----

@pytest.mark.parametrize('args,words', [
    (['--work-dir', '{tmp}'], 'work_dir'), (['--export', '*:{tmp}/out'], 'exports'), (['--profile', 'host'], 'host backend'),
    (['--set', 'limits.wall_ms=5s'], 'limits.wall_ms is set'), (['--file', '{tmp}/large'], '32 MiB'),
    (['--config', '{tmp}/conf'], 'limits.pids is set'), (['--', os.fsdecode(b'\xff')], 'UTF-8'), (['--', *['x'] * 1001], '1001 items'),
    (['--', 'x' * 70000], '65536'), (['--daemon', 'never'], '--daemon never')])
def test_what_is_for_this_side_runs_alone(daemon, tmp_path, args, words):
    with open(tmp_path / 'large', 'wb') as large:
        large.truncate(33 << 20)
    write(tmp_path / 'conf', 'limits:\n  pids: 32\n')
    args = ['run', '-v', '-l', 'bash', '-c', 'echo x', '--disk', '90MiB', *(word.replace('{tmp}', str(tmp_path)) for word in args)]
    done = daemon.caisson(*args, env={'CAISSON_DAEMON': 'auto'})
    assert words in way(done), done.err
    if 'host' not in args:
        assert (done.status, done.out) == (0, 'x\n'), done.err
    if 'never' not in args:
        done = daemon.caisson(*args)
        assert done.status == 64 and done.out == '' and words in done.err


def test_settings_of_the_environment_hold_for_this_side(daemon):
    done = daemon.caisson('run', '-v', '-l', 'bash', '-c', '1', env={'CAISSON_DAEMON': 'auto', 'CAISSON_LIMITS_PIDS': '32'})
    assert 'limits.pids is set' in way(done)


def test_the_word_of_the_option_wins_over_the_variable(daemon):
    assert way(daemon.caisson('run', '-v', '--daemon', 'never', '-l', 'bash', '-c', '1')) == '--daemon never'
    assert way(daemon.caisson('run', '-v', '--daemon', 'always', '-l', 'bash', '-c', '1', env={'CAISSON_DAEMON': 'never'})) == 'daemon'


def test_a_wrong_word_is_refused(daemon):
    for args, env in ((['--daemon', 'yes'], {}), ([], {'CAISSON_DAEMON': 'yes'})):
        done = daemon.caisson('run', *args, '-l', 'bash', '-c', '1', env=env)
        assert done.status == 64 and 'auto, never or always' in done.err
    assert 'did you mean CAISSON_DAEMON' in caisson('run', '-c', '1', env={'CAISSON_DEMON': 'auto'}).err


@pytest.mark.parametrize('there', [False, True])
def test_without_a_daemon_it_runs_alone_and_says_nothing(tmp_path, there):
    path = tmp_path / 's'
    if there:      # what a dead one left
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    env = {'CAISSON_DAEMON': 'auto', 'CAISSON_ENGINE_SOCKET': str(path)}
    done = caisson('run', '-l', 'bash', '-c', 'echo x', env=env)
    assert (done.status, done.out, done.err) == (0, 'x\n', '')
    assert str(path) in way(caisson('run', '-v', '-l', 'bash', '-c', 'echo x', env=env))
    env['CAISSON_DAEMON'] = 'always'
    done = caisson('run', '-l', 'bash', '-c', 'echo x', env=env)
    assert done.status == 125 and done.out == '' and f'connect to the daemon at {path}' in done.err
    record = checked(caisson('run', '--json', '-l', 'bash', '-c', 'echo x', env=env).out)
    assert record['status'] == 'engine_error' and str(path) in record['error']['message']
    for command in ('ps', 'top', 'pool'):
        done = caisson(command, env=env)
        assert done.status == 125 and str(path) in done.err and done.out == ''


def test_a_daemon_that_does_not_let_us_in_is_none(place):
    one = Daemon(place, '--set', 'engine.socket_uids=4294967294', path=place / 'other').ready()
    try:
        done = one.caisson('run', '-v', '-l', 'bash', '-c', 'echo x', env={'CAISSON_DAEMON': 'auto'})
        assert (done.status, done.out) == (0, 'x\n') and 'running alone: user' in done.err
        done = one.caisson('run', '-l', 'bash', '-c', 'echo x')
        assert done.status == 125 and 'engine.socket_uids' in done.err and done.out == ''
    finally:
        one.stop()


# ---- while it runs ----

def begin(daemon, *args, **more):
    env = environment(CAISSON_DAEMON='always', CAISSON_ENGINE_SOCKET=str(daemon.path))
    return subprocess.Popen([CAISSON, 'run', '--timeout', '90s', *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, **more)


def test_output_comes_while_the_program_runs_and_an_interrupt_ends_it(daemon):
    with begin(daemon, '-l', 'bash', '-c', 'trap "" INT; echo first; sleep 97') as process:
        assert process.stdout.read(6) == b'first\n'
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert daemon.runs() == []


def test_an_interrupted_run_has_its_record(daemon):
    with begin(daemon, '--json', '-l', 'bash', '-c', 'echo x > f; sleep 97') as process:
        until(lambda: 'sleep' in commands(daemon.tree()))
        process.send_signal(signal.SIGTERM)
        record = checked(process.communicate(timeout=30)[0])
    assert (record['status'], process.returncode) == ('cancelled', 130) and [f['name'] for f in record['files']] == ['f']


def test_a_second_interrupt_waits_for_nobody(own):
    with begin(own, '-l', 'bash', '-c', 'echo first; sleep 97') as process:
        assert process.stdout.read(6) == b'first\n'
        own.process.send_signal(signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGINT)
            until(lambda: not pending(process.pid))      # two of one kind at once are one
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            own.process.send_signal(signal.SIGCONT)
    until(lambda: own.runs() == [])


def pending(pid):
    text = Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'^ShdPnd:\s*(\w+)', text, flags=re.M)[1], 16)


def test_a_killed_command_ends_its_run(daemon):
    with begin(daemon, '-l', 'bash', '-c', 'echo first; sleep 97') as process:
        assert process.stdout.read(6) == b'first\n'
        process.kill()
    until(lambda: daemon.runs() == [])


def test_nobody_reads_any_more(daemon):
    with begin(daemon, '-l', 'bash', '-c', 'while echo x; do :; done') as process:
        assert process.stdout.read(2) == b'x\n'
        process.stdout.close()
        assert process.wait(30) == 130 and b'rror' not in process.stderr.read()


def test_output_that_is_read_too_slowly_is_said_to_be_missing(daemon):
    with begin(daemon, '-l', 'bash', '-c', 'head -c 60000000 /dev/zero', bufsize=0) as process:
        assert process.stdout.read(1) == b'\0'       # so it has begun, and may have ended
        until(lambda: daemon.runs() == [], 60)
        out, err = process.communicate(timeout=60)
    missing = re.fullmatch(rb'caisson: (\d+) bytes of stdout are missing here, because .*\n', err)
    assert process.returncode == 73 and 1 + len(out) + int(missing[1]) == 60_000_000 and int(missing[1]) > 0


def test_a_daemon_that_dies_is_told(own):
    with begin(own, '--json', '-l', 'bash', '-c', 'sleep 97') as process:
        until(lambda: own.runs())
        own.process.kill()
        record = checked(process.communicate(timeout=30)[0])
    assert (record['status'], process.returncode) == ('engine_error', 125) and 'ended the connection' in record['error']['message']


@pytest.mark.parametrize('answer,words', [
    (b'', 'ended the connection'), (frame(99, 1), 'type 99'), (frame(18, 1, b'[]'), 'record'), (frame(18, 1, b'{"id":1}'), 'record'),
    (frame(17, 1, b'\3x'), 'stream 3'), (frame(19, 1, b'{}'), 'record')])
def test_a_daemon_that_breaks_the_rules_is_told(tmp_path, answer, words):
    path = str(tmp_path / 's')
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        env = environment(CAISSON_DAEMON='auto', CAISSON_ENGINE_SOCKET=path)
        with subprocess.Popen([CAISSON, 'run', '--json', '-l', 'bash', '-c', 'echo x'], stdout=subprocess.PIPE, env=env) as process:
            peer, _ = listener.accept()
            with peer:
                assert peer.recv(100000)
                peer.sendall(answer)
                peer.shutdown(socket.SHUT_WR)
                record = checked(process.communicate(timeout=30)[0])
    assert record['status'] == 'engine_error' and words in record['error']['message'] and process.returncode == 125


# ---- ps, top, pool ----

@pytest.fixture
def busy(daemon):
    with begin(daemon, '-l', 'bash', '--profile', 'lightweight', '-c', 'echo first; sleep 97') as process:
        assert process.stdout.read(6) == b'first\n'
        yield daemon
        process.send_signal(signal.SIGINT)
        process.wait(30)


def test_ps_lists_runs(busy):
    run, = json.loads(busy.caisson('ps', '--json').out)
    assert run == {**run, 'state': 'running', 'language': 'bash', 'profile': 'lightweight', 'owner': f'uid:{os.geteuid()}'}
    head, line = busy.caisson('ps').out.splitlines()
    assert head.split() == ['ID', 'OWNER', 'LANGUAGE', 'PROFILE', 'STATE', 'AGE', 'CPU', 'MEMORY']
    assert line.split()[:5] == [run['id'], run['owner'], 'bash', 'lightweight', 'running']


@pytest.mark.parametrize('command', ['ps', 'top'])
def test_who_asks_once_is_told_what_a_run_uses_now(daemon, command):
    def told():
        """Of a run that nobody has asked for, and again when it has done more."""
        with begin(daemon, '-l', 'bash', '-c', 'echo first; while :; do :; done') as process:
            assert process.stdout.read(6) == b'first\n'
            first = daemon.caisson(command).out.splitlines()[-1].split()[-2:]
            time.sleep(0.5)
            second = daemon.caisson(command).out.splitlines()[-1].split()[-2:]
            process.send_signal(signal.SIGINT)
            process.wait(30)
        return '-' not in first and float(second[0][:-1]) > float(first[0][:-1])
    until(told)   # the daemon looks while the command waits a moment, and may be late on a busy machine


def test_ps_of_an_idle_daemon_has_its_head_alone(daemon):
    until(lambda: daemon.runs() == [])
    assert daemon.caisson('ps').out.count('\n') == 1 and json.loads(daemon.caisson('ps', '--json').out) == []


def test_top_prints_once_where_there_is_no_terminal(busy):
    for args in ([], ['--once']):
        done = busy.caisson('top', *args)
        assert f'process {busy.process.pid}, ' in done.out and 'runs: 1 of 128 running, 0 waiting' in done.out and 'lightweight' in done.out
        assert '\x1b' not in done.out
    assert json.loads(busy.caisson('top', '--json').out)['queue']['running'] == 1


def test_pool_lists_pools(daemon):
    header, *lines = daemon.caisson('pool').out.splitlines()
    assert header.split() == ['POOL', 'READY', 'MIN', 'MAX', 'MEMORY', 'HITS', 'MISSES']
    pools = json.loads(daemon.caisson('pool', '--json').out)
    assert {line.split()[0] for line in lines} == {pool['key'] for pool in pools}
    assert {pool['key'].split('/')[0] for pool in pools} >= {'python', 'empty'}


@pytest.mark.parametrize('command', ['ps', 'top', 'pool'])
def test_an_unknown_argument_is_refused(daemon, command):
    done = daemon.caisson(command, 'x')
    assert done.status == 64 and f'{command}: unknown argument x' in done.err


def piece_of(fd):
    """Of what a terminal shows; nothing at its end."""
    assert select.select([fd], [], [], 30)[0], 'nothing is shown'
    try:
        return os.read(fd, 65536)
    except OSError:      # EIO: the other end is closed
        return b''


def on_screen(daemon, act):
    """caisson top on a terminal; act(pid, fd) when it has shown something."""
    env = environment(TERM='xterm', CAISSON_ENGINE_SOCKET=str(daemon.path))
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execve(CAISSON, [CAISSON, 'top'], env)
        finally:
            os._exit(127)
    shown = b''
    while b'MEMORY' not in shown:
        shown += piece_of(fd)
    act(pid, fd)
    while piece := piece_of(fd):
        shown += piece
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


@pytest.mark.parametrize('act', [lambda pid, fd: os.write(fd, b'q'), lambda pid, fd: os.write(fd, b'\x03'),
                                 lambda pid, fd: os.kill(pid, signal.SIGTERM)], ids=['q', 'interrupt', 'termination'])
def test_top_shows_a_table_until_it_is_told_to_end(busy, act):
    status, shown = on_screen(busy, act)
    assert status == 0 and shown.startswith(b'\x1b[?1049h') and shown.endswith(b'\x1b[?25h\x1b[?1049l')
    assert b'runs: 1 of 128 running' in shown and b'lightweight' in shown


def test_top_is_refreshed(busy):
    def act(_, fd):
        shown = b''
        while shown.count(b'MEMORY') < 2:
            shown += piece_of(fd)
        os.write(fd, b'q')
    assert on_screen(busy, act)[0] == 0


def test_top_ends_with_its_daemon(own):
    status, shown = on_screen(own, lambda pid, fd: own.process.kill())
    assert status == 125 and b'ended the connection' in shown.rpartition(b'\x1b[?1049l')[2]


def test_words_of_other_people_cannot_talk_to_the_terminal(tmp_path):
    path = str(tmp_path / 's')
    status = {'runs': [{'id': 'run\x1b]0;x\x07', 'language': '\x9b31m', 'owner': 7}], 'pools': [{'key': '\x1b[31m', 'ready': 'x'}]}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        for command in ('ps', 'top', 'pool'):
            with subprocess.Popen([CAISSON, command], stdout=subprocess.PIPE, env=environment(CAISSON_ENGINE_SOCKET=path)) as process:
                peer, _ = listener.accept()
                with peer:
                    for _ in range(2):
                        assert peer.recv(100) == frame(ASK, 1)
                        peer.sendall(frame(19, 1, json.dumps(status).encode()))
                    out = process.communicate(timeout=30)[0]
            assert b'\x1b' not in out and process.returncode == 0
