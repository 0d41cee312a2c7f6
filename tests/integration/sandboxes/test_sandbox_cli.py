"""caisson sandbox, against a daemon: made, listed, used, ended; and a shell at a terminal that is one."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import termios
import time

import pytest

from cli import CAISSON
from daemon import Daemon, until


@pytest.fixture(scope='module')
def daemon(tmp_path_factory):
    one = Daemon(tmp_path_factory.mktemp('daemon'), '--set', 'engine.sandboxes_owner_max=40').ready()
    yield one
    one.stop(signal.SIGTERM)


@pytest.fixture(scope='module')
def sandbox(daemon):
    return create(daemon)


def create(daemon, *options):
    done = daemon.caisson('sandbox', 'create', *options)
    assert done.status == 0 and done.err == '', done.err
    assert re.fullmatch(r'sbx_[0-9a-f]{32}\n', done.out)
    return done.out.strip()


def execute(daemon, sandbox, *args, **more):
    return daemon.caisson('sandbox', 'exec', sandbox, *args, **more)


def start(daemon, *args, **more):
    return subprocess.Popen([CAISSON, *args], env={**daemon.env, 'CAISSON_ENGINE_SOCKET': str(daemon.path)}, **more)


def described(daemon, sandbox):
    return [one for one in json.loads(daemon.caisson('sandbox', 'list', '--json').out) if one['id'] == sandbox]


# ---- making and ending ----

def test_options_of_create_are_fields_of_the_request(daemon):
    done = daemon.caisson('sandbox', 'create', '--json', '--memory', '128MiB', '--pids', '33', '--ttl', '5min', '--idle', '2min', '--label', 'a=b',
                          '--label', 'c=d e', '--user', 'somebody', '--env', 'X=1')
    one = json.loads(done.out)
    assert one['limits']['memory_bytes'] == 128 << 20 and one['limits']['pids'] == 33
    assert one['idle_ms'] == 120000 and one['labels'] == {'a': 'b', 'c': 'd e'} and one['user'] == 'somebody'
    assert execute(daemon, one['id'], '--', 'printenv', 'X').out == '1\n'
    assert described(daemon, one['id'])[0]['labels'] == {'a': 'b', 'c': 'd e'}, 'when the request is long over'
    row = [line for line in daemon.caisson('sandbox', 'list').out.splitlines() if line.startswith(one['id'])][0]
    assert 'running' in row and 'a=b c=d e' in row
    assert daemon.caisson('sandbox', 'kill', one['id']).status == 0


def test_what_a_sandbox_may_not_have_is_told_and_nothing_is_made(daemon):
    before = daemon.caisson('sandbox', 'list').out.count('sbx_')
    for option, value, word in [('--memory', '900TiB', 'memory'), ('--profile', 'nix', 'nix'), ('--ttl', 'soon', 'ttl'), ('--label', 'x', 'NAME=VALUE')]:
        done = daemon.caisson('sandbox', 'create', option, value)
        assert done.status == 64 and done.out == '' and word in done.err, done.err
    assert daemon.caisson('sandbox', 'list').out.count('sbx_') == before


def test_a_sandbox_is_ended_and_is_not_there_any_more(daemon):
    first, second = create(daemon), create(daemon)
    assert daemon.caisson('sandbox', 'kill', first, second).status == 0
    assert not described(daemon, first) and not described(daemon, second)
    done = daemon.caisson('sandbox', 'kill', first)
    assert done.status == 64 and first in done.err


def test_ids_may_be_shortened_where_they_are_clear(daemon, sandbox):
    for short in (sandbox[:12], sandbox[4:12]):
        assert execute(daemon, short, 'echo', 'hi').out == 'hi\n'
    for wrong in ('sbx_', ''):
        create(daemon)
        done = execute(daemon, wrong, 'true')
        assert done.status == 64 and ('begin with' in done.err or 'no sandbox' in done.err)


@pytest.mark.parametrize('args', [
    ('exec', 'zzz', 'true'), ('shell', 'zzz'), ('logs', 'zzz'), ('pause', 'zzz'), ('resume', 'zzz'), ('kill', 'zzz'), ('cp', 'zzz:x', '-'),
    ('exec', 'sbx_' + 32 * '0', 'true'), ('kill', 'sbx_' + 32 * '0'), ('logs', 'sbx_' + 32 * '0')], ids=' '.join)
def test_an_unknown_id_is_the_same_error_for_each_command(daemon, args):
    done = daemon.caisson('sandbox', *args)
    assert done.status == 64 and f'there is no sandbox {args[1].partition(":")[0]}' in done.err, done.err


def test_the_list_says_that_it_is_empty_only_when_it_is(daemon):
    one = create(daemon)
    done = daemon.caisson('sandbox', 'list')
    assert one in done.out and done.err == ''


def test_an_empty_list_names_the_remedy(tmp_path):
    empty = Daemon(tmp_path).ready()
    done = empty.caisson('sandbox', 'list')
    assert done.err == 'caisson: there is no sandbox; caisson sandbox create makes one\n' and len(done.out.splitlines()) == 1
    empty.stop(signal.SIGTERM)


def test_what_is_paused_stands_still_until_it_is_resumed(daemon):
    one = create(daemon)
    assert daemon.caisson('sandbox', 'pause', one).status == 0
    assert described(daemon, one)[0]['state'] == 'paused'
    done = execute(daemon, one, 'true')
    assert done.status == 125 and 'paused' in done.err
    done = daemon.caisson('sandbox', 'pause', one)
    assert done.status == 125 and 'paused already' in done.err
    assert daemon.caisson('sandbox', 'resume', one).status == 0
    assert execute(daemon, one, 'true').status == 0
    daemon.caisson('sandbox', 'kill', one)


def test_without_a_daemon_it_is_said_how_to_start_one(daemon, tmp_path):
    for command in (('sandbox', 'list'), ('context', 'list')):
        done = daemon.caisson(*command, env={'CAISSON_ENGINE_SOCKET': str(tmp_path / 'nix')})
        assert done.status == 125 and 'caisson serve' in done.err and str(tmp_path / 'nix') in done.err


@pytest.mark.parametrize('args', [('sandbox',), ('sandbox', 'nix'), ('sandbox', 'exec'), ('sandbox', 'exec', 'x'), ('sandbox', 'list', 'x'),
                                  ('sandbox', 'create', '--nix'), ('sandbox', 'cp', 'a', 'b'), ('sandbox', 'cp', 'x:a', 'y:b'), ('context', 'run'),
                                  ('sandbox', 'create', '--memory')])
def test_what_is_not_understood_is_a_usage_error(daemon, args):
    done = daemon.caisson(*args)
    assert done.status == 64
    assert 'sandbox' in done.err or 'context' in done.err or done.out.startswith('Example: ')


def test_help_has_every_command(daemon):
    for words in (('help', 'sandbox'), ('sandbox', '--help'), ('sandbox', 'exec', '--help')):
        done = daemon.caisson(*words)
        assert done.status == 0
        for name in ('create', 'list', 'exec', 'shell', 'cp', 'logs', 'pause', 'resume', 'kill', '--memory', '--interactive'):
            assert name in done.out


# ---- exec ----

def test_streams_and_the_exit_status_are_the_programs(daemon, sandbox):
    done = execute(daemon, sandbox, '--', 'bash', '-c', 'echo out; echo err >&2; exit 7')
    assert (done.status, done.out, done.err) == (7, 'out\n', 'err\n')
    assert execute(daemon, sandbox, 'bash', '-c', 'kill -TERM $$').status == 128 + 15
    done = execute(daemon, sandbox, 'nosuchprogram')
    assert done.status == 127 and 'nosuchprogram' in done.err
    done = execute(daemon, sandbox, '--timeout', '500ms', 'sleep', '100')
    assert done.status == 124


def test_what_belongs_to_the_program_is_not_taken_for_ours(daemon, sandbox):
    assert execute(daemon, sandbox, 'echo', '-i', '--cwd', '--set', 'x', '--', '-t').out == '-i --cwd --set x -- -t\n'
    assert execute(daemon, sandbox, '--', 'echo', '--', '-e').out == '-- -e\n'
    done = execute(daemon, sandbox, '-e', 'A=1', '--env', 'B=2 3', '--cwd', '/tmp', '--', 'bash', '-c', 'echo $A $B $PWD')
    assert done.out == '1 2 3 /tmp\n'


def test_output_comes_while_the_program_goes_on(daemon, sandbox):
    process = start(daemon, 'sandbox', 'exec', '-i', sandbox, '--', 'bash', '-c', 'echo first; read line; echo "got $line"', stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'first\n'
    process.stdin.write(b'word\n')
    process.stdin.flush()
    assert process.stdout.readline() == b'got word\n'
    assert process.wait(60) == 0


def test_any_bytes_go_in_and_come_out(daemon, sandbox):
    data = os.urandom(3 << 20)
    assert execute(daemon, sandbox, '-i', 'cat', stdin=data).bytes == data


def test_who_reads_slowly_gets_everything(daemon, sandbox):
    """The daemon keeps 4 MiB of events; what prints more waits for who reads."""
    process = start(daemon, 'sandbox', 'exec', sandbox, '--', 'bash', '-c', 'seq 1 4000000; echo done >/tmp/printed', stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'1\n'
    time.sleep(1)
    assert execute(daemon, sandbox, 'test', '-e', '/tmp/printed').status == 1, 'it printed 30 MB, and nobody read that'
    rest = process.stdout.read()
    assert process.wait(60) == 0
    assert rest == b''.join(b'%d\n' % i for i in range(2, 4000001))


def test_input_waits_for_a_program_that_does_not_read(daemon, sandbox):
    process = start(daemon, 'sandbox', 'exec', '-i', sandbox, '--', 'bash', '-c', 'echo here; while [[ ! -e /tmp/go ]]; do sleep 0.05; done; wc -c',
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'here\n'
    os.set_blocking(process.stdin.fileno(), False)
    sent, chunk = 0, b'x' * 65536
    while select.select([], [process.stdin], [], 1)[1]:
        sent += os.write(process.stdin.fileno(), chunk)
        assert sent < 20 << 20, 'all of it was taken, and nobody reads'
    execute(daemon, sandbox, 'touch', '/tmp/go')
    process.stdin.close()
    assert process.stdout.read() == b'%d\n' % sent
    assert process.wait(60) == 0


def test_without_interactive_there_is_no_input(daemon, sandbox):
    assert execute(daemon, sandbox, 'cat', stdin=b'nothing').out == ''


def test_the_first_interrupt_is_the_programs_and_the_second_ends_it(daemon, sandbox):
    process = start(daemon, 'sandbox', 'exec', sandbox, '--', 'bash', '-c', 'trap "echo told" INT; echo here; while :; do sleep 0.05; done',
                    stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'here\n'
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b'told\n'
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 128 + signal.SIGINT
    until(lambda: execute(daemon, sandbox, 'pgrep', '-f', 'echo tol[d]').status == 1)


def test_who_stops_reading_ends_the_program(daemon, sandbox):
    process = start(daemon, 'sandbox', 'exec', sandbox, 'yes', 'endless', stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'endless\n'
    process.stdout.close()
    assert process.wait(60) == 128 + signal.SIGKILL
    assert execute(daemon, sandbox, 'pgrep', '-f', 'yes endles[s]').status == 1


def test_a_sandbox_that_ends_takes_its_programs_along(daemon):
    one = create(daemon)
    process = start(daemon, 'sandbox', 'exec', one, '--', 'bash', '-c', 'echo here; sleep 100', stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b'here\n'
    daemon.caisson('sandbox', 'kill', one)
    assert process.wait(60) == 125
    assert b'ended' in process.stderr.read()


def test_control_characters_are_made_visible_at_a_terminal(daemon, sandbox):
    with Terminal(daemon, 'sandbox', 'exec', sandbox, 'printf', r'a\033[31mb\n') as terminal:
        assert terminal.wait() == 0
        assert b'a\\x1b[31mb' in terminal.seen
    with Terminal(daemon, 'sandbox', 'exec', '--raw', sandbox, 'printf', r'a\033[31mb\n') as terminal:
        assert terminal.wait() == 0
        assert b'a\033[31mb' in terminal.seen


# ---- logs ----

def test_logs_have_what_programs_printed(daemon):
    one = create(daemon)
    execute(daemon, one, 'echo', 'first')
    execute(daemon, one, '--', 'bash', '-c', 'echo second; echo error >&2')
    done = daemon.caisson('sandbox', 'logs', one)
    assert done.status == 0 and done.err == 'error\n'
    assert re.fullmatch(r'==> \d+: echo first <==\nfirst\n\n==> \d+: bash -c .* <==\nsecond\n', done.out), done.out
    number = re.findall(r'==> (\d+)', done.out)[1]
    done = daemon.caisson('sandbox', 'logs', one, number)
    assert (done.out, done.err) == ('second\n', 'error\n')
    done = daemon.caisson('sandbox', 'logs', one, '999999')
    assert done.status == 64 and '999999' in done.err
    daemon.caisson('sandbox', 'kill', one)


def test_logs_go_on_with_a_program(daemon):
    one = create(daemon)
    program = start(daemon, 'sandbox', 'exec', '-i', one, '--', 'bash', '-c', 'echo first; read; echo last', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b'first\n'
    assert daemon.caisson('sandbox', 'logs', one).out == 'first\n', 'without -f it ends, and the program goes on'
    logs = start(daemon, 'sandbox', 'logs', '-f', one, stdout=subprocess.PIPE)
    assert logs.stdout.readline() == b'first\n'
    program.stdin.write(b'\n')
    program.stdin.close()
    assert logs.stdout.read() == b'last\n'
    assert logs.wait(60) == 0 and program.wait(60) == 0
    daemon.caisson('sandbox', 'kill', one)


# ---- shell ----

class Terminal:
    """A program at a terminal of its own; what it prints is read for as long as somebody waits for something."""

    def __init__(self, daemon, *args, rows=31, columns=97):
        self.ours, theirs = pty.openpty()
        self.size(rows, columns)
        self.modes = termios.tcgetattr(theirs)
        env = {**daemon.env, 'CAISSON_ENGINE_SOCKET': str(daemon.path), 'TERM': 'xterm'}
        self.process = subprocess.Popen([CAISSON, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.theirs = theirs               # kept open: its modes are looked at when the program is gone
        self.seen = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        os.close(self.ours)
        os.close(self.theirs)

    def size(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def read(self, seconds=0.05):
        if select.select([self.ours], [], [], seconds)[0]:
            self.seen += os.read(self.ours, 65536)

    def expect(self, pattern, seconds=60):
        """Everything up to a match is done with."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen, flags=re.S)):
            assert time.monotonic() < deadline, (pattern, self.seen)
            self.read()
        self.seen = self.seen[found.end():]
        return found

    def type(self, text):
        os.write(self.ours, text)

    def say(self, line, answer):
        self.type(line + b'\r')
        return self.expect(answer)

    def wait(self, seconds=60):
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            self.read()
        while select.select([self.ours], [], [], 0)[0]:
            self.read()
        return self.process.returncode

    def is_restored(self):
        return termios.tcgetattr(self.theirs) == self.modes


