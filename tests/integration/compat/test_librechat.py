"""The code interpreter of LibreChat (/librechat/v1): shapes as its server and @librechat/agents send and read them, isolation of keys, limits, bad input."""

import json
import re
import signal

import pytest

from keys import Keys
from web import Web

ROOT = '/librechat/v1'
ID = re.compile(r'[A-Za-z0-9_-]{21}')
NOBODY = 'A' * 21
FORM = 'multipart/form-data; boundary=limit'


@pytest.fixture(name='keys', scope='module')
def made_keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp('librechat'))


@pytest.fixture(name='web', scope='module')
def running(keys):
    names = {name: keys.make(name, '--tenant', tenant, '--scopes', scopes, *options) for name, tenant, scopes, options in (
        ('alice', 'alice', 'run,files', ()), ('mallory', 'mallory', 'run,files', ()), ('runner', 'runner', 'run', ()),
        ('small', 'small', 'run,files', ('--stored', '20KiB')), ('slow', 'slow', 'run', ('--running', '1', '--queued', '1')))}
    web = Web(keys.folder, '--set', 'engine.file_bytes_max=64KiB', keyless=False)
    web.names = names
    yield web.with_key(names['alice'])
    assert web.daemon.stop(signal.SIGTERM) == 0


def other(web, name):
    return web.with_key(web.names[name])


def call(web, method, path, body=None, status=200, **headers):
    got, _, answer = web.ask(method, ROOT + path, body, **({'Content_Type': 'application/json'} if isinstance(body, dict) else {}), **headers)
    assert got == status, answer
    if status != 200:
        assert set(answer) - {'error', 'retry_after_seconds', 'code'} == {'message'} and answer['message']
    return answer


def execute(web, code, lang='bash', **more):
    return call(web, 'POST', '/exec', {'lang': lang, 'code': code, **more})


def form(*parts):
    """A body of parts (field, filename or None, content)."""
    lines = []
    for field, filename, content in parts:
        name = f'; filename="{filename}"' if filename is not None else ''
        lines.append(f'--limit\r\nContent-Disposition: form-data; name="{field}"{name}\r\n\r\n{content}\r\n')
    return ''.join(lines) + '--limit--\r\n'


def upload(web, *parts, path='/upload', status=200):
    return call(web, 'POST', path, form(*parts).encode(), status, Content_Type=FORM)


def references(answer):
    return [{'id': one['id'], 'storage_session_id': one['storage_session_id'], 'name': one['name'], 'kind': 'user', 'resource_id': 'me'} for one in answer['files']]


# ---- POST /exec ----

def test_an_answer_has_all_fields_in_both_forms(web):
    answer = execute(web, 'import sys\nprint(1)\nprint(2, file=sys.stderr)\nsys.exit(3)', 'py')
    run = {name: answer[name] for name in ('stdout', 'stderr', 'code', 'signal', 'status', 'message', 'wall_time')}
    assert set(answer) == {'session_id', 'files', 'language', 'run', *run} and answer['run'] == run
    assert (run['stdout'], run['stderr'], run['code'], run['signal'], run['status']) == ('1\n', '2\n', 3, None, 'RE')
    assert run['message'] == 'Exited with error status 3' and run['wall_time'] > 0 and answer['language'] == 'python'
    assert ID.fullmatch(answer['session_id']) and answer['files'] == []


def test_an_end_by_a_limit_is_a_line_of_standard_error(web):
    answer = execute(web, 'echo -n begun >&2; sleep 60', timeout=3000)
    assert (answer['status'], answer['code']) == ('TO', None) and answer['stderr'].startswith('begun\nTime limit exceeded')
    answer = execute(web, 'kill -SEGV $$')
    assert (answer['status'], answer['signal']) == ('SG', 'SIGSEGV') and 'signal 11' in answer['stderr']


def test_the_work_folder_is_the_home_directory(web):
    answer = execute(web, 'cd /mnt/data; pwd -P; echo 1 > /mnt/data/x/../a 2>/dev/null || echo 1 > a; readlink /mnt/data; rm /mnt/data 2>&1; ls -A /mnt')
    assert answer['stdout'].splitlines()[:2] == ['/home/user', '../home/user'] and 'Read-only' in answer['stdout'] and answer['stdout'].endswith('\ndata\n')
    assert [one['path'] for one in answer['files']] == ['/mnt/data/a']


