"""caisson.compat: the signatures and the shapes of other graders, at a daemon."""

import asyncio
import base64
import dataclasses
import importlib.util
import inspect
import json
import pickle
import zlib

import pytest

import caisson
from caisson.compat import bigcode, evalplus, human_eval, lcb, rllm, verl
from grade_stub import GradeStub

E = inspect.Parameter.empty

# (ours, [(name, default)], where the original is: repository, revision, file).  Kinds are all positional or keyword.
SIGNATURES = [
    (lcb.codegen_metrics, [('samples_list', E), ('generations_list', E), ('k_list', [1, 5, 10, 20, 40, 50, 75, 100, 125, 150, 200, 500, 1000]),
                           ('num_process_evaluate', 16), ('timeout', 6), ('debug', False)],
     'LiveCodeBench/LiveCodeBench', '15808c76fbd4', 'lcb_runner/evaluation/compute_code_generation_metrics.py'),
    (lcb.check_correctness, [('sample', E), ('generation', E), ('timeout', E), ('debug', True)],
     'LiveCodeBench/LiveCodeBench', '15808c76fbd4', 'lcb_runner/evaluation/compute_code_generation_metrics.py'),
    (lcb.run_test, [('sample', E), ('test', None), ('debug', False), ('timeout', 6)],
     'LiveCodeBench/LiveCodeBench', '15808c76fbd4', 'lcb_runner/evaluation/testing_util.py'),
    (evalplus.untrusted_check, [('code', E), ('inputs', E), ('entry_point', E), ('expected', E), ('atol', E), ('ref_time', E), ('fast_check', False),
                                ('min_time_limit', 0.1), ('gt_time_limit_factor', 2.0)],
     'evalplus/evalplus', '038088e6b91e', 'evalplus/eval/__init__.py'),
    (human_eval.check_correctness, [('problem', E), ('completion', E), ('timeout', E), ('completion_id', None)],
     'openai/human-eval', '12d15a0314d6', 'human_eval/execution.py'),
    (bigcode.check_correctness, [('check_program', E), ('timeout', E), ('task_id', E), ('completion_id', E)],
     'bigcode-project/bigcode-evaluation-harness', '2e6deccc950b', 'bigcode_eval/tasks/custom_metrics/execute.py'),
    (verl.sandbox_fusion, [('sandbox_fusion_url', E), ('concurrent_semaphore', E), ('memory_limit_mb', E), ('completion', E), ('test_cases', E),
                           ('continuous', False), ('timeout', 10)],
     'verl-project/verl', '62e9c5e20f31', 'verl/utils/reward_score/sandbox_fusion/__init__.py'),
    (verl.custom_reward, [('data_source', E), ('solution_str', E), ('ground_truth', E), ('extra_info', None)],
     'verl-project/verl', '0515376a6049', 'verl/utils/reward_score/__init__.py, the first four'),
    (rllm.RewardCodeFn.__init__, [('self', E), ('config', E)], 'rllm-org/rllm', 'of November 2026', 'rllm/rewards/code_reward.py'),
    (rllm.RewardCodeFn.__call__, [('self', E), ('task_info', E), ('action', E)], 'rllm-org/rllm', 'of November 2026', 'rllm/rewards/code_reward.py'),
]


@pytest.mark.parametrize('ours, parameters, repository, revision, path', SIGNATURES, ids=[f'{row[0].__module__}.{row[0].__qualname__}' for row in SIGNATURES])
def test_a_signature_is_that_of_the_original(ours, parameters, repository, revision, path):
    found = list(inspect.signature(ours).parameters.values())
    assert [(one.name, one.default) for one in found] == parameters, f'{repository} {revision} {path}'
    assert {one.kind for one in found} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


@pytest.mark.parametrize('name', ['lcb.codegen_metrics', 'lcb.check_correctness', 'lcb.run_test', 'evalplus.untrusted_check',
                                  'human_eval.check_correctness', 'bigcode.check_correctness'])
