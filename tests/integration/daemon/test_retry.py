"""A program that may have begun is not begun again when its supervisor dies, unless its request allows it."""

import concurrent.futures
import json
import os
import signal
import time

import pytest

from daemon import supervisors, until
from web import Web

SLEEP = {'python': 'import time; print("begun", flush=True); time.sleep({})', 'bash': 'echo begun; sleep {}', 'javascript': 'console.log("begun"); await new Promise(go => setTimeout(go, {} * 1000))'}
SILENT = 'import time; time.sleep({})'


@pytest.fixture(name='web', scope='module')
def served(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('retry'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def kill_supervisor(web):
    pid = supervisors(web.daemon.process.pid)[0]
    os.kill(pid, signal.SIGKILL)
    until(lambda: pid not in supervisors(web.daemon.process.pid))


def lost_in_the_middle(web, ask, begun):
    """What `ask` gets if the supervisor is killed when begun() is true."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        until(begun)
        time.sleep(.5)
        kill_supervisor(web)
        return answer.result(60)


def is_running(web):
    return lambda: [run['state'] for run in web.runs()] == ['running']


def check_lost(record):
    error = record['error']
    assert (record['status'], error['code'], error['retryable']) == ('engine_error', 'worker_lost', False), record
    assert 'may have run in part' in error['message'] and 'not begun again (retry=never)' in error['message']


@pytest.mark.parametrize('language', ['python', 'bash', 'javascript'])
@pytest.mark.parametrize('warm', [True, False])
def test_a_run_that_began_is_not_begun_again(web, language, warm):
    if warm:   # instances that wait are used first
        web.run('0' if language != 'bash' else ':', language=language)
    body = {'language': language, 'code': SLEEP[language].format(5), **({} if warm else {'limits': {'disk_files': 77}})}
    status, _, record = lost_in_the_middle(web, lambda: web.ask('POST', '/v1/runs', body), is_running(web))
    assert status == 200
    check_lost(record)


def test_a_run_that_printed_nothing_may_have_begun(web):
    web.run('0', language='python')
    status, _, record = lost_in_the_middle(web, lambda: web.ask('POST', '/v1/runs', {'language': 'python', 'code': SILENT.format(5)}), is_running(web))
    assert status == 200
    check_lost(record)


@pytest.mark.parametrize('code', [SLEEP['python'], SILENT])
def test_a_run_that_is_safe_is_begun_again_once(web, code):
    web.run('0', language='python')
    body = {'language': 'python', 'code': code.format(3) + '; print("end")', 'retry': 'safe'}
    status, _, record = lost_in_the_middle(web, lambda: web.ask('POST', '/v1/runs', body), is_running(web))
    assert (status, record['status']) == (200, 'completed'), record
    assert record['stdout'].count('begun') <= 1 and record['stdout'].endswith('end\n')
    assert [warning['code'] for warning in record['warnings']] == ['retried']


def test_a_safe_run_that_is_lost_twice_is_lost(web):
    body = {'language': 'python', 'code': SILENT.format(30), 'retry': 'safe'}

    def twice():
        return lost_in_the_middle(web, lambda: web.ask('POST', '/v1/runs', body), is_running(web))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(twice)
        until(lambda: supervisors(web.daemon.process.pid) and is_running(web)())
        first = supervisors(web.daemon.process.pid)[0]
        until(lambda: (found := supervisors(web.daemon.process.pid)) and found[0] != first and is_running(web)())
        time.sleep(1)
        kill_supervisor(web)
        _, _, record = answer.result(60)
    assert (record['status'], record['error']['code']) == ('engine_error', 'worker_lost') and 'retry=safe' in record['error']['message'], record


def test_runs_that_wait_are_run_by_the_next_supervisor(tmp_path):
    web = Web(tmp_path, '--set', 'engine.running_max=1')
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        first = pool.submit(web.ask, 'POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1000'})
        until(lambda: [run['state'] for run in web.runs()] == ['running'])
        time.sleep(.5)
        others = [pool.submit(web.ask, 'POST', '/v1/runs', {'language': 'bash', 'code': f'echo {n}'}) for n in range(3)]
        until(lambda: len(web.runs()) == 4)
        kill_supervisor(web)
        check_lost(first.result(60)[2])
        assert sorted(one.result(60)[2]['stdout'] for one in others) == ['0\n', '1\n', '2\n']
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.mark.parametrize('language', ['python', 'bash', 'javascript'])
def test_an_execution_that_began_is_lost_with_its_sandbox(web, language):
    sandbox = web.ask('POST', '/v1/sandboxes', {})[2]['id']
    context = web.ask('POST', f'/v1/sandboxes/{sandbox}/contexts', {'language': language})[2]['id']
    where = f'/v1/contexts/{context}/runs'
    _, headers, _ = web.ask('POST', where, {'code': SLEEP[language].format(5)}, Prefer='respond-async')
    until(lambda: [run['state'] for run in web.runs()] == ['running'])
    _, waiting, _ = web.ask('POST', where, {'code': '1'}, Prefer='respond-async')
    time.sleep(.5)
    kill_supervisor(web)
    record = until(lambda: (answer := web.ask('GET', headers['Location']))[0] == 200 and answer[2])
    assert (record['status'], record['error']['code'], record['error']['retryable']) == ('engine_error', 'worker_lost', False), record
    record = until(lambda: (answer := web.ask('GET', waiting['Location']))[0] == 200 and answer[2])
    assert (record['status'], record['error']['code'], record['error']['retryable']) == ('capacity', 'capacity', True), record


def test_a_line_of_bulk_and_a_kept_run_say_so_too(web):
    line = json.dumps({'language': 'python', 'code': SILENT.format(5)}).encode()
    answer = lost_in_the_middle(web, lambda: web.stream_raw('POST', '/v1/runs/bulk', line).read(), is_running(web))
    check_lost(json.loads(answer)['record'])
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'python', 'code': SILENT.format(5)}, Prefer='respond-async')
    until(is_running(web))
    time.sleep(.5)
    kill_supervisor(web)
    check_lost(until(lambda: (answer := web.ask('GET', headers['Location']))[0] == 200 and answer[2]))


def test_a_submission_that_began_is_not_graded_again(web):
    body = {'language': 'python', 'code': 'import time\nprint("x", flush=True)\ntime.sleep(5)', 'cases': [{'stdin': '', 'expected_stdout': 'x\n'}]}
    status, _, result = lost_in_the_middle(web, lambda: web.ask('POST', '/v1/grade', body), lambda: len(web.runs()) >= 1)
    assert status == 503 and result['mask'] and 'worker_lost' in json.dumps(result), result


@pytest.mark.parametrize('option, status', [((), 'engine_error'), (('--retry', 'safe'), 'completed')])
def test_the_command_line_has_the_option(web, option, status):
    done = lost_in_the_middle(web, lambda: web.daemon.caisson('run', '--json', '-l', 'python', *option, '-c', SILENT.format(4)), is_running(web))
    assert json.loads(done.out)['status'] == status


def test_a_wrong_value_is_named(web):
    status, _, problem = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'retry': 'always'})
    assert status == 422 and problem['field'] == '/retry' and 'safe' in problem['detail']
