"""Events of a run or of a program in a sandbox, as lines of JSON."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional

from .decoding import bad_answer, object_of

OnText = Callable[[str], Any]


@dataclass
class Event:
    """`type` is start, stdout, stderr, display, lost, tool_call, approval, tool_cancelled, tool_progress or end.

    `text` of an output has U+FFFD for bytes that are no UTF-8; `content` has the exact bytes.  `data` is the event as the
    server sent it.
    """

    type: str
    number: int = 0
    text: str = ''
    content: bytes = b''
    data: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Dict[str, Any], number: int = 0) -> Event:
        kind, text = data.get('type'), data.get('text', '')
        if not isinstance(kind, str) or not isinstance(text, str):
            raise bad_answer('has an event without a type')
        content = text.encode('utf-8', 'surrogatepass')
        if 'base64' in data:
            try:
                content = base64.b64decode(str(data['base64']), validate=True)
            except binascii.Error as error:
                raise bad_answer('has an event whose base64 is none') from error
        return cls(kind, number, text, content, data)


class Reader:
    """Lines to events, with their numbers: the numbers name the place at which a reader goes on."""

    def __init__(self) -> None:
        self.number = 0
        self.id = ''
        self.end: Optional[Event] = None

    def take(self, line: bytes) -> Optional[Event]:
        """The event of a line; None of an empty line, which the server sends so that the connection stays."""
        if not line.strip():
            return None
        data = object_of(line)
        lost = data.get('events')
        if data.get('type') == 'lost' and isinstance(lost, int):
            self.number += lost
        else:
            self.number += 1
        event = Event.from_json(data, self.number)
        if event.type == 'start':
            self.id = str(data.get('id', ''))
        elif event.type == 'end':
            self.end = event
        return event


def deliver(event: Event, on_stdout: Optional[OnText], on_stderr: Optional[OnText]) -> Any:
    """Call the callback of an output; what the callback returned."""
    callback = {'stdout': on_stdout, 'stderr': on_stderr}.get(event.type)
    return callback(event.text) if callback else None
