"""Every helper process is watched: one that is killed or stopped is noticed, and replaced, or the daemon ends with a reason."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from daemon import Daemon, alive, children, command_line, supervisors, until
from web import Web

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: the daemon has helpers only if it gives up rights')

ANSWER_S = 5          # HELPER_ANSWER_MS
NOTICED_S = ANSWER_S + 15   # and a loaded machine
ECHO = {'language': 'bash', 'code': 'echo 1'}
PYTHON = {'language': 'python', 'code': 'print(1)'}
CHECKED = {**PYTHON, 'policy': 'linx'}


@pytest.fixture(name='web')
def served(tmp_path):
    web = Web(tmp_path)
    assert web.ask('POST', '/v1/runs', PYTHON)[2]['stdout'] == '1\n'
    yield web
    web.daemon.stop()


def named(parent, name):
    return [pid for pid in children(parent) if command_line(pid).startswith(name.encode())]


def helper(web, name):
    top = web.daemon.process.pid
    where = supervisors(top)[0] if name == 'caisson-janitor' else top
    return until(lambda: named(where, name))[0]


def state(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0]
    except OSError:
        return ''


def text(web):
    return web.log.read_text()


def ready(web):
    return web.ask('GET', '/readyz')[0]


def works(web):
    status, _, record = web.ask('POST', '/v1/runs', ECHO)
    return status == 200 and record.get('stdout') == '1\n'


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_the_janitor_is_replaced(web, how):
    old = helper(web, 'caisson-janitor')
    os.kill(old, how)
    until(lambda: state(old) == '', NOTICED_S)     # and no zombie
    assert helper(web, 'caisson-janitor') != old and works(web)
    assert 'the janitor was killed or stopped' in text(web)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_the_supervisor_is_replaced(web, how):
    """One that does not answer is killed, though it is root's and the daemon is not."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(web.ask, 'POST', '/v1/runs', {'language': 'python', 'code': 'import time; time.sleep(300)', 'limits': {'wall_ms': 300000}})
        until(lambda: [run['state'] for run in web.runs()] == ['running'])
        time.sleep(.5)
        old = supervisors(web.daemon.process.pid)[0]
        os.kill(old, how)
        waiting = pool.submit(web.ask, 'POST', '/v1/runs', ECHO)
        if how == signal.SIGSTOP:
            status, _, problem = until(lambda: (answer := web.ask('GET', '/readyz'))[0] == 503 and answer, ANSWER_S)
            assert 'the supervisor does not answer' in problem['detail']
        record = running.result(NOTICED_S)[2]
        assert (record['status'], record['error']['code']) == ('engine_error', 'worker_lost'), record
        status, _, record = waiting.result(60)
        assert (status, record['status']) in ((200, 'completed'), (200, 'engine_error')), record
    until(lambda: state(old) == '', NOTICED_S)
    assert works(web) and ready(web) == 200
    assert ('did not answer within 5 seconds and was killed' if how == signal.SIGSTOP else 'ended unexpectedly') in text(web)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_the_outer_init_is_replaced(web, how):
    supervisor = supervisors(web.daemon.process.pid)[0]
    outer = next(pid for pid in children(supervisor) if not command_line(pid).startswith(b'caisson-janitor'))
    os.kill(outer, how)
    until(lambda: state(supervisor) == '' and works(web), NOTICED_S + 20)
    assert ready(web) == 200


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_without_the_starter_the_daemon_ends_with_a_reason(web, how):
    starter = helper(web, 'caisson-starter')
    try:
        os.kill(starter, how)
        status = web.daemon.process.wait(NOTICED_S + 20)
        assert status not in (0, None)
        assert re.search('the process that starts others for the daemon (was killed|does not answer).*; the daemon ends', text(web))
    finally:
        if alive(starter):
            os.kill(starter, signal.SIGKILL)


