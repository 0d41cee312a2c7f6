"""The image in containers, by the command lines of README.md and docs/use/containers.md: tests/debian/containers starts this file.

All processes of this file have a network and mounts of their own, so the port of the lines is free, and bridges and rules of
containers go when the tests end.  An engine that is not installed or does not start is skipped with its reason.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGE = os.environ.get('CAISSON_IMAGE', '')
FULL = os.environ.get('CAISSON_IMAGE_FULL', '')
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
STARTS_S, ACTS_S = 120, 3000
VERSION = re.search(r"^  version: '(.*)',", (ROOT / 'meson.build').read_text(), flags=re.M)[1]
TAG = f'caisson:{VERSION}'

pytestmark = pytest.mark.skipif(not IMAGE or os.geteuid() != 0, reason='needs root, and an image in CAISSON_IMAGE')

PROGRAMS = {'python': 'print(6 * 7)', 'javascript': 'console.log(6 * 7)', 'typescript': 'const x: number = 6 * 7; console.log(x)',
            'bash': 'echo $((6 * 7))'}


def lines_of(page, program):
    """The command lines of a page's sh blocks that begin with a program, as they stand there."""
    found = []
    for block in re.findall(r'^```sh\n(.*?)^```$', (ROOT / page).read_text(), flags=re.M | re.S):
        text = block.replace('\\\n', ' ')
        found += [re.sub(r'\s+', ' ', line.split('  #')[0]).strip() for line in text.splitlines() if line.startswith(program + ' ')]
    return found


def line_of(page, program, word):
    line, = [line for line in lines_of(page, program) if line.startswith(f'{program} {word} ')]
    return line


# ---- the engines ----


def remove_with_mounts(path):
    for line in Path('/proc/self/mounts').read_text(encoding='utf-8').splitlines()[::-1]:
        if line.split()[1].startswith(f'{path}/'):
            subprocess.run(['umount', '-l', line.split()[1]], check=False)
    shutil.rmtree(path)


@pytest.fixture(scope='module', name='folder')
def make_folder():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        pytest.skip(f'needs namespaces: {os.strerror(ctypes.get_errno())}')
    subprocess.run(['mount', '--make-rprivate', '/'], check=True)
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    # not below /tmp: overlayfs and an image of some hundred MB
    path = Path(tempfile.mkdtemp(prefix='containers-', dir='/var/tmp'))
    (path / 'deploy').symlink_to(ROOT / 'deploy')
    yield path
    remove_with_mounts(path)


class Engine:
    def __init__(self, name, folder, environment):
        self.name, self.folder, self.environment = name, folder, {**os.environ, **environment}

    def __call__(self, *words, check=True):
        return self.line([self.name, *map(str, words)], check)

    def line(self, line, check=True, folder=None):
        """A command line of a page, or a list of words."""
        done = subprocess.run(line, shell=isinstance(line, str), cwd=folder or self.folder, env=self.environment, capture_output=True, text=True,
                              errors='replace', timeout=ACTS_S, check=False)
        assert not check or done.returncode == 0, f'{line}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}'
        return done

    def load(self, archive, tag=None):
        """By the line of the page; the slim image gets the name that the lines have."""
        link = self.folder / 'caisson.tar'
        link.unlink(missing_ok=True)
        link.symlink_to(archive)
        out = self.line(line_of('docs/use/containers.md', self.name, 'load')).stdout
        # With the registry in front of it: Podman takes a name without one for an image of localhost, if there is one.
        name = re.search(r'Loaded image(?:\(s\))?: (\S+)', out)[1]
        self('tag', name, tag or TAG)

    def run(self, *options, image=TAG, command=()):
        return self('run', '--rm', *options, image, *command, check=False)

    def remove(self):
        self('rm', '-f', 'caisson', check=False)
        self('volume', 'rm', '-f', 'caisson', check=False)


