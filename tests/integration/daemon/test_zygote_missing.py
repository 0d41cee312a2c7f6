"""A Python zygote that cannot be made: programs run all the same, and the log, caisson doctor and /metrics tell of it."""

import json
import shutil
import subprocess
from pathlib import Path

import daemon
import pytest
from cli import CAISSON, environment
from daemon import until
from web import Web

PROGRAMS = 'caisson', 'caissond', 'caisson-supervisor', 'caisson-policy', 'caisson-guest', 'caisson-remote'


@pytest.fixture
def broken(tmp_path):
    """The programs, beside runners whose zygote ends at once."""
    folder = tmp_path / 'programs'
    folder.mkdir(mode=0o755)
    for name in PROGRAMS:
        shutil.copy2(Path(CAISSON).parent / name, folder)
    shutil.copytree(Path(CAISSON).parent / 'lang', folder / 'lang')
    (folder / 'lang/python/zygote.py').write_text('raise SystemExit("broken on purpose")\n')
    tmp_path.chmod(0o755)
    return folder


def doctor(program):
    """The exit status, whether the host is usable, and the line about zygotes."""
    done = subprocess.run([program, 'doctor', '--json'], capture_output=True, env=environment(), timeout=120, check=False)
    answer = json.loads(done.stdout)
    return done.returncode, answer['usable'], next(check for check in answer['checks'] if check['name'] == 'a Python zygote')


def test_doctor_says_whether_a_zygote_can_be_made(broken):
    status, usable, check = doctor(CAISSON)
    assert (status, usable, check['state']) == (0, True, 'ok'), check
    status, usable, check = doctor(broken / 'caisson')
    assert (status, usable, check['state']) == (0, True, 'weaker'), check
    assert 'zygote' in check['fact'] and 'starts an interpreter of its own' in check['remedy']


def test_log_and_metrics_tell_of_a_zygote_that_cannot_be_made(broken, tmp_path, monkeypatch):
    def metric(name):
        lines = web.ask('GET', '/metrics')[2].decode().splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith('caisson_zygote_%s{image="system"}' % name)), None)

    (tmp_path / 'usual').mkdir()
    web = Web(tmp_path / 'usual')
    assert web.run('print(1)', 'python')['stdout'] == '1\n'
    until(lambda: metric('up') == 1)
    assert metric('failures_total') == 0
    web.daemon.stop()
    monkeypatch.setattr(daemon, 'CAISSOND', str(broken / 'caissond'))
    (tmp_path / 'broken').mkdir()
    web = Web(tmp_path / 'broken')
    assert web.run('print(1)', 'python')['stdout'] == '1\n'
    until(lambda: metric('failures_total'))
    assert metric('up') == 0
    assert 'cannot be made, and Python programs start cold' in web.log.read_text()
    web.daemon.stop()
