"""The backend docker, against a stub of the engine's API whose containers run the real guest (tests/lib/docker_stub.py).

    /usr/bin/python3 -m pytest -q tests/integration/compat/test_backend_docker.py

tests/debian/docker has such programs with a real dockerd and podman.
"""

import os
import signal
import time

import pytest
from daemon import until
from docker_stub import DockerStub
from web import Web

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='the containers of the stub are made by root')


class Docker:
    """A daemon and its stub."""

    def __init__(self, folder, settings=(), **faults):
        self.folder, self.settings = folder, settings
        self.stub = DockerStub(folder, **faults)
        self.start()

    def start(self):
        words = [f'docker.host=unix://{self.stub.path}', 'docker.image=base', 'docker.warm=0', 'engine.user=root', *self.settings]
        self.web = Web(self.folder, *[word for one in words for word in ('--set', one)])

    def run(self, code, language='python', **more):
        return self.web.run(code, language, backend='docker', **more)

    def problem(self, **more):
        status, _, problem = self.web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(1)', 'backend': 'docker', **more})
        assert status >= 400, problem
        return problem['code'], problem['detail']

    def begin(self, code='import time\nopen("begun", "w")\ntime.sleep(100)'):
        """The id of a run whose program sleeps."""
        made = self.web.ask('POST', '/v1/runs', {'language': 'python', 'code': code, 'backend': 'docker'}, Prefer='respond-async')[2]['id']
        until(lambda: any(one.process and one.process.poll() is None for one in self.stub.containers.values()))
        time.sleep(1)
        return made

    def record(self, made):
        return until(lambda: (got := self.web.ask('GET', f'/v1/runs/{made}')[2]) and 'status' in got and got)

    def stop(self):
        self.web.daemon.stop()
        self.stub.stop()


@pytest.fixture(scope='module')
def docker(tmp_path_factory):
    docker = Docker(tmp_path_factory.mktemp('docker'))
    yield docker
    docker.stop()


@pytest.fixture
def make(tmp_path):
    made = []

    def make(settings=(), **faults):
        made.append(Docker(tmp_path, settings, **faults))
        return made[-1]
    yield make
    for one in made:
        one.stop()


# ---- what a native run has ----

@pytest.mark.parametrize('language, code', [('python', 'print(1 + 1)'), ('javascript', 'console.log(1 + 1)'),
                                            ('typescript', 'const n: number = 2; console.log(n)'), ('bash', 'echo $((1 + 1))')])
def test_a_program_in_each_language(docker, language, code):
    record = docker.run(code, language)
    assert (record['status'], record['stdout'], record['exit_code']) == ('completed', '2\n', 0), record
    assert record['usage']['wall_ms'] > 0


def test_value_streams_and_input(docker):
    record = docker.run('import sys\nprint(sys.stdin.read().upper(), sys.argv[1:])\nprint("error", file=sys.stderr)\n6 * 7',
                        stdin='some input', args=['a', 'b c'], env={'X': 'y'})
    assert (record['stdout'], record['stderr'], record['result']['value']) == ("SOME INPUT ['a', 'b c']\n", 'error\n', 42), record


def test_a_long_input(docker):
    record = docker.run('import sys, hashlib\ntext = sys.stdin.read()\nprint(len(text), text[-3:])', stdin='abc' * 1000000)
    assert record['stdout'] == '3000000 abc\n', record


def test_input_that_nobody_reads(docker):
    record = docker.run('print(1)', stdin='abc' * 1000000)
    assert (record['status'], record['stdout']) == ('completed', '1\n'), record


