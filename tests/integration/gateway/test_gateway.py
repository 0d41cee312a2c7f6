"""caisson gateway before real workers: routes, ids, lists, streams, keys, and the ends of runs whose worker is killed."""

import base64
import json
import os
import signal
import threading
import time

import jsonschema
import pytest

from cli import caisson
from daemon import until
from fleet import Fleet, Gateway
from gateway import SECRET, tag_of


@pytest.fixture(scope='module')
def fleet(tmp_path_factory):
    one = Fleet(tmp_path_factory.mktemp('fleet'), 2)
    yield one
    one.stop()


def own(folder, n=2, *options, **more):
    return Fleet(folder, n, *options, **more)


# ---- new work ----

def test_runs_go_to_all_workers(fleet):
    names = {fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'})[1]['Caisson-Worker'] for _ in range(30)}
    assert len(names) == 2


def test_a_record_is_the_workers(fleet):
    status, headers, record = fleet.gateway.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(6 * 7)'})
    assert status == 200 and record['stdout'] == '42\n' and record['status'] == 'completed'
    assert tag_of(SECRET, record['id']) == fleet.worker_of(headers).status()['tag']
    assert 'Caisson-Load' not in headers and 'Caisson-Boot' not in headers


def test_a_request_id_and_a_trace_go_through(fleet):
    trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    _, headers, _ = fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'}, X_Request_Id='mine-1', traceparent=trace)
    assert headers.get_all('X-Request-Id') == ['mine-1']
    log = until(lambda: [line for line in fleet.worker_of(headers).log.read_text().splitlines() if 'mine-1' in line])
    assert all('0af7651916cd43dd8448eb211c80319c' in line for line in log), log


@pytest.mark.parametrize('path, body, check', [
    ('/v1/check', {'language': 'python', 'code': 'eval("1")'}, lambda answer: 'findings' in answer),
    ('/v1/grade', {'code': 'def f(x): return x', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]}, lambda answer: answer['all_passed']),
    ('/run_code', {'code': 'print(1)', 'language': 'python'}, lambda answer: answer['status'] == 'Success'),
    ('/api/v2/execute', {'language': 'python', 'version': '*', 'files': [{'content': 'print(1)'}]}, lambda answer: answer['run']['stdout'] == '1\n'),
    ('/submissions?wait=true', {'source_code': 'print(1)', 'language_id': 71}, lambda answer: answer['stdout'] == '1\n'),
])
def test_fronts(fleet, path, body, check):
    status, headers, answer = fleet.gateway.ask('POST', path, body, Content_Type='application/json')
    assert status in (200, 201) and headers['Caisson-Worker'] and check(answer), answer


def test_what_is_the_same_everywhere(fleet):
    for path in '/v1/languages', '/v1/profiles', '/v1/me', '/openapi.json', '/languages', '/api/v2/runtimes', '/docs':
        assert fleet.gateway.ask('GET', path)[0] == 200, path


def test_wrong_requests_are_answered_by_a_worker_or_here(fleet):
    assert fleet.gateway.ask('POST', '/v1/runs', b'{')[0] == 422
    assert fleet.gateway.ask('POST', '/v1/runs', {'code': 1})[0] == 422
    assert fleet.gateway.ask('GET', '/nothing')[0] == 404
    assert fleet.gateway.ask('PUT', '/v1/runs')[0] == 405


# ---- streams ----

def test_events_come_as_they_happen(fleet):
    connection = fleet.gateway.connect()
    code = 'import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.5)\n'
    connection.request('POST', '/v1/runs', json.dumps({'language': 'python', 'code': code}), {'Accept': 'text/event-stream'})
    answer = connection.getresponse()
    times = []
    while line := answer.readline():
        if line.startswith(b'data: {"type":"stdout"'):
            times.append(time.monotonic())
    connection.close()
    assert len(times) == 3 and times[2] - times[0] > 0.5


def test_a_client_that_goes_ends_its_run(fleet):
    connection = fleet.gateway.connect()
    connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': 'sleep 100', 'task_id': 'left'}))
    until(lambda: sum(worker.status()['running'] for worker in fleet.workers))
    connection.close()
    until(lambda: not sum(worker.status()['running'] for worker in fleet.workers))


def test_long_bodies_and_answers(fleet):
    data = os.urandom(2_000_000)
    code = 'import hashlib, sys; data = open("in", "rb").read(); sys.stdout.write(data.hex()[:100000])'
    record = fleet.gateway.run(code, 'python', files=[{'name': 'in', 'content_base64': base64.b64encode(data).decode()}])
    assert record['stdout'] == data.hex()[:100000]