@contextlib.contextmanager
def docker(folder):
    if not shutil.which('dockerd') or not shutil.which('docker'):
        pytest.skip('needs docker: not here')
    socket = folder / 'docker.sock'
    with open(folder / 'dockerd.log', 'wb') as log:
        daemon = subprocess.Popen(['dockerd', '--data-root', folder / 'docker', '--exec-root', folder / 'docker-run', '--host', f'unix://{socket}',
                                   '--pidfile', folder / 'docker.pid'], stdout=log, stderr=log)
        engine = Engine('docker', folder, {'DOCKER_HOST': f'unix://{socket}', 'DOCKER_CONFIG': str(folder)})
        try:
            until = time.monotonic() + STARTS_S
            while daemon.poll() is None and time.monotonic() < until and engine('info', check=False).returncode:
                time.sleep(0.2)
            if engine('info', check=False).returncode:
                pytest.skip('needs docker: ' + (folder / 'dockerd.log').read_text(errors='replace').strip().splitlines()[-1])
            yield engine
            engine.remove()
        finally:
            daemon.terminate()
            daemon.wait()


@contextlib.contextmanager
def podman(folder):
    if not shutil.which('podman'):
        pytest.skip('needs podman: not here')
    (folder / 'podman').mkdir()
    (folder / 'containers.conf').write_text(f'''[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "{folder}/podman/tmp"
volume_path = "{folder}/podman/volumes"
[network]
network_config_dir = "{folder}/podman/networks"
''')
    (folder / 'storage.conf').write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/podman/root"\nrunroot = "{folder}/podman/run"\n')
    engine = Engine('podman', folder, {'CONTAINERS_CONF': f'{folder}/containers.conf', 'CONTAINERS_STORAGE_CONF': f'{folder}/storage.conf'})
    done = engine('info', check=False)
    if done.returncode:
        pytest.skip(f'needs podman: {done.stderr.strip()}')
    yield engine
    engine.remove()


@pytest.fixture(scope='module', name='engine', params=[docker, podman], ids=lambda engine: engine.__name__)
def make_engine(request, folder):
    with request.param(folder) as engine:
        engine.load(IMAGE)
        yield engine


@pytest.fixture(scope='module', name='container')
def make_container(engine):
    """The container of the line `run` of the page, ready."""
    engine.line(line_of('docs/use/containers.md', engine.name, 'run'))
    until = time.monotonic() + STARTS_S
    while engine('exec', 'caisson', 'caisson', 'ps', check=False).returncode:
        assert time.monotonic() < until, engine('logs', 'caisson', check=False)
        time.sleep(0.2)
    yield engine
    engine.remove()


def wait_until_healthy(engine, name):
    until = time.monotonic() + STARTS_S
    while (state := engine('inspect', '-f', '{{.State.Health.Status}}', name).stdout.strip()) != 'healthy':
        assert state == 'starting' and time.monotonic() < until, engine('inspect', '-f', '{{json .State.Health}}', name).stdout
        if engine.name == 'podman':     # its timer is one of systemd, which this test does not ask
            engine('healthcheck', 'run', name, check=False)
        time.sleep(0.5)


# ---- by the lines of the pages ----


@pytest.mark.parametrize('program', ['docker', 'podman'])
def test_the_line_of_the_readme_is_that_of_the_page(program):
    assert line_of('README.md', program, 'run') == line_of('docs/use/containers.md', program, 'run')


def test_programs_run_by_the_line_of_the_page(container):
    assert container.line(line_of('docs/use/containers.md', container.name, 'exec')).stdout == '42\n'
    for language, code in PROGRAMS.items():
        done = container('exec', 'caisson', 'caisson', 'run', '-l', language, '-c', code)
        assert done.stdout == '42\n', (language, done)


def test_the_record_names_a_native_sandbox(container):
    record = json.loads(container('exec', 'caisson', 'caisson', 'run', '--json', '-l', 'bash', '-c', 'id -u').stdout)
    boundary = record['boundary']
    assert record['status'] == 'completed' and boundary['backend'] == 'native' and boundary['seccomp'] and boundary['capabilities'] == 0
    assert boundary['landlock_abi'] and boundary['namespaces']


def test_doctor_finds_nothing_missing(container):
    found = json.loads(container('exec', 'caisson', 'caisson', 'doctor', '--json').stdout)
    states = {check['name']: check['state'] for check in found['checks']}
    assert found['usable'] and 'missing' not in states.values(), found
    for name in ('user namespaces', 'other namespaces', 'private /proc', 'seccomp', 'Landlock', 'a run', 'a Python zygote'):
        assert states[name] == 'ok', found


def test_the_health_check_succeeds(container):
    wait_until_healthy(container, 'caisson')


