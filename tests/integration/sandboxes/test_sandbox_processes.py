"""Programs in persistent sandboxes: what they print, what they are sent, how they end."""

import base64
import concurrent.futures
import json
import os
import re
import signal
import threading
import time

import pytest

from daemon import memory_of, until
from sandboxes import Program, Sandbox, sse


@pytest.fixture(name='box')
def one(web):
    with Sandbox(web, limits={'pids': 256, 'memory_bytes': 512 << 20}) as box:
        yield box


def stream_of(box, command, **more):
    body = {'command': command} | more
    answer = box.web.stream('POST', f'{box.path}/processes', body, Accept='application/x-ndjson')
    assert answer.status == 200, answer.read()
    return answer


def joined(events, kind):
    """What was printed, in bytes."""
    return b''.join(base64.b64decode(event['base64']) if 'base64' in event else event['text'].encode() for event in events if event['type'] == kind)


# ---- records ----

def test_exit_status_and_streams(box):
    record = box.run('echo out; echo err >&2; exit 3')
    assert (record['exit_code'], record['stdout'], record['stderr'], record['state']) == (3, 'out\n', 'err\n', 'over')
    assert record['timed_out'] is False and record['wall_ms'] > 0 and record['pid'] > 1 and record['sandbox'] == box.id
    assert 'error' not in record and 'signal' not in record
    assert box.run(['/bin/sh', '-c', 'echo "$1"', 'x', 'a b'])['stdout'] == 'a b\n'
    assert box.run(['true'])['command'] == 'true'
    for number in (1, 9, 11, 15, 64):
        record = box.run(f'kill -{number} $$')
        assert record.get('signal') == number and 'exit_code' not in record


def test_times_have_no_more_digits_than_were_measured(box):
    for _ in range(10):
        box.run('true')
    text = box.web.stream('GET', f'{box.path}/processes').read().decode()
    times = re.findall(r'"wall_ms":([0-9.]+)', text)
    assert len(times) == 10 and all(re.fullmatch(r'\d+\.\d{1,3}', one) for one in times), times


def test_each_sandbox_counts_its_own_programs(box, web):
    box.run('true')
    box.run('true')
    with Sandbox(web) as other:
        other.run('true')
        assert [one['id'] for one in other.good('GET', '/processes')['processes']] == [1]
    assert [one['id'] for one in box.good('GET', '/processes')['processes']] == [2, 1]
    box.good('DELETE', '/processes/2')
    box.run('true')
    assert [one['id'] for one in box.good('GET', '/processes')['processes']] == [3, 1], 'a number is used once'


def test_folder_and_environment(box):
    assert box.out('pwd; echo $A-$B', cwd='/tmp', env={'A': '1', 'B': ''}) == '/tmp\n1-\n'
    assert box.out('echo "$PATH" | grep -c /usr/bin; echo $HOME; echo ${SECRET:-none}') == '1\n/home/user\nnone\n'
    status, _, problem = box.ask('POST', '/processes', {'command': 'true', 'cwd': '/nothing'})
    assert status == 422 and '/nothing' in problem['detail'] and 'no such' in problem['detail']


@pytest.mark.parametrize('body, field', [
    ({}, '/command'), ({'command': 'x', 'args': ['x']}, '/command'), ({'args': ['']}, '/args'), ({'command': 'x', 'what': 1}, '/what'),
    ({'command': 'cat', 'stdin': True}, '/stdin'), ({'command': 'x', 'terminal': True}, '/terminal'), ({'command': 'x', 'rows': 0}, '/rows'),
    ({'command': 'x', 'timeout_ms': -1}, '/timeout_ms'), ({'command': 'x\0y'}, None), (b'x', '')], ids=str)
def test_what_is_no_request_is_refused(box, body, field):
    status, _, problem = box.ask('POST', '/processes', body)
    assert status == 422 and (field is None or problem.get('field', '') == field), problem
    assert box.good('GET', '/processes')['processes'] == []


@pytest.mark.parametrize('args, word', [(['nothing-of-the-kind'], 'no such'), (['/etc/hostname-not'], 'no such'), (['/home/user'], 'it is a folder'),
                                        (['é' * 200], 'too long')], ids=lambda value: str(value)[:20])
