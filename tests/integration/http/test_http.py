"""The HTTP interface of caissond, from the outside, with nothing but Python's standard library."""

import concurrent.futures
import json
import re
import signal
import socket
import time

import jsonschema
import pytest

from cli import ROOT, caisson
from daemon import Daemon, until
from web import KEYLESS, Web

@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    web = Web(tmp_path_factory.mktemp('http'))
    yield web
    assert web.daemon.stop(signal.SIGTERM) == 0


@pytest.fixture(scope='module', name='description')
def description_of(web):
    return web.ask('GET', '/openapi.json')[2]


def events_of(answer):
    """The events of a text/event-stream, as (id, type, data)."""
    found, one = [], {}
    for line in answer:
        line = line.decode().rstrip('\n')
        if not line and one:
            found.append((int(one.get('id', 0)), one['event'], json.loads(one['data'])))
            one = {}
        elif line and not line.startswith(':'):
            name, value = line.split(': ', 1)
            one[name] = value
    return found


# ---- runs that are waited for ----

def test_a_run_is_answered_with_its_record(web):
    record = web.run('echo out; echo err >&2; exit 3')
    assert (record['status'], record['exit_code'], record['stdout'], record['stderr']) == ('failed', 3, 'out\n', 'err\n')
    jsonschema.validate(record, json.loads(caisson('schema', 'result').out))


def test_the_record_is_that_of_the_command_line(web):
    code = 'print(1)\n[1, {"a": (2, 3)}]'
    here = json.loads(web.daemon.caisson('run', '--json', '-l', 'python', '-c', code).out)
    there = web.run(code, 'python')
    for name in ('id', 'usage', 'timings', 'stages', 'started_at', 'finished_at'):
        here.pop(name), there.pop(name)
    here['boundary'].pop('host_uid'), there['boundary'].pop('host_uid')
    assert here == there


def test_a_program_that_fails_is_an_answer_and_a_wrong_request_is_none(web):
    assert web.run('kill -9 $$')['status'] == 'crashed'
    status, headers, problem = web.ask('POST', '/v1/runs', {'language': 'cobol', 'code': 'x'})
    assert status == 200 and problem['status'] == 'unsupported_language'   # it has a record, as everywhere
    assert headers['Content-Type'] == 'application/json'


@pytest.mark.parametrize('body, field', [
    (b'', ''), (b'{', ''), (b'[]', ''), (b'"x"', ''), (b'{"language": "bash"} x', ''), (b'\xff', ''), (b'{"codes": "x"}', '/codes'),
    (b'{"language": 1}', '/language'), (b'{"language": "bash", "limits": {"wall_ms": "x"}}', '/limits/wall_ms'),
    (b'{"language": "bash", "language": "bash"}', ''), (b'[' * 100000, '')], ids=range(11))
def test_a_body_that_is_no_request_is_a_problem(web, body, field):
    status, headers, problem = web.ask('POST', '/v1/runs', body)
    assert status == 422 and headers['Content-Type'] == 'application/problem+json'
    assert (problem['status'], problem['code'], problem['retryable'], problem.get('field', '')) == (422, 'bad_request', False, field)
    assert problem['detail'] == problem['message'] and problem['title'] and problem['instance'] == '/v1/runs'
    assert problem['request_id'] == headers['X-Request-Id']


@pytest.mark.parametrize('body, field', [
    ({'language': 'bash'}, '/code'), ({}, '/code'), ({'code': 'x'}, '/language'), ({'code': 'x', 'name': 'notes.txt'}, '/language'),
    ({'code': None, 'language': 'bash'}, '/code'), ({'code': 'x', 'language': None}, '/language'), ({'code': 'x', 'profile': 'data'}, '/language')])
@pytest.mark.parametrize('headers', [{}, {'Accept': 'application/x-ndjson'}, {'Prefer': 'respond-async'}], ids=['waiting', 'events', 'later'])
def test_a_run_without_a_program_or_a_language_is_no_request(web, body, field, headers):
    status, answered, problem = web.ask('POST', '/v1/runs', body, **headers)
    problem = json.loads(problem) if isinstance(problem, bytes) else problem
    assert (status, problem['code'], problem['field']) == (422, 'bad_request', field)
    assert answered['Content-Type'] == 'application/problem+json'


def test_a_name_or_a_profile_may_tell_the_language(web, tmp_path):
    assert web.run(language=None, code='print(1)', name='x.py')['stdout'] == '1\n'
    assert web.ask('POST', '/v1/runs', {'code_base64': 'ZWNobyAx', 'language': 'sh'})[2]['stdout'] == '1\n'
    (tmp_path / 'shell.yaml').write_text('language: bash\n')
    other = Web(tmp_path, '--set', f'engine.profiles_dir={tmp_path}', '--set', 'engine.profile=shell')
    assert other.ask('POST', '/v1/runs', {'code': 'echo $0'})[2]['language'] == 'bash'
    assert other.daemon.stop(signal.SIGTERM) == 0