def test_files_are_made_changed_and_inherited(web):
    made = execute(web, 'mkdir -p "p q"; echo 1 > a; echo 2 > "p q/ü%2F.csv"')
    assert [set(one) for one in made['files']] == [{'id', 'name', 'path', 'session_id', 'storage_session_id'}] * 2
    assert [one['name'] for one in made['files']] == ['a', 'p q/ü%2F.csv']
    assert all(ID.fullmatch(one['id']) and one['session_id'] == one['storage_session_id'] == made['session_id'] for one in made['files'])
    files = [{**one, 'version': 7} for one in references(made)]
    changed = execute(web, 'cat "p q/ü%2F.csv"; echo 3 >> a; echo 4 > b', files=files)
    assert changed['stdout'] == '2\n' and [one['name'] for one in changed['files']] == ['a', 'b', 'p q/ü%2F.csv']
    first, new, same = changed['files']
    assert first['modified_from'] == {'id': made['files'][0]['id'], 'session_id': made['session_id'], 'storage_session_id': made['session_id']}
    assert 'modified_from' not in new and 'inherited' not in new and new['session_id'] == changed['session_id'] != made['session_id']
    assert same == {**made['files'][1], 'inherited': True, 'kind': 'user', 'resource_id': 'me', 'version': 7}
    assert execute(web, 'cat a b', files=references(changed))['stdout'] == '1\n3\n4\n'


def test_a_session_without_files_gives_all_of_its_files(web):
    made = execute(web, 'echo 1 > a; echo 2 > b')
    assert execute(web, 'cat a b', session_id=made['session_id'])['stdout'] == '1\n2\n'
    assert execute(web, 'cat a b', session_id=made['session_id'], files=references(made)[:1])['stdout'] == '1\n'
    uploaded = upload(web, ('file', 'c', '3'))
    assert execute(web, 'cat c', session_id=uploaded['session_id'])['stdout'] == '3'
    assert execute(web, 'ls', session_id='')['stdout'] == execute(web, 'ls', session_id=NOBODY)['stdout'] == 'main.sh\n'


def test_a_file_may_have_the_name_of_the_program(web):
    made = upload(web, ('file', 'main.py', 'theirs'), ('file', 'program1.main.py', 'too'))
    answer = execute(web, 'print(open("main.py").read(), open("program1.main.py").read())', 'py', session_id=made['session_id'])
    assert answer['stdout'] == 'theirs too\n'


def test_of_files_with_one_name_the_last_counts(web):
    first, second = (execute(web, f'echo {n} > a') for n in (1, 2))
    files = [*references(first), *references(second)]
    assert execute(web, 'cat a', files=files)['stdout'] == '2\n' and execute(web, 'cat a', files=files[::-1])['stdout'] == '1\n'
    named = [{**references(first)[0], 'name': '/mnt/data/x/y'}]
    assert execute(web, 'cat x/y', files=named)['stdout'] == '1\n'


def test_arguments_and_languages(web):
    assert execute(web, 'echo "$2"', args=['1', 'a b'])['stdout'] == 'a b\n' and execute(web, 'echo "$1"', args='x')['stdout'] == 'x\n'
    assert execute(web, 'console.log(1)', 'js', args=None)['stdout'] == execute(web, 'console.log(1 as number)', 'ts')['stdout'] == '1\n'


def test_a_file_that_cannot_be_kept_is_reported(web):
    answer = execute(web, 'echo 1 > a; head -c 100000 /dev/zero > large')
    assert [one['name'] for one in answer['files']] == ['a'] and '/mnt/data/large was not kept' in answer['stderr']
    assert answer['artifact_delivery'] == {'code': 'artifact_delivery_failed', 'status': 'partial', 'attempted': 2, 'delivered': 1, 'failed': 1}
    answer = execute(other(web, 'small'), 'head -c 30000 /dev/urandom > a')
    assert answer['files'] == [] and answer['artifact_delivery']['status'] == 'failed'


