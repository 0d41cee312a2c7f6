"""Persistent sandboxes and their contexts, by a synchronous client."""

from __future__ import annotations

import contextlib
import threading
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import calls, types
from .calls import NDJSON, Content, below
from .decoding import object_of
from .errors import CaissonError, NotFound
from .events import OnText
from .results import Entry, Process, Run, objects
from .streams import OUTPUT_MAX, SILENCE_S, ProcessStream, RunStream

if TYPE_CHECKING:
    from .client import Client

Path = Union[str, PurePath]


class Sandbox:
    """A sandbox that stays until kill(), the end of its time, or the end of the block that it is the manager of."""

    def __init__(self, client: Client, info: Mapping[str, Any]) -> None:
        self.client = client
        self.id = str(info.get('id', ''))
        self.info = dict(info)
        self.files = SandboxFiles(self)
        self._contexts: Dict[str, Context] = {}

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        # An exception of the block counts more than one of the end of the sandbox.
        with contextlib.suppress(*((CaissonError,) if kind else ())):
            self.kill()

    def __repr__(self) -> str:
        return f'<Sandbox {self.id}>'

    def _path(self, *parts: Any) -> str:
        return below('sandboxes', self.id, *parts)

    def run(self, code: str, language: str = 'python', **fields: Any) -> Run:
        """Run code in the interpreter of that language: variables last from run to run.  See Client.run()."""
        if language not in self._contexts:
            self._contexts[language] = self.context(language)
        return self._contexts[language].run(code, **fields)

    def exec(
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
        """Run a program to its end: a command line of Bash, or a list of the program and its arguments.

        `fields` are those of caisson.types.ProcessRequest, such as cwd, env and user.  Of each stream the result has at most
        `output_max` bytes; `lost_bytes` counts the rest.
        """
        with self.start(command, stdin=stdin is not None, timeout=timeout, output_max=output_max, **fields) as stream:
            if stdin is not None:
                content = calls.bytes_of(stdin)
                threading.Thread(target=feed, args=(stream, content), daemon=True, name='caisson-stdin').start()
            stream.deliver(on_stdout, on_stderr)
            return stream.result()

    def start(
        self,
        command: Union[str, Sequence[str]],
        *,
        stdin: bool = False,
        timeout: Optional[float] = None,
        output_max: int = OUTPUT_MAX,
        **fields: Any,
    ) -> ProcessStream:
        """Start a program; iterate over its events, and take result()."""
        body = calls.process_fields(command, timeout, stdin, fields)
        return ProcessStream(self.client, calls.post(self._path('processes'), body), output_max)

    def context(self, language: str = 'python', **fields: Any) -> Context:
        """Start an interpreter whose variables last; `fields` are those of caisson.types.ContextRequest."""
        call = calls.post(self._path('contexts'), {'language': language, **fields})
        return Context(self.client, self.client._json(call))

    def contexts(self) -> List[types.ContextInfo]:
        return list(pages(self.client, self._path('contexts'), 'contexts'))

    def refresh(self) -> types.SandboxInfo:
        """What the sandbox is now: state, limits, boundary."""
        self.info = self.client._json(calls.get(self._path()))
        return self.info  # type: ignore[return-value]

    def set_ttl(self, seconds: float) -> None:
        """Let it live for so long from now on."""
        self.info = self.client._json(calls.patch(self._path(), {'ttl_ms': calls.milliseconds('ttl', seconds)}))

    def metrics(self) -> types.SandboxUsage:
        return self.client._json(calls.get(self._path('metrics')))  # type: ignore[return-value]

    def pause(self) -> None:
        """Freeze all its processes."""
        self.info = self.client._json(calls.post(self._path('pause'), repeatable=True))

    def resume(self) -> None:
        self.info = self.client._json(calls.post(self._path('resume'), repeatable=True))

    def kill(self) -> None:
        """End it with everything in it.  A sandbox that has ended is no error."""
        with contextlib.suppress(NotFound):
            self.client._reply(calls.delete(self._path()))


class SandboxFiles:
    """The files of a sandbox.  Paths begin at /home/user unless they are absolute."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    @property
    def client(self) -> Client:
        return self.sandbox.client

    def _path(self, name: str = 'files') -> str:
        return self.sandbox._path(name)

    def read(self, path: Path) -> bytes:
        return self.client._reply(calls.get(self._path(), path=path)).body

    def read_text(self, path: Path) -> str:
        return self.read(path).decode('utf-8', 'replace')

    def write(self, path: Path, content: Content, *, mode: Optional[str] = None) -> Entry:
        """Write a file and the folders above it; the file is there as a whole or not at all."""
        call = calls.upload('PUT', self._path(), calls.bytes_of(content), path=path, mode=mode)
        return Entry.from_json(self.client._json(call))

    def read_tar(self, path: Path = '.') -> bytes:
        """A folder as a tar archive.  Its content is not trusted: extract it with a filter."""
        return self.client._reply(calls.get(self._path(), path=path, format='tar')).body

    def write_tar(self, path: Path, archive: Content) -> None:
        """Unpack a tar archive into a folder, which is made if it does not exist."""
        self.change(path, action='folder')
        self.client._reply(calls.upload('PUT', self._path(), calls.bytes_of(archive), path=path, format='tar'))

    def list(self, path: Path = '.', *, depth: Optional[int] = None) -> List[Entry]:
        value = self.client._json(calls.get(self._path('entries'), path=path, depth=depth))
        return [Entry.from_json(one) for one in objects(value.get('entries'))]

    def stat(self, path: Path) -> Entry:
        return Entry.from_json(self.client._json(calls.get(self._path('entry'), path=path)))

    def exists(self, path: Path) -> bool:
        try:
            self.stat(path)
        except NotFound:
            return False
        return True

    def change(self, path: Path, **fields: Any) -> Entry:
        """Rename, make a folder, or change the mode: `fields` are those of caisson.types.FileChange."""
        call = calls.Call('PATCH', calls.with_query(self._path(), {'path': path}), calls.encode(fields))
        return Entry.from_json(self.client._json(call))

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all in it."""
        self.client._reply(calls.delete(self._path(), path=path))

    def watch(self, path: Path = '.', *, depth: Optional[int] = None) -> Iterator[Dict[str, Any]]:
        """What happens in a folder: objects with `type`, `path` and `folder`.  The first one has the type `start`.  Closing
        the iterator ends it.
        """
        call = calls.get(self._path('watch'), path=path, depth=depth).with_headers({'Accept': NDJSON})
        with self.client._open_stream(call, min(self.client.timeout, SILENCE_S)) as answer:
            for line in answer.lines():
                if line.strip():
                    yield object_of(line)


class Context:
    """An interpreter in a sandbox, whose variables last."""

    def __init__(self, client: Client, info: Mapping[str, Any]) -> None:
        self.client = client
        self.info = dict(info)
        self.id = str(info.get('id', ''))
        self.language = str(info.get('language', ''))

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        with contextlib.suppress(*((CaissonError,) if kind else ())):
            self.close()

    def __repr__(self) -> str:
        return f'<Context {self.id} of {self.language}>'

    def _path(self, *parts: Any) -> str:
        return below('contexts', self.id, *parts)

    def run(
        self, code: str, *, on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None, **fields: Any
    ) -> Run:
        """Execute a text; `fields` are those of Client.run()."""
        key = fields.pop('idempotency_key', None)
        return self.client._run(self._path('runs'), code, None, fields, on_stdout, on_stderr, key)

    def stream(self, code: str, **fields: Any) -> RunStream:
        """Execute a text, and iterate over its events; see Client.stream()."""
        key = fields.pop('idempotency_key', None)
        call, toolbox = calls.run_call(self._path('runs'), code, None, fields, key)
        return RunStream(self.client, call, toolbox, bool(fields.get('download')))

    def interrupt(self) -> None:
        """Interrupt what it executes; variables stay."""
        self.info = self.client._json(calls.post(self._path('interrupt'), repeatable=True))

    def restart(self) -> None:
        """Put a new interpreter in its place."""
        self.info = self.client._json(calls.post(self._path('restart')))

    def close(self) -> None:
        with contextlib.suppress(NotFound):
            self.client._reply(calls.delete(self._path()))


def feed(stream: ProcessStream, content: bytes) -> None:
    """Write all standard input of a program that may end before it has read it."""
    with contextlib.suppress(CaissonError):
        stream.write(content, end=True)


def pages(client: Client, path: str, member: str, **query: Any) -> Iterator[Any]:
    """The members of all pages of a list."""
    cursor: Any = None
    while True:
        value = client._json(calls.get(path, cursor=cursor, **query))
        yield from objects(value.get(member))
        following = value.get('next') or value.get('next_cursor')
        if not following or following == cursor:
            return
        cursor = following
