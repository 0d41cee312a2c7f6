"""Quotas of a key hold while programs run: CPU time as it is used, and running work of every kind."""

import concurrent.futures
import contextlib
import json
import signal
import sqlite3
import time

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web

BUSY = {'python': 'while True: pass', 'bash': 'while :; do :; done', 'javascript': 'for (;;);'}
SCOPES = 'run,sandboxes,read'
SLACK_MS = 2500   # above a quota: one look each 200 ms at two processors, a grace time, and a loaded machine


@pytest.fixture(name='place', scope='module')
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp('quotas')
    keys = Keys(folder)
    keys.make('first', '--scopes', 'admin')
    keys.web = Web(folder, '--set', 'engine.running_max=20', keyless=False)
    yield keys
    assert keys.web.daemon.stop(signal.SIGTERM) == 0


def used_ms(place, tenant):
    with contextlib.closing(sqlite3.connect(f'file:{place.folder}/caisson.db?mode=ro', uri=True)) as db:
        return db.execute('SELECT coalesce(sum(cpu_ms), 0) FROM cpu_used WHERE tenant = ?', [tenant]).fetchone()[0]


def key_of(place, name, *options):
    return bearer(place.make(name, '--tenant', name, '--scopes', SCOPES, *options))


def sandbox_of(place, key):
    status, _, sandbox = place.web.ask('POST', '/v1/sandboxes', {}, **key)
    assert status == 201, sandbox
    return f'/v1/sandboxes/{sandbox["id"]}'


def context_of(place, key, sandbox, language='python'):
    status, _, context = place.web.ask('POST', f'{sandbox}/contexts', {'language': language}, **key)
    assert status == 201, context
    return f'/v1/contexts/{context["id"]}/runs'


def refused_for(answer, quota):
    status, headers, problem = answer
    assert (status, problem.get('quota')) == (429, quota), answer
    assert headers['Retry-After'] == str(problem['retry_after_s']) and problem['current'] >= problem['limit']
    return problem


# ---- CPU time ----

@pytest.mark.parametrize('language', ['python', 'bash'])
def test_a_run_gets_what_is_left_of_the_day(place, language):
    key = key_of(place, f'left-{language}', '--cpu-per-day', '1s')
    status, _, record = place.web.ask('POST', '/v1/runs', {'language': language, 'code': BUSY[language], 'limits': {'wall_ms': 60000}}, **key)
    assert (status, record['status'], record['error']['limit']) == (200, 'timeout', 'cpu_ms_per_day'), record
    assert 'cpu_ms_per_day=1000' in record['error']['hint'] and 'allows 1 second' in record['error']['message']
    assert 900 <= record['usage']['cpu_ms'] < 1000 + SLACK_MS
    refused_for(place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, **key), 'cpu_ms_per_day')


def test_a_limit_of_its_own_that_is_lower_is_the_one_that_is_named(place):
    key = key_of(place, 'own', '--cpu-per-day', '20s')
    body = {'language': 'python', 'code': BUSY['python'], 'limits': {'cpu_ms': 300, 'wall_ms': 60000}}
    record = place.web.ask('POST', '/v1/runs', body, **key)[2]
    assert (record['status'], record['error']['limit']) == ('timeout', 'cpu_ms') and 'cpu_ms=300' in record['error']['hint']
    body['limits'] = {'wall_ms': 300}
    assert place.web.ask('POST', '/v1/runs', body, **key)[2]['error']['limit'] == 'wall_ms'


def test_runs_at_the_same_time_share_what_is_left(place):
    key = key_of(place, 'share', '--cpu-per-day', '2s')
    body = {'language': 'bash', 'code': BUSY['bash'], 'limits': {'wall_ms': 60000}}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: place.web.ask('POST', '/v1/runs', body, **key), range(4)))
    records = [record for status, _, record in answers if status == 200]
    assert records and {record['error']['limit'] for record in records} == {'cpu_ms_per_day'}, answers
    assert 1900 <= sum(record['usage']['cpu_ms'] for record in records) < 2000 + SLACK_MS


