"""Runs with large inputs: the inputs are examined and sent while other clients are served, and arrive whole."""

import hashlib
import json
import signal

import pytest

from daemon import until
from steps import Probed, steps_of
from web import Web

CONTENT = ''.join(chr(33 + number * 7 % 90) for number in range(1_000_000)) * 60
PART = 10_000_000        # the bodies of several of these requests fit in a client's share of memory
CODE = 'exec 2>&1; sha256sum < content'
FILES = 9_000
IDS = 2_000
WORK_FILES = 5_000
WORK_BYTES = 60_000_000
MANY = {'disk_files': 20_000, 'memory_bytes': 1 << 30, 'wall_ms': 120_000, 'output_files': 20_000}
ROOM = {'disk_bytes': 400_000_000, 'memory_bytes': 1 << 30, 'wall_ms': 120_000}
KINDS = ['content', 'ids', 'workspace']
COUNT = 'ls | wc -l; cat f* | sha256sum'


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def file_of(number):
    return f'file {number}\n'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('inputs'), '--set', 'engine.files_bytes_max=4GiB') as web:
        yield web


def completed(web, request):
    status, _, record = web.ask('POST', '/v1/runs', request)
    assert status == 200 and record['status'] == 'completed', record.get('error', record)
    return record


def content_request(size=len(CONTENT)):
    return {'language': 'bash', 'code': CODE, 'files': [{'name': 'content', 'content': CONTENT[:size]}], 'limits': ROOM}


def test_a_long_content_is_examined_and_sent(web):
    def work():
        record = completed(web, content_request())
        taken, = record['inputs']
        assert record['stdout'].split()[0] == taken['sha256'] == digest(CONTENT)
        assert taken['size_bytes'] == len(CONTENT)

    steps_of(web, work)


def test_long_standard_input_is_sent(web):
    def work():
        record = completed(web, {'language': 'bash', 'code': 'sha256sum', 'stdin': CONTENT, 'limits': ROOM})
        assert record['stdout'].split()[0] == digest(CONTENT)

    steps_of(web, work)


def test_many_files_are_examined_and_sent(web):
    files = [{'name': f'f{number:05}', 'content': file_of(number)} for number in range(FILES)]

    def work():
        record = completed(web, {'language': 'bash', 'code': COUNT, 'files': files, 'limits': MANY})
        count, whole = record['stdout'].split()[:2]
        assert int(count) == FILES + 1 and whole == digest(''.join(file_of(number) for number in range(FILES)))
        assert [taken['sha256'] for taken in record['inputs']] == [digest(file_of(number)) for number in range(FILES)]

    steps_of(web, work)


@pytest.fixture(name='ids', scope='module')
def stored(web):
    connection = web.open()
    ids = []
    for number in range(IDS):
        connection.request('POST', f'/v1/files?name=f{number:05}', file_of(number), {'Content-Type': 'text/plain'})
        ids.append(json.loads(connection.getresponse().read())['id'])
    connection.close()
    return ids


def test_files_by_id_are_examined_and_sent(web, ids):
    def work():
        record = completed(web, {'language': 'bash', 'code': COUNT, 'files': [{'id': one} for one in ids], 'limits': MANY})
        count, whole = record['stdout'].split()[:2]
        assert int(count) == IDS + 1 and whole == digest(''.join(file_of(number) for number in range(IDS)))
        assert [taken['sha256'] for taken in record['inputs']] == [digest(file_of(number)) for number in range(IDS)]

    steps_of(web, work)


@pytest.fixture(name='workspace', scope='module')
def filled(web):
    """Many files and a large one, which a run has left in a workspace."""
    code = f"""
for number in range({WORK_FILES}):
    with open(f'f{{number:05}}', 'w') as file:
        file.write(f'file {{number}}\\n')
with open('large', 'w') as file:
    file.write('x' * {WORK_BYTES})
"""
    completed(web, {'language': 'python', 'code': code, 'workspace': 'large', 'limits': {**ROOM, **MANY}})
    return 'large'


def test_a_large_workspace_is_examined_and_sent(web, workspace):
    def work():
        record = completed(web, {'language': 'bash', 'code': 'ls f* | wc -l; cat f* large | sha256sum', 'workspace': workspace,
                                 'limits': {**ROOM, **MANY}})
        count, whole = record['stdout'].split()[:2]
        assert int(count) == WORK_FILES
        assert whole == digest(''.join(file_of(number) for number in range(WORK_FILES)) + 'x' * WORK_BYTES)

    steps_of(web, work)