def test_what_cannot_be_started_says_why(box, args, word):
    status, _, problem = box.ask('POST', '/processes', {'args': args})
    assert status == 422 and word in problem['detail'] and problem['detail'].startswith('cannot start ')
    record = box.start(args).over()
    # The text may have been cut within a character, and is there all the same.
    assert word in record['error']['message'] and record['pid'] == 0 and 'exit_code' not in record


def test_a_command_line_that_is_too_long_is_refused(box):
    status, _, problem = box.ask('POST', '/processes', {'args': ['echo', *['x' * 60000] * 5]})
    assert status == 422 and 'KiB' in problem['detail']
    assert box.run(['echo', 'x' * 60000])['stdout'] == 'x' * 60000 + '\n'


def test_bytes_that_are_no_utf8(box):
    record = box.run(r"printf 'a\xffb\x00c'; printf '\xc3' >&2")
    assert record['stdout'] == 'a�b\0c' and record['stderr'] == '�'
    with stream_of(box, r"printf '\xc3'; sleep .3; printf '\xa9\n'; printf '\xff\xfe'") as answer:
        events = [json.loads(line) for line in answer if line.strip()]
    assert joined(events, 'stdout') == b'\xc3\xa9\n\xff\xfe'
    assert [event['text'] for event in events if event['type'] == 'stdout'][0].startswith('é')   # a character is not torn


def test_much_output_is_bounded_and_costs_no_memory(web, box):
    box.run('head -c 3000000 /dev/zero | tr "\\0" x')
    before = memory_of(web.daemon.process.pid)
    record = box.run('echo begin; head -c 50000000 /dev/zero | tr "\\0" x; echo end')
    assert record['exit_code'] == 0 and record['stdout'].startswith('begin\n') and record['stdout'].endswith('xend\n')
    assert len(record['stdout']) <= 1 << 20
    assert record['truncated']['stdout_bytes'] == 50000010 - len(record['stdout'])
    assert memory_of(web.daemon.process.pid) - before < 30 << 20


def test_a_record_keeps_as_much_as_its_sandbox_allows(web):
    with Sandbox(web, limits={'output_bytes': 100}) as small:
        record = small.run('seq 1 2000; seq 1 10 >&2')
        assert (record['stdout'][:6], record['stdout'][-5:], len(record['stdout'])) == ('1\n2\n3\n', '2000\n', 100)
        assert record['truncated'] == {'stdout_bytes': 8793, 'stdout_total_bytes': 8893, 'stderr_bytes': 0, 'stderr_total_bytes': 21}
        over = small.start('seq 1 2000').over()
        assert len(over['stdout']) == 100
    with Sandbox(web, limits={'output_bytes': 3_000_000}) as large:
        assert len(large.out('head -c 2500000 /dev/zero | tr "\\0" x')) == 2_500_000


def test_records_that_are_kept_are_bounded(web):
    """Many programs that print much: their records are not kept for ever, and the newest are."""
    with Sandbox(web) as box:
        before = memory_of(web.daemon.process.pid)
        for _ in range(70):
            last = box.python('import os\nfor _ in range(70): os.write(1, b"x" * 65536)\nfor _ in range(20): os.write(2, b"y" * 65536)')
        assert memory_of(web.daemon.process.pid) - before < 350 << 20
        assert box.good('GET', f'/processes/{last["id"]}')['stdout'] == last['stdout']
        for _ in range(250):
            box.run(['true'])
        assert len(box.good('GET', '/processes')['processes']) <= 201


def test_it_is_killed_at_its_time_with_its_session(box):
    began = time.monotonic()
    record = box.run('set -m; sleep 4711 & sleep 4712', timeout_ms=500)
    assert record['timed_out'] and record['signal'] == signal.SIGKILL and time.monotonic() - began < 30
    until(lambda: box.good('GET', '/metrics')['processes'] == 0)
    assert box.run('exit 5', timeout_ms=60000)['timed_out'] is False


def test_a_client_that_goes_ends_the_program_it_waited_for(web, box):
    connection = web.open()
    connection.request('POST', f'{box.path}/processes', json.dumps({'command': 'sleep 1000'}))
    until(lambda: box.good('GET', '/metrics')['processes'] >= 1)
    connection.close()
    until(lambda: box.good('GET', '/metrics')['processes'] == 0)
    program = box.start('echo 1; sleep 1000')
    program.has_printed('1')
    answer = web.stream('GET', f'{program.path}/events', None)
    answer.close()
    time.sleep(.3)
    assert program.record()['state'] == 'running'   # who looks on is not who asked for it
    program.signal('KILL')


