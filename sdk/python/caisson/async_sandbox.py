"""Persistent sandboxes and their contexts, by a client for asyncio: the twins of caisson.sandbox."""

from __future__ import annotations

import contextlib
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Generator,
    Generic,
    List,
    Mapping,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from . import calls, types
from .async_streams import AsyncProcessStream, AsyncRunStream
from .calls import NDJSON, Content, below
from .decoding import object_of
from .errors import CaissonError, NotFound
from .events import OnText
from .results import Entry, Process, Run, objects
from .sandbox import Path
from .streams import OUTPUT_MAX, SILENCE_S

if TYPE_CHECKING:
    from .async_client import AsyncClient

Made = TypeVar('Made', bound='Closing')


class Closing:
    """Something that ends with its block."""

    async def __aenter__(self: Made) -> Made:
        return self

    async def __aexit__(self, kind: Optional[type], *_: object) -> None:
        # An exception of the block counts more than one of the end.
        with contextlib.suppress(*((CaissonError,) if kind else ())):
            await self.end()

    async def end(self) -> None:
        raise NotImplementedError


class Opening(Generic[Made]):
    """Something that is made by `await`, or by entering a block that it ends with."""

    def __init__(self, make: Callable[[], Awaitable[Made]]) -> None:
        self.make = make
        self.made: Optional[Made] = None

    def __await__(self) -> Generator[Any, None, Made]:
        return self.make().__await__()

    async def __aenter__(self) -> Made:
        self.made = await self.make()
        return self.made

    async def __aexit__(self, kind: Optional[type], *rest: object) -> None:
        if self.made:
            await self.made.__aexit__(kind, *rest)


class AsyncSandbox(Closing):
    """A sandbox that stays until kill(), the end of its time, or the end of the block that it is the manager of."""

    def __init__(self, client: AsyncClient, info: Mapping[str, Any]) -> None:
        self.client = client
        self.id = str(info.get('id', ''))
        self.info = dict(info)
        self.files = AsyncSandboxFiles(self)
        self._contexts: Dict[str, AsyncContext] = {}

    def __repr__(self) -> str:
        return f'<AsyncSandbox {self.id}>'

    def _path(self, *parts: Any) -> str:
        return below('sandboxes', self.id, *parts)

    async def run(self, code: str, language: str = 'python', **fields: Any) -> Run:
        """Run code in the interpreter of that language: variables last from run to run."""
        if language not in self._contexts:
            self._contexts[language] = await self.context(language)
        return await self._contexts[language].run(code, **fields)

    async def exec(
        self,
        command: Union[str, Sequence[str]],
        *,
        stdin: Optional[Content] = None,
        timeout: Optional[float] = None,
        on_stdout: Optional[OnText] = None,
        on_stderr: Optional[OnText] = None,
        output_max: int = OUTPUT_MAX,
        **fields: Any,
    ) -> Process:
        """Run a program to its end; see Sandbox.exec().  A call that is cancelled ends the program."""
        body = calls.process_fields(command, timeout, stdin is not None, fields)
        content = None if stdin is None else calls.bytes_of(stdin)
        call = calls.post(self._path('processes'), body)
        async with AsyncProcessStream(self.client, call, output_max, content) as stream:
            await stream.deliver(on_stdout, on_stderr)
            return await stream.result()

    def start(
        self,
        command: Union[str, Sequence[str]],
        *,
        stdin: bool = False,
        timeout: Optional[float] = None,
        output_max: int = OUTPUT_MAX,
        **fields: Any,
    ) -> AsyncProcessStream:
        """Start a program: `async with sandbox.start(...) as stream`; iterate over its events, and take result()."""
        body = calls.process_fields(command, timeout, stdin, fields)
        return AsyncProcessStream(self.client, calls.post(self._path('processes'), body), output_max)

    def context(self, language: str = 'python', **fields: Any) -> Opening[AsyncContext]:
        """Start an interpreter whose variables last: by `await`, or `async with`."""

        async def make() -> AsyncContext:
            call = calls.post(self._path('contexts'), {'language': language, **fields})
            return AsyncContext(self.client, await self.client._json(call))

        return Opening(make)

    async def contexts(self) -> List[types.ContextInfo]:
        return [one async for one in pages(self.client, self._path('contexts'), 'contexts')]

    async def refresh(self) -> types.SandboxInfo:
        """What the sandbox is now: state, limits, boundary."""
        self.info = await self.client._json(calls.get(self._path()))
        return self.info  # type: ignore[return-value]

    async def set_ttl(self, seconds: float) -> None:
        """Let it live for so long from now on."""
        self.info = await self.client._json(calls.patch(self._path(), {'ttl_ms': calls.milliseconds('ttl', seconds)}))

    async def metrics(self) -> types.SandboxUsage:
        return await self.client._json(calls.get(self._path('metrics')))  # type: ignore[return-value]

    async def pause(self) -> None:
        """Freeze all its processes."""
        self.info = await self.client._json(calls.post(self._path('pause'), repeatable=True))

    async def resume(self) -> None:
        self.info = await self.client._json(calls.post(self._path('resume'), repeatable=True))

    async def kill(self) -> None:
        """End it with everything in it.  A sandbox that has ended is no error."""
        with contextlib.suppress(NotFound):
            await self.client._reply(calls.delete(self._path()))

    async def end(self) -> None:
        await self.kill()


