"""A state folder whose disk is full, or cannot be written: what still works, what is refused, and that no answer names a path of the host."""

import json
import os
import signal
import subprocess

import pytest

from cli import CAISSON
from daemon import until
from keys import Keys, bearer
from web import Web

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason='needs root: a file system cannot be mounted')

RUN = {'language': 'bash', 'code': 'echo hello'}
RESERVE = 3 << 20


class Small:
    """A daemon whose state folder is a small file system of its own."""

    def __init__(self, folder):
        self.state = folder / 'state-folder'
        self.folder = folder
        self.state.mkdir()
        self.mount('-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', self.state)
        self.keys = Keys(self.state)
        self.auth = bearer(self.keys.make('k', '--tenant', 't', '--scopes', 'run,read,files,sandboxes,check,metrics,admin'))
        self.start()

    def start(self, *options):
        self.web = Web(self.folder, '--set', f'engine.state_dir={self.state}', '--set', f'engine.reserve_bytes={RESERVE}', '--set', 'engine.log_bytes=0',
                       *options, keyless=False)

    @staticmethod
    def mount(*words):
        subprocess.run(['mount', *map(str, words)], check=True)

    def fill(self):
        """To the last byte."""
        with open(self.state / 'filler', 'ab', buffering=0) as file:
            for size in (1 << 16, 1 << 12):
                try:
                    while file.write(bytes(size)):
                        pass
                except OSError:
                    pass

    def use_up(self):
        """All that the reserve has, too, and the free places of the journal."""
        os.truncate(self.state / 'store.reserve', 0)
        self.fill()

    def ask(self, method, path, body=None, **headers):
        return self.web.ask(method, path, body, **{**self.auth, **headers})

    def upload(self, name='f', body=b'content'):
        return self.ask('POST', f'/v1/files?name={name}', body)

    def audit(self):
        return {row['id']: row for row in json.loads(self.keys.ask('runs', '--json', '--limit', '1000').out)}

    def stop(self):
        self.web.daemon.stop()
        subprocess.run(['umount', '-l', self.state], check=True)


@pytest.fixture()
def small(tmp_path):
    small = Small(tmp_path)
    yield small
    small.stop()


# ---- a full disk ----

def test_files_can_be_removed_and_then_there_is_room(small):
    kept = [small.upload(f'f{n}', bytes(1 << 20))[2]['id'] for n in range(4)]
    small.fill()
    assert small.upload()[0] == 507
    for one in kept:
        assert small.ask('DELETE', f'/v1/files/{one}')[0] == 204
        assert small.ask('GET', f'/v1/files/{one}')[0] == 404
    assert small.upload()[0] == 201


def test_workspaces_and_records_can_be_removed(small):
    assert small.ask('PUT', '/v1/workspaces/w/file?user=u&path=f', b'x')[0] < 300
    _, headers, _ = small.ask('POST', '/v1/runs', RUN, Prefer='respond-async')
    until(lambda: small.ask('GET', headers['Location'])[0] == 200)
    small.fill()
    assert small.ask('DELETE', '/v1/workspaces/w/file?user=u&path=f')[0] == 204
    assert small.ask('DELETE', '/v1/workspaces/w?user=u')[0] == 204
    assert small.ask('DELETE', headers['Location'])[0] == 204
    assert small.ask('GET', headers['Location'])[0] == 404


def test_what_would_be_kept_is_refused_with_507(small):
    assert small.ask('PUT', '/v1/workspaces/w/file?user=u&path=f', b'x')[0] < 300
    small.fill()
    asked = [small.ask('POST', '/v1/runs', RUN, Idempotency_Key='n'), small.ask('POST', '/v1/runs', RUN, Prefer='respond-async'), small.upload(),
             small.ask('PUT', '/v1/workspaces/new/file?user=u&path=f', b'x'), small.ask('PUT', '/v1/workspaces/w/file?user=u&path=g', b'x'),
             small.ask('POST', '/v1/runs', {**RUN, 'workspace': 'w', 'user': 'u'})]
    assert [one[0] for one in asked] == [507] * len(asked), [one[2] for one in asked]
    for _, _, problem in asked:
        assert str(small.folder) not in json.dumps(problem) and problem['code'] == 'capacity', problem
    os.unlink(small.state / 'filler')
    assert small.ask('POST', '/v1/runs', RUN, Idempotency_Key='n')[0] == 200     # it was not used
    assert small.upload()[0] == 201


def test_other_runs_go_on_and_none_is_missing_in_the_audit(small):
    small.fill()
    ids = []
    for _ in range(150):
        status, _, record = small.ask('POST', '/v1/runs', RUN)
        assert status == 200 and record['status'] == 'completed', record
        ids.append(record['id'])
    assert small.ask('GET', '/readyz')[0] == 200
    assert set(small.audit()) == set(ids)


def test_a_file_of_a_run_that_cannot_be_kept_has_an_error(small):
    small.fill()
    status, _, record = small.ask('POST', '/v1/runs', {**RUN, 'code': 'echo x > out', 'exports': [{'pattern': 'out'}]})
    assert status == 200 and record['status'] == 'completed'
    file, = record['files']
    assert 'no room' in file['error'] and str(small.folder) not in json.dumps(record), file