def test_bulk(fleet):
    lines = ''.join(json.dumps({'id': str(n), 'language': 'bash', 'code': f'echo {n}'}) + '\n' for n in range(20)).encode()
    status, _, text = fleet.gateway.ask('POST', '/v1/runs/bulk', lines, Content_Type='application/x-ndjson')
    assert status == 200 and {json.loads(line)['id'] for line in text.splitlines()} == {str(n) for n in range(20)}


# ---- ids ----

def test_a_sandbox_stays_on_its_worker(fleet):
    status, headers, sandbox = fleet.gateway.ask('POST', '/v1/sandboxes', {})
    assert status == 201
    owner = headers['Caisson-Worker']
    for _ in range(5):
        status, headers, info = fleet.gateway.ask('GET', f'/v1/sandboxes/{sandbox["id"]}')
        assert status == 200 and info['id'] == sandbox['id'] and headers['Caisson-Worker'] == owner
    path = f'/v1/sandboxes/{sandbox["id"]}/files?path=x'
    data = os.urandom(2_000_000)
    status, _, answer = fleet.gateway.ask('PUT', path, data)
    assert status in (200, 201, 204), answer
    assert fleet.gateway.ask('GET', path)[2] == data
    assert fleet.gateway.ask('DELETE', f'/v1/sandboxes/{sandbox["id"]}')[0] == 204
    assert fleet.gateway.ask('GET', f'/v1/sandboxes/{sandbox["id"]}')[0] == 404


def test_a_session_keeps_its_variables(fleet):
    session = fleet.gateway.ask('POST', '/v1/sessions', {'language': 'python'})[2]
    for code, output in (('x = 6', ''), ('print(x * 7)', '42\n')):
        assert fleet.gateway.ask('POST', f'/v1/sessions/{session["id"]}/runs', {'code': code})[2]['stdout'] == output
    assert fleet.gateway.ask('DELETE', f'/v1/sessions/{session["id"]}')[0] == 204


def test_a_run_is_asked_for_later(fleet):
    status, headers, started = fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 0.2; echo 1'}, Prefer='respond-async')
    assert status == 202, started
    assert until(lambda: (lambda answer: answer[2] if answer[0] == 200 else None)(fleet.gateway.ask('GET', headers['Location'])))['stdout'] == '1\n'


def test_a_kept_file_is_found_by_runs(fleet):
    for n in range(6):
        status, _, kept = fleet.gateway.ask('POST', f'/v1/files?name=f{n}', f'content {n}'.encode(), Content_Type='application/octet-stream')
        assert status == 201, kept
        assert fleet.gateway.run(f'cat f{n}', files=[{'id': kept['id']}])['stdout'] == f'content {n}'


def test_sessions_and_files_of_librechat_are_found_by_their_ids(fleet):
    root, headers = '/librechat/v1', {'Content_Type': 'application/json'}
    workers = set()
    for n in range(60):
        if len(workers) == 2 and n > 6:
            break
        status, answered, made = fleet.gateway.ask('POST', f'{root}/exec', {'lang': 'bash', 'code': f'echo {n} > a'}, **headers)
        assert status == 200, made
        workers.add(answered['Caisson-Worker'])
        session, file = made['session_id'], made['files'][0]['id']
        for more in ({'files': [{'id': file, 'storage_session_id': session, 'name': 'a'}]}, {'session_id': session}):
            status, same, answer = fleet.gateway.ask('POST', f'{root}/exec', {'lang': 'bash', 'code': 'cat a', **more}, **headers)
            assert status == 200 and answer['stdout'] == f'{n}\n' and same['Caisson-Worker'] == answered['Caisson-Worker']
        assert fleet.gateway.ask('GET', f'{root}/files/{session}?detail=simple')[2][0]['id'] == file
        assert fleet.gateway.ask('GET', f'{root}/download/{session}/{file}')[2] == f'{n}\n'.encode()
        status, _, asked = fleet.gateway.ask('POST', f'{root}/exec/programmatic', {'code': 'print(await f())', 'tools': [{'name': 'f'}]}, **headers)
        assert status == 200 and asked['status'] == 'tool_call_required', asked
        body = {'continuation_token': asked['continuation_token'], 'tool_results': [{'call_id': 'call_001', 'result': n}]}
        assert fleet.gateway.ask('POST', f'{root}/exec/programmatic', body, **headers)[2]['stdout'] == f'{n}\n'
        assert fleet.gateway.ask('DELETE', f'{root}/files/{session}/{file}')[0] == 200
        assert fleet.gateway.ask('GET', f'{root}/download/{session}/{file}')[0] == 404
    assert len(workers) == 2
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="u"\r\n\r\n1\r\n--b--\r\n'
    _, _, answer = fleet.gateway.ask('POST', f'{root}/upload', form, Content_Type='multipart/form-data; boundary=b')
    assert fleet.gateway.ask('GET', f'{root}/sessions/{answer["session_id"]}/objects/{answer["files"][0]["fileId"]}')[0] == 200
    assert fleet.gateway.ask('GET', f'{root}/download/{"A" * 21}/{"A" * 21}')[0] == 404
    assert fleet.gateway.ask('GET', f'{root}/health')[0] == 200