def test_an_asynchronous_twin_has_the_same_signature(name):
    module, function = name.split('.')
    module = {'lcb': lcb, 'evalplus': evalplus, 'human_eval': human_eval, 'bigcode': bigcode}[module]
    ours, twin = getattr(module, function), getattr(module, f'a{function}')
    assert inspect.iscoroutinefunction(twin) and inspect.signature(twin) == inspect.signature(ours)
    assert twin.__name__ == f'a{function}' and pickle.loads(pickle.dumps(twin)) is twin


# ---- what the daemon of this build can ----

def need(client, **fields):
    """Skip where the daemon does not know a field or a value of it yet."""
    grade = client.grade_many([{'code': 'x = 1', **fields}])[0]
    if grade.status == 'bad_request' and grade.error_code == 'bad_request':
        pytest.skip(f'the daemon does not read {fields}: {grade.reason}')


@pytest.fixture(name='formats')
def client_with_formats(client):
    need(client, format='lcb', input_output={'inputs': ['1'], 'outputs': ['1']})
    return client


# ---- LiveCodeBench ----

STDIN = {'input_output': json.dumps({'inputs': ['1 2\n', '3 4\n', '5 6\n'], 'outputs': ['3\n', '7\n', '11\n']})}
CALL = {'input_output': json.dumps({'inputs': ['[1, 2]\n3', '[]\n1'], 'outputs': ['[4, 5]', '[]'], 'fn_name': 'add'})}
SUM = 'print(sum(map(int, input().split())))'
SOLUTION = 'class Solution:\n    def add(self, xs: List[int], y: int) -> List[int]:\n        return [x + y for x in xs]\n'


@pytest.mark.parametrize('sample, generation, codes', [
    (STDIN, SUM, [True, True, True]),
    (STDIN, SUM + '\nprint()', [True, True, True]),
    (STDIN, 'print(3)', [True, -2]),
    (STDIN, 'print(1)', [-2]),
    (STDIN, 'print(int(input()))', [-4]),
    (STDIN, 'print(', [-4]),
    (CALL, 'def add(xs, y):\n    return [x + y for x in xs]', [True, True]),
    (CALL, 'def add(xs, y):\n    return tuple(x + y for x in xs)', [True, True]),
    (CALL, 'def add(xs, y):\n    return [xs[0] + 3, 5]', [True, -4]),
    (CALL, 'def add(xs, y):\n    return None', [-2]),
    (CALL, 'def other(xs, y):\n    return xs', [-4]),
], ids=['right', 'right but for an empty line', 'wrong second', 'wrong', 'error', 'no program', 'call', 'call gives a tuple', 'call fails', 'call is wrong',
        'no function'])
def test_lcb_gives_the_codes_to_the_first_failure(formats, sample, generation, codes):
    found, metadata = lcb.check_correctness(sample, generation, timeout=6, debug=False)
    assert found == codes, metadata
    if codes[-1] is True:
        assert list(metadata) == ['execution time'] and metadata['execution time'] >= 0
    else:
        assert metadata['error_code'] == codes[-1] and metadata['error_message']


def test_lcb_has_the_prelude_and_makes_one_solution(formats):
    need(formats, prelude='lcb')
    assert lcb.run_test(CALL, SOLUTION)[0] == [True, True]


def test_lcb_a_program_that_takes_too_long_is_minus_three(formats):
    codes, metadata = lcb.run_test(STDIN, 'while True:\n    pass', timeout=1)
    assert codes == [-3] and metadata['error_message'] == 'Time Limit Exceeded' and metadata['inputs'] == '1 2\n'


def test_lcb_metadata_of_a_wrong_answer(formats):
    codes, metadata = lcb.run_test(STDIN, 'print(input() and "x" * 1000)')
    assert codes == [-2] and metadata['expected'].strip() == '3' and metadata['output'].startswith('xxx') and metadata['inputs'] == '1 2\n'
    assert lcb.shown('x' * 300) == 'x' * 300 and lcb.shown('a' * 200 + 'b' * 200) == 'a' * 150 + '...(truncated) ...' + 'b' * 150


