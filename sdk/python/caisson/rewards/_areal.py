"""AReaL."""

from __future__ import annotations

from typing import Any, Optional

from ..aio import in_thread
from ..errors import InvalidRequest
from ._base import Reward


class ArealReward(Reward):
    """reward_fn(prompt, completions, prompt_ids, completion_ids, **columns) -> reward.

    AReaL calls a reward in a pool of processes; one private daemon, or the server of CAISSON_URL, serves them all.
    """

    def __call__(
        self, prompt: Any, completions: Any, prompt_ids: Any, completion_ids: Any, **columns: Any
    ) -> Optional[float]:
        if columns.get(self.column) is None:
            raise InvalidRequest(
                f'there is no column {self.column}; the columns are {", ".join(sorted(columns)) or "none"}',
                field=self.column,
            )
        return self.value_of(self.grade([self.request_of(columns[self.column], completions)])[0])

    async def acall(
        self, prompt: Any, completions: Any, prompt_ids: Any, completion_ids: Any, **columns: Any
    ) -> Optional[float]:
        """The same for asyncio: the call runs in a thread."""
        return await in_thread(self, prompt, completions, prompt_ids, completion_ids, **columns)
