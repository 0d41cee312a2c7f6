"""The faults of the stub of a Kubernetes API server (tests/lib/kube_stub.py) are what they are said to be.

    /usr/bin/python3 -m pytest -q tests/integration/gateway/test_kube_faults.py
"""

import http.client
import json
import socket
import ssl
import time

import pytest
from kube_stub import KubeStub

PODS = '/api/v1/namespaces/workers/pods'
MERGE = 'application/merge-patch+json'


class Watch:
    """The raw answer of a watch: its lines, and how it ends."""

    def __init__(self, stub, query):
        before = len(stub.watches)
        self.socket = socket.create_connection((stub.host, stub.port), 10)
        self.socket.sendall(f'GET {PODS}?watch=1&allowWatchBookmarks=true{query} HTTP/1.1\r\n'
                            f'Authorization: Bearer {stub.token}\r\n\r\n'.encode())
        self.reader = self.socket.makefile('rb')
        assert b' 200 ' in self.reader.readline()
        while self.reader.readline().strip():
            pass
        stub.wait_for(lambda: len(stub.watches) > before, notified=False)

    def event(self):
        """(type, name or reason or revision); '' after the end of the answer; b'...' what is left without an end."""
        size = self.reader.readline()
        if not size.strip().isalnum():
            return size
        line = self.reader.read(int(size, 16))
        if len(line) < int(size, 16):
            return line
        self.reader.readline()
        if not line:
            return ''
        event = json.loads(line)
        value = event['object']
        return event['type'], value['metadata'].get('name') or value.get('reason') or value['metadata'][
            'resourceVersion']


class Client:
    def __init__(self, stub):
        self.stub = stub

    def ask(self, method='GET', path=PODS, body=None, token=None, timeout=10, content_type='application/json'):
        """(status, headers, answer)"""
        context = ssl.create_default_context(cafile=self.stub.ca) if self.stub.ca else None
        client = (http.client.HTTPSConnection(self.stub.host, self.stub.port, context=context, timeout=timeout)
                  if context else http.client.HTTPConnection(self.stub.host, self.stub.port, timeout=timeout))
        headers = {'Authorization': f'Bearer {token or self.stub.token}', 'Content-Type': content_type}
        client.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = client.getresponse()
        value = json.loads(answer.read())
        client.close()
        return answer.status, answer.headers, value

    def create(self, name, query='', **spec):
        return self.ask('POST', PODS + query, {'kind': 'Pod', 'metadata': {'name': name},
                                               'spec': {'containers': [{'name': 'c', 'image': 'x'}], **spec}})

    def watch(self, query=''):
        return Watch(self.stub, query)


@pytest.fixture(name='stub')
def fresh_stub():
    with KubeStub() as stub:
        stub.client = Client(stub)
        yield stub
        assert not stub.errors


@pytest.fixture(name='watch')
def watch_of_one_pod(stub):
    stub.create_pod('a', {'app': 'w'})
    watch = stub.client.watch()
    assert watch.event() == ('ADDED', 'a')
    return watch


# ---- watches ----


def test_a_watch_is_cut(stub, watch):
    assert stub.cut_watches() == 1
    assert watch.event() == b''
    assert not stub.watches


def test_a_watch_is_cut_in_the_middle_of_a_line(stub, watch):
    stub.cut_watches(middle=True)
    rest = watch.event()
    assert rest.startswith(b'{"type":"MODIFIED","object":{"kind":"Pod"') and not rest.endswith(b'\n')


def test_a_watch_ends_after_its_time(stub):
    before = time.monotonic()
    assert stub.client.watch('&timeoutSeconds=1').event() == ''
    assert 0.9 < time.monotonic() - before < 5


def test_an_open_watch_gets_410(stub, watch):
    stub.error_watches()
    assert watch.event() == ('ERROR', 'Expired')
    assert watch.event() == ''


def test_the_next_watch_gets_410_and_the_one_after_it_none(stub):
    stub.create_pod('a')
    stub.error_next_watches()
    status, _, event = stub.client.ask(path=f'{PODS}?watch=1')
    assert (status, event['type'], event['object']['code']) == (200, 'ERROR', 410)
    assert stub.client.watch().event() == ('ADDED', 'a')