# ---- later, and as it goes on ----

def test_started_and_asked_for_later(box):
    status, headers, record = box.ask('POST', '/processes', {'command': 'echo 1; sleep .5; echo 2'}, Prefer='respond-async')
    assert status == 202 and headers['Preference-Applied'] == 'respond-async' and record['state'] == 'running'
    program = Program(box, record)
    assert headers['Location'] == program.path
    assert program.number in [each['id'] for each in box.good('GET', '/processes')['processes']]
    assert program.over()['stdout'] == '1\n2\n'
    assert box.ask('DELETE', program.below)[0] == 204   # its record
    assert box.ask('GET', program.below)[0] == 404 and box.ask('DELETE', program.below)[0] == 404


def test_events_in_both_forms_and_from_any_one_on(web, box):
    program = box.start('for i in 1 2 3 4 5; do echo $i; sleep .1; done; echo e >&2; exit 7')
    events = program.events()
    assert [event['type'] for event in events][0] == 'start' and events[-1]['type'] == 'end'
    assert joined(events, 'stdout') == b'1\n2\n3\n4\n5\n' and joined(events, 'stderr') == b'e\n'
    assert events[-1]['record']['exit_code'] == 7 and events[0]['id'] == program.number
    assert program.events(after=3) == events[3:] and program.events(after=10 ** 9) == []
    with web.stream('GET', f'{program.path}/events', None, Last_Event_ID='2') as answer:
        assert answer.headers['Content-Type'].startswith('text/event-stream')
        found = list(sse(answer))
    assert [number for number, _, _ in found] == list(range(3, len(events) + 1))
    assert [data for _, _, data in found] == events[2:]
    assert web.ask('GET', f'{program.path}/events?after=x')[0] == 422
    with web.stream('POST', f'{box.path}/processes', {'command': 'echo 1'}, Accept='text/event-stream') as answer:
        assert [kind for _, kind, _ in sse(answer)] == ['start', 'stdout', 'end']


def test_a_reader_that_does_not_read_holds_up_nobody(web, box):
    program = box.start('i=0; while [ $i -lt 300 ]; do head -c 100000 /dev/zero | tr "\\0" x; i=$((i+1)); done')
    connection = web.stream('GET', f'{program.path}/events', None, Accept='application/x-ndjson')
    assert program.over(60)['truncated']['stdout_bytes'] > 0
    events = [json.loads(line) for line in connection if line.strip()]
    assert events[-1]['type'] == 'end' and any(event['type'] == 'lost' for event in events)
    connection.close()


# ---- standard input ----

def test_standard_input_in_parts(box):
    program = box.start('cat; echo; cat; echo over', stdin=True)
    program.write(b'one ')
    program.write(b'two')
    program.has_printed('one two')
    program.write(b'\xff', end=True)
    record = program.over()
    assert record['stdout'] == 'one two�\nover\n'
    status, _, problem = box.ask('POST', f'{program.below}/stdin', b'x')
    assert status == 409 and 'over' in problem['detail']
    without = box.start('sleep 1000')
    assert box.ask('POST', f'{without.below}/stdin', b'x')[0] == 409
    assert box.out('cat; echo end') == 'end\n'


def test_a_program_that_reads_slowly_gets_it_all(web, box):
    data = os.urandom(1 << 20) * 20
    box.put('expected', data)
    program = box.start(['/usr/bin/python3', '-c', '''
import sys, time, hashlib
sum, n = hashlib.sha256(), 0
time.sleep(1)
while part := sys.stdin.buffer.read1(65536):
    sum.update(part); n += len(part); time.sleep(.002)
print(n, sum.hexdigest() == hashlib.sha256(open("expected", "rb").read()).hexdigest())
'''], stdin=True)
    before = memory_of(web.daemon.process.pid)
    most = [before]
    stop = threading.Event()

    def look():
        while not stop.is_set():
            most.append(memory_of(web.daemon.process.pid))
            time.sleep(.02)
    watcher = threading.Thread(target=look)
    watcher.start()
    program.write(data, end=True)
    assert program.over(60)['stdout'] == f'{len(data)} True\n'
    stop.set()
    watcher.join()
    assert max(most) - before < 8 << 20


