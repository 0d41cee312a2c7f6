"""The fronts of trainers before a gateway: rewards at any worker, problem sets at each, sessions at one."""

import json

import pytest

from fleet import Fleet

PROBLEM = {'id': 'double', 'function': 'f', 'cases': [{'args': [2], 'expected': 4}]}
GOOD = '```python\ndef f(x): return x * 2\n```'


@pytest.fixture(name='fleet', scope='module')
def running(tmp_path_factory):
    one = Fleet(tmp_path_factory.mktemp('trainers'), 2)
    yield one
    one.stop()


def test_rewards_and_evaluations_go_to_all_workers(fleet):
    ask = {'prompt': '', 'response': GOOD, 'label': json.dumps(PROBLEM)}
    answers = [fleet.gateway.ask('POST', '/reward/slime', ask) for _ in range(20)]
    assert {answer[2] for answer in answers} == {1.0} and len({answer[1]['Caisson-Worker'] for answer in answers}) == 2
    assert fleet.gateway.ask('POST', '/reward/openrlhf', {'query': [GOOD], 'prompts': [''], 'labels': [PROBLEM]})[2] == {'rewards': [1]}
    cases = {'type': 'stdin_stdout', 'input': [''], 'output': ['1']}
    assert fleet.gateway.ask('POST', '/common_evaluate_batch', {'completion': '```python\nprint(1)\n```', 'config': {'language': 'python', 'provided_data': {'test_cases': cases}}})[2]['accepted']


def test_a_problem_set_is_at_each_worker(fleet):
    gateway = fleet.gateway
    status, _, info = gateway.ask('PUT', '/v1/problems/mine', json.dumps(PROBLEM).encode())
    assert status == 201 and (info['name'], info['problems']) == ('mine', 1)
    assert gateway.ask('PUT', '/v1/problems/mine', json.dumps(PROBLEM).encode())[0] == 200
    assert gateway.ask('GET', '/v1/problems/mine')[2]['problems'] == 1 and len(gateway.ask('GET', '/v1/problems')[2]['problem_sets']) == 1
    answers = [gateway.ask('POST', '/v1/grade', {'problem': 'mine/double', 'code': 'def f(x): return x * 2'}) for _ in range(20)]
    assert all(answer[2]['all_passed'] for answer in answers) and len({answer[1]['Caisson-Worker'] for answer in answers}) == 2
    status, _, problem = gateway.ask('PUT', '/v1/problems/mine', b'x')
    assert status == 422 and 'line 1' in problem['detail']
    assert gateway.ask('DELETE', '/v1/problems/mine')[0] == 204 and gateway.ask('GET', '/v1/problems/mine')[0] == gateway.ask('DELETE', '/v1/problems/mine')[0] == 404


def test_a_session_stays_at_its_worker(fleet):
    def execute(name, code):
        return fleet.gateway.ask('POST', '/execute', {'generated_code': code}, X_Session_ID=name)[2]
    for n in range(6):
        assert execute(f's{n}', f'a = {n}')['new_session_created']
    for n in range(6):
        assert execute(f's{n}', 'a') == {'process_status': 'completed', 'stdout': f'{n}\n', 'stderr': '', 'new_session_created': False}
    assert set(fleet.gateway.ask('GET', '/sessions')[2]['sessions']) == {f's{n}' for n in range(6)}
    assert fleet.gateway.ask('DELETE', '/sessions/s3')[0] == 200 and fleet.gateway.ask('DELETE', '/sessions/s3')[0] == 404
    assert execute('s3', 'a')['new_session_created']


def test_a_grading_without_a_verdict_is_told_once(fleet):
    status, headers, result = fleet.gateway.ask('POST', '/v1/grade', {'language': 'cobol', 'code': '', 'cases': [{'stdin': '', 'expected_stdout': ''}]})
    assert status == 503 and headers['Retry-After'] and result['mask'] and result['score'] is None
