"""caisson serve: the daemon in the foreground, for somebody who wants to try it."""

import http.client
import json
import signal
import socket
import subprocess
import time

import pytest

from cli import CAISSON, caisson, environment, tree
from daemon import alive, until


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