def test_files_both_ways(docker):
    record = docker.run(
        'import os, pathlib\n'
        'print(open("in.txt").read(), open("folder/deep.txt").read(), oct(os.stat("run.sh").st_mode)[-3:])\n'
        'open("out.txt", "w").write("new")\n'
        'open("in.txt", "a").write(" and more")\n'
        'os.remove("folder/deep.txt")\n'
        'pathlib.Path("made/deep").mkdir(parents=True)\n'
        'open("made/deep/big.bin", "wb").write(bytes(3000000))\n'
        'os.symlink("/etc/passwd", "link")\n',
        files=[{'name': 'in.txt', 'content': 'hello'}, {'name': 'folder/deep.txt', 'content': 'deep'},
               {'name': 'kept.txt', 'content': 'kept'}, {'name': 'run.sh', 'content': '#!/bin/sh\n'}])
    assert (record['status'], record['stdout']) == ('completed', 'hello deep 644\n'), record
    files = {one['name']: one for one in record['files']}
    assert set(files) == {'out.txt', 'in.txt', 'made/deep/big.bin'}, files
    assert files['made/deep/big.bin']['size_bytes'] == 3000000 and files['in.txt']['size_bytes'] == 14


def test_an_error_and_its_traceback(docker):
    record = docker.run('def f():\n    return 1 / 0\nf()')
    assert (record['status'], record['exit_code']) == ('failed', 1)
    assert (record['error']['type'], record['error']['message']) == ('ZeroDivisionError', 'division by zero')


def test_an_error_of_the_syntax(docker):
    assert docker.run('foo bar')['status'] == 'syntax_error'


@pytest.mark.parametrize('code, status, exit_code', [('import os; os._exit(7)', 'failed', 7), ('import sys; sys.exit(3)', 'failed', 3)])
def test_exit_statuses(docker, code, status, exit_code):
    record = docker.run(code)
    assert (record['status'], record['exit_code']) == (status, exit_code), record


def test_a_signal(docker):
    record = docker.run('import ctypes; ctypes.string_at(0)')
    assert record['status'] == 'crashed' and 'SEGV' in record['error']['message'], record


def test_a_timeout_keeps_output_and_files(docker):
    record = docker.run('import time\nprint("before", flush=True)\nopen("kept", "w").write("x")\ntime.sleep(100)', limits={'wall_ms': 1000})
    assert record['status'] == 'timeout' and record['stdout'] == 'before\n', record
    assert [one['name'] for one in record['files']] == ['kept'] and record['usage']['wall_ms'] < 5000


def test_a_timeout_of_cpu_time(docker):
    record = docker.run('while True: pass', limits={'cpu_ms': 500, 'wall_ms': 20000})
    # A stub without cgroups reports CPU time of processes that have ended, so the wall clock may be first.
    assert record['status'] in ('cpu_limit', 'timeout'), record


def test_cancel(docker):
    made = docker.begin()
    assert docker.web.ask('DELETE', f'/v1/runs/{made}')[0] == 202
    assert docker.record(made)['status'] == 'cancelled'
    until(lambda: not docker.stub.containers)


def test_a_flood_of_output_is_cut(docker):
    record = docker.run('import sys\nfor _ in range(3000): sys.stdout.write("x" * 10000)')
    assert record['status'] == 'completed' and record['truncated']['stdout_total_bytes'] == 30000000, record['status']


def test_a_full_disk(docker):
    record = docker.run('open("big", "wb").write(bytes(60000000))', limits={'disk_bytes': 8000000})
    assert record['status'] == 'disk_exceeded', record


def test_processes_that_the_program_left(docker):
    record = docker.run('import subprocess\nsubprocess.Popen(["sleep", "100"], start_new_session=True)\nprint("over")')
    assert (record['status'], record['stdout']) == ('completed', 'over\n'), record
    assert any(one['code'] == 'background_killed' for one in record['warnings']), record['warnings']


def test_a_source_policy(docker):
    record = docker.run('import subprocess', policy='kodeagent')
    assert record['status'] == 'blocked', record