def test_a_key_that_runs_alone_keeps_nothing(web):
    runner = other(web, 'runner')
    answer = execute(runner, 'echo 1 | tee a')
    assert answer['stdout'] == '1\n' and answer['files'] == [] and 'artifact_delivery' not in answer
    answer = call(runner, 'POST', '/exec', {'lang': 'bash', 'code': ':', 'session_id': NOBODY}, 400)
    assert 'scope files' in answer['message']
    call(runner, 'GET', f'/files/{NOBODY}', status=403)


# ---- files ----

def test_lists_of_each_detail(web):
    made = execute(web, 'mkdir d; echo 12 > d/a.csv')
    session, file = made['session_id'], made['files'][0]['id']
    full, = call(web, 'GET', f'/files/{session}?detail=full&kind=user&id=me')
    assert full == call(web, 'GET', f'/files/{session}')[0] and full['name'] == f'{session}/{file}' and full['id'] == file
    assert full['metadata'] == {'original-filename': 'd/a.csv', 'content-type': 'text/csv'} and full['size'] == 3
    assert full['session_id'] == full['storage_session_id'] == session
    assert call(web, 'GET', f'/files/{session}?detail=summary') == [{'name': f'{session}/{file}', 'lastModified': full['lastModified']}]
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', full['lastModified'])
    reference = {'id': file, 'name': 'd/a.csv', 'session_id': session, 'storage_session_id': session, 'path': '/mnt/data/d/a.csv'}
    assert call(web, 'GET', f'/files/{session}?detail=normalized') == call(web, 'GET', f'/files/{session}?detail=simple') == [reference]
    assert call(web, 'GET', f'/sessions/{session}/objects/{file}')['lastModified'] == full['lastModified']
    stored = web.ask('GET', '/v1/files')[2]['files'][0]
    assert stored['name'] == 'd%2Fa.csv' and web.ask('GET', f'/v1/runs?limit=1')[0] == 403       # the key has no scope read


def test_a_download_is_an_attachment(web):
    made = execute(web, 'mkdir d; echo "<script>" > "d/ü.html"')
    status, headers, content = web.ask('GET', f'{ROOT}/download/{made["session_id"]}/{made["files"][0]["id"]}?kind=user')
    assert status == 200 and content == b'<script>\n' and headers['Content-Type'] == 'application/octet-stream'
    assert headers['Content-Disposition'] == "attachment; filename*=UTF-8''%C3%BC.html" and headers['X-Content-Type-Options'] == 'nosniff'


def test_a_removed_file_is_gone(web):
    made = execute(web, 'echo 1 > a; echo 2 > b')
    session, file = made['session_id'], made['files'][0]['id']
    assert call(web, 'DELETE', f'/files/{session}/{file}') == {'message': 'success', 'session_id': session, 'fileId': file}
    for method, path in (('DELETE', f'/files/{session}/{file}'), ('GET', f'/download/{session}/{file}'), ('GET', f'/sessions/{session}/objects/{file}')):
        call(web, method, path, status=404)
    assert [one['name'] for one in call(web, 'GET', f'/files/{session}?detail=simple')] == ['b']
    assert 'upload it again' in call(web, 'POST', '/exec', {'lang': 'bash', 'code': ':', 'files': references(made)}, 404)['message']


def test_a_file_belongs_to_one_session(web):
    one, two = (execute(web, 'echo 1 > a') for _ in range(2))
    file = one['files'][0]['id']
    call(web, 'GET', f'/download/{two["session_id"]}/{file}', status=404)
    call(web, 'POST', '/exec', {'lang': 'bash', 'code': ':', 'files': [{**references(one)[0], 'storage_session_id': two['session_id']}]}, 404)


def test_uploads(web):
    answer = upload(web, ('entity_id', None, 'asst_1'), ('file', 'a b.csv', '1,2'))
    assert set(answer) == {'message', 'session_id', 'storage_session_id', 'files'} and answer['message'] == 'success'
    assert [(one['filename'], one['fileId']) for one in answer['files']] == [('a b.csv', answer['files'][0]['id'])]
    assert execute(web, 'cat a*', session_id=answer['storage_session_id'])['stdout'] == '1,2'
    answer = upload(web, ('file', 'skills/x/SKILL.md', 'x'), ('file', '../up', 'x'), ('file', '/etc/x', 'x'), ('file', 'large', 'x' * 70000), path='/upload/batch')
    assert (answer['message'], answer['succeeded'], answer['failed']) == ('partial', 1, 3)
    assert [one['status'] for one in answer['files']] == ['success', 'error', 'error', 'error'] and '65536' in answer['files'][3]['error'].replace(',', '')
    assert [one['name'] for one in call(web, 'GET', f'/files/{answer["session_id"]}?detail=simple')] == ['skills/x/SKILL.md']
    assert upload(web, ('file', '..', 'x'), path='/upload/batch')['message'] == 'error'