class AsyncSandboxFiles:
    """The files of a sandbox.  Paths begin at /home/user unless they are absolute."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self.sandbox = sandbox

    @property
    def client(self) -> AsyncClient:
        return self.sandbox.client

    def _path(self, name: str = 'files') -> str:
        return self.sandbox._path(name)

    async def read(self, path: Path) -> bytes:
        return (await self.client._reply(calls.get(self._path(), path=path))).body

    async def read_text(self, path: Path) -> str:
        return (await self.read(path)).decode('utf-8', 'replace')

    async def write(self, path: Path, content: Content, *, mode: Optional[str] = None) -> Entry:
        """Write a file and the folders above it; the file is there as a whole or not at all."""
        call = calls.upload('PUT', self._path(), calls.bytes_of(content), path=path, mode=mode)
        return Entry.from_json(await self.client._json(call))

    async def read_tar(self, path: Path = '.') -> bytes:
        """A folder as a tar archive.  Its content is not trusted: extract it with a filter."""
        return (await self.client._reply(calls.get(self._path(), path=path, format='tar'))).body

    async def write_tar(self, path: Path, archive: Content) -> None:
        """Unpack a tar archive into a folder, which is made if it does not exist."""
        await self.change(path, action='folder')
        await self.client._reply(calls.upload('PUT', self._path(), calls.bytes_of(archive), path=path, format='tar'))

    async def list(self, path: Path = '.', *, depth: Optional[int] = None) -> List[Entry]:
        value = await self.client._json(calls.get(self._path('entries'), path=path, depth=depth))
        return [Entry.from_json(one) for one in objects(value.get('entries'))]

    async def stat(self, path: Path) -> Entry:
        return Entry.from_json(await self.client._json(calls.get(self._path('entry'), path=path)))

    async def exists(self, path: Path) -> bool:
        try:
            await self.stat(path)
        except NotFound:
            return False
        return True

    async def change(self, path: Path, **fields: Any) -> Entry:
        """Rename, make a folder, or change the mode: `fields` are those of caisson.types.FileChange."""
        call = calls.Call('PATCH', calls.with_query(self._path(), {'path': path}), calls.encode(fields))
        return Entry.from_json(await self.client._json(call))

    async def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all in it."""
        await self.client._reply(calls.delete(self._path(), path=path))

    async def watch(self, path: Path = '.', *, depth: Optional[int] = None) -> AsyncIterator[Dict[str, Any]]:
        """What happens in a folder: objects with `type`, `path` and `folder`.  The first one has the type `start`."""
        call = calls.get(self._path('watch'), path=path, depth=depth).with_headers({'Accept': NDJSON})
        async with await self.client._open_stream(call, min(self.client.timeout, SILENCE_S)) as answer:
            async for line in answer.lines():
                if line.strip():
                    yield object_of(line)


class AsyncContext(Closing):
    """An interpreter in a sandbox, whose variables last."""

    def __init__(self, client: AsyncClient, info: Mapping[str, Any]) -> None:
        self.client = client
        self.info = dict(info)
        self.id = str(info.get('id', ''))
        self.language = str(info.get('language', ''))

    def __repr__(self) -> str:
        return f'<AsyncContext {self.id} of {self.language}>'

    def _path(self, *parts: Any) -> str:
        return below('contexts', self.id, *parts)

    async def run(
        self, code: str, *, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None, **fields: Any
    ) -> Run:
        """Execute a text; `fields` are those of AsyncClient.run()."""
        key = fields.pop('idempotency_key', None)
        return await self.client._run(self._path('runs'), code, None, fields, on_stdout, on_stderr, key)

    def stream(self, code: str, **fields: Any) -> AsyncRunStream:
        """Execute a text, and iterate over its events; see AsyncClient.stream()."""
        key = fields.pop('idempotency_key', None)
        call, toolbox = calls.run_call(self._path('runs'), code, None, fields, key)
        return AsyncRunStream(self.client, call, toolbox, bool(fields.get('download')))

    async def interrupt(self) -> None:
        """Interrupt what it executes; variables stay."""
        self.info = await self.client._json(calls.post(self._path('interrupt'), repeatable=True))

    async def restart(self) -> None:
        """Put a new interpreter in its place."""
        self.info = await self.client._json(calls.post(self._path('restart')))

    async def close(self) -> None:
        with contextlib.suppress(NotFound):
            await self.client._reply(calls.delete(self._path()))

    async def end(self) -> None:
        await self.close()


async def pages(client: AsyncClient, path: str, member: str, **query: Any) -> AsyncIterator[Any]:
    """The members of all pages of a list."""
    cursor: Any = None
    while True:
        value = await client._json(calls.get(path, cursor=cursor, **query))
        for one in objects(value.get(member)):
            yield one
        following = value.get('next') or value.get('next_cursor')
        if not following or following == cursor:
            return
        cursor = following
