"""TRL and open-r1."""

from __future__ import annotations

import json
from typing import Any, List, Optional, Sequence

from ..aio import in_thread
from ..errors import InvalidRequest
from ..faults import settle
from ._base import Reward


class TrlReward(Reward):
    """reward(completions, **columns) -> list of rewards, for reward_funcs of TRL's trainers.

    The default of on_engine_fault is group_mean: TRL adds up rewards without those that are None, so None would
    count as 0.  The mean of the rewards of the same prompt makes the advantage of the sample 0.
    """

    default_fault = 'group_mean'
    choices = ('none', 'raise', 'group_mean', 'zero')

    def __call__(self, completions: Sequence[Any], **columns: Any) -> List[Optional[float]]:
        problems = columns.get(self.column)
        if problems is None or len(problems) != len(completions):
            raise InvalidRequest(
                f'there is no column {self.column} with a value for each of the {len(completions)} completions; '
                f'the columns are '
                f'{", ".join(sorted(columns)) or "none"}',
                field=self.column,
            )
        grades = self.grade(
            [self.request_of(problem, completion) for problem, completion in zip(problems, completions)]
        )
        prompts = columns.get('prompts')
        if prompts is None or len(prompts) != len(completions):
            prompts = problems
        groups = [json.dumps(prompt, sort_keys=True, default=str) for prompt in prompts]
        return settle([self.value_of(grade) for grade in grades], grades, self.rule, groups)

    async def acall(self, completions: Sequence[Any], **columns: Any) -> List[Optional[float]]:
        """The same for asyncio: the call runs in a thread."""
        return await in_thread(self, completions, **columns)
