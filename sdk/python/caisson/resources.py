"""Objects that a server keeps: runs, sandboxes, files and layers, by a synchronous client."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

from . import calls, types
from .calls import Content, below
from .errors import NotFound
from .results import Run, StoredFile, objects
from .sandbox import Sandbox, pages

if TYPE_CHECKING:
    from .client import Client


class Resource:
    def __init__(self, client: Client) -> None:
        self.client = client


class RunCalls(Resource):
    """Runs that go on, and finished ones that were started as a stream."""

    def list(self, **query: Any) -> Iterator[types.KeptRun]:
        return pages(self.client, '/v1/runs', 'runs', **query)

    def get(self, id: str) -> Run:
        return Run.from_json(self.client._json(calls.get(below('runs', id))))

    def cancel(self, id: str) -> None:
        """End a run that goes on, and forget one that is over."""
        with contextlib.suppress(NotFound):
            self.client._reply(calls.delete(below('runs', id)))


class Sandboxes(Resource):
    def list(self) -> Iterator[types.SandboxInfo]:
        return pages(self.client, '/v1/sandboxes', 'sandboxes')

    def get(self, id: str) -> Sandbox:
        """A sandbox that exists.  As a context manager it is killed at the end of the block."""
        return Sandbox(self.client, self.client._json(calls.get(below('sandboxes', id))))


class StoredFiles(Resource):
    """Files that the server keeps under an id; a run takes one as {'id': ...} in `files`."""

    def upload(self, name: str, content: Content) -> StoredFile:
        value = self.client._json(calls.upload('POST', '/v1/files', calls.bytes_of(content), name=name))
        many = objects(value.get('files'))
        return StoredFile.from_json(many[0] if many else value)

    def list(self, **query: Any) -> Iterator[StoredFile]:
        for one in pages(self.client, '/v1/files', 'files', **query):
            yield StoredFile.from_json(one)

    def info(self, id: str) -> StoredFile:
        return StoredFile.from_json(self.client._json(calls.get(below('files', id, 'info'))))

    def read(self, id: str) -> bytes:
        return self.client._reply(calls.get(below('files', id))).body

    def remove(self, id: str) -> None:
        with contextlib.suppress(NotFound):
            self.client._reply(calls.delete(below('files', id)))


class Layers(Resource):
    """Immutable folders of packages."""

    def create(self, packages: Any = None, *, requirements: Optional[str] = None, **fields: Any) -> types.LayerInfo:
        """Install packages in a layer; the same packages again are the same layer."""
        given = {'packages': packages, 'requirements': requirements, **fields}
        body = {name: value for name, value in given.items() if value is not None}
        return self.client._json(calls.post('/v1/layers', body, repeatable=True))  # type: ignore[return-value]

    def list(self) -> List[types.LayerInfo]:
        return objects(self.client._json(calls.get('/v1/layers')).get('layers'))  # type: ignore[return-value]

    def get(self, id: str) -> types.LayerInfo:
        return self.client._json(calls.get(below('layers', id)))  # type: ignore[return-value]

    def remove(self, id: str) -> None:
        with contextlib.suppress(NotFound):
            self.client._reply(calls.delete(below('layers', id)))