def test_tools(docker):
    record = docker.run('import tools\nprint(tools.weather(city="Oslo"), len(tools.home.weather(city="Oslo")))', tools={'record': True, 'replay': [
        {'server': 'home', 'tool': 'weather', 'arguments': {'city': 'Oslo'}, 'result': {'t': -3, 'pad': 'x' * 150000}}] * 2})
    assert record['status'] == 'completed' and record['tools']['calls'] == 2 and record['stdout'].endswith(' 150020\n'), record['stderr']


def test_no_network(docker):
    record = docker.run('import socket\ntry: socket.create_connection(("1.1.1.1", 80), 3)\nexcept OSError as error: print(error)\n'
                        'print(open("/proc/net/dev").read().count(":"))')
    assert record['stdout'].endswith('\n1\n') and record['boundary']['network'] == 'none', record


def test_network_goes_through_the_proxy(docker):
    code = ('import os, socket\nhost, port = os.environ["HTTP_PROXY"].rpartition("/")[2].split(":")\none = socket.create_connection((host, int(port)), 5)\n'
            'one.sendall(b"GET http://127.0.0.1:1/ HTTP/1.1\\r\\nHost: 127.0.0.1:1\\r\\n\\r\\n")\nprint(one.recv(1000).split(b"\\r\\n")[0])')
    record = docker.run(code, network='public')
    assert '403' in record['stdout'] and record['boundary']['network'] == 'proxy', record


def test_the_boundary_is_what_was_reported(docker):
    boundary = docker.run('print(open("/proc/self/status").read())')['boundary']
    assert boundary['backend'] == 'docker' and boundary['capabilities'] == 0 and boundary['no_new_privileges'], boundary
    # The stub loads no seccomp filter and sets no limits, and the record says so.
    assert boundary['isolation'] == 'degraded' and not boundary['seccomp'], boundary
    assert boundary['host_uid'] == 1001 and 'pid' in boundary['namespaces']


# ---- what a program tries ----

@pytest.mark.parametrize('code', ['import os; os.kill(1, 9); print("alive")',
                                  'import os; os.kill(1, 19); print("alive")',
                                  'import os\ntry: print(open("/proc/1/fd/1", "wb").write(b"forged"))\nexcept OSError: print("alive")',
                                  'import os\ntry: print(open("/proc/1/mem", "rb").read(1))\nexcept OSError: print("alive")',
                                  'import os\ntry: os.write(3, b"no frame"); print("alive")\nexcept OSError: print("alive")'])
def test_process_1_is_out_of_reach(docker, code):
    record = docker.run(code)
    assert record['stdout'] == 'alive\n' and record['status'] in ('completed', 'failed'), record


def test_a_fork_that_never_ends_is_killed(docker):
    code = 'import os, time\nwhile True:\n    try:\n        if os.fork() == 0: time.sleep(100)\n    except OSError: time.sleep(0.1)'
    record = docker.run('import resource; resource.setrlimit(resource.RLIMIT_NPROC, (50, 50))\n' + code, limits={'wall_ms': 1500})
    assert record['status'] == 'timeout', record
    until(lambda: not docker.stub.containers)


# ---- containers ----

def test_each_container_is_removed_and_serves_one_run(make):
    docker = make(['docker.warm=2'])
    for _ in range(4):
        assert docker.run('import os\nprint(os.path.exists("/tmp/mark")); open("/tmp/mark", "w")')['stdout'] == 'False\n'
    until(lambda: len(docker.stub.containers) == 2)
    # The containers of the runs are gone, and each had a body of its own.
    assert len(docker.stub.made) >= 5
    body = docker.stub.made[0].body
    assert body['HostConfig']['CapDrop'] == ['ALL'] and body['HostConfig']['ReadonlyRootfs'] and body['HostConfig']['NetworkMode'] == 'none'
    assert body['HostConfig']['Memory'] == body['HostConfig']['MemorySwap'] > 0 and body['HostConfig']['PidsLimit'] > 0
    assert body['User'] == '1001:1001' and not body['Tty'] and 'io.caisson.instance' in body['Labels']


