"""Runs with large results: their records are made while other clients are served, and are whole."""

import hashlib
import http.client
import json
import os
import signal
import threading
import time

import pytest

from daemon import until
from steps import Probed
from web import Web

# The last thing that each of these programs does: from then on the daemon alone works.
OVER = '\nimport sys; print("over", file=sys.stderr, flush=True)\n'
ANSWERS_MIN = 10      # requests of another client that are answered while a record is made

FILES = 10_000
MANY_FILES = {'language': 'python', 'code': f"""
import os
for number in range({FILES}):
    if number % 1000 == 0:
        os.mkdir(f'd{{number // 1000}}')
    with open(f'd{{number // 1000}}/{{number}}', 'w') as file:
        file.write(str(number))
""" + OVER, 'limits': {'disk_files': 2 * FILES, 'output_files': FILES + 10, 'memory_bytes': 1 << 30, 'wall_ms': 120_000}}
CHARACTERS = 50_000_000
CONTROL_CHARACTERS = {'language': 'python', 'code': f"""
import sys
for _ in range(50):
    sys.stdout.write(chr(1) * {CHARACTERS // 50})
sys.stdout.flush()
""" + OVER, 'limits': {'output_bytes': CHARACTERS + 1000}}
EXPORTS = 900
MANY_EXPORTS = {'language': 'python', 'code': f"""
for number in range({EXPORTS}):
    with open(f'{{number}}.txt', 'w') as file:
        file.write(str(number))
""" + OVER, 'exports': [{'pattern': '*.txt'}], 'limits': {'output_files': EXPORTS}}
LARGE = 200_000_000
LARGE_EXPORT = {'language': 'python', 'code': f"""
with open('large', 'wb') as file:
    for number in range(200):
        file.write(number.to_bytes(1, 'big') * {LARGE // 200})
""" + OVER, 'exports': [{'pattern': 'large'}],
                'limits': {'disk_bytes': 2 * LARGE, 'memory_bytes': 1 << 30, 'wall_ms': 60_000}}
VALUES = 500_000
LARGE_VALUE = {'language': 'python', 'code': f"""
import sys; print("over", file=sys.stderr, flush=True)
[[number] for number in range({VALUES})]
""", 'limits': {'value_bytes': 16_000_000, 'memory_bytes': 1 << 30, 'wall_ms': 60_000}}
LARGE_WORKSPACE = {**LARGE_EXPORT, 'exports': [], 'workspace': 'large'}
REQUESTS = {'files': MANY_FILES, 'output': CONTROL_CHARACTERS, 'exports': MANY_EXPORTS, 'export': LARGE_EXPORT,
            'value': LARGE_VALUE, 'workspace': LARGE_WORKSPACE}


@pytest.fixture(name='place', scope='module')
def own_daemon(tmp_path_factory):
    place = Probed(tmp_path_factory.mktemp('results'), '--set', 'engine.files_bytes_max=4GiB')
    yield place
    assert place.daemon.stop(signal.SIGTERM) == 0


class Neighbour:
    """Another client, which asks again as soon as it has its answer."""

    def __init__(self, web):
        self.connection = http.client.HTTPConnection('127.0.0.1', web.port, timeout=60)
        self.answers, self.ended = 0, threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self):
        while not self.ended.is_set():
            self.connection.request('GET', '/healthz')
            assert self.connection.getresponse().read()
            self.answers += 1

    def end(self):
        self.ended.set()
        self.thread.join()
        self.connection.close()


def begin(web, request):
    """A run whose program has done its work, or nearly; the stream of its events."""
    answer = web.stream('POST', '/v1/runs', request, Accept='application/x-ndjson')
    assert answer.status == 200, answer.read()
    run = None
    for line in answer:
        event = json.loads(line) if line.strip() else {}
        run = event.get('id', run)
        if event.get('type') == 'stderr' and 'over' in event['text']:
            return run, answer
        assert event.get('type') != 'end', event
    raise AssertionError('the program has not ended')


def leftovers(web):
    """Contents that have come in and are not stored."""
    folder = web.folder / 'files'
    return [name for name in os.listdir(folder) if name.startswith('new.')] if folder.exists() else []