def test_an_upload_is_kept_whole_or_not_at_all(web):
    before = len(web.ask('GET', '/v1/files?limit=1000')[2]['files'])
    assert '../b' in upload(web, ('file', 'a', '1'), ('file', '../b', '2'), ('file', 'c', '3'), status=400)['message']
    upload(web, ('file', 'a', '1'), ('file', '', ''), status=400)
    upload(web, ('file', 'a', '1'), ('file', 'x' * 256, '2'), status=400)
    upload(web, ('file', 'a', '1'), ('file', 'b', 'x' * 70000), status=413)
    upload(other(web, 'small'), ('file', 'a', 'x' * 30000), status=507)
    assert 'no file' in upload(web, ('entity_id', None, 'x'), status=400)['message']
    assert 'boundary' in call(web, 'POST', '/upload', form(('file', 'a', '1')).encode()[:-12], 400, Content_Type=FORM)['message']
    call(web, 'POST', '/upload', b'{}', 400, Content_Type='application/json')
    assert '200 files' in upload(web, *(('file', f'{n}', 'x') for n in range(201)), status=413)['message']
    assert 'no files' in upload(web, ('note', None, 'x' * 70000), ('file', 'a', '1'), status=400)['message']
    assert len(web.ask('GET', '/v1/files?limit=1000')[2]['files']) == before


# ---- keys ----

def test_without_a_key_nothing_is_done(web):
    nobody = other(web, 'alice')
    nobody.key = None
    for method, path in (('POST', '/exec'), ('POST', '/exec/programmatic'), ('GET', f'/files/{NOBODY}'), ('GET', f'/download/{NOBODY}/{NOBODY}')):
        call(nobody, method, path, {'lang': 'bash', 'code': ':'} if method == 'POST' else None, 401)
    call(nobody, 'GET', f'/files/{NOBODY}', status=401, X_API_Key=f'csn_{"0" * 40}')
    assert call(nobody, 'GET', '/health')['status'] == 'healthy'
    assert call(nobody, 'GET', f'/files/{NOBODY}', X_API_Key=web.names['alice']) == []


def test_another_key_finds_no_session_and_no_file(web):
    mallory = other(web, 'mallory')
    made, uploaded = execute(web, 'echo secret > s'), upload(web, ('file', 'u', 'secret'))
    for session, file in ((made['session_id'], made['files'][0]['id']), (uploaded['session_id'], uploaded['files'][0]['fileId'])):
        assert call(mallory, 'GET', f'/files/{session}') == call(mallory, 'GET', f'/files/{NOBODY}') == []
        for method, path in (('GET', 'download/{}/{}'), ('GET', 'sessions/{}/objects/{}'), ('DELETE', 'files/{}/{}')):
            answers = [call(mallory, method, '/' + path.format(*ids), status=404) for ids in ((session, file), (NOBODY, NOBODY))]
            assert answers[0] == answers[1]
        given = {'id': file, 'storage_session_id': session, 'name': 'x'}
        call(mallory, 'POST', '/exec', {'lang': 'bash', 'code': 'cat x', 'files': [given]}, 404)
        assert execute(mallory, 'ls', session_id=session)['stdout'] == 'main.sh\n'
        assert execute(web, 'cat x', files=[given])['stdout'].strip() == 'secret'


# ---- bad input ----

