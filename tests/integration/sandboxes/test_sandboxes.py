"""Persistent sandboxes over HTTP: how they are made, how long they live, that they stand still, and what their walls keep."""

import concurrent.futures
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from cli import ROOT, folders_of
from daemon import Client, alive, memory_of, until
from sandboxes import Sandbox
from keys import Keys, bearer
from web import Web


# Without what waits: then cgroups have the names of their sandboxes, by which they are found from outside.
NAMED = ('--set', 'engine.pool_shells=0')


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('sandboxes'), '--set', 'engine.sandboxes_owner_max=100', *NAMED)
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert not folders_of(web.daemon.process.pid)


@pytest.fixture(name='box')
def one(web):
    with Sandbox(web) as box:
        yield box


def gone(box):
    return box.ask('GET')[0] == 404


# ---- making ----

def test_one_is_made_described_and_ended(web):
    box = Sandbox(web, user='somebody', labels={'a': 'b' * 50, 'c': 'd'}, env={'X': 'y' * 30}, ttl_ms=50000, idle_ms=40000)
    web.run('true')   # other requests come and go in between; what was asked for stays
    state = box.good('GET')
    assert state == box.made | {'contexts': 0}
    assert (state['state'], state['user'], state['labels'], state['idle_ms']) == ('running', 'somebody', {'a': 'b' * 50, 'c': 'd'}, 40000)
    assert state['profile'] == 'standard' and re.fullmatch('sbx_[0-9a-f]{32}', state['id'])
    assert box.id in [each['id'] for each in web.ask('GET', '/v1/sandboxes')[2]['sandboxes']]
    assert box.out('echo $X; pwd; id -u') == 'y' * 30 + '\n/home/user\n1000\n'
    assert box.ask('DELETE')[0] == 204
    assert gone(box) and box.ask('DELETE')[0] == 404
    assert box.id not in [each['id'] for each in web.ask('GET', '/v1/sandboxes')[2]['sandboxes']]


def test_profile_and_limits_are_in_force(web):
    with Sandbox(web, profile='data', limits={'pids': 20, 'memory_bytes': 96 << 20, 'disk_bytes': 3 << 20}) as box:
        assert box.made['profile'] == 'data'
        limits = box.made['limits']
        assert (limits['pids'], limits['memory_bytes'], limits['disk_bytes'], limits['cpu_milli']) == (20, 96 << 20, 3 << 20, 2000)
        assert box.out('df -B1 --output=size . | tail -1').split() == [str(3 << 20)]
        record = box.run('for i in $(seq 40); do sleep 30 & done 2>&1; jobs -p | wc -l; kill $(jobs -p)')
        assert 'fork' in record['stdout'] + record['stderr']
        assert box.good('GET', '/metrics')['pids_hits'] > 0


@pytest.mark.parametrize('body, field', [
    ({'nothing': 1}, '/nothing'), ({'ttl_ms': 1}, '/ttl_ms'), ({'ttl_ms': 90000000}, '/ttl_ms'), ({'limits': {'pids': 'x'}}, '/limits/pids'),
    ({'limits': {'what': 1}}, '/limits/what'), ({'code': 'x'}, '/code'), ({'labels': {'a': 1}}, '/labels/a'), ({'network': 'all'}, '/network'),
    (b'', ''), (b'[]', '')], ids=str)
def test_what_is_no_request_is_refused(web, body, field):
    status, _, problem = web.ask('POST', '/v1/sandboxes', body)
    assert (status, problem['code'], problem.get('field', '')) == (422, 'bad_request', field)


@pytest.mark.parametrize('profile', ['nothing', 'host'])
def test_a_profile_that_cannot_be_is_refused(web, profile):
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'profile': profile})
    assert status in (422, 503) and profile in problem['detail'] or 'native' in problem['detail'] or 'host' in problem['detail']
    assert web.ask('GET', '/v1/sandboxes')[2]['sandboxes'] == []