def test_an_id_that_no_worker_made(fleet):
    for identifier in 'run_' + 32 * '0', 'run_x', 'x':
        status, _, problem = fleet.gateway.ask('GET', f'/v1/runs/{identifier}')
        assert status == 404, problem


def test_an_id_of_another_secret_is_no_id(fleet, tmp_path):
    other = Gateway(tmp_path, [f'http://127.0.0.1:{fleet.workers[0].port}'], secret='another-secret-of-this-test-0123456789')
    worker = until(lambda: [one for one in other.workers().values() if one['state'] == 'not_ready'])[0]
    assert '403' in worker['why'] and 'gateway.key_file' in worker['why']
    record = fleet.gateway.run(':')
    assert other.ask('GET', f'/v1/runs/{record["id"]}')[0] == 404
    assert other.stop() == 0


def test_mcp_sessions(fleet):
    headers = {'Accept': 'application/json, text/event-stream', 'Content_Type': 'application/json'}
    hello = {'jsonrpc': '2.0', 'id': 1, 'method': 'initialize',
             'params': {'protocolVersion': '2025-06-18', 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}}}
    status, answer, _ = fleet.gateway.ask('POST', '/mcp', hello, **headers)
    assert status == 200
    for _ in range(4):
        status, again, _ = fleet.gateway.ask('POST', '/mcp', {'jsonrpc': '2.0', 'id': 2, 'method': 'tools/list'},
                                             **headers, Mcp_Session_Id=answer['Mcp-Session-Id'])
        assert status == 200 and again['Caisson-Worker'] == answer['Caisson-Worker']


def test_sandboxes_of_e2b(fleet):
    status, answer, sandbox = fleet.gateway.ask('POST', '/sandboxes', {'templateID': 'base'}, X_API_KEY='e2b_0000')
    assert status == 201, sandbox
    host = f'49983-{sandbox["sandboxID"]}.example.org'
    status, again, _ = fleet.gateway.ask('GET', '/health', Host=host)
    assert status == 204 and again['Caisson-Worker'] == answer['Caisson-Worker']
    assert fleet.gateway.ask('DELETE', f'/sandboxes/{sandbox["sandboxID"]}', X_API_KEY='e2b_0000')[0] == 204


# ---- lists and names ----

def test_built_in_templates_are_listed_once(fleet):
    key = {'X_API_Key': 'e2b_' + 40 * '0'}
    template = fleet.gateway.ask('POST', '/v3/templates', {'name': 'listed'}, **key)[2]
    for path in ('/templates', '/v2/templates'):
        status, _, listed = fleet.gateway.ask('GET', path, **key)
        assert status == 200 and len({one['templateID'] for one in listed}) == len(listed), listed
        assert {'base', 'code-interpreter-v1'} <= {name for one in listed for name in one['names']}
        assert template['templateID'] in [one['templateID'] for one in listed]


def test_a_list_has_each_member_once(fleet):
    made = [fleet.gateway.ask('POST', '/v1/sandboxes', {})[2]['id'] for _ in range(7)]
    found, path = [], '/v1/sandboxes?limit=2'
    while path:
        page = fleet.gateway.ask('GET', path)[2]
        assert len(page['sandboxes']) <= 2
        found += [one['id'] for one in page['sandboxes']]
        path = f'/v1/sandboxes?limit=2&cursor={page["next"]}' if 'next' in page else None
    assert sorted(found) == sorted(made)
    times = [one['created_at'] for one in fleet.gateway.ask('GET', '/v1/sandboxes')[2]['sandboxes']]
    assert times == sorted(times, reverse=True) and len(times) == 7
    for one in made:
        assert fleet.gateway.ask('DELETE', f'/v1/sandboxes/{one}')[0] == 204


