"""A synchronous client of a server, and of a private daemon."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import calls, local, types
from .attempts import Attempts, Reply
from .batch import AnyBatch, GradeBatch, RunBatch
from .calls import NDJSON, Call, Content, Files
from .decoding import object_of
from .errors import CaissonError, EngineError, InvalidRequest
from .events import OnText
from .resources import RunCalls, Sandboxes, StoredFiles, Layers
from .results import Grade, Run
from .sandbox import Context, Sandbox
from .streams import RunStream
from .transport import Address, Answer, send

DEFAULT_URL = 'http://127.0.0.1:8080'

Program = Union[str, Mapping[str, Any]]


class BaseClient:
    """What the clients share: address, key, time-out, and the private daemon.

    Without base_url the environment variable CAISSON_URL counts, and without that http://127.0.0.1:8080; without key
    CAISSON_KEY.  `timeout` is in seconds: how long the server may send nothing while a request goes on.  A request
    that the server could not begin is sent again `retries` times, and one that may be carried out twice also after a
    connection that broke.

    A client holds no connection and no lock.  Threads, event loops and forked processes may share it, and it may be
    pickled.
    """

    def __init__(
        self, base_url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 600.0, retries: int = 2
    ) -> None:
        if retries < 0:
            raise InvalidRequest(f'retries is {retries}; it has to be 0 or more', field='retries')
        if not timeout > 0:
            raise InvalidRequest(f'timeout is {timeout}; it has to be more than 0 seconds', field='timeout')
        self.address = Address.parse(base_url or os.environ.get('CAISSON_URL') or DEFAULT_URL)
        self.key = key or os.environ.get('CAISSON_KEY') or ''
        self.timeout = timeout
        self.retries = retries
        self._lease: Optional[local.Lease] = None

    def _take_lease(self, lease: local.Lease) -> None:
        self.key = ''
        self._lease = lease

    def close(self) -> None:
        """End the private daemon, if this client is the last one that uses it."""
        if self._lease:
            self._lease.release()

    @property
    def is_live(self) -> bool:
        """Whether the private daemon listens; true of a client of another server."""
        return self._lease is None or self._lease.is_live

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, '_lease': None}

    def _headers(self, call: Call) -> Dict[str, str]:
        headers = {'User-Agent': 'caisson-python', 'Content-Type': call.content_type, **call.headers}
        if self.key:
            headers['Authorization'] = f'Bearer {self.key}'
        return headers


class Client(BaseClient):
    """A client of the server at base_url: http://HOST:PORT, https://HOST:PORT or unix:/PATH."""

    @classmethod
    def local(
        cls, *, caissond: Optional[str] = None, settings: Sequence[str] = (), timeout: float = 600.0, retries: int = 2
    ) -> Client:
        """A client of a private daemon, which listens at a Unix socket in a temporary folder.

        Processes that were forked or spawned from this one share the daemon.  It ends with the last client of the
        tree of processes, or with the last process.  `caissond` is the path of the program: without it
        CAISSON_CAISSOND counts, then PATH.  `settings` are texts such as 'engine.running_max=4', and a daemon with
        settings is shared with nobody else.
        """
        lease = local.acquire(caissond, settings)
        client = cls(f'unix:{lease.path}', timeout=timeout, retries=retries)
        client._take_lease(lease)
        return client

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- requests ----

    def _open(self, call: Call, timeout: Optional[float] = None) -> Answer:
        """One attempt; the head of the answer."""
        return send(self.address, call.method, call.path, call.body, self._headers(call), timeout or self.timeout)

    def _reply(self, call: Call) -> Reply:
        """An answer below 400, or a record; sent again where that is safe."""
        attempts = Attempts(self.retries, call.repeatable)
        while True:
            try:
                with self._open(call) as answer:
                    reply = Reply(answer.status, answer.headers, answer.read())
            except EngineError as error:
                time.sleep(attempts.after_error(error))
                continue
            pause = attempts.after_reply(reply)
            if pause is None:
                return reply
            time.sleep(pause)

    def _json(self, call: Call) -> Dict[str, Any]:
        body = self._reply(call).body
        return object_of(body) if body else {}

    def _open_stream(self, call: Call, timeout: float) -> Answer:
        """The head of an answer below 400 whose body is read by lines."""
        attempts = Attempts(self.retries, call.repeatable)
        while True:
            try:
                answer = self._open(call, timeout)
                if answer.status < 300:
                    return answer
                with answer:
                    reply = Reply(answer.status, answer.headers, answer.read())
            except EngineError as error:
                time.sleep(attempts.after_error(error))
                continue
            pause = attempts.after_reply(reply)
            if pause is None:
                raise reply.error()
            time.sleep(pause)

    def request(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The JSON object of any path of the interface.  GET requests alone are sent again after a broken connection."""
        content = b'' if body is None else calls.encode(body)
        return self._json(Call(method, path, content, repeatable=method == 'GET'))

    # ---- runs ----

    def run(
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
        """Run a program; `fields` are further members of a request, see caisson.types.RunRequest.

        `timeout` is the time of the program in seconds, `files` maps names to texts, bytes or paths, `tools` has
        functions of this process and names of the server's tools.  Files that fit a pattern of `download` have their
        content in the result.  on_stdout and on_stderr get texts while the program runs.

        A program that fails is a result: see Run.raise_for_status().  With a key the server carries the program out
        once, so a connection that breaks is tried again; it takes a server with engine.http.
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
        return self._run('/v1/runs', code, language, given, on_stdout, on_stderr, idempotency_key)

    def _run(
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
            with RunStream(self, call, toolbox) as stream:
                stream.deliver(on_stdout, on_stderr)
                run = stream.result()
        else:
            run = Run.from_json(self._json(call))
        return self._with_files(run) if fields.get('download') else run

    def _with_files(self, run: Run) -> Run:
        """Move the kept files of a run into its result."""
        for file in run.files:
            if file.id:
                file.content = self.files.read(file.id)
                self.files.remove(file.id)
                file.url = ''
        return run

    def stream(self, code: str, language: Optional[str] = 'python', **fields: Any) -> RunStream:
        """Start a program, iterate over its events, and take the result.

            with client.stream('print(1)') as stream:
                for event in stream:
                    print(event.type, event.text)
                print(stream.result().status)

        Leaving the block ends a program that goes on.  `fields` are those of run().
        """
        key = fields.pop('idempotency_key', None)
        call, toolbox = calls.run_call('/v1/runs', code, language, fields, key)
        return RunStream(self, call, toolbox, bool(fields.get('download')))

    def run_many(
        self, programs: Iterable[Program], *, concurrency: Optional[int] = None, ordered: bool = True
    ) -> Iterator[Run]:
        """Run many programs, each a text of Python or the fields of run(); `index` of a result is its place.

        Without `concurrency` all go in one request, and the server runs as many at once as it has room for.  With it,
        at most so many go on at once, and the iterable is read as they end.  `ordered`: results come in the order of
        the programs, else as the programs end.  Closing the iterator ends the programs that go on.
        """
        if concurrency is not None and concurrency < 1:
            raise InvalidRequest(f'concurrency is {concurrency}; it has to be 1 or more', field='concurrency')
        if concurrency is not None:
            return self._run_in_threads(iter(programs), concurrency, ordered)
        return self._run_lines(RunBatch([calls.program_line(one) for one in programs], self.retries), ordered)

    def _run_lines(self, batch: RunBatch, ordered: bool) -> Iterator[Run]:
        following = 0
        for number in self._send_lines(batch):
            if not ordered:
                yield batch.results.pop(number)
                continue
            while following in batch.results:
                yield batch.results.pop(following)
                following += 1
        if batch.error:
            raise batch.error

    def _run_in_threads(self, programs: Iterator[Program], concurrency: int, ordered: bool) -> Iterator[Run]:
        live: Set[RunStream] = set()
        is_closed = threading.Event()

        def one(index: int, program: Program) -> Run:
            with self._stream_of(calls.program_fields(program, downloads=True)) as (stream, on_stdout, on_stderr):
                live.add(stream)
                try:
                    if not is_closed.is_set():
                        stream.deliver(on_stdout, on_stderr)
                    else:
                        stream.cancel()
                    run = stream.result()
                    run.index = index
                    return run
                finally:
                    live.discard(stream)

        pool = concurrent.futures.ThreadPoolExecutor(concurrency, 'caisson-run')
        waiting: Deque[concurrent.futures.Future[Run]] = deque()
        try:
            for index, program in enumerate(programs):
                waiting.append(pool.submit(one, index, program))
                if len(waiting) >= concurrency:
                    yield take_one(waiting, ordered)
            while waiting:
                yield take_one(waiting, ordered)
        finally:
            is_closed.set()
            for future in waiting:
                future.cancel()
            for stream in list(live):
                with contextlib.suppress(CaissonError):
                    self._reply(calls.delete(stream.location))
            pool.shutdown(wait=False)

    @contextlib.contextmanager
    def _stream_of(
        self, fields: Dict[str, Any]
    ) -> Iterator[Tuple[RunStream, Optional[OnText], Optional[OnText]]]:
        """The stream of the fields of run(), and the callbacks among them."""
        on_stdout, on_stderr = fields.pop('on_stdout', None), fields.pop('on_stderr', None)
        with self.stream(**fields) as stream:
            yield stream, on_stdout, on_stderr

    def _send_lines(self, batch: AnyBatch) -> Iterator[int]:
        """The numbers of lines as they are answered; batch.error says why others are not."""
        for body in batch.parts():
            try:
                with self._open(Call('POST', batch.path, body, NDJSON)) as answer:
                    if answer.status != 200:
                        raise answer.error()
                    for line in answer.lines():
                        number = batch.take(line)
                        if number is not None:
                            yield number
                batch.finish()
            except CaissonError as error:
                time.sleep(batch.failed(error))

    def why(self, run: Union[str, Run]) -> List[str]:
        """Sentences about what was in the way of a run, or of the run with that id."""
        return (self.runs.get(run) if isinstance(run, str) else run).why()

    def check(self, code: str, language: str = 'python', **fields: Any) -> types.CheckResult:
        """Compare a program with a source policy; nothing is run."""
        body = {'code': code, 'language': language, **fields}
        return self._json(calls.post('/v1/check', body, repeatable=True))  # type: ignore[return-value]

    # ---- gradings ----

    def grade(self, request: Optional[Mapping[str, Any]] = None, **fields: Any) -> Grade:
        """Grade one submission: `fields` are those of POST /v1/grade.  The result of an engine fault has mask true."""
        return Grade.from_json(self._json(calls.post('/v1/grade', {**(request or {}), **fields}, repeatable=True)))

    def grade_many(self, requests: Sequence[Mapping[str, Any]]) -> List[Grade]:
        """Grade many submissions in one request; the results in the order of the requests.

        The server takes lines as it has room.  Lines without an answer are sent again on a new connection.  A line
        that the server refuses has the status bad_request.  Errors: those of the last connection, where lines stay
        without an answer.
        """
        grades, error = self._grade_lines(requests)
        if error:
            raise error
        return [grade for grade in grades if grade]

    def _grade_lines(
        self, requests: Sequence[Mapping[str, Any]]
    ) -> Tuple[List[Optional[Grade]], Optional[CaissonError]]:
        """The results that came, and the error because of which others did not."""
        batch = GradeBatch(requests, self.retries)
        for _ in self._send_lines(batch):
            pass
        return [batch.results.get(number) for number in range(batch.count)], batch.error

    # ---- sandboxes, files, layers ----

    def sandbox(self, *, ttl: Optional[float] = None, idle: Optional[float] = None, **fields: Any) -> Sandbox:
        """Make a persistent sandbox; as a context manager it ends with its block.

        `ttl` and `idle` are seconds; `fields` are those of caisson.types.SandboxRequest, such as profile, limits, packages.
        """
        return Sandbox(self, self._json(calls.post('/v1/sandboxes', calls.sandbox_fields(ttl, idle, fields))))

    def context(self, id: str) -> Context:
        """A context that exists, by its id."""
        return Context(self, self._json(calls.get(calls.below('contexts', id))))

    @property
    def sandboxes(self) -> Sandboxes:
        return Sandboxes(self)

    @property
    def files(self) -> StoredFiles:
        """Files that the server keeps."""
        return StoredFiles(self)

    @property
    def layers(self) -> Layers:
        return Layers(self)

    @property
    def runs(self) -> RunCalls:
        return RunCalls(self)

    def health(self) -> types.Health:
        """Whether the server can run programs.  EngineError where it cannot."""
        return self._json(calls.get('/readyz'))  # type: ignore[return-value]

    def me(self) -> types.MeInfo:
        """The key, its scopes and quotas, and what it may do."""
        return self._json(calls.get('/v1/me'))  # type: ignore[return-value]


def take_one(waiting: 'Deque[concurrent.futures.Future[Run]]', ordered: bool) -> Run:
    """The first result, or the one that is there first."""
    if ordered:
        return waiting.popleft().result()
    done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
    one = next(iter(done))
    waiting.remove(one)
    return one.result()