def test_unknown_ones_are_not_there_for_any_route(web, box):
    nothing = '/v1/sandboxes/sbx_' + '0' * 32
    routes = [('GET', ''), ('DELETE', ''), ('PATCH', ''), ('POST', '/pause'), ('POST', '/resume'), ('GET', '/metrics'), ('POST', '/contexts'),
              ('GET', '/contexts'), ('POST', '/processes'), ('GET', '/processes'), ('GET', '/processes/1'), ('DELETE', '/processes/1'),
              ('GET', '/processes/1/events'), ('POST', '/processes/1/stdin'), ('POST', '/processes/1/signal'), ('POST', '/processes/1/size'),
              ('GET', '/files?path=x'), ('PUT', '/files?path=x'), ('POST', '/files?path=x'), ('PATCH', '/files?path=x'), ('DELETE', '/files?path=x'),
              ('GET', '/entries?path=x'), ('GET', '/entry?path=x'), ('GET', '/watch?path=x')]
    for method, below in routes:
        status, _, problem = web.ask(method, nothing + below)
        assert (status, problem['code']) == (404, 'not_found'), (method, below, problem)
    for method in ('GET', 'DELETE'):
        assert web.ask(method, '/v1/contexts/ctx_' + '0' * 32)[0] == 404
    assert box.ask('POST', '', b'')[0] == 405 and box.ask('GET', '?x=1')[0] == 422


def test_there_are_as_many_as_the_settings_allow(tmp_path):
    keys = Keys(tmp_path)
    alice, mallory = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read,sandboxes')) for name in ('alice', 'mallory'))
    web = Web(tmp_path, '--set', 'engine.sandboxes_owner_max=1', '--set', 'engine.sandboxes_max=2', '--set', 'engine.sandbox_ttl_ms=20000', keyless=False)
    status, _, problem = web.ask('POST', '/v1/sandboxes', {'ttl_ms': 20001}, **alice)
    assert (status, problem['field']) == (422, '/ttl_ms') and 'engine.sandbox_ttl_ms' in problem['detail']
    first = Sandbox(web, alice, ttl_ms=20000)
    status, headers, problem = web.ask('POST', '/v1/sandboxes', {'ttl_ms': 20000}, **alice)
    assert (status, problem['code'], headers['Retry-After']) == (429, 'capacity', '1') and 'engine.sandboxes_owner_max' in problem['detail']
    Sandbox(web, mallory, ttl_ms=20000)
    assert first.ask('PATCH', '', {'ttl_ms': 20001})[0] == 422
    first.good('DELETE')
    Sandbox(web, alice, ttl_ms=20000)
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert not folders_of(web.daemon.process.pid)


def test_the_default_time_is_not_beyond_what_the_settings_allow(tmp_path):
    web = Web(tmp_path, '--set', 'engine.sandbox_ttl_ms=20000')
    status, _, made = web.ask('POST', '/v1/sandboxes', {})
    assert status == 201, made
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- time ----

def test_its_time_ends_and_can_be_made_longer(web):
    first = Sandbox(web, ttl_ms=2000)
    program = first.start('sleep 1000')
    second = Sandbox(web, ttl_ms=2000)
    changed = second.good('PATCH', '', {'ttl_ms': 60000})
    assert changed['expires_at'] > second.made['expires_at']
    until(lambda: gone(first))
    assert not gone(second)
    until(lambda: web.ask('GET', program.path)[2]['state'] == 'over')
    assert 'ttl_ms' in web.ask('GET', program.path)[2]['error']['message']
    second.good('PATCH', '', {'ttl_ms': 1000})
    until(lambda: gone(second))


def test_one_that_nobody_uses_ends_and_a_program_is_use(web):
    busy = Sandbox(web, idle_ms=1500)
    program = busy.start('sleep 1000')
    paused = Sandbox(web, idle_ms=1500)
    paused.good('POST', '/pause')
    idle = Sandbox(web, idle_ms=1500)
    until(lambda: gone(idle))
    time.sleep(1)
    assert not gone(busy) and not gone(paused)
    program.signal('KILL')
    program.over()
    paused.good('POST', '/resume')
    until(lambda: gone(busy) and gone(paused))


