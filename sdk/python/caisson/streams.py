"""Runs and programs of sandboxes whose events are read as they happen, by a synchronous client."""

from __future__ import annotations

import contextlib
import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional

from . import calls
from . import tools as answers
from .attempts import Attempts
from .calls import NDJSON, Call
from .decoding import bad_answer, object_of
from .errors import CaissonError, EngineError, NotFound, Unreachable
from .events import Event, OnText, Reader, deliver
from .results import Output, Process, Run
from .tools import Toolbox
from .transport import Answer

if TYPE_CHECKING:
    from .client import Client

# The server sends an empty line each 15 seconds, so a connection that is silent for longer is lost.
SILENCE_S = 60.0

OUTPUT_MAX = 64 << 20  # bytes of a stream of a program in a sandbox that a result has


class Stream:
    """Events of an operation that goes on at the server: a connection that breaks is followed by another one."""

    def __init__(self, client: Client, call: Call) -> None:
        self.client = client
        self.reader = Reader()
        self.location = ''
        self.timeout = min(client.timeout, SILENCE_S)
        self.answer: Optional[Answer] = client._open_stream(call.with_headers({'Accept': NDJSON}), self.timeout)
        self.location = calls.location_of(self.answer.headers, client.address.prefix)
        self._events = self._read()

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        if self.is_over:
            self.close()
            return
        with contextlib.suppress(CaissonError):
            self.cancel()

    @property
    def id(self) -> str:
        return self.reader.id or self.location.rpartition('/')[2]

    @property
    def is_over(self) -> bool:
        return self.reader.end is not None

    def close(self) -> None:
        """Stop reading.  The operation goes on at the server."""
        if self.answer:
            self.answer.__exit__()
            self.answer = None

    def cancel(self) -> None:
        """End the operation."""
        self.close()
        if self.location and not self.is_over:
            with contextlib.suppress(NotFound):
                self.client._reply(calls.delete(self.location))

    def deliver(self, on_stdout: Optional[OnText], on_stderr: Optional[OnText]) -> None:
        """Read to the end, and call the callbacks."""
        for event in self:
            deliver(event, on_stdout, on_stderr)

    def _read(self) -> Iterator[Event]:
        attempts = Attempts(self.client.retries, bool(self.location))
        while not self.is_over:
            try:
                for event in self._read_answer():
                    attempts.made = 0
                    yield event
                    if self.is_over:
                        break
                else:
                    raise Unreachable('the events ended without the last one')
            except EngineError as error:
                time.sleep(attempts.after_error(error))
                self._reopen()
        self.close()

    def _read_answer(self) -> Iterator[Event]:
        answer = self.answer
        if answer is None:
            raise Unreachable('the stream is closed', retryable=False)
        if 'ndjson' not in str(answer.headers.get('Content-Type', '')):
            yield self._take_whole(answer)
            return
        for line in answer.lines():
            event = self.reader.take(line)
            if event:
                self._notice(event)
                yield event

    def _take_whole(self, answer: Answer) -> Event:
        """A request that ended before it began is answered by its record."""
        event = Event('end', 1, data={'type': 'end', 'record': object_of(answer.read())})
        self.reader.end = event
        return event

    def _reopen(self) -> None:
        """Go on after the last event, on another connection."""
        self.close()
        call = calls.get(f'{self.location}/events', after=self.reader.number)
        self.answer = self.client._open_stream(call.with_headers({'Accept': NDJSON}), self.timeout)

    def _notice(self, event: Event) -> None:
        """Hook of a stream that answers events."""

    def _record(self) -> Dict[str, Any]:
        """The record, after all events.  A long one is not in the event and is asked for."""
        for _ in self:
            pass
        if self.reader.end is None:
            raise Unreachable('the stream was closed before the end', retryable=False)
        record = self.reader.end.data.get('record')
        if record is None:
            record = self.client._json(calls.get(self.location))
        if not isinstance(record, dict):
            raise bad_answer('has an end whose record is no object')
        return record


class RunStream(Stream):
    """The events of a run.  Tools of this process are called in threads."""

    def __init__(self, client: Client, call: Call, toolbox: Toolbox, download: bool = False) -> None:
        self.toolbox = toolbox
        self.download = download
        self.fault: Optional[CaissonError] = None
        self._run: Optional[Run] = None
        super().__init__(client, call)

    def __enter__(self) -> RunStream:
        return self

    def result(self) -> Run:
        """The result, after all events."""
        if self._run is None:
            run = Run.from_json(self._record())
            self._run = self.client._with_files(run) if self.download else run
        if self.fault:
            raise self.fault
        return self._run

    def _notice(self, event: Event) -> None:
        if event.type not in ('tool_call', 'approval'):
            return
        # A copy of the context variables: the function runs in the caller's context.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._answer_call, event), daemon=True, name='caisson-tool').start()

    def _answer_call(self, event: Event) -> None:
        answer = self._call(str(event.data.get('call', '')), str(event.data.get('tool', '')), event)
        try:
            self.client._reply(calls.post(f'{self.location}/tool-results', {'results': [answer]}, repeatable=True))
        except NotFound:
            pass  # the run is over
        except CaissonError as error:
            # The call ends by its time-out; the caller gets the error with the result.
            self.fault = None if self.is_over else error

    def _call(self, call: str, tool: str, event: Event) -> Dict[str, Any]:
        given = answers.arguments_of(event.data)
        try:
            if event.type == 'approval':
                approve = self.toolbox.approve
                return answers.approval_of(call, approve(tool, given) if approve else 'this client approves no calls')
            function = self.toolbox.functions.get(tool)
            if function is None:
                return answers.error_of(call, f'the client has no tool {tool}')
            return answers.result_of(call, function(**given))
        except Exception as error:  # of the tool: the program in the sandbox gets it
            return answers.failure_of(call, error)


class ProcessStream(Stream):
    """The events of a program in a sandbox; the result has the output that was read, at most `output_max` bytes of a stream."""

    def __init__(self, client: Client, call: Call, output_max: int) -> None:
        self.output = Output(output_max)
        super().__init__(client, call)

    def __enter__(self) -> ProcessStream:
        return self

    def _notice(self, event: Event) -> None:
        self.output.take(event.type, event.content)

    def result(self) -> Process:
        """The result, after all events."""
        return self.output.fill(Process.from_json(self._record()))

    def write(self, content: bytes, end: bool = False) -> None:
        """Write to the standard input of a program that was started with stdin=True; `end` closes it."""
        query = {'end': 'true'} if end else {}
        self.client._reply(calls.upload('POST', f'{self.location}/stdin', content, **query))

    def signal(self, name: str) -> None:
        self.client._reply(calls.post(f'{self.location}/signal', {'signal': name}))
