"""A client for asyncio: the twin of caisson.Client, with the same names.

It waits in the event loop and not in threads.  It holds no connection, so one client serves any number of event loops.
"""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import calls, local, types
from .aio import in_thread
from .async_resources import AsyncLayers, AsyncRunCalls, AsyncSandboxes, AsyncStoredFiles
from .async_sandbox import AsyncContext, AsyncSandbox, Opening
from .async_streams import AsyncRunStream
from .async_transport import AsyncAnswer, send
from .attempts import Attempts, Reply
from .batch import AnyBatch, GradeBatch, RunBatch
from .calls import NDJSON, Call, Content, Files
from .client import BaseClient, Program
from .decoding import object_of
from .errors import CaissonError, EngineError, InvalidRequest
from .events import OnText
from .results import Grade, Run


class AsyncClient(BaseClient):
    """A client of the server at base_url: http://HOST:PORT, https://HOST:PORT or unix:/PATH."""

    @classmethod
    def local(
        cls, *, caissond: Optional[str] = None, settings: Sequence[str] = (), timeout: float = 600.0, retries: int = 2
    ) -> AsyncClient:
        """A client of a private daemon, as Client.local(); the call returns when the daemon listens."""
        lease = local.acquire(caissond, settings)
        client = cls(f'unix:{lease.path}', timeout=timeout, retries=retries)
        client._take_lease(lease)
        return client

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the private daemon, if this client is the last one that uses it."""
        if self._lease:
            await in_thread(self.close)

    # ---- requests ----

    async def _open(self, call: Call, timeout: Optional[float] = None) -> AsyncAnswer:
        """One attempt; the head of the answer."""
        return await send(self.address, call.method, call.path, call.body, self._headers(call), timeout or self.timeout)

    async def _reply(self, call: Call) -> Reply:
        """An answer below 400, or a record; sent again where that is safe."""
        attempts = Attempts(self.retries, call.repeatable)
        while True:
            try:
                async with await self._open(call) as answer:
                    reply = await answer.reply()
            except EngineError as error:
                await asyncio.sleep(attempts.after_error(error))
                continue
            pause = attempts.after_reply(reply)
            if pause is None:
                return reply
            await asyncio.sleep(pause)

    async def _json(self, call: Call) -> Dict[str, Any]:
        body = (await self._reply(call)).body
        return object_of(body) if body else {}

    async def _open_stream(self, call: Call, timeout: float) -> AsyncAnswer:
        """The head of an answer below 400 whose body is read by lines."""
        attempts = Attempts(self.retries, call.repeatable)
        while True:
            try:
                answer = await self._open(call, timeout)
                if answer.status < 300:
                    return answer
                async with answer:
                    reply = await answer.reply()
            except EngineError as error:
                await asyncio.sleep(attempts.after_error(error))
                continue
            pause = attempts.after_reply(reply)
            if pause is None:
                raise reply.error()
            await asyncio.sleep(pause)

    async def request(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The JSON object of any path of the interface.  GET requests alone are sent again after a broken connection."""
        content = b'' if body is None else calls.encode(body)
        return await self._json(Call(method, path, content, repeatable=method == 'GET'))

    # ---- runs ----

    async def run(
        self,
        code: str,
        language: Optional[str] = 'python',
        *,
        stdin: Optional[Content] = None,
        files: Optional[Files] = None,
        packages: Any = None,
        tools: Any = None,
        limits: Optional[types.Limits] = None,
        profile: Optional[str] = None,
        timeout: Optional[float] = None,
        download: Sequence[str] = (),
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        idempotency_key: Optional[str] = None,
        **fields: Any,
    ) -> Run:
        """Run a program; see Client.run().  Callbacks and tools may be asynchronous functions.  A call that is cancelled
        ends the program at the server; with an idempotency_key and without callbacks the program goes on.
        """
        given = {
            'stdin': stdin,
            'files': files,
            'packages': packages,
            'tools': tools,
            'limits': limits,
            'profile': profile,
            'timeout': timeout,
            'download': download or None,
            **fields,
        }
        return await self._run('/v1/runs', code, language, given, on_stdout, on_stderr, idempotency_key)

    async def _run(
        self,
        path: str,
        code: str,
        language: Optional[str],
        fields: Mapping[str, Any],
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        idempotency_key: Optional[str] = None,
    ) -> Run:
        call, toolbox = calls.run_call(path, code, language, fields, idempotency_key)
        if on_stdout or on_stderr or toolbox.needs_events or calls.is_long(call, self.timeout):
            async with AsyncRunStream(self, call, toolbox) as stream:
                await stream.deliver(on_stdout, on_stderr)
                run = await stream.result()
        else:
            run = Run.from_json(await self._json(call))
        return await self._with_files(run) if fields.get('download') else run

    async def _with_files(self, run: Run) -> Run:
        """Move the kept files of a run into its result."""
        for file in run.files:
            if file.id:
                file.content = await self.files.read(file.id)
                await self.files.remove(file.id)
                file.url = ''
        return run

    def stream(self, code: str, language: Optional[str] = 'python', **fields: Any) -> AsyncRunStream:
        """Start a program, iterate over its events, and take the result.

            async with client.stream('print(1)') as stream:
                async for event in stream:
                    print(event.type, event.text)
                print((await stream.result()).status)

        Leaving the block ends a program that goes on.  `fields` are those of run().
        """
        key = fields.pop('idempotency_key', None)
        call, toolbox = calls.run_call('/v1/runs', code, language, fields, key)
        return AsyncRunStream(self, call, toolbox, bool(fields.get('download')))

    def run_many(
        self, programs: Iterable[Program], *, concurrency: Optional[int] = None, ordered: bool = True
    ) -> AsyncIterator[Run]:
        """Run many programs; see Client.run_many()."""
        if concurrency is not None and concurrency < 1:
            raise InvalidRequest(f'concurrency is {concurrency}; it has to be 1 or more', field='concurrency')
        if concurrency is not None:
            return self._run_in_tasks(programs, concurrency, ordered)
        return self._run_lines(RunBatch([calls.program_line(one) for one in programs], self.retries), ordered)

    async def _run_lines(self, batch: RunBatch, ordered: bool) -> AsyncIterator[Run]:
        following = 0
        async for number in self._send_lines(batch):
            if not ordered:
                yield batch.results.pop(number)
                continue
            while following in batch.results:
                yield batch.results.pop(following)
                following += 1
        if batch.error:
            raise batch.error

    async def _run_in_tasks(
        self, programs: Iterable[Program], concurrency: int, ordered: bool
    ) -> AsyncIterator[Run]:
        async def one(index: int, program: Program) -> Run:
            run = await self.run(**calls.program_fields(program, downloads=True))
            run.index = index
            return run

        waiting: List[asyncio.Task[Run]] = []
        try:
            for index, program in enumerate(programs):
                waiting.append(asyncio.ensure_future(one(index, program)))
                if len(waiting) >= concurrency:
                    yield await take_one(waiting, ordered)
            while waiting:
                yield await take_one(waiting, ordered)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _send_lines(self, batch: AnyBatch) -> AsyncIterator[int]:
        """The numbers of lines as they are answered; batch.error says why others are not."""
        for body in batch.parts():
            try:
                async with await self._open(Call('POST', batch.path, body, NDJSON)) as answer:
                    if answer.status != 200:
                        raise await answer.error()
                    async for line in answer.lines():
                        number = batch.take(line)
                        if number is not None:
                            yield number
                batch.finish()
            except CaissonError as error:
                await asyncio.sleep(batch.failed(error))

    async def why(self, run: Union[str, Run]) -> List[str]:
        """Sentences about what was in the way of a run, or of the run with that id."""
        return (await self.runs.get(run) if isinstance(run, str) else run).why()

    async def check(self, code: str, language: str = 'python', **fields: Any) -> types.CheckResult:
        """Compare a program with a source policy; nothing is run."""
        body = {'code': code, 'language': language, **fields}
        return await self._json(calls.post('/v1/check', body, repeatable=True))  # type: ignore[return-value]

    # ---- gradings ----

    async def grade(self, request: Optional[Mapping[str, Any]] = None, **fields: Any) -> Grade:
        """Grade one submission; see Client.grade()."""
        return Grade.from_json(await self._json(calls.post('/v1/grade', {**(request or {}), **fields}, repeatable=True)))

    async def grade_many(self, requests: Sequence[Mapping[str, Any]]) -> List[Grade]:
        """Grade many submissions in one request; see Client.grade_many()."""
        grades, error = await self._grade_lines(requests)
        if error:
            raise error
        return [grade for grade in grades if grade]

    async def _grade_lines(
        self, requests: Sequence[Mapping[str, Any]]
    ) -> Tuple[List[Optional[Grade]], Optional[CaissonError]]:
        """The results that came, and the error because of which others did not."""
        batch = GradeBatch(requests, self.retries)
        async for _ in self._send_lines(batch):
            pass
        return [batch.results.get(number) for number in range(batch.count)], batch.error

    # ---- sandboxes, files, layers ----

    def sandbox(self, *, ttl: Optional[float] = None, idle: Optional[float] = None, **fields: Any) -> Opening[AsyncSandbox]:
        """Make a persistent sandbox: `async with client.sandbox() as sandbox`, or `sandbox = await client.sandbox()`."""

        async def make() -> AsyncSandbox:
            body = calls.sandbox_fields(ttl, idle, fields)
            return AsyncSandbox(self, await self._json(calls.post('/v1/sandboxes', body)))

        return Opening(make)

    async def context(self, id: str) -> AsyncContext:
        """A context that exists, by its id."""
        return AsyncContext(self, await self._json(calls.get(calls.below('contexts', id))))

    @property
    def sandboxes(self) -> AsyncSandboxes:
        return AsyncSandboxes(self)

    @property
    def files(self) -> AsyncStoredFiles:
        """Files that the server keeps."""
        return AsyncStoredFiles(self)

    @property
    def layers(self) -> AsyncLayers:
        return AsyncLayers(self)

    @property
    def runs(self) -> AsyncRunCalls:
        return AsyncRunCalls(self)

    async def health(self) -> types.Health:
        """Whether the server can run programs.  EngineError where it cannot."""
        return await self._json(calls.get('/readyz'))  # type: ignore[return-value]

    async def me(self) -> types.MeInfo:
        """The key, its scopes and quotas, and what it may do."""
        return await self._json(calls.get('/v1/me'))  # type: ignore[return-value]


async def take_one(waiting: 'List[asyncio.Task[Run]]', ordered: bool) -> Run:
    """The first result, or the one that is there first."""
    if ordered:
        run = await waiting[0]
        del waiting[0]
        return run
    done: Set[asyncio.Task[Run]]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    one = next(iter(done))
    waiting.remove(one)
    return one.result()