def test_a_context_at_rest_is_no_use(web):
    with Sandbox(web, idle_ms=60000) as box:
        if box.ask('POST', '/contexts', {'language': 'python'})[0] != 201:
            pytest.skip('needs contexts: no runner of them here')
    box = Sandbox(web, idle_ms=2500)
    context = box.good('POST', '/contexts', {'language': 'python'})
    record = web.ask('POST', f'/v1/contexts/{context["id"]}/runs', {'code': 'import time; time.sleep(3); print("over")'})[2]
    assert record['stdout'] == 'over\n' and not gone(box)
    until(lambda: gone(box))


# ---- standing still ----

COUNTER = 'i=0; while :; do i=$((i+1)); echo $i > /dev/shm/n.new; mv /dev/shm/n.new /dev/shm/n; done'


def host_ticks(pids):
    return sum(sum(map(int, Path(f'/proc/{pid}/stat').read_text().rsplit(') ', 1)[1].split()[11:13])) for pid in pids)


def test_what_is_paused_stands_still_and_goes_on(box):
    box.start(COUNTER)
    box.start('while :; do :; done')
    box.python('x = bytearray(30 << 20); open("/dev/shm/big", "wb").write(x)')
    until(lambda: int(box.good('GET', '/metrics')['cpu_ms']) > 100)
    assert box.good('POST', '/pause')['state'] == 'paused'
    pids = set(box.processes())
    before, ticks = box.good('GET', '/metrics'), host_ticks(pids)
    time.sleep(.5)
    after = box.good('GET', '/metrics')
    assert after['cpu_ms'] == before['cpu_ms'] and host_ticks(pids) == ticks
    assert after['memory_bytes'] >= 30 << 20 and after['processes'] == before['processes'] >= 2
    for method, below, body in [('POST', '/processes', {'command': 'true'}), ('GET', '/files?path=x', None), ('PUT', '/files?path=x', b'x'),
                                ('GET', '/entries?path=.', None), ('POST', '/pause', b''), ('GET', '/watch?path=.', None)]:
        status, _, problem = box.ask(method, below, body)
        assert status == 409 and 'paused' in problem['detail'], (method, below, problem)
    assert box.good('GET')['state'] == 'paused' and box.good('GET')['note']
    assert box.good('POST', '/resume')['state'] == 'running'
    until(lambda: box.good('GET', '/metrics')['cpu_ms'] > after['cpu_ms'])
    assert box.ask('POST', '/resume')[0] == 409


def test_pausing_twice_at_once_and_ending_what_is_paused(web):
    box = Sandbox(web)
    program = box.start('trap "" TERM; while :; do :; done')
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = sorted(answer[0] for answer in pool.map(lambda _: box.ask('POST', '/pause'), range(4)))
    assert answers[0] == 200 and set(answers[1:]) == {409}
    pids, cgroups = box.processes(), box.cgroups()
    assert pids and cgroups
    began = time.monotonic()
    assert box.ask('DELETE')[0] == 204
    assert time.monotonic() - began < 10
    until(lambda: not [pid for pid in pids if alive(pid)])
    until(lambda: not box.cgroups())
    assert web.ask('GET', program.path)[2]['error']['code'] == 'cancelled'


def test_everything_in_it_ends_with_it(web):
    box = Sandbox(web)
    box.run('for i in 1 2 3; do setsid nohup sleep 1000 > /dev/null 2>&1 & done; (setsid sh -c "trap \\"\\" HUP TERM INT; while :; do :; done" &)')
    program = box.start('sleep 1000', terminal=True)
    stream = web.stream('GET', f'{program.path}/events', None, Accept='application/x-ndjson')
    watch = web.stream('GET', f'{box.path}/watch?path=.', None, Accept='application/x-ndjson')
    assert json.loads(watch.readline())['type'] == 'start'
    pids = until(lambda: (lambda found: len(set(found)) >= 6 and found)(box.processes()))
    assert box.ask('DELETE')[0] == 204
    assert not [pid for pid in pids if alive(pid)]
    until(lambda: not box.cgroups())
    assert json.loads(stream.read().splitlines()[-1])['record']['error']['code'] == 'cancelled'
    assert json.loads(watch.read().splitlines()[-1])['error']['code'] == 'cancelled'


