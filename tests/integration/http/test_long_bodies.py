"""Long bodies of requests: ceilings by route and by number of values, and parsing outside of the event loop."""

import json
import re

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


def test_a_client_that_leaves_while_its_body_is_parsed(web):
    body = json.dumps({'language': 'bash', 'code': 'true', 'stdin': 'x' * 8000000})
    for path, kind in (('/v1/runs', JSON), ('/v1/grade', JSON), ('/v1/runs/bulk', LINES), ('/run_code', JSON)):
        connection = web.open()
        connection.request('POST', path, body, {name.replace('_', '-'): value for name, value in kind.items()})
        connection.close()
    assert web.run('echo there')['stdout'] == 'there\n'


def test_the_daemon_ends_while_bodies_are_parsed(tmp_path):
    body = json.dumps({'language': 'bash', 'code': 'true', 'stdin': 'x' * 30000000})
    with Probed(tmp_path) as web:
        connections = [web.open() for _ in range(4)]
        for connection in connections:
            connection.request('POST', '/v1/runs', body, {'Content-Type': 'application/json'})
        assert web.stop() == 0


@pytest.mark.parametrize('work', ['values', 'cases', 'lines', 'long lines', 'wrong lines'])
def test_no_step_of_the_loop_is_long(web, work):
    bodies = {'values': ('/v1/runs', values(20 * 2**20), JSON),
              'cases': ('/v1/grade', b'{"code": "1", "cases": [' + b'{},' * 5000000 + b'{}]}', JSON),
              'lines': ('/v1/runs/bulk', b'{"id": 1}\n' * 10000, LINES),
              'wrong lines': ('/v1/runs/bulk', b'{\n' * 10000, LINES),
              'long lines': ('/v1/runs/bulk', values(3 * 2**20) + b'\n' + values(3 * 2**20), LINES)}
    path, body, kind = bodies[work]
    steps_of(web, lambda: web.ask('POST', path, body, **kind))
