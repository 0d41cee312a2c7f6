"""Synchronous calls for asyncio, in threads that no event loop owns.

The threads only wait for a server.  The executor of asyncio has few of them and belongs to one loop; this one
outlives loops, and a forked process makes its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import os
import threading
from typing import Any, Awaitable, Callable, Optional, TypeVar

T = TypeVar('T')

THREADS = 64

_lock = threading.Lock()
_pool: Optional[concurrent.futures.ThreadPoolExecutor] = None


def _executor() -> concurrent.futures.ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = concurrent.futures.ThreadPoolExecutor(THREADS, 'caisson')
        return _pool


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The value of a call that runs in a thread, with the caller's context variables."""
    context = contextvars.copy_context()

    def call() -> T:
        return context.run(functools.partial(function, *args, **kwargs))

    return await asyncio.get_running_loop().run_in_executor(_executor(), call)


def asynchronous(function: Callable[..., T], name: str) -> Callable[..., Awaitable[T]]:
    """An asynchronous function with the same signature, which pickles by its name."""

    @functools.wraps(function)
    async def twin(*args: Any, **kwargs: Any) -> T:
        return await in_thread(function, *args, **kwargs)

    twin.__name__ = name
    twin.__qualname__ = name
    twin.__doc__ = f'{function.__name__}() for asyncio: the call runs in a thread.'
    return twin


def after_fork() -> None:
    """The child has none of the threads."""
    global _lock, _pool
    _lock, _pool = threading.Lock(), None


os.register_at_fork(after_in_child=after_fork)
