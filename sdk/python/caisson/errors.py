"""Exceptions of the client.  A program that fails is a result and not an exception."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence


class CaissonError(Exception):
    """Base class.  `status` is the HTTP status or 0, `code` the code of the problem, `request_id` the id in the log
    of the server.
    """

    def __init__(self, message: str, *, status: int = 0, code: str = '', request_id: str = '') -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type, args: Sequence[Any], state: Dict[str, Any]) -> CaissonError:
    """An exception of a child process, as multiprocessing pickles it."""
    error: CaissonError = kind.__new__(kind, *args)
    error.args = tuple(args)
    error.__dict__.update(state)
    return error


class AuthError(CaissonError):
    """The key is missing, unknown, or lacks a scope (401, 403)."""


class InvalidRequest(CaissonError, ValueError):
    """The request is wrong.  `field` is a JSON pointer into it, or a name."""

    def __init__(self, message: str, *, field: str = '', status: int = 0, code: str = '', request_id: str = '') -> None:
        super().__init__(message, status=status, code=code, request_id=request_id)
        self.field = field


class NotFound(CaissonError):
    """The path or the object does not exist (404, 410)."""


class EngineError(CaissonError):
    """The server could not do its work (5xx).  `retryable`: the same request may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        retry_after: Optional[float] = None,
        status: int = 0,
        code: str = '',
        request_id: str = '',
    ) -> None:
        super().__init__(message, status=status, code=code, request_id=request_id)
        self.retryable = retryable
        self.retry_after = retry_after


class RateLimited(EngineError):
    """A limit is reached (429).  `retry_after` is in seconds; `quota` names the limit."""

    quota: str = ''


class Unreachable(EngineError):
    """There is no connection to the server, or the connection broke."""


class TimedOut(EngineError):
    """The server sent nothing for the time-out of the client."""


class EngineFault(CaissonError):
    """Gradings say nothing about their submissions, because the engine or a checker is at fault.

    `faults` of `total` gradings have no score; `reasons` has a sentence for each kind of fault.
    """

    def __init__(self, message: str, *, faults: int = 0, total: int = 0, reasons: Sequence[str] = ()) -> None:
        super().__init__(message, code='engine_fault')
        self.faults = faults
        self.total = total
        self.reasons = tuple(reasons)


def from_problem(status: int, problem: Dict[str, Any], retry_after: Optional[float]) -> CaissonError:
    """The exception for an answer of application/problem+json."""
    code = str(problem.get('code', ''))
    message = str(problem.get('detail') or problem.get('message') or problem.get('title') or f'HTTP status {status}')
    request_id = str(problem.get('request_id', ''))
    if status in (401, 403):
        return AuthError(message, status=status, code=code, request_id=request_id)
    if status in (404, 410):
        return NotFound(message, status=status, code=code, request_id=request_id)
    if status == 429:
        limited = RateLimited(message, retry_after=retry_after, status=status, code=code, request_id=request_id)
        limited.quota = str(problem.get('quota', ''))
        return limited
    if status >= 500:
        return EngineError(
            message,
            retryable=bool(problem.get('retryable', status in (502, 503, 504))),
            retry_after=retry_after,
            status=status,
            code=code,
            request_id=request_id,
        )
    return InvalidRequest(message, field=str(problem.get('field', '')), status=status, code=code, request_id=request_id)