def test_without_any_room_no_run_begins_and_the_daemon_is_not_ready(small):
    small.ask('POST', '/v1/runs', RUN)
    small.use_up()
    began, problem = set(), None
    for _ in range(300):
        status, _, answer = small.ask('POST', '/v1/runs', RUN)
        if status != 200:
            problem = status, answer
            break
        began.add(answer['id'])
    assert problem and problem[0] in (503, 507) and problem[1]['retryable'] == (problem[0] == 503), problem
    assert small.ask('GET', '/readyz')[0] == 503
    os.unlink(small.state / 'filler')
    assert small.ask('GET', '/readyz')[0] == 200 and small.ask('POST', '/v1/runs', RUN)[0] == 200
    small.web.daemon.stop(signal.SIGKILL)
    small.start()
    assert began <= set(small.audit())


def test_a_daemon_starts_on_a_full_disk(small):
    kept = small.upload('f', bytes(1 << 20))[2]['id']
    assert small.web.daemon.stop(signal.SIGTERM) == 0
    small.fill()
    small.start()
    assert 'engine.reserve_bytes' in small.web.log.read_text()
    status, _, record = small.ask('POST', '/v1/runs', RUN)
    assert status == 200 and record['status'] == 'completed'
    assert small.upload()[0] == 507 and small.ask('DELETE', f'/v1/files/{kept}')[0] == 204


# ---- no path of the host ----

def operations(small):
    """Each operation of the interface's description, with ids that are there where there are some."""
    upload = small.upload()[2]['id']
    sandbox = small.ask('POST', '/v1/sandboxes', {})[2]['id']
    context = small.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': 'bash'})[2]['id']
    _, headers, _ = small.ask('POST', '/v1/runs', RUN, Prefer='respond-async')
    until(lambda: small.ask('GET', headers['Location'])[0] == 200)
    small.ask('PUT', '/v1/workspaces/w/file?user=u&path=f', b'x')
    ids = [('/v1/files/', upload), ('/v1/runs/', headers['Location'].rsplit('/', 1)[1]), ('/v1/sandboxes/', sandbox), ('/v1/contexts/', context),
           ('/v1/workspaces/', 'w')]
    described = small.ask('GET', '/openapi.json')[2]['paths']
    for path, methods in described.items():
        one = next((identity for prefix, identity in ids if path.startswith(prefix)), 'x')
        filled, first = '', True
        for part in path.split('/')[1:]:
            filled += '/' + ((one if first else 'x') if part.startswith('{') else part)
            first = first and not part.startswith('{')
        for method in methods:
            if method in ('get', 'put', 'post', 'delete', 'patch') and not path.endswith(('/events', '/watch', '/mcp')):
                yield method.upper(), filled
    for method in ('DELETE',):
        yield method, f'/v1/sandboxes/{sandbox}'


BODIES = [b'', b'{}', json.dumps(RUN).encode(), json.dumps({**RUN, 'workspace': 'w', 'user': 'u'}).encode(),
          json.dumps({**RUN, 'files': [{'name': 'f', 'id': 'file_00000000000000000000000000000000'}]}).encode(),
          json.dumps({'code': 'x = 1', 'language': 'python', 'cases': [{'stdin': '', 'expected_output': ''}]}).encode()]


def break_state(small, how):
    if how == 'damaged':
        for name in ('caisson.db', 'caisson.db-wal', 'caisson.db-shm'):
            with open(small.state / name, 'r+b') as file:
                file.write(b'\xa5' * os.path.getsize(file.name))
    elif how == 'used up':
        small.use_up()
    elif how == 'full':
        small.fill()
    else:
        for name in ('files', 'workspaces', 'running'):
            if (small.state / name).exists():
                (small.state / name).rename(small.state / ('gone-' + name))


@pytest.mark.parametrize('how', ['full', 'used up', 'damaged', 'folders gone'])
def test_no_answer_names_a_path_of_the_host(small, how):
    asked = list(operations(small))
    assert len(asked) > 60
    break_state(small, how)
    own = [str(small.folder), str(small.state), 'caisson.db', os.path.dirname(os.path.abspath(CAISSON)), '/proc/', '/sys/fs']
    wrong = []
    for method, path in sorted(asked, key=lambda one: one[0] == 'DELETE'):
        for body in BODIES if method in ('POST', 'PUT') else [None]:
            for more in ({}, {'Idempotency-Key': 'n'}) if method == 'POST' else ({},):
                where = path + ('&' if '?' in path else '?') + 'user=u&path=f&name=f'
                status, _, answer = small.ask(method, where, body, **more)
                text = answer.decode('utf-8', 'replace') if isinstance(answer, bytes) else json.dumps(answer)
                if any(one in text for one in own):
                    wrong.append((method, path, status, text))
                if status == 500 and how in ('full', 'used up'):
                    wrong.append((method, path, status, text))
    assert not wrong, wrong
