"""Every console block of README.md and docs/ is executed, and prints what stands there.

The blocks of a page are one shell session.  `cat FILE` of a file that nothing has made makes it, of the lines that stand there.  Ports,
sockets and folders are those of this test; times, ids and versions are not compared, and "..." stands for anything.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'lib'))
from cli import CAISSON, ROOT, environment    # noqa: E402
from web import Web                           # noqa: E402

BUILD = Path(CAISSON).resolve().parent
PAGES = ['README.md', *sorted(str(path.relative_to(ROOT)) for path in (ROOT / 'docs').rglob('*.md'))]
MARK = '\x1e'

# What cannot be done here, and why.
LEFT_OUT = {
    'make build': 'the programs under test are what it makes',
    'zcat HumanEval.jsonl.gz': 'the data set is not in the repository; tests/integration/grading/test_humaneval.py has its programs',
    'caisson tools ': 'the servers of the page are not in the repository; tests/integration/tools/test_tool_sources.py has others',
}

# Commands that are shown because they do not succeed.
STATUSES = {'print(x)': 1, 'caisson check': 2, 'caisson run --policy linx program.py': 126, 'caisson grade ': 1}

# Ports of the page whose background commands stay beside each other; on other pages each ends the one before.
SIDE_BY_SIDE = {'docs/use/gateway.md': ['8081', '8082', '8180']}

VOLATILE = [r'run_(?:[0-9a-f]{32}|\.\.\.)', r'file_[0-9a-f]+', r'(?<=duration: )[\d.]+', r'(?<=memory: )[\d.]+ \wB', r'[\d.]+ s, [\d.]+ submissions and [\d.]+ cases a second',
            r'(?<="execution_time":)[\d.e-]+', r'(?<="version":")[\d.]+', r'(?<=CPU time used: )[\d.]+']


def blocks(page):
    """[(command, lines that follow)], of all console blocks."""
    found = []
    for block in re.findall(r'^```console\n(.*?)^```$', (ROOT / page).read_text(), flags=re.M | re.S):
        lines = block.splitlines()
        while lines:
            command = lines.pop(0)
            assert command.startswith('$ '), f'{page}: {command}'
            command = command[2:]
            while lines and (command.endswith('\\') or subprocess.run(['bash', '-nc', command], stderr=subprocess.DEVNULL, check=False).returncode):
                command += '\n' + lines.pop(0)
            shown = []
            while lines and not lines[0].startswith('$ '):
                shown.append(lines.pop(0))
            found.append((command, shown))
    return found


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


def beside(command, ports):
    """With ports of this test, and after a background command a wait until that daemon is ready."""
    shown = re.findall(r'127\.0\.0\.1:(\d+)', command)
    for theirs, own in ports.items():
        command = re.sub(rf'\b(127\.0\.0\.1|localhost):{theirs}\b', rf'\g<1>:{own}', command)
    if not command.endswith('&'):
        return command
    gateway = ' gateway ' in command
    ready = f'curl -s localhost:{ports["8180"]}/healthz | grep -q ready.:2' if gateway else f'curl -sf localhost:{ports[shown[0]]}/readyz'
    listen = f'CAISSON_GATEWAY_LISTEN=127.0.0.1:{ports["8180"]} ' if gateway else ''
    return f'{listen}{command[:-1]} >>background.log 2>&1 &\nfor i in {{1..300}}; do {ready} >/dev/null 2>&1 && break; sleep .1; done'


def ours(command, folder, web, port, ports):
    """With this test's own places."""
    background = command.endswith('&')
    command = command.replace('/run/caisson/caissond.sock.http', f'{web.daemon.path}.http').replace('/tmp/c/', f'{folder}/c/')
    command = command.replace('localhost:8080', f'localhost:{port if (folder / "serves").exists() else web.port}')
    command = command.replace('-H "Authorization: Bearer $KEY" ', '')
    if ports:
        return beside(command, ports)
    if not background:
        return command
    ready = f'curl -sf localhost:{port}/readyz' if ' serve ' in command else f'CAISSON_ENGINE_SOCKET={folder}/c/socket caisson top --once'
    return f'kill $(jobs -p) 2>/dev/null; wait; {command[:-1]} >background.log 2>&1 &\nfor i in {{1..300}}; do {ready} >/dev/null 2>&1 && break; sleep .1; done'