def test_http_takes_the_key_of_the_log(container):
    done = container('logs', 'caisson')
    key = re.search(r'not shown again: (\S+)', done.stdout + done.stderr)[1]
    request = urllib.request.Request('http://127.0.0.1:8080/v1/runs', data=b'{"language": "python", "code": "print(6 * 7)"}')
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=STARTS_S)
    assert refused.value.code == 401
    request.add_header('Authorization', f'Bearer {key}')
    with urllib.request.urlopen(request, timeout=STARTS_S) as answer:
        assert json.load(answer)['stdout'] == '42\n'


# ---- the acts of tests/sandbox, in native sandboxes of the image ----

PYTEST = ('pytest', '_pytest', 'attr', 'attrs', 'iniconfig', 'packaging', 'pluggy', 'py.py')

# Without root and controllers, memory and processes have rlimits (docs/use/host.md), the container's filter ends programs that
# call in another ABI, and all sandboxes have one uid, which owns the files of /etc.  These acts end otherwise than on a host.
DIFFERENT = {'fork_bomb.py', 'fork_bomb.sh', 'memory_bash.sh', 'memory_in_shm.sh', 'memory_in_tmp.py', 'memory_memfd.py', 'memory_node.js',
             'memory_of_last_breath.py', 'memory_page_tables.py', 'memory_pipes.py', 'memory_shared_mapping.py', 'memory_small_files.py',
             'memory_sockets.py', 'memory_system_v.py', 'future_calls.py', 'single_system_calls.py', 'x32_calls.py', 'leases_and_notices.py',
             'forge_left.py'}

# The pids of the host that acts are told of are above those of a sandbox.
ACTS = 'for i in $(seq 2000); do (:); done; exec python3 -m pytest -q --tb=short -rs -p no:cacheprovider tests/sandbox'


@pytest.mark.parametrize('road', ['cold', 'warm'])
def test_no_act_gets_out(engine, road, tmp_path):
    """In the full image by the options of the page; the tests, pytest and an empty /var/tmp come on top."""
    if not FULL:
        pytest.skip('needs a full image in CAISSON_IMAGE_FULL')
    engine.load(FULL, 'caisson:full')
    added = tmp_path / 'added'
    added.mkdir()
    for name in PYTEST:
        path = Path('/usr/lib/python3/dist-packages', name)
        if path.is_dir():
            shutil.copytree(path, added / name)
        elif path.exists():
            shutil.copy(path, added / name)
    # tests look for the daemon beside the command line
    for program in ('bin/caisson', 'sbin/caissond'):
        (added / Path(program).name).symlink_to(f'/usr/{program}')
    words = line_of('docs/use/containers.md', engine.name, 'run').split()
    options = [word for word in words[words.index('--cap-drop'):] if word != TAG]
    memory = '/var/lib/caisson:uid=1000,gid=1000' if engine.name == 'docker' else '/var/lib/caisson'
    done = engine('run', '--rm', *options, '--tmpfs', '/var/tmp', '--tmpfs', memory,
                  '-v', f'{ROOT}/tests:/opt/caisson/tests:ro', '-v', f'{added}:/opt/added:ro', '-w', '/opt/caisson',
                  '-e', 'CAISSON=/opt/added/caisson', '-e', f'CAISSON_ROAD={road}', '-e', 'PYTHONPATH=/opt/added', '-e', 'PYTHONDONTWRITEBYTECODE=1',
                  'caisson:full', 'sh', '-c', ACTS, check=False)
    print(done.stdout[-20000:], done.stderr[-3000:])
    failed = set(re.findall(r'^_+ test_act\[([\w.-]+)\] _+$|^_+ (test_\w+)', done.stdout, flags=re.M))
    names = {act or test for act, test in failed}
    passed = re.search(r'(\d+) passed', done.stdout)
    assert passed and int(passed[1]) > 150 and ' error' not in done.stdout.splitlines()[-1], done.stdout[-2000:]
    assert names <= DIFFERENT, sorted(names - DIFFERENT)


# ---- what a container has to be given ----

WORDS = {'docker': ['this Docker container', 'seccomp=seccomp.json', 'systempaths=unconfined'],
         'podman': ['this Podman container', 'seccomp=seccomp.json', 'unmask=ALL']}
OPEN = {'docker': 'systempaths=unconfined', 'podman': 'unmask=ALL'}


