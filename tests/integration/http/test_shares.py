"""Shares of what all tenants need: one tenant takes all it can, and another one finds what it needs."""

import json
import select
import signal
import socket

import pytest

from daemon import memory_of, until
from keys import Keys, bearer
from web import Web

MIB = 1 << 20


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    """A daemon, and a greedy and a modest tenant."""
    folder = tmp_path_factory.mktemp('shares')
    keys = Keys(folder)
    keys.greedy = keys.make('g', '--tenant', 'greedy', '--scopes', 'run,check,read,metrics')
    keys.modest = keys.make('m', '--tenant', 'modest', '--scopes', 'run,check,read,metrics')
    keys.web = Web(folder, '--set', 'engine.running_max=2', keyless=False)
    keys.greedy_web, keys.modest_web = keys.web.with_key(keys.greedy), keys.web.with_key(keys.modest)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


def used(place, resource):
    lines = place.modest_web.ask('GET', '/metrics')[2].decode().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith(f'caisson_share_used{{resource="{resource}"}}'))


def begin(place, path, length, key, lines=''):
    connection = socket.create_connection(('127.0.0.1', place.web.port), timeout=60)
    connection.sendall(f'POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Length: {length}\r\n{lines}\r\n'.encode())
    return connection


def start(place, body, key):
    """(status, JSON) of a run that is not waited for; the body is sent where the head was not refused."""
    data = json.dumps(body).encode()
    with begin(place, '/v1/runs', len(data), key, 'Prefer: respond-async\r\nConnection: close\r\n') as connection:
        if not select.select([connection], [], [], .2)[0]:
            connection.sendall(data)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    answer = b''.join(parts)
    return int(answer.split(b' ')[1]), problem_of(answer)


def problem_of(answer):
    return json.loads(answer.split(b'\r\n\r\n', 1)[1])


def test_bodies_that_are_withheld_leave_half_of_the_room_to_others(place):
    """What was sent counts and not what was announced; who has his share is told so, and gets no more."""
    before, pid = memory_of(place.web.daemon.process.pid), place.web.daemon.process.pid
    connections = [begin(place, '/v1/runs', 64 * MIB, place.greedy) for _ in range(4)]
    try:
        assert used(place, 'body_bytes') < MIB
        for connection in connections[:2]:
            connection.sendall(b' ' * (60 * MIB))
        until(lambda: used(place, 'body_bytes') >= 120 * MIB)
        with pytest.raises(OSError):
            for _ in range(60):
                connections[2].sendall(b' ' * MIB)
            connections[2].sendall(b' ' * (5 * MIB))                  # its whole length has come, and more: it was answered before
            assert b'429' in connections[2].recv(65536).split(b'\r\n')[0]
            raise ConnectionError
        with begin(place, '/v1/runs', 64 * MIB, place.greedy) as refused:
            answer = refused.recv(65536)
        problem = problem_of(answer)
        assert answer.startswith(b'HTTP/1.1 429 ') and problem['quota'] == 'body_bytes' and problem['code'] == 'capacity', answer
        assert 120 * MIB <= problem['current'] <= problem['limit'] <= 128 * MIB and 'tenant greedy' in problem['detail']
        assert used(place, 'body_bytes') <= 128 * MIB
        assert place.modest_web.run('cat', stdin='x' * (4 * MIB))['status'] == 'completed'
        assert memory_of(pid) - before < 200 * MIB
    finally:
        for connection in connections:
            connection.close()
    until(lambda: used(place, 'body_bytes') == 0)
    assert place.greedy_web.run('echo again')['stdout'] == 'again\n'