def session(page, folder, web, port):
    """[(command, lines that are shown, lines that came, exit status)]"""
    script, done, ports = [], [], {theirs: free_port() for theirs in SIDE_BY_SIDE.get(page, [])}
    for command, shown in blocks(page):
        if any(command.startswith(one) for one in LEFT_OUT):
            continue
        if ' serve ' in command:
            (folder / 'serves').touch()
        made = re.fullmatch(r'cat ([\w.-]+)', command)
        if made:
            (folder / made[1]).write_text('\n'.join(shown) + '\n')
        script.append(f'(exit ${{status:-0}})\n{ours(command, folder, web, port, ports)}\nstatus=$?; printf "\\n{MARK}%s\\n" $status')
        done.append((command, shown))
    script.append('kill $(jobs -p) 2>/dev/null; wait')
    (folder / 'caisson.yaml').write_text(f'engine:\n  state_dir: {folder}/state\n  http: 127.0.0.1:{port}\n  http_keyless: true\n')
    env = environment(CAISSON_CONFIG=folder / 'caisson.yaml', CAISSON_DAEMON='never', PATH=f'{BUILD}:{os.environ["PATH"]}')
    ran = subprocess.run(['bash', '-c', '\n'.join(script)], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=300, check=False)
    parts = ran.stdout.split(f'\n{MARK}')
    assert len(parts) == len(done) + 1, ran.stdout
    for i, (command, shown) in enumerate(done):
        before = parts[i].partition('\n')[2] if i else parts[i]
        yield command, shown, before.splitlines(), int(parts[i + 1].partition('\n')[0])


def masked(line):
    for pattern in VOLATILE:
        line = re.sub(pattern, 'X', line)
    return line


def fits(shown, came):
    pattern = '.*'.join(re.escape(part) for part in re.split(r' ?\.\.\.|…', masked(shown).rstrip()))
    return re.fullmatch(pattern, masked(came).rstrip())


def is_as_shown(command, shown, came):
    if command.startswith('build/caisson doctor'):       # what the host can do differs, what is looked at does not
        def looked_at(lines):
            return {line[9:36].strip() for line in lines if re.match(r'(ok|note|weaker|missing) ', line)}
        return looked_at(shown) <= looked_at(came)
    if '["boundary"]' in command:
        return list(json.loads(shown[0])) == list(json.loads(came[0]))
    if '["hint"]' in command and any('this host was busy' in line for line in came):
        return shown[0] == came[0]     # it was, and that is told
    if came and len(shown) == 1 and shown[0].startswith('{'):
        return fits(shown[0], came[0])
    return len(shown) == len(came) and all(map(fits, shown, came))


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('docs'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('page', [page for page in PAGES if '```console' in (ROOT / page).read_text()])
def test_what_a_page_shows_is_what_comes(page, web, tmp_path):
    port = free_port()
    (tmp_path / 'build').symlink_to(BUILD)
    (tmp_path / 'include').symlink_to(ROOT / 'include')
    (tmp_path / 'sdk').symlink_to(ROOT / 'sdk')
    (tmp_path / 'c').mkdir()
    (tmp_path / 'program.py').write_text('import os\nos.system("id")\n')
    (tmp_path / 'data.csv').write_text('temp\n10\n11\n')
    (tmp_path / 'sales.csv').write_text('a,b\n' * 500_000)
    (tmp_path / 'requests.jsonl').write_text('{"language": "bash", "code": "echo 1"}\n')
    program = re.search(r'^```c\n(.*?)^```$', (ROOT / page).read_text(), flags=re.M | re.S)
    (tmp_path / 'example.c').write_text(program[1] if program else '')
    tried = 0
    for command, shown, came, status in session(page, tmp_path, web, port):
        expected = next((code for part, code in STATUSES.items() if part in command), 0)
        assert status == expected, f'{command}\n' + '\n'.join(came)
        if shown:
            assert is_as_shown(command, shown, came), f'{command}\n' + '\n'.join(came) + '\n--- shown ---\n' + '\n'.join(shown)
        tried += 1
    assert tried or page == 'docs/use/tool-sources.md'