def test_a_workspace_is_on_one_worker(fleet):
    for n in range(6):
        fleet.gateway.run(f'echo {n} >> log', workspace='shared', user='anna')
    assert fleet.gateway.run('cat log', workspace='shared', user='anna')['stdout'] == '0\n1\n2\n3\n4\n5\n'
    assert [one['name'] for one in fleet.gateway.ask('GET', '/v1/workspaces')[2]['workspaces']] == ['shared']


def test_a_volume_is_found_by_name(fleet):
    for n in range(4):
        status, _, answer = fleet.gateway.ask('POST', '/v1/volumes', {'name': f'v{n}', 'size_bytes': 8 << 20})
        assert status in (201, 422, 503), answer
        if status != 201:
            pytest.skip(f'needs volumes: {answer["message"]}')
        fleet.gateway.run(f'echo {n} > /mnt/v{n}/x', volumes=[f'v{n}'])
        assert fleet.gateway.run(f'cat /mnt/v{n}/x', volumes=[f'v{n}:ro'])['stdout'] == f'{n}\n'
        assert fleet.gateway.ask('GET', f'/v1/volumes/v{n}')[0] == 200
    assert len(fleet.gateway.ask('GET', '/v1/volumes')[2]['volumes']) == 4


def test_an_idempotency_key_runs_once(fleet):
    answers = [fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo $RANDOM$RANDOM'}, Idempotency_Key='once')
               for _ in range(8)]
    assert {status for status, _, _ in answers} == {200} and len({record['stdout'] for _, _, record in answers}) == 1
    status, _, record = fleet.gateway.ask('GET', '/v1/idempotency-keys/once')
    assert status == 200 and record['id'] == answers[0][2]['id']
    assert fleet.gateway.ask('GET', '/v1/idempotency-keys/never')[0] == 404


def test_usage_adds_up(fleet):
    usage = fleet.gateway.ask('GET', '/v1/usage')[2]
    assert usage['total']['calls'] == 0 and usage['total']['cost_usd'] == '0.000000000'


# ---- the gateway's own ----

def test_own_routes(fleet):
    assert fleet.gateway.ask('GET', '/healthz')[2]['workers_ready'] == 2
    assert fleet.gateway.ask('GET', '/readyz')[2] == {'status': 'ready'}
    text = fleet.gateway.ask('GET', '/metrics')[2].decode()
    for worker in fleet.workers:
        assert f'caisson_gateway_worker_ready{{worker="127.0.0.1:{worker.port}",' in text
    assert fleet.gateway.ask('GET', '/v1/scale')[2]['ready'] == 2


@pytest.mark.parametrize('options, words', [
    ([], ['gateway.workers', 'no worker']),
    (['gateway.workers=http://127.0.0.1:1'], ['gateway.key_file']),
    (['gateway.workers=ftp://x', 'gateway.key_file={key}'], ['gateway.workers', 'ftp://x']),
    (['gateway.workers=http://a:1,http://a:1', 'gateway.key_file={key}'], ['twice']),
    (['gateway.workers=http://u:p@a:1', 'gateway.key_file={key}'], ['gateway.workers']),
    (['gateway.workers=http://a:1', 'gateway.key_file=/missing'], ['/missing']),
    (['gateway.workers=http://a:1', 'gateway.key_file={key}', 'gateway.listen=nowhere'], ['nowhere']),
])
def test_wrong_settings(tmp_path, options, words):
    key = tmp_path / 'key'
    key.write_text(SECRET + '\n')
    done = caisson('gateway', *(word for option in options for word in ('--set', option.format(key=key))))
    assert done.status == 78 and all(word in done.err for word in words), done


# ---- ends ----

def validate(record):
    jsonschema.validate(record, json.loads(caisson('schema', 'result').out))


def in_flight(fleet, answers, body, **headers):
    """A request in a thread, and the worker that carries it out."""
    before = {worker: worker.status()['running'] for worker in fleet.workers}
    thread = threading.Thread(target=lambda: answers.append(fleet.gateway.ask('POST', '/v1/runs', body, **headers)))
    thread.start()
    return thread, until(lambda: next((worker for worker in fleet.workers if worker.status()['running'] > before[worker]), None))


