"""Many gradings over one connection: a line of JSON for each, answered in any order.

Lines are identified by their ids, so a connection that breaks costs only the lines that are not answered: they are sent
again on a new connection.  A grading has no effect outside of its sandboxes, so sending it twice does no harm.
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set

from .errors import CaissonError, EngineError, RateLimited, Unreachable
from .results import Grade
from .transport import Answer

# A body has at most 64 MiB at the server; a batch above half of that becomes several requests.
BODY_MAX = 32 << 20

# Codes of line errors that say something about the server and nothing about the line.
SERVER_CODES = frozenset(('engine_error', 'cancelled', 'isolation_unavailable', 'worker_lost', 'internal'))

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 30.0


def pause(attempt: int, retry_after: Optional[float]) -> None:
    """Wait as long as the server says, else longer each time."""
    time.sleep(min(LONGEST_PAUSE, retry_after if retry_after is not None else FIRST_PAUSE * 2**attempt))


def encode(request: Mapping[str, Any], number: int) -> bytes:
    """A line.  A lone surrogate, which UTF-8 does not have, becomes a question mark."""
    text = json.dumps({**request, 'id': str(number)}, ensure_ascii=False, separators=(',', ':'))
    return text.encode('utf-8', 'replace') + b'\n'


def bodies(lines: Mapping[int, bytes], numbers: Sequence[int]) -> Iterator[List[int]]:
    """The numbers of the lines of each request."""
    part: List[int] = []
    size = 0
    for number in numbers:
        if part and size + len(lines[number]) > BODY_MAX:
            yield part
            part, size = [], 0
        part.append(number)
        size += len(lines[number])
    if part:
        yield part


class Batch:
    """Gradings and their answers."""

    def __init__(self, requests: Sequence[Mapping[str, Any]], post: Callable[[bytes], Answer], retries: int) -> None:
        self.lines: Dict[int, bytes] = {number: encode(request, number) for number, request in enumerate(requests)}
        self.ids = [request.get('id') for request in requests]
        self.grades: Dict[int, Grade] = {}
        self.post = post
        self.retries = retries
        self.attempts = 0
        self.error: Optional[CaissonError] = None
        self.limited: Optional[RateLimited] = None  # a line of the request found no room

    def run(self) -> Optional[CaissonError]:
        """Fill `grades`; the error that left some without an answer, or None."""
        while self.error is None and len(self.grades) < len(self.lines):
            missing = [number for number in self.lines if number not in self.grades]
            for part in bodies(self.lines, missing):
                if not self.send(part):
                    break
        return self.error

    def send(self, part: Sequence[int]) -> bool:
        """One request; whether all of it was answered."""
        before = len(self.grades)
        wanted = set(part)
        self.limited = None
        try:
            with self.post(b''.join(self.lines[number] for number in part)) as answer:
                if answer.status != 200:
                    raise answer.error()
                for line in answer.lines():
                    if line.strip():
                        self.take(json.loads(line), wanted)
            if not wanted:
                return True
            raise self.limited or Unreachable(f'{len(wanted)} of {len(part)} lines were not answered')
        except ValueError as error:
            # InvalidRequest is a ValueError, too: the server refuses the whole body.
            self.error = error if isinstance(error, CaissonError) else Unreachable(f'an answer is no JSON: {error}')
        except EngineError as error:
            self.again(error, progress=len(self.grades) > before)
        except CaissonError as error:
            self.error = error
        return False

    def again(self, error: EngineError, progress: bool) -> None:
        """Wait for another attempt.  Attempts count from the last line that was answered."""
        self.attempts = 0 if progress else self.attempts + 1
        if not error.retryable or self.attempts > self.retries:
            self.error = error
        else:
            pause(self.attempts, error.retry_after)

    def take(self, answer: Mapping[str, Any], wanted: Set[int]) -> None:
        name = str(answer.get('id', ''))
        number = int(name) if name.isdigit() else -1
        if number not in wanted:
            return
        error = answer.get('error') or {}
        if error.get('code') == 'capacity':
            self.limited = RateLimited(
                str(error.get('message', '')), retry_after=error.get('retry_after_s'), code='capacity'
            )
            return
        if 'result' in answer:
            grade = Grade.from_json(answer['result'])
        else:
            is_server = error.get('code') in SERVER_CODES
            grade = Grade.from_error(error, mask=is_server, retryable=is_server)
        given = self.ids[number]
        grade.id = None if given is None else str(given)
        wanted.discard(number)
        self.grades[number] = grade
