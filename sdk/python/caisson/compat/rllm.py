"""rLLM: rllm.rewards.code_reward.RewardCodeFn and the types of rllm.rewards.reward_types.

Differences: docs/use/coming-from.md of the project.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional, Tuple

from caisson.aio import in_thread
from caisson.errors import InvalidRequest
from caisson.results import Grade
from caisson.compat._grading import grade, limits_of_tests, masked_is_zero

TESTS_MAX = 15
# Seconds of a case, or of test code; of kodcode for each of its tests.
SECONDS = {
    'taco': 12,
    'apps': 12,
    'code_contests': 12,
    'primeintellect': 12,
    'livecodebench': 6,
    'codeforces': 6,
    'leetcode': 20,
    'kodcode': 5,
    'humanevalplus': 30,
}


@dataclass
class RewardConfig:
    """The rewards; any object with these attributes is taken."""

    correct_reward: float = 1.0
    incorrect_reward: float = 0.0
    format_error_reward: float = 0.0


@dataclass
class RewardOutput:
    """The reward of an answer.  `reward` is None for an engine fault under the rule none."""

    reward: Optional[float]
    metadata: Dict[str, Any] = field(default_factory=dict)
    is_correct: Optional[bool] = None


def opened(tests: Any, name: str) -> Any:
    """Tests that are a text: JSON, or a literal of Python."""
    if not isinstance(tests, str):
        return tests
    readers: Tuple[Callable[[str], Any], ...] = (json.loads, ast.literal_eval)
    for read in readers:
        try:
            return read(tests)
        except (ValueError, SyntaxError):
            continue
    raise InvalidRequest(
        f'ground_truth of {name} is a text that is neither JSON nor a literal of Python', field='ground_truth'
    )


def longest(record: Dict[str, Any], name: str) -> Dict[str, Any]:
    return {**record, 'max_cases': TESTS_MAX, 'select': 'longest', 'case_cpu_ms': 1000 * SECONDS[name]}


def taco(tests: Any, name: str) -> Dict[str, Any]:
    tests = opened(tests, name)
    if isinstance(tests, list):
        return primeintellect(tests, name)
    return longest({'format': 'taco', 'input_output': tests}, name)


def primeintellect(tests: Any, name: str) -> Dict[str, Any]:
    return longest({'format': 'primeintellect', 'verification_info': {'test_cases': opened(tests, name)}}, name)


def livecodebench(tests: Any, name: str) -> Dict[str, Any]:
    tests = opened(tests, name)
    if not isinstance(tests, list) or not tests:
        raise InvalidRequest(
            f'ground_truth of {name} has to be a list of tests with input and output', field='ground_truth'
        )
    problem: Dict[str, Any] = {
        'inputs': [test['input'] for test in tests],
        'outputs': [test['output'] for test in tests],
    }
    if tests[0].get('testtype') == 'functional':
        problem['fn_name'] = (tests[0].get('metadata') or {}).get('func_name')
    return {'format': 'lcb', 'input_output': problem, 'case_cpu_ms': 1000 * SECONDS[name]}


def leetcode(tests: Any, name: str) -> Dict[str, Any]:
    functional = tests if isinstance(tests, str) else opened(tests, name)['functional']
    return {'format': 'leetcode', 'functional': functional, 'limits': limits_of_tests(1000 * SECONDS[name])}


def kodcode(tests: Any, name: str) -> Dict[str, Any]:
    return {
        'format': 'kodcode',
        'test': tests,
        'limits': limits_of_tests(1000 * SECONDS[name] * max(1, tests.count('def test'))),
    }


def humanevalplus(tests: Any, name: str) -> Dict[str, Any]:
    """Test code with check(candidate), and as its last line the call that names the function."""
    limits = limits_of_tests(1000 * SECONDS[name])
    call = re.search(r'^check\((\w+)\)\s*\Z', tests, re.M)
    if not call:
        return {'tests': tests, 'limits': limits}
    return {'tests': tests[: call.start()], 'entry_point': call[1], 'limits': limits}


SOURCES: Dict[str, Callable[[Any, str], Dict[str, Any]]] = {
    'taco': taco,
    'apps': taco,
    'code_contests': taco,
    'primeintellect': primeintellect,
    'livecodebench': livecodebench,
    'codeforces': livecodebench,
    'leetcode': leetcode,
    'kodcode': kodcode,
    'humanevalplus': humanevalplus,
}


def details(result: Grade) -> Dict[str, Any]:
    """What rLLM logs of the tests."""
    tests = [
        {
            'passed': case.passed,
            'input': case.name,
            'expected': case.expected,
            'output': case.output or case.stdout,
            'error_message': None if case.passed else case.detail,
        }
        for case in result.cases
    ]
    return {
        'all_passed': result.all_passed,
        'total_tests': result.total,
        'passed_tests': result.passed,
        'test_results': tests,
        **({'error': result.reason} if result.reason else {}),
    }


class RewardCodeFn:
    """The reward of an answer by the tests of its task, by data_source."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def request_of(self, task_info: Dict[str, Any], action: str) -> Dict[str, Any]:
        source = task_info.get('data_source', '')
        if source not in SOURCES:
            raise NotImplementedError(f'data_source is {source!r}; these are graded: {", ".join(SOURCES)}')
        return {
            **SOURCES[source](task_info['ground_truth'], source),
            'completion': action,
            'extract': 'last_fence',
            'stop_on_fail': True,
        }

    def __call__(self, task_info: Dict[str, Any], action: str) -> RewardOutput:
        if task_info.get('ground_truth') is None:
            return RewardOutput(self.config.format_error_reward, {'error': 'No tests found in task_info'}, False)
        result = grade([self.request_of(task_info, action)])[0]
        if result.mask:
            return RewardOutput(
                self.config.incorrect_reward if masked_is_zero() else None,
                {'error': f'engine fault: {result.reason}'},
                None,
            )
        if result.error_code == 'no_code_block':
            return RewardOutput(self.config.format_error_reward, {'error': 'No code found in model response'}, False)
        reward = self.config.correct_reward if result.all_passed else self.config.incorrect_reward
        return RewardOutput(reward, details(result), result.all_passed)

    async def acall(self, task_info: Dict[str, Any], action: str) -> RewardOutput:
        """The same for asyncio: the call runs in a thread."""
        return await in_thread(self, task_info, action)


class aRewardCodeFn(RewardCodeFn):
    """RewardCodeFn whose call is asynchronous."""

    async def __call__(self, task_info: Dict[str, Any], action: str) -> RewardOutput:  # type: ignore[override]
        return await in_thread(super().__call__, task_info, action)