@pytest.mark.parametrize('body, words', [
    ({}, 'code is required'), ({'code': 1, 'lang': 'py'}, 'code is required'), ({'code': '', 'lang': 'py'}, 'code is required'),
    ({'code': ':'}, 'lang is required'), ({'code': ':', 'lang': 'cobol'}, 'cobol'), ({'code': ':', 'lang': 7}, 'lang has to be a text'),
    ({'args': [1]}, 'args[0]'), ({'args': {}}, 'args has to be'), ({'timeout': 0}, 'timeout'), ({'timeout': '5'}, 'timeout'),
    ({'user_id': 7}, 'user_id'), ({'entity_id': []}, 'entity_id'), ({'session_id': 'x'}, 'session_id'), ({'session_id': 7}, 'session_id'),
    ({'files': {}}, 'files has to be an array'), ({'files': [7]}, 'files[0].id'),
    ({'files': [{'id': NOBODY, 'name': 'a'}]}, 'files[0].storage_session_id'), ({'files': [{'id': NOBODY + 'A', 'session_id': NOBODY, 'name': 'a'}]}, 'files[0].id'),
    ({'files': [{'id': NOBODY, 'session_id': NOBODY}]}, 'files[0].name'), ({'files': [{'id': NOBODY, 'session_id': NOBODY, 'name': 'a'}] * 201}, 'at most 200'),
    ({'user_id': 'x' * 2000}, '1024'),
])
def test_bad_bodies_name_the_field(web, body, words):
    whole = body if set(body) <= {'code', 'lang'} else {'code': ':', 'lang': 'bash', **body}
    assert words in call(web, 'POST', '/exec', whole, 400)['message']


def test_other_bad_requests(web):
    for text in (b'', b'[]', b'{', b'"x"', b'\xff'):
        call(web, 'POST', '/exec', text, 400, Content_Type='application/json')
    made = execute(web, 'echo 1 > a')
    for name in ('../a', '/etc/passwd', 'a/../../b', '', 'x' * 2000):
        call(web, 'POST', '/exec', {'lang': 'bash', 'code': ':', 'files': [{**references(made)[0], 'name': name}]}, 400)
    for path in ('/files/x', f'/download/{NOBODY}/x', f'/sessions/{NOBODY}/objects/{NOBODY[:-1]}.'):
        call(web, 'GET', path, status=400)
    call(web, 'GET', '/nothing', status=404)
    call(web, 'GET', '/exec', status=405)
    head, _, text = web.raw(f'POST {ROOT}/exec HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {web.key}\r\nContent-Type: application/json\r\n'
                            f'Content-Length: {17 << 20}\r\n\r\n'.encode()).partition(b'\r\n\r\n')
    assert head.startswith(b'HTTP/1.1 413 ') and set(json.loads(text)) == {'message'}
    assert call(web, 'POST', '/exec', {'lang': 'bash', 'code': ':'}, 400, X_CodeAPI_Expected_Profile='stateful')['code'] == 'execution_profile_mismatch'
    assert call(web, 'POST', '/exec', {'lang': 'bash', 'code': ':'}, 400, X_LibreChat_Code_Workspace_ID='w')['code'] == 'stateful_workspace_unsupported'
    execute(web, ':', runtime_session_hint='x', version=1)       # unknown to us, and harmless


def test_too_many_runs_are_429(web):
    slow = other(web, 'slow')
    waiting = [slow.open() for _ in range(2)]
    for connection in waiting:
        connection.request('POST', f'{ROOT}/exec', json.dumps({'lang': 'bash', 'code': 'sleep 20'}), {'Content-Type': 'application/json'})
    answer = None
    for _ in range(200):
        status, headers, answer = slow.ask('POST', f'{ROOT}/exec', {'lang': 'bash', 'code': 'sleep .1'}, Content_Type='application/json')
        if status == 429:
            break
    for connection in waiting:
        connection.close()
    assert answer['error'] == 'rate_limited' and answer['retry_after_seconds'] == int(headers['Retry-After']) >= 1 and answer['message']


# ---- POST /exec/programmatic ----

ADD = {'name': 'add', 'description': 'Adds.', 'parameters': {'type': 'object', 'properties': {'a': {'type': 'number'}}, 'required': ['a']}}


def begin(web, code, *tools, status=200, **more):
    return call(web, 'POST', '/exec/programmatic', {'code': code, 'tools': list(tools) or [ADD], **more}, status)


def go_on(web, answer, *results, status=200):
    results = [{'call_id': one['id'], 'is_error': False, 'result': result} if not isinstance(result, Exception) else
               {'call_id': one['id'], 'is_error': True, 'error_message': str(result), 'result': None} for one, result in zip(answer['tool_calls'], results)]
    return call(web, 'POST', '/exec/programmatic', {'continuation_token': answer['continuation_token'], 'tool_results': results}, status)


