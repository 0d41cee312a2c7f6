"""Runs that go on when the daemon is killed: each has a row in the audit, and one that was accepted has a record."""

import concurrent.futures
import http.client
import json
import signal

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web

DIED = 'the daemon ended while it ran'
SLEEP = {'language': 'bash', 'code': 'sleep 1000', 'task_id': 'task', 'user': 'someone'}


@pytest.fixture()
def place(tmp_path):
    place = Keys(tmp_path)
    place.auth = bearer(place.make('k', '--tenant', 't', '--scopes', 'run,read,sandboxes'))
    place.options = ()
    place.web = Web(tmp_path, keyless=False)
    yield place
    place.web.daemon.stop()


def restart(place, *options):
    place.web.daemon.stop(signal.SIGKILL)
    place.web = Web(place.folder, *options, keyless=False)


def audit(place):
    return {row['id']: row for row in json.loads(place.ask('runs', '--json', '--limit', '1000').out)}


def accept(place, path='/v1/runs', body=None, **headers):
    status, answer, _ = place.web.ask('POST', path, body or SLEEP, Prefer='respond-async', **place.auth, **headers)
    assert status == 202
    return answer['Location']


def died(place, link):
    status, _, record = place.web.ask('GET', link, **place.auth)
    assert status == 200 and record['status'] == 'engine_error' and record['error']['message'] == DIED and record['boundary'] is None, record
    return record


def test_every_accepted_run_has_a_record_and_a_row(place):
    """Those that run, and those that wait in the queue."""
    restart(place, '--set', 'engine.running_max=2')
    links = [accept(place) for _ in range(100)]
    restart(place)
    rows = audit(place)
    for link in links:
        record = died(place, link)
        assert (record['task_id'], record['user'], record['language']) == ('task', 'someone', 'bash')
        row = rows[record['id']]
        assert (row['status'], row['task_id'], row['user'], row['tenant']) == ('engine_error', 'task', 'someone', 't'), row
    assert len(rows) == len(links)
    restart(place)
    assert len(audit(place)) == len(links)     # once


def test_a_run_that_a_client_waits_for_has_a_row(place):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(place.web.ask, 'POST', '/v1/runs', SLEEP, **place.auth)
        until(lambda: [run for run in place.web.runs() if run['state'] == 'running'])
        restart(place)
        with pytest.raises((http.client.HTTPException, OSError)):
            waiting.result()
    row, = audit(place).values()
    assert row['status'] == 'engine_error' and row['exit_code'] is None and row['code_sha256'], row


def test_a_named_run_is_not_begun_again(place):
    """The client whose answer was lost asks again, and hears what became of it."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(place.web.ask, 'POST', '/v1/runs', SLEEP, Idempotency_Key='n', **place.auth)
        until(lambda: [run for run in place.web.runs() if run['state'] == 'running'])
        restart(place)
        with pytest.raises((http.client.HTTPException, OSError)):
            waiting.result()
    status, headers, record = place.web.ask('POST', '/v1/runs', SLEEP, Idempotency_Key='n', **place.auth)
    assert status == 200 and headers['Idempotency-Replayed'] == 'true' and record['status'] == 'engine_error' and record['error']['message'] == DIED
    assert list(audit(place)) == [record['id']]
    assert place.web.ask('POST', '/v1/runs', {**SLEEP, 'code': 'true'}, Idempotency_Key='n', **place.auth)[0] == 422


def test_a_named_run_that_was_accepted_keeps_its_answer(place):
    link = accept(place, Idempotency_Key='n')
    restart(place)
    status, _, state = place.web.ask('POST', '/v1/runs', SLEEP, Prefer='respond-async', Idempotency_Key='n', **place.auth)
    assert status == 202 and state['url'] == link
    died(place, link)


def test_runs_in_contexts_and_as_streams(place):
    _, _, context = place.web.ask('POST', '/v1/sandboxes', {}, **place.auth)
    _, headers, made = place.web.ask('POST', f'/v1/sandboxes/{context["id"]}/contexts', {'language': 'bash'}, **place.auth)
    link = accept(place, f'/v1/contexts/{made["id"]}/runs', {'code': 'sleep 1000'})
    stream = place.web.stream('POST', '/v1/runs', SLEEP, Accept='text/event-stream', **place.auth)
    restart(place)
    for one in (link, stream.headers['Location']):
        died(place, one)
    assert place.web.ask('GET', f'/v1/sandboxes/{context["id"]}', **place.auth)[0] == 404


def test_submissions_lines_and_runs_of_the_socket_have_rows(place):
    grade = {'language': 'python', 'code': 'import time\ntime.sleep(1000)', 'cases': [{'stdin': '', 'expected_output': ''}]}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = [pool.submit(place.web.ask, 'POST', '/v1/grade', grade, **place.auth),
                 pool.submit(place.web.ask, 'POST', '/v1/runs/bulk', json.dumps(SLEEP) + '\n', **place.auth),
                 pool.submit(place.web.daemon.caisson, 'run', '-l', 'bash', '-c', 'sleep 1000')]
        until(lambda: len([run for run in place.web.runs() if run['state'] == 'running']) >= len(asked))
        restart(place)
    rows = audit(place)
    assert len(rows) == len(asked) and {row['status'] for row in rows.values()} == {'engine_error'}, rows


def test_a_run_that_is_over_stays_as_it_was(place):
    done = place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo hello'}, Idempotency_Key='n', **place.auth)[2]
    link = accept(place, body={'language': 'bash', 'code': 'echo there'})
    until(lambda: place.web.ask('GET', link, **place.auth)[0] == 200)
    restart(place)
    assert place.web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo hello'}, Idempotency_Key='n', **place.auth)[2] == done
    assert place.web.ask('GET', link, **place.auth)[2]['stdout'] == 'there\n'
    assert [row['status'] for row in audit(place).values()] == ['completed', 'completed']
    assert place.web.daemon.stop(signal.SIGTERM) == 0
    assert not list((place.folder / 'running').iterdir())
