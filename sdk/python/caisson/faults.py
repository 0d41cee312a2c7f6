"""Gradings for trainers: the engine's faults are no verdicts.

A grading that says nothing about its submission has mask true and no score.  Such gradings are repeated; what
becomes of those that are left is the caller's choice, and never zero unless the caller says zero.
"""

from __future__ import annotations

import collections
import threading
import time
from typing import Any, Deque, Dict, Hashable, List, Mapping, Optional, Sequence

from .attempts import LONGEST_PAUSE, pause_of
from .client import Client
from .config import FaultRule
from .errors import AuthError, CaissonError, EngineError, EngineFault, InvalidRequest, NotFound
from .results import Grade

# A fault is counted against at least so many gradings, so that one fault in a small batch does not end a training.
FEWEST = 20
WINDOW = 200

# Errors of a request that are the submission's: too long, or text that is no program.
FIELDS_OF_SUBMISSION = ('/code', '/completion')


def grade_all(client: Client, requests: Sequence[Mapping[str, Any]], retries: int = 2) -> List[Grade]:
    """A result for each request, in one request for all; engine faults are repeated `retries` times.

    Errors: InvalidRequest where a problem is wrong; AuthError, NotFound.
    """
    grades: List[Grade] = [
        Grade.from_error({'message': 'it was not graded'}, mask=True, retryable=True) for _ in requests
    ]
    waiting = list(range(len(requests)))
    for attempt in range(retries + 1):
        answers, error = client._grade_lines([requests[number] for number in waiting])
        if isinstance(error, (AuthError, NotFound, InvalidRequest)):
            raise error
        for number, answer in zip(waiting, answers):
            grades[number] = answer or fault_of(error)
        waiting = [number for number in waiting if grades[number].mask and grades[number].retryable]
        if not waiting or attempt == retries:
            break
        time.sleep(min(LONGEST_PAUSE, pause_of(attempt, getattr(error, 'retry_after', None))))
    for number, grade in enumerate(grades):
        check_request(number, grade)
    return grades


def fault_of(error: Optional[CaissonError]) -> Grade:
    retryable = not isinstance(error, EngineError) or error.retryable
    return Grade.from_error(
        {'code': getattr(error, 'code', '') or type(error).__name__, 'message': str(error)},
        mask=True,
        retryable=retryable,
    )


def check_request(number: int, grade: Grade) -> None:
    """A problem that is wrong is no verdict: the caller has to repair it."""
    field = str((grade.error or {}).get('field') or '')
    if grade.status in ('bad_request', 'unknown_profile') and not field.startswith(FIELDS_OF_SUBMISSION):
        raise InvalidRequest(
            f'problem {number} of the batch is wrong: {grade.reason}',
            field=field,
            code=grade.error_code or grade.status,
        )


def fault(grades: Sequence[Grade], why: str) -> EngineFault:
    masked = [grade for grade in grades if grade.mask]
    reasons = list(dict.fromkeys(f'{grade.error_code or grade.status}: {grade.reason}' for grade in masked))[:10]
    return EngineFault(
        f'{len(masked)} of {len(grades)} gradings have no score, {why}: {"; ".join(reasons)[:2000]}',
        faults=len(masked),
        total=len(grades),
        reasons=reasons,
    )


class FaultMeter:
    """The part of the last gradings that had an engine fault."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.last: Deque[bool] = collections.deque(maxlen=WINDOW)
        self.lock = threading.Lock()

    def __getstate__(self) -> Dict[str, Any]:
        return {'rule': self.rule}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(state['rule'])  # type: ignore[misc]

    def check(self, grades: Sequence[Grade]) -> None:
        """EngineFault where the rule is `raise` and there is a fault, or where faults are more than the allowed
        part.
        """
        masked = sum(grade.mask for grade in grades)
        with self.lock:
            self.last.extend(grade.mask for grade in grades)
            seen, faults = (len(grades), masked) if len(grades) > WINDOW else (len(self.last), sum(self.last))
        if masked and self.rule.on_engine_fault == 'raise':
            raise fault(grades, 'because the engine or a checker is at fault')
        allowed = self.rule.max_engine_fault_fraction
        if masked and faults > allowed * max(seen, FEWEST):
            raise fault(
                grades,
                f'and of the last {seen} gradings {faults} had none, '
                f'which is more than max_engine_fault_fraction = {allowed}',
            )


def settle(
    values: Sequence[Optional[float]], grades: Sequence[Grade], rule: FaultRule, groups: Sequence[Hashable]
) -> List[Optional[float]]:
    """Rewards in which None became what the rule says.  `groups` names the prompt of each value."""
    if rule.on_engine_fault == 'zero':
        return [0.0 if value is None else value for value in values]
    if rule.on_engine_fault != 'group_mean' or None not in values:
        return list(values)
    known: Dict[Hashable, List[float]] = collections.defaultdict(list)
    for value, group in zip(values, groups):
        if value is not None:
            known[group].append(value)
    everything = [value for part in known.values() for value in part]
    if not everything:
        raise fault(grades, 'and no grading of the batch has a score, so there is no mean')
    # A group without any score gets one value throughout, so its advantages are 0; the mean of the batch keeps the
    # batch's mean.
    means = {group: sum(part) / len(part) for group, part in known.items()}
    rest = sum(everything) / len(everything)
    return [means.get(group, rest) if value is None else value for value, group in zip(values, groups)]
