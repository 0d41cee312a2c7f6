"""When a request is sent again, and after which time: the rules of both clients, without any I/O."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPMessage
from typing import Any, Dict, Optional

from .decoding import bad_answer, object_of
from .errors import CaissonError, EngineError, from_problem

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0

# The server refused the request before the program began: every request may be sent again.
REFUSED = (429, 503)
# A gateway or proxy lost the server, and the program may have begun: only a repeatable request may be sent again.
LOST = (502, 504)


def retry_after_of(headers: HTTPMessage) -> Optional[float]:
    """Seconds of the header Retry-After; None without it, or where it is a date."""
    try:
        return max(0.0, float(headers.get('Retry-After') or ''))
    except ValueError:
        return None


def pause_of(attempt: int, retry_after: Optional[float]) -> float:
    """As long as the server says, else longer each time."""
    return retry_after if retry_after is not None else min(LONGEST_PAUSE, FIRST_PAUSE * float(2**attempt))


def is_too_long(retry_after: Optional[float]) -> bool:
    """The server wants a longer pause than a call waits: the caller gets the error with its retry_after."""
    return retry_after is not None and retry_after > LONGEST_PAUSE


@dataclass(frozen=True)
class Reply:
    """An answer whose body has been read."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def has_record(self) -> bool:
        """A 503 may have the record of a run or the result of a grading, and not a problem."""
        return self.status == 503 and 'problem' not in str(self.headers.get('Content-Type', ''))

    def error(self) -> CaissonError:
        """The exception for a status from 400 on."""
        return error_of(self.status, self.headers, self.body)


def error_of(status: int, headers: HTTPMessage, body: bytes) -> CaissonError:
    problem: Dict[str, Any]
    try:
        problem = object_of(body)
    except CaissonError:
        problem = {'detail': body.decode('utf-8', 'replace')[:1000] or f'HTTP status {status}'}
    return from_problem(status, problem, retry_after_of(headers))


def check_redirect(status: int, headers: HTTPMessage) -> None:
    """A redirect is followed by no request: the key is for the given address alone."""
    if 300 <= status < 400:
        target = str(headers.get('Location') or 'nowhere')[:200]
        raise bad_answer(f'is a redirect to {target}; give the final address of the server')


class Attempts:
    """The attempts of one call."""

    def __init__(self, retries: int, repeatable: bool) -> None:
        self.retries = retries
        self.repeatable = repeatable
        self.made = 0

    def after_reply(self, reply: Reply) -> Optional[float]:
        """Seconds until the next attempt, or None: the reply is the result.  Errors: those of a final reply."""
        check_redirect(reply.status, reply.headers)
        if reply.status < 400:
            return None
        may_send_again = reply.status in REFUSED or (reply.status in LOST and self.repeatable)
        retry_after = retry_after_of(reply.headers)
        if may_send_again and self.made < self.retries and not is_too_long(retry_after):
            self.made += 1
            return pause_of(self.made - 1, retry_after)
        if reply.has_record:
            return None
        raise reply.error()

    def after_error(self, error: EngineError) -> float:
        """Seconds until the next attempt.  The error itself where there is none."""
        may_send_again = error.retryable and (self.repeatable or error.code == 'not_connected')
        if not may_send_again or self.made >= self.retries:
            raise error
        self.made += 1
        return pause_of(self.made - 1, error.retry_after)
