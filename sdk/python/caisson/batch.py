"""Many gradings or runs over one connection: a line of JSON for each, answered in any order.

Lines are identified by their ids, so a connection that breaks costs only the lines that are not answered.  A grading has
no effect outside of its sandboxes, so its line is sent again on a new connection.  The line of a run is sent again only
where the server refused it before the program began.
"""

from __future__ import annotations

from typing import Any, Dict, Generic, Iterator, List, Mapping, Optional, Sequence, Set, TypeVar, Union

from .attempts import is_too_long, pause_of
from .calls import encode
from .decoding import bad_answer, object_of
from .errors import CaissonError, EngineError, RateLimited, Unreachable
from .results import Grade, Run

# A body has at most 64 MiB at the server; a batch above half of that becomes several requests.
BODY_MAX = 32 << 20

# Codes of line errors that say something about the server and nothing about the line.
SERVER_CODES = frozenset(('engine_error', 'cancelled', 'isolation_unavailable', 'worker_lost', 'internal'))

One = TypeVar('One', Grade, Run)


def line_of(request: Mapping[str, Any], number: int) -> bytes:
    return encode({**request, 'id': str(number)}) + b'\n'


class Batch(Generic[One]):
    """Lines and their answers, without any I/O: a client sends parts(), and hands over the lines of the answers."""

    path = ''
    is_repeatable = False

    def __init__(self, requests: Sequence[Mapping[str, Any]], retries: int) -> None:
        self.lines: Dict[int, bytes] = {number: line_of(request, number) for number, request in enumerate(requests)}
        self.count = len(self.lines)
        self.results: Dict[int, One] = {}
        self.retries = retries
        self.attempts = 0
        self.error: Optional[CaissonError] = None
        self.limited: Optional[RateLimited] = None  # a line of the request found no room
        self.part: List[int] = []
        self.missing: Set[int] = set()
        self.is_further = False  # a line was answered since the request began

    def parts(self) -> Iterator[bytes]:
        """Bodies, until each line has its answer or the batch has an error."""
        while self.error is None and self.lines:
            self.part = self.next_part()
            self.missing = set(self.part)
            self.limited, self.is_further = None, False
            yield b''.join(self.lines[number] for number in self.part)

    def next_part(self) -> List[int]:
        part: List[int] = []
        size = 0
        for number, line in self.lines.items():
            if part and size + len(line) > BODY_MAX:
                break
            part.append(number)
            size += len(line)
        return part

    def finish(self) -> None:
        """The answer ended.  Errors: for lines that it did not answer."""
        limited = self.limited
        if not self.missing:
            if limited:
                raise limited
            return
        error = Unreachable(f'{len(self.missing)} of {len(self.part)} lines were not answered')
        error.retryable = self.is_repeatable
        raise error

    def failed(self, error: CaissonError) -> float:
        """Seconds until the next request; `error` is set where there is none.  Attempts count from the last line that
        was answered.
        """
        self.attempts = 0 if self.is_further else self.attempts + 1
        was_sent = not isinstance(error, RateLimited) and error.code != 'not_connected' and error.status not in (429, 503)
        if not isinstance(error, EngineError) or not error.retryable or (was_sent and not self.is_repeatable):
            self.error = error
            return 0.0
        if self.attempts > self.retries or is_too_long(error.retry_after):
            self.error = error
            return 0.0
        return pause_of(self.attempts, error.retry_after)

    def take(self, line: bytes) -> Optional[int]:
        """The number of the line that this one answers, or None."""
        if not line.strip():
            return None
        answer = object_of(line)
        name = str(answer.get('id', ''))
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 19 else -1
        if number not in self.missing:
            return None
        error = answer.get('error')
        error = error if isinstance(error, dict) else {}
        if error.get('code') == 'capacity':
            after = error.get('retry_after_s')
            self.limited = RateLimited(
                str(error.get('message', '')),
                retry_after=after if isinstance(after, (int, float)) else None,
                code='capacity',
            )
            self.missing.discard(number)
            return None
        self.results[number] = self.result_of(number, answer, error)
        self.missing.discard(number)
        del self.lines[number]
        self.is_further = True
        return number

    def result_of(self, number: int, answer: Mapping[str, Any], error: Mapping[str, Any]) -> One:
        raise NotImplementedError


class GradeBatch(Batch[Grade]):
    path = '/v1/grade'
    is_repeatable = True

    def __init__(self, requests: Sequence[Mapping[str, Any]], retries: int) -> None:
        super().__init__(requests, retries)
        self.ids = [request.get('id') for request in requests]

    def result_of(self, number: int, answer: Mapping[str, Any], error: Mapping[str, Any]) -> Grade:
        result = answer.get('result')
        if isinstance(result, dict):
            grade = Grade.from_json(result)
        elif not error:
            raise bad_answer('has a line without a result')
        else:
            is_server = error.get('code') in SERVER_CODES
            grade = Grade.from_error(error, mask=is_server, retryable=is_server)
        given = self.ids[number]
        grade.id = None if given is None else str(given)
        return grade


class RunBatch(Batch[Run]):
    path = '/v1/runs/bulk'

    def result_of(self, number: int, answer: Mapping[str, Any], error: Mapping[str, Any]) -> Run:
        record = answer.get('record')
        if isinstance(record, dict):
            return Run.from_json(record, number)
        if not error:
            raise bad_answer('has a line without a record')
        return Run.from_error(error, number)


AnyBatch = Union[GradeBatch, RunBatch]