def test_an_old_revision_is_410(stub):
    _, _, listed = stub.client.ask()
    revision = listed['metadata']['resourceVersion']
    stub.create_pod('a')
    assert stub.client.watch(f'&resourceVersion={revision}').event() == ('ADDED', 'a')
    _, _, page = stub.client.ask(path=f'{PODS}?limit=1')
    stub.create_pod('b')
    _, _, page = stub.client.ask(path=f'{PODS}?limit=1')
    stub.expire()
    assert stub.client.ask(path=f'{PODS}?watch=1&resourceVersion={revision}')[2]['object']['reason'] == 'Expired'
    status, _, answer = stub.client.ask(path=f'{PODS}?limit=1&continue={page["metadata"]["continue"]}')
    assert (status, answer['reason']) == (410, 'Expired')


def test_only_bookmarks(stub, watch):
    stub.hold_events()
    before = stub.store.revision
    stub.create_pod('b')
    stub.send_bookmarks()
    assert watch.event() == ('BOOKMARK', str(before))
    stub.release_events()
    assert watch.event() == ('ADDED', 'b')
    stub.send_bookmarks()
    assert watch.event() == ('BOOKMARK', str(stub.store.revision))


def test_bookmarks_at_intervals():
    with KubeStub(bookmark_seconds=0.05) as stub:
        watch = Client(stub).watch()
        assert [watch.event()[0] for _ in range(3)] == ['BOOKMARK'] * 3


def test_initial_events_end_with_a_bookmark(stub):
    stub.create_pod('a')
    query = '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
    watch = stub.client.watch(query)
    assert watch.event() == ('ADDED', 'a')
    watch.reader.readline()
    assert json.loads(watch.reader.readline())['object']['metadata']['annotations'] == {
        'k8s.io/initial-events-end': 'true'}
    with KubeStub(version=(1, 20)) as old:
        assert Client(old).ask(path=f'{PODS}?watch=1{query}')[0] == 422


def test_a_pod_is_replaced(stub, watch):
    before = stub.pod('a')['metadata']['uid']
    stub.replace_pod('a')
    assert [watch.event() for _ in range(3)] == [('MODIFIED', 'a'), ('DELETED', 'a'), ('ADDED', 'a')]
    assert stub.pod('a')['metadata']['uid'] != before and stub.pod('a')['metadata']['labels'] == {'app': 'w'}


# ---- answers ----


def test_throttled(stub):
    stub.throttle(2, seconds=3)
    for _ in range(2):
        status, headers, answer = stub.client.ask()
        assert (status, headers['Retry-After'], answer['reason']) == (429, '3', 'TooManyRequests')
    assert stub.client.ask()[0] == 200


def test_a_fault_of_one_verb(stub):
    stub.fail(409, 'Conflict', verb='patch', name='a')
    stub.create_pod('a')
    patch = {'metadata': {'annotations': {'x': 'y'}}}
    assert stub.client.ask('PATCH', f'{PODS}/a', patch, content_type=MERGE)[0] == 409
    assert stub.client.ask('PATCH', f'{PODS}/a', patch, content_type=MERGE)[0] == 200


def test_a_lost_answer_was_carried_out(stub):
    stub.lose_answers(1, verb='create')
    with pytest.raises(http.client.RemoteDisconnected):
        stub.client.create('a')
    assert stub.pod('a')
    assert stub.client.create('a')[0] == 409


def test_the_token_rotates(stub, tmp_path):
    account = stub.service_account(tmp_path / 'account')
    old = (account / 'token').read_text()
    stub.rotate_token()
    assert stub.client.ask(token=old)[0] == 401
    assert stub.client.ask(token=(account / 'token').read_text())[0] == 200