def test_a_program_is_replayed_with_the_results(web):
    code = 'n = 0\nfor k in range(3):\n    n += (await add(a=k))["sum"]\nprint(n)\nopen("n", "w").write(str(n))'
    answer = begin(web, code)
    for k in range(3):
        assert set(answer) == {'status', 'session_id', 'continuation_token', 'tool_calls'} and answer['status'] == 'tool_call_required'
        assert answer['tool_calls'] == [{'id': f'call_{k + 1:03}', 'name': 'add', 'input': {'a': k}}]
        answer = go_on(web, answer, {'sum': 10 + k})
    assert answer['status'] == 'completed' and answer['stdout'] == '33\n' and answer['stderr'] == ''
    assert [one['name'] for one in answer['files']] == ['n'] and execute(web, 'cat n', session_id=answer['session_id'])['stdout'] == '33'


def test_equal_calls_get_their_results_in_order(web):
    answer = begin(web, 'print([await add(a=1), await add(a=1), await add(a=1)])')
    for n in range(3):
        answer = go_on(web, answer, n)
    assert answer['stdout'] == '[0, 1, 2]\n'


def test_calls_at_once_are_one_round(web):
    answer = begin(web, 'print(await asyncio.gather(*(add(a=n) for n in range(40))))')
    inputs = [one['input']['a'] for one in answer['tool_calls']]
    assert sorted(inputs) == list(range(40))
    assert go_on(web, answer, *(n * n for n in inputs))['stdout'] == f'{[n * n for n in range(40)]}\n'


def test_values_and_errors_come_as_they_are(web):
    answer = begin(web, 'for _ in range(1):\n    print(repr(await add(a=1)))\ntry:\n    await add(a=2)\nexcept Exception as error:\n    print(error)')
    for value in ({'ü': [1, None, True, 2.5]},):
        answer = go_on(web, answer, value)
    assert go_on(web, answer, ValueError('no "sum"'))['stdout'] == "{'ü': [1, None, True, 2.5]}\nno \"sum\"\n"
    answer = begin(web, 'print(repr(await add(a=1)))')
    assert go_on(web, answer, '[1, 2]')['stdout'] == "'[1, 2]'\n"


def test_bash_calls_tools(web):
    answer = begin(web, 'r=$(add \'{"a": 5}\'); echo "got $r"; no_arguments', ADD, {'name': 'no.arguments'}, lang='bash')
    assert [one['input'] for one in answer['tool_calls']] == [{'a': 5}]
    answer = go_on(web, answer, {'sum': 1})
    assert answer['tool_calls'] == [{'id': 'call_002', 'name': 'no.arguments', 'input': {}}]
    assert go_on(web, answer, 'x')['stdout'].startswith('got {"sum":')


def test_names_become_functions(web):
    names = ('get-weather', 'class', '2nd tool', '_private', 'a.b', 'ünï')
    answer = begin(web, 'await asyncio.gather(get_weather(), class_tool(), _2nd_tool(), _private(), ab(), n())', *({'name': name} for name in names))
    assert sorted(one['name'] for one in answer['tool_calls']) == sorted(names)
    assert 'both the function get_weather' in begin(web, '1', {'name': 'get-weather'}, {'name': 'get_weather'}, status=400)['message']


def test_programs_are_coroutines(web):
    assert begin(web, 'import asyncio\nawait asyncio.sleep(0)\nprint(1)\nreturn\nprint(2)')['stdout'] == '1\n'
    assert begin(web, 'async def main():\n    print(1)\nasyncio.run(main())')['stdout'] == '1\n'
    assert begin(web, 's = """\n  x"""\nawait asyncio.sleep(0)\nprint(repr(s))')['stdout'] == "'\\n  x'\n"
    answer = begin(web, 'x = 1\nawait asyncio.sleep(0)\nraise ValueError("x")')
    assert answer['status'] == 'error' and answer['error'] == 'Sandbox exited with code 1' and 'line 3' in answer['stderr'] and 'ValueError: x' in answer['stderr']
    answer = begin(web, 'await (')
    assert answer['status'] == 'error' and 'SyntaxError' in answer['stderr']