def test_programs_in_sandboxes_end_with_the_quota(place):
    key = key_of(place, 'programs', '--cpu-per-day', '2s')
    sandbox = sandbox_of(place, key)
    body = {'args': ['/bin/bash', '-c', BUSY['bash']], 'timeout_ms': 60000}
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: place.web.ask('POST', f'{sandbox}/processes', body, **key), range(3)))
    for status, _, done in answers:
        assert (status, done.get('limit', done.get('quota'))) in ((200, 'cpu_ms_per_day'), (429, 'cpu_ms_per_day')), done
    until(lambda: used_ms(place, 'programs') >= 2000)
    time.sleep(1)
    assert used_ms(place, 'programs') < 2000 + SLACK_MS
    refused_for(place.web.ask('POST', f'{sandbox}/processes', {'args': ['/bin/true']}, **key), 'cpu_ms_per_day')


def test_a_program_of_e2b_s_client_ends_with_the_quota_s_name(place):
    key = place.make('e2b', '--tenant', 'e2b', '--scopes', SCOPES, '--cpu-per-day', '2s')
    status, _, sandbox = place.web.ask('POST', '/sandboxes', {'templateID': 'base', 'timeout': 300}, X_API_Key=key)
    assert status == 201, sandbox
    body = json.dumps({'process': {'cmd': '/bin/bash', 'args': ['-c', BUSY['bash']]}}).encode()
    answer = place.web.stream_raw('POST', '/process.Process/Start', b'\0' + len(body).to_bytes(4, 'big') + body, **{
        'Content-Type': 'application/connect+json', 'E2b-Sandbox-Id': sandbox['sandboxID'], 'E2b-Sandbox-Port': '49983',
        'X-Access-Token': sandbox.get('envdAccessToken') or ''})
    text = answer.read()
    assert answer.status == 200 and b'"end"' in text and b'used up for the day (cpu_ms_per_day)' in text, text


def test_a_process_that_leaves_its_program_ends_with_the_sandbox(place):
    key = key_of(place, 'daemon', '--cpu-per-day', '1s')
    sandbox = sandbox_of(place, key)
    status, _, done = place.web.ask('POST', f'{sandbox}/processes', {'command': f'setsid bash -c "{BUSY["bash"]}" >/dev/null 2>&1 </dev/null &'}, **key)
    assert status == 200, done
    until(lambda: place.web.ask('GET', sandbox, **key)[0] == 404, 60)
    until(lambda: used_ms(place, 'daemon') >= 1000)
    assert used_ms(place, 'daemon') < 1000 + SLACK_MS


@pytest.mark.parametrize('language', ['python', 'bash', 'javascript'])
def test_an_execution_gets_what_is_left_of_the_day(place, language):
    key = key_of(place, f'execution-{language}', '--cpu-per-day', '2s')
    runs = context_of(place, key, sandbox_of(place, key), language)
    status, _, record = place.web.ask('POST', runs, {'code': BUSY[language], 'limits': {'wall_ms': 60000}}, **key)
    assert (status, record['status'], record['error']['limit']) == (200, 'timeout', 'cpu_ms_per_day'), record
    assert record['usage']['cpu_ms'] < 2000 + SLACK_MS
    refused_for(place.web.ask('POST', runs, {'code': '1'}, **key), 'cpu_ms_per_day')


def test_sessions_and_grading_share_the_quota(place):
    key = key_of(place, 'mixed', '--cpu-per-day', '1s')
    session = place.web.ask('POST', '/v1/sessions', {}, **key)[2]['id']
    record = place.web.ask('POST', f'/v1/sessions/{session}/runs', {'code': BUSY['python'], 'limits': {'wall_ms': 60000}}, **key)[2]
    assert record['error']['limit'] == 'cpu_ms_per_day', record
    for path, body in ((f'/v1/sessions/{session}/runs', {'code': '1'}), ('/v1/sessions', {}),
                       ('/v1/grade', {'language': 'python', 'code': 'print(1)', 'cases': [{'expected_stdout': '1\n'}]}),
                       ('/api/v2/execute', {'language': 'bash', 'version': '*', 'files': [{'content': 'true'}]})):
        status, _, problem = place.web.ask('POST', path, body, Content_Type='application/json', **key)
        assert (status, problem.get('quota')) == (429, 'cpu_ms_per_day'), (path, problem)