@pytest.mark.parametrize('name', list(REQUESTS))
def test_others_are_served_while_a_record_is_made(place, name):
    run, events = begin(place, REQUESTS[name])
    neighbour = Neighbour(place)
    try:
        ended = [json.loads(line) for line in events if line.strip()][-1]
    finally:
        neighbour.end()
    assert ended['type'] == 'end' and neighbour.answers >= ANSWERS_MIN
    record = place.ask('GET', f'/v1/runs/{run}')[2]
    assert record['status'] == 'completed' and record['id'] == run, record.get('error')
    assert ended['record'] in (None, record)
    CHECKS[name](place, record)
    assert not leftovers(place)


def check_files(_, record):
    assert [file['name'] for file in record['files']] == sorted(f'd{n // 1000}/{n}' for n in range(FILES))
    for file in record['files']:
        text = file['name'].rpartition('/')[2].encode()
        assert (file['size_bytes'], file['sha256']) == (len(text), hashlib.sha256(text).hexdigest())


def check_output(_, record):
    assert record['stdout'] == '\x01' * CHARACTERS and record['truncated']['stdout_bytes'] == 0


def check_exports(web, record):
    assert len(record['files']) == EXPORTS == len({file['url'] for file in record['files']})
    for file in record['files'][::100]:
        assert web.ask('GET', file['url'].removeprefix('sandbox:'))[2] == file['name'].removesuffix('.txt').encode()


def check_export(web, record):
    file, = record['files']
    content = web.ask('GET', file['url'].removeprefix('sandbox:'))[2]
    assert len(content) == file['size_bytes'] == LARGE and hashlib.sha256(content).hexdigest() == file['sha256']
    assert web.ask('DELETE', file['url'].removeprefix('sandbox:'))[0] == 204


def check_value(_, record):
    assert record['result']['value'] == [[number] for number in range(VALUES)]


def check_workspace(web, record):
    file, = record['files']
    content = web.ask('GET', '/v1/workspaces/large/file?path=large')[2]
    assert len(content) == LARGE and hashlib.sha256(content).hexdigest() == file['sha256']
    assert web.ask('GET', '/v1/workspaces')[2]['workspaces'][0]['stored_bytes'] >= LARGE
    assert web.ask('DELETE', '/v1/workspaces/large')[0] == 204


CHECKS = {'files': check_files, 'output': check_output, 'exports': check_exports, 'export': check_export,
          'value': check_value, 'workspace': check_workspace}


def test_a_quota_refuses_kept_files_and_the_record_says_so(tmp_path):
    web = Web(tmp_path, '--set', 'engine.files_bytes_max=100kB')
    try:
        record = web.run(MANY_EXPORTS['code'], 'python', exports=MANY_EXPORTS['exports'], limits=MANY_EXPORTS['limits'])
        refused = [file for file in record['files'] if 'url' not in file]
        kept = [file for file in record['files'] if 'url' in file]
        assert 0 < len(kept) < EXPORTS and all('files_bytes_max' in file['error'] for file in refused)
        assert len(web.ask('GET', '/v1/files?limit=1000')[2]['files']) == len(kept)
        assert len([name for name in os.listdir(tmp_path / 'files') if name != 'new']) == len(kept)
    finally:
        assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('name', ['files', 'output', 'exports', 'export', 'workspace'])
def test_a_client_that_goes_leaves_nothing_behind(place, name):
    _, events = begin(place, {**REQUESTS[name], 'workspace': 'gone'} if name == 'workspace' else REQUESTS[name])
    events.close()
    until(lambda: not place.runs())
    assert place.ask('GET', '/healthz')[0] == 200
    until(lambda: not leftovers(place))


def test_a_cancelled_run_has_the_record_that_it_had_before(place):
    run, events = begin(place, MANY_FILES)
    time.sleep(0.2)       # the program has ended, or ends now
    place.ask('DELETE', f'/v1/runs/{run}')
    ended = [json.loads(line) for line in events if line.strip()][-1]
    record = place.ask('GET', f'/v1/runs/{run}')[2]
    assert ended['type'] == 'end' and record['status'] in ('completed', 'cancelled')
    if record['status'] == 'completed':
        check_files(place, record)


@pytest.mark.parametrize('name', ['files', 'output', 'exports', 'export', 'workspace'])
def test_the_daemon_stops_while_a_record_is_made(tmp_path, name):
    web = Web(tmp_path, '--set', 'engine.files_bytes_max=4GiB')
    _, events = begin(web, REQUESTS[name])
    assert web.daemon.stop(signal.SIGTERM) == 0
    events.close()
    log = web.log.read_text()
    assert 'Sanitizer' not in log and not leftovers(web)