def test_lcb_metrics_of_many_generations(formats, capsys):
    metrics, results, metadata = lcb.codegen_metrics([STDIN, CALL], [[SUM, 'print(1)', SUM], ['def add(xs, y): return 1'] * 2 + [SUM]], k_list=[1, 2, 5])
    assert results == {0: [[True] * 3, [-2], [True] * 3], 1: [[-2], [-2], [-4]]}
    assert metrics['pass@1'] == pytest.approx((2 / 3 + 0) / 2) and metrics['pass@2'] == pytest.approx(0.5)
    assert metrics['detail'] == {'pass@1': {0: pytest.approx(2 / 3), 1: 0.0}, 'pass@2': {0: pytest.approx(1.0), 1: 0.0}}
    assert [len(part) for part in metadata] == [3, 3] and json.loads(metadata[0][1])['error_code'] == -2
    assert capsys.readouterr().out == ''


def test_lcb_pass_at_k_is_the_unbiased_estimate():
    assert lcb.estimate(10, 0, 1) == 0 and lcb.estimate(10, 10, 1) == 1 and lcb.estimate(5, 3, 3) == 1.0
    assert lcb.estimate(10, 3, 2) == pytest.approx(1 - (7 * 6) / (10 * 9))
    assert lcb.metrics_of({}, [1]) == {'detail': {}}


def test_lcb_a_sample_that_is_wrong_is_an_error_of_the_caller(formats):
    for sample in ({}, {'input_output': 'x'}, {'input_output': '[]'}, {'input_output': '{"inputs": []}'}):
        with pytest.raises(caisson.InvalidRequest):
            lcb.check_correctness(sample, SUM, 6)
    with pytest.raises(caisson.InvalidRequest):
        lcb.run_test(STDIN)
    with pytest.raises(caisson.InvalidRequest):
        lcb.run_test(STDIN, SUM, timeout=0)
    with pytest.raises(caisson.InvalidRequest):
        lcb.codegen_metrics([STDIN], [SUM])
    with pytest.raises(caisson.InvalidRequest) as caught:
        lcb.check_correctness({'input_output': json.dumps({'inputs': ['x'], 'outputs': ['1'], 'fn_name': 'f'})}, 'def f(x): return x', 6)
    assert 'input_output' in caught.value.field


def test_lcb_asynchronously(formats):
    async def both():
        return await asyncio.gather(*(lcb.acheck_correctness(STDIN, text, 6, False) for text in (SUM, 'print(1)')), lcb.arun_test(STDIN, SUM),
                                    lcb.acodegen_metrics([STDIN], [[SUM]]))
    right, wrong, tested, metrics = asyncio.run(both())
    assert (right[0], wrong[0], tested[0], metrics[0]['pass@1']) == ([True] * 3, [-2], [True] * 3, 1.0)


# ---- EvalPlus ----

def check(code, inputs, expected, entry_point='f', atol=0, ref=0.01, **more):
    return evalplus.untrusted_check(code, inputs, entry_point, expected, atol, [ref] * len(inputs), **more)


@pytest.mark.usefixtures('client')
@pytest.mark.parametrize('code, inputs, expected, status, details', [
    ('def f(x): return x', [[1], [(1, 2)], [{1, 2}], [{1: 'a'}], [None], [float('inf')]], [1, (1, 2), {1, 2}, {1: 'a'}, None, float('inf')], 'success', [True] * 6),
    ('def f(x): return x', [[1], [2], [3]], [1, 3, 3], 'failed', [True, False, True]),
    ('def f(x): return 1 / x', [[1], [0]], [1, 0], 'failed', [True, False]),
    ('def f(x): return x', [[set()], [frozenset({1})], [b'a'], [1j], [()], [[]]], [set(), frozenset({1}), b'a', 1j, (), []], 'success', [True] * 6),
    ('def g(x): return x', [[1]], [1], 'failed', []),
    ('def f(x', [[1]], [1], 'failed', []),
    ('import os\nos._exit(0)', [[1]], [1], 'failed', []),
], ids=['values', 'one wrong', 'one fails', 'more values', 'no function', 'no program', 'exit'])
def test_evalplus_judges_each_input(code, inputs, expected, status, details):
    assert check(code, inputs, expected, ref=2) == (status, details)