def test_another_tenant_goes_on(place):
    spent, rich = key_of(place, 'spent', '--cpu-per-day', '200ms'), key_of(place, 'rich', '--cpu-per-day', '60s')
    assert place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': BUSY['bash']}, **spent)[2]['error']['limit'] == 'cpu_ms_per_day'
    assert place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'}, **rich)[2]['stdout'] == '1\n'


# ---- running ----

def test_programs_in_sandboxes_count_for_running(place):
    key = key_of(place, 'one', '--running', '1')
    sandbox = sandbox_of(place, key)
    _, headers, _ = place.web.ask('POST', f'{sandbox}/processes', {'args': ['/bin/sleep', '1000']}, Prefer='respond-async', **key)
    problem = refused_for(place.web.ask('POST', f'{sandbox}/processes', {'args': ['/bin/true']}, **key), 'running_max')
    assert (problem['limit'], problem['current'], problem['running']) == (1, 1, 1)
    # A run waits where a program in a sandbox is refused.
    _, where, state = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'}, Prefer='respond-async', **key)
    until(lambda: place.web.ask('GET', '/v1/runs', **key)[2]['runs'][0]['state'] == 'waiting')
    context = context_of(place, key, sandbox)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        execution = pool.submit(place.web.ask, 'POST', context, {'code': 'print(2)'}, **key)
        time.sleep(1)
        assert not execution.done() and place.web.ask('GET', where['Location'], **key)[0] == 202
        assert place.web.ask('POST', headers['Location'] + '/signal', {'signal': 'KILL'}, **key)[0] in (200, 202, 204)
        status, _, record = execution.result(60)
    assert (status, record['stdout']) == (200, '2\n')
    until(lambda: place.web.ask('GET', where['Location'], **key)[0] == 200)


def test_executions_count_for_running_and_wait(place):
    key = key_of(place, 'contexts', '--running', '1')
    sandbox = sandbox_of(place, key)
    contexts = [context_of(place, key, sandbox) for _ in range(3)]
    code = 'import time; begin = time.time(); time.sleep(.5); print(begin, time.time())'
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda runs: place.web.ask('POST', runs, {'code': code}, **key), contexts))
    times = sorted(tuple(map(float, record['stdout'].split())) for _, _, record in answers)
    assert all(end <= begin for (_, end), (begin, _) in zip(times, times[1:])), times


def test_waiting_executions_count_for_queued(place):
    key = key_of(place, 'queued', '--running', '1', '--queued', '1')
    sandbox = sandbox_of(place, key)
    contexts = [context_of(place, key, sandbox) for _ in range(3)]
    places = []
    for runs in contexts[:2]:
        status, headers, _ = place.web.ask('POST', runs, {'code': 'import time; time.sleep(1000)'}, Prefer='respond-async', **key)
        assert status == 202
        places.append(headers['Location'])
    refused_for(place.web.ask('POST', contexts[2], {'code': '1'}, **key), 'queued_max')
    for where in reversed(places):
        place.web.ask('DELETE', where, **key)
    until(lambda: place.web.ask('POST', contexts[2], {'code': '1'}, **key)[0] == 200, 60)


def test_a_sandbox_that_ends_gives_its_room_back(place):
    key = key_of(place, 'back', '--running', '2')
    for _ in range(2):
        sandbox = sandbox_of(place, key)
        context = context_of(place, key, sandbox)
        assert place.web.ask('POST', f'{sandbox}/processes', {'args': ['/bin/sleep', '1000']}, Prefer='respond-async', **key)[0] == 202
        assert place.web.ask('POST', context, {'code': 'import time; time.sleep(1000)'}, Prefer='respond-async', **key)[0] == 202
        refused_for(place.web.ask('POST', f'{sandbox}/processes', {'args': ['/bin/true']}, **key), 'running_max')
        assert place.web.ask('DELETE', sandbox, **key)[0] == 204
    assert place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo 1'}, **key)[2]['stdout'] == '1\n'