def test_failed_programs_keep_no_files(web):
    before = len(web.ask('GET', '/v1/files?limit=1000')[2]['files'])
    answer = begin(web, 'open("a", "w").write("1")\nawait add(a=1)\nopen("b", "w").write("2")\nraise SystemExit(3)')
    answer = go_on(web, answer, 1)
    assert answer['status'] == 'error' and answer['error'] == 'Sandbox exited with code 3'
    assert begin(web, 'while True: pass', timeout=300)['error'] == 'Time limit exceeded'
    assert len(web.ask('GET', '/v1/files?limit=1000')[2]['files']) == before


def test_arguments_have_to_be_as_the_schema_says(web):
    answer = begin(web, 'try:\n    await add(b=1)\nexcept Exception as error:\n    print("refused", error)')
    assert answer['status'] == 'completed' and answer['stdout'].startswith('refused')


def test_a_token_is_for_one_key_and_for_once(web):
    answer = begin(web, 'print(await add(a=1))')
    token = answer['continuation_token']
    for body in ({'tool_results': []}, {'tool_results': {}}, {}, {'tool_results': [{'call_id': 'call_009', 'result': 1}]}, {'tool_results': [{}, {}]}):
        assert 'tool_results' in call(web, 'POST', '/exec/programmatic', {'continuation_token': token, **body}, 400)['message']
    assert 'no program waits' in go_on(other(web, 'mallory'), answer, 1, status=404)['message']
    assert go_on(web, answer, 1)['stdout'] == '1\n'
    go_on(web, answer, 1, status=404)
    for token in ('', 'x', 'lct_' + '0' * 32):
        call(web, 'POST', '/exec/programmatic', {'continuation_token': token, 'tool_results': []}, 404)
    call(web, 'POST', '/exec/programmatic', {'continuation_token': 7}, 400)


@pytest.mark.parametrize('more, words', [
    ({'tools': {}}, 'tools has to be'), ({'tools': [{}]}, 'tools[0].name'), ({'tools': [{'name': '--'}]}, 'tools[0].name'), ({'tools': [{'name': 'a\0b'}]}, 'tools[0].name'),
    ({'tools': [{'name': f't{n}'} for n in range(201)]}, 'at most 200'), ({'lang': 'js'}, 'Python (py) or Bash (bash)'),
    ({'tools': [{'name': 'a', 'description': 'x' * 9000}]}, '8192'), ({'code': 'x' * 900000, 'tools': [{'name': f't{n}', 'parameters': {'x': 'y' * 60000}} for n in range(60)]}, 'bytes as JSON'),
])
def test_bad_programs_name_the_field(web, more, words):
    assert words in call(web, 'POST', '/exec/programmatic', {'code': '1', **more}, 400)['message']


def test_of_many_programs_that_wait_the_oldest_goes(web):
    mallory = begin(other(web, 'mallory'), 'print(await add(a=1))')
    answers = [begin(web, 'print(await add(a=1))') for _ in range(66)]
    for n, answer in enumerate(answers):
        if n not in (2, 65):
            assert n > 1 or go_on(web, answer, n, status=404)
        else:
            assert go_on(web, answer, n)['stdout'] == f'{n}\n'
    assert go_on(other(web, 'mallory'), mallory, 1)['stdout'] == '1\n'
    answers = [begin(web, f'# {"x" * 900_000}\nprint(await add(a=1))') for _ in range(20)]     # 16 MiB
    go_on(web, answers[0], 1, status=404)
    assert go_on(web, answers[-1], 1)['stdout'] == '1\n'


def test_a_program_is_run_a_hundred_times_at_most(web):
    answer = begin(web, 'n = 0\nwhile True:\n    await add(a=n)\n    n += 1')
    for _ in range(99):
        answer = go_on(web, answer, 0)
    assert 'run 100 times' in go_on(web, answer, 0, status=400)['message']


def test_results_are_bounded(web):
    answer = begin(web, 'while True:\n    await add(a=1)')
    for _ in range(4):
        answer = go_on(web, answer, 'x' * 900_000)
    assert 'bytes as JSON' in go_on(web, answer, 'x' * 900_000, status=400)['message']