def begin(web, request):
    """(id, stream of events) of a run that is examined."""
    answer = web.stream('POST', '/v1/runs', request, Accept='application/x-ndjson')
    assert answer.status == 200, answer.read()
    run = answer.headers['Location'].rpartition('/')[2]
    return run, answer


def is_examined(web, run):
    return [one['state'] for one in web.runs() if one['id'] == run] == ['checking']


def request_of(kind, fixture):
    if kind == 'content':
        return content_request()
    if kind == 'ids':
        return {'language': 'bash', 'code': COUNT, 'files': [{'id': one} for one in fixture('ids')], 'limits': MANY}
    return {'language': 'bash', 'code': 'sleep 600', 'workspace': fixture('workspace'), 'limits': {**ROOM, **MANY}}


@pytest.mark.parametrize('kind', KINDS)
def test_a_run_is_cancelled_while_it_is_examined(web, request, kind):
    wanted = request_of(kind, request.getfixturevalue)
    for _ in range(10):
        run, events = begin(web, wanted)
        examined = is_examined(web, run)
        web.ask('DELETE', f'/v1/runs/{run}')
        assert [json.loads(line) for line in events if line.strip()][-1]['type'] == 'end'
        record = web.ask('GET', f'/v1/runs/{run}')[2]
        until(lambda: not web.runs())
        if examined:
            break
    assert examined and record['status'] == 'cancelled', record
    assert record['boundary'] is None
    if kind == 'workspace':
        assert web.run('true', workspace='large', limits={**ROOM, **MANY})['status'] == 'completed'


@pytest.mark.parametrize('kind', KINDS)
def test_a_client_that_goes_ends_the_examination(web, request, kind):
    connection = web.open()
    connection.request('POST', '/v1/runs', json.dumps(request_of(kind, request.getfixturevalue)), {'Content-Type': 'application/json'})
    until(web.runs)
    connection.close()
    until(lambda: not web.runs())
    web.run('true')


def test_the_daemon_stops_while_runs_are_examined(tmp_path):
    web = Web(tmp_path)
    for _ in range(3):
        assert web.ask('POST', '/v1/runs', content_request(PART), Prefer='respond-async')[0] == 202
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert 'Sanitizer' not in web.log.read_text()


REFUSED = {
    'name': {'files': [{'name': '../x', 'content': 'a'}]},
    'twice': {'files': [{'name': 'x', 'content': 'a'}, {'name': 'x', 'content': 'b'}]},
    'program': {'name': 'x', 'files': [{'name': 'x', 'content': 'a'}]},
    'bytes': {'files': [{'name': 'x', 'content': 'a' * 2000}], 'limits': {'input_bytes': 1000}},
    'id': {'files': [{'id': 'file_' + 32 * '0'}]},
}


@pytest.mark.parametrize('why', list(REFUSED))
def test_a_request_is_refused_with_the_same_words_after_a_long_examination(web, why):
    answers = []
    for more in ([], [{'name': f'more{number}', 'content': ''} for number in range(FILES)]):
        wanted = {'language': 'bash', 'code': 'true', **REFUSED[why]}
        wanted['files'] = wanted['files'] + more
        status, _, answer = web.ask('POST', '/v1/runs', wanted)
        answers.append((status, answer.get('code'), answer.get('error'), answer.get('status'), answer.get('detail')))
    assert answers[0] == answers[1] and answers[0][3] != 'completed', answers


def test_runs_that_are_examined_count_as_waiting(tmp_path):
    waiting = 3
    web = Web(tmp_path, '--set', 'engine.running_max=1', '--set', f'engine.queue_max={waiting}')
    try:
        assert web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 600'}, Prefer='respond-async')[0] == 202
        until(lambda: [run['state'] for run in web.runs()] == ['running'])
        statuses = [web.ask('POST', '/v1/runs', content_request(PART), Prefer='respond-async')[0] for _ in range(waiting + 2)]
        assert statuses == [202] * waiting + [429] * 2
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_long_execution_in_a_context_stays_before_the_next_one(web):
    session = web.ask('POST', '/v1/sessions', {})[2]['id']
    path = f'/v1/sessions/{session}/runs'
    assert web.ask('POST', path, {'code': 'x = 41  # ' + 'x' * 900_000}, Prefer='respond-async')[0] == 202
    status, _, record = web.ask('POST', path, {'code': 'print(x + 1)'})
    assert (status, record['stdout']) == (200, '42\n'), record
    web.ask('DELETE', f'/v1/sessions/{session}')
