"""verl: verl.utils.reward_score.sandbox_fusion.compute_score, and the form of custom_reward_function.

compute_score() takes the arguments of either.  verl loads this file by its path, hence imports with whole names.
Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Tuple

from caisson.aio import in_thread
from caisson.config import default_client
from caisson.errors import InvalidRequest
from caisson.results import Case, Grade
from caisson.transport import Address
from caisson.compat._grading import grade, masked_is_zero, milliseconds

# Of the first cases the part that passed is the score, where `continuous` is true.
FIRST_CASES = 10

# Status of a case: (code, status of the metadata, status of the run).
OUTCOMES = {
    'passed': (True, 'success', 'Finished'),
    'failed': (False, 'wrong_answer', 'Finished'),
    'unencodable': (False, 'wrong_answer', 'Finished'),
    'timeout': (-3, 'timeout', 'TimeLimitExceeded'),
}
RUNTIME_ERROR = (-2, 'runtime_error', 'Error')
COMPILE_ERROR = (-4, 'compile_error', None)


def server_of(url: Optional[str]) -> Optional[str]:
    """The server at which a path such as /run_code is."""
    if not url or url.startswith('unix:'):
        return url
    address = Address.parse(url)
    return str(Address(address.scheme, address.host, address.port))


def parse(test_cases: Any) -> Optional[Dict[str, Any]]:
    """inputs and outputs, or assert_case; None where there are none."""
    if not isinstance(test_cases, dict):
        try:
            test_cases = json.loads(test_cases)
        except (TypeError, ValueError):
            return None
    if not isinstance(test_cases, dict) or not (
        isinstance(test_cases.get('assert_case'), list) or ('inputs' in test_cases and 'outputs' in test_cases)
    ):
        return None
    return test_cases


def request_of(
    completion: str, problem: Dict[str, Any], timeout: float, memory_limit_mb: Optional[float]
) -> Dict[str, Any]:
    request: Dict[str, Any] = {
        'format': 'verl',
        'ground_truth': problem,
        'completion': completion,
        'case_cpu_ms': milliseconds(timeout, 'timeout'),
    }
    if memory_limit_mb:
        request['limits'] = {'memory_bytes': int(memory_limit_mb * (1 << 20))}
    return request


def code_of(case: Case, result: Grade) -> Tuple[Any, str, Optional[str]]:
    if result.status == 'syntax_error':
        return COMPILE_ERROR
    return OUTCOMES.get(case.status, RUNTIME_ERROR)


def metadata_of(number: int, case: Case, problem: Dict[str, Any], result: Grade) -> Dict[str, Any]:
    code, status, run_status = code_of(case, result)
    inputs, outputs = problem.get('inputs') or [], problem.get('outputs') or []
    stderr = case.stderr if case.stderr is not None else '' if case.passed else case.detail
    failed_to_compile = status == 'compile_error'
    return {
        'case_index': number,
        'input': str(inputs[number]) if number < len(inputs) else None,
        'expected_output': str(outputs[number]) if number < len(outputs) and outputs[number] else None,
        'api_request_error': None,
        'api_response': None,
        'status': status,
        'stdout': case.stdout if case.stdout is not None else case.output,
        'stderr': stderr,
        'exit_code': None if code == -3 else 0 if code in (True, False) else 1,
        'duration': None if case.duration_ms is None else case.duration_ms / 1000,
        'compile_duration': None,
        'compile_stderr': result.reason if failed_to_compile else None,
        'api_status': 'Success' if run_status == 'Finished' else 'Failed',
        'compile_status': 'Error' if failed_to_compile else None,
        'run_status': run_status,
    }


def score_of(codes: List[Any], continuous: bool) -> float:
    """The part of the cases that passed; with `continuous` of the first ones, where a wrong answer after them counts
    as one more.
    """
    counted = codes[:FIRST_CASES] if continuous else codes
    passed = sum(code is True for code in counted)
    total = len(counted)
    if continuous and passed == total and any(code is False for code in codes[FIRST_CASES:]):
        total += 1
    return passed / total if total else 0.0


def sandbox_fusion(
    sandbox_fusion_url: Any,
    concurrent_semaphore: Any,
    memory_limit_mb: Any,
    completion: Any,
    test_cases: Any,
    continuous: Any = False,
    timeout: Any = 10,
) -> Tuple[Optional[float], List[Any]]:
    """(score, a dict for each case) of one completion, in one request.

    sandbox_fusion_url names a server of Caisson; None or an empty text stands for the server of caisson.configure().
    concurrent_semaphore has no meaning here: the server takes as much at a time as it has room for.  The score of an
    engine fault is None under the rule none.
    """
    problem = parse(test_cases)
    if problem is None:
        return 0.0, [{'error': 'Invalid test_cases: there has to be JSON with inputs and outputs, or assert_case'}]
    if not problem.get('inputs') and not problem.get('assert_case'):
        return 0.0, []
    result = grade(
        [request_of(completion, problem, timeout, memory_limit_mb)], default_client(server_of(sandbox_fusion_url))
    )[0]
    if result.mask:
        return (0.0 if masked_is_zero() else None), [
            {'error': f'engine fault: {result.reason}', 'status': 'sandbox_error'}
        ]
    if result.error_code == 'no_code_block':
        return 0.0, [{'error': 'Invalid completion (missing code block)'}]
    codes = [code_of(case, result)[0] for case in result.cases]
    return score_of(codes, bool(continuous)), [
        metadata_of(number, case, problem, result) for number, case in enumerate(result.cases)
    ]


def custom_reward(data_source: Any, solution_str: Any, ground_truth: Any, extra_info: Any = None) -> Optional[float]:
    """The score of one solution by the tests in ground_truth, as verl scores data sets of programs: the part of the
    first cases.

    Errors: InvalidRequest where ground_truth has no tests, as that of other tasks.
    """
    return _custom(data_source, solution_str, ground_truth, extra_info)


def _custom(
    data_source: Any,
    solution_str: Any,
    ground_truth: Any,
    extra_info: Any = None,
    sandbox_fusion_url: Any = None,
    concurrent_semaphore: Any = None,
    memory_limit_mb: Any = None,
    continuous: Any = True,
    timeout: Any = 10,
) -> Optional[float]:
    """custom_reward() with the members of reward_kwargs that verl's own functions have."""
    if parse(ground_truth) is None:
        raise InvalidRequest(
            f'the ground_truth of {data_source!r} has neither inputs and outputs nor assert_case; '
            'use this function for data sets of programs',
            field='ground_truth',
        )
    score, _ = sandbox_fusion(
        sandbox_fusion_url, concurrent_semaphore, memory_limit_mb, solution_str, ground_truth, continuous, timeout
    )
    return score


def compute_score(*args: Any, **kwargs: Any) -> Any:
    """custom_reward() where the arguments are those, also with members of reward_kwargs; sandbox_fusion() with five
    arguments or more.
    """
    if 'data_source' not in kwargs and ('test_cases' in kwargs or len(args) > 4):
        return sandbox_fusion(*args, **kwargs)
    return _custom(*args, **kwargs)


async def acompute_score(*args: Any, **kwargs: Any) -> Any:
    """compute_score() for asyncio: the call runs in a thread."""
    return await in_thread(compute_score, *args, **kwargs)