@pytest.mark.parametrize('size', range(16 << 10, 600 << 10, 37 << 10))
def test_the_end_of_the_input_comes_however_full_the_way_is(box, size):
    """Nothing is read for a while; the end of the input has to wait its turn behind everything else."""
    program = box.start('sleep .4; wc -c', stdin=True)
    assert program.write(b'x' * size, end=True) == b''
    assert program.over()['stdout'].strip() == str(size)


def test_input_for_a_program_that_closed_it(box):
    program = box.start('exec < /dev/null; echo closed; sleep 1000', stdin=True)
    program.has_printed('closed')
    assert program.write(b'x' * (5 << 20)) == b''
    assert program.write(b'y', end=True) == b''
    program.signal('KILL')
    assert program.over()['signal'] == signal.SIGKILL


def test_a_program_that_ends_before_its_input_does(web, box):
    program = box.start('sleep .3; exit 4', stdin=True)
    status, _, problem = box.ask('POST', f'{program.below}/stdin?end=true', b'x' * (10 << 20))
    assert status == 409 and 'over' in problem['detail']
    assert program.over()['exit_code'] == 4


def test_only_one_writes_at_a_time_and_one_that_breaks_off_is_forgotten(web, box):
    program = box.start('sleep 1; wc -c', stdin=True)
    first = web.open()
    first.putrequest('POST', f'{program.path}/stdin')
    first.putheader('Content-Length', '1000')
    first.endheaders()
    first.send(b'x' * 400)
    until(lambda: box.ask('POST', f'{program.below}/stdin', b'y')[0] == 409)
    first.close()
    until(lambda: box.ask('POST', f'{program.below}/stdin', b'')[0] == 204)
    program.write(b'z' * 7, end=True)
    assert int(program.over()['stdout']) >= 407


# ---- terminals ----

def test_a_terminal(box):
    program = box.start('tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo yes; echo $TERM; ps -o tty= $$ > /dev/null; read x; echo "got $x"',
                        terminal=True, rows=33, columns=101)
    program.has_printed('xterm-256color')
    program.write(b'line\r')
    record = program.over()
    assert '/dev/pts/' in record['stdout'] and '33 101\r\nyes\r\n' in record['stdout'] and 'got line\r\n' in record['stdout']
    assert record['terminal'] and record['stderr'] == '' and record['exit_code'] == 0
    assert box.start('echo $TERM', terminal=True, env={'TERM': 'dumb'}).over()['stdout'] == 'dumb\r\n'


def test_the_size_of_a_terminal_changes(box):
    program = box.start(['/usr/bin/python3', '-uc', '''
import os, signal
signal.signal(signal.SIGWINCH, lambda *_: print("now", *os.get_terminal_size()))
print("ready")
while True: signal.pause()
'''], terminal=True)
    program.has_printed('ready')
    assert box.ask('POST', f'{program.below}/size', {'rows': 7, 'columns': 9})[0] == 204
    program.has_printed('now 9 7')
    assert box.ask('POST', f'{program.below}/size', {'rows': 0, 'columns': 9})[0] == 422
    program.write(b'\x03')
    assert program.over()['signal'] == signal.SIGINT
    assert box.ask('POST', f'{program.below}/size', {'rows': 7, 'columns': 9})[0] == 409


def test_control_characters_of_a_terminal(box):
    shell = box.start(['/bin/bash', '--norc', '-i'], terminal=True)
    shell.write(b'echo $((40+2))\r')
    shell.has_printed('42\r\n')
    shell.write(b'sleep 1000\r')
    until(lambda: box.run(['pgrep', '-xf', 'sleep 1000'])['exit_code'] == 0)     # the terminal is its own by then
    shell.write(b'\x03')
    shell.write(b'echo status $?\r')
    until(lambda: re.search(r'status 130\r\n.*\$ $', shell.record()['stdout'], flags=re.S))     # with a prompt: it reads keys again
    shell.write(b'', end=True)   # Ctrl-D
    assert shell.over()['exit_code'] == 0
    cat = box.start('cat', terminal=True)
    cat.write(b'x\r')
    cat.has_printed('x\r\nx\r\n')
    cat.write(b'', end=True)
    assert cat.over()['exit_code'] == 0


def test_the_last_output_of_a_terminal_is_not_lost(box):
    for _ in range(5):
        program = box.start(['/usr/bin/python3', '-c', 'import os\nfor i in range(30): os.write(1, b"x" * 999 + b"\\n")\nos.write(1, b"last\\n"); os._exit(0)'],
                            terminal=True)
        assert program.over()['stdout'] == ('x' * 999 + '\r\n') * 30 + 'last\r\n'