def test_a_client_that_goes_before_it_is_made_leaves_none(web):
    before = len(web.ask('GET', '/v1/sandboxes')[2]['sandboxes'])
    for delay in (0, .001, .003, .006, .01):
        connection = web.open()
        connection.request('POST', '/v1/sandboxes', '{"idle_ms": 1000}')     # one may have been answered before its client goes
        time.sleep(delay)
        connection.close()
    until(lambda: len(web.ask('GET', '/v1/sandboxes')[2]['sandboxes']) == before)


def test_many_are_made_and_ended_at_once(web):
    before = memory_of(web.daemon.process.pid)

    def life(number):
        with Sandbox(web, labels={'n': str(number)}) as box:
            assert box.out(f'echo {number} > f; cat f') == f'{number}\n'
            return box
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        boxes = list(pool.map(life, range(40)))
    until(lambda: not [folder for box in boxes for folder in box.cgroups()])
    assert memory_of(web.daemon.process.pid) - before < 40 << 20


# ---- walls ----

def test_its_boundary_is_that_of_a_run(web, box):
    there, here = web.run('true')['boundary'], box.made['boundary']
    assert here['capabilities'] == 0 and here['seccomp']
    there.pop('host_uid'), here.pop('host_uid')
    assert here == there


PROCESS_ONE = r"""
import ctypes, os, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
found = []
for name in ('fd', 'fdinfo', 'map_files', 'ns'):
    try:
        found += [os.readlink(f'/proc/1/{name}/{each}') for each in os.listdir(f'/proc/1/{name}')]
    except OSError:
        pass
for name in ('mem', 'maps', 'smaps', 'environ', 'auxv', 'stack', 'syscall', 'io', 'pagemap', 'personality', 'mountinfo', 'timerslack_ns'):
    for mode in (os.O_RDONLY, os.O_WRONLY):
        try:
            descriptor = os.open(f'/proc/1/{name}', mode)
            if mode == os.O_WRONLY or os.read(descriptor, 10):
                found.append(name) if name != 'mountinfo' else None
        except OSError:
            pass
for name in ('exe', 'cwd', 'root'):
    try:
        found.append(os.readlink(f'/proc/1/{name}'))
    except OSError:
        pass
if libc.ptrace(16, 1, None, None) == 0 or libc.ptrace(0x4206, 1, None, None) == 0:
    found.append('ptrace')
descriptor = libc.syscall(434, 1, 0)
if descriptor >= 0 and libc.syscall(438, descriptor, 3, 0) >= 0:
    found.append('pidfd_getfd')
for number in range(1, 65):
    if number not in (17,):
        try:
            os.kill(1, number)
        except OSError:
            pass
try:
    resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))
    found.append('prlimit')
except (OSError, ValueError):
    pass
print(open('/proc/1/cmdline').read().rstrip('\0'), found)
"""


def test_process_one_tells_nothing_and_cannot_be_hurt(box):
    record = box.python(PROCESS_ONE)
    assert record['stdout'] == 'init []\n', record
    assert box.out('cat /proc/1/comm') == 'init\n'   # as in a run
    assert box.out('echo alive') == 'alive\n'
    with Sandbox(box.web) as other:
        assert other.out('echo alive') == 'alive\n'


def acts():
    """Those that need no options, end by themselves, and say themselves whether something was possible."""
    for path in sorted((ROOT / 'tests/sandbox/acts').glob('*')):
        if path.suffix not in ('.py', '.sh', '.js') or path.name.startswith(('channel', 'forge', 'value', 'output', 'files', 'inputs', 'outputs')):
            continue
        text = path.read_text(encoding='utf-8')
        if path.name == 'proc_processes.py':   # other acts may go on beside it here
            continue
        mark = '#:' if path.suffix != '.js' else '//:'
        said = dict(line[len(mark):].strip().partition(':')[::2] for line in text.splitlines() if line.startswith(mark))
        if said.get('options', '').strip() or said.get('status', 'completed').strip() != 'completed' or 'exit' in said or 'stdout-has' in said:
            continue
        yield pytest.param(path, id=path.stem)


