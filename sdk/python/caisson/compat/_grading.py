"""What the modules of this folder share: gradings under the rule for functions with a fixed signature."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from caisson.client import Client
from caisson.config import FaultRule, default_client, rule_for_compat
from caisson.errors import InvalidRequest
from caisson.faults import FaultMeter, grade_all
from caisson.results import Case, Grade

_meter = FaultMeter(FaultRule())


def meter_of(rule: FaultRule) -> FaultMeter:
    """The meter of this process; a new one after configure()."""
    global _meter
    if _meter.rule != rule:
        _meter = FaultMeter(rule)
    return _meter


def grade(requests: Sequence[Mapping[str, Any]], client: Optional[Client] = None) -> List[Grade]:
    """Results in the order of the requests; EngineFault as caisson.configure() says, so what is masked here is to be
    none or zero.
    """
    rule = rule_for_compat()
    grades = grade_all(client or default_client(), requests, rule.engine_retries)
    meter_of(rule).check(grades)
    return grades


def masked_is_zero() -> bool:
    return rule_for_compat().on_engine_fault == 'zero'


def milliseconds(seconds: Any, name: str) -> int:
    """A limit for the CPU time of a case."""
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= 86400:
        raise InvalidRequest(f'{name} is {seconds!r}; it has to be a number of seconds above 0', field=name)
    return max(1, round(1000 * seconds))


def limits_of_tests(limit: int) -> Dict[str, int]:
    """Limits of test code as a whole, for which the engine counts the time of the clock; of the CPU it has plenty, so that
    a test that takes too long is a time-out and not a crash.
    """
    return {'wall_ms': limit + 1000, 'cpu_ms': 4 * limit + 4000}


def first_failed(result: Grade) -> Optional[Case]:
    return next((case for case in result.cases if not case.passed and case.status != 'skipped'), None)


def literal(value: Any) -> str:
    """A Python literal as the engine reads it, for values that JSON does not have."""
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, tuple):
        return f'({"".join(literal(item) + "," for item in value)})'
    if isinstance(value, list):
        return f'[{",".join(map(literal, value))}]'
    if isinstance(value, (set, frozenset)):
        items = ','.join(map(literal, value))
        if isinstance(value, frozenset):
            return f'frozenset(({items}{"," if value else ""}))' if value else 'frozenset()'
        return f'{{{items}}}' if value else 'set()'
    if isinstance(value, dict):
        return f'{{{",".join(f"{literal(key)}:{literal(item)}" for key, item in value.items())}}}'
    if hasattr(value, 'tolist'):  # numbers and arrays of numpy
        return literal(value.tolist())
    raise InvalidRequest(
        f'a value of the type {type(value).__name__} has no literal; '
        'give numbers, texts, lists, tuples, sets and dicts',
        field='inputs',
    )
