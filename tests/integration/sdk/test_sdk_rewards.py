"""caisson.rewards: callables of TRL, verifiers and AReaL, their rules for engine faults, pickles and processes."""

import asyncio
import inspect
import json
import multiprocessing
import pickle
from types import SimpleNamespace

import pytest

import caisson
from caisson import rewards
from grade_stub import GradeStub

GOOD = {'function': 'f', 'cases': [{'args': [1], 'expected': 2}, {'args': [2], 'expected': 3}]}
RIGHT, HALF, WRONG = (f'```python\ndef f(x):\n    return {value}\n```' for value in ('x + 1', '2', '0'))
STDIN = json.dumps({'language': 'python', 'test_cases': [{'input': '1 2\n', 'output': '3\n', 'type': 'stdin_stdout'}]})
SUM = '```python\nprint(sum(map(int, input().split())))\n```'
AREAL = {'prompt': 'p', 'prompt_ids': [1], 'completion_ids': [2]}

KINDS = [rewards.trl, rewards.verifiers, rewards.areal]


@pytest.fixture(name='completions')
def client_with_completions(client):
    """A daemon that takes `completion`."""
    if client.grade_many([{'completion': RIGHT, **GOOD}])[0].score != 1.0:
        pytest.skip('the daemon does not read completion')
    return client


def call(reward, problem, completion):
    """One reward, however the trainer asks for it."""
    if isinstance(reward, rewards.trl):
        return reward(prompts=['p'], completions=[completion], **{reward.column: [problem]})[0]
    if isinstance(reward, rewards.verifiers):
        return asyncio.run(reward(SimpleNamespace(**{reward.column: problem}), SimpleNamespace(last_reply=completion), None))
    return reward(completions=completion, **AREAL, **{reward.column: problem})


# ---- what is graded ----