@pytest.fixture(name='cage', scope='module')
def for_acts(web):
    with Sandbox(web) as box:
        yield box


@pytest.mark.parametrize('path', acts())
def test_an_act_is_contained(cage, path):
    """What programs of runs must not be able to do, those of persistent sandboxes must not, either."""
    cage.put('act', path.read_bytes())
    command = {'.py': '/usr/bin/python3', '.sh': '/bin/bash', '.js': '/usr/bin/node'}[path.suffix]
    record = cage.run([command, 'act'], timeout_ms=60000)
    assert 'ESCAPED' not in record['stdout'] and not record['timed_out'], record
    assert record.get('exit_code') == 0, record
    cage.run('rm -rf /tmp/* /dev/shm/* /home/user/* 2> /dev/null')
    assert cage.out('echo alive') == 'alive\n'


# ---- too much ----

def test_a_program_that_takes_too_much_memory_ends_alone(web):
    with Sandbox(web, limits={'memory_bytes': 64 << 20}) as box:
        beside = box.start('while :; do sleep .1; done')
        record = box.python('x = []\nwhile True: x.append(bytearray(1 << 20))')
        assert record.get('signal') == signal.SIGKILL or record.get('exit_code') == 1, record
        assert box.good('GET', '/metrics')['oom_kills'] >= (1 if record.get('signal') else 0)
        assert beside.record()['state'] == 'running'
        assert box.out('echo alive') == 'alive\n'
        before = box.good('GET', '/metrics')['oom_kills']
        many = box.start(['/usr/bin/python3', '-c', 'import os\nfor _ in range(10):\n  if not os.fork(): break\nx = []\nwhile True: x.append(bytearray(1 << 20))'])
        until(lambda: box.good('GET', '/metrics')['oom_kills'] > before + 3, 60)
        if many.record()['state'] == 'running':
            many.signal('KILL')
        many.over()
        assert box.out('echo alive') == 'alive\n'


