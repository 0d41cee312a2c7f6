"""The sandbox of NeMo-Skills: POST /execute with and without a session, GET and DELETE /sessions."""

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon import until
from keys import Keys, bearer
from web import Web


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('nemo'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def execute(web, code, session=None, status=200, headers=None, **more):
    got, _, answer = web.ask('POST', '/execute', {'generated_code': code, 'timeout': 20, **more}, **({'X-Session-ID': session} if session else {}), **(headers or {}))
    assert got == status, answer
    return answer


def done(stdout='', stderr='', status='completed'):
    return {'process_status': status, 'stdout': stdout, 'stderr': stderr}


# ---- programs ----

@pytest.mark.parametrize('language', ['python', 'python3'])
def test_programs_of_python(web, language):
    assert execute(web, 'def f():\n    """Text"""\n    print("asdf")\nf()\n', language=language) == done('asdf\n')
    assert execute(web, 'a = 2', language=language) == done()
    assert execute(web, 'print(input("something "))', language=language, std_input='new') == done('something new\n')
    assert execute(web, 'print(1)\nprint("2x3")', language=language, std_input=None) == done('1\n2x3\n')


def test_a_program_that_fails_is_completed_as_there(web):
    answer = execute(web, '1 / 0', language='python')
    assert answer['process_status'] == 'completed' and answer['stderr'].startswith('Traceback') and answer['stderr'].endswith('ZeroDivisionError: division by zero\n')
    assert 'IndentationError: unexpected indent' in execute(web, 'a = 2\n b = 3', language='python')['stderr']
    assert execute(web, 'import os; os.abort()', language='python')['process_status'] == 'error'


@pytest.mark.parametrize('timeout, text', [(1, '1'), (1.5, '1.5')])
def test_a_program_that_takes_too_long(web, timeout, text):
    assert execute(web, 'print(1, flush=True)\nwhile True: pass', language='python', timeout=timeout) == done('', f'Execution timed out after {text} seconds\n', 'timeout')


def test_shell(web):
    assert execute(web, 'echo "Hello, World!"', language='shell') == done('Hello, World!\n')
    answer = execute(web, "echo 'Hello", language='shell')
    assert answer['process_status'] == 'error' and answer['stdout'] == '' and 'unexpected EOF while looking for matching' in answer['stderr']
    assert execute(web, 'exit 3', language='shell')['process_status'] == 'error'


@pytest.mark.parametrize('language', ['lean4', 'pypy3', 'cobol', ''])
def test_languages_that_are_not_here_are_told_in_words(web, language):
    answer = execute(web, '1', language=language)
    assert answer['process_status'] == 'error' and answer['stdout'] == '' and 'is not here' in answer['stderr'] and 'new_session_created' not in answer


def test_streams_are_cut(web):
    answer = execute(web, 'import sys; print("ä" * 5000); print("b" * 5000, file=sys.stderr)', language='python')
    assert answer['stdout'] == 'ä' * 1000 + '<output cut>' and answer['stderr'] == 'b' * 1000 + '<output cut>'
    assert execute(web, 'print("ä" * 5000)', language='python', max_output_characters=6000)['stdout'] == 'ä' * 5000 + '\n'
    assert execute(web, 'print("abc")', language='python', max_output_characters=0)['stdout'] == '<output cut>'
    assert execute(web, 'print("a\\0b" * 10)', language='python', max_output_characters=2)['stdout'] == 'a\0<output cut>'


# ---- ipython ----

def test_a_cell_prints_its_value_and_its_error(web):
    def cell(code, **more):
        answer = execute(web, code, 'shapes', **more)
        assert isinstance(answer.pop('new_session_created'), bool)
        return answer
    assert cell('print("asdf")') == done('asdf\n') and cell('a = 2') == done()
    assert cell('a = 1\na') == done('1\n') and cell('"text"') == done("'text'\n") and cell('print(1)\n2 + 3') == done('1\n5\n') and cell('None') == done()
    assert cell('1 / 0') == done('Traceback (most recent call last):\n    1 / 0\nZeroDivisionError: division by zero\n', status='error')
    assert cell('1 / 0', traceback_verbosity='Minimal') == done('ZeroDivisionError: division by zero\n', status='error')
    assert cell('a = 2\n b = 3')['stdout'].endswith('IndentationError: unexpected indent\n')
    assert cell('import sys; print("\\x1b[31mred\\x1b[0m\\n\\n"); print("e", file=sys.stderr)') == done('red\n', 'e\n')


def test_a_cell_without_a_session_is_refused_as_there(web):
    assert execute(web, '1') == done('', 'X-Session-ID header required for ipython sessions\n', 'error')


def test_a_session_keeps_its_variables(web):
    first = execute(web, 'a = 41', 'keeps')
    assert first == {**done(), 'new_session_created': True}
    assert execute(web, 'a += 1', 'keeps') == {**done(), 'new_session_created': False}
    assert execute(web, 'a', 'keeps') == {**done('42\n'), 'new_session_created': False}
    assert execute(web, 'a', 'other')['process_status'] == 'error'
    assert execute(web, 'a', session_id='keeps') == {**done('42\n'), 'new_session_created': False}     # clients of before the header


def test_a_session_that_was_deleted_is_new(web):
    assert execute(web, 'a = 1', 'gone')['new_session_created']
    assert web.ask('DELETE', '/sessions/gone')[::2] == (200, {'message': 'IPython session gone deleted successfully'})
    answer = execute(web, 'a', 'gone')
    assert answer['new_session_created'] and answer['process_status'] == 'error' and "NameError: name 'a' is not defined" in answer['stdout']
    assert web.ask('DELETE', '/sessions/none')[::2] == (404, {'error': 'IPython session none not found'})


def test_a_session_after_a_crash_and_after_a_time_out(web):
    assert execute(web, 'a = 1', 'crash')['new_session_created']
    assert execute(web, 'import os; os._exit(3)', 'crash')['process_status'] == 'error'
    assert execute(web, 'a', 'crash')['new_session_created'] and not execute(web, 'b = 1', 'crash')['new_session_created']
    late = execute(web, 'print("begun", flush=True)\nimport time\nwhile True: time.sleep(0.1)', 'crash', timeout=1)
    assert (late['process_status'], late['stdout'], late['stderr'], late['new_session_created']) == ('timeout', 'begun\n', 'Execution timed out after 1 seconds\n', False)
    assert execute(web, 'b', 'crash') == {**done('1\n'), 'new_session_created': False}      # it was interrupted, and lives


def test_a_session_whose_interpreter_had_to_be_killed_is_new(web):
    assert execute(web, 'b = 1', 'deaf')['new_session_created']
    code = 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass'
    assert execute(web, code, 'deaf', timeout=1)['process_status'] == 'timeout'
    answer = execute(web, 'b', 'deaf')
    assert answer['new_session_created'] and answer['process_status'] == 'error', answer


def test_executions_of_a_session_wait_for_each_other(web):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: execute(web, f'try:\n    n += 1\nexcept NameError:\n    n = 1\n', 'queue'), range(8)))
    assert all(answer['process_status'] == 'completed' for answer in answers) and any(answer['new_session_created'] for answer in answers)
    assert execute(web, 'n', 'queue')['stdout'] == '8\n'