def test_other_limits_take_other_containers(make):
    docker = make(['docker.warm=1'])
    docker.run('1')
    until(lambda: len(docker.stub.containers) == 1)
    docker.run('1', limits={'memory_bytes': 300000000})
    assert docker.stub.made[-1].body['HostConfig']['Memory'] == 300000000 or docker.stub.made[-2].body['HostConfig']['Memory'] == 300000000
    until(lambda: [one.body['HostConfig']['Memory'] for one in docker.stub.containers.values()] == [300000000])


def test_images_and_runtime_of_the_settings(make):
    docker = make(['docker.images=javascript=node-image,bash=other', 'docker.runtime=runsc', 'docker.user=4242:4343', 'docker.gpus=all'],
                  images=['base', 'node-image'])
    assert docker.run('import os; print(os.getuid(), os.getgid())')['stdout'] == '4242 4343\n'
    assert docker.run('console.log(1)', 'javascript')['status'] == 'completed'
    assert [one.body['Image'] for one in docker.stub.made] == ['base', 'node-image']
    config = docker.stub.made[0].body['HostConfig']
    assert config['Runtime'] == 'runsc' and config['DeviceRequests'][0]['Count'] == -1
    code, text = docker.problem(language='bash', code='echo 1')
    assert 'image_missing' in text and '"other"' in text


def test_an_image_is_fetched_where_the_settings_want_it(make):
    docker = make(['docker.pull=missing'], images=[])
    assert docker.run('print(1)')['stdout'] == '1\n'
    assert docker.stub.counted('pull') == 1


def test_leftovers_are_removed_at_the_start(make):
    docker = make(['docker.warm=1'])
    docker.run('1')
    until(lambda: len(docker.stub.containers) == 1)
    docker.web.daemon.process.send_signal(signal.SIGKILL)
    docker.web.daemon.process.wait()
    left = list(docker.stub.containers)
    assert left
    docker.start()
    assert docker.run('print(1)')['stdout'] == '1\n'
    until(lambda: not set(left) & set(docker.stub.containers))


def test_another_daemon_at_the_same_engine_removes_nothing_of_this_one(make, tmp_path):
    docker = make(['docker.warm=1'])
    made = docker.begin('import time\ntime.sleep(2)\nprint("whole")')
    folder = tmp_path / 'other'
    folder.mkdir()
    other = Web(folder, '--set', f'docker.host=unix://{docker.stub.path}', '--set', 'docker.image=base', '--set', 'engine.user=root')
    try:
        assert other.run('print(1)', 'python', backend='docker')['stdout'] == '1\n'
        assert docker.record(made)['stdout'] == 'whole\n'
    finally:
        other.daemon.stop()


def test_waiting_containers_have_an_end(make):
    docker = make(['docker.warm=1', 'docker.warm_idle=1s'])
    docker.run('1')
    until(lambda: len(docker.stub.containers) == 1)
    until(lambda: not docker.stub.containers)


# ---- engines with faults ----

@pytest.mark.parametrize('faults', [{'attach': 200}, {'split': 1}, {'split': 5}, {'api': '1.44'}, {'api': '1.99'}, {'attach': 200, 'split': 3},
                                    {'refuses_uid': True}])
def test_engines_of_other_kinds(make, faults):
    docker = make(**faults)
    record = docker.run('print("x" * 5000)\n42', files=[{'name': 'a', 'content': 'b'}])
    assert (record['status'], record['stdout'], record['result']['value']) == ('completed', 'x' * 5000 + '\n', 42), record
    prefix = '/v1.51' if faults.get('api') == '1.99' else f'/v{faults.get("api", "1.41")}'
    assert all(path.startswith(prefix) for call, path in docker.stub.calls if call != 'ping')