def test_the_last_output_of_a_large_pipe_is_not_lost(box):
    code = 'import fcntl, os\nfcntl.fcntl(1, 1031, 1 << 19)\nos.write(1, b"x" * (1 << 19))\nos.kill(os.getpid(), 9)'
    record = box.python(code)
    assert record['signal'] == 9 and len(record['stdout']) == 1 << 19


# ---- signals ----

@pytest.mark.parametrize('name, number', [('TERM', 15), ('SIGUSR1', 10), ('hup', 1), ('64', 64), ('9', 9), ('KILL', 9)])
def test_signals_by_name_and_number(box, name, number):
    program = box.start('sleep 1000')
    until(lambda: program.record()['pid'])
    assert program.signal(name) == b''
    assert program.over()['signal'] == number
    assert box.ask('POST', f'{program.below}/signal', {'signal': 'TERM'})[0] == 409


@pytest.mark.parametrize('name', ['NOTHING', '0', '65', '-9', '', '9x', 'SIG'])
def test_what_is_no_signal_is_refused(box, name):
    program = box.start('sleep 1000')
    status, _, problem = box.ask('POST', f'{program.below}/signal', {'signal': name})
    assert (status, problem['field']) == (422, '/signal')


def test_a_program_may_handle_a_signal_stop_and_go_on(box):
    program = box.start('trap "echo caught" USR1; echo ready; while :; do sleep .05; done')
    program.has_printed('ready')
    program.signal('USR1')
    program.has_printed('caught')
    program.signal('STOP')
    time.sleep(.2)
    assert program.record()['state'] == 'running'
    program.signal('CONT')
    program.signal('USR1')
    program.has_printed('caught\ncaught')
    assert box.ask('DELETE', program.below)[0] == 204   # kills it; the record stays
    assert program.over()['signal'] == signal.SIGKILL


# ---- many, and those that stay ----

def test_two_hundred_at_once(box):
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        programs = list(pool.map(lambda n: box.start(['/bin/cat'], stdin=True), range(200)))
        until(lambda: box.good('GET', '/metrics')['processes'] == 200)
        list(pool.map(lambda each: each.write(str(each.number).encode(), end=True), programs))
        records = list(pool.map(lambda each: each.over(), programs))
    assert [record['stdout'] for record in records] == [str(each.number) for each in programs]


def test_more_than_there_may_be_are_refused(web):
    with Sandbox(web, limits={'pids': 12}) as box:
        answers = [box.ask('POST', '/processes', {'args': ['sleep', '1000']}, Prefer='respond-async') for _ in range(20)]
        numbers = [answer[2]['id'] for answer in answers]
        until(lambda: sum(box.good('GET', f'/processes/{n}')['state'] == 'over' for n in numbers) >= 8)
        refused = [record for record in (box.good('GET', f'/processes/{n}') for n in numbers) if record['state'] == 'over']
        assert all(record['error']['code'] == 'capacity' and 'limits.pids' in record['error']['message'] for record in refused)
        status, _, problem = box.ask('POST', '/processes', {'args': ['true']})
        assert status == 429 and 'limits.pids' in problem['detail']
        for number in numbers:
            box.ask('DELETE', f'/processes/{number}')
        until(lambda: box.ask('POST', '/processes', {'args': ['true']})[0] == 200)


def test_a_daemon_goes_on_when_its_program_is_over(box):
    record = box.run('(trap "" PIPE; while :; do echo noise; echo $((++i)) > /dev/shm/n; sleep .01; done) & echo started')
    assert record['exit_code'] == 0 and record['stdout'].startswith('started') or 'started' in record['stdout']

    def counted():
        return int(box.run('cat /dev/shm/n')['stdout'].strip() or 0)     # at first there is no such file, and at times nothing in it
    count = until(counted)
    until(lambda: counted() > count + 20)


def test_many_daemons_leave_descriptors_for_others(box):
    for _ in range(100):
        assert box.run('sleep 1000 & disown')['exit_code'] == 0
    assert box.out('echo alive') == 'alive\n'


def test_each_program_has_its_own_descriptors_only(box):
    other = box.start('cat', stdin=True)
    assert box.out('ls /proc/self/fd | wc -l; ls -l /proc/self/fd | grep -c socket || true') == '4\n0\n'
    other.signal('KILL')