@pytest.fixture
def shell(daemon, sandbox):
    with Terminal(daemon, 'sandbox', 'shell', sandbox) as terminal:
        terminal.expect(rb'[$#] ')
        yield terminal


def test_a_shell_has_a_terminal_of_our_size_that_changes_with_it(shell):
    shell.say(b'tty; stty size', rb'/dev/pts/\d+\r\n31 97\r\n')
    shell.say(b'trap "echo changed:\\$(stty size)" WINCH; echo s"et"', rb'set\r\n')
    shell.size(40, 120)                    # the kernel tells our program
    deadline = time.monotonic() + 60
    while b'changed:40 120' not in shell.seen:
        assert time.monotonic() < deadline, shell.seen
        shell.type(b'\r')                  # Bash runs a trap when a line is done
        shell.read(0.2)


def test_keys_go_to_the_program_as_they_are(daemon, sandbox, shell):
    def runs(what):
        until(lambda: execute(daemon, sandbox, 'pgrep', '-xf', what).status == 0)
    shell.type(b'sleep 1001\r')
    runs('sleep 1001')
    shell.type(b'\x03')
    shell.expect(rb'[$#] ')
    shell.say(b'echo "after:$?"', rb'after:130')
    shell.type(b'sleep 1002\r')
    runs('sleep 1002')
    shell.type(b'\x1a')
    shell.expect(rb'Stopped')
    shell.say(b'kill %1; wait 2>/dev/null; echo go"on"', rb'goon')
    shell.say(b'cat -v', rb'cat -v\r\n')
    runs('cat -v')                         # before that, the keys are those of the shell
    shell.type(b'\x16\x03\x16\x04x\r')
    shell.expect(rb'x\r\n\^C\^Dx')
    shell.type(b'\x04')
    shell.expect(rb'[$#] ')
    assert shell.process.poll() is None