def test_rights_of_a_role(stub):
    rules = [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get', 'list', 'watch']}]
    stub.add_user('reader', 'system:serviceaccount:workers:gateway', rules, namespace='workers')
    assert stub.client.ask(token='reader')[0] == 200
    status, _, answer = stub.client.ask('DELETE', f'{PODS}/a', token='reader')
    assert status == 403 and 'cannot delete resource "pods"' in answer['message']
    assert stub.client.ask(path=f'{PODS}/a/exec', token='reader')[0] == 403
    assert stub.client.ask(path='/api/v1/namespaces/default/pods', token='reader')[0] == 403
    assert stub.client.ask(path='/api/v1/namespaces/workers/secrets', token='reader')[0] == 403
    assert stub.client.ask(path='/version', token='reader')[0] == 200


def test_a_right_is_taken_and_given_back(stub):
    stub.forbid('create', 'pods')
    assert stub.client.create('a')[0] == 403
    stub.allow('create', 'pods')
    assert stub.client.create('a')[0] == 201


def test_the_quota_counts_pods_that_run(stub):
    stub.quota(pods=1)
    assert stub.client.create('a')[0] == 201
    status, _, answer = stub.client.create('b')
    assert (status, answer['reason']) == (403, 'Forbidden') and 'exceeded quota' in answer['message']
    stub.edit_pod('a', lambda pod: pod['status'].update(phase='Failed'))
    assert stub.client.create('b')[0] == 201
    stub.quota(pods=None)
    assert stub.client.create('c')[0] == 201


def test_strict_validation(stub):
    status, _, answer = stub.client.create('a', '?fieldValidation=Strict', hostUser=False)
    assert status == 400 and 'strict decoding error: unknown field "spec.hostUser"' in answer['message']
    status, headers, answer = stub.client.create('b', hostUser=False, hostUsers=False)
    assert status == 201 and headers['Warning'] == '299 - "unknown field "spec.hostUser""'
    assert 'hostUser' not in answer['spec'] and answer['spec']['hostUsers'] is False
    with KubeStub(version=(1, 20)) as old:
        status, headers, answer = Client(old).create('a', '?fieldValidation=Strict', hostUsers=False)
        assert status == 201 and 'hostUsers' not in answer['spec'] and 'Warning' not in headers


def test_silence(stub, watch):
    stub.silence()
    with pytest.raises(TimeoutError):
        stub.client.ask(timeout=0.2)
    stub.create_pod('b')
    watch.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        watch.event()
    stub.speak()
    assert stub.client.ask()[0] == 200


def test_a_delay_of_one_verb(stub):
    stub.delay['list'] = 0.3
    before = time.monotonic()
    stub.client.ask(path='/version')
    assert time.monotonic() - before < 0.3
    stub.client.ask()
    assert time.monotonic() - before >= 0.3


@pytest.mark.parametrize('is_tls', [False, True])
def test_away_and_back(tmp_path, is_tls):
    with KubeStub(tls=tmp_path if is_tls else None) as stub:
        client = Client(stub)
        assert client.create('a')[0] == 201
        port = stub.port
        stub.stop()
        with pytest.raises(ConnectionRefusedError):
            client.ask()
        stub.create_pod('b')
        stub.start()
        assert stub.port == port
        assert [pod['metadata']['name'] for pod in client.ask()[2]['items']] == ['a', 'b']


def test_a_watch_ends_when_the_server_goes_away(stub, watch):
    stub.stop()
    assert watch.event() == b''


# ---- the server ----


def test_requests_are_noted(stub):
    stub.client.ask(path=f'{PODS}?labelSelector=app%3Dw&resourceVersion=0')
    stub.client.ask('DELETE', f'{PODS}/none', {'preconditions': {'uid': 'x'}})
    first, second = stub.requests
    assert (first.verb, first.resource, first.namespace, first.status) == ('list', 'pods', 'workers', 200)
    assert first.query == {'labelSelector': 'app=w', 'resourceVersion': '0'} and first.user == 'stub-admin'
    assert (second.verb, second.name, second.status) == ('delete', 'none', 404)
    assert json.loads(second.raw)['preconditions'] == {'uid': 'x'}
    assert stub.count(verb='delete') == 1 and stub.asked(status=404) == [second]


def test_one_connection_serves_many_requests(stub):
    client = http.client.HTTPConnection(stub.host, stub.port)
    client.connect()
    kept = client.sock
    for _ in range(5):
        client.request('GET', PODS, headers={'Authorization': f'Bearer {stub.token}'})
        assert client.getresponse().read() and client.sock is kept
    assert len(stub.connections) == 1
    client.close()


def test_racing_creates_have_one_winner(stub):
    # pylint: disable=import-outside-toplevel
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as racers:
        found = list(racers.map(lambda number: stub.client.create(f'w-{number % 5}')[0], range(40)))
    assert sorted(found) == [201] * 5 + [409] * 35


def test_lists_of_the_cache_have_no_order(stub):
    for number in range(20):
        stub.create_pod(f'w-{number:02}')
    names = [[pod['metadata']['name'] for pod in stub.client.ask(path=PODS + query)[2]['items']]
             for query in ('', '?resourceVersion=0')]
    assert names[0] == sorted(names[0]) and names[1] != names[0] and sorted(names[1]) == names[0]