def test_sessions_are_listed(web):
    before = time.time()
    execute(web, '1', 'listed')
    answer = web.ask('GET', '/sessions')[2]
    one = answer['sessions']['listed']
    assert answer['backend'] == one['backend'] == 'ipython' and one['alive'] and before - 60 < one['created'] <= one['last_used'] <= time.time() + 1


def test_health(web):
    assert web.ask('GET', '/health')[0] == 200


# ---- what is wrong ----

@pytest.mark.parametrize('body, words', [
    ({}, 'generated_code'), ({'generated_code': 1}, 'generated_code'), ({'generated_code': '', 'timeout': 'x'}, 'timeout'), ({'generated_code': '', 'language': 1}, 'language'),
    ({'generated_code': '', 'std_input': 1}, 'std_input'), ({'generated_code': '', 'max_output_characters': []}, 'max_output_characters'), ({'generated_code': '', 'traceback_verbosity': 1}, 'traceback_verbosity'),
    ({'generated_code': '', 'session_id': 1}, 'session_id'), ({'generated_code': 'x' * (1 << 20) + 'x'}, 'code')])
def test_members_of_the_wrong_type_are_told_in_words(web, body, words):
    status, _, answer = web.ask('POST', '/execute', body)
    assert status == 400 and answer['process_status'] == 'error' and answer['stdout'] == '' and words in answer['stderr'], answer