def test_a_run_that_waits_keeps_the_share_of_its_body(place):
    """Its request has its answer, and the text of the body is in the memory of the run."""
    body = {'language': 'bash', 'code': 'sleep 100'}
    blockers = [place.modest_web.ask('POST', '/v1/runs', body, Prefer='respond-async')[2] for _ in range(2)]
    body['stdin'] = 'x' * (8 * MIB)
    accepted = [start(place, body, place.greedy) for _ in range(15)]
    assert {status for status, _ in accepted} == {202} and used(place, 'body_bytes') > 15 * 8 * MIB
    status, problem = start(place, body, place.greedy)
    assert status == 429 and problem['quota'] == 'body_bytes', problem
    status, mine = start(place, body, place.modest)
    assert status == 202
    for web, states in ((place.greedy_web, [state for _, state in accepted]), (place.modest_web, [mine, *blockers])):
        for state in states:
            web.ask('DELETE', state['url'])
    until(lambda: not place.web.runs())
    until(lambda: used(place, 'body_bytes') == 0)


def test_lines_that_are_too_much_for_the_share_are_read_later(place):
    """Each line keeps its bytes until its run is over, and a bulk request that has no room for a line waits for the end of another one."""
    line = json.dumps({'language': 'bash', 'code': 'true', 'stdin': 'x' * (12 * MIB)}).encode() + b'\n'
    answer = place.greedy_web.stream_raw('POST', '/v1/runs/bulk', line * 16, Content_Type='application/x-ndjson')
    records = [json.loads(one) for one in answer.read().splitlines()]
    assert [one.get('record', one)['status'] for one in records] == ['completed'] * 16, records[0]
    assert used(place, 'body_bytes') == 0


def test_readers_that_do_not_read_cost_little_and_lose_nothing(place):
    code = "for i in $(seq 700); do printf '%04000d\\n' $i; done"
    run = place.greedy_web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, 'limits': {'output_bytes': 3 * MIB}}, Prefer='respond-async')[2]
    until(lambda: place.greedy_web.ask('GET', run['url'])[0] == 200)
    pid = place.web.daemon.process.pid
    before, readers = memory_of(pid), []
    for _ in range(150):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(60)
        reader.connect(('127.0.0.1', place.web.port))
        reader.sendall(f'GET {run["url"]}/events HTTP/1.0\r\nAuthorization: Bearer {place.greedy}\r\n\r\n'.encode())
        readers.append(reader)
    until(lambda: used(place, 'event_readers') == 150)
    assert used(place, 'stream_bytes') <= 12 * MIB + 150 * 32 * 1024
    assert memory_of(pid) - before < 60 * MIB
    mine = place.modest_web.stream('POST', '/v1/runs', {'language': 'bash', 'code': code, 'limits': {'output_bytes': 3 * MIB}}, Accept='application/x-ndjson')
    events = [json.loads(line) for line in mine.read().splitlines() if line]
    assert sum(len(event['text']) for event in events if event['type'] == 'stdout') == 700 * 4001 and events[-1]['type'] == 'end'
    for reader in readers[:-20]:
        reader.close()
    for reader in readers[-20:]:               # a reader that begins late gets all
        parts = []
        while part := reader.recv(1 << 20):
            parts.append(part)
        text = b''.join(parts)
        assert text.count(b'0700\\n') >= 1 and b'event: end' in text
        reader.close()
    until(lambda: used(place, 'event_readers') == 0 and used(place, 'stream_bytes') == 0)


def mcp(place, key, method, session=None, number=1, **params):
    headers = {'Accept': 'application/json, text/event-stream', 'Content_Type': 'application/json', **bearer(key), **({'Mcp_Session_Id': session} if session else {})}
    body = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}
    connection = place.web.open()
    connection.request('POST', '/mcp', json.dumps(body), {name.replace('_', '-'): value for name, value in headers.items()})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer, text


def test_sessions_of_one_tenant_end_none_of_another(place):
    def new(key):
        answer, text = mcp(place, key, 'initialize', protocolVersion='2025-11-25', capabilities={}, clientInfo={'name': 'x', 'version': '1'})
        assert answer.status == 200, text
        return answer.headers['Mcp-Session-Id']
    kept = new(place.modest)
    for _ in range(1050):
        last = new(place.greedy)
    assert used(place, 'mcp_sessions') <= 501
    assert all(new(place.modest) for _ in range(100))
    assert mcp(place, place.modest, 'ping', kept)[0].status == 200 and mcp(place, place.greedy, 'ping', last)[0].status == 200