@pytest.mark.usefixtures('client')
def test_evalplus_fast_check_ends_with_the_first_failure():
    assert check('def f(x): return x', [[1], [2], [3]], [1, 3, 3], ref=2, fast_check=True) == ('failed', [True])


@pytest.mark.usefixtures('client')
def test_evalplus_an_input_has_its_own_time():
    code = 'def f(x):\n    while x:\n        pass\n    return x'
    assert check(code, [[0], [1], [0]], [0, 0, 0], ref=0.5, min_time_limit=1, gt_time_limit_factor=1) == ('failed', [True, False, True])


@pytest.mark.usefixtures('client')
def test_evalplus_floats_are_near():
    assert check('def f(x): return x + 1e-9', [[0.5]], [0.5], atol=1e-6, ref=2)[0] == 'success'
    assert check('def f(x): return x + 1e-2', [[0.5]], [0.5], atol=1e-6, ref=2)[0] == 'failed'


def test_evalplus_lists_of_different_lengths_and_objects_are_refused():
    with pytest.raises(caisson.InvalidRequest):
        evalplus.untrusted_check('', [[1]], 'f', [], 0, [1])
    with pytest.raises(caisson.InvalidRequest) as caught:
        check('', [[object()]], [1])
    assert 'object' in str(caught.value)


def test_evalplus_asynchronously(client):
    assert client.is_live
    assert asyncio.run(evalplus.auntrusted_check('def f(x): return x', [[1]], 'f', [1], 0, [2.0])) == ('success', [True])


# ---- human-eval and BigCode ----

PROBLEM = {'task_id': 'T/1', 'prompt': 'def f(x):\n    """Twice."""\n', 'entry_point': 'f',
           'test': 'def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0, "nothing"\n'}


@pytest.mark.usefixtures('client')
@pytest.mark.parametrize('completion, passed, result', [
    ('    return 2 * x\n', True, 'passed'), ('    return x + 2\n', False, 'failed: '), ('    return (\n', False, 'failed: '),
    ('    raise KeyError(x)\n', False, 'failed: '), ('    import os\n    os._exit(0)\n', False, 'failed: '),
    ('    while True:\n        pass\n', False, 'timed out')])
def test_human_eval_judges_a_completion(completion, passed, result):
    found = human_eval.check_correctness(PROBLEM, completion, 2.0, 7)
    assert list(found) == ['task_id', 'passed', 'result', 'completion_id']
    assert (found['task_id'], found['passed'], found['completion_id']) == ('T/1', passed, 7) and found['result'].startswith(result), found


@pytest.mark.usefixtures('client')
@pytest.mark.parametrize('program, passed, result', [
    ('def f(x): return x\nassert f(1) == 1', True, 'passed'), ('assert 1 == 2, "no"', False, 'failed: no'), ('import sys\nsys.exit(0)', False, 'failed: '),
    ('import os\nos._exit(0)\nassert 0', False, 'failed: '), ('x = (', False, 'failed: '), ('while True: pass', False, 'timed out')])
def test_bigcode_runs_a_program_to_its_end(program, passed, result):
    found = bigcode.check_correctness(program, 2.0, 'T/1', 3)
    assert (found['task_id'], found['passed'], found['completion_id']) == ('T/1', passed, 3) and found['result'].startswith(result), found


def test_human_eval_and_bigcode_asynchronously(client):
    assert client.is_live

    async def both():
        return await asyncio.gather(human_eval.acheck_correctness(PROBLEM, '    return 2 * x', 3), bigcode.acheck_correctness('x = 1', 3, 'T', 0))
    assert [one['passed'] for one in asyncio.run(both())] == [True, True]


