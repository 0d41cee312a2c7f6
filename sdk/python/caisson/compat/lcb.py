"""LiveCodeBench: lcb_runner.evaluation.compute_code_generation_metrics and .testing_util.

Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, DefaultDict, Dict, List, Mapping, Sequence, Tuple

from caisson.aio import asynchronous
from caisson.errors import InvalidRequest
from caisson.results import Grade
from caisson.compat._grading import first_failed, grade, masked_is_zero, milliseconds

MESSAGES = {
    -1: 'Time Limit Exceeded',
    -2: 'Wrong Answer',
    -3: 'Time Limit Exceeded',
    -4: 'Runtime Error',
    -5: 'TestRunnerError',
}
SHOWN_MAX = 300


def problem_of(sample: Mapping[str, Any]) -> Dict[str, Any]:
    """The cases of a sample, {inputs, outputs, fn_name}."""
    try:
        problem = json.loads(sample['input_output'])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(f'the sample has no JSON text in input_output: {error!r}', field='input_output') from error
    if not isinstance(problem, dict) or 'inputs' not in problem or 'outputs' not in problem:
        raise InvalidRequest(
            'input_output has to be the JSON text of an object with inputs and outputs', field='input_output'
        )
    return problem


def request_of(sample: Mapping[str, Any], generation: str, timeout: float) -> Dict[str, Any]:
    problem_of(sample)
    return {
        'format': 'lcb',
        'input_output': sample['input_output'],
        'code': generation,
        'compat_codes': True,
        'stop_on_fail': True,
        'case_cpu_ms': milliseconds(timeout, 'timeout'),
    }


def shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_MAX else f'{text[:SHOWN_MAX // 2]}...(truncated) ...{text[-SHOWN_MAX // 2:]}'


def answer_of(sample: Mapping[str, Any], result: Grade) -> Tuple[List[Any], Dict[str, Any]]:
    """(codes, metadata) as run_test() gives them."""
    if result.mask:
        return [-5], {'error': result.reason, 'error_code': -5, 'error_message': MESSAGES[-5]}
    failed = first_failed(result)
    codes = result.codes
    if codes is None:
        codes = [True] * result.passed + ([] if result.all_passed else [-4])
    if not codes or (not result.all_passed and codes[-1] is True):
        codes = [*codes, -4]
    if result.all_passed:
        return codes, {'execution time': sum(case.cpu_ms or 0 for case in result.cases) / 1000}
    code = codes[-1]
    metadata: Dict[str, Any] = {'error_code': code, 'error_message': MESSAGES.get(code, MESSAGES[-4])}
    if failed is None or failed.status == 'not_run':
        return codes, {**metadata, 'error_message': f'Error during testing: {result.reason}'}
    inputs = problem_of(sample)['inputs']
    number = result.cases.index(failed)
    metadata['inputs'] = shown(inputs[number]) if number < len(inputs) else ''
    metadata['expected'] = shown(
        failed.expected if failed.expected is not None else problem_of(sample)['outputs'][number]
    )
    if code == -2:
        metadata['output'] = shown(failed.output if failed.output is not None else failed.stdout or '')
    else:
        metadata['error'] = failed.error_type and f'{failed.error_type}: {failed.detail}' or failed.detail
    return codes, metadata


def run_test(sample: Any, test: Any = None, debug: Any = False, timeout: Any = 6) -> Tuple[List[Any], Dict[str, Any]]:
    """The codes of the cases to the first failure, and what is known of it."""
    if test is None:
        raise InvalidRequest('test is None; give the text of the program', field='test')
    return check_correctness(sample, test, timeout, debug)


def check_correctness(
    sample: Any, generation: Any, timeout: Any, debug: Any = True
) -> Tuple[List[Any], Dict[str, Any]]:
    """run_test() under the name that graders call."""
    codes, metadata = answer_of(sample, grade([request_of(sample, generation, timeout)])[0])
    if debug:
        print(f'codes {codes}, metadata {metadata}')
    return codes, metadata


def estimate(n: int, correct: int, k: int) -> float:
    """1 - C(n - correct, k) / C(n, k), as a product without large numbers."""
    if n - correct < k:
        return 1.0
    product = 1.0
    for i in range(n - correct + 1, n + 1):
        product *= 1.0 - k / i
    return 1.0 - product


def metrics_of(
    results: Mapping[int, Sequence[Sequence[Any]]], k_list: Sequence[int], left_out: Sequence[Tuple[int, int]] = ()
) -> Dict[str, Any]:
    """pass@k for each k for which each problem has k generations; (problem, generation) of left_out do not count."""
    counts = {}
    for index, generations in results.items():
        counted = [codes for number, codes in enumerate(generations) if (index, number) not in left_out]
        counts[index] = (len(counted), sum(all(code is True or code > 0 for code in codes) for codes in counted))
    metrics: Dict[str, Any] = {}
    detail: Dict[str, Dict[int, float]] = {}
    for k in k_list:
        if counts and all(n >= k for n, _ in counts.values()):
            each = {index: estimate(n, correct, k) for index, (n, correct) in counts.items()}
            metrics[f'pass@{k}'] = sum(each.values()) / len(each)
            detail[f'pass@{k}'] = each
    metrics['detail'] = detail
    return metrics


def codegen_metrics(
    samples_list: Any,
    generations_list: Any,
    k_list: Any = [1, 5, 10, 20, 40, 50, 75, 100, 125, 150, 200, 500, 1000],
    num_process_evaluate: Any = 16,
    timeout: Any = 6,
    debug: Any = False,
) -> List[Any]:
    """[metrics, results, metadata] of all generations, which are graded in one request.

    num_process_evaluate has no meaning here: the server takes as much at a time as it has room for.
    """
    requests, places = [], []
    for index, (sample, generations) in enumerate(zip(samples_list, generations_list)):
        if not isinstance(generations, list) or not all(isinstance(generation, str) for generation in generations):
            raise InvalidRequest(f'generations_list[{index}] has to be a list of texts', field='generations_list')
        for generation in generations:
            requests.append(request_of(sample, generation, timeout))
            places.append(index)
    results: DefaultDict[int, List[List[Any]]] = defaultdict(list)
    metadata: DefaultDict[int, List[str]] = defaultdict(list)
    left_out = []
    for index, result in zip(places, grade(requests)):
        codes, about = answer_of(samples_list[index], result)
        if result.mask and not masked_is_zero():
            left_out.append((index, len(results[index])))
        results[index].append(codes)
        metadata[index].append(json.dumps(about))
        if debug:
            print(f'problem {index}: codes {codes}, metadata {about}')
    return [metrics_of(results, k_list, left_out), results, [metadata[index] for index in sorted(metadata)]]


acodegen_metrics = asynchronous(codegen_metrics, 'acodegen_metrics')
acheck_correctness = asynchronous(check_correctness, 'acheck_correctness')
arun_test = asynchronous(run_test, 'arun_test')