def texts_of(value):
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts_of(one)]
    return [text for one in value for text in texts_of(one)] if isinstance(value, list) else [value] if isinstance(value, str) else []


LIMITED = [('while True: pass', {'wall_ms': 300}), ('while True: pass', {'cpu_ms': 300}), ('x = bytearray(1 << 30)', {'memory_bytes': 100 << 20}),
           ('open("f", "wb").write(bytes(1 << 21))', {'disk_bytes': 1 << 20}), ('for n in range(99): open(str(n), "w")', {'disk_files': 20}),
           ('import os, time\nfor n in range(99): os.fork() or (time.sleep(9), os._exit(0))', {'pids': 8}),
           ('print("x" * 99)', {'output_bytes': 9, 'output_action': 'kill'}), ('print("x" * 99)', {'output_bytes': 9}), ('"x" * 999', {'value_bytes': 99}),
           ('for n in range(9): open(str(n), "w")', {'output_files': 2}), ('import os, time; os.fork() or time.sleep(9)', {'background_ms': 0})]
WRONG = [{'files': [{'name': 'f', 'content': 'x' * 99}], 'limits': {'input_bytes': 9}}, {'files': [{'name': 'f', 'content': 'x' * 9999}], 'limits': {'disk_bytes': 65536}},
         {'files': [{'name': 'main.py', 'content': ''}]}, {'allow': ['example.org']}, {'network': 'allow'}, {'backend': 'host'}, {'backend': 'x'},
         {'profile': 'x'}, {'policy': 'x'}, {'limits': {'wall_ms': 0}}, {'limits': {'memory_bytes': 1 << 40}}, {'name': 'a/b'}, {'work_dir': '/tmp'},
         {'context': 'x'}, {'workspace': '../x'}, {'tools': {'allow': ['nothing.*']}}, {'env': {'LD_PRELOAD': 'x'}}, {'exports': [{'pattern': '*', 'path': '/tmp'}]},
         {'files': [{'name': str(n), 'content': ''} for n in range(40)], 'limits': {'disk_files': 16}}]


@pytest.mark.parametrize('request_', [{'code': code, 'limits': limits} for code, limits in LIMITED] + [{'code': 'print(1)', **wrong} for wrong in WRONG]
                         + [{'code': None}, {'language': None}, {'language': 'cobol'}], ids=range(len(LIMITED) + len(WRONG) + 3))
def test_no_answer_has_the_words_of_the_command_line(web, request_):
    _, _, answer = web.ask('POST', '/v1/runs', {'language': 'python', 'code': 'print(1)', **request_})
    said = [text for name, part in answer.items() if name not in ('stdout', 'stderr', 'instance') for text in texts_of(part)]
    assert said and not [text for text in said if re.search(r'(^|[ ("`])--?[a-z]|CAISSON_|\bcaisson [a-z]', text)], answer


def test_paths_of_the_host_are_not_for_those_who_come_from_outside(web):
    record = web.run('cat x', files=[{'path': '/etc/shadow', 'name': 'x'}])
    assert record['status'] == 'bad_request' and record['error']['field'].startswith('/files')
    assert web.run('true', work_dir='/tmp')['status'] == 'bad_request'
    assert web.run('true', backend='host')['status'] == 'bad_request'


def test_many_at_once(web):
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        records = list(pool.map(lambda n: web.run(f'echo {n}'), range(200)))
    assert [record['stdout'] for record in records] == [f'{n}\n' for n in range(200)]


def test_one_connection_serves_many_requests(web):
    connection = web.open()
    for number in range(50):
        connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': f'echo {number}'}))
        assert json.loads(connection.getresponse().read())['stdout'] == f'{number}\n'
    connection.request('GET', '/nothing')
    assert connection.getresponse().read()
    connection.request('GET', '/healthz')
    assert json.loads(connection.getresponse().read())['status'] == 'ok'


def test_a_client_that_goes_ends_its_run(web):
    connection = web.open()
    connection.request('POST', '/v1/runs', json.dumps({'language': 'bash', 'code': 'sleep 1000'}))
    until(web.runs)
    connection.close()
    until(lambda: not web.runs())


def test_a_chunked_body(web):
    body = json.dumps({'language': 'bash', 'code': 'echo chunks'}).encode()
    connection = web.open()
    connection.request('POST', '/v1/runs', iter([body[:7], body[7:20], body[20:]]), {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
    assert json.loads(connection.getresponse().read())['stdout'] == 'chunks\n'


# ---- runs that are asked for later ----

def test_a_run_may_be_asked_for_later(web):
    status, headers, state = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 2; echo later'}, Prefer='respond-async')
    assert status == 202 and headers['Preference-Applied'] == 'respond-async' and headers['Location'] == state['url']
    assert web.ask('GET', state['url'])[0] == 202
    assert state['id'] in [one['id'] for one in web.ask('GET', '/v1/runs')[2]['runs']]
    record = until(lambda: (lambda got: got[0] == 200 and got[2])(web.ask('GET', state['url'])))
    assert (record['id'], record['stdout']) == (state['id'], 'later\n')
    assert web.ask('DELETE', state['url'])[0] == 204
    assert web.ask('GET', state['url'])[0] == 404 and web.ask('DELETE', state['url'])[0] == 404


def test_a_run_can_be_ended(web):
    _, _, state = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'echo before; sleep 1000'}, Prefer='wait=1, respond-async')
    until(lambda: any(run['state'] == 'running' for run in web.runs()))
    assert web.ask('DELETE', state['url'])[0] == 202
    record = until(lambda: (lambda got: got[0] == 200 and got[2])(web.ask('GET', state['url'])))
    assert record['status'] == 'cancelled'


