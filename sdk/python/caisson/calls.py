"""Requests as values: what both clients send, without any I/O."""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field, replace
from http.client import HTTPMessage
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote, urlencode

from .errors import InvalidRequest
from .tools import Toolbox

JSON = 'application/json'
NDJSON = 'application/x-ndjson'
BYTES = 'application/octet-stream'

Content = Union[str, bytes, 'os.PathLike[str]']
Files = Union[Mapping[str, Content], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Call:
    """One request.  `repeatable`: sending it twice has the effect of sending it once."""

    method: str
    path: str
    body: bytes = b''
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False
    wall_s: float = 0.0  # wall-clock limit in the request, in seconds; 0: none

    def with_headers(self, headers: Mapping[str, str]) -> Call:
        return replace(self, headers={**self.headers, **headers})


def location_of(headers: HTTPMessage, prefix: str) -> str:
    """The path of an operation, as the server names it; without a usable path an empty text."""
    path = str(headers.get('Location') or '')
    path = path[len(prefix) :] if prefix and path.startswith(f'{prefix}/v1/') else path
    return path if path.startswith('/v1/') and path.isascii() and path.isprintable() and ' ' not in path else ''


def encode(value: Any) -> bytes:
    """JSON.  A lone surrogate, which UTF-8 does not have, becomes a question mark."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(',', ':')).encode('utf-8', 'replace')
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f'the request is no JSON: {error}') from error


def get(path: str, /, **query: Any) -> Call:
    return Call('GET', with_query(path, query), repeatable=True)


def post(path: str, body: Any = None, *, repeatable: bool = False) -> Call:
    return Call('POST', path, encode({} if body is None else body), repeatable=repeatable)


def patch(path: str, body: Any) -> Call:
    return Call('PATCH', path, encode(body), repeatable=True)


def delete(path: str, /, **query: Any) -> Call:
    return Call('DELETE', with_query(path, query))


def upload(method: str, path: str, content: bytes, /, **query: Any) -> Call:
    return Call(method, with_query(path, query), content, BYTES, repeatable=method == 'PUT')


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """The path with the parameters that are not None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f'{path}?{urlencode(given, quote_via=quote)}' if given else path


def below(*parts: Any) -> str:
    """A path below /v1."""
    return '/v1/' + '/'.join(quote(str(part), safe='') for part in parts)


# ---- contents ----


def bytes_of(content: Content) -> bytes:
    """The bytes of a text, of bytes, or of a file of this computer."""
    if isinstance(content, str):
        return content.encode('utf-8', 'surrogateescape')
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    with open(content, 'rb') as file:
        return file.read()


def file_of(name: str, content: Content) -> Dict[str, str]:
    if isinstance(content, str):
        return {'name': name, 'content': content}
    return {'name': name, 'content_base64': base64.b64encode(bytes_of(content)).decode()}


def files_of(files: Files) -> List[Mapping[str, Any]]:
    """Input files: names to contents, or the objects of the API."""
    if isinstance(files, Mapping):
        return [file_of(name, content) for name, content in files.items()]
    return list(files)


def text_fields(name: str, content: Content) -> Dict[str, str]:
    """A member for text, or NAME_base64 for other bytes."""
    if isinstance(content, str):
        return {name: content}
    return {f'{name}_base64': base64.b64encode(bytes_of(content)).decode()}


def exports_of(patterns: Sequence[Union[str, Mapping[str, Any]]]) -> List[Mapping[str, Any]]:
    return [{'pattern': one} if isinstance(one, str) else one for one in patterns]


def milliseconds(name: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
        raise InvalidRequest(f'{name} is {seconds!r}; it has to be a number of seconds from 0 on', field=name)
    return int(seconds * 1000 + 0.5)


# ---- runs ----


def run_fields(fields: Mapping[str, Any]) -> Tuple[Dict[str, Any], Toolbox]:
    """The members of a request to run, and the tools that this process serves.

    `stdin` may be bytes or a path, `files` a mapping, `exports` and `download` are lists of patterns, `timeout` is the
    time of the program in seconds, `tools` a list of functions and names.
    """
    body = {name: value for name, value in fields.items() if value is not None}
    if 'stdin' in body:
        body.update(text_fields('stdin', body.pop('stdin')))
    if 'files' in body:
        body['files'] = files_of(body['files'])
    patterns = [*exports_of(body.pop('exports', ())), *exports_of(body.pop('download', ()))]
    if patterns:
        body['exports'] = patterns
    if 'timeout' in body:
        wall_ms = milliseconds('timeout', body.pop('timeout'))
        body['limits'] = {'wall_ms': wall_ms, **(body.get('limits') or {})}
    toolbox = Toolbox.of(body.pop('tools', None), body.pop('approve', None))
    if toolbox.request:
        body['tools'] = toolbox.request
    return body, toolbox


def run_call(
    path: str, code: str, language: Optional[str], fields: Mapping[str, Any], idempotency_key: Optional[str]
) -> Tuple[Call, Toolbox]:
    body, toolbox = run_fields(fields)
    if language is not None:
        body = {'language': language, **body}
    headers = {'Idempotency-Key': idempotency_key} if idempotency_key else {}
    wall_ms = (body.get('limits') or {}).get('wall_ms')
    call = Call(
        'POST',
        path,
        encode({'code': code, **body}),
        headers=headers,
        repeatable=bool(idempotency_key),
        wall_s=wall_ms / 1000 if isinstance(wall_ms, (int, float)) else 0.0,
    )
    return call, toolbox


def is_long(call: Call, timeout: float) -> bool:
    """The program may run for so long that a server which answers at its end would seem silent."""
    return call.wall_s > timeout / 2


def program_fields(program: Union[str, Mapping[str, Any]], downloads: bool = False) -> Dict[str, Any]:
    """A line of run_many: the text of a Python program, or the fields of run()."""
    fields = {'code': program} if isinstance(program, str) else dict(program)
    fields.setdefault('language', 'python')
    if fields.get('download') and not downloads:
        raise InvalidRequest('run_many without `concurrency` does not download files; give concurrency', field='download')
    return fields


def program_line(program: Union[str, Mapping[str, Any]]) -> Dict[str, Any]:
    body, toolbox = run_fields(program_fields(program))
    if toolbox.functions:
        raise InvalidRequest('run_many without `concurrency` cannot serve tools; give concurrency', field='tools')
    return body


# ---- sandboxes ----


def sandbox_fields(ttl: Optional[float], idle: Optional[float], fields: Mapping[str, Any]) -> Dict[str, Any]:
    body = {name: value for name, value in fields.items() if value is not None}
    if ttl is not None:
        body['ttl_ms'] = milliseconds('ttl', ttl)
    if idle is not None:
        body['idle_ms'] = milliseconds('idle', idle)
    return body


def process_fields(
    command: Union[str, Sequence[str]], timeout: Optional[float], has_stdin: bool, fields: Mapping[str, Any]
) -> Dict[str, Any]:
    """A text is a command line of Bash, a list a program with its arguments."""
    body = {name: value for name, value in fields.items() if value is not None}
    body['command' if isinstance(command, str) else 'args'] = command if isinstance(command, str) else list(command)
    if timeout is not None:
        body['timeout_ms'] = milliseconds('timeout', timeout)
    if has_stdin:
        body['stdin'] = True
    return body