def test_the_exit_status_is_the_shells_and_the_terminal_is_as_before(shell):
    assert not shell.is_restored(), 'while it goes on it is raw'
    shell.type(b'exit 42\r')
    assert shell.wait() == 42
    assert shell.is_restored()


def test_end_of_file_ends_a_shell(shell):
    shell.type(b'true\r')
    shell.expect(rb'[$#] $')
    shell.type(b'\x04')
    assert shell.wait() == 0
    assert shell.is_restored()


def test_a_shell_knows_our_terminal_and_may_be_another_program(daemon, sandbox):
    with Terminal(daemon, 'sandbox', 'shell', sandbox, 'bash', '-c', 'echo "[$TERM]"; stty -echo; echo ready; read line; echo "got $line"; exit 5') as terminal:
        terminal.expect(rb'\[xterm\]\r\nready')
        terminal.type(b'secret\r')
        assert b'secret' not in terminal.expect(rb'(.*)got ')[1], 'the program turned the echo off'
        assert terminal.wait() == 5
        assert terminal.is_restored()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSEGV, signal.SIGABRT])
def test_the_terminal_is_as_before_whatever_signal_ends_us(shell, number):
    until(lambda: not shell.is_restored())
    shell.process.send_signal(number)
    assert shell.wait() in (128 + number, -number)
    assert shell.is_restored()