@pytest.mark.parametrize('path', ['/v1/runs/nothing', '/v1/runs/nothing/events', '/v1/profiles/nothing', '/v1/policies/nothing', '/v1', '/', '/v1/runs/',
                                  '/v1/runs/a/b'])
def test_what_is_not_there_is_a_problem(web, path):
    status, _, problem = web.ask('GET', path)
    assert (status, problem['code']) == (404, 'not_found')


# ---- streams ----

SLOW = {'language': 'bash', 'code': 'for i in 1 2 3; do echo $i; sleep .2; done; echo e >&2'}


def test_events_come_as_they_happen(web):
    code = 'echo 1; sleep 3; echo 2; sleep .2; echo 3; echo e >&2'
    answer = web.stream('POST', '/v1/runs', {'language': 'bash', 'code': code}, Accept='text/event-stream')
    assert answer.status == 200 and answer.headers['Content-Type'] == 'text/event-stream'
    first = [answer.readline() for _ in range(7)]
    assert b'"1\\n"' in b''.join(first) and web.runs()
    rest = events_of(answer)
    assert ''.join(data['text'] for _, kind, data in rest if kind == 'stdout') == '2\n3\n'
    assert rest[-1][1] == 'end' and rest[-1][2]['record']['stderr'] == 'e\n'


def test_lines_for_machines(web):
    answer = web.stream('POST', '/v1/runs', SLOW, Accept='application/x-ndjson')
    lines = [json.loads(line) for line in answer if line.strip()]
    assert lines[0]['type'] == 'start' and lines[-1]['type'] == 'end'
    for stream, text in (('stdout', '1\n2\n3\n'), ('stderr', 'e\n')):     # of two lines that come at once one event is made
        assert ''.join(line['text'] for line in lines if line['type'] == stream) == text
    assert lines[-1]['record']['id'] == lines[0]['id']


def test_a_stream_goes_on_where_it_was_left(web):
    answer = web.stream('POST', '/v1/runs', SLOW, Accept='text/event-stream')
    where = answer.headers['Location']
    seen = b''
    while b'id: 2' not in seen:
        seen += answer.readline()
    answer.close()
    rest = events_of(web.stream('GET', where + '/events', Last_Event_ID='2'))
    assert [number for number, _, _ in rest] == list(range(3, 3 + len(rest))) and rest[-1][1] == 'end'
    again = events_of(web.stream('GET', where + '/events?after=0'))
    assert [number for number, _, _ in again] == list(range(1, 1 + len(again))) and again[-len(rest):] == rest
    assert web.ask('GET', where)[0] == 200


def test_two_may_watch_one_run(web):
    _, headers, _ = web.ask('POST', '/v1/runs', SLOW, Prefer='respond-async')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: events_of(web.stream('GET', headers['Location'] + '/events')), range(2))
    assert one == two and one[-1][1] == 'end'


@pytest.mark.parametrize('last', ['x', '-1', '1.5', ''])
def test_an_event_that_is_no_number(web, last):
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}, Prefer='respond-async')
    assert web.ask('GET', headers['Location'] + f'/events?after={last}')[0] == 422


def test_characters_are_not_cut_and_bytes_are_kept(web):
    code = r'printf "\xc3"; sleep .2; printf "\xa9\xff"; sleep .2; printf "\xe2\x82"'
    lines = [json.loads(line) for line in web.stream('POST', '/v1/runs', {'language': 'bash', 'code': code}, Accept='application/x-ndjson') if line.strip()]
    out = [line for line in lines if line['type'] == 'stdout']
    assert [line['text'] for line in out] == ['é�', '��'] and [line['base64'] for line in out] == ['w6n/', '4oI=']


def test_who_reads_slowly_misses_what_is_oldest_and_is_told(web):
    code = 'head -c 30000000 /dev/zero | tr "\\0" x | fold -w 1000'
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, 'limits': {'wall_ms': 30000}}, Prefer='respond-async')
    until(lambda: web.ask('GET', headers['Location'])[0] == 200)
    lines = [json.loads(line) for line in web.stream('GET', headers['Location'] + '/events', Accept='application/x-ndjson') if line.strip()]
    assert lines[0]['type'] == 'lost' and lines[0]['events'] > 0 and lines[-1]['type'] == 'end'
    assert lines[-1]['record']['truncated']['stdout_total_bytes'] == 30029999


