"""HTTP/1.1 over streams of asyncio.

Each request has a connection of its own, so a client belongs to no event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import ssl
from typing import AsyncIterator, Awaitable, Dict, Tuple, TypeVar

from .attempts import Reply
from .decoding import bad_answer
from .errors import CaissonError, TimedOut, Unreachable
from .transport import LOCAL_NAME, Address

HEAD_MAX = 64 << 10
LINE_MAX = 256 << 20  # of an answer by lines; a record of the server has at most 64 MiB
PIECE = 256 << 10

T = TypeVar('T')


async def within(work: Awaitable[T], address: Address, timeout: float) -> T:
    """The value of one step of I/O.  Errors: TimedOut, Unreachable; EngineError for a head that is too long."""
    try:
        return await asyncio.wait_for(work, timeout)
    except asyncio.TimeoutError as error:
        raise TimedOut(f'the server at {address} sent nothing in the time-out of the client') from error
    except asyncio.LimitOverrunError as error:
        raise bad_answer(f'has a head of more than {HEAD_MAX} bytes') from error
    except (OSError, EOFError) as error:
        raise Unreachable(f'the connection to {address} broke: {error or type(error).__name__}') from error


async def connect(address: Address, timeout: float) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection.  Unreachable has the code `not_connected`: nothing was sent."""
    try:
        if address.scheme == 'unix':
            opening = asyncio.open_unix_connection(address.path, limit=HEAD_MAX)
            return await asyncio.wait_for(opening, timeout)
        is_tls = address.scheme == 'https'
        opening = asyncio.open_connection(
            address.host,
            address.port or (443 if is_tls else 80),
            limit=HEAD_MAX,
            ssl=ssl.create_default_context() if is_tls else None,
        )
        return await asyncio.wait_for(opening, timeout)
    except asyncio.TimeoutError as error:
        raise Unreachable(f'there is no server at {address}: no connection in time', code='not_connected') from error
    except OSError as error:
        raise Unreachable(f'there is no server at {address}: {error}', code='not_connected') from error


def head_of(address: Address, method: str, path: str, size: int, headers: Dict[str, str]) -> bytes:
    host = address.host if address.scheme != 'unix' else LOCAL_NAME
    host = f'[{host}]' if ':' in host else host
    port = f':{address.port}' if address.port else ''
    lines = [f'{method} {address.prefix}{path} HTTP/1.1', f'Host: {host}{port}', 'Connection: close']
    lines += [f'{name}: {value}' for name, value in {**headers, 'Content-Length': str(size)}.items()]
    if any('\r' in line or '\n' in line for line in lines):
        raise ValueError('a header or the path of the request has a line feed')
    return ('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1')


def parse_head(text: bytes) -> Tuple[int, http.client.HTTPMessage]:
    file = io.BytesIO(text)
    words = file.readline().split(None, 2)
    if len(words) < 2 or not words[0].startswith(b'HTTP/1.') or not words[1].isdigit() or len(words[1]) != 3:
        raise bad_answer(f'begins with {text[:80]!r} and not with a status of HTTP/1.1')
    try:
        return int(words[1]), http.client.parse_headers(file)
    except http.client.HTTPException as error:
        raise bad_answer(f'has a head that cannot be read: {error}') from error


class AsyncAnswer:
    """An answer whose body is read by lines or as a whole; an asynchronous context manager that closes the connection."""

    def __init__(self, address: Address, timeout: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self.timeout = timeout
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers = http.client.HTTPMessage()

    async def __aenter__(self) -> AsyncAnswer:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection at once: the server ends the run of a plain request."""
        with contextlib.suppress(RuntimeError):  # of an event loop that is closed
            self.writer.transport.abort()

    async def exchange(self, head: bytes, body: bytes) -> None:
        """Send the request, and read the head of the answer, which may come before all of the body was sent."""
        sending = asyncio.ensure_future(self._send(head, body))
        reading = asyncio.ensure_future(self._read_head())
        try:
            await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                with contextlib.suppress(ConnectionError):
                    sending.result()
                await within(asyncio.shield(reading), self.address, self.timeout)
            else:
                await within(reading, self.address, self.timeout)
        finally:
            for task in (sending, reading):
                task.cancel()
            await asyncio.gather(sending, reading, return_exceptions=True)

    async def _send(self, head: bytes, body: bytes) -> None:
        self.writer.write(head)
        # The time-out counts for a piece: a server takes the lines of a batch as it has room.
        for begin in range(0, max(1, len(body)), PIECE):
            self.writer.write(body[begin : begin + PIECE])
            try:
                await asyncio.wait_for(self.writer.drain(), self.timeout)
            except asyncio.TimeoutError as error:
                raise TimedOut(f'the server at {self.address} took nothing in the time-out of the client') from error

    async def _read_head(self) -> None:
        status = 100
        while 100 <= status < 200:
            status, self.headers = parse_head(await self.reader.readuntil(b'\r\n\r\n'))
        self.status = status

    # ---- the body ----

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes of the body as they come.  Unreachable where it ends before its announced end."""
        if self.status in (204, 304):
            return
        if 'chunked' in str(self.headers.get('Transfer-Encoding', '')).lower():
            async for piece in self._chunks():
                yield piece
            return
        length = str(self.headers.get('Content-Length', ''))
        if not length:
            while True:
                piece = await within(self.reader.read(PIECE), self.address, self.timeout)
                if not piece:
                    return
                yield piece
        if not (length.isascii() and length.isdigit() and len(length) < 19):
            raise bad_answer(f'has the Content-Length {length[:40]!r}')
        async for piece in self._exactly(int(length)):
            yield piece

    async def _exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            piece = await within(self.reader.read(min(size, PIECE)), self.address, self.timeout)
            if not piece:
                raise Unreachable(f'the answer of {self.address} ends {size} bytes before its end')
            size -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await within(self.reader.readuntil(b'\n'), self.address, self.timeout)
            try:
                size = int(line.split(b';')[0].strip(), 16)
                if size < 0:
                    raise ValueError
            except ValueError:
                raise bad_answer(f'has a chunk of the size {line[:40]!r}') from None
            if not size:
                return
            async for piece in self._exactly(size):
                yield piece
            await within(self.reader.readexactly(2), self.address, self.timeout)

    async def read(self) -> bytes:
        return b''.join([piece async for piece in self.pieces()])

    async def reply(self) -> Reply:
        return Reply(self.status, self.headers, await self.read())

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines without their ends."""
        rest = bytearray()
        async for piece in self.pieces():
            found = len(rest)
            rest += piece
            while (end := rest.find(b'\n', found)) >= 0:
                yield bytes(rest[:end])
                del rest[: end + 1]
                found = 0
            if len(rest) > LINE_MAX:
                raise bad_answer(f'has a line of more than {LINE_MAX} bytes')
        if rest:
            raise Unreachable(f'the answer of {self.address} ends in the middle of a line')

    async def error(self) -> CaissonError:
        return (await self.reply()).error()


async def send(
    address: Address, method: str, path: str, body: bytes, headers: Dict[str, str], timeout: float
) -> AsyncAnswer:
    """The head of the answer.  A call that is cancelled ends the connection."""
    head = head_of(address, method, path, len(body), headers)
    reader, writer = await connect(address, timeout)
    answer = AsyncAnswer(address, timeout, reader, writer)
    try:
        await answer.exchange(head, body)
    except BaseException:
        answer.close()
        raise
    return answer
