"""The backend e2b: runs in the sandboxes of another server, which is a daemon of ours in a process of its own.

    /usr/bin/python3 -m pytest -q tests/integration/compat/test_backend_e2b.py
"""

import http.server
import json
import os
import signal
import threading

import pytest
from daemon import until
from web import Web

KEY = 'e2b_00ff'


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    """The one that has the sandboxes."""
    web = Web(tmp_path_factory.mktemp('server'), '--set', 'engine.sandboxes_owner_max=50')
    yield web
    web.daemon.stop()


def settings_for(url, **more):
    given = {'e2b_api_key': KEY, 'e2b_api_url': url, 'e2b_sandbox_url': url, **more}
    return [word for name, value in given.items() for word in ('--set', 'engine.%s=%s' % (name, value))]


@pytest.fixture(scope='module')
def client(server, tmp_path_factory):
    """The one that is asked to run programs."""
    web = Web(tmp_path_factory.mktemp('client'), *settings_for('http://127.0.0.1:%d' % server.port))
    yield web
    web.daemon.stop()


def run(client, code, language='python', **more):
    return client.run(code, language, backend='e2b', **more)


def refused(client):
    """The problem of a run of which nothing ran: (code, detail)."""
    status, headers, problem = client.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(1)', 'backend': 'e2b'})
    assert status == 503 and headers['Retry-After'], problem
    return problem['code'], problem['detail']


def sandboxes(server):
    return server.ask('GET', '/v2/sandboxes', X_API_Key=KEY)[2]


def test_a_program_runs_elsewhere(client, server):
    record = run(client, 'import sys\nprint("out")\nprint("error", file=sys.stderr)\n6 * 7')
    assert record['status'] == 'completed', record
    assert (record['stdout'], record['stderr'], record['exit_code']) == ('out\n', 'error\n', 0)
    assert record['result']['repr'] == '42'
    assert record['boundary']['backend'] == 'e2b' and record['boundary']['isolation'] == 'remote'
    assert record['usage']['wall_ms'] > 0
    until(lambda: sandboxes(server) == [])


@pytest.mark.parametrize('language, code', [('javascript', 'console.log(1 + 1)'), ('typescript', 'const n: number = 2; console.log(n)'),
                                            ('bash', 'echo $((1 + 1))')])
def test_in_other_languages(client, language, code):
    record = run(client, code, language)
    assert (record['status'], record['stdout']) == ('completed', '2\n'), record


def test_an_error_is_told(client):
    record = run(client, 'def f():\n    return 1 / 0\nf()')
    assert (record['status'], record['exit_code']) == ('failed', 1)
    assert (record['error']['type'], record['error']['message']) == ('ZeroDivisionError', 'division by zero')
    assert any('1 / 0' in line for line in record['error']['traceback'])


def test_an_error_of_the_syntax(client):
    record = run(client, 'foo bar')
    assert (record['status'], record['error']['type']) == ('syntax_error', 'SyntaxError')


def test_environment_and_labels(client):
    assert run(client, 'import os\nprint(os.environ["A"])', env={'A': 'b c'}, labels={'who': 'me'})['stdout'] == 'b c\n'


def test_files_go_there_and_come_back(client):
    bytes_in = bytes(range(256))
    code = ('import os\ndata = open("in/a b.bin", "rb").read()\nopen("new.bin", "wb").write(data[::-1])\n'
            'os.makedirs("sub", exist_ok=True)\nopen("sub/ü.txt", "w").write("x")\nopen("same.txt").read()\n'
            'open("changed.txt", "a").write("!")\nprint(len(data))')
    files = [{'name': 'in/a b.bin', 'content_base64': __import__('base64').b64encode(bytes_in).decode()},
             {'name': 'same.txt', 'content': 'same'}, {'name': 'changed.txt', 'content': 'changed'}]
    record = run(client, code, files=files)
    assert (record['status'], record['stdout']) == ('completed', '256\n'), record
    found = {one['name']: one for one in record['files']}
    assert sorted(found) == ['changed.txt', 'new.bin', 'sub/ü.txt']
    assert (found['changed.txt']['size_bytes'], found['changed.txt']['changed']) == (8, True)
    assert found['new.bin']['size_bytes'] == 256 and not found['new.bin']['changed']
    import hashlib
    assert found['new.bin']['sha256'] == hashlib.sha256(bytes_in[::-1]).hexdigest()


def test_much_output_is_all_there(client):
    record = run(client, 'print("x" * 900_000)', limits={'output_bytes': 1000000})
    assert len(record['stdout']) == 900_001


def test_the_time_is_limited(client, server):
    record = run(client, 'import time\nprint("begun", flush=True)\ntime.sleep(60)', limits={'wall_ms': 5000})
    assert (record['status'], record['stdout']) == ('timeout', 'begun\n')
    assert 5000 <= record['usage']['wall_ms'] < 40000
    until(lambda: sandboxes(server) == [])


def test_one_that_is_cancelled_leaves_nothing(client, server):
    _, _, state = client.ask('POST', '/v1/runs', {'language': 'python', 'code': 'import time; time.sleep(60)', 'backend': 'e2b'}, Prefer='respond-async')
    until(lambda: sandboxes(server))
    client.ask('DELETE', '/v1/runs/' + state['id'])
    until(lambda: client.ask('GET', '/v1/runs/' + state['id'])[2].get('status') == 'cancelled')
    until(lambda: sandboxes(server) == [])