def test_a_record_that_is_long_has_to_be_asked_for(web):
    code = 'head -c 3000000 /dev/zero | tr "\\0" x'
    _, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, 'limits': {'output_bytes': 4000000}}, Prefer='respond-async')
    lines = [json.loads(line) for line in web.stream('GET', headers['Location'] + '/events', Accept='application/x-ndjson') if line.strip()]
    assert lines[-1] == {'type': 'end', 'record': None}
    assert len(web.ask('GET', headers['Location'])[2]['stdout']) == 3000000


# ---- many over one connection ----

def bulk(web, lines, **headers):
    body = ''.join((line if isinstance(line, str) else json.dumps(line)) + '\n' for line in lines).encode()
    answer = web.stream_raw('POST', '/v1/runs/bulk', body, **headers)
    assert answer.status == 200 and answer.headers['Content-Type'] == 'application/x-ndjson'
    return [json.loads(line) for line in answer]


def test_a_line_a_run(web):
    lines = bulk(web, [{'id': f'n{n}', 'language': 'bash', 'code': f'echo {n}'} for n in range(300)])
    assert {line['id']: line['record']['stdout'] for line in lines} == {f'n{n}': f'{n}\n' for n in range(300)}
    assert {line['line'] for line in lines} == set(range(1, 301))


def test_a_line_whose_text_is_cut_in_a_character_is_told_what_is_wrong(web):
    lines = [b'{"s":"\\ud\xc2\x84\xdd\x8c\xdd\xc5"}', b'{"a' + 'é'.encode() * 100 + b'":1}', b'{"env":{"a' + 'é'.encode() * 100 + b'":1}}']
    status, _, answer = web.ask('POST', '/v1/runs/bulk', b'\n'.join(lines))
    errors = [json.loads(line)['error'] for line in answer.splitlines()]
    assert status == 200 and [error['code'] for error in errors] == ['bad_request'] * 3
    assert 'invalid escape' in errors[0]['message'] and errors[2]['field'].startswith('/env/aéé')


def test_lines_that_are_no_requests_are_answered_too(web):
    lines = bulk(web, ['{', '', '[]', '   ', {'id': 7, 'language': 'bash', 'code': 'echo 7'}, {'id': 'x', 'codes': 1}, {'id': {}, 'code': 'x'},
                       {'language': 'bash', 'code': 'true'}, {'id': 'y' * 300, 'code': 'x'}, '{"id": "a", "id": "b"}'])
    by_line = {line['line']: line for line in lines}
    assert set(by_line) == {1, 3, 5, 6, 7, 8, 9, 10}
    assert by_line[5]['id'] == 7 and by_line[5]['record']['stdout'] == '7\n' and 'id' not in by_line[8]
    assert (by_line[6]['id'], by_line[6]['error']['field']) == ('x', '/codes')
    assert all(by_line[n]['error']['code'] == 'bad_request' for n in (1, 3, 6, 7, 9, 10))


def test_a_line_without_a_program_or_a_language_is_no_request(web):
    lines = {line['id']: line for line in bulk(web, [{'id': 1, 'language': 'bash'}, {'id': 2, 'code': 'x'}, {'id': 3, 'code': 'echo 3', 'name': 'x.sh'}])}
    assert [lines[n]['error']['field'] for n in (1, 2)] == ['/code', '/language'] and lines[3]['record']['stdout'] == '3\n'


def test_a_last_line_needs_no_end(web):
    answer = web.stream_raw('POST', '/v1/runs/bulk', b'{"language": "bash", "code": "echo 1"}')
    assert [json.loads(line)['record']['stdout'] for line in answer] == ['1\n']
    assert web.stream_raw('POST', '/v1/runs/bulk', b'').read() == b''


def test_a_line_may_end_another(web):
    lines = bulk(web, [{'id': 'long', 'language': 'bash', 'code': 'sleep 1000'}, {'id': 'short', 'language': 'bash', 'code': 'true'}, {'cancel': 'long'}])
    assert {line['id']: line['record']['status'] for line in lines} == {'long': 'cancelled', 'short': 'completed'}


def test_who_goes_in_the_middle_ends_the_runs(web):
    for cut in (True, False):
        body = b'{"language": "bash", "code": "sleep 1000"}\n' * 20
        connection = web.open()
        connection.putrequest('POST', '/v1/runs/bulk')
        connection.putheader('Content-Length', str(len(body) + (100 if cut else 0)))
        connection.endheaders(body)
        until(lambda: len(web.runs()) == 20)
        connection.close()
        until(lambda: not web.runs())