def incomplete():
    """(options, whether programs run): Docker 20.10 and Podman 4.3 on a kernel that lets users make namespaces."""
    for user in ([], ['--user', '0']):
        yield pytest.param([*user], id=' '.join(['defaults', *user]))
        yield pytest.param([*user, '--security-opt', 'seccomp=deploy/container/seccomp.json'], id=' '.join(['our seccomp', *user]))
        yield pytest.param([*user, '--security-opt', 'seccomp=unconfined'], id=' '.join(['no seccomp', *user]))
        yield pytest.param([*user, '--security-opt', 'OPEN'], id=' '.join(['open /proc', *user]))


@pytest.mark.parametrize('options', incomplete())
def test_doctor_does_not_say_ok_where_runs_fail(engine, options):
    options = [OPEN[engine.name] if option == 'OPEN' else option for option in options]
    ran = engine.run(*options, command=['caisson', 'run', '-l', 'python', '-c', 'print(6 * 7)'])
    done = engine.run(*options, command=['caisson', 'doctor'])
    text = ' '.join(done.stdout.split())
    assert ran.returncode == 125 and done.returncode == 125, (ran, done)
    assert 'Programs cannot be run in a sandbox here' in text, text
    for word in WORDS[engine.name]:
        assert word in text and (word in ran.stderr or 'see caisson doctor' in ran.stderr), (text, ran.stderr)


BOTH = ['--security-opt', 'seccomp=deploy/container/seccomp.json', '--security-opt', 'OPEN']


@pytest.mark.parametrize('options, status', [(['--user', '0'], 0), (['--user', '0', '--cap-drop', 'ALL'], 125),
                                             (['--user', '0', '--cap-add', 'SYS_ADMIN'], 0), (['--cap-drop', 'ALL'], 0), (['--privileged'], 0)],
                         ids=lambda value: ' '.join(value) if isinstance(value, list) else str(value))
def test_doctor_agrees_with_runs(engine, options, status):
    """With both options of the page, whatever the user and the capabilities are."""
    options = [OPEN[engine.name] if option == 'OPEN' else option for option in [*options, *BOTH]]
    ran = engine.run(*options, command=['caisson', 'run', '-l', 'python', '-c', 'print(6 * 7)'])
    done = engine.run(*options, command=['caisson', 'doctor', '--json'])
    states = {check['name']: check['state'] for check in json.loads(done.stdout)['checks']}
    assert (done.returncode, ran.returncode, ran.stdout) == (status, status, '' if status else '42\n'), (done.stdout, ran)
    assert states['host uid for each sandbox'] == 'missing' if status else 'missing' not in states.values(), done.stdout


# ---- the compose file and the full image ----


def test_the_compose_file_starts_a_healthy_container(engine):
    program = {'docker': ['docker', 'compose'], 'podman': ['podman-compose']}[engine.name]
    if engine.line([*program, 'version'], check=False).returncode if shutil.which(program[0]) else True:
        pytest.skip(f'needs {" ".join(program)}: not here')
    engine.remove()     # has the port of the file

    def compose(*words, check=True):
        return engine.line([*program, '-p', 'caisson-test', '-f', 'compose.yaml', *words], check, ROOT / 'deploy/container').stdout

    try:
        compose('up', '-d')
        name = engine('ps', '-q', '--filter', 'name=caisson-test').stdout.strip()
        wait_until_healthy(engine, name)
        assert engine('exec', name, 'caisson', 'run', '-l', 'python', '-c', 'print(6 * 7)').stdout == '42\n'
    finally:
        compose('down', '-v', check=False)


DATA = 'import numpy, pandas; print(int(pandas.Series(numpy.arange(4) * 7).sum()))'


def test_the_full_image_has_the_libraries(engine):
    if not FULL:
        pytest.skip('needs a full image in CAISSON_IMAGE_FULL')
    engine.load(FULL, 'caisson:full')
    options = line_of('docs/use/containers.md', engine.name, 'run').split()
    options = [word for word in options[2:] if word.startswith(('seccomp=', 'systempaths=', 'unmask=')) or word == '--security-opt']
    for language, code in [*PROGRAMS.items(), ('python', DATA)]:
        done = engine.run(*options, image='caisson:full', command=['caisson', 'run', '-l', language, '-c', code])
        assert (done.returncode, done.stdout) == (0, '42\n'), (language, done)