def test_packages_that_cannot_be_installed(client):
    record = run(client, 'print(1)', packages=['there-is-no-such-package-here'])
    assert record['status'] == 'dependency_failed' and record['error']['field'] == '/packages', record
    assert record['stderr'] != ''


def test_packages_have_names(client):
    record = run(client, 'print(1)', packages=["a'b"])
    assert record['status'] == 'bad_request' and record['error']['field'] == '/packages', record


@pytest.mark.parametrize('more', [{'stdin': 'x'}, {'tools': {'enabled': True}}, {'args': ['x']}, {'network': 'allow', 'allow': ['example.org']}])
def test_what_cannot_be_had_there_is_refused(client, more):
    record = run(client, 'print(1)', **more)
    assert record['status'] == 'bad_request' and record['error']['field'] == '/' + next(iter(more))


def test_a_profile_may_name_it(server, tmp_path):
    (tmp_path / 'elsewhere.yaml').write_text('description: elsewhere\nbackend: e2b\n')
    client = Web(tmp_path, *settings_for('http://127.0.0.1:%d' % server.port), '--set', 'engine.profiles_dir=%s' % tmp_path)
    record = client.run('print(1)', 'python', profile='elsewhere')
    assert (record['stdout'], record['boundary']['backend']) == ('1\n', 'e2b'), record
    client.daemon.stop()


def test_without_a_key_it_says_so(tmp_path):
    client = Web(tmp_path)
    code, detail = refused(client)
    assert code == 'engine_error' and 'engine.e2b_api_key' in detail
    client.daemon.stop()


def test_the_key_is_never_shown(client):
    record = run(client, 'import os\nprint(dict(os.environ))')
    assert KEY not in json.dumps(record)
    assert KEY not in client.log.read_text()


def test_a_server_that_dies_in_the_middle(tmp_path):
    server = Web(tmp_path / 'server') if (tmp_path / 'server').mkdir() is None else None
    client = Web(tmp_path, *settings_for('http://127.0.0.1:%d' % server.port))
    _, _, state = client.ask('POST', '/v1/runs', {'language': 'python', 'code': 'import time\nprint(1, flush=True)\ntime.sleep(60)', 'backend': 'e2b'},
                             Prefer='respond-async')
    events = client.stream('GET', '/v1/runs/%s/events' % state['id'], Accept='application/x-ndjson')
    while b'"stdout"' not in (line := events.readline()):
        assert line, 'it prints'
    events.close()
    os.kill(server.daemon.process.pid, signal.SIGKILL)
    record = until(lambda: (one := client.ask('GET', '/v1/runs/' + state['id'])[2]).get('status') and one)
    assert record['status'] == 'engine_error' and 'execute with the backend e2b' in record['error']['message'], record
    code, detail = refused(client)
    assert code == 'engine_error' and 'make a sandbox' in detail
    client.daemon.stop()


# ---- servers that are not as they should be

class Odd(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def answer(self):
        status, body = self.server.answers(self)
        self.rfile.read(int(self.headers.get('Content-Length') or 0))
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def odd(tmp_path):
    """odd(answers) -> a client of a server that gives these answers"""
    opened = []

    def serve(answers):
        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Odd)
        server.answers = answers
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = Web(tmp_path, *settings_for('http://127.0.0.1:%d' % server.server_port))
        opened.extend([server, client])
        return client

    yield serve
    for one in opened:
        one.shutdown() if hasattr(one, 'shutdown') else one.daemon.stop()


@pytest.mark.parametrize('status, body, outcome', [
    (429, b'{"message":"too many"}', 'capacity'), (503, b'', 'capacity'), (401, b'{"message":"no"}', 'engine_error'), (500, b'x', 'engine_error'),
    (201, b'{"sandboxID":"../x"}', 'engine_error'), (201, b'[]', 'engine_error'), (201, b'\xff', 'engine_error'),
    (201, b'{"sandboxID":"i1","domain":"a/b"}', 'engine_error'),
])
def test_a_server_that_gives_no_sandbox(odd, status, body, outcome):
    client = odd(lambda request: (status, body))
    assert refused(client)[0] == outcome


def test_names_and_lines_of_a_hostile_server(odd):
    made = json.dumps({'sandboxID': 'i1'}).encode()
    names = ['/home/user/../../etc/x', '/etc/passwd', '/home/user/ok.txt', '/home/user//x', '/home/user/a\nb', 7, None]
    lists = iter([b'{"entries":[]}', json.dumps({'entries': [{'path': name, 'type': 'FILE_TYPE_FILE', 'size': '1'} for name in names]}).encode()])
    lines = b'nonsense\n[]\n{"type":7}\n{"type":"stdout"}\n{"type":"stdout","text":"a"}\n{"type":"result","text":"v","is_main_result":true}\n{"type":"end_of_execution"}\n{"type":"stdout","text":"late"}\n'

    def answers(request):
        if request.path == '/execute':
            return 200, lines
        if request.path.endswith('/ListDir'):
            return 200, next(lists)
        return (201, made) if request.path == '/sandboxes' else (200, b'y')

    record = run(odd(answers), 'print(1)')
    assert (record['status'], record['stdout'], record['result']['repr']) == ('completed', 'a', 'v'), record
    assert [one['name'] for one in record['files']] == ['ok.txt']