def test_a_run_whose_worker_is_killed_has_one_end(tmp_path):
    fleet, answers = own(tmp_path), []
    thread, worker = in_flight(fleet, answers, {'language': 'bash', 'code': 'sleep 100'}, Idempotency_Key='mine')
    worker.daemon.stop()
    thread.join()
    status, headers, record = answers[0]
    validate(record)
    assert status == 502 and record['status'] == 'engine_error' and record['error']['code'] == 'worker_lost'
    assert headers['Caisson-Worker'] in record['error']['message']
    for path in f'/v1/runs/{record["id"]}', '/v1/idempotency-keys/mine':
        status, _, again = fleet.gateway.ask('GET', path)
        assert status == 200 and again == record
    assert fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 100'}, Idempotency_Key='mine')[2] == record
    assert fleet.gateway.run('echo 1')['stdout'] == '1\n'
    fleet.stop()


def test_a_run_that_is_safe_is_run_again(tmp_path):
    fleet, answers = own(tmp_path), []
    thread, worker = in_flight(fleet, answers, {'language': 'bash', 'code': 'sleep 2; echo 1', 'retry': 'safe'})
    worker.daemon.stop()
    thread.join()
    status, _, record = answers[0]
    assert status == 200 and record['stdout'] == '1\n'
    fleet.stop()


def test_a_stream_whose_worker_is_killed_has_a_last_event(tmp_path):
    fleet = own(tmp_path)
    connection = fleet.gateway.connect()
    connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': 'echo 1; sleep 100'}), {'Accept': 'text/event-stream'})
    answer = connection.getresponse()
    while not answer.readline().startswith(b'data: {"type":"stdout"'):
        pass
    fleet.worker_of(answer.headers).daemon.stop()
    events = [json.loads(line[6:]) for line in answer.read().splitlines() if line.startswith(b'data: ')]
    assert len(events) == 1 and events[0]['error'] == 'worker_lost', events
    status, _, record = fleet.gateway.ask('GET', f'/v1/runs/{events[0]["run"]}')
    assert status == 200 and record['error']['code'] == 'worker_lost' and record['id'] == events[0]['run']
    fleet.stop()


def test_a_worker_that_is_gone_and_comes_back(tmp_path):
    fleet = own(tmp_path, 1)
    sandbox = fleet.gateway.ask('POST', '/v1/sandboxes', {})[2]['id']
    worker = fleet.workers[0]
    worker.daemon.stop()
    status, headers, problem = fleet.gateway.ask('GET', f'/v1/sandboxes/{sandbox}')
    assert status == 503 and headers['Retry-After'] and 'does not accept' in problem['message'], problem
    fleet.gateway.process.send_signal(signal.SIGTERM)
    assert fleet.gateway.process.wait(60) == 0


def test_a_worker_that_hangs_is_lost(tmp_path):
    fleet, answers = own(tmp_path, 2, gateway_options=['--set', 'gateway.down_after=500ms', '--set', 'gateway.heartbeat=100ms']), []
    thread, worker = in_flight(fleet, answers, {'language': 'bash', 'code': 'sleep 100'})
    os.kill(worker.daemon.process.pid, signal.SIGSTOP)
    thread.join()
    assert answers[0][0] == 502 and 'Unreachable' in answers[0][2]['error']['message']
    for _ in range(10):
        fleet.gateway.run(':')
    os.kill(worker.daemon.process.pid, signal.SIGCONT)
    fleet.gateway.wait_ready(2)
    fleet.stop()