# ---- verl ----

FENCED = f'Here it is.\n```python\n{SUM}\n```\nDone.'
TRUTH = {'inputs': ['1 2\n', '3 4\n'], 'outputs': ['3\n', '8\n']}
METADATA = ['case_index', 'input', 'expected_output', 'api_request_error', 'api_response', 'status', 'stdout', 'stderr', 'exit_code', 'duration',
            'compile_duration', 'compile_stderr', 'api_status', 'compile_status', 'run_status']


def fusion(completion, cases, **more):
    return verl.compute_score(None, None, 1024, completion, cases, **more)


def test_verl_scores_the_part_of_the_cases(formats):
    assert formats.is_live
    score, metadata = fusion(FENCED, json.dumps(TRUTH))
    assert score == 0.5 and [one['status'] for one in metadata] == ['success', 'wrong_answer']
    assert all(list(one) == METADATA for one in metadata) and metadata[0]['input'] == '1 2\n' and metadata[1]['expected_output'] == '8\n'
    assert metadata[0]['stdout'].strip() == '3' and metadata[0]['api_status'] == 'Success' and metadata[1]['run_status'] == 'Finished'


@pytest.mark.parametrize('completion, statuses', [
    ('```python\nprint(int(input()))\n```', ['runtime_error'] * 2), ('```python\nprint(\n```', ['compile_error'] * 2),
    ('```python\nwhile True: pass\n```', ['timeout'] * 2)])
def test_verl_names_what_is_wrong(formats, completion, statuses):
    assert formats.is_live
    score, metadata = fusion(completion, TRUTH, timeout=1)
    assert score == 0.0 and [one['status'] for one in metadata] == statuses


def test_verl_without_a_block_of_code_or_tests_the_score_is_zero(formats):
    assert formats.is_live
    assert fusion('print(1)', TRUTH) == (0.0, [{'error': 'Invalid completion (missing code block)'}])
    for cases in ('x', {}, {'inputs': ['1']}, None, '[1]'):
        score, metadata = fusion(FENCED, cases)
        assert score == 0.0 and 'inputs and outputs' in metadata[0]['error']
    assert fusion(FENCED, {'inputs': [], 'outputs': []}) == (0.0, [])


def test_verl_calls_functions_and_runs_asserts(formats):
    assert formats.is_live
    code = '```python\ndef add(xs, y):\n    return [x + y for x in xs]\n```'
    assert fusion(code, json.loads(CALL['input_output']))[0] == 1.0
    assert fusion(code, {'assert_case': ['assert add([1], 1) == [2]', 'assert add([1], 1) == [3]']})[0] == 0.5


@pytest.mark.parametrize('codes, score', [([True] * 12, 1.0), ([True] * 9 + [False] + [True] * 5, 0.9), ([True] * 10 + [False, False], 10 / 11),
                                          ([True] * 10 + [-3], 1.0), ([True, -2], 0.5), ([], 0.0)])
def test_verl_continuous_counts_the_first_ten(codes, score):
    assert verl.score_of(codes, True) == pytest.approx(score)


def test_verl_custom_reward(formats, monkeypatch):
    assert formats.is_live
    assert verl.compute_score('taco', FENCED, json.dumps(TRUTH)) == 0.5
    assert verl.compute_score(data_source='taco', solution_str=FENCED, ground_truth=TRUTH, extra_info={'index': 1}) == 0.5
    assert asyncio.run(verl.acompute_score('taco', FENCED, TRUTH, None)) == 0.5
    with pytest.raises(caisson.InvalidRequest) as caught:
        verl.compute_score('openai/gsm8k', FENCED, '72')
    assert 'openai/gsm8k' in str(caught.value) and caught.value.field == 'ground_truth'
    with GradeStub(['passed']) as stub:
        assert verl.compute_score(data_source='taco', solution_str=FENCED, ground_truth=TRUTH, sandbox_fusion_url=f'{stub.url}/run_code',
                                  memory_limit_mb=512, concurrent_semaphore=None) == 0.0       # the stub answers without cases
        assert verl.compute_score(f'{stub.url}/run_code', None, 512, FENCED, TRUTH) == (0.0, [])
        assert [line['limits'] for request in stub.requests for line in request['lines']] == [{'memory_bytes': 512 << 20}] * 2


