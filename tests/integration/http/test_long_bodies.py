"""Long bodies of requests: ceilings by route and by number of values, and parsing outside of the event loop."""

import base64
import json
import re
import time

import pytest

from steps import Probed, steps_of

JSON = {'Content_Type': 'application/json'}
LINES = {'Content_Type': 'application/x-ndjson'}
VALUES_MAX = 200000                  # PARSE_VALUES_MAX in src/front/service/parse.h
CASES_VALUES_MAX = 1000000           # PARSE_CASES_VALUES_MAX
TREE_VALUES_MAX = 50000              # JSON_BODY_PARTS_MAX in src/front/service/json_body.h


@pytest.fixture(name='web', scope='module')
def running(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('bodies')) as web:
        yield web


def values(n, before='{"language": "bash", "code": "true", "x": [', after='1]}'):
    return (before + '1,' * n + after).encode()


def memory(web, name='VmHWM'):
    text = open(f'/proc/{web.daemon.process.pid}/status', encoding='ascii').read()
    return int(re.search(rf'^{name}:\s+(\d+) kB', text, flags=re.M)[1]) * 1024


@pytest.mark.parametrize('path', ['/v1/runs', '/v1/check'])
def test_number_of_values_has_a_ceiling(web, path):
    mib = {'/v1/runs': 58, '/v1/check': 7}[path]
    status, _, answer = web.ask('POST', path, values(mib * 2**19), **JSON)
    assert (status, answer['code']) == (413, 'too_large')
    assert answer['detail'] == f'the JSON has more than {VALUES_MAX} values and names'


def test_grading_has_a_ceiling_of_its_own(web):
    body = b'{"code": "1", "cases": [' + b'{},' * 15000000 + b'{}]}'
    status, _, answer = web.ask('POST', '/v1/grade', body, **JSON)
    assert (status, answer['detail']) == (413, f'the JSON has more than {CASES_VALUES_MAX} values and names')


def test_many_values_cost_no_memory_that_stays(web):
    for _ in range(2):
        web.ask('POST', '/v1/runs', values(29 * 2**20), **JSON)
    assert memory(web) < 400 * 2**20
    assert memory(web, 'VmRSS') < 150 * 2**20


@pytest.mark.parametrize('path', ['/run_code', '/api/v2/execute', '/submissions'])
def test_trees_of_other_formats_have_a_ceiling(web, path):
    status, _, answer = web.ask('POST', path, values(TREE_VALUES_MAX), **JSON)
    assert status in (400, 422), answer
    assert f'more than {TREE_VALUES_MAX} values' in json.dumps(answer)


def test_a_message_of_mcp_has_a_ceiling(web):
    body = values(TREE_VALUES_MAX, '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": [', '1]}}')
    status, _, answer = web.ask('POST', '/mcp', body, Accept='application/json, text/event-stream', **JSON)
    assert (status, answer['error']['code']) == (400, -32700)
    assert f'more than {TREE_VALUES_MAX} values' in answer['error']['message']


@pytest.mark.parametrize('method, path', [('POST', '/v1/sandboxes/sbx_none/pause'), ('PATCH', '/v1/sandboxes/sbx_none'),
                                          ('POST', '/v1/sandboxes/sbx_none/contexts'), ('POST', '/list_ids')])
def test_a_route_that_takes_no_program_takes_no_long_body(web, method, path):
    status, _, answer = web.ask(method, path, b' ' * 300000 + b'{}', **JSON)
    assert status == 413, answer
    assert '262144 bytes' in json.dumps(answer)


