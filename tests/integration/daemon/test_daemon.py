"""caissond from the outside: its socket, its protocol, its end.  How the command line uses it is in test_cli_daemon.py."""

import concurrent.futures
from http.client import HTTPConnection
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jsonschema
import pytest

from cli import environment, folders_of, schema
from daemon import (ASK, CAISSOND, CANCEL, CHECK, ERROR, OUTPUT, RECORD, REQUEST, STATUS, Client, Daemon, alive, commands, frame, memory_of,
                    supervisors, until)

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: to be another user')


@pytest.fixture
def place():
    """A folder with a short name that other users can enter, which those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix='caissond-'))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(place):
    daemons = []

    def one(*options, **more):
        # What sleeps is to sleep until the test has seen it.
        daemons.append(Daemon(place, '--set', 'limits.wall_ms=90s', *options, **more))
        return daemons[-1]
    yield one
    for daemon in daemons:
        daemon.stop()


@pytest.fixture
def daemon(start):
    return start().ready()


def refused(place, *options, path=None, status=125):
    """A daemon that does not start; what it says."""
    done = subprocess.run([CAISSOND, '--set', f'engine.socket={path or place / "c" / "s"}', *options], env=environment(), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
    assert done.returncode == status and done.stdout == b'', done
    return done.stderr.decode()


# ---- start and end ----

def test_it_starts_and_ends(daemon):
    assert daemon.stop(signal.SIGTERM) == 0
    assert not daemon.path.exists()


def test_an_interrupt_ends_it_too(daemon):
    assert daemon.stop(signal.SIGINT) == 0 and not daemon.path.exists()


def test_a_second_one_for_the_same_socket_is_refused(daemon, place):
    assert 'another caissond serves' in refused(place) and str(daemon.path) in refused(place)
    assert daemon.runs() == []


def test_the_socket_of_a_dead_one_is_replaced(daemon, start):
    daemon.stop()
    assert daemon.path.exists()
    assert start().ready().runs() == []


def test_what_is_no_socket_is_not_touched(place):
    (place / 'file').write_text('precious')
    assert 'no socket' in refused(place, path=place / 'file', status=78)
    assert (place / 'file').read_text() == 'precious'


@pytest.mark.parametrize('setting,words', [
    ('engine.socket_mode=rw', 'engine.socket_mode'), ('engine.socket_mode=999', 'octal'), ('engine.socket_group=nosuchgroup', 'no group'),
    ('engine.socket_uids=root', 'engine.socket_uids'), ('engine.socket_uids=1,,2', 'engine.socket_uids'), ('engine.nosuch=1', 'no setting')])
def test_a_wrong_setting_stops_the_start(place, setting, words):
    assert words in refused(place, '--set', setting, status=78)


def test_a_wrong_policy_stops_the_start(place):
    (place / 'mine.yaml').write_text('policy: mine\nextends: linx\nrules:\n  - { id: a, severity: LOUD }\n')
    assert 'mine.yaml:4: severity is LOW' in refused(place, '--set', f'engine.policies_dir={place}', status=78)


def test_a_path_that_is_too_long_is_refused(place):
    assert '107' in refused(place, path=f'/tmp/{"x" * 110}', status=78)


@pytest.mark.parametrize('words', [['--nosuch'], ['x'], ['--config']])
def test_a_wrong_option_is_refused(words):
    done = subprocess.run([CAISSOND, *words], env=environment(), stderr=subprocess.PIPE, check=False)
    assert done.returncode == 64 and b'usage' in done.stderr


def test_help_and_version():
    for word, text in (('--help', b'usage: caissond'), ('--version', b'caissond ')):
        done = subprocess.run([CAISSOND, word], env=environment(), stdout=subprocess.PIPE, check=False)
        assert done.returncode == 0 and done.stdout.startswith(text)


@pytest.mark.skipif(os.geteuid() == 0, reason='needs a user other than root: root has a place of its own')
def test_without_a_place_there_is_no_daemon():
    done = subprocess.run([CAISSOND], env=environment(), stderr=subprocess.PIPE, check=False)
    assert done.returncode == 78 and b'XDG_RUNTIME_DIR' in done.stderr


@ROOT_ONLY
def test_another_user_has_a_place_of_its_own(place):
    os.chown(place, 65534, 65534)
    with Daemon(place, path=False, env={'XDG_RUNTIME_DIR': str(place)}, user=65534, group=65534, extra_groups=[]).process as process:
        until(lambda: connects(place / 'caisson/caissond.sock'))      # from then on it minds signals
        assert (place / 'caisson').stat().st_mode & 0o7777 == 0o700
        process.terminate()
    assert process.returncode == 0


def connects(path):
    try:
        Client(path).close()
    except OSError:
        return False
    return True


# ---- the service manager ----

@pytest.fixture
def listener(place):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place / 'made'))
        made.listen()
        yield made


def activated(start, listeners, place, lines=None, names=None, options=()):
    """Sockets as descriptors from 3 on, as sd_listen_fds(3) has it."""
    listeners = listeners if isinstance(listeners, tuple) else (listeners,)
    lines = lines or f'LISTEN_PID=$$ LISTEN_FDS={len(listeners)}' + (f' LISTEN_FDNAMES={names}' if names else '')
    fds = [str(one.fileno()) for one in listeners]
    command = ['bash', '-c', f'exec {" ".join(f"{20 + i}<&{fd}" for i, fd in enumerate(fds))};'
               f'exec {" ".join(f"{3 + i}<&{20 + i} {20 + i}<&-" for i in range(len(fds)))}; export {lines}; exec "$@"', 'bash']
    return start(*options, path=place / 'made', command=command, pass_fds=[int(fd) for fd in fds])


def with_http(place):
    return ['--set', 'engine.http_keyless=true', '--set', f'engine.state_dir={place}']


def listening():
    made = socket.socket()
    made.bind(('127.0.0.1', 0))
    made.listen()
    return made


def healthy(http):
    connection = HTTPConnection(*http.getsockname(), timeout=20)
    connection.request('GET', '/healthz')
    return connection.getresponse().status == 200


def test_a_socket_of_the_service_manager_is_used_and_stays(start, listener, place):
    daemon = activated(start, listener, place)
    with daemon.client() as client:
        client.run(1, 'echo x')
        assert client.results(1)[1][1] == b'x\n'
    assert healthy_beside(place)           # which it had to make
    assert daemon.stop(signal.SIGTERM) == 0
    assert (place / 'made').is_socket() and not (place / 'made.http').exists()


def healthy_beside(place):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(place / 'made.http'))
        client.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
        return b'200 OK' in client.recv(1000)


def test_the_socket_for_http_of_the_service_manager_is_used_and_stays(start, listener, place):
    with socket.socket(socket.AF_UNIX) as beside:
        beside.bind(str(place / 'made.http'))
        beside.listen()
        for order in ((listener, beside), (beside, listener)):
            daemon = activated(start, order, place, names='caisson:caisson')
            assert daemon.runs() == [] and healthy_beside(place)
            assert daemon.stop(signal.SIGTERM) == 0
            assert (place / 'made').is_socket() and (place / 'made.http').is_socket() and not (place / 'made.lock').exists()


def test_where_the_folder_is_not_ours_there_is_no_socket_beside(start, listener, place):
    (place / 'made.http').mkdir()
    daemon = activated(start, listener, place)
    assert daemon.runs() == []
    until(lambda: 'no HTTP beside' in (place / 'log').read_text())


@pytest.mark.parametrize('lines', ['LISTEN_PID=$$ LISTEN_FDS=2', 'LISTEN_PID=$$ LISTEN_FDS=x'])
def test_anything_but_one_socket_is_refused(start, listener, place, lines):
    assert activated(start, listener, place, lines).stop(0) == 78


def test_what_is_no_listening_socket_is_refused(start, place):
    with socket.socket(socket.AF_UNIX) as idle:
        assert activated(start, idle, place).stop(0) == 78


def test_a_socket_for_another_process_is_not_ours(start, listener, place):
    daemon = activated(start, listener, place, 'LISTEN_PID=1 LISTEN_FDS=1')
    until(lambda: (place / 'made.lock').exists())   # it made its own in that place
    daemon.ready()


def test_both_sockets_of_the_service_manager_are_used(start, listener, place):
    http = listening()
    for order in ((listener, http), (http, listener)):
        names = ':'.join('http' if one is http else 'caissond.socket' for one in order)
        daemon = activated(start, order, place, names=names, options=with_http(place))
        assert daemon.runs() == [] and healthy(http)
        assert daemon.stop(signal.SIGTERM) == 0
    assert (place / 'made').is_socket()
    with socket.create_connection(http.getsockname()) as early:       # while nobody is there; the next daemon answers
        early.sendall(b'GET /healthz HTTP/1.0\r\n\r\n')
        activated(start, (listener, http), place, names='caissond.socket:http', options=with_http(place))
        early.settimeout(20)
        assert early.recv(100).startswith(b'HTTP/1.1 200')
    http.close()


def test_a_socket_for_http_alone_is_enough(start, place):
    with listening() as http:
        daemon = activated(start, http, place, names='http', options=with_http(place))
        until(lambda: (place / 'made').is_socket())     # this one it made itself
        assert healthy(http) and daemon.ready().stop(signal.SIGTERM) == 0
        assert not (place / 'made').exists()


def test_a_socket_for_http_needs_keys_as_an_address_does(start, place):
    with listening() as http:
        assert activated(start, http, place, names='http', options=['--set', f'engine.state_dir={place}']).stop(0) == 78
    assert 'caisson keys create' in (place / 'log').read_text()


@pytest.mark.parametrize('names', ['http:http', 'caissond.socket:caissond.socket', 'caissond.socket'])
def test_two_of_a_kind_are_refused(start, listener, place, names):
    with listening() as http:
        assert activated(start, (listener, http), place, names=names, options=with_http(place)).stop(0) == 78


def test_the_service_manager_hears_that_the_loop_turns(start, place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind(str(place / 'notify'))
        begun = time.monotonic()
        daemon = start(env={'NOTIFY_SOCKET': str(place / 'notify'), 'WATCHDOG_USEC': '200000'})
        assert manager.recv(1000).startswith(b'READY=1')
        told = [manager.recv(1000) for _ in range(10)]
        os.kill(daemon.process.pid, signal.SIGSTOP)      # a loop that does not turn says nothing
        stopped = time.monotonic()
        manager.settimeout(1)
        with pytest.raises(TimeoutError):
            while len(told) < 1000:                      # what it said before it stood still
                told.append(manager.recv(1000))
        os.kill(daemon.process.pid, signal.SIGCONT)
    # At half the time, and no more often.
    assert set(told) == {b'WATCHDOG=1'} and len(told) <= (stopped - begun) / 0.1 + 1


def test_a_watchdog_for_another_process_is_not_ours(start, place):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind(str(place / 'notify'))
        daemon = start(env={'NOTIFY_SOCKET': str(place / 'notify'), 'WATCHDOG_USEC': '2', 'WATCHDOG_PID': '1'})
        assert manager.recv(1000).startswith(b'READY=1')
        with daemon.client() as client:
            client.run(1, 'true')
            client.results(1)
        daemon.process.terminate()
        assert manager.recv(1000).startswith(b'STOPPING=1')


@pytest.mark.parametrize('abstract', [False, True])
def test_the_service_manager_is_told(start, place, abstract):
    name = f'caissond-test-{os.getpid()}'
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind('\0' + name if abstract else str(place / 'notify'))
        daemon = start(env={'NOTIFY_SOCKET': '@' + name if abstract else str(place / 'notify')})
        assert manager.recv(1000) == f'READY=1\nSTATUS=Serving {daemon.path}'.encode()
        Client(daemon.path).close()      # ready means that it listens
        daemon.process.terminate()
        stopping, status, extend = manager.recv(1000).split(b'\n')
        assert stopping == b'STOPPING=1' and status.startswith(b'STATUS=Draining')
        assert extend == b'EXTEND_TIMEOUT_USEC=24000000'     # engine.shutdown_ms, to kill, and to answer
        assert daemon.process.wait(30) == 0


# ---- who may ----

AS_ANOTHER = '''
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    try:
        s.sendall(bytes.fromhex(sys.argv[2]))
    except BrokenPipeError:
        pass                   # refused before we spoke, and the reason can be read
    print(s.recv(65536)[12:].decode())
except PermissionError:
    print("not permitted")
'''


def as_another(path, uid=65534, gid=65534):
    done = subprocess.run([sys.executable, '-c', AS_ANOTHER, str(path), frame(ASK, 1).hex()], user=uid, group=gid, extra_groups=[],
                          stdout=subprocess.PIPE, check=True, timeout=30)
    return done.stdout.decode().strip()


@pytest.mark.parametrize('mode', ['0660', '0600', '666'])
def test_the_socket_has_its_permissions_whatever_the_umask(start, mode):
    daemon = start('--set', f'engine.socket_mode={mode}', umask=0o077).ready()
    assert daemon.path.stat().st_mode & 0o7777 == int(mode, 8)
    assert daemon.path.parent.stat().st_mode & 0o7777 == (0o755 if os.geteuid() == 0 else 0o700)
    assert Path(f'{daemon.path}.lock').stat().st_mode & 0o077 == 0


@ROOT_ONLY
def test_the_mode_decides_who_gets_in(start):
    daemon = start('--set', 'engine.socket_mode=0600').ready()
    assert as_another(daemon.path) == 'not permitted'


@ROOT_ONLY
def test_the_group_decides_who_gets_in(start):
    daemon = start('--set', 'engine.socket_group=54321').ready()
    assert daemon.path.stat().st_gid == 54321
    assert as_another(daemon.path) == 'not permitted'
    assert json.loads(as_another(daemon.path, gid=54321))['runs'] == []


@ROOT_ONLY
def test_a_group_has_a_name_too(start):
    daemon = start('--set', 'engine.socket_group=daemon').ready()
    assert daemon.path.stat().st_gid != 0


@ROOT_ONLY
def test_the_list_of_users_decides_who_is_answered(start):
    daemon = start('--set', 'engine.socket_mode=0666', '--set', 'engine.socket_uids=0, 12345').ready()
    assert daemon.runs() == []
    assert json.loads(as_another(daemon.path, uid=12345))['runs'] == []
    error = json.loads(as_another(daemon.path, uid=12346))
    assert error['code'] == 'permission_denied' and '12346' in error['text']


def test_a_list_without_us_refuses_us(start):
    daemon = start('--set', 'engine.socket_uids=4294967294').ready()
    with daemon.client() as client:
        client.ended('permission_denied', 'engine.socket_uids')


# ---- requests ----

def valid(record):
    jsonschema.Draft202012Validator(schema('result')).validate(record)
    return record


def test_output_comes_before_the_record_and_is_the_same(daemon):
    with daemon.client() as client:
        client.run(9, 'echo out; echo err >&2; printf "\\xff"; exit 3')
        record, out, err = client.results(1)[9]
    assert (out, err, valid(record)['status'], record['exit_code']) == (b'out\n\xff', b'err\n', 'failed', 3)


def test_output_comes_while_the_program_runs(daemon):
    with daemon.client() as client:
        client.run(1, 'echo first; sleep 97')
        assert client.get() == (OUTPUT, 1, b'\1first\n')
        client.send(CANCEL, 1)
        number, record = client.next(RECORD)
    assert (number, record['status'], record['stdout']) == (1, 'cancelled', 'first\n')


def test_a_request_with_aliases_gets_them(daemon):
    with daemon.client() as client:
        client.run(1, 'echo x', aliases=True)
        assert client.results(1)[1][0]['aliases']['output'] == 'x\n'


@pytest.mark.parametrize('request_,field', [
    (b'no JSON', ''), (b'[]', ''), (b'{"nosuch":1}', '/nosuch'), (b'{"language":"bash","code":1}', '/code'),
    (b'{"language":"bash","code":"1","work_dir":"/tmp"}', '/work_dir'),
    (b'{"language":"bash","code":"1","exports":[{"pattern":"*","path":"/tmp"}]}', '/exports'),
    (b'{"language":"bash","code":"1","exports":[{"pattern":"*"}]}', '/exports'), (b'{"language":"bash","code":"1","workspace":"w"}', '/workspace'),
    (b'{"language":"bash","code":"1","files":[{"path":"/etc/passwd"}]}', '/files'),
    (b'{"language":"bash","code":"1","files":[{"id":"file_1"}]}', '/files')])
def test_a_request_that_cannot_be_gets_a_record_that_says_so(daemon, request_, field):
    with daemon.client() as client:
        client.send(REQUEST, 1, request_)
        record = valid(client.results(1)[1][0])
        assert record['status'] == 'bad_request' and record['error'].get('field', '') == field
        client.run(1, 'echo x')      # the connection goes on, and the id is free again
        assert client.results(1)[1][1] == b'x\n'


def test_fifty_requests_on_one_connection(daemon):
    with daemon.client() as client:
        for i in range(1, 51):
            client.run(i, f'echo {i}; echo e{i} >&2; exit {i}')
        results = client.results(50)
    assert len({record['id'] for record, _, _ in results.values()}) == 50
    for i, (record, out, err) in results.items():
        assert (out, err, valid(record)['stdout'], record['exit_code']) == (f'{i}\n'.encode(), f'e{i}\n'.encode(), f'{i}\n', i), record


def test_fifty_connections(daemon):
    def one(i):
        with daemon.client() as client:
            client.run(1, f'echo {i}')
            return client.results(1)[1][0]['stdout']
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        assert list(pool.map(one, range(50))) == [f'{i}\n' for i in range(50)]


def test_status_shows_runs_and_whose_they_are(daemon):
    with daemon.client() as client:
        client.run(1, 'echo started; sleep 97', profile='lightweight')
        client.get()
        status = client.status()
        run, = status['runs']
        client.send(CANCEL, 1)
        assert client.next(RECORD)[1]['id'] == run['id']
    assert (run['state'], run['language'], run['profile'], run['owner']) == ('running', 'bash', 'lightweight', f'uid:{os.geteuid()}')
    assert run['age_ms'] >= 0 and status['queue']['running'] == 1 and status['queue']['waiting'] == 0
    assert status['daemon']['pid'] == daemon.process.pid and status['daemon']['connections'] == 1
    until(lambda: daemon.runs() == [])


def test_cancelling_what_is_not_there_is_no_error(daemon):
    with daemon.client() as client:
        client.send(CANCEL, 77)
        assert client.status()['runs'] == []


def sleepers(daemon):
    return [name for name in commands(daemon.tree()) if name == 'sleep']


def test_a_client_that_goes_leaves_nothing(daemon):
    with daemon.client() as client:
        for i in range(1, 4):
            client.run(i, 'trap "" TERM INT; sleep 97 & wait')
        until(lambda: len(sleepers(daemon)) == 3)
        client.send(REQUEST, 4, b'{"language":')      # and one that was cut
        client.socket.sendall(frame(REQUEST, 5, b'{"', length=50))
    until(lambda: daemon.runs() == [])
    until(lambda: sleepers(daemon) == [])
    assert daemon.stop(signal.SIGTERM) == 0


def test_nobody_gets_the_rights_of_the_daemon(start):
    daemon = start('--set', 'engine.allow_host=true').ready()
    with daemon.client() as client:
        for i, more in enumerate(({'backend': 'host'}, {'profile': 'host'}), 1):
            client.run(i, 'id', **more)
            record, out, _ = client.results(1)[i]
            assert (record['status'], out) == ('bad_request', b'') and 'engine.allow_host' in record['error']['message']


# ---- rules of the protocol ----

@pytest.mark.parametrize('bytes_,words', [
    (frame(0, 1), 'type 0'), (frame(5, 1), 'type 5'), (frame(255, 1), 'type 255'), (frame(OUTPUT, 1, b'\1x'), 'type 17'),
    (frame(RECORD, 1, b'{}'), 'type 18'), (frame(ASK, 1, zero=b'\0\0\1'), 'last three bytes'), (frame(ASK, 1, zero=b'\1\0\0'), 'last three'),
    (frame(ASK, 0), 'id that is not 0'), (frame(REQUEST, 0, b'{}'), 'id that is not 0'), (frame(ASK, 1, b'x'), 'ASK of 1 bytes'),
    (frame(CANCEL, 1, b'x'), 'CANCEL of 1 bytes'), (frame(REQUEST, 1), 'REQUEST of 0 bytes'), (frame(REQUEST, 1, b'{'), 'REQUEST of 1'),
    (frame(REQUEST, 1, length=64 * 1024 * 1024 + 1), '67108864 are allowed'), (frame(REQUEST, 1, length=0xffffffff), '4294967295 bytes'),
    (b'GET / HTTP/1.1\r\n\r\n', 'type')])
def test_a_frame_that_breaks_a_rule_ends_the_connection(daemon, bytes_, words):
    with daemon.client() as client, daemon.client() as other:
        client.run(1, 'sleep 97')
        assert len(client.status()['runs']) == 1
        client.socket.sendall(bytes_)
        client.ended('protocol_error', words)
        assert other.status()['daemon']['pid'] == daemon.process.pid      # and not that of others
    until(lambda: daemon.runs() == [])


def test_an_id_that_is_live_cannot_be_used_again(daemon):
    with daemon.client() as client:
        client.run(3, 'sleep 97')
        client.run(3, 'echo x')
        client.ended('protocol_error', 'the id 3')
    until(lambda: daemon.runs() == [])


def test_two_connections_may_use_the_same_id(daemon):
    with daemon.client() as a, daemon.client() as b:
        a.run(1, 'echo a')
        b.run(1, 'echo b')
        assert (a.results(1)[1][1], b.results(1)[1][1]) == (b'a\n', b'b\n')


def test_frames_may_come_in_single_bytes(daemon):
    with daemon.client() as client:
        for byte in frame(REQUEST, 1, b'{"language":"bash","code":"echo x"}') + frame(ASK, 2):
            client.socket.sendall(bytes([byte]))
        assert client.next(STATUS)[0] == 2 and client.results(1)[1][1] == b'x\n'


def test_a_large_request_is_taken(daemon):
    with daemon.client() as client:
        client.run(1, 'wc -c < a', files=[{'name': 'a', 'content': 'x' * 20_000_000}])
        assert client.results(1)[1][1] == b'20000000\n'


def test_a_request_of_many_values_is_refused_and_costs_little(daemon):
    """29 million values took 7 s of the loop and 1.2 GB."""
    with daemon.client() as client:
        client.send(REQUEST, 1, b'{"language":"bash","code":"true","x":[' + b'1,' * 29_000_000 + b'1]}')
        client.send(ASK, 2)
        assert client.next(STATUS)[0] == 2          # answered while the text is being parsed
        record = client.results(1)[1][0]
        assert record['error']['code'] == 'bad_request' and 'more than 200000 values' in record['error']['message']
        assert memory_of(daemon.process.pid) < 400 << 20


def test_a_long_request_is_cancelled_while_it_is_parsed(daemon):
    with daemon.client() as client:
        client.send(REQUEST, 1, {'language': 'bash', 'code': 'sleep 900', 'stdin': 'x' * 20_000_000})
        client.send(CANCEL, 1)
        assert client.results(1)[1][0]['status'] == 'cancelled'


def test_a_client_that_goes_while_its_request_is_parsed_leaves_nothing(daemon):
    with daemon.client() as client:
        client.send(REQUEST, 1, {'language': 'bash', 'code': 'sleep 900', 'stdin': 'x' * 20_000_000})
        client.send(CHECK, 2, {'language': 'python', 'code': 'x = 1', 'modules': {'a': 'x = 1\n' * 100_000}})
    until(lambda: daemon.runs() == [])
    assert not sleepers(daemon)


def test_more_live_requests_than_allowed_are_refused_one_by_one(start):
    daemon = start('--set', 'limits.wall_ms=600s', '--set', 'engine.running_max=4').ready()
    with daemon.client(300) as client:
        # In one piece, so that all are there before the first can end.
        client.socket.sendall(b''.join(frame(REQUEST, i, b'{"language":"bash","code":"sleep 900"}') for i in range(1, 4098)))
        number, error = client.next(ERROR)
        assert (number, error['code']) == (4097, 'capacity') and '4096' in error['text']
    until(lambda: daemon.runs() == [], 60)


def test_more_connections_in_use_than_allowed_are_refused(daemon):
    """An eighth of 256 is for users who have few."""
    clients = [daemon.client() for _ in range(224)]
    try:
        for client in clients:
            client.run(1, 'sleep 900')
        for client in clients:
            client.status()
        with daemon.client() as client:
            client.ended('capacity', '256', '224')
        clients.pop().close()
        until(lambda: clients[0].status()['daemon']['connections'] == 223)
        with daemon.client() as client:
            assert client.status()['daemon']['connections'] == 224
    finally:
        for client in clients:
            client.close()
    until(lambda: daemon.runs() == [], 60)


def test_idle_connections_make_room_for_others(daemon):
    """Those that have been there longest, and half of a frame is nothing; one with a request stays."""
    with daemon.client() as busy:
        busy.run(1, 'sleep 900')
        clients = [daemon.client() for _ in range(300)]
        try:
            for client in clients[-20:]:
                client.socket.sendall(frame(REQUEST, 1, b'{"lang', length=1000))
            with daemon.client() as client:
                assert client.status()['daemon']['connections'] <= 226
            assert clients[0].get() is None and clients[-21].status()
            assert busy.status()['runs']
        finally:
            for client in clients:
                client.close()
    until(lambda: daemon.runs() == [], 60)


# ---- who does not read ----

FLOOD = 'head -c 60000000 /dev/zero | tr "\\0" x'


def test_a_slow_reader_misses_output_and_gets_its_record(daemon):
    with daemon.client() as slow, daemon.client() as quick:
        slow.run(1, FLOOD)
        assert slow.get()[0] == OUTPUT        # it has begun; the rest is not read until it has ended
        quick.run(2, 'echo x')
        assert quick.results(1)[2][1] == b'x\n'
        until(lambda: quick.status()['runs'] == [], 60)
        assert memory_of(daemon.process.pid) < 150_000_000
        record, out, _ = slow.results(1)[1]
    assert record['status'] == 'completed' and record['truncated']['stdout_total_bytes'] == 60_000_000
    assert len(record['stdout']) >= 1_000_000 and 1_000_000 < len(out) < 60_000_000 and set(out) == {ord('x')}


def test_a_quick_reader_misses_nothing(daemon):
    with daemon.client() as client:
        client.run(1, 'for i in {1..50000}; do echo "line $i of many"; done')
        record, out, _ = client.results(1)[1]
    assert out == b''.join(b'line %d of many\n' % i for i in range(1, 50001))
    assert record['truncated']['stdout_total_bytes'] == len(out)


def test_who_does_not_read_is_not_read_from(daemon):
    with daemon.client() as slow, daemon.client() as quick:
        slow.run(1, FLOOD)
        until(lambda: quick.status()['runs'] == [], 60)
        slow.socket.settimeout(2)
        sent = 0
        with pytest.raises(TimeoutError):
            for sent in range(1_000_000):
                slow.send(ASK, 2)
        assert sent < 500_000 and quick.status()['daemon']['connections'] == 2
        assert memory_of(daemon.process.pid) < 150_000_000
        slow.socket.settimeout(60)
        assert slow.results(1)[1][0]['status'] == 'completed'      # it takes up where it was
        slow.next(STATUS)


# ---- the end, with runs ----

def test_a_run_may_end_by_itself(start):
    daemon = start('--set', 'engine.shutdown_ms=60s').ready()
    with daemon.client() as client, daemon.client() as idle:
        client.run(1, 'echo started; sleep 97; echo done')
        assert client.get() == (OUTPUT, 1, b'\1started\n')
        sleeping, = until(lambda: [pid for pid in daemon.tree() if commands([pid]) == ['sleep']])
        daemon.process.terminate()
        until(lambda: refuses(daemon))
        client.run(2, 'echo too late')
        assert client.next(ERROR)[1]['code'] == 'capacity'
        os.kill(sleeping, signal.SIGKILL)
        record, out, _ = client.results(1)[1]
        assert (record['status'], out) == ('completed', b'done\n')
        assert client.get() is None and idle.get() is None
    assert daemon.process.wait(30) == 0 and not daemon.path.exists()


def refuses(daemon):
    try:
        Client(daemon.path).close()
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    return False


def started(daemon, client, n=1):
    for i in range(1, n + 1):
        client.run(i, 'trap "" TERM INT; echo started; sleep 97 & wait')
    for _ in range(n):
        assert client.get()[2] == b'\1started\n'
    until(lambda: len(sleepers(daemon)) == n)


def test_runs_that_go_on_are_cancelled(start):
    daemon = start('--set', 'engine.shutdown_ms=100ms').ready()
    with daemon.client() as client:
        started(daemon, client, 3)
        daemon.process.terminate()
        results = client.results(3)
        assert {record['status'] for record, _, _ in results.values()} == {'cancelled'} and client.get() is None
    assert daemon.process.wait(30) == 0


def test_a_second_signal_cancels_at_once(start):
    daemon = start('--set', 'engine.shutdown_ms=3600s').ready()
    with daemon.client() as client:
        started(daemon, client)
        daemon.process.terminate()
        until(lambda: refuses(daemon))
        daemon.process.terminate()
        assert client.results(1)[1][0]['status'] == 'cancelled'
    assert daemon.process.wait(30) == 0


def test_a_client_that_reads_nothing_does_not_hold_it_up(start):
    daemon = start('--set', 'engine.shutdown_ms=0').ready()
    with daemon.client() as client, daemon.client() as quick:
        client.run(1, FLOOD)
        until(lambda: quick.status()['runs'] == [], 60)
        daemon.process.terminate()
        assert daemon.process.wait(30) == 0


def gone(pids, supervising):
    return not any(map(alive, pids)) and not any(folders_of(pid) for pid in supervising)


def test_a_killed_daemon_leaves_nothing(daemon):
    with daemon.client() as client:
        started(daemon, client, 5)
        supervising, below = supervisors(daemon.process.pid), daemon.tree()[1:]
        assert len(supervising) == 1
        assert len(below) > 10
        daemon.process.kill()
        daemon.process.wait()
        until(lambda: gone(below, supervising), 60)
        while client.get():
            pass


def test_a_killed_supervisor_is_told_and_replaced(daemon):
    with daemon.client() as client:
        started(daemon, client)
        os.kill(supervisors(daemon.process.pid)[0], signal.SIGKILL)
        assert client.results(1)[1][0]['status'] == 'engine_error'
        client.run(2, 'echo x')
        assert client.results(1)[2][1] == b'x\n'


def test_the_log_has_lines_of_json(start, place):
    daemon = start('--set', 'engine.log_level=info').ready()
    with daemon.client() as client:
        client.run(1, 'true')
        client.results(1)
        client.socket.sendall(frame(5, 1))
        client.ended('protocol_error')
    assert daemon.stop(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in (place / 'log').read_text().splitlines()]
    assert [line['owner'] for line in lines if re.fullmatch('run_[0-9a-f]{32}', line.get('run_id', ''))] == [f'uid:{os.getuid()}']
    lines = [line['text'] for line in lines]
    for words in ('serving ', 'completed: bash, ', 'a client of uid .*type 5', 'signal 15'):
        assert any(re.match(words, line) for line in lines), lines
