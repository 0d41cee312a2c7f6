"""A short soak (tests/soak is the long one), and a daemon that is killed in the middle of everything."""

import os
import signal
import sys
from pathlib import Path

import pytest

from cli import ROOT, folders_of
from daemon import alive, supervisors, until
from web import Web

sys.path.append(str(ROOT / 'tests/soak'))
import load     # noqa: E402
import soak     # noqa: E402

RUNS = 20
# The daemon's folders, with nothing in them but its journal.
STATE = ['c', 'files', 'images', 'layers', 'layers/.failed', 'layers/.lock', 'layers/.requests', 'layers/.staging', 'running', 'workspaces']


def test_a_short_soak_leaves_nothing(tmp_path):
    rows, steps, wrong = soak.soak(tmp_path, 12)
    assert not wrong
    assert not [row for row in rows if row[5]], soak.table(rows)
    assert sum(steps.values()) >= len(load.STEPS)


def row(what, before, second, last, after, seconds=600):
    """What a soak says of these numbers."""
    samples = [{what: second}] * 60 + [{what: last}] * 40
    return soak.judge({what: before}, samples, {what: after}, 1000, seconds)[0][5]


@pytest.mark.parametrize('what, numbers, wrong', [
    ('caissond RSS KiB', (20000, 30000, 32000, 21000), ''),
    ('caissond RSS KiB', (20000, 30000, 34000, 21000), 'grows'),
    ('caissond RSS KiB', (20000, 30000, 30000, 23000), 'not back'),
    ('caissond descriptors', (70, 90, 100, 70), ''),
    ('caissond descriptors', (70, 90, 100, 71), 'not back'),
    ('caissond descriptors', (70, 90, 200, 200), 'not back, grows'),
    ('processes', (25, 40, 30, 26), 'not back'),
    ('processes', (25, 40, 30, 24), 'not back'),
    ('mounts of the host', (24, 24, 24, 25), 'not back'),
    ('cgroup folders', (108, 130, 130, 150), ''),
    ('cgroup folders', (108, 130, 130, 200), 'not back'),
    ('database KiB', (1000, 5000, 9000, 9000), ''),
    ('database KiB', (1000, 5000, 90000, 90000), 'not back, grows'),
])
def test_what_a_soak_takes_for_a_leak(what, numbers, wrong):
    assert row(what, *numbers) == wrong


def test_in_a_short_soak_only_what_is_left_counts():
    assert row('caissond RSS KiB', 20000, 30000, 39000, 21000, seconds=20) == ''
    assert row('caissond descriptors', 70, 90, 200, 71, seconds=20) == 'not back'


def test_what_was_there_and_is_gone_is_told():
    assert soak.judge({'policy KiB': 10}, [], {}, 1, 600)[0][5] == 'not there'


# ---- kill -9 ----

@pytest.fixture(name='serve')
def serving(tmp_path):
    """Starts daemons, all with the same state, and ends what is left of them."""
    webs = []

    def serve():
        webs.append(Web(tmp_path))
        return webs[-1]
    yield serve
    for web in webs:
        web.daemon.stop()


class Busy:
    """A daemon in which everything goes on."""

    def __init__(self, web):
        self.web = web
        limits = {'wall_ms': 600_000}
        sleep = {'language': 'bash', 'limits': limits, 'code': 'echo x > file; sleep 1000 & sleep 1000',
                 'files': [{'name': 'in', 'content': 'y' * 100_000}]}
        python = {'language': 'python', 'limits': limits, 'code': 'import time\nopen("out", "w").write("x" * 1000000)\ntime.sleep(1000)'}
        self.runs = [self.start('/v1/runs', python if n % 2 else sleep) for n in range(RUNS)]
        self.sandboxes = [web.ask('POST', '/v1/sandboxes', {})[2]['id'] for _ in range(2)]
        for sandbox in self.sandboxes:
            place = f'/v1/sandboxes/{sandbox}'
            self.start(f'{place}/processes', {'command': 'sleep 1000', 'terminal': True})
            context = web.ask('POST', f'{place}/contexts', {})[2]['id']
            self.start(f'/v1/contexts/{context}/runs', {'code': 'import time; time.sleep(1000)', 'limits': limits})
        self.streams = [web.stream('GET', f'/v1/sandboxes/{self.sandboxes[0]}/watch?path=.', Accept='application/x-ndjson'),
                        web.stream('GET', f'/v1/runs/{self.runs[0]}/events', Accept='text/event-stream')]
        until(lambda: len([run for run in web.runs() if run['state'] == 'running']) >= RUNS, 60)
        self.supervisors, self.pids = supervisors(web.daemon.process.pid), web.daemon.tree()

    def start(self, path, request):
        status, _, state = self.web.ask('POST', path, request, Prefer='respond-async')
        assert status == 202, state
        return state['id']


def mounts():
    return sorted(line.split()[4] for line in Path('/proc/self/mountinfo').read_text().splitlines())


def folders(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob('*') if path.is_dir())


@pytest.mark.parametrize('victims', ['the daemon', 'the daemon, its supervisor and all others'])
def test_a_daemon_that_is_killed_during_runs_leaves_nothing_and_is_followed(serve, tmp_path, victims):
    mounted = mounts()
    old = Busy(serve())
    assert len(old.pids) > 2 * RUNS and all(folders_of(pid) for pid in old.supervisors) and folders(tmp_path) == STATE
    for pid in old.pids if victims != 'the daemon' else old.pids[:1]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:      # with its parent
            pass
    old.web.daemon.process.wait()
    until(lambda: not any(map(alive, old.pids)))
    web = serve()
    until(lambda: not any(map(folders_of, old.supervisors)))
    until(lambda: mounts() == mounted and folders(tmp_path) == STATE)
    assert web.runs() == [] and web.ask('GET', '/v1/sandboxes')[2] == {'sandboxes': []}
    records = [web.ask('GET', f'/v1/runs/{run}')[2] for run in old.runs]
    assert {record['status'] for record in records} == {'engine_error'} and all('ended while' in record['error']['message'] for record in records)
    assert web.run('print(1)', 'python')['stdout'] == '1\n'
    assert web.daemon.stop(signal.SIGTERM) == 0
