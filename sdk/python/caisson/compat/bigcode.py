"""The evaluation harness of BigCode: bigcode_eval.tasks.custom_metrics.execute.check_correctness.

Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

from typing import Any, Dict

from caisson.aio import asynchronous
from caisson.compat._grading import grade, masked_is_zero, milliseconds


def check_correctness(check_program: Any, timeout: Any, task_id: Any, completion_id: Any) -> Dict[str, Any]:
    """Whether a program with its asserts runs to its end.  `passed` is None for an engine fault under the rule none.

    The text has the submission and the asserts in one, so a submission that knows the asserts can replace what they
    call. An end before the last line does not pass.
    """
    limit = milliseconds(timeout, 'timeout')
    result = grade([{'code': check_program, 'limits': {'cpu_ms': limit, 'wall_ms': 2 * limit + 1000}}])[0]
    passed = result.status == 'completed'
    if passed:
        reason = 'passed'
    elif result.mask:
        reason = f'engine fault: {result.reason}'
    else:
        reason = 'timed out' if result.status == 'timeout' else f'failed: {result.reason}'
    return {
        'task_id': task_id,
        'passed': None if result.mask and not masked_is_zero() else passed,
        'result': reason,
        'completion_id': completion_id,
    }


acheck_correctness = asynchronous(check_correctness, 'acheck_correctness')
