"""caisson serve: the daemon in the foreground, for somebody who wants to try it."""

import http.client
import json
import os
import pty
import shutil
import signal
import stat
import socket
import subprocess
import time

import pytest

from cli import CAISSON, caisson, environment, tree
from daemon import Daemon, alive, until


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Serve:
    def __init__(self, folder, *words):
        self.process = subprocess.Popen([CAISSON, 'serve', '--set', f'engine.socket={folder}/s', '--set', f'engine.state_dir={folder}', *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True)

    def said(self):
        lines = []
        while not lines or 'Ctrl-C' not in lines[-1]:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            lines.append(line)
        return ''.join(lines)

    def end(self, number):
        pids = tree(self.process.pid)
        self.process.send_signal(number)
        status = self.process.wait(30)
        until(lambda: not any(alive(pid) for pid in pids))
        return status


def test_it_says_where_it_is_and_the_line_to_try_works(tmp_path):
    port = free_port()
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}')
    said = one.said()
    assert f'http://127.0.0.1:{port}/docs' in said and 'needs no key' in said
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    connection.request('GET', '/v1/me')
    assert (f'  page   http://127.0.0.1:{port}/ui/\n' in said) == (json.loads(connection.getresponse().read())['page'] is None)
    line = next(line for line in said.splitlines() if line.strip().startswith('try'))
    code = line.split("-d '")[1].rstrip("'")
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    connection.request('POST', '/v1/runs', code)
    assert json.loads(connection.getresponse().read())['stdout'] == '42\n'
    assert one.end(signal.SIGTERM) == 0


def test_a_socket_of_the_file_system(tmp_path):
    one = Serve(tmp_path, '--listen', f'unix:{tmp_path}/h')
    assert f'--unix-socket {tmp_path}/h http://localhost/v1/runs' in one.said()
    assert one.end(signal.SIGTERM) == 0


def test_with_keys(tmp_path):
    assert caisson('keys', 'create', '--name', 'k', '--set', f'engine.state_dir={tmp_path}').status == 0
    port = free_port()
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}', '--keys')
    assert 'a key is needed' in one.said()
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
    connection.request('GET', '/v1/runs')
    assert connection.getresponse().status == 401
    connection.close()
    assert one.end(signal.SIGTERM) == 0


@pytest.mark.parametrize('words, status, text', [(['--listen', 'nonsense'], 78, 'engine.http'), (['--listen', '0.0.0.0:0'], 78, 'caisson keys create'),
                                                 (['--colour'], 64, '--colour'), (['x'], 64, 'unknown argument x')])
def test_what_cannot_be_is_told(tmp_path, words, status, text):
    one = Serve(tmp_path, *words)
    assert one.process.wait(40) == status and text in one.process.stderr.read() and not one.process.stdout.read()


def test_the_daemon_ends_with_it(tmp_path):
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{free_port()}')
    one.said()
    pids = tree(one.process.pid)
    one.process.kill()
    one.process.wait()
    time.sleep(0.1)
    until(lambda: not any(alive(pid) for pid in pids))


# ---- with no environment at all ----

