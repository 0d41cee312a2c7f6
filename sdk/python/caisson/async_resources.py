"""Objects that a server keeps, by a client for asyncio: the twins of caisson.resources."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, AsyncIterator, List, Optional

from . import calls, types
from .async_sandbox import AsyncSandbox, pages
from .calls import Content, below
from .errors import NotFound
from .results import Run, StoredFile, objects

if TYPE_CHECKING:
    from .async_client import AsyncClient


class AsyncResource:
    def __init__(self, client: AsyncClient) -> None:
        self.client = client


class AsyncRunCalls(AsyncResource):
    """Runs that go on, and finished ones that were started as a stream."""

    def list(self, **query: Any) -> AsyncIterator[types.KeptRun]:
        return pages(self.client, '/v1/runs', 'runs', **query)

    async def get(self, id: str) -> Run:
        return Run.from_json(await self.client._json(calls.get(below('runs', id))))

    async def cancel(self, id: str) -> None:
        """End a run that goes on, and forget one that is over."""
        with contextlib.suppress(NotFound):
            await self.client._reply(calls.delete(below('runs', id)))


class AsyncSandboxes(AsyncResource):
    def list(self) -> AsyncIterator[types.SandboxInfo]:
        return pages(self.client, '/v1/sandboxes', 'sandboxes')

    async def get(self, id: str) -> AsyncSandbox:
        """A sandbox that exists.  As a context manager it is killed at the end of the block."""
        return AsyncSandbox(self.client, await self.client._json(calls.get(below('sandboxes', id))))


class AsyncStoredFiles(AsyncResource):
    """Files that the server keeps under an id; a run takes one as {'id': ...} in `files`."""

    async def upload(self, name: str, content: Content) -> StoredFile:
        value = await self.client._json(calls.upload('POST', '/v1/files', calls.bytes_of(content), name=name))
        many = objects(value.get('files'))
        return StoredFile.from_json(many[0] if many else value)

    async def list(self, **query: Any) -> AsyncIterator[StoredFile]:
        async for one in pages(self.client, '/v1/files', 'files', **query):
            yield StoredFile.from_json(one)

    async def info(self, id: str) -> StoredFile:
        return StoredFile.from_json(await self.client._json(calls.get(below('files', id, 'info'))))

    async def read(self, id: str) -> bytes:
        return (await self.client._reply(calls.get(below('files', id)))).body

    async def remove(self, id: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client._reply(calls.delete(below('files', id)))


class AsyncLayers(AsyncResource):
    """Immutable folders of packages."""

    async def create(self, packages: Any = None, *, requirements: Optional[str] = None, **fields: Any) -> types.LayerInfo:
        """Install packages in a layer; the same packages again are the same layer."""
        given = {'packages': packages, 'requirements': requirements, **fields}
        body = {name: value for name, value in given.items() if value is not None}
        return await self.client._json(calls.post('/v1/layers', body, repeatable=True))  # type: ignore[return-value]

    async def list(self) -> List[types.LayerInfo]:
        return objects((await self.client._json(calls.get('/v1/layers'))).get('layers'))  # type: ignore[return-value]

    async def get(self, id: str) -> types.LayerInfo:
        return await self.client._json(calls.get(below('layers', id)))  # type: ignore[return-value]

    async def remove(self, id: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client._reply(calls.delete(below('layers', id)))