@pytest.mark.parametrize('faults, words', [
    ({'api': '1.40'}, ['backend_version', '1.40', '1.41']),
    ({'api': ''}, ['backend_version']),
    ({'fail': {'ping': (500, 'no')}}, ['backend_unreachable']),
    ({'fail': {'list': (500, 'no')}}, None),
    ({'images': []}, ['image_missing', 'base', 'docker pull']),
    ({'fail': {'create': (500, 'no space left')}}, ['container_start_failed', 'no space left']),
    ({'fail': {'create': (400, 'invalid mount config for type "bind": bind source path does not exist: /x')}}, ['container_start_failed', 'docker.guest']),
    ({'fail': {'create': (409, 'in use')}}, ['container_start_failed', '409']),
    ({'fail': {'attach': (404, 'No such container')}}, ['attach', '404']),
    ({'fail': {'start': (500, 'OCI runtime create failed: exec: "/opt/caisson/guest": no such file')}}, ['image_unsuitable', 'COPY lang']),
    ({'fail': {'start': (500, 'cgroup trouble')}}, ['container_start_failed', 'cgroup trouble']),
    ({'fail': {'inspect': (500, 'no')}}, ['container_start_failed']),
    ({'program': ['true']}, ['container_start_failed']),
    ({'program': ['sh', '-c', 'echo broken >&2; exit 3']}, ['container_start_failed', 'broken']),
    ({'program': ['echo', 'no frames at all, and more than eight bytes']}, ['frame']),
    ({'program': ['sh', '-c', 'printf "\\11\\0\\0\\0\\0\\0\\0\\0\\1\\11\\0\\0\\0\\0\\0\\0\\0"; cat']}, ['image_unsuitable', 'version 9']),
])
def test_an_engine_with_a_fault_is_an_error_with_a_remedy(make, faults, words):
    docker = make(**faults)
    if words is None:
        assert docker.run('print(1)')['stdout'] == '1\n'
        return
    _, text = docker.problem()
    for word in words:
        assert word in text, text
    until(lambda: not docker.stub.containers)


@pytest.mark.parametrize('call', ['ping', 'create', 'attach', 'start', 'inspect'])
def test_an_engine_that_hangs_is_an_error(make, call):
    docker = make(['docker.start_timeout=1s'], hang={call})
    began = time.monotonic()
    _, text = docker.problem()
    assert time.monotonic() - began < 15 and 'docker.start_timeout' in text, text


@pytest.mark.parametrize('call', ['ping', 'create', 'start'])
def test_a_slow_engine_is_waited_for(make, call):
    docker = make(delay={call: 1})
    assert docker.run('print(1)')['stdout'] == '1\n'


def test_no_engine(make):
    docker = make()
    docker.stub.stop()
    _, text = docker.problem()
    assert 'backend_unreachable' in text and 'docker.host' in text, text


def test_an_engine_that_ends_in_the_middle(make):
    docker = make()
    made = docker.begin()
    docker.stub.stop()
    record = docker.record(made)
    assert record['status'] == 'engine_error' and record['error']['code'] == 'worker_lost' and 'container ended' in record['error']['message'], record


@pytest.mark.parametrize('state, status', [({'OOMKilled': True}, 'memory_exceeded'), ({'OOMKilled': False, 'ExitCode': 137}, 'engine_error'),
                                           ({'OOMKilled': False, 'ExitCode': 1}, 'engine_error')])
def test_a_container_that_ends_is_asked_why(make, state, status):
    docker = make(facts={'State': state})
    made = docker.begin()
    list(docker.stub.containers.values())[0].remove()
    assert docker.record(made)['status'] == status


def test_an_engine_that_comes_back(make):
    docker = make()
    assert docker.run('print(1)')['stdout'] == '1\n'
    path = docker.stub
    docker.stub.stop()
    docker.problem()
    docker.stub = DockerStub(docker.folder)
    assert docker.run('print(2)')['stdout'] == '2\n'
    assert path.path == docker.stub.path


HOSTILE = '/opt/lib/hostile_stream.py'


