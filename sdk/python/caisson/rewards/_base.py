"""What the rewards share: problems as requests, and gradings under a rule for engine faults."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from ..client import Client
from ..config import FaultRule, default_client
from ..errors import InvalidRequest
from ..faults import FaultMeter, grade_all
from ..results import Grade

REWARDS = ('binary', 'partial', 'score')
# The member of a record that has the tests, by format: a column that is not an object is the value of this member.
MEMBERS = {
    'lcb': 'input_output',
    'apps': 'input_output',
    'taco': 'input_output',
    'primeintellect': 'verification_info',
    'verl': 'ground_truth',
    'kodcode': 'test',
    'leetcode': 'functional',
    'codeforces': 'official_tests',
}


def text_of(completion: Any) -> str:
    """A completion: a text, a message, or a conversation whose last message is the answer."""
    if isinstance(completion, str):
        return completion
    if isinstance(completion, Mapping):
        return text_of(completion.get('content') or '')
    if isinstance(completion, Sequence) and completion:
        last = completion[-1]
        if isinstance(last, Mapping) and last.get('type') == 'text':  # parts of one message
            return ''.join(str(part.get('text', '')) for part in completion if isinstance(part, Mapping))
        return text_of(last)
    if completion is None or completion == []:
        return ''
    content = getattr(completion, 'content', None)
    if content is None:
        raise InvalidRequest(
            f'a completion is a {type(completion).__name__}; give a text or messages', field='completions'
        )
    return text_of(content)


def native_cases(info: Mapping[str, Any]) -> Dict[str, Any]:
    """verification_info as open-r1 has it: {language, test_cases: [{input, output, type, fn_name}]}."""
    record: Dict[str, Any] = {'format': 'primeintellect', 'verification_info': dict(info)}
    if info.get('language'):
        record['language'] = info['language']
    return record


class Reward:
    """Settings of a reward; see docs/use/coming-from.md of the project.

    column    where the problem of a sample is: an object, its JSON text, or SET/ID, the name of a stored problem
    format    the data set whose record the problem is; None: fields of POST /v1/grade, or verification_info of open-r1
    reward    binary, partial or score
    options   further fields of each request, as extract, prelude, compare, case_cpu_ms, limits
    base_url, key   the server; without them that of caisson.configure(), of CAISSON_URL, or a private daemon
    on_engine_fault, engine_retries, max_engine_fault_fraction   what becomes of gradings without a score
    """

    default_fault = 'raise'
    choices: Tuple[str, ...] = ('none', 'raise', 'zero')

    def __init__(
        self,
        column: str = 'verification_info',
        *,
        format: Optional[str] = None,
        reward: str = 'binary',
        options: Optional[Mapping[str, Any]] = None,
        base_url: Optional[str] = None,
        key: Optional[str] = None,
        on_engine_fault: Optional[str] = None,
        engine_retries: int = 2,
        max_engine_fault_fraction: float = 0.1,
        name: str = 'caisson_reward',
    ) -> None:
        if reward not in REWARDS:
            raise InvalidRequest(f'reward is {reward!r}; it has to be one of {", ".join(REWARDS)}', field='reward')
        self.column = column
        self.format = format
        self.reward = reward
        self.options = dict(options or {})
        self.base_url = base_url
        self.key = key
        self.rule = FaultRule(on_engine_fault or self.default_fault, engine_retries, max_engine_fault_fraction)
        if self.rule.on_engine_fault not in self.choices:
            raise InvalidRequest(
                f'on_engine_fault is {on_engine_fault!r}; this reward takes {", ".join(self.choices)}',
                field='on_engine_fault',
            )
        self.meter = FaultMeter(self.rule)
        self.__name__ = name  # trainers log rewards under this name
        self.__qualname__ = name

    @property
    def client(self) -> Client:
        return default_client(self.base_url, self.key)

    def problem_of(self, value: Any) -> Dict[str, Any]:
        """The fields of the request that come from the problem of a sample."""
        if isinstance(value, str) and not self.format and not value.lstrip().startswith(('{', '[')):
            return {'problem': value}
        if isinstance(value, (str, bytes)) and self.format not in ('kodcode', 'leetcode'):
            try:
                value = json.loads(value)
            except ValueError as error:
                raise InvalidRequest(
                    f'the column {self.column} has a text that is no JSON: {error}', field=self.column
                ) from error
        if self.format:
            member = MEMBERS.get(self.format)
            is_record = isinstance(value, Mapping) and (member is None or member in value)
            return {'format': self.format, **(dict(value) if is_record else {str(member): value})}
        if isinstance(value, list):
            return native_cases({'test_cases': value})
        if not isinstance(value, Mapping):
            raise InvalidRequest(
                f'the column {self.column} has a {type(value).__name__}; it has to have an object, or its JSON text',
                field=self.column,
            )
        return native_cases(value) if 'test_cases' in value else dict(value)

    def request_of(self, value: Any, completion: Any) -> Dict[str, Any]:
        return {**self.problem_of(value), **self.options, 'completion': text_of(completion)}

    def grade(self, requests: Sequence[Mapping[str, Any]]) -> List[Grade]:
        """Results after the repetitions, checked against the rule."""
        grades = grade_all(self.client, requests, self.rule.engine_retries)
        self.meter.check(grades)
        return grades

    def value_of(self, grade: Grade) -> Optional[float]:
        """The reward; None for an engine fault, or 0.0 where the rule is zero."""
        if grade.mask or grade.score is None:
            return 0.0 if self.rule.on_engine_fault == 'zero' else None
        if self.reward == 'score' or not grade.reward:
            return float(grade.score)
        return float(grade.reward[self.reward])
