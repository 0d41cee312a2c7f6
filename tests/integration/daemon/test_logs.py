"""The daemon's log: its lines, the file that they are kept in, caisson logs and GET /v1/logs."""

import contextlib
import json
import os
import re
import select
import signal
import stat
import subprocess

import pytest

from cli import CAISSON, caisson, environment
from daemon import Daemon, until
from web import Web

TRACE = '0af7651916cd43dd8448eb211c80319c'
PARENT = f'00-{TRACE}-b7ad6b7169203331-00'
SECRET = 'do-not-log-this'


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('logs'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


def logs(web, *words):
    done = caisson('logs', '--json', *web.state, *words)
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


# ---- lines ----

def test_a_line_says_what_it_is_about(tmp_path):
    web = Web(tmp_path)
    body = {'language': 'python', 'code': f'print({SECRET!r})', 'stdin': SECRET, 'env': {'TOKEN': SECRET}, 'task_id': 't'}
    _, _, record = web.ask('POST', '/v1/runs', body, traceparent=PARENT, X_Request_Id='mine')
    bulk = web.stream_raw('POST', '/v1/runs/bulk', b'{"language": "bash", "code": "exit 3"}\n', **{'X-Request-Id': 'many'}).read()
    web.daemon.caisson('run', '-l', 'bash', '-c', 'true')
    lines = until(lambda: (lambda found: len([1 for line in found if 'run_id' in line]) == 3 and found)(logs(web)))
    told = [json.loads(line) for line in web.log.read_text().splitlines()]
    told = told[told.index(lines[0]):]      # what came before the file was open is on standard error alone
    assert [line for line in lines if line in told] == told
    run, answer, failed, socket = (next(line for line in lines if all(line.get(name) == value for name, value in wanted.items())) for wanted in (
        {'run_id': record['id']}, {'request_id': 'mine', 'text': next(line['text'] for line in lines if 'runs answered' in line['text'])},
        {'run_id': json.loads(bulk)['record']['id']}, {'owner': f'uid:{os.getuid()}'}))
    assert run.items() >= {'level': 'info', 'request_id': 'mine', 'trace_id': TRACE, 'owner': 'local'}.items() and run['text'].startswith('completed: python, ')
    assert answer['text'].startswith('POST /v1/runs answered with 200 after ') and answer['trace_id'] == TRACE and 'run_id' not in answer
    assert failed['request_id'] == 'many' and failed['text'].startswith('failed: bash, ') and failed['trace_id'] != TRACE
    assert re.fullmatch('run_[0-9a-f]{32}', socket['run_id']) and 'request_id' not in socket and 'trace_id' not in socket
    assert all(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', line['time']) for line in lines)
    assert SECRET not in json.dumps(lines) and 'print' not in json.dumps(lines)
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_text_for_people(tmp_path):
    web = Web(tmp_path, '--set', 'engine.log_format=text')
    record = web.run('true')
    web.daemon.stop(signal.SIGTERM)
    lines = web.log.read_text().splitlines()
    assert all(re.match(r'\d{4}-\d\d-\d\dT\S+Z (error|warn |info |debug) \S', line) for line in lines), lines
    line = next(line for line in lines if record['id'] in line)
    assert re.search(rf' info  completed: bash, .* request_id=req_\w+ trace_id=\w+ run_id={record["id"]} owner=local$', line)
    assert any(line.get('run_id') == record['id'] for line in logs(web))     # the file has JSON all the same


def test_the_file_has_what_standard_error_has_not(tmp_path):
    web = Web(tmp_path)
    assert web.daemon.stop(signal.SIGTERM) == 0
    before = len(web.log.read_text().splitlines())
    daemon = Daemon(tmp_path, *web.state, '--set', 'engine.log_level=error').ready()
    assert daemon.stop(signal.SIGTERM) == 0
    assert len(web.log.read_text().splitlines()) == before
    assert [line['text'] for line in logs(web)][-1] == 'the daemon has ended'
    assert stat.S_IMODE((tmp_path / 'caissond.log').stat().st_mode) == 0o600


def test_it_grows_up_to_a_ceiling(tmp_path):
    web = Web(tmp_path, '--set', 'engine.log_bytes=40000')
    for number in range(400):
        web.ask('GET', '/healthz', X_Request_Id=f'r{number}')
    now, old = (tmp_path / 'caissond.log').stat().st_size, (tmp_path / 'caissond.log.1').stat().st_size
    assert 0 < now <= 20000 and 15000 < old <= 20000
    numbers = [int(line['request_id'][1:]) for line in logs(web, '-n', '1000') if line.get('request_id', '').startswith('r')]
    assert numbers == list(range(numbers[0], 400)) and 100 < len(numbers) < 400
    assert [line['request_id'] for line in logs(web, '-n', '3')] == ['r397', 'r398', 'r399']
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_none_is_kept_where_none_is_wanted(tmp_path):
    web = Web(tmp_path, '--set', 'engine.log_bytes=0')
    web.run('true')
    done = caisson('logs', *web.state)
    assert done.status == 64 and 'engine.log_bytes' in done.err and str(tmp_path) in done.err and not (tmp_path / 'caissond.log').exists()
    status, _, problem = web.ask('GET', '/v1/logs')
    assert (status, problem['code']) == (404, 'not_found')
    assert web.daemon.stop(signal.SIGTERM) == 0


def test_a_daemon_works_without_its_log(tmp_path):
    (tmp_path / 'caissond.log').symlink_to('/dev/null')
    web = Web(tmp_path)
    assert web.run('echo on')['stdout'] == 'on\n' and 'no log is kept: ' in web.log.read_text()
    assert web.daemon.stop(signal.SIGTERM) == 0


# ---- caisson logs ----

@pytest.fixture(name='some', scope='module')
def filled(tmp_path_factory):
    """A log that is known, with what a foreign hand could have put into it."""
    folder = tmp_path_factory.mktemp('some')
    rows = [{'level': 'info', 'text': 'one', 'run_id': 'run_1', 'owner': 'a', 'request_id': 'r', 'trace_id': TRACE},
            {'level': 'warn', 'text': 'two \x1b[2J "run_id":"run_1"', 'owner': 'b'}, {'level': 'error', 'text': 'three', 'run_id': 'run_2'},
            {'level': 'debug', 'text': 'four'}]
    text = ''.join(json.dumps({'time': '2026-11-21T10:00:00.000Z', **row}, separators=(',', ':'), ensure_ascii=True).replace('\\"', '\\u0022') + '\n' for row in rows)
    (folder / 'caissond.log.1').write_text(text[:text.index('\n') + 1])
    (folder / 'caissond.log').write_text(text[text.index('\n') + 1:] + '{"time": "half')

    class Some:
        state = ['--set', f'engine.state_dir={folder}']
    return Some


@pytest.mark.parametrize('words, found', [
    ([], 'one two three four'), (['-n', '2'], 'three four'), (['-n', '0'], ''), (['--level', 'warn'], 'two three'), (['--level', 'error'], 'three'),
    (['--level', 'info'], 'one two three'), (['--run', 'run_1'], 'one'), (['--run', 'run_'], ''), (['--request', 'r'], 'one'), (['--trace', TRACE], 'one'),
    (['--owner', 'b'], 'two'), (['--owner', 'b', '--run', 'run_1'], ''), (['--run', '"'], ''), (['-n', '1', '--level', 'info'], 'three'),
    (['--run', 'x' * 1000], '')])
def test_lines_are_chosen(some, words, found):
    assert ' '.join(line['text'].split()[0] for line in logs(some, *words)) == found


def test_lines_for_people(some):
    done = caisson('logs', *some.state)
    assert done.out.splitlines() == [
        f'2026-11-21T10:00:00.000Z info  one owner=a run_id=run_1 request_id=r trace_id={TRACE}',
        '2026-11-21T10:00:00.000Z warn  two \\x1b[2J "run_id":"run_1" owner=b', '2026-11-21T10:00:00.000Z error three run_id=run_2',
        '2026-11-21T10:00:00.000Z debug four']


@pytest.mark.parametrize('words, text', [(['--level', 'loud'], 'error, warn, info or debug'), (['-n', 'x'], '--lines'), (['-n', '10001'], '10000'),
                                         (['more'], 'unknown argument more')])
def test_a_wrong_question_is_refused(some, words, text):
    done = caisson('logs', *some.state, *words)
    assert done.status == 64 and text in done.err and done.out == ''


def test_it_waits_for_more_across_files(tmp_path):
    web = Web(tmp_path, '--set', 'engine.log_bytes=40000')
    with subprocess.Popen([CAISSON, 'logs', '--json', '-f', '-n', '0', *web.state], env=environment(), stdout=subprocess.PIPE) as reader:
        with contextlib.ExitStack() as stack:
            stack.callback(reader.kill)
            # It is there when the first line comes through.
            until(lambda: web.ask('GET', '/healthz', X_Request_Id='first') and select.select([reader.stdout], [], [], 0.3)[0])
            for number in range(150):
                web.ask('GET', '/healthz', X_Request_Id=f'r{number}')
            seen = []
            for line in reader.stdout:
                seen.append(json.loads(line).get('request_id'))
                if seen[-1] == 'r149':
                    break
    assert [one for one in seen if one not in ('first', None)] == [f'r{number}' for number in range(150)]
    assert (tmp_path / 'caissond.log.1').exists() and web.daemon.stop(signal.SIGTERM) == 0


# ---- GET /v1/logs ----

def test_the_log_over_http(web):
    record = web.run('true')
    status, headers, text = web.ask('GET', f'/v1/logs?run={record["id"]}')
    assert status == 200 and headers['Content-Type'] == 'application/x-ndjson'
    assert [json.loads(line)['run_id'] for line in text.splitlines()] == [record['id']]
    for number in range(5):
        web.ask('GET', '/healthz', X_Request_Id=f'h{number}')
    lines = [json.loads(line).get('request_id') for line in web.ask('GET', '/v1/logs?n=2&level=info')[2].splitlines()]
    assert lines == ['h3', 'h4']
    for query, field in (('n=0', 'n'), ('n=x', 'n'), ('n=-1', 'n'), ('n=10001', 'n'), ('n=', 'n'), ('level=loud', 'level')):
        status, _, problem = web.ask('GET', f'/v1/logs?{query}')
        assert (status, problem['field']) == (422, field)


def test_the_log_is_for_who_may_everything(tmp_path):
    def key(scopes):
        done = caisson('keys', 'create', '--name', 'k', '--scopes', scopes, '--set', f'engine.state_dir={tmp_path}')
        assert done.status == 0, done.err
        return {'Authorization': f'Bearer {done.out.strip()}'}
    most, admin = key('run,check,read,files,sandboxes,metrics'), key('admin')
    web = Web(tmp_path, keyless=False)
    assert web.ask('GET', '/v1/logs')[0] == 401 and web.ask('GET', '/v1/logs', **most)[0] == 403
    status, _, text = web.ask('GET', '/v1/logs', **admin)
    assert status == 200 and text
    assert all(one['Authorization'].split()[1].encode() not in web.ask('GET', '/v1/logs?n=10000', **admin)[2] for one in (most, admin))
    assert web.daemon.stop(signal.SIGTERM) == 0
