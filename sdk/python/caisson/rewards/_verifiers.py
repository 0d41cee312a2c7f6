"""verifiers."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Mapping, Optional

from ..aio import in_thread
from ..errors import InvalidRequest
from ._base import Reward

MISSING = object()


def member(thing: Any, name: str) -> Any:
    """A member of an object or a dict; MISSING without it."""
    if isinstance(thing, Mapping):
        return thing.get(name, MISSING)
    return getattr(thing, name, MISSING)


# Attributes by which iscoroutinefunction() of inspect and asyncio knows an object with an async __call__.
MARKS = ('_is_coroutine', '_is_coroutine_mark')


def mark_as_coroutine(thing: Any) -> None:
    # Before Python 3.12 only asyncio had a mark; remove that branch when 3.12 is the oldest Python.
    if hasattr(inspect, 'markcoroutinefunction'):
        inspect.markcoroutinefunction(thing)
    elif hasattr(asyncio.coroutines, '_is_coroutine'):
        thing._is_coroutine = asyncio.coroutines._is_coroutine


class VerifiersReward(Reward):
    """async reward(task, trace, runtime) -> reward.

    The problem is the member `column` of the task, of task.data, or of task.info.  The completion is
    trace.last_reply, else the last of trace.completion or trace.messages.  The default of on_engine_fault is none:
    the sample is masked.
    """

    default_fault = 'none'

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mark_as_coroutine(self)

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name not in MARKS}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        mark_as_coroutine(self)

    def find_problem(self, task: Any) -> Any:
        for place in (task, member(task, 'data'), member(task, 'info')):
            value = member(place, self.column)
            if value is not MISSING and value is not None:
                return value
        raise InvalidRequest(
            f'the task has no member {self.column}, and neither has its data or info; name another by column=',
            field=self.column,
        )

    def find_completion(self, trace: Any) -> Any:
        for name in ('last_reply', 'completion', 'messages'):
            value = member(trace, name)
            if value is not MISSING and value is not None:
                return value
        raise InvalidRequest('the trace has no last_reply, completion or messages', field='trace')

    async def __call__(self, task: Any, trace: Any, runtime: Any = None) -> Optional[float]:
        request = self.request_of(self.find_problem(task), self.find_completion(trace))
        return self.value_of((await in_thread(self.grade, [request]))[0])