def test_more_lines_than_there_is_room_for_wait_in_the_socket(web):
    """A thousand in a chunked body: 256 at most are with the daemon at a time."""
    seen = []

    def pieces():
        for n in range(1000):
            if n % 100 == 99:
                seen.append(len(web.runs()))
            yield json.dumps({'id': n, 'language': 'bash', 'code': f'echo {n}'}).encode() + b'\n'
    connection = web.open(timeout=600)     # a busy machine takes its time for a thousand runs
    connection.request('POST', '/v1/runs/bulk', pieces(), {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
    found = [json.loads(line) for line in connection.getresponse()]
    assert sorted(line['id'] for line in found) == list(range(1000)) and 0 < max(seen) <= 256
    assert all(line['record']['stdout'] == f"{line['id']}\n" for line in found)


# ---- checks, and what is there ----

def test_a_check(web):
    status, _, answer = web.ask('POST', '/v1/check', {'language': 'python', 'code': 'eval("1")', 'policy': 'linx'})
    assert (status, answer['verdict'], answer['findings'][0]['rule']) == (200, 'deny', 'dynamic_code')
    jsonschema.validate(answer, json.loads(caisson('schema', 'check_result').out))
    assert web.ask('POST', '/v1/check', {'language': 'python', 'code': 'def f(:'})[2]['error']['message'] == 'invalid syntax'


@pytest.mark.parametrize('request_, field', [({'code': 'x'}, '/language'), ({'language': 'cobol', 'code': 'x'}, '/language'),
                                             ({'language': 'python', 'code': 'x', 'policy': 'nope'}, '/policy'), ({'language': 'python'}, '/code')])
def test_a_check_that_cannot_be_made(web, request_, field):
    status, _, problem = web.ask('POST', '/v1/check', request_)
    assert status == 422 and problem.get('field') == field


def test_lists(web):
    profiles = web.ask('GET', '/v1/profiles')[2]['profiles']
    assert {'standard', 'strict', 'data'} <= {one['name'] for one in profiles} and all(one['description'] for one in profiles)
    assert web.ask('GET', '/v1/profiles/strict')[2] == json.loads(caisson('profiles', 'show', 'strict', '--json').out)
    assert [one['name'] for one in web.ask('GET', '/v1/policies')[2]['policies']] \
        == [one['name'] for one in json.loads(caisson('policy', 'list', '--json').out)]
    assert web.ask('GET', '/v1/policies/linx')[2] == json.loads(caisson('policy', 'show', 'linx', '--json').out)
    assert [one['name'] for one in web.ask('GET', '/v1/languages')[2]['languages']] == ['python', 'javascript', 'typescript', 'bash']


# ---- the description ----

def test_the_description_has_every_route_and_every_object(description):
    assert description['openapi'] == '3.1.0'
    operations = {(method, path) for path, one in description['paths'].items() for method in one}
    assert {('post', '/v1/runs'), ('get', '/v1/runs/{id}'), ('delete', '/v1/runs/{id}'), ('post', '/v1/check'), ('get', '/healthz')} <= operations
    assert len({one['operationId'] for path in description['paths'].values() for one in path.values()}) == len(operations)
    text = json.dumps(description)
    for ref in re.findall(r'"\$ref": "#/([^"]*)"', text):
        part = description
        for name in ref.split('/'):
            part = part[name]
    assert '$defs' not in text


def test_answers_are_as_described(web, description):
    for path in ('/v1/profiles/standard',):
        schema = description['paths'][path.replace('standard', '{name}')]['get']['responses']['200']['content']['application/json']['schema']
        assert schema['$ref'].startswith('#/components/schemas/')
    record = web.run('echo 1')
    jsonschema.validate(record, {**description, '$ref': '#/components/schemas/run_result'})
    problem = web.ask('POST', '/v1/runs', b'{')[2]
    jsonschema.validate(problem, {**description, '$ref': '#/components/schemas/problem'})


def test_the_page_needs_nothing_from_elsewhere(web):
    status, headers, page = web.ask('GET', '/docs')
    page = page.decode()
    assert status == 200 and headers['Content-Type'].startswith('text/html') and "default-src 'none'" in headers['Content-Security-Policy']
    assert '<script' not in page and not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    for word in ('/v1/runs', 'run_request', 'wall_ms', 'memory_bytes'):
        assert word in page
    for link in re.findall(r'href="#([^"]*)"', page):
        assert f'id="{link}"' in page


# ---- problems ----

def test_the_type_of_a_problem_leads_to_its_explanation(web):
    errors = dict(re.findall(r'^ERROR\(\w+, +\d+, "(\w+)", +\d+, +\d+, "(.*)"\)$', (ROOT / 'include/caisson/errors.def').read_text(), flags=re.M))
    assert len(errors) == 14
    for method, path, body in (('GET', '/v1/runs/run_x', None), ('POST', '/v1/runs', b'{'), ('PUT', '/v1/runs', b'')):
        _, _, problem = web.ask(method, path, body)
        page, mark = problem['type'].split('#')
        status, headers, text = web.ask('GET', page)
        assert status == 200 and headers['Content-Type'].startswith('text/html') and mark == problem['code']
        assert f'id="{mark}"' in text.decode()
    assert set(re.findall(r'<h3 id="(\w+)">', text.decode())) == {*errors, 'not_found', 'method_not_allowed', 'unauthorized', 'request_timeout', 'too_large'}
    for meaning in errors.values():
        assert meaning in text.decode()


def test_the_page_has_every_status_of_problems(description):
    """docs/use/http.md, beside 406, which is in the words of the Model Context Protocol alone, and 405 and 408, which are no operation's."""
    described = {status for path in description['paths'].values() for one in path.values() for status in one['responses'] if status >= '400'}
    rows = re.findall(r'^\| (\d{3}) \| ((?:`\w+`(?:, )?)+) \|', (ROOT / 'docs/use/http.md').read_text(), flags=re.M)
    assert {status for status, _ in rows} == described - {'406'} | {'405', '408'}
    codes = {*re.findall(r'^ERROR\(\w+, +\d+, "(\w+)"', (ROOT / 'include/caisson/errors.def').read_text(), flags=re.M)}
    for _, named in rows:
        assert set(re.findall(r'`(\w+)`', named)) <= codes | {'not_found', 'method_not_allowed', 'unauthorized', 'request_timeout', 'too_large'}


# ---- metrics, health ----

def test_metrics_count_what_was_done(web):
    def counted():
        text = web.ask('GET', '/metrics')[2].decode()
        return {line.rsplit(' ', 1)[0]: float(line.rsplit(' ', 1)[1]) for line in text.splitlines() if not line.startswith('#')}
    until(lambda: not web.runs())          # of the tests before
    before = counted()
    for _ in range(3):
        web.run('exit 1')
    after = counted()
    name = 'caisson_executions_total{language="bash",status="failed"}'
    assert after[name] - before.get(name, 0) == 3
    assert after['caisson_stage_duration_seconds_count{stage="total"}'] - before['caisson_stage_duration_seconds_count{stage="total"}'] == 3
    buckets = [after[f'caisson_stage_duration_seconds_bucket{{stage="total",le="{bound}"}}'] for bound in ('0.0001', '0.001', '1', '+Inf')]
    assert buckets == sorted(buckets) and after['caisson_build_info{version="0.1.0"}'] == 1
    assert after['caisson_http_connections'] >= 1
    text = web.ask('GET', '/metrics')[2].decode()
    names = set(re.findall(r'^(caisson_\w+?)(?:_bucket|_sum|_count)?(?:\{.*\})? ', text, flags=re.M))
    typed = set(re.findall(r'^# TYPE (\w+) ', text, flags=re.M))
    assert names <= typed and typed == set(re.findall(r'^# HELP (\w+) .', text, flags=re.M))


def test_the_dashboard_shows_what_there_is(web):
    """Every metric that a panel asks for is one of ours, with the labels that it is asked by."""
    web.run('true')
    text = web.ask('GET', '/metrics')[2].decode()
    labels = {}
    for name, some in re.findall(r'^(caisson_\w+)(?:\{(.*)\})? ', text, flags=re.M):
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', some))
    board = json.loads((ROOT / 'deploy/grafana/caisson.json').read_text())
    assert len({panel['id'] for panel in board['panels']}) == len(board['panels']) >= 10
    for expression in (target['expr'] for panel in board['panels'] for target in panel['targets']):
        names = re.findall(r'(caisson_\w+)\{([^}]*)\}', expression)
        assert names and expression.count('caisson_') == len(names)
        for name, some in names:
            assert set(re.findall(r'(\w+)[=!]', some)) - {'instance'} <= labels[name], (name, some)
        for by in re.findall(r'by \(([^)]*)\)', expression):
            assert all(set(by.replace(',', ' ').split()) <= labels[name] for name, _ in names), expression


def test_health(web):
    assert web.ask('GET', '/healthz')[2]['status'] == 'ok' and web.ask('GET', '/readyz')[0] == 200
    status, _, body = web.ask('HEAD', '/healthz')
    assert status == 200 and not body


def test_a_path_and_a_method_that_there_are_not_name_what_there_is(web):
    status, _, problem = web.ask('GET', '/')
    assert status == 404 and '/docs shows what there is' in problem['detail']
    status, _, problem = web.ask('DELETE', '/v1/runs')
    assert status == 405 and problem['detail'] == '/v1/runs does not support DELETE; it supports POST, GET', problem


def test_a_wrong_method_says_which_are_right(web):
    status, headers, problem = web.ask('PUT', '/v1/runs/x', b'')
    assert (status, problem['code'], headers['Allow']) == (405, 'method_not_allowed', 'GET, DELETE')


def test_what_a_query_does_not_know_is_refused(web):
    assert web.ask('GET', '/v1/profiles?colour=red')[0] == 422
    assert web.ask('GET', '/healthz?x')[0] == 422
    run = 'run_0123456789abcdef0123456789abcdef'
    for query, field in (('follow=maybe', 'follow'), ('follow=', 'follow'), ('follow', 'follow'), ('follow=true|false', 'follow'), ('follow=tru', 'follow')):
        status, _, problem = web.ask('GET', f'/v1/runs/{run}/events?{query}')
        assert (status, problem['field']) == (422, field) and problem['detail'].endswith('it can be: true|false'), query
    assert web.ask('GET', f'/v1/runs/{run}/events?follow=false')[0] == 404
    parameters = web.ask('GET', '/openapi.json')[2]['paths']['/v1/runs/{id}/events']['get']['parameters']
    assert [one['schema'] for one in parameters if one['name'] == 'follow'] == [{'type': 'string', 'enum': ['true', 'false']}]


def test_request_ids(web):
    assert web.ask('GET', '/healthz', X_Request_Id='mine-1')[1]['X-Request-Id'] == 'mine-1'
    for bad in ('x' * 100, 'a b', 'a"b'):
        assert web.ask('GET', '/healthz', X_Request_Id=bad)[1]['X-Request-Id'].startswith('req_')


def test_a_request_that_comes_as_the_daemon_ends(tmp_path):
    """It is stopped while it ends, most times, and the request comes then."""
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        web = Web(folder)
        with socket.create_connection(('127.0.0.1', web.port), timeout=60) as connection:
            time.sleep(.05)         # that is accepted
            web.daemon.process.send_signal(signal.SIGSTOP)
            web.daemon.process.send_signal(signal.SIGTERM)
            time.sleep(.02)
            connection.sendall(b'GET /api/v2/runtimes HTTP/1.1\r\nHost: localhost\r\n\r\n')
            time.sleep(.02)
            web.daemon.process.send_signal(signal.SIGCONT)
            assert web.daemon.process.wait(60) == 0


@pytest.mark.parametrize('way', ['warm', 'cold'])
def test_figures_that_a_run_shows_are_files(web, tmp_path, way):
    code = """import matplotlib.pyplot as plt
plt.plot([1]); plt.show()
open('image_0002.png', 'w').close()
plt.plot([2]); plt.figure(); plt.plot([3]); plt.show()
print(plt.get_fignums()); 1 / 0"""
    if way == 'warm':
        record = web.run(code, 'python', image='data', limits={'wall_ms': 200000})
    else:
        (tmp_path / 'program.py').write_text(code)
        record = json.loads(caisson('run', '--daemon', 'never', '--image', 'data', '--timeout', '200s', '--json', tmp_path / 'program.py').out)
    assert [file['name'] for file in record['files'] if file['size_bytes']] == ['image_0000.png', 'image_0001.png', 'image_0003.png']
    assert (record['stdout'], record['error']['type'], record['error']['line']) == ('[]\n', 'ZeroDivisionError', 5)
    assert {file['mime'] for file in record['files']} == {'image/png'}


# ---- its beginning and its end ----

def test_an_address_that_is_none_stops_the_start(tmp_path):
    for address, words in (('nonsense', 'engine.http is "nonsense"'), ('127.0.0.1:99999', 'engine.http'), ('1.2.3:80', 'engine.http'),
                           ('0.0.0.0:0', 'which others can reach'), ('[::]:0', 'which others can reach')):
        daemon = Daemon(tmp_path, *KEYLESS, '--set', f'engine.state_dir={tmp_path}', '--set', f'engine.http={address}')
        assert daemon.process.wait(60) == 78
        assert words in (tmp_path / 'log').read_text()
        daemon.stop()


def test_it_listens_on_a_socket_of_the_file_system_too(tmp_path):
    path = tmp_path / 'http'
    daemon = Daemon(tmp_path, *KEYLESS, '--set', f'engine.state_dir={tmp_path}', '--set', f'engine.http=unix:{path}').ready()
    until(path.is_socket)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    connection.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    assert b'200 OK' in connection.recv(1000)
    assert daemon.stop(signal.SIGTERM) == 0 and not path.exists()


def drain(web):
    """It has been told to end, and knows it; what it then says of being ready."""
    web.daemon.process.send_signal(signal.SIGTERM)
    return until(lambda: (lambda got: got[0] == 503 and got)(web.ask('GET', '/readyz')))


def start_one(web, code, **more):
    """A run that goes on by itself: where it is."""
    status, headers, _ = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': code, **more}, Prefer='respond-async')
    assert status == 202
    return headers['Location']


@pytest.fixture(name='ending')
def one_that_may_take_an_hour(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=3600s', '--set', 'ceilings.wall_ms=100s')
    yield web
    web.daemon.stop()


def refused_for_the_end(got):
    status, headers, problem = got
    return (status, problem['code'], headers['Retry-After'], problem['retryable']) == (503, 'capacity', '1', True) and 'draining' in problem['detail']


def test_the_end_lets_runs_end_and_refuses_new_ones(ending):
    place = start_one(ending, 'sleep 4; echo done')
    events = ending.stream('GET', place + '/events')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(ending.run, 'sleep 4; echo waited for')
        until(lambda: len(ending.runs()) == 2)
        assert refused_for_the_end(drain(ending))
        assert refused_for_the_end(ending.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true'}))
        assert refused_for_the_end(ending.ask('POST', '/v1/runs/bulk', '{"language":"bash","code":"true"}'))
        assert refused_for_the_end(ending.ask('POST', '/v1/check', {'language': 'bash', 'code': 'true'}))
        assert ending.ask('GET', '/healthz')[0] == 200 and ending.ask('GET', place)[0] == 202
        assert running.result()['stdout'] == 'waited for\n'
    assert events_of(events)[-1][2]['record']['stdout'] == 'done\n'
    assert ending.daemon.process.wait(60) == 0


def test_the_end_answers_for_keys_that_are_there(ending):
    done, going, new = ({'Idempotency-Key': name} for name in ('done', 'going', 'new'))
    short, long = {'language': 'bash', 'code': 'echo once'}, {'language': 'bash', 'code': 'sleep 100', 'limits': {'wall_ms': 100000}}
    first = ending.ask('POST', '/v1/runs', short, **done)
    status, headers, _ = ending.ask('POST', '/v1/runs', {**long, 'code': 'sleep 90'}, Prefer='respond-async')
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(ending.ask, 'POST', '/v1/runs', long, **going)
        until(lambda: len(ending.runs()) == 2)
        drain(ending)
        again = ending.ask('POST', '/v1/runs', short, **done)
        assert (again[0], again[1]['Idempotency-Replayed'], again[2]) == (200, 'true', first[2])
        assert ending.ask('POST', '/v1/runs', long, **going)[0] == 409
        assert ending.ask('POST', '/v1/runs', long, **done)[0] == 422
        assert refused_for_the_end(ending.ask('POST', '/v1/runs', short, **new))
        assert status == 202 and ending.ask('DELETE', headers['Location'])[0] == 202
        ending.daemon.process.send_signal(signal.SIGTERM)
        assert running.result()[2]['status'] == 'cancelled'
    assert ending.daemon.process.wait(60) == 0


def test_a_request_that_is_still_being_sent_is_refused_and_holds_nothing_up(ending):
    place = start_one(ending, 'sleep 100', limits={'wall_ms': 100000})
    body = b'{"language": "bash", "code": "touch /tmp/x"}'
    head = b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(body)
    with socket.create_connection(('127.0.0.1', ending.port)) as one, socket.create_connection(('127.0.0.1', ending.port)) as other:
        for connection in (one, other):
            connection.sendall(head + body[:10])
        assert ending.ask('GET', '/healthz')[0] == 200
        drain(ending)
        one.sendall(body[10:])
        assert one.recv(100).startswith(b'HTTP/1.1 503')
        assert ending.ask('DELETE', place)[0] == 202
        assert ending.daemon.process.wait(60) == 0      # and the other has said nothing more


def test_lines_of_a_bulk_that_come_too_late_are_refused_one_by_one(ending):
    def chunk(text):
        return b'%x\r\n%s\r\n' % (len(text), text)
    line = b'{"language": "bash", "code": "sleep 4; echo x"}\n'
    with socket.create_connection(('127.0.0.1', ending.port), timeout=60) as connection:
        connection.sendall(b'POST /v1/runs/bulk HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' + chunk(line))
        until(ending.runs)
        drain(ending)
        connection.sendall(chunk(line) + chunk(b''))
        text = b''
        while part := connection.recv(65536):
            text += part
    assert text.startswith(b'HTTP/1.1 200') and text.count(b'"stdout":"x\\n"') == 1 and text.count(b'draining') == 1, text
    assert ending.daemon.process.wait(60) == 0


def test_a_second_signal_cancels_and_says_so(ending):
    place = start_one(ending, 'sleep 100', limits={'wall_ms': 100000})
    events = ending.stream('GET', place + '/events')
    with socket.create_connection(('127.0.0.1', ending.port)) as sending:
        sending.sendall(b'POST /v1/runs/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"language":"bash","code":"sleep 99"}\n')
        until(lambda: len(ending.runs()) == 2)
        drain(ending)
        ending.daemon.process.send_signal(signal.SIGTERM)
        assert events_of(events)[-1][2]['record']['status'] == 'cancelled'
        assert ending.daemon.process.wait(60) == 0      # although the bulk's body has no end


def test_a_third_signal_waits_for_nobody(ending):
    body = json.dumps({'language': 'bash', 'code': 'head -c 8000000 /dev/zero | tr "\\0" x; sleep 99'}).encode()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(('127.0.0.1', ending.port))
        slow.sendall(b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
        assert slow.recv(100).startswith(b'HTTP/1.1 200')
        for number in (1, 2, 3):       # after the second one it would wait for a while that this is read
            ending.daemon.process.send_signal(signal.SIGTERM)
            until(lambda number=number: ending.log.read_text().count('signal 15') == number or ending.daemon.process.poll() is not None)
        assert ending.daemon.process.wait(60) == 0


def test_the_end_does_not_wait_for_ever(tmp_path):
    web = Web(tmp_path, '--set', 'engine.shutdown_ms=300')
    answer = web.stream('POST', '/v1/runs', {'language': 'bash', 'code': 'sleep 1000'}, Accept='text/event-stream')
    assert answer.readline()
    assert web.daemon.stop(signal.SIGTERM) == 0