@pytest.mark.parametrize('size', [100, 40000, 3000000])
def test_a_long_program_means_the_same(web, size):
    """Parsed at once or by a helper thread."""
    record = web.run('wc -c < data; cat', files=[{'name': 'data', 'content': 'é' * (size // 2)}], stdin='in\x00put')
    assert record['stdout'] == f'{size}\nin\x00put'


@pytest.mark.parametrize('body, words', [(b'{"code": "' + b'x' * 40000 + b'"', 'not JSON'), (b'[' * 40000, 'nested deeper than 32'),
                                         (b'{"code": 5, "x": "' + b'x' * 40000 + b'"}', 'code'),
                                         (b'{"code": "\xff' + b'x' * 40000 + b'"}', 'not JSON'),
                                         (b'{"id": 1, "id": 1, "x": "' + b'x' * 40000 + b'"}', 'not JSON')])
def test_a_long_wrong_body_is_refused_as_a_short_one(web, body, words):
    status, _, answer = web.ask('POST', '/v1/runs', body, **JSON)
    short = web.ask('POST', '/v1/runs', body.replace(b'x' * 40000, b'x').replace(b'[' * 40000, b'[' * 400), **JSON)
    assert status == short[0] and status in (400, 422)
    assert words in answer['detail'] and words in short[2]['detail']


def test_a_name_of_a_long_request_is_known_again(web):
    body = json.dumps({'language': 'bash', 'code': 'echo $RANDOM', 'stdin': 'x' * 50000})
    one = web.ask('POST', '/v1/runs', body, Idempotency_Key='long', **JSON)
    two = web.ask('POST', '/v1/runs', body, Idempotency_Key='long', **JSON)
    other = web.ask('POST', '/v1/runs', body.replace('xx', 'xy', 1), Idempotency_Key='long', **JSON)
    assert one[0] == two[0] == 200 and one[2]['id'] == two[2]['id']
    assert other[0] == 422


def test_two_files_of_one_name_are_found_among_many(web):
    files = [{'name': f'{i}', 'content': ''} for i in range(9000)]
    for name, words in (('77', 'two input files have the name 77'), ('main.sh', "the program's")):
        status, _, record = web.ask('POST', '/v1/runs', {'language': 'bash', 'code': 'true', 'files': [*files, {'name': name, 'content': ''}]})
        assert status == 200 and record['status'] == 'bad_request' and words in record['error']['message'], record['error']


def test_lines_long_and_short_are_answered_in_one_body(web):
    long = json.dumps({'id': 'long', 'language': 'bash', 'code': 'wc -c', 'stdin': 'x' * 1000000})
    many = '{"id": "many", "code": "1", "x": [' + '1,' * VALUES_MAX + '1]}'
    lines = [long, '{"id": "short", "language": "bash", "code": "echo 1"}', many, '[1]', 'nothing', long.replace('"long"', '7')]
    status, _, text = web.ask('POST', '/v1/runs/bulk', '\n'.join(lines), **LINES)
    answers = {answer['line']: answer for answer in map(json.loads, text.splitlines())}
    assert status == 200 and sorted(answers) == [1, 2, 3, 4, 5, 6]
    assert answers[1]['record']['stdout'] == answers[6]['record']['stdout'] == '1000000\n'
    assert (answers[1]['id'], answers[2]['id'], answers[6]['id']) == ('long', 'short', 7)
    assert answers[2]['record']['stdout'] == '1\n'
    assert f'more than {VALUES_MAX} values' in answers[3]['error']['message']
    assert 'error' in answers[4] and 'error' in answers[5]


def fusion(size):
    data = base64.b64encode(b'x' * size).decode()
    lines = '\r\n'.join(data[i:i + 76] for i in range(0, len(data), 76))
    return '/run_code', {'language': 'bash', 'code': 'cat a ./b | wc -c; wc -c', 'files': {'a': data, './b': lines}, 'stdin': 'é\0'}


def piston(size):
    files = [{'content': 'cat a b c | wc -c; wc -c'}, {'name': 'a', 'content': 'x' * size},
             {'name': 'b', 'content': '00' * size, 'encoding': 'hex'},
             {'name': 'c', 'content': base64.b64encode(b'x' * size).decode(), 'encoding': 'base64'}]
    return '/api/v2/execute', {'language': 'bash', 'version': '*', 'files': files, 'stdin': 'é'}


def submission(size, **more):
    return {'language_id': 46, 'source_code': 'wc -c', 'stdin': 'x' * size, 'expected_output': f'{size}', **more}


def graded(size):
    one = {'input': {'stdin': 'x' * size}, 'output': {'stdout': str(size)}}
    return '/submit', {'dataset': 'd', 'id': 'i' * size, 'completion': '```bash\nwc -c\n```',
                       'config': {'dataset_type': 'CommonOJDataset', 'language': 'bash', 'provided_data': {'test': [one, one]}}}


def ask(web, path, body):
    return web.ask('POST', path, json.dumps(body), **JSON)


@pytest.mark.parametrize('size', [10, 20000, 1500000])
def test_a_long_request_in_another_format_means_the_same(web, size):
    status, _, answer = ask(web, *fusion(size))
    assert (status, answer['status'], answer['run_result']['stdout']) == (200, 'Success', f'{2 * size}\n3\n')
    status, _, answer = ask(web, *piston(size))
    assert (status, answer['run']['stdout']) == (200, f'{3 * size}\n3\n')
    status, _, answer = ask(web, '/submissions?wait=true&fields=*', submission(size))
    assert (status, answer['status']['id'], answer['stdin']) == (201, 3, 'x' * size)
    path, body = graded(size)
    status, _, answer = ask(web, path, body)
    assert (status, answer['accepted'], answer['id']) == (200, True, body['id'])
    assert [test['test_info'] for test in answer['tests']] == body['config']['provided_data']['test']


def mcp(web, method, **params):
    names = {'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri'}
    meta = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}
    body = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': {**params, '_meta': meta}}
    return web.ask('POST', '/mcp', json.dumps(body, ensure_ascii=False).encode(), Accept='application/json, text/event-stream', MCP_Protocol_Version='2026-07-28',
                   Mcp_Method=method, Mcp_Name=params[names[method]], **JSON)[2]


def call(web, tool, **arguments):
    return mcp(web, 'tools/call', name=tool, arguments=arguments)['result']


@pytest.mark.parametrize('size', [10, 20000, 1000000])
def test_long_arguments_of_a_tool_mean_the_same(web, size):
    data = base64.b64encode(b'x' * size).decode()
    result = call(web, 'run_code', language='bash', code='wc -c < a; wc -c', files=[{'name': 'a', 'content_base64': data}], stdin='é\0' * size)
    assert result['structuredContent']['stdout'] == f'{size}\n{3 * size}\n'
    sandbox = call(web, 'create_sandbox')['structuredContent']['id']
    for content, text in (({'content': 'é' * size}, 'é' * size), ({'content_base64': data}, 'x' * size)):
        assert call(web, 'write_file', sandbox=sandbox, path='a', **content)['structuredContent']['size_bytes'] == len(text.encode())
        assert call(web, 'run_command', sandbox=sandbox, command='wc -c < /home/user/a')['structuredContent']['stdout'].strip() == str(len(text.encode()))
    call(web, 'kill_sandbox', sandbox=sandbox)


@pytest.mark.parametrize('tool, wrong', [('run_code', {'code': 5, 'language': 'bash'}), ('run_code', {'tongue': 1}), ('write_file', {}),
                                         ('write_file', {'sandbox': 'a b', 'path': 'a'}), ('nothing', {}),
                                         ('write_file', {'sandbox': 'a', 'path': 'a', 'content_base64': '!'})])
def test_long_wrong_arguments_are_answered_as_short_ones(web, tool, wrong):
    short, long = (mcp(web, 'tools/call', name=tool, arguments=wrong, padding='x' * n) for n in (1, 40000))
    assert short == long and ('error' in short or short['result']['isError'])


def test_names_and_tasks_of_mcp_have_ceilings(web):
    assert 'longer than 4096 bytes' in call(web, 'read_file', sandbox='a', path='x' * 4097)['content'][0]['text']
    assert 'longer than 16384 bytes' in mcp(web, 'resources/read', uri='sandbox:' + 'x' * 20000)['error']['message']
    for size, words in ((65536, 'result'), (65537, 'error')):
        answer = mcp(web, 'prompts/get', name='write_program', arguments={'task': 'x' * size})
        assert words in answer, answer
    assert 'longer than 65536 bytes' in answer['error']['message']


@pytest.mark.parametrize('path, wrong', [
    ('/run_code', {'code': 1}), ('/run_code', {'code': '1', 'language': 'tongue'}), ('/run_code', {'code': '1', 'language': 'cpp'}),
    ('/run_code', {'code': '1', 'language': 'bash', 'files': {'a': '!'}}), ('/submit', {'dataset': 1}),
    ('/submit', {'dataset': 'd', 'id': 1, 'completion': '', 'config': {}}), ('/api/v2/execute', {'language': 'bash'}),
    ('/api/v2/execute', {'language': 'bash', 'version': '9999', 'files': []}),
    ('/api/v2/execute', {'language': 'bash', 'version': '*', 'files': [{'content': '1'}, {'content': 'g', 'encoding': 'hex'}]}),
    ('/submissions', {'language_id': 46, 'cpu_time_limit': 'long'}), ('/submissions/batch', {'submissions': []}),
    ('/submissions/batch', {'submissions': [{'language_id': 46}, {'language_id': 0, 'source_code': '1'}]})])
def test_a_long_wrong_request_in_another_format_is_refused_as_a_short_one(web, path, wrong):
    short, long = (ask(web, path, {**wrong, 'padding': 'x' * n}) for n in (1, 40000))
    assert (short[0], short[2]) == (long[0], long[2])
    assert short[0] in (400, 422) or short[2]['status'] == 'SandboxError'
    assert ask(web, path, [1])[0] in (400, 422) and web.ask('POST', path, b'[' * 50000, **JSON)[0] in (400, 422)


def test_a_range_of_versions_has_a_ceiling(web):
    path, body = piston(10)
    good = ask(web, path, {**body, 'version': '*||' * 300 + '*'})
    status, _, answer = ask(web, path, {**body, 'version': '*||' * 400 + '*'})
    assert good[0] == 200
    assert status == 400 and answer['message'].endswith('runtime is unknown')


def test_tests_as_a_text_have_the_ceilings_of_a_body(web):
    path, body = graded(10)
    for text in ('[' * 100000, '[' + '1,' * TREE_VALUES_MAX + '1]'):
        body['config']['provided_data']['test'] = text
        status, _, answer = ask(web, path, body)
        assert status == 400 and 'a list of 1 to 1000 tests' in answer['detail']


def test_a_batch_of_long_submissions_is_answered_in_its_order(web):
    wrong = submission(1, cpu_time_limit='long')
    status, _, answer = ask(web, '/submissions/batch', {'submissions': [submission(size) for size in (5, 300000, 7)] + [wrong]})
    assert status == 201 and list(answer[3]) == ['cpu_time_limit']
    for size, one in zip((5, 300000, 7), answer):
        until = time.monotonic() + 60
        while True:
            state = web.ask('GET', f'/submissions/{one["token"]}?fields=stdout,status_id')[2]
            if state['status_id'] > 2 or time.monotonic() > until:
                break
            time.sleep(0.1)
        assert (state['status_id'], state['stdout']) == (3, f'{size}\n')


def test_a_client_that_leaves_while_its_body_is_parsed(web):
    body = json.dumps({'language': 'bash', 'code': 'true', 'stdin': 'x' * 8000000})
    many = json.dumps({'submissions': [submission(400000) for _ in range(20)]})
    for path, kind in (('/v1/runs', JSON), ('/v1/grade', JSON), ('/v1/runs/bulk', LINES), ('/run_code', JSON), ('/submit', JSON),
                       ('/api/v2/execute', JSON), ('/submissions', JSON), ('/submissions/batch', JSON), ('/mcp', JSON)):
        connection = web.open()
        body = many if 'batch' in path else body
        connection.request('POST', path, body, {name.replace('_', '-'): value for name, value in kind.items()})
        connection.close()
    assert web.run('echo there')['stdout'] == 'there\n'


@pytest.mark.parametrize('path, body', [('/v1/runs', {'language': 'bash', 'code': 'true', 'stdin': 'x' * 30000000}), fusion(5000000),
                                        graded(5000000), ('/submissions/batch', {'submissions': [submission(700000)] * 20})],
                         ids=['native', 'fusion', 'tests', 'batch'])
def test_the_daemon_ends_while_bodies_are_parsed(tmp_path, path, body):
    body = json.dumps(body)
    with Probed(tmp_path) as web:
        connections = [web.open() for _ in range(4)]
        for connection in connections:
            connection.request('POST', path, body, {'Content-Type': 'application/json'})
        assert web.stop() == 0


NATIVE = {'values': ('/v1/runs', values(20 * 2**20), JSON),
          'cases': ('/v1/grade', b'{"code": "1", "cases": [' + b'{},' * 5000000 + b'{}]}', JSON),
          'lines': ('/v1/runs/bulk', b'{"id": 1}\n' * 10000, LINES),
          'wrong lines': ('/v1/runs/bulk', b'{\n' * 10000, LINES),
          'long lines': ('/v1/runs/bulk', values(3 * 2**20) + b'\n' + values(3 * 2**20), LINES)}


@pytest.mark.parametrize('work', NATIVE)
def test_no_step_of_the_loop_is_long(web, work):
    path, body, kind = NATIVE[work]
    steps_of(web, lambda: web.ask('POST', path, body, **kind))


# Requests that are wrong in what is converted last: to start a run with long inputs is other work.
LONG = base64.b64encode(b'x' * 11000000).decode()
TEST = {'input': {'stdin': 'x' * 1000000}, 'output': {'stdout': 'x'}}
FORMATS = {'fusion file': ('/run_code', {'language': 'bash', 'code': '1', 'files': {'a': LONG, 'b': '!'}}),
           'fusion names': ('/run_code', {'language': 'bash', 'code': '1', 'files': {f'f{i}': 'eA==' for i in range(24000)}}),
           'fusion flaws': ('/run_code', {'language': 'bash', 'code': '1', 'args': [1] * 45000, 'fetch_files': 'x' * 10000000}),
           'fusion language': ('/run_code', {'language': 'x' * 15000000, 'code': '1'}),
           'fusion tests': ('/submit', {**graded(1)[1], 'config': {**graded(1)[1]['config'], 'provided_data': {'test': [TEST] * 14 + [1]}}}),
           'fusion set': ('/submit', {'dataset': 'x' * 15000000, 'id': 1, 'completion': '', 'config': {}}),
           'piston file': ('/api/v2/execute', {'language': 'bash', 'version': '*', 'files': [{'content': '1'}, {
               'content': LONG, 'encoding': 'base64'}, {'content': 'g', 'encoding': 'hex'}]}),
           'piston version': ('/api/v2/execute', {'language': 'bash', 'version': '*||' * 5000000 + '*', 'files': []}),
           'judge0 batch': ('/submissions/batch', {'submissions': [submission(1, source_code='#' * 1100000)] * 12})}


@pytest.mark.parametrize('work', FORMATS)
def test_no_step_is_long_for_a_request_in_another_format(web, work):
    path, body = FORMATS[work]
    steps_of(web, lambda: ask(web, path, body))


TOOLS = {'file': ('run_code', {'language': 'bash', 'code': '1', 'files': [{'name': 'a', 'content_base64': LONG}, {'name': 'b', 'content_base64': '!'}]}),
         'values': ('run_code', {'language': 'bash', 'code': '1', 'args': ['x'] * 45000}),
         'base64': ('write_file', {'sandbox': 'sbx_none', 'path': 'a', 'content_base64': LONG}),
         'text': ('write_file', {'sandbox': 'sbx_none', 'path': 'a', 'content': 'é' * 7000000}),
         'path': ('read_file', {'sandbox': 'sbx_none', 'path': 'x' * 15000000})}


@pytest.mark.parametrize('work', TOOLS)
def test_no_step_is_long_for_arguments_of_a_tool(web, work):
    tool, arguments = TOOLS[work]
    steps_of(web, lambda: call(web, tool, **arguments))


def test_the_runs_of_a_batch_begin_one_a_step(web):
    body = {'submissions': [submission(700000)] * 20}
    steps_of(web, lambda: ask(web, '/submissions/batch', body), at='judge0.c')
