"""Runs and programs of sandboxes whose events are read as they happen, by a client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Optional, Set

from . import calls
from . import tools as answers
from .aio import in_thread
from .async_transport import AsyncAnswer
from .attempts import Attempts
from .calls import NDJSON, Call
from .decoding import bad_answer, object_of
from .errors import CaissonError, EngineError, NotFound, Unreachable
from .events import Event, OnText, Reader, deliver
from .results import Output, Process, Run
from .streams import SILENCE_S
from .tools import Toolbox

if TYPE_CHECKING:
    from .async_client import AsyncClient

# How long the end of a block, or a call that was cancelled, waits for the server to end the operation.
CANCEL_S = 5.0


async def called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The value of an asynchronous function, or of a plain one in a thread: a plain function may block."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, '__call__', None)):
        return await function(*args, **kwargs)
    return await in_thread(function, *args, **kwargs)


class AsyncStream:
    """Events of an operation that goes on at the server: a connection that breaks is followed by another one.

    The request is sent by entering the block, or by reading the first event.
    """

    def __init__(self, client: AsyncClient, call: Call) -> None:
        self.client = client
        self.call = call.with_headers({'Accept': NDJSON})
        self.reader = Reader()
        self.location = ''
        self.timeout = min(client.timeout, SILENCE_S)
        self.answer: Optional[AsyncAnswer] = None
        self.tasks: Set[asyncio.Task[Any]] = set()
        self.is_open = False
        self._events = self._read()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def __aenter__(self) -> Any:
        await self.open()
        return self

    async def __aexit__(self, kind: Optional[type], *_: object) -> None:
        if self.is_over:
            self.close()
            return
        with contextlib.suppress(CaissonError, asyncio.TimeoutError):
            await asyncio.wait_for(self.cancel(), CANCEL_S)

    async def open(self) -> None:
        """Send the request.  The operation does not depend on its connection, so a call that is cancelled waits for the
        head of the answer, which names the operation, and ends it.
        """
        if self.is_open:
            return
        self.is_open = True
        opening = asyncio.ensure_future(self.client._open_stream(self.call, self.timeout))
        try:
            self._take(await asyncio.shield(opening))
        except asyncio.CancelledError:
            with contextlib.suppress(CaissonError, asyncio.TimeoutError):
                self._take(await asyncio.wait_for(opening, CANCEL_S))
                await asyncio.wait_for(self.cancel(), CANCEL_S)
            raise

    def _take(self, answer: AsyncAnswer) -> None:
        self.answer = answer
        self.location = self.location or calls.location_of(answer.headers, self.client.address.prefix)

    @property
    def id(self) -> str:
        return self.reader.id or self.location.rpartition('/')[2]

    @property
    def is_over(self) -> bool:
        return self.reader.end is not None

    def close(self) -> None:
        """Stop reading.  The operation goes on at the server."""
        if self.answer:
            self.answer.close()
            self.answer = None
        for task in self.tasks:
            task.cancel()

    async def cancel(self) -> None:
        """End the operation."""
        self.close()
        if self.location and not self.is_over:
            with contextlib.suppress(NotFound):
                await self.client._reply(calls.delete(self.location))

    async def deliver(self, on_stdout: Optional[OnText], on_stderr: Optional[OnText]) -> None:
        """Read to the end, and call the callbacks, which may be asynchronous."""
        async for event in self:
            value = deliver(event, on_stdout, on_stderr)
            if inspect.isawaitable(value):
                await value

    async def _read(self) -> AsyncIterator[Event]:
        await self.open()
        attempts = Attempts(self.client.retries, bool(self.location))
        while not self.is_over:
            try:
                async for event in self._read_answer():
                    attempts.made = 0
                    yield event
                    if self.is_over:
                        break
                else:
                    raise Unreachable('the events ended without the last one')
            except EngineError as error:
                await asyncio.sleep(attempts.after_error(error))
                await self._reopen()
        self.close()

    async def _read_answer(self) -> AsyncIterator[Event]:
        answer = self.answer
        if answer is None:
            raise Unreachable('the stream is closed', retryable=False)
        if 'ndjson' not in str(answer.headers.get('Content-Type', '')):
            event = Event('end', 1, data={'type': 'end', 'record': object_of(await answer.read())})
            self.reader.end = event
            yield event
            return
        async for line in answer.lines():
            found = self.reader.take(line)
            if found:
                self._notice(found)
                yield found

    async def _reopen(self) -> None:
        """Go on after the last event, on another connection."""
        if self.answer:
            self.answer.close()
            self.answer = None
        call = calls.get(f'{self.location}/events', after=self.reader.number)
        self._take(await self.client._open_stream(call.with_headers({'Accept': NDJSON}), self.timeout))

    def _notice(self, event: Event) -> None:
        """Hook of a stream that answers events."""

    def _begin(self, task: 'asyncio.Task[Any]') -> None:
        """Keep a task until its end: the event loop holds only a weak reference."""
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _record(self) -> Dict[str, Any]:
        """The record, after all events.  A long one is not in the event and is asked for."""
        async for _ in self:
            pass
        if self.reader.end is None:
            raise Unreachable('the stream was closed before the end', retryable=False)
        record = self.reader.end.data.get('record')
        if record is None:
            record = await self.client._json(calls.get(self.location))
        if not isinstance(record, dict):
            raise bad_answer('has an end whose record is no object')
        return record


class AsyncRunStream(AsyncStream):
    """The events of a run.  Tools of this process are called in tasks, plain functions in a thread."""

    def __init__(self, client: AsyncClient, call: Call, toolbox: Toolbox, download: bool = False) -> None:
        super().__init__(client, call)
        self.toolbox = toolbox
        self.download = download
        self.fault: Optional[CaissonError] = None
        self._run: Optional[Run] = None

    async def __aenter__(self) -> AsyncRunStream:
        await self.open()
        return self

    async def result(self) -> Run:
        """The result, after all events."""
        if self._run is None:
            run = Run.from_json(await self._record())
            self._run = await self.client._with_files(run) if self.download else run
        if self.fault:
            raise self.fault
        return self._run

    def _notice(self, event: Event) -> None:
        if event.type in ('tool_call', 'approval'):
            self._begin(asyncio.ensure_future(self._answer_call(event)))

    async def _answer_call(self, event: Event) -> None:
        answer = await self._call(str(event.data.get('call', '')), str(event.data.get('tool', '')), event)
        try:
            await self.client._reply(calls.post(f'{self.location}/tool-results', {'results': [answer]}, repeatable=True))
        except NotFound:
            pass  # the run is over
        except CaissonError as error:
            # The call ends by its time-out; the caller gets the error with the result.
            self.fault = None if self.is_over else error

    async def _call(self, call: str, tool: str, event: Event) -> Dict[str, Any]:
        given = answers.arguments_of(event.data)
        try:
            if event.type == 'approval':
                approve = self.toolbox.approve
                reply = await called(approve, tool, given) if approve else 'this client approves no calls'
                return answers.approval_of(call, reply)
            function = self.toolbox.functions.get(tool)
            if function is None:
                return answers.error_of(call, f'the client has no tool {tool}')
            return answers.result_of(call, await called(function, **given))
        except Exception as error:  # of the tool: the program in the sandbox gets it
            return answers.failure_of(call, error)


class AsyncProcessStream(AsyncStream):
    """The events of a program in a sandbox; the result has the output that was read, at most `output_max` bytes of a stream."""

    def __init__(self, client: AsyncClient, call: Call, output_max: int, stdin: Optional[bytes] = None) -> None:
        super().__init__(client, call)
        self.stdin = stdin
        self.output = Output(output_max)

    async def __aenter__(self) -> AsyncProcessStream:
        await self.open()
        return self

    async def open(self) -> None:
        await super().open()
        if self.stdin is not None:
            content, self.stdin = self.stdin, None
            self._begin(asyncio.ensure_future(self._feed(content)))

    def _notice(self, event: Event) -> None:
        self.output.take(event.type, event.content)

    async def result(self) -> Process:
        """The result, after all events."""
        return self.output.fill(Process.from_json(await self._record()))

    async def write(self, content: bytes, end: bool = False) -> None:
        """Write to the standard input of a program that was started with stdin=True; `end` closes it."""
        query = {'end': 'true'} if end else {}
        await self.client._reply(calls.upload('POST', f'{self.location}/stdin', content, **query))

    async def _feed(self, content: bytes) -> None:
        """Write all standard input of a program that may end before it has read it."""
        with contextlib.suppress(CaissonError):
            await self.write(content, end=True)

    async def signal(self, name: str) -> None:
        await self.client._reply(calls.post(f'{self.location}/signal', {'signal': name}))
