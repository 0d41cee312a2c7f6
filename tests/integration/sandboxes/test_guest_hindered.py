"""Programs of a persistent sandbox that hinder its process 1, which has their uid and their limits."""

import time

import pytest

from daemon import until


@pytest.fixture(name='made')
def maker(web):
    ids = []

    def make(**request):
        status, _, sandbox = web.ask('POST', '/v1/sandboxes', request)
        assert status == 201, sandbox
        ids.append(f'/v1/sandboxes/{sandbox["id"]}')
        return ids[-1]
    yield make
    for path in ids:
        web.ask('DELETE', path)


def start(web, sandbox, command, **more):
    status, _, process = web.ask('POST', f'{sandbox}/processes', {'command': command} | more, Prefer='respond-async')
    return status, process


def run(web, sandbox, command):
    return web.ask('POST', f'{sandbox}/processes', {'command': command})[::2]


def test_what_programs_left_in_the_background_does_not_use_up_its_descriptors(web, made):
    sandbox = made(limits={'open_files': 40, 'pids': 60})
    answers = [run(web, sandbox, 'sleep 1000 &')[0] for _ in range(45)]
    assert answers[0] == 200 and set(answers) <= {200, 409}
    assert web.ask('GET', sandbox)[2]['state'] == 'running'

    def works():
        status, record = run(web, sandbox, 'echo x; pgrep -c sleep')
        return status == 200 and record['stdout'].startswith('x\n') and int(record['stdout'].split()[1]) > 10
    until(works)


def test_a_program_that_stops_others_before_they_begin_does_not_stop_it(web, made):
    sandbox = made(limits={'pids': 200})
    code = ('import os, signal\nown = os.getpid()\nwhile True:\n  last = int(open("/proc/sys/kernel/ns_last_pid").read())\n'
            '  for pid in (last, last + 1):\n    try: pid > own and os.kill(pid, signal.SIGSTOP)\n    except OSError: pass\n')
    assert start(web, sandbox, f'exec python3 -c \'{code}\'')[0] == 202
    time.sleep(.5)
    begun = time.monotonic()
    for _ in range(8):
        start(web, sandbox, 'sleep 1000')
        assert web.ask('GET', f'{sandbox}/entries?path=/home/user')[0] == 200
    assert time.monotonic() - begun < 150     # 5 s for each that it has stopped, and more on a busy machine


def test_a_terminal_that_was_stopped_holds_up_itself_alone(web, made):
    sandbox = made()
    status, process = start(web, sandbox, 'sleep 1000', terminal=True)
    assert status == 202
    stdin = f'{sandbox}/processes/{process["id"]}/stdin'
    assert web.ask('POST', stdin, b'\x13')[0] == 204
    connection = web.open()
    connection.request('POST', stdin, b'x' * (1 << 20))
    time.sleep(.5)
    assert run(web, sandbox, 'echo x')[1]['stdout'] == 'x\n'
    assert web.ask('DELETE', f'{sandbox}/processes/{process["id"]}')[0] == 204
    assert connection.getresponse().status in (204, 409)
    connection.close()
    until(lambda: web.ask('GET', f'{sandbox}/processes/{process["id"]}')[2]['state'] == 'over')
