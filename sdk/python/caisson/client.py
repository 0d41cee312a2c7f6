"""A synchronous client of a server, and of a private daemon."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import batch, local
from .errors import CaissonError, EngineError
from .results import Grade, Run
from .transport import Address, Answer, retry_after_of, send

DEFAULT_URL = 'http://127.0.0.1:8080'
NDJSON = 'application/x-ndjson'

# The server refused the request before the program began: every request may be sent again.
REFUSED = (429, 503)
# A gateway or proxy lost the server, and the program may have begun: only a repeatable request may be sent again.
LOST = (502, 504)


class Client:
    """A client of the server at base_url: http://HOST:PORT, https://HOST:PORT or unix:/PATH.

    Without base_url the environment variable CAISSON_URL counts, and without that http://127.0.0.1:8080; without key
    CAISSON_KEY.  `timeout` is in seconds: how long the server may send nothing while a request goes on.  A request
    that the server could not begin is sent again `retries` times.

    A client holds no connection and no lock.  Threads, event loops and forked processes may share it, and it may be
    pickled.
    """

    def __init__(
        self, base_url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 600.0, retries: int = 2
    ) -> None:
        self.address = Address.parse(base_url or os.environ.get('CAISSON_URL') or DEFAULT_URL)
        self.key = key or os.environ.get('CAISSON_KEY') or ''
        self.timeout = timeout
        self.retries = retries
        self._lease: Optional[local.Lease] = None

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
        client.key = ''
        client._lease = lease
        return client

    def close(self) -> None:
        """End the private daemon, if this client is the last one that uses it."""
        if self._lease:
            self._lease.release()

    @property
    def is_live(self) -> bool:
        """Whether the private daemon listens; true of a client of another server."""
        return self._lease is None or self._lease.is_live

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, '_lease': None}

    # ---- requests ----

    def _post(self, path: str, body: bytes, content_type: str, headers: Optional[Mapping[str, str]] = None) -> Answer:
        sent = {'Content-Type': content_type, 'User-Agent': 'caisson-python', **(headers or {})}
        if self.key:
            sent['Authorization'] = f'Bearer {self.key}'
        return send(self.address, 'POST', path, body, sent, self.timeout)

    def _call(
        self, path: str, body: Mapping[str, Any], repeatable: bool, headers: Optional[Mapping[str, str]] = None
    ) -> Any:
        """The JSON of a request that is sent again where that is safe."""
        text = json.dumps(body, ensure_ascii=False).encode('utf-8', 'replace')
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                with self._post(path, text, 'application/json', headers) as answer:
                    has_record = answer.status == 503 and 'problem' not in answer.headers.get('Content-Type', '')
                    if answer.status < 400 or (has_record and last):
                        return json.loads(answer.read())
                    may_send_again = answer.status in REFUSED or (answer.status in LOST and repeatable)
                    if last or not may_send_again:
                        raise answer.error()
                    batch.pause(attempt, retry_after_of(answer.headers))
            except EngineError as error:
                if last or not (repeatable or error.code == 'not_connected'):
                    raise
                batch.pause(attempt, error.retry_after)
        raise AssertionError('retries are not negative')

    def run(self, code: str, language: str = 'python', *, idempotency_key: Optional[str] = None, **fields: Any) -> Run:
        """Run a program: `fields` are those of POST /v1/runs, as stdin, files, limits, profile, packages.

        A program that fails is a result: see Run.raise_for_status().  With a key the server carries the program out
        once, so a connection that breaks is tried again; it takes a server with engine.http.
        """
        headers = {'Idempotency-Key': idempotency_key} if idempotency_key else {}
        return Run.from_json(
            self._call('/v1/runs', {'code': code, 'language': language, **fields}, bool(idempotency_key), headers)
        )

    def grade(self, request: Optional[Mapping[str, Any]] = None, **fields: Any) -> Grade:
        """Grade one submission: `fields` are those of POST /v1/grade.  The result of an engine fault has mask true."""
        return Grade.from_json(self._call('/v1/grade', {**(request or {}), **fields}, True))

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
        lines = batch.Batch(requests, lambda body: self._post('/v1/grade', body, NDJSON), self.retries)
        error = lines.run()
        return [lines.grades.get(number) for number in range(len(requests))], error
