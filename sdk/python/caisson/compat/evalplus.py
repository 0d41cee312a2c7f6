"""EvalPlus: evalplus.eval.untrusted_check.

Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from caisson.aio import asynchronous
from caisson.errors import InvalidRequest
from caisson.compat._grading import grade, literal, masked_is_zero, milliseconds

SUCCESS, FAILED, TIMEOUT = 'success', 'failed', 'timed out'


def untrusted_check(
    code: str,
    inputs: List[Any],
    entry_point: str,
    expected: Any,
    atol: Any,
    ref_time: List[float],
    fast_check: bool = False,
    min_time_limit: float = 0.1,
    gt_time_limit_factor: float = 2.0,
) -> Tuple[Optional[str], List[bool]]:
    """(status, a bool for each input that was judged).  With fast_check grading ends with the first failure, which
    is left out.

    The status of an engine fault is None under the rule none, and failed under the rule zero.
    """
    if not len(inputs) == len(expected) == len(ref_time):
        raise InvalidRequest(
            f'inputs, expected and ref_time have {len(inputs)}, {len(expected)} and {len(ref_time)} members; '
            'give one of each for each case',
            field='ref_time',
        )
    cases = [
        {
            'args_python': literal(list(args)),
            'expected_python': literal(value),
            'cpu_ms': milliseconds(max(min_time_limit, gt_time_limit_factor * seconds), 'ref_time'),
        }
        for args, value, seconds in zip(inputs, expected, ref_time)
    ]
    request = {
        'code': code,
        'function': entry_point,
        'cases': cases,
        'compare': 'evalplus',
        'instance': 'shared',
        'stop_on_fail': fast_check,
    }
    if atol:
        request['tolerance'] = float(atol)
    result = grade([request])[0]
    if result.mask:
        return (FAILED if masked_is_zero() else None), []
    details = [case.passed for case in result.cases if case.status != 'not_run']
    if fast_check and False in details:
        details = details[: details.index(False)]
    if result.all_passed or (not cases and result.status == 'completed'):
        return SUCCESS, details
    return (TIMEOUT if result.status == 'timeout' else FAILED), details


auntrusted_check = asynchronous(untrusted_check, 'auntrusted_check')