def test_a_worker_that_drains_gets_no_new_work(tmp_path):
    fleet, answers = own(tmp_path), []
    thread, worker = in_flight(fleet, answers, {'language': 'bash', 'code': 'sleep 3; echo 1'})
    worker.daemon.process.send_signal(signal.SIGTERM)
    records = [fleet.gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 2'}) for _ in range(20)]
    assert {status for status, _, _ in records} == {200}
    thread.join()
    assert answers[0][0] == 200 and answers[0][2]['stdout'] == '1\n'
    fleet.stop()


def test_a_gateway_that_ends_finishes_what_it_has(tmp_path):
    fleet, answers = own(tmp_path, 1), []
    thread, _ = in_flight(fleet, answers, {'language': 'bash', 'code': 'sleep 2; echo 1'})
    fleet.gateway.process.send_signal(signal.SIGTERM)
    thread.join()
    assert answers[0][0] == 200 and answers[0][2]['stdout'] == '1\n'
    assert fleet.gateway.process.wait(60) == 0
    fleet.stop()


def test_no_worker_is_an_answer(tmp_path):
    gateway = Gateway(tmp_path, ['http://127.0.0.1:1'], '--set', 'gateway.wait=200ms')
    status, headers, problem = gateway.ask('POST', '/v1/runs', {'language': 'bash', 'code': ':'})
    assert status == 503 and headers['Retry-After'] and problem['retryable'] and 'no worker is ready' in problem['message']
    assert gateway.ask('GET', '/readyz')[0] == 503 and gateway.ask('GET', '/healthz')[0] == 200
    assert gateway.stop() == 0


# ---- keys of the gateway ----

@pytest.fixture(scope='module')
def keyed(tmp_path_factory):
    one = Fleet(tmp_path_factory.mktemp('keyed'), 2, keys='gateway')
    yield one
    one.stop()


def make_key(fleet, *options):
    done = caisson('keys', 'create', '--name', 'x', '--set', f'engine.state_dir={fleet.gateway.folder}', *options)
    assert done.status == 0, done
    return next(word for word in done.out.split() if word.startswith('csn_'))


def ask_as(fleet, key, *words, **headers):
    return fleet.gateway.ask(*words, **headers, **({'Authorization': f'Bearer {key}'} if key else {}))


def test_keys_of_the_gateway(keyed):
    key = make_key(keyed, '--scopes', 'run,read')
    body = {'language': 'bash', 'code': 'echo 1'}
    assert ask_as(keyed, key, 'POST', '/v1/runs', body)[2]['stdout'] == '1\n'
    assert ask_as(keyed, None, 'POST', '/v1/runs', body)[0] == 401
    assert ask_as(keyed, 'csn_' + 'x' * 60, 'POST', '/v1/runs', body)[0] == 401
    assert ask_as(keyed, key, 'POST', '/v1/sandboxes', {})[0] == 403


def test_metrics_need_a_key_where_the_gateway_has_keys(keyed):
    reader, watcher = make_key(keyed, '--scopes', 'run,read'), make_key(keyed, '--scopes', 'metrics')
    for path in '/metrics', '/v1/workers', '/v1/scale':
        assert [ask_as(keyed, key, 'GET', path)[0] for key in (None, reader, watcher)] == [401, 403, 200], path
    assert ask_as(keyed, None, 'GET', '/healthz')[0] == ask_as(keyed, None, 'GET', '/readyz')[0] == 200


def test_names_are_on_the_workers_that_share_the_quota(keyed):
    """Different keys of idempotency have homes; a quota of 1 is on one worker all the same."""
    key = make_key(keyed, '--scopes', 'run,read', '--tenant', 'named', '--running', '1')
    names = {ask_as(keyed, key, 'POST', '/v1/runs', {'language': 'bash', 'code': ':'}, Idempotency_Key=f'k{n}')[1]['Caisson-Worker'] for n in range(12)}
    assert len(names) == 1


def test_questions_of_gateways_are_not_for_clients(fleet):
    for path in '/v1/gateway/status', '/v1/gateway/find', '/v1/gateway/attempts/' + 32 * '0':
        for headers in {}, {'Host': '49983-x.example.org', 'E2b_Sandbox_Id': 'x'}:
            assert fleet.gateway.ask('GET', path, **headers)[0] == 403, (path, headers)


def test_tenants_do_not_see_each_other(keyed):
    keys = [make_key(keyed, '--scopes', 'run,read,sandboxes', '--tenant', name) for name in ('anna', 'ben')]
    sandbox = ask_as(keyed, keys[0], 'POST', '/v1/sandboxes', {})[2]['id']
    assert ask_as(keyed, keys[0], 'GET', f'/v1/sandboxes/{sandbox}')[0] == 200
    assert ask_as(keyed, keys[1], 'GET', f'/v1/sandboxes/{sandbox}')[0] == 404
    assert ask_as(keyed, keys[1], 'GET', '/v1/sandboxes')[2]['sandboxes'] == []
    assert ask_as(keyed, keys[0], 'DELETE', f'/v1/sandboxes/{sandbox}')[0] == 204


@pytest.mark.parametrize('quota', [1, 2, 3])
def test_a_quota_is_not_multiplied_by_workers(keyed, quota):
    key = make_key(keyed, '--scopes', 'run,read', '--tenant', f'quota{quota}', '--running', str(quota))
    threads = [threading.Thread(target=ask_as, args=[keyed, key, 'POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1'}]) for _ in range(8)]
    most = 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most = max(most, sum(worker.status()['running'] for worker in keyed.workers))
        time.sleep(0.02)
    assert 1 <= most <= quota