def test_trl_gives_a_reward_for_each_completion(completions):
    assert completions.is_live
    reward = rewards.trl('problem')
    assert reward([RIGHT, HALF, WRONG, 'no code'], problem=[GOOD, json.dumps(GOOD), GOOD, GOOD], prompts=['a'] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert rewards.trl('problem', reward='partial')(completions=[RIGHT, HALF], problem=[GOOD] * 2) == [1.0, 0.5]
    assert asyncio.run(reward.acall(completions=[RIGHT], problem=[GOOD])) == [1.0]


@pytest.mark.parametrize('completion', [
    RIGHT, [{'role': 'assistant', 'content': RIGHT}], {'role': 'assistant', 'content': RIGHT},
    [{'role': 'user', 'content': WRONG}, {'role': 'assistant', 'content': [{'type': 'text', 'text': RIGHT[:9]}, {'type': 'text', 'text': RIGHT[9:]}]}]])
def test_a_completion_is_a_text_or_messages(completions, completion):
    assert completions.is_live
    assert rewards.trl('problem')([completion], problem=[GOOD]) == [1.0]


@pytest.mark.parametrize('kind', KINDS)
def test_verification_info_of_open_r1_is_read(completions, kind):
    assert completions.is_live
    for problem in (STDIN, json.loads(STDIN), json.loads(STDIN)['test_cases']):
        assert call(kind(), problem, SUM) == 1.0
    assert call(kind(), STDIN, '```python\nprint(4)\n```') == 0.0


@pytest.mark.parametrize('format, problem', [
    ('primeintellect', STDIN), ('verl', {'inputs': ['1 2\n'], 'outputs': ['3\n']}), ('lcb', json.dumps({'inputs': ['1 2\n'], 'outputs': ['3\n']})),
    ('taco', {'input_output': json.dumps({'inputs': ['1 2\n'], 'outputs': ['3\n']}), 'difficulty': 'EASY'})])
def test_a_column_may_have_records_of_a_format(completions, format, problem):
    assert completions.is_live
    reward = rewards.areal('ground_truth', format=format)
    assert (call(reward, problem, SUM), call(reward, problem, '```python\nprint(4)\n```')) == (1.0, 0.0)


def test_options_are_fields_of_each_request():
    with GradeStub(['passed']) as stub:
        reward = rewards.trl('problem', base_url=stub.url, options={'case_cpu_ms': 500, 'extract': 'verl'}, key='k')
        assert reward([RIGHT] * 3, problem=[GOOD] * 3) == [1.0] * 3
        request, = stub.requests
        assert all(line['case_cpu_ms'] == 500 and line['extract'] == 'verl' and line['completion'] == RIGHT for line in request['lines'])
        assert request['headers']['Authorization'] == 'Bearer k'


def test_a_column_may_name_a_stored_problem():
    with GradeStub(['passed']) as stub:
        assert call(rewards.areal('label', base_url=stub.url), 'mine/double', RIGHT) == 1.0
        line, = stub.requests[0]['lines']
        assert (line['problem'], line['completion']) == ('mine/double', RIGHT)


def test_verifiers_finds_the_problem_and_the_completion():
    info, last = SimpleNamespace(info={'problem': GOOD}), SimpleNamespace(last_reply=None, completion=None, messages=[{'role': 'assistant', 'content': RIGHT}])
    data = SimpleNamespace(data=SimpleNamespace(problem=GOOD))
    with GradeStub(['passed']) as stub:
        reward = rewards.verifiers('problem', base_url=stub.url)
        for task, trace in ((info, last), (data, {'completion': RIGHT}), ({'problem': GOOD}, SimpleNamespace(last_reply=RIGHT))):
            assert asyncio.run(reward(task=task, trace=trace, runtime=None)) == 1.0
        assert {request['lines'][0]['completion'] for request in stub.requests} == {RIGHT}
        with pytest.raises(caisson.InvalidRequest):
            asyncio.run(reward({'other': 1}, last, None))
        with pytest.raises(caisson.InvalidRequest):
            asyncio.run(reward(info, object(), None))


# ---- the forms of the trainers ----

@pytest.mark.parametrize('kind, names', [(rewards.trl, ['completions', 'columns']), (rewards.verifiers, ['task', 'trace', 'runtime']),
                                         (rewards.areal, ['prompt', 'completions', 'prompt_ids', 'completion_ids', 'columns'])])
def test_a_reward_has_the_parameters_that_its_trainer_gives(kind, names):
    reward = kind()
    assert list(inspect.signature(reward).parameters) == names
    assert reward.__name__ == 'caisson_reward' and kind(name='other').__name__ == 'other'
    assert asyncio.iscoroutinefunction(reward) == (kind is rewards.verifiers)


# ---- engine faults ----

def scores(reward, codes, prompts=None):
    with GradeStub(['by_code']) as stub:
        reward.base_url = stub.url
        return reward(completions=codes, problem=[GOOD] * len(codes), prompts=prompts or ['p'] * len(codes)), stub.requests


def test_trl_a_fault_gets_the_mean_of_its_prompt():
    codes = ['good', 'lost', 'bad', 'good', 'bad', 'bad', 'lost', 'lost', *['good'] * 24]
    prompts = ['a'] * 4 + ['b'] * 2 + ['c'] * 2 + ['d'] * 24
    found, requests = scores(rewards.trl('problem'), codes, prompts)
    assert found[:6] == [1.0, pytest.approx(2 / 3), 0.0, 1.0, 0.0, 0.0] and found[8:] == [1.0] * 24
    assert found[6] == found[7] == pytest.approx(26 / 29)        # nothing of the prompt is known: the mean of the batch
    assert [len(request['lines']) for request in requests] == [32, 3, 3]


def test_trl_prompts_of_messages_are_groups():
    def message(text):
        return [{'role': 'user', 'content': text}]
    found, _ = scores(rewards.trl('problem'), ['good', 'bad', 'lost'], [message('a'), message('b'), message('a')])
    assert found == [1.0, 0.0, 1.0]


@pytest.mark.parametrize('rule, value', [('none', None), ('zero', 0.0)])
def test_trl_a_fault_is_what_the_rule_says(rule, value):
    assert scores(rewards.trl('problem', on_engine_fault=rule), ['good', 'lost'])[0] == [1.0, value]


def test_trl_a_fault_raises_if_the_rule_says_so():
    with pytest.raises(caisson.EngineFault) as caught:
        scores(rewards.trl('problem', on_engine_fault='raise'), ['good', 'lost'])
    assert (caught.value.faults, caught.value.total) == (1, 2)


@pytest.mark.parametrize('rule', ['none', 'zero', 'group_mean'])
def test_too_many_faults_raise_whatever_the_rule_is(rule):
    with pytest.raises(caisson.EngineFault) as caught:
        scores(rewards.trl('problem', on_engine_fault=rule), ['good'] * 26 + ['lost'] * 4)
    assert 'max_engine_fault_fraction' in str(caught.value)
    assert scores(rewards.trl('problem', on_engine_fault=rule, max_engine_fault_fraction=0.2), ['good'] * 26 + ['lost'] * 4)[0][:26] == [1.0] * 26


def test_faults_of_single_calls_are_counted_over_the_last_ones():
    with GradeStub(['by_code']) as stub:
        reward = rewards.verifiers('problem', base_url=stub.url)
        assert [call(reward, GOOD, text) for text in ['lost', *['good'] * 30, 'lost', 'lost']] == [None, *[1.0] * 30, None, None]
        with pytest.raises(caisson.EngineFault):
            for _ in range(10):
                call(reward, GOOD, 'lost')


def test_a_batch_without_any_score_raises():
    with pytest.raises(caisson.EngineFault):
        scores(rewards.trl('problem', max_engine_fault_fraction=1), ['lost', 'lost'])


@pytest.mark.parametrize('kind, outcome', [(rewards.trl, 'raises'), (rewards.areal, 'raises'), (rewards.verifiers, None)])
def test_the_default_is_never_zero(kind, outcome):
    with GradeStub(['masked']) as stub:
        reward = kind(base_url=stub.url)
        if outcome is None:
            assert call(reward, GOOD, RIGHT) is None
        else:
            with pytest.raises(caisson.EngineFault):
                call(reward, GOOD, RIGHT)
        assert len(stub.requests) == 3


@pytest.mark.parametrize('fault', ['cut', 'nothing', 'limited', 'draining'])
def test_a_server_in_trouble_is_a_fault_that_is_repeated(fault):
    with GradeStub([fault, 'by_code']) as stub:
        reward = rewards.trl('problem', base_url=stub.url)
        found = reward(['good', 'bad', 'good', 'bad'], problem=[GOOD] * 4)
    assert sorted(found) in ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0])        # `cut` passes what it answers


