"""The fronts of trainers with long bodies, and large sets of problems: no step of the event loop is long."""

import json

import pytest

from steps import Probed, steps_of

CASES = [{'args': [number], 'expected': number * 2, 'name': 'x' * 900} for number in range(400)]
LABEL = json.dumps({'function': 'f', 'cases': CASES})
GOOD = '```python\ndef f(x):\n    return x * 2\n```'


@pytest.fixture(name='place', scope='module')
def probed(tmp_path_factory):
    with Probed(tmp_path_factory.mktemp('trainers'), '--set', 'ceilings.memory_bytes=4GiB') as web:
        web.ask('POST', '/v1/grade', {'code': 'def f(x):\n    return x\n', 'function': 'f', 'cases': [{'args': [1], 'expected': 1}]})
        yield web


def test_a_long_label(place):
    steps_of(place, lambda: check(place.ask('POST', '/reward/slime', {'prompt': '', 'response': GOOD, 'label': LABEL}), 1))


def test_a_batch_of_long_labels(place):
    body = {'query': [GOOD] * 6, 'prompts': [''] * 6, 'labels': [LABEL] * 6}
    steps_of(place, lambda: check(place.ask('POST', '/reward/openrlhf', body), {'rewards': [1] * 6}))


def test_a_batch_that_is_refused_at_once(place):
    """Its trees are freed by a helper thread."""
    body = {'query': [GOOD] * 60, 'prompts': [''] * 60, 'labels': [{'problem': 'none/here'}] + [{'function': 'f', 'cases': CASES}] * 59}
    steps_of(place, lambda: check(place.ask('POST', '/reward/openrlhf', body), None, 400))


def test_a_long_evaluation(place):
    cases = {'type': 'function_call', 'fn_name': 'f', 'input': [[n, 'x' * 900] for n in range(400)], 'output': [[2 * n] for n in range(400)]}
    body = {'completion': '```python\ndef f(x, text):\n    return x * 2\n```', 'config': {'language': 'python', 'provided_data': {'test_cases': cases}, 'extra': {'run_all_cases': True}}}

    def work():
        status, _, answer = place.ask('POST', '/common_evaluate_batch', body)
        assert status == 200 and answer['accepted'] and len(answer['tests']) == 400
    steps_of(place, work)


def test_a_large_set_and_gradings_with_its_problems(place):
    problems = ('\n'.join(json.dumps({'id': n, 'function': 'f', 'cases': CASES[:10]}) for n in range(1000))).encode()
    steps_of(place, lambda: check(place.ask('PUT', '/v1/problems/large', problems), None, 200), prepare=lambda: place.ask('PUT', '/v1/problems/large', problems), creates=place.folder)
    long = json.dumps([{'id': 'long', 'function': 'f', 'cases': CASES}]).encode()
    place.ask('PUT', '/v1/problems/long', long)

    def work():
        for name in ('large/999', 'long/long'):
            check(place.ask('POST', '/reward/slime', {'prompt': '', 'response': GOOD, 'label': name}), 1)
    steps_of(place, work)


def check(answer, body, status=200):
    assert answer[0] == status and (body is None or answer[2] == body), str(answer)[:2000]
