"""What functions with a fixed signature are told: the server, and what becomes of engine faults."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Optional

from .client import Client
from .errors import InvalidRequest

CHOICES = ('none', 'raise', 'group_mean', 'zero')


@dataclass(frozen=True)
class FaultRule:
    """What becomes of gradings without a score: see docs/use/coming-from.md of the project."""

    on_engine_fault: str = 'raise'
    engine_retries: int = 2
    max_engine_fault_fraction: float = 0.1

    def __post_init__(self) -> None:
        if self.on_engine_fault not in CHOICES:
            raise InvalidRequest(
                f'on_engine_fault is {self.on_engine_fault!r}; it has to be one of {", ".join(CHOICES)}',
                field='on_engine_fault',
            )
        if self.engine_retries < 0:
            raise InvalidRequest(
                f'engine_retries is {self.engine_retries}; it has to be 0 or more', field='engine_retries'
            )
        if not 0 <= self.max_engine_fault_fraction <= 1:
            raise InvalidRequest(
                f'max_engine_fault_fraction is {self.max_engine_fault_fraction}; it has to be from 0 to 1',
                field='max_engine_fault_fraction',
            )


_lock = threading.Lock()
_url: Optional[str] = None
_key: Optional[str] = None
_rule: Optional[FaultRule] = None
_private: Optional[Client] = None


def configure(
    *,
    base_url: Optional[str] = None,
    key: Optional[str] = None,
    on_engine_fault: Optional[str] = None,
    engine_retries: int = 2,
    max_engine_fault_fraction: float = 0.1,
) -> None:
    """Set the server and the rule for engine faults of caisson.compat in this process.

    Without base_url the variable CAISSON_URL counts, and without that a private daemon is started.  Without
    on_engine_fault the variable CAISSON_ON_ENGINE_FAULT counts, which child processes inherit, and without that each
    function's default.
    """
    global _url, _key, _rule
    rule = FaultRule(on_engine_fault or 'raise', engine_retries, max_engine_fault_fraction)
    if rule.on_engine_fault == 'group_mean':
        raise InvalidRequest(
            'functions of caisson.compat see one problem and no group; group_mean is for caisson.rewards',
            field='on_engine_fault',
        )
    _url, _key = base_url, key
    _rule = rule if on_engine_fault else None


def rule_for_compat() -> FaultRule:
    chosen = os.environ.get('CAISSON_ON_ENGINE_FAULT')
    if _rule:
        return _rule
    if chosen == 'group_mean':
        raise InvalidRequest(
            'functions of caisson.compat see one problem and no group; '
            'CAISSON_ON_ENGINE_FAULT has to be none, raise or zero',
            field='CAISSON_ON_ENGINE_FAULT',
        )
    return FaultRule(chosen) if chosen else FaultRule()


def default_client(base_url: Optional[str] = None, key: Optional[str] = None) -> Client:
    """A client of the named server, of that of configure(), of CAISSON_URL, or else of the private daemon of this
    tree of processes.
    """
    global _private
    url = base_url or _url or os.environ.get('CAISSON_URL')
    if url:
        return Client(url, key or _key)
    with _lock:
        if not _private or not _private.is_live:
            _private = Client.local()
        return _private


def after_fork() -> None:
    """The lock may have been taken by a thread that the child does not have."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=after_fork)
