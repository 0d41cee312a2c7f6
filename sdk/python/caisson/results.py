"""Results as objects.  Fields that a newer server adds are kept in `extra`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from .errors import CaissonError


def known(kind: Any, value: Mapping[str, Any]) -> Dict[str, Any]:
    """The members of a JSON object as arguments of a dataclass, unknown ones in `extra`."""
    names = {one.name for one in dataclasses.fields(kind)} - {'extra'}
    return {
        **{name: value[name] for name in value if name in names},
        'extra': {name: value[name] for name in value if name not in names},
    }


@dataclass
class Run:
    """What came of a program."""

    status: str
    id: str = ''
    exit_code: Optional[int] = None
    stdout: str = ''
    stderr: str = ''
    error: Optional[Dict[str, Any]] = None
    result: Optional[Dict[str, Any]] = None
    usage: Dict[str, Any] = field(default_factory=dict)
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Run:
        return cls(**known(cls, value))

    @property
    def ok(self) -> bool:
        return self.status == 'completed'

    def raise_for_status(self) -> Run:
        """The run itself if it is completed; otherwise an exception."""
        if not self.ok:
            message = (self.error or {}).get('message') or f'the status of the run is {self.status}'
            raise CaissonError(str(message), code=self.status)
        return self


@dataclass
class Case:
    """What came of a case."""

    status: str
    passed: bool
    name: str = ''
    detail: str = ''
    output: Optional[str] = None
    expected: Optional[str] = None
    stdout: Optional[str] = None
    stderr: Optional[str] = None
    error_type: Optional[str] = None
    cpu_ms: Optional[float] = None
    duration_ms: Optional[float] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Case:
        return cls(**known(cls, value))


@dataclass
class Grade:
    """What came of a grading.  `score` and `reward` are None exactly if `mask` is true: then the engine or the
    checker is at fault.
    """

    status: str
    all_passed: bool = False
    score: Optional[float] = None
    mask: bool = False
    retryable: bool = False
    reward: Optional[Dict[str, Any]] = None
    id: Optional[str] = None
    codes: Optional[List[Any]] = None
    cases: List[Case] = field(default_factory=list)
    total: int = 0
    passed: int = 0
    signs: List[Dict[str, Any]] = field(default_factory=list)
    feedback: List[str] = field(default_factory=list)
    error: Optional[Dict[str, Any]] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Grade:
        cases = [Case.from_json(case) for case in value.get('cases') or []]
        return cls(**known(cls, {**value, 'cases': cases}))

    @classmethod
    def from_error(cls, error: Mapping[str, Any], *, mask: bool, retryable: bool) -> Grade:
        """A line that was not graded: the request is wrong, or the engine could not take it."""
        return cls(
            status='engine_error' if mask else 'bad_request',
            score=None if mask else 0.0,
            mask=mask,
            retryable=retryable,
            error=dict(error),
        )

    @property
    def error_code(self) -> str:
        return str((self.error or {}).get('code') or '')

    @property
    def reason(self) -> str:
        """One sentence about what was in the way, or an empty text."""
        return str((self.error or {}).get('message') or '')