def test_a_starter_that_does_not_answer_is_not_ready(web):
    starter = helper(web, 'caisson-starter')
    try:
        os.kill(starter, signal.SIGSTOP)
        problem = until(lambda: (answer := web.ask('GET', '/readyz'))[0] == 503 and answer[2], ANSWER_S)
        assert 'the starter does not answer' in problem['detail']
        os.kill(starter, signal.SIGCONT)
        until(lambda: ready(web) == 200, ANSWER_S)
        assert works(web)
    finally:
        os.kill(starter, signal.SIGCONT)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_without_the_launcher_of_tools_the_daemon_ends_with_a_reason(tmp_path, how):
    """One that was stopped is noticed by the next call of a program, which fails."""
    config = tmp_path / 'caisson.yaml'
    config.write_text(json.dumps({'tools': {'host': {'word': {'command': ['printf', '%s', '{word}'], 'args': {'word': 'string'}}}}}))
    daemon = Daemon(tmp_path, env={'CAISSON_CONFIG': str(config)}).ready()
    call = ('run', '--json', '--tool', 'host.*', '-l', 'python', '-c', "print(tools.host.word(word='one'))")
    assert json.loads(daemon.caisson(*call).out)['stdout'] == '"one"\n'
    launcher = named(daemon.process.pid, 'caisson-launcher')[0]
    try:
        os.kill(launcher, how)
        if how == signal.SIGSTOP:
            assert json.loads(daemon.caisson(*call).out or '{}').get('stdout') != '"one"\n'
        status = daemon.process.wait(NOTICED_S + 20)
        assert status not in (0, None)
        assert 'the process that starts programs of tools' in (tmp_path / 'log').read_text()
    finally:
        if alive(launcher):
            os.kill(launcher, signal.SIGKILL)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_the_file_opener_is_replaced(web, how):
    body = {'language': 'bash', 'code': 'umask 077; echo content > out.txt', 'exports': [{'path': 'out.txt'}]}
    made = {'language': 'bash', 'code': 'umask 077; echo content > out.txt'}
    assert web.ask('POST', '/v1/runs', made)[0] == 200
    old = helper(web, 'caisson-opener')
    os.kill(old, how)
    if how == signal.SIGKILL:
        until(lambda: state(old) == '', NOTICED_S)          # without a run that would need it
    record = web.ask('POST', '/v1/runs', made)[2]
    assert [file['name'] for file in record['files']] == ['out.txt'] and record['files'][0]['sha256'], (record, body)
    until(lambda: state(old) == '', NOTICED_S)
    assert 'the file opener was killed' in text(web)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_the_policy_worker_is_replaced(web, how):
    assert web.ask('POST', '/v1/runs', CHECKED)[2]['status'] == 'completed'
    old = helper(web, 'caisson-policy')
    os.kill(old, how)
    begun = time.monotonic()
    assert web.ask('POST', '/v1/runs', CHECKED)[2]['status'] == 'completed'
    assert time.monotonic() - begun < NOTICED_S
    until(lambda: state(old) == '', NOTICED_S)


@pytest.mark.parametrize('how', [signal.SIGKILL, signal.SIGSTOP])
def test_a_zygote_is_replaced(web, how):
    def zygotes():
        return [pid for pid in web.daemon.tree() if b'zygote.py' in command_line(pid)]
    old = [min(until(zygotes))]        # the others are its forks, which wait for programs
    for pid in old:
        os.kill(pid, how)
    begun = time.monotonic()
    records = [web.ask('POST', '/v1/runs', PYTHON)[2] for _ in range(10)]
    assert {record.get('stdout') for record in records} == {'1\n'}, records
    assert time.monotonic() - begun < 60
    if how == signal.SIGSTOP:           # noticed when it is asked for a fork, and it may be that of an image that no run asks for
        with contextlib.suppress(ProcessLookupError):
            os.kill(old[0], signal.SIGKILL)
    until(lambda: not any(map(alive, old)), 60)
