"""GET /readyz where descriptors are used up: by clients, who cannot, and by a limit that is lowered while the daemon runs."""

import json
import os
import resource
import signal
import socket

import pytest

from cli import CAISSON
from daemon import Daemon, until
from web import Web

RUN = {'language': 'bash', 'code': 'echo hello'}


@pytest.fixture()
def web(tmp_path, request):
    few = getattr(request, 'param', None)
    command = ['prlimit', f'--nofile={few}:{few}'] if few else []
    web = Web(tmp_path, command=command)
    yield web
    web.daemon.stop()


def ask(connection, method, path, body=None):
    connection.request(method, path, json.dumps(body) if body else None)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize('web', [128, 256, 1024], indirect=True)
def test_clients_cannot_use_up_what_runs_need(web):
    kept = web.open()
    assert ask(kept, 'GET', '/readyz')[0] == 200
    held = []
    try:
        for _ in range(1100):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(('127.0.0.1', web.port))
            held.append(one)
        for _ in range(300):
            one = socket.socket(socket.AF_UNIX)
            one.setblocking(False)
            if one.connect_ex(str(web.daemon.path)):
                one.close()
                break
            held.append(one)
        for language, code in (('bash', 'echo hello'), ('python', 'print("hello")'), ('javascript', 'console.log("hello")')):
            status, record = ask(kept, 'POST', '/v1/runs', {'language': language, 'code': code})
            assert status == 200 and record['stdout'] == 'hello\n', record
        assert ask(kept, 'GET', '/readyz')[0] == 200
    finally:
        for one in held:
            one.close()
    until(lambda: web.ask('GET', '/readyz')[0] == 200)


def test_descriptors_that_are_used_up_are_told_and_come_back(web):
    pid = web.daemon.process.pid
    kept = web.open()
    assert ask(kept, 'POST', '/v1/runs', RUN)[0] == 200
    whole = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, whole[1]))
    seen = set()
    for _ in range(30):     # sandboxes that wait need nothing more
        status, answer = ask(kept, 'POST', '/v1/runs', RUN)
        seen.add((status, answer.get('code')))
        assert (status, answer.get('code'), answer.get('retryable')) == (503, 'capacity', True) or status == 200, answer
    assert (503, 'capacity') in seen
    status, answer = ask(kept, 'GET', '/readyz')
    assert status == 503 and 'Too many open files' in answer['detail'] and os.path.dirname(os.path.abspath(CAISSON)) not in answer['detail'], answer
    resource.prlimit(pid, resource.RLIMIT_NOFILE, whole)
    until(lambda: ask(kept, 'GET', '/readyz')[0] == 200, 10)
    assert ask(kept, 'POST', '/v1/runs', RUN)[0] == 200
    assert 'ended unexpectedly' not in web.log.read_text()


def test_a_daemon_without_a_network_listener_is_ready_at_the_socket_of_its_host(tmp_path):
    daemon = Daemon(tmp_path).ready()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(f'{daemon.path}.http')
        connection.sendall(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        assert connection.recv(100).startswith(b'HTTP/1.1 200 ')
    assert daemon.stop(signal.SIGTERM) == 0