def test_verl_loads_the_file_by_its_path(formats):
    assert formats.is_live
    spec = importlib.util.spec_from_file_location('custom_module', verl.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.compute_score(data_source='taco', solution_str=FENCED, ground_truth=TRUTH, extra_info=None) == 0.5


# ---- rLLM ----

def reward(source, truth, action, config=None):
    return rllm.RewardCodeFn(config or rllm.RewardConfig())({'data_source': source, 'ground_truth': truth}, action)


FUNCTION = '```python\ndef add(xs, y):\n    return [x + y for x in xs]\n```'


@pytest.mark.parametrize('source, truth, action', [
    ('taco', {'inputs': ['1 2\n'], 'outputs': ['3\n']}, FENCED),
    ('apps', json.dumps({'inputs': ['1 2\n'] * 20, 'outputs': ['3\n'] * 20}), FENCED),
    ('code_contests', {'inputs': [[[1, 2], 3]], 'outputs': [[4, 5]], 'fn_name': 'add'}, FUNCTION),
    ('primeintellect', [{'type': 'stdin_stdout', 'input': '1 2\n', 'output': '3\n'}], FENCED),
    ('livecodebench', [{'input': '[1, 2]\n3', 'output': '[4, 5]', 'testtype': 'functional', 'metadata': {'func_name': 'add'}}], FUNCTION),
    ('codeforces', [{'input': '1 2\n', 'output': '3\n', 'testtype': 'stdin'}], FENCED),
    ('leetcode', {'functional': 'def check(candidate):\n    assert candidate([1], 1) == [2]\n\ncheck(add)'}, FUNCTION),
    ('kodcode', 'from solution import add\n\ndef test_add():\n    assert add([1], 1) == [2]\n', FUNCTION),
    ('humanevalplus', 'def check(candidate):\n    assert candidate([1], 1) == [2]\n\ncheck(add)', FUNCTION)])
def test_rllm_grades_by_data_source(formats, source, truth, action):
    assert formats.is_live
    good = reward(source, truth, f'I think so.\n{action}\n')
    assert (good.reward, good.is_correct, good.metadata['all_passed']) == (1.0, True, True), good
    wrong = reward(source, truth, '```python\ndef add(xs, y):\n    return 0\n```')
    assert (wrong.reward, wrong.is_correct) == (0.0, False), wrong


def test_rllm_takes_the_rewards_of_its_configuration(formats):
    assert formats.is_live

    @dataclasses.dataclass
    class Config:
        correct_reward: float = 2.0
        incorrect_reward: float = -1.0
        format_error_reward: float = -2.0
    truth = {'inputs': ['1 2\n'], 'outputs': ['3\n']}
    assert reward('taco', truth, FENCED, Config()).reward == 2.0
    assert reward('taco', truth, '```\nprint(1)\n```', Config()).reward == -1.0
    assert reward('taco', truth, 'no code', Config()) == rllm.RewardOutput(-2.0, {'error': 'No code found in model response'}, False)
    assert reward('taco', None, FENCED, Config()).reward == -2.0
    with pytest.raises(NotImplementedError):
        reward('poetry', truth, FENCED)
    function = rllm.RewardCodeFn(Config())
    assert asyncio.run(function.acall({'data_source': 'taco', 'ground_truth': truth}, FENCED)).reward == 2.0
    assert asyncio.run(rllm.aRewardCodeFn(Config())({'data_source': 'taco', 'ground_truth': truth}, FENCED)).reward == 2.0


# ---- engine faults ----

def calls():
    """One call of each function, with what it gives under the rules none and zero."""
    return [
        (lambda: lcb.check_correctness(STDIN, SUM, 6, False)[0], [-5], [-5]),
        (lambda: lcb.codegen_metrics([STDIN], [[SUM]], [1])[0].get('pass@1'), None, 0.0),
        (lambda: evalplus.untrusted_check('x', [[1]], 'f', [1], 0, [1]), (None, []), ('failed', [])),
        (lambda: human_eval.check_correctness(PROBLEM, 'x', 1)['passed'], None, False),
        (lambda: bigcode.check_correctness('x', 1, 'T', 0)['passed'], None, False),
        (lambda: verl.compute_score(None, None, None, FENCED, TRUTH)[0], None, 0.0),
        (lambda: verl.compute_score('taco', FENCED, TRUTH), None, 0.0),
        (lambda: reward('taco', TRUTH, FENCED).reward, None, 0.0),
    ]


@pytest.mark.parametrize('number', range(8))
@pytest.mark.parametrize('fault', ['masked', 'broken_checker', 'nothing', 'limited', 'draining'])
def test_an_engine_fault_raises_unless_another_rule_is_set(number, fault, monkeypatch):
    call, none, zero = calls()[number]
    with GradeStub([fault]) as stub:
        caisson.configure(base_url=stub.url)
        with pytest.raises(caisson.EngineFault) as caught:
            call()
        assert (caught.value.faults, caught.value.total) == (1, 1) and caught.value.reasons
        caisson.configure(base_url=stub.url, on_engine_fault='none', max_engine_fault_fraction=1)
        assert call() == none
        caisson.configure(base_url=stub.url, on_engine_fault='zero', max_engine_fault_fraction=1)
        assert call() == zero
        caisson.configure(base_url=stub.url)
        monkeypatch.setenv('CAISSON_ON_ENGINE_FAULT', 'none')
        assert call() == none


def test_a_fault_that_passes_is_repeated_and_not_seen():
    with GradeStub(['masked', 'nothing', 'passed']) as stub:
        caisson.configure(base_url=stub.url)
        assert human_eval.check_correctness(PROBLEM, 'x', 1)['passed'] is True
        assert len(stub.requests) == 3


def test_a_fault_that_stays_is_not_repeated():
    with GradeStub(['broken_checker']) as stub:
        caisson.configure(base_url=stub.url)
        with pytest.raises(caisson.EngineFault) as caught:
            human_eval.check_correctness(PROBLEM, 'x', 1)
        assert len(stub.requests) == 1 and 'checker_failed' in str(caught.value)


def test_a_wrong_problem_is_no_verdict_and_no_engine_fault():
    with GradeStub(['wrong_line']) as stub:
        caisson.configure(base_url=stub.url, on_engine_fault='zero')
        with pytest.raises(caisson.InvalidRequest) as caught:
            human_eval.check_correctness(PROBLEM, 'x', 1)
        assert caught.value.field == '/cases'


@pytest.mark.parametrize('settings', [{'on_engine_fault': 'ignore'}, {'on_engine_fault': 'none', 'engine_retries': -1},
                                      {'on_engine_fault': 'none', 'max_engine_fault_fraction': 2}, {'on_engine_fault': 'group_mean'}])
def test_a_rule_that_there_is_not_is_refused(settings):
    with pytest.raises(caisson.InvalidRequest) as caught:
        caisson.configure(**settings)
    assert caught.value.field in settings


def test_private_tests_of_lcb_are_opened_by_the_daemon(formats):
    hidden = base64.b64encode(zlib.compress(json.dumps([{'input': '1 2\n', 'output': '3\n', 'testtype': 'stdin'}]).encode())).decode()
    record = {'format': 'lcb', 'public_test_cases': '[]', 'private_test_cases': hidden, 'metadata': '{}', 'completion': FENCED}
    assert formats.grade(record).all_passed