@pytest.mark.parametrize('way, words', [('silent', 'docker.start_timeout'), ('ends', 'container_start_failed'), ('entries', 'not possible for a file')])
def test_a_hostile_process_1_is_an_error(make, way, words):
    docker = make(['docker.start_timeout=1s'], program=[HOSTILE, way])
    _, text = docker.problem()
    assert words in text, text
    until(lambda: not docker.stub.containers)


@pytest.mark.parametrize('way', ['exited-twice', 'list', 'paths', 'rooms'])
def test_a_hostile_process_1_changes_nothing_outside(make, way):
    docker = make(program=[HOSTILE, way])
    record = docker.run('print(1)', stdin='x' * 1000000)
    assert (record['status'], record['stdout'], record['exit_code']) == ('completed', 'hello\n', 0), record
    names = [one['name'] for one in record['files']]
    assert names == (['a', 'c', 'main.py/x', 'ok'] if way == 'paths' else []), names


def test_a_program_that_never_ends_at_a_hostile_process_1(make):
    docker = make(program=[HOSTILE, 'silent-program'])
    record = docker.run('print(1)', limits={'wall_ms': 1000, 'background_ms': 0})
    assert record['status'] == 'timeout' and record['usage']['wall_ms'] < 3000, record


def test_a_folder_becomes_a_file(docker):
    record = docker.run('import shutil\nshutil.rmtree("d"); open("d", "w").write("x")', files=[{'name': 'd/x', 'content': '1'}])
    assert record['status'] == 'completed' and [one['name'] for one in record['files']] == ['d'], record


def test_a_slow_call_removes_no_container_that_lives(make):
    docker = make()
    made = docker.begin('import time\ntime.sleep(3)\nprint("whole")')
    docker.stub.hang.add('inspect')
    docker.problem()
    docker.stub.hang.clear()
    record = docker.record(made)
    assert (record['status'], record['stdout']) == ('completed', 'whole\n'), record


def test_a_run_that_is_cancelled_while_its_container_is_made(make):
    docker = make(delay={'create': 2})
    made = docker.web.ask('POST', '/v1/runs', {'language': 'python', 'code': '1', 'backend': 'docker'}, Prefer='respond-async')[2]['id']
    until(lambda: docker.stub.counted('create'))
    docker.web.ask('DELETE', f'/v1/runs/{made}')
    assert docker.record(made)['status'] == 'cancelled'
    until(lambda: docker.stub.made)
    until(lambda: not docker.stub.containers)


# ---- settings and requests ----

@pytest.mark.parametrize('settings, words', [
    (['docker.host=tcp://127.0.0.1:1'], ['docker.host', 'TLS', 'docker.plain_tcp']),
    (['docker.host=tcp://127.0.0.1:1', 'docker.plain_tcp=true'], ['docker.guest', 'COPY lang']),
    (['docker.host=tcp://127.0.0.1:1', 'docker.tls_verify=true', 'docker.guest=image'], ['backend_unreachable']),
    (['docker.host=nonsense'], ['docker.host', 'unix:///PATH']),
    (['docker.user=root'], ['docker.user', 'UID:GID']),
    (['docker.user=0:0'], ['docker.user', 'not 0']),
    (['docker.image='], ['docker.image']),
    (['docker.images=python'], ['docker.images', 'python=python-data']),
])
def test_wrong_settings_name_the_remedy(make, settings, words):
    _, text = make(settings).problem()
    for word in words:
        assert word in text, text


@pytest.mark.parametrize('more, field', [({'modules': [{'name': 'a.py', 'content': ''}]}, '/modules'), ({'image': 'python-data'}, '/image'),
                                         ({'volumes': ['data']}, '/volumes')])
def test_requests_that_need_the_native_backend(docker, more, field):
    record = docker.run('1', **more)
    assert (record['status'], record['error']['field']) == ('bad_request', field), record