@pytest.mark.parametrize('body', [b'', b'{', b'[]', b'[' * 100000, b'\0'])
def test_hostile_bodies(web, body):
    status, _, answer = web.ask('POST', '/execute', body)
    assert status == 400 and answer['process_status'] == 'error', answer


@pytest.mark.parametrize('session', ['x' * 201, '\xff'])
def test_ids_of_sessions(web, session):
    status, _, problem = web.ask('POST', '/execute', {'generated_code': '1'}, **{'X-Session-ID': session})
    assert status == 400 and problem['field'] == 'X-Session-ID', problem


# ---- who asks ----

def test_sessions_belong_to_tenants_and_need_a_scope(tmp_path):
    keys = Keys(tmp_path)
    one, other = (keys.make(name, '--tenant', name, '--scopes', 'run,sandboxes') for name in ('one', 'other'))
    run, read = keys.make('run', '--tenant', 'one', '--scopes', 'run'), keys.make('read', '--tenant', 'one', '--scopes', 'read')
    web = Web(tmp_path, keyless=False)
    ask = {'generated_code': 'a = 1', 'language': 'python'}
    assert [web.ask('POST', '/execute', ask, **(bearer(key) if key else {}))[0] for key in (None, read, run)] == [401, 403, 200]
    cell = {'generated_code': 'a = 1'}
    assert [web.ask('POST', '/execute', cell, **bearer(key), **{'X-Session-ID': 's'})[0] for key in (run, one)] == [403, 200]
    assert web.ask('POST', '/execute', {'generated_code': 'a'}, **bearer(other), **{'X-Session-ID': 's'})[2]['process_status'] == 'error'
    assert list(web.ask('GET', '/sessions', **bearer(one))[2]['sessions']) == ['s'] and web.ask('DELETE', '/sessions/s', **bearer(other))[0] == 200
    assert web.ask('DELETE', '/sessions/s', **bearer(other))[0] == 404 and web.ask('POST', '/execute', {'generated_code': 'a'}, **bearer(one), **{'X-Session-ID': 's'})[2]['stdout'] == '1\n'
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_an_idle_session_ends_and_its_next_one_is_new(tmp_path):
    web = Web(tmp_path, '--set', 'sessions.idle=1s')
    assert execute(web, 'a = 1', 's')['new_session_created']
    until(lambda: not web.ask('GET', '/sessions')[2]['sessions'], 30)
    assert execute(web, 'a', 's')['new_session_created']
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_client_that_goes(web):
    connection = web.open()
    connection.request('POST', '/execute', json.dumps({'generated_code': 'import time\ntime.sleep(100)', 'timeout': 100, 'language': 'python'}))
    until(web.runs)
    connection.close()
    until(lambda: not web.runs())


def test_a_daemon_that_ends(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=1s')
    answers = []
    ask = {'generated_code': 'import time\ntime.sleep(100)', 'timeout': 100, 'language': 'python'}
    thread = threading.Thread(target=lambda: answers.append(web.ask('POST', '/execute', ask)))
    thread.start()
    until(web.runs)
    assert web.daemon.stop(signal.SIGTERM) == 0
    thread.join()
    assert answers[0][2]['process_status'] == 'error' and 'cancelled' in answers[0][2]['stderr'], answers