def test_who_is_stopped_gives_the_terminal_back_until_then(shell):
    until(lambda: not shell.is_restored())
    shell.process.send_signal(signal.SIGTSTP)
    until(lambda: os.waitid(os.P_PID, shell.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
    assert shell.is_restored()
    shell.process.send_signal(signal.SIGCONT)
    until(lambda: not shell.is_restored())
    shell.say(b'echo still"here"', rb'stillhere')


def test_the_program_of_a_shell_that_was_ended_ends(daemon):
    one = create(daemon)
    with Terminal(daemon, 'sandbox', 'shell', one) as terminal:
        terminal.expect(rb'[$#] ')
        terminal.process.send_signal(signal.SIGHUP)
        terminal.wait()
    until(lambda: execute(daemon, one, 'pgrep', '-x', 'bash').status == 1)
    daemon.caisson('sandbox', 'kill', one)


def test_the_terminal_is_as_before_when_the_sandbox_or_the_daemon_ends(daemon, tmp_path):
    one = create(daemon)
    with Terminal(daemon, 'sandbox', 'shell', one) as terminal:
        terminal.expect(rb'[$#] ')
        daemon.caisson('sandbox', 'kill', one)
        assert terminal.wait() == 125
        assert terminal.is_restored() and b'ended' in terminal.seen
    other = Daemon(tmp_path).ready()
    with Terminal(other, 'sandbox', 'shell', create(other)) as terminal:
        terminal.expect(rb'[$#] ')
        other.stop(signal.SIGKILL)
        assert terminal.wait() == 125
        assert terminal.is_restored() and b'broke off' in terminal.seen


def test_a_lot_of_output_arrives_whole_at_a_terminal(shell):
    shell.type(b'seq 1 30000 | sed s/$/,/ | tr -d "\\n"; echo e"nd"\r')
    text = shell.expect(rb'1,2,3,(.*)end\r')[1]
    assert text == b''.join(b'%d,' % i for i in range(4, 30001))


# ---- who may ----

def test_the_socket_has_the_permissions_of_the_daemons_own(daemon):
    other = daemon.path.with_name(daemon.path.name + '.http')
    assert stat.S_ISSOCK(other.stat().st_mode)
    assert stat.S_IMODE(other.stat().st_mode) == stat.S_IMODE(daemon.path.stat().st_mode) == 0o660


@pytest.mark.skipif(os.geteuid() != 0, reason='needs root: for other users')
def test_every_user_has_sandboxes_of_their_own(tmp_path):
    os.chmod(tmp_path, 0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.geteuid() and folder != folder.parent and str(folder).startswith('/tmp/'):
            os.chmod(folder, 0o755)
    one = Daemon(tmp_path, '--set', 'engine.socket_mode=0666', '--set', 'engine.socket_uids=0,12345').ready()
    try:
        ours = create(one)
        env = {**one.env, 'CAISSON_ENGINE_SOCKET': str(one.path)}
        as_user = lambda uid, *args: subprocess.run([CAISSON, *args], env=env, user=uid, group=uid, extra_groups=[], stdout=subprocess.PIPE,
                                                    stderr=subprocess.PIPE, check=False)
        done = as_user(12345, 'sandbox', 'list', '--json')
        assert (done.stdout.strip(), done.stderr) == (b'[]', b'')
        theirs = as_user(12345, 'sandbox', 'create').stdout.decode().strip()
        assert as_user(12345, 'sandbox', 'exec', theirs, 'echo', 'hi').stdout == b'hi\n'
        done = as_user(12345, 'sandbox', 'exec', ours, 'true')
        assert done.returncode == 64 and ours.encode() in done.stderr
        done = one.caisson('sandbox', 'exec', theirs, 'true')
        assert done.status == 64
        done = as_user(12346, 'sandbox', 'list')
        assert done.returncode == 77 and b'engine.socket_uids' in done.stderr
    finally:
        one.stop(signal.SIGTERM)


def test_a_socket_of_a_dead_daemon_is_replaced(tmp_path):
    one = Daemon(tmp_path).ready()
    one.stop(signal.SIGKILL)
    assert one.path.with_name(one.path.name + '.http').exists()
    two = Daemon(tmp_path).ready()
    assert two.caisson('sandbox', 'list').status == 0
    assert two.stop(signal.SIGTERM) == 0
    assert not two.path.with_name(two.path.name + '.http').exists()
