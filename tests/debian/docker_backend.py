"""The backend docker with real engines, Docker and Podman: tests/debian/docker_backend starts this file.

An engine that is not installed or does not start is skipped with its reason.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import containers                                                                # noqa: E402
from daemon import until                                                         # noqa: E402
from web import Web                                                              # noqa: E402

TAR = os.environ.get('CAISSON_DOCKER_ROOTFS', '')
RUNS = 50
pytestmark = pytest.mark.skipif(not TAR or os.geteuid() != 0, reason='needs root, and a root file system in CAISSON_DOCKER_ROOTFS')


@pytest.fixture(scope='module', name='folder')
def make_folder():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(containers.CLONE_NEWNS) != 0:
        pytest.skip(f'needs namespaces: {os.strerror(ctypes.get_errno())}')
    subprocess.run(['mount', '--make-rprivate', '/'], check=True)
    path = Path(tempfile.mkdtemp(prefix='caisson-docker-', dir='/var/tmp'))
    yield path
    containers.remove_with_mounts(path)


class Docker:
    name, image, has_run = 'docker', 'base', False

    def __init__(self, folder):
        self.folder, self.socket = folder, folder / 'docker.sock'
        self.start()
        self('import', TAR, self.image)

    def start(self):
        with open(self.folder / 'dockerd.log', 'ab') as log:
            self.process = subprocess.Popen(['dockerd', '--iptables=false', '--ip6tables=false', '--bridge=none', '--data-root', self.folder / 'data',
                                             '--exec-root', self.folder / 'run', '--host', f'unix://{self.socket}', '--pidfile', self.folder / 'docker.pid'],
                                            stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self('info', check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                assert not self.has_run, 'dockerd did not start again'
                pytest.skip('needs docker: ' + (self.folder / 'dockerd.log').read_text(errors='replace').strip().splitlines()[-1])
            time.sleep(0.2)
        self.has_run = True

    def __call__(self, *words, check=True):
        return subprocess.run(['docker', '-H', f'unix://{self.socket}', *words], capture_output=True, text=True, check=check)

    def containers(self):
        return self('ps', '-aq', '--no-trunc').stdout.split()

    def kill(self):
        self.process.kill()
        self.process.wait()
        # containerd ends with dockerd; until it is reaped the next dockerd takes it for a running one.
        for path in ('docker.pid', 'run/containerd/containerd.pid'):
            (self.folder / path).unlink(missing_ok=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        # A dockerd that was killed leaves its containerd to the next, which does not end it.
        for line in subprocess.run(['pgrep', '-f', str(self.folder / 'run')], capture_output=True, text=True, check=False).stdout.split():
            os.kill(int(line), signal.SIGKILL)


class Podman(Docker):
    name, image = 'podman', 'localhost/base'

    def __init__(self, folder):
        with containers.podman(folder) as engine:
            self.environment = {**engine.environment}
        self.folder, self.socket = folder, folder / 'podman.sock'
        self.start()
        self('import', TAR, 'base')

    def start(self):
        self.socket.unlink(missing_ok=True)
        with open(self.folder / 'podman.log', 'ab') as log:
            self.process = subprocess.Popen(['podman', 'system', 'service', '--time=0', f'unix://{self.socket}'], env=self.environment, stdout=log, stderr=log)
        until(self.socket.exists)

    def __call__(self, *words, check=True):
        return subprocess.run(['podman', *words], env=self.environment, capture_output=True, text=True, check=check)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope='module', name='engine', params=[Docker, Podman], ids=lambda kind: kind.name)
def make_engine(request, folder):
    if not shutil.which(request.param.name) or (request.param is Docker and not shutil.which('dockerd')):
        pytest.skip(f'needs {request.param.name}: not here')
    place = folder / request.param.name
    place.mkdir()
    engine = request.param(place)
    yield engine
    engine.stop()


class Caisson:
    def __init__(self, engine, folder, warm=2):
        self.engine, self.folder, self.warm = engine, folder, warm
        self.start()

    def start(self):
        words = [f'docker.host=unix://{self.engine.socket}', f'docker.image={self.engine.image}', f'docker.warm={self.warm}', 'engine.user=root',
                 'engine.running_max=8']
        self.web = Web(self.folder, *[word for one in words for word in ('--set', one)])

    def ask(self, code, language='python', **more):
        status, _, record = self.web.ask('POST', '/v1/runs', {'language': language, 'code': code, 'backend': 'docker', **more})
        return record if status == 200 else {'status': 'engine_error', 'error': record, 'stdout': '', 'stderr': ''}

    def many(self, code, meanwhile):
        """Records of RUNS runs, eight at a time, while something is done to them."""
        records, numbers, lock = [], iter(range(RUNS)), threading.Lock()

        def work():
            while True:
                with lock:
                    if next(numbers, None) is None:
                        return
                try:
                    record = self.ask(code)
                except OSError as error:
                    record = {'status': 'gone', 'error': str(error)}
                records.append(record)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        meanwhile()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive(), 'a run was not answered'
        return records


@pytest.fixture(scope='module', name='caisson')
def make_caisson(engine, tmp_path_factory):
    caisson = Caisson(engine, tmp_path_factory.mktemp('caisson'))
    yield caisson
    caisson.web.daemon.stop(signal.SIGTERM)


@pytest.mark.parametrize('language, code', [('python', 'print(42)'), ('javascript', 'console.log(42)'), ('typescript', 'const n: number = 42; console.log(n)'),
                                            ('bash', 'echo 42')])
def test_languages(caisson, language, code):
    record = caisson.ask(code, language)
    assert (record['status'], record['stdout']) == ('completed', '42\n'), record


def test_the_boundary(caisson):
    boundary = caisson.ask('1')['boundary']
    assert boundary['isolation'] == 'container' and boundary['seccomp'] and boundary['no_new_privileges'] and boundary['capabilities'] == 0, boundary
    assert boundary['network'] == 'none' and set(boundary['controllers']) == {'memory', 'cpu', 'pids'}, boundary


def test_files_input_and_value(caisson):
    record = caisson.ask('import sys\nopen("out", "w").write(open("in").read() + sys.stdin.read())\nsys.argv[1:]', stdin='b' * 500000, args=['x'],
                         files=[{'name': 'in', 'content': 'a'}])
    assert [(one['name'], one['size_bytes']) for one in record['files']] == [('out', 500001)] and record['result']['value'] == ['x'], record


@pytest.mark.parametrize('code, limits, status', [
    ('x = bytearray(900000000)\nfor i in range(0, len(x), 4096): x[i] = 1', {'memory_bytes': 134217728}, 'memory_exceeded'),
    ('import time\nprint("kept", flush=True)\ntime.sleep(60)', {'wall_ms': 1000}, 'timeout'),
    ('while True: pass', {'cpu_ms': 700, 'wall_ms': 20000}, 'timeout'),
    ('import os, time\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(20); os._exit(0)\nexcept OSError: raise', {'pids': 32}, 'process_limit'),
    ('open("b", "wb").write(bytes(30000000))', {'disk_bytes': 8000000}, 'disk_exceeded'),
    ('import os; os.kill(1, 9); os.kill(1, 19); print("alive")', {}, 'completed'),
    ('import ctypes; ctypes.string_at(0)', {}, 'crashed'),
    ('open("/x", "w")', {}, 'failed'),
    ('import socket; socket.create_connection(("1.1.1.1", 80), 2)', {}, 'failed'),
])
def test_statuses(caisson, code, limits, status):
    assert caisson.ask(code, limits=limits)['status'] == status


def test_tools(caisson):
    record = caisson.ask('import tools; print(tools.weather(city="Oslo"))', tools={'record': True, 'replay': [
        {'server': 'home', 'tool': 'weather', 'arguments': {'city': 'Oslo'}, 'result': -3}]})
    assert record['stdout'] == '-3\n', record


def test_containers_that_are_killed(engine, caisson):
    def kill():
        for _ in range(10):
            time.sleep(0.3)
            for container in engine.containers()[:3]:
                engine('kill', '-s', 'KILL', container, check=False)
    records = caisson.many('import time\ntime.sleep(0.2)\nprint("whole")', kill)
    assert len(records) == RUNS
    for record in records:
        assert (record['status'], record['stdout']) == ('completed', 'whole\n') or record['status'] in ('engine_error', 'memory_exceeded'), record
    until(lambda: len(engine.containers()) <= caisson.warm)
    assert caisson.ask('print(1)')['stdout'] == '1\n'


def test_an_engine_that_is_killed(engine, caisson):
    def kill():
        time.sleep(1.5)
        engine.kill()
        time.sleep(1)
        engine.start()
    records = caisson.many('import time\ntime.sleep(0.3)\nprint("whole")', kill)
    assert len(records) == RUNS
    for record in records:
        assert (record['status'], record['stdout']) == ('completed', 'whole\n') or record['status'] in ('engine_error', 'memory_exceeded'), record
    until(lambda: caisson.ask('print(1)')['stdout'] == '1\n')
    until(lambda: len(engine.containers()) <= caisson.warm)


def test_a_daemon_that_is_killed(engine, tmp_path):
    caisson = Caisson(engine, tmp_path)
    records = caisson.many('import time\ntime.sleep(0.3)\nprint("whole")', lambda: (time.sleep(1.5), caisson.web.daemon.process.kill()))
    assert len(records) == RUNS
    caisson.web.daemon.process.wait()
    caisson.start()
    try:
        record = caisson.ask('print(1)')
        assert record['stdout'] == '1\n', record
        label = 'label=io.caisson.instance'
        until(lambda: len(engine('ps', '-aq', '--filter', label).stdout.split()) <= 2 * caisson.warm)
    finally:
        caisson.web.daemon.stop(signal.SIGTERM)