def test_the_part_of_a_reward_is_chosen():
    with GradeStub(['by_code']) as stub:
        assert [call(rewards.areal('problem', base_url=stub.url, reward=kind), GOOD, 'part') for kind in ('binary', 'partial', 'score')] == [0.0, 0.5, 0.0]


@pytest.mark.parametrize('settings, field', [
    ({'reward': 'points'}, 'reward'), ({'on_engine_fault': 'ignore'}, 'on_engine_fault'), ({'engine_retries': -1}, 'engine_retries'),
    ({'max_engine_fault_fraction': 1.5}, 'max_engine_fault_fraction')])
def test_a_setting_that_there_is_not_is_refused(settings, field):
    for kind in KINDS:
        with pytest.raises(caisson.InvalidRequest) as caught:
            kind(**settings)
        assert caught.value.field == field


def test_group_mean_needs_a_batch():
    for kind in (rewards.verifiers, rewards.areal):
        with pytest.raises(caisson.InvalidRequest):
            kind(on_engine_fault='group_mean')


def test_a_column_that_is_missing_or_no_problem_is_an_error_of_the_caller():
    reward = rewards.trl('problem', base_url='http://127.0.0.1:9')
    for columns in ({}, {'problem': [GOOD] * 2}, {'problem': ['{']}, {'problem': [3]}, {'problem': [None]}):
        with pytest.raises(caisson.InvalidRequest) as caught:
            reward([RIGHT], **columns)
        assert caught.value.field == 'problem'
    with pytest.raises(caisson.InvalidRequest):
        reward([3], problem=[GOOD])
    with pytest.raises(caisson.InvalidRequest):
        rewards.areal('problem')(completions=RIGHT, **AREAL)


# ---- processes ----

def graded(reward):
    return call(reward, GOOD, RIGHT), call(reward, GOOD, WRONG)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_a_reward_works_in_other_processes_after_it_has_worked_here(completions, kind, method):
    reward = kind('problem')
    assert graded(reward) == (1.0, 0.0)
    assert graded(pickle.loads(pickle.dumps(reward))) == (1.0, 0.0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(graded, [reward] * 3) == [(1.0, 0.0)] * 3
    assert graded(reward) == (1.0, 0.0) and completions.is_live


def test_a_reward_keeps_its_settings_in_a_pickle():
    for kind in KINDS:
        reward = kind('problem', format='verl', reward='partial', on_engine_fault='none', engine_retries=5, options={'prelude': 'verl'}, name='mine')
        other = pickle.loads(pickle.dumps(reward))
        assert (other.column, other.format, other.reward, other.rule, other.options, other.__name__) == ('problem', 'verl', 'partial', reward.rule,
                                                                                                         {'prelude': 'verl'}, 'mine')
        assert asyncio.iscoroutinefunction(other) == asyncio.iscoroutinefunction(reward)


def test_a_reward_survives_event_loops(completions):
    assert completions.is_live
    reward = rewards.verifiers('problem')

    async def many():
        return await asyncio.gather(*(reward({'problem': GOOD}, {'completion': RIGHT}, None) for _ in range(10)))
    assert asyncio.run(many()) == asyncio.run(many()) == [1.0] * 10
