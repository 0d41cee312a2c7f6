"""HTTP/1.1 over TCP, TLS or a Unix socket.

Each request has a connection of its own.  So no state is shared between threads, event loops or the processes of a
fork, and a connection that breaks belongs to one request.
"""

from __future__ import annotations

import http.client
import io
import socket
import urllib.parse
from dataclasses import dataclass
from typing import Dict, Iterator, Optional

from .attempts import error_of
from .errors import CaissonError, InvalidRequest, TimedOut, Unreachable

LOCAL_NAME = 'localhost'

# http.client raises a ValueError for the length of a chunk that is negative.
BROKEN = (OSError, http.client.HTTPException, ValueError)


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__(LOCAL_NAME, timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


@dataclass(frozen=True)
class Address:
    """Where a server listens: http://HOST:PORT, https://HOST:PORT, either with a path before /v1, or unix:PATH."""

    scheme: str
    host: str = ''
    port: Optional[int] = None
    prefix: str = ''
    path: str = ''

    @classmethod
    def parse(cls, url: str) -> Address:
        if url.startswith('unix:'):
            path = url[len('unix:') :]
            path = path[2:] if path.startswith('//') else path
            if not path.startswith('/'):
                raise InvalidRequest(f'the address {url!r} has no absolute path; write unix:/PATH', field='base_url')
            return cls('unix', path=path)
        parts = urllib.parse.urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            raise InvalidRequest(
                f'the port of the address {url!r} is no number from 0 to 65535', field='base_url'
            ) from None
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise InvalidRequest(
                f'the address {url!r} is no http://HOST:PORT, https://HOST:PORT or unix:/PATH', field='base_url'
            )
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip('/'))

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        if self.scheme == 'unix':
            return UnixConnection(self.path, timeout)
        if self.scheme == 'https':
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def __str__(self) -> str:
        if self.scheme == 'unix':
            return f'unix:{self.path}'
        host = f'[{self.host}]' if ':' in self.host else self.host
        return f'{self.scheme}://{host}{f":{self.port}" if self.port else ""}{self.prefix}'


class Answer:
    """An answer whose body is read by lines or as a whole; a context manager that closes the connection."""

    def __init__(
        self, address: Address, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self.address = address
        self.connection = connection
        self.response = response
        self.status = response.status
        self.headers = response.headers

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def read(self) -> bytes:
        has_end = self.response.length is not None or self.response.chunked or self.status in (204, 304)
        try:
            body = self.response.read()
        except BROKEN as error:
            raise broken(self.address, error) from error
        if not body and not has_end:
            # http.client takes a head that breaks off for a whole one.
            raise Unreachable(f'the answer of {self.address} ends in its head')
        return body

    def lines(self) -> Iterator[bytes]:
        """Lines without their ends.  Unreachable where the body ends before its announced end."""
        try:
            for line in self.response:
                if not line.endswith(b'\n'):
                    raise Unreachable(f'the answer of {self.address} ends in the middle of a line')
                yield line.rstrip(b'\n')
        except BROKEN as error:
            raise broken(self.address, error) from error

    def error(self) -> CaissonError:
        """The exception for a status from 400 on."""
        return error_of(self.status, self.headers, self.read())


def broken(address: Address, error: Exception) -> CaissonError:
    if isinstance(error, socket.timeout):
        return TimedOut(f'the server at {address} sent nothing in the time-out of the client')
    return Unreachable(f'the connection to {address} broke: {error or type(error).__name__}')


def send(address: Address, method: str, path: str, body: bytes, headers: Dict[str, str], timeout: float) -> Answer:
    """The head of the answer.  Errors: Unreachable before anything was sent has the code `not_connected`; TimedOut."""
    connection = address.connect(timeout)
    try:
        connection.connect()
    except OSError as error:
        connection.close()
        raise Unreachable(f'there is no server at {address}: {error}', code='not_connected') from error
    try:
        try:
            # A file is sent in parts, so the time-out counts for a part: a server takes the lines of a batch as it has room.
            connection.request(
                method, address.prefix + path, io.BytesIO(body), {**headers, 'Content-Length': str(len(body))}
            )
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a request answers before it has read the body.
            pass
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise broken(address, error) from error
    except BaseException:
        # KeyboardInterrupt: the server ends the run of a connection that ends.
        connection.close()
        raise
    return Answer(address, connection, response)