class Bare:
    """Commands of a user without a name, a home and a variable."""

    def __init__(self):
        self.uid = 64000 + os.getpid() % 1000
        self.folder = f'/tmp/caisson-{self.uid}'
        self.words = ['setpriv', f'--reuid={self.uid}', f'--regid={self.uid}', '--clear-groups', 'env', '-i', CAISSON]

    def __call__(self, *words):
        return subprocess.run([*self.words, *words], cwd='/', capture_output=True, text=True, timeout=60, check=False)

    def serve(self, *words):
        return subprocess.Popen([*self.words, 'serve', *words], cwd='/', stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture(name='bare')
def bare_user():
    one = Bare()
    if os.geteuid() != 0:
        pytest.skip('needs root, to become another user')
    if one('version').returncode != 0:
        pytest.skip('other users cannot reach the build')
    yield one
    shutil.rmtree(one.folder, ignore_errors=True)


def test_serve_works_without_any_environment_and_its_clients_find_it(bare):
    port = free_port()
    process = bare.serve('--listen', f'127.0.0.1:{port}')
    try:
        line = process.stdout.readline()
        assert f'127.0.0.1:{port}' in line, process.stderr.read()
        mode = os.stat(bare.folder)
        assert (mode.st_uid, stat.S_IMODE(mode.st_mode)) == (bare.uid, 0o700)
        assert bare('ps').returncode == 0
        said = bare('e2b', 'env').stdout
        assert f'E2B_API_URL=http://127.0.0.1:{port}\n' in said and 'E2B_API_KEY=e2b_0000' in said
        done = bare('run', '-v', '-l', 'bash', '-c', 'echo hi')
        assert done.stdout == 'hi\n' and bare.folder in done.stderr, done
    finally:
        process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize('make', [lambda folder, _: os.mkdir(folder, 0o700), lambda folder, _: os.symlink('/tmp', folder),
                                  lambda folder, uid: (os.mkdir(folder), os.chown(folder, uid, uid), os.chmod(folder, 0o777))],
                         ids=['of another user', 'a link', 'open to others'])
def test_a_folder_that_is_not_of_this_user_alone_is_not_used(bare, make):
    make(bare.folder, bare.uid)
    try:
        done = bare('serve', '--listen', f'127.0.0.1:{free_port()}')
        assert done.returncode == 78 and f'{bare.folder} is no folder of this user alone' in done.stderr, done
        assert bare('ps').returncode != 0
    finally:
        if os.path.islink(bare.folder):
            os.unlink(bare.folder)


def test_e2b_env_prints_what_the_daemon_takes(tmp_path):
    port = free_port()
    where = ('--set', f'engine.socket={tmp_path}/s', '--set', f'engine.state_dir={tmp_path}')
    assert caisson('keys', 'create', '--name', 'first', *where).status == 0
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}', '--keys')
    try:
        until(lambda: caisson('ps', *where).status == 0)
        said = dict(line.removeprefix('export ').split('=') for line in caisson('e2b', 'env', *where).out.splitlines())
        assert said['E2B_API_URL'] == f'http://127.0.0.1:{port}' and not said['E2B_API_KEY'].startswith('e2b_0000')
        for key, status in ((said['E2B_API_KEY'], 200), ('e2b_' + '0' * 40, 401)):
            connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
            connection.request('GET', '/sandboxes', headers={'X-API-Key': key})
            assert connection.getresponse().status == status
    finally:
        one.end(signal.SIGTERM)


def test_e2b_env_says_where_nobody_answers(tmp_path):
    port = free_port()
    where = ('--set', f'engine.socket={tmp_path}/s', '--set', f'engine.http=127.0.0.1:{port}', '--set', 'engine.http_keyless=true')
    done = caisson('e2b', 'env', *where)
    assert done.status == 0 and f'E2B_API_URL=http://127.0.0.1:{port}\n' in done.out
    assert done.err == f'caisson: no daemon answers at 127.0.0.1:{port}; caisson serve starts one\n'
    assert caisson('e2b', 'env', '--url', 'http://example.org', *where).err == '', 'the address is the user\'s own'
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}')
    try:
        said = one.said()
        assert f'watch  CAISSON_ENGINE_SOCKET={tmp_path}/s caisson top\n' in said
        assert caisson('e2b', 'env', *where).err == ''
    finally:
        one.end(signal.SIGTERM)


def test_e2b_env_says_that_a_daemon_has_no_http(tmp_path):
    one = Daemon(tmp_path).ready()
    assert 'has no HTTP interface' in one.caisson('e2b', 'env', '--set', 'engine.http_keyless=true').err
    one.stop(signal.SIGTERM)