def test_a_fork_bomb_hurts_nobody_else(web):
    with Sandbox(web) as box, Sandbox(web) as other:
        bomb = box.start(['/usr/bin/python3', '-c', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'])
        until(lambda: box.good('GET', '/metrics')['pids_hits'] > 10)
        began = time.monotonic()
        assert other.out('echo alive') == 'alive\n'
        assert time.monotonic() - began < 30
        status, _, problem = box.ask('POST', '/processes', {'command': 'true'})
        assert status in (200, 409, 429), problem
        assert box.good('GET', '/entries?path=.')['entries'] == []
        assert bomb.record()['state'] == 'running'
        began = time.monotonic()
        box.good('DELETE')
        assert time.monotonic() - began < 30
        until(lambda: not box.cgroups())


def test_a_session_that_forks_is_killed_as_a_whole(box):
    bomb = box.start(['/usr/bin/python3', '-c', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'])
    until(lambda: box.good('GET', '/metrics')['pids_hits'] > 10)
    bomb.signal('KILL')
    assert bomb.over()['signal'] == signal.SIGKILL
    until(lambda: box.good('GET', '/metrics')['processes'] == 0)


def test_disk_and_inodes_that_are_full_are_told(web):
    with Sandbox(web, limits={'disk_bytes': 4 << 20, 'disk_files': 50}) as box:
        box.put('kept', b'k' * 1000)
        empty = box.good('GET', '/metrics')
        assert (empty['disk_bytes_max'], empty['disk_files_max'], empty['disk_files']) == (4 << 20, 50, 1) and 1000 <= empty['disk_bytes'] < 100_000
        status, _, problem = box.ask('PUT', '/files?path=big', b'x' * (6 << 20))
        assert status == 507 and 'full' in problem['detail']
        assert box.names() == ['kept']
        box.run('head -c 6000000 /dev/zero > full')
        status, _, problem = box.ask('PUT', '/files?path=kept', b'n' * 100000)
        assert status == 507
        assert box.get('kept') == b'k' * 1000 and box.names() == ['full', 'kept']
        full = box.good('GET', '/metrics')
        assert (full['disk_bytes'], full['disk_files']) == (4 << 20, 2)
        box.good('DELETE', '/files?path=full')
        assert box.good('GET', '/metrics')['disk_bytes'] == empty['disk_bytes']
        box.run('for i in $(seq 100); do : > f$i; done 2> /dev/null')
        assert box.ask('PUT', '/files?path=more', b'')[0] == 507
        assert box.ask('PATCH', '/files?path=folder', {'action': 'folder'})[0] == 507
        assert box.out('echo alive') == 'alive\n'


# ---- tenants ----

def test_what_is_another_tenants_is_not_there(tmp_path):
    keys = Keys(tmp_path)
    alice, mallory = (bearer(keys.make(name, '--tenant', name, '--scopes', 'run,read,sandboxes')) for name in ('alice', 'mallory'))
    reader = bearer(keys.make('reader', '--tenant', 'alice', '--scopes', 'read'))
    web = Web(tmp_path, keyless=False)
    box = Sandbox(web, alice)
    box.put('secret', b's')
    program = box.start('sleep 1000; echo never', stdin=True)
    assert web.ask('GET', '/v1/sandboxes', **mallory)[2]['sandboxes'] == []
    other = Sandbox(web, mallory)
    missing = '/v1/sandboxes/sbx_' + '0' * 32
    tries = [('GET', '', None), ('DELETE', '', None), ('PATCH', '', {'ttl_ms': 1000}), ('POST', '/pause', b''), ('POST', '/resume', b''), ('GET', '/metrics', None),
             ('GET', '/contexts', None), ('POST', '/contexts', {}), ('POST', '/processes', {'command': 'true'}), ('GET', '/processes', None),
             ('GET', program.below, None), ('DELETE', program.below, None), ('GET', f'{program.below}/events', None),
             ('POST', f'{program.below}/stdin?end=true', b'x'), ('POST', f'{program.below}/signal', {'signal': 'KILL'}),
             ('POST', f'{program.below}/size', {'rows': 1, 'columns': 1}), ('GET', '/files?path=secret', None), ('PUT', '/files?path=secret', b'x'),
             ('POST', '/files?path=.', b'x'), ('PATCH', '/files?path=secret', {'action': 'rename', 'to': 'x'}), ('DELETE', '/files?path=secret', None),
             ('GET', '/entries?path=.', None), ('GET', '/entry?path=secret', None), ('GET', '/watch?path=.', None)]
    for method, below, body in tries:
        foreign, absent = (web.ask(method, base + below, body, **mallory, X_Request_Id='same') for base in (box.path, missing))
        assert foreign[0] == absent[0] == 404, (method, below, foreign)
        same = json.loads(json.dumps(foreign[2]).replace(box.id, missing[-36:]))
        assert same == absent[2], (method, below)
    # By way of one's own sandbox, a number of somebody else's program leads nowhere.
    assert web.ask('GET', other.path + program.below, **mallory)[0] == 404
    assert web.ask('GET', box.path + program.below, **mallory)[0] == 404
    assert program.record()['state'] == 'running' and box.get('secret') == b's' and box.good('GET')['state'] == 'running'
    # Who may read may not change.
    assert web.ask('GET', box.path + '/files?path=secret', **reader)[0] == 200
    for method, below, body in tries:
        if method != 'GET':
            assert web.ask(method, box.path + below, body, **reader)[0] == 403, (method, below)
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- the daemon's end ----

@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_daemon_ends(tmp_path, how):
    web = Web(tmp_path, *NAMED)
    boxes = [Sandbox(web) for _ in range(3)]
    for box in boxes:
        box.start('trap "" TERM HUP; while :; do sleep 1; done')
        box.start('cat', stdin=True)
    until(lambda: all(len(set(box.processes())) >= 3 for box in boxes))     # a start is answered before it has happened
    boxes[0].good('POST', '/pause')
    streams = [web.stream('GET', f'{box.path}/watch?path=.', None) for box in boxes[1:]]
    waiting = web.open()
    waiting.request('POST', f'{boxes[1].path}/processes', json.dumps({'command': 'sleep 1000'}))
    until(lambda: len(boxes[1].good('GET', '/processes')['processes']) == 3)
    pids = {pid for box in boxes for pid in box.processes()}
    assert len(pids) >= 9
    status = web.daemon.stop(how)
    assert status == (0 if how == signal.SIGTERM else -how)
    until(lambda: not [pid for pid in pids if alive(pid)])
    until(lambda: not [folder for box in boxes for folder in box.cgroups()])
    for stream in streams:
        stream.close()
    waiting.close()
    again = Web(tmp_path)
    assert again.ask('GET', '/v1/sandboxes')[2]['sandboxes'] == []
    with Sandbox(again) as box:
        assert box.out('echo alive') == 'alive\n'
    assert again.daemon.stop(signal.SIGTERM) == 0


# ---- those that waited ----

def hits(web, kind):
    with Client(web.daemon.path) as client:
        pools = [pool for pool in client.status()['pools'] if kind in pool['key']]
    return sum(pool['hits'] for pool in pools), sum(pool['ready'] for pool in pools)


def test_one_that_waited_is_like_one_that_did_not(tmp_path):
    """All that a request says comes after it was made: limits, environment, network, times."""
    web = Web(tmp_path)
    request = {'env': {'MINE': 'yes'}, 'limits': {'memory_bytes': 64 << 20, 'pids': 20}, 'ttl_ms': 20000, 'labels': {'a': 'b'}}
    look = 'echo $MINE; id -u; ls -A; pwd; hostname; cat /proc/self/limits | grep -c . ; ls /proc > /tmp/seen; grep -c "^[0-9]*$" /tmp/seen'
    cold = Sandbox(web, **request)
    assert hits(web, '+lasting')[0] == 0
    seen = cold.out(look)
    cold.good('DELETE')
    until(lambda: hits(web, '+lasting')[1])
    warm = Sandbox(web, **request)
    assert hits(web, '+lasting')[0] == 1
    assert warm.out(look) == seen and seen.startswith('yes\n1000\n')
    both = [{key: value for key, value in box.made['boundary'].items() if key not in ('host_uid', 'memory_bytes')} for box in (cold, warm)]
    assert both[0] == both[1] and warm.made['limits'] == cold.made['limits'] and warm.made['labels'] == {'a': 'b'}
    assert 'fork' in warm.run('for i in $(seq 30); do sleep 1000 & done; wait', timeout_ms=4000)['stderr']
    assert warm.python('x = bytearray(200 << 20)').get('signal') == signal.SIGKILL and warm.out('echo on') == 'on\n'
    warm.good('DELETE')
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert not folders_of(web.daemon.process.pid)


def test_one_that_waited_is_given_to_one_alone(tmp_path):
    web = Web(tmp_path, '--set', 'engine.sandboxes_owner_max=100')
    with Sandbox(web):
        until(lambda: hits(web, '+lasting')[1])
    boxes = []
    for i in range(12):
        boxes.append(Sandbox(web))
        boxes[-1].put('who', str(i).encode())
        if i % 3 == 0:
            until(lambda: hits(web, '+lasting')[1])
    assert hits(web, '+lasting')[0] >= 4
    assert [box.out('cat who') for box in boxes] == [str(i) for i in range(12)]
    assert len({box.made['boundary']['host_uid'] for box in boxes}) == (12 if os.geteuid() == 0 else 1)
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert not folders_of(web.daemon.process.pid)


def test_those_that_wait_and_die_are_not_given_away(tmp_path):
    web = Web(tmp_path)
    Sandbox(web).good('DELETE')
    until(lambda: hits(web, '+lasting')[1])
    for folder in folders_of(web.daemon.process.pid):
        for pid in [int(pid) for file in folder.rglob('cgroup.procs') for pid in file.read_text().split()]:
            os.kill(pid, signal.SIGKILL)
    with Sandbox(web) as box:
        assert box.out('echo there') == 'there\n'
    assert web.daemon.stop(signal.SIGTERM) == 0
