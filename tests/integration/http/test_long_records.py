"""Records above 1 MiB: kept in files, answered without a long step, found after a restart."""

import http.client
import json
import os
import signal

import pytest

from cli import caisson
from daemon import until
from steps import Probed, steps_of
from web import Web

CHARACTERS = 20_000_000                    # of control characters: six times as many bytes of JSON


def noisy(characters, **more):
    code = f'import sys\nfor _ in range(10): sys.stdout.write(chr(1) * {characters // 10})\n'
    return {'language': 'python', 'code': code, 'limits': {'output_bytes': characters + 1000}, **more}


def files_of(web):
    folder = web.folder / 'files'
    return sorted(name for name in os.listdir(folder) if name.startswith('record_')) if folder.exists() else []


def start(web, request):
    status, _, state = web.ask('POST', '/v1/runs', request, Prefer='respond-async')
    assert status == 202, state
    return state['id']


def ended(web, run):
    return until(lambda: (answer := web.ask('GET', f'/v1/runs/{run}'))[0] != 202 and answer)


def stop(web):
    assert web.daemon.stop(signal.SIGTERM) == 0
    assert 'Sanitizer' not in web.log.read_text()


@pytest.fixture(name='web')
def own_daemon(tmp_path):
    web = Web(tmp_path)
    yield web
    stop(web)


def test_a_long_record_is_kept_over_a_restart_and_removed(tmp_path):
    web = Web(tmp_path)
    run = start(web, noisy(2_000_000))
    status, _, record = ended(web, run)
    assert (status, record['stdout']) == (200, '\x01' * 2_000_000) and files_of(web) == [f'record_{run}']
    stop(web)
    web = Web(tmp_path)
    assert web.ask('GET', f'/v1/runs/{run}')[2] == record
    assert json.loads(caisson('runs', 'show', run, *web.state).out) == record
    assert web.ask('DELETE', f'/v1/runs/{run}')[0] == 204
    assert web.ask('GET', f'/v1/runs/{run}')[0] == 404
    until(lambda: not files_of(web))               # a helper thread removes the file
    stop(web)


def test_a_long_record_holds_no_memory_and_drops_no_other_run(tmp_path):
    web = Web(tmp_path, '--set', 'engine.kept_bytes=16MiB')        # events have at most 4 MiB of a run
    short = start(web, {'language': 'bash', 'code': 'echo short'})
    ended(web, short)
    runs = [start(web, noisy(1_000_000)) for _ in range(3)]
    for run in runs:
        assert ended(web, run)[2]['stdout'] == '\x01' * 1_000_000
    assert {run['id'] for run in web.ask('GET', '/v1/runs')[2]['runs']} == {short, *runs}
    stop(web)


def test_an_idempotency_key_gives_the_long_record_again(tmp_path):
    web = Web(tmp_path)
    request = noisy(1_000_000)
    first = web.ask('POST', '/v1/runs', request, Idempotency_Key='long')
    again = web.ask('POST', '/v1/runs', request, Idempotency_Key='long')
    assert first[0] == again[0] == 200 and first[2] == again[2] and again[1]['Idempotency-Replayed'] == 'true'
    stop(web)
    web = Web(tmp_path)
    again = web.ask('POST', '/v1/runs', request, Idempotency_Key='long')
    assert (again[0], again[1]['Idempotency-Replayed']) == (200, 'true') and again[2] == first[2]
    assert web.ask('DELETE', f'/v1/runs/{first[2]["id"]}')[0] == 204
    status, _, problem = web.ask('POST', '/v1/runs', request, Idempotency_Key='long')
    assert status == 409 and first[2]['id'] in problem['detail'] and problem['field'] == 'Idempotency-Key'
    stop(web)


def test_a_quota_refuses_the_file_and_the_daemon_has_the_record_all_the_same(tmp_path):
    web = Web(tmp_path, '--set', 'engine.files_bytes_max=3MB')
    run = start(web, noisy(1_000_000))
    assert ended(web, run)[2]['stdout'] == '\x01' * 1_000_000
    assert web.ask('GET', f'/v1/runs/{run}')[2]['stdout'] == '\x01' * 1_000_000
    assert not files_of(web) and 'files_bytes_max' in web.log.read_text()
    stop(web)


@pytest.fixture(name='probed', scope='module')
def probed_daemon(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('records')) as web:
        yield web


def fetch(web, path):
    """The answer as bytes: http.client decodes and compares nothing."""
    connection = http.client.HTTPConnection('127.0.0.1', web.port, timeout=60)
    connection.request('GET', path)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, text


def test_a_long_record_is_answered_in_small_steps(probed):
    run = start(probed, noisy(CHARACTERS))
    until(lambda: fetch(probed, f'/v1/runs/{run}')[0] == 200)
    steps_of(probed, lambda: fetch(probed, f'/v1/runs/{run}'))
    assert json.loads(fetch(probed, f'/v1/runs/{run}')[1])['stdout'] == '\x01' * CHARACTERS


def submission(web, characters):
    code = f"import sys\nfor _ in range(10): sys.stdout.write('a\\n' * {characters // 20})\n"
    status, _, answer = web.ask('POST', '/submissions', {'source_code': code, 'language_id': 71, 'max_file_size': 4096})
    assert status == 201, answer
    return answer['token']


def finished(web, token):
    return until(lambda: (found := json.loads(fetch(web, f'/submissions/{token}')[1])).get('status', {}).get('id', 1) > 2 and found)


def test_long_submissions_of_judge0_are_answered_in_small_steps(probed):
    tokens = [submission(probed, 900_000 + 20 * number) for number in range(6)]
    for number, token in enumerate(tokens):
        assert finished(probed, token)['stdout'] == 'a\n' * (450_000 + 10 * number)
    steps_of(probed, lambda: fetch(probed, f'/submissions/{tokens[0]}'))
    batch = '/submissions/batch?tokens=' + ','.join([tokens[0], 'unknown', *tokens[1:]]) + '&fields=token,stdout'
    steps_of(probed, lambda: fetch(probed, batch))
    found = json.loads(fetch(probed, batch)[1])['submissions']
    assert [one and one['token'] for one in found] == [tokens[0], None, *tokens[1:]]
    assert [len(one['stdout']) for one in found if one] == [900_000 + 20 * number for number in range(6)]


def test_a_client_that_goes_while_its_submissions_are_read_ends_nothing(web):
    tokens = [submission(web, 900_000) for _ in range(6)]
    for token in tokens:
        finished(web, token)
    for _ in range(20):
        connection = http.client.HTTPConnection('127.0.0.1', web.port, timeout=60)
        connection.request('GET', '/submissions/batch?tokens=' + ','.join(tokens))
        connection.close()
    assert finished(web, tokens[0])['stdout'] == 'a\n' * 450_000
    assert web.ask('GET', '/healthz')[0] == 200