def test_a_hangup_reads_the_settings_again(tmp_path):
    file = tmp_path / 'caisson.yaml'
    file.write_text('limits: {pids: 33}\n')
    one = Serve(tmp_path, '--listen', f'unix:{tmp_path}/h', '--config', str(file))
    try:
        one.said()
        pids = lambda: json.loads(caisson('run', '--json', '--daemon', 'always', '-l', 'bash', '-c', 'true',
                                          env={'CAISSON_ENGINE_SOCKET': f'{tmp_path}/s'}).out)['limits']['pids']
        assert pids() == 33
        file.write_text('limits: {pids: 44}\n')
        one.process.send_signal(signal.SIGHUP)
        until(lambda: pids() == 44)
        assert one.process.poll() is None
    finally:
        one.end(signal.SIGTERM)


def test_a_terminal_that_is_closed_ends_the_daemon(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(CAISSON, [CAISSON, 'serve', '--set', f'engine.socket={tmp_path}/s', '--set', f'engine.state_dir={tmp_path}', '--listen', f'unix:{tmp_path}/h'],
                  environment())
    shown = b''
    while b'Ctrl-C' not in shown:
        shown += os.read(terminal, 4096)
    pids = tree(pid)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 143)
    until(lambda: not any(alive(one) for one in pids))


def test_mcp_of_root_becomes_an_ordinary_user(tmp_path):
    if os.geteuid() != 0:
        pytest.skip('needs root')
    process = subprocess.Popen(['env', '-i', CAISSON, 'mcp', '--daemon', 'never'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=open(tmp_path / 'err', 'w'), text=True)
    process.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {
        'protocolVersion': '2025-03-26', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}}) + '\n')
    process.stdin.flush()
    assert 'serverInfo' in process.stdout.readline()
    daemon = next(pid for pid in tree(process.pid) if b'caissond' in open(f'/proc/{pid}/cmdline', 'rb').read().split(b'\0')[0])
    folder = next(word for word in open(f'/proc/{daemon}/cmdline').read().split('\0') if word.startswith('engine.socket=')).removeprefix('engine.socket=')
    status = dict(line.split(':', 1) for line in open(f'/proc/{daemon}/status').read().splitlines())
    assert '0' not in status['Uid'].split() and int(status['CapEff'], 16) == 0
    sockets = os.path.dirname(folder)
    assert stat.S_IMODE(os.stat(sockets).st_mode) == 0o700 and os.stat(sockets).st_uid == 0
    process.stdin.close()
    process.wait(30)
    assert (tmp_path / 'err').read_text() == '' and not os.path.exists(os.path.dirname(sockets))


# ---- where no program can be run ----

def test_a_daemon_that_can_run_nothing_says_so(tmp_path):
    port = free_port()
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}', '--set', 'engine.cgroup_parent=no/such/cgroup')

    def ask(method, path, body=None):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
        connection.request(method, path, body, headers={'Idempotency-Key': 'one'} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.headers, json.loads(answer.read())

    try:
        one.said()
        for method, path, body in (('GET', '/readyz', None), ('POST', '/v1/runs', '{"language": "bash", "code": "true"}'),
                                   ('POST', '/v1/runs', '{"language": "bash", "code": "true"}'), ('GET', '/readyz', None)):
            status, headers, problem = ask(method, path, body)
            assert (status, problem['code'], headers['Content-Type']) == (503, 'engine_error', 'application/problem+json'), problem
            assert headers['Retry-After'] and problem['detail'] and 'Idempotency-Replayed' not in headers
        assert ask('GET', '/healthz')[0] == 200
        assert ask('POST', '/v1/runs', '{"language": "cobol", "code": "true"}')[2]['status'] == 'unsupported_language'
        while 'warning: no program can be run here now' not in (line := one.process.stderr.readline()):
            assert line
    finally:
        one.end(signal.SIGTERM)


def test_a_daemon_that_can_run_programs_is_ready_and_warns_of_nothing(tmp_path):
    port = free_port()
    one = Serve(tmp_path, '--listen', f'127.0.0.1:{port}')
    one.said()
    for _ in range(2):
        connection = http.client.HTTPConnection('127.0.0.1', port, timeout=30)
        connection.request('GET', '/readyz')
        assert connection.getresponse().status == 200
    assert one.end(signal.SIGTERM) == 0 and 'no program can be run' not in one.process.stderr.read()
