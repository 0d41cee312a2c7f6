"""Results as objects.  Fields that a newer server adds are kept in `extra`."""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import html
import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from . import types
from .decoding import bad_answer
from .errors import CaissonError, InvalidRequest

PICTURES = ('image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml')


def known(kind: Any, value: Mapping[str, Any]) -> Dict[str, Any]:
    """The members of a JSON object as arguments of a dataclass, unknown ones in `extra`."""
    names = {one.name for one in dataclasses.fields(kind) if one.init} - {'extra'}
    return {
        **{name: value[name] for name in value if name in names},
        'extra': {name: value[name] for name in value if name not in names},
    }


def decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text))
    except binascii.Error as error:
        raise bad_answer('has base64 that is none') from error


def picture(kind: str, content: bytes) -> str:
    """HTML of a picture.  A browser runs no script of a picture in <img>, also none of SVG."""
    return f'<img src="data:{kind};base64,{base64.b64encode(content).decode()}">'


@dataclass
class Display:
    """A value or a figure by MIME types: text, and base64 for types that are not text.  A notebook shows it.

    The content comes from the program, so HTML stands in a frame that has no access to the notebook, and SVG in <img>.
    """

    data: Dict[str, str] = field(default_factory=dict)
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Display:
        return cls(**known(cls, {**value, 'data': plain(value.get('data'))}))

    @property
    def text(self) -> str:
        return str(self.data.get('text/plain', ''))

    def content(self, kind: str) -> Optional[bytes]:
        """The bytes of a type, or None; also None where the program put no base64 there."""
        if kind not in self.data:
            return None
        is_text = kind.startswith('text/') or kind in ('image/svg+xml', 'application/json', 'application/javascript')
        if is_text:
            return str(self.data[kind]).encode('utf-8', 'replace')
        with contextlib.suppress(CaissonError):
            return decoded(self.data[kind])
        return None

    def _repr_png_(self) -> Optional[bytes]:
        return self.content('image/png')

    def _repr_jpeg_(self) -> Optional[bytes]:
        return self.content('image/jpeg')

    def _repr_latex_(self) -> Optional[str]:
        return self.data.get('text/latex')

    def _repr_json_(self) -> Any:
        try:
            return json.loads(self.data['application/json']) if 'application/json' in self.data else None
        except (ValueError, TypeError, RecursionError):
            return None

    def _repr_html_(self) -> Optional[str]:
        if 'text/html' in self.data:
            page = html.escape(str(self.data['text/html']), quote=True)
            return f'<iframe sandbox srcdoc="{page}" style="width:100%;height:24em;border:0"></iframe>'
        svg = self.content('image/svg+xml')
        return picture('image/svg+xml', svg) if svg is not None else None

    def __repr__(self) -> str:
        return self.text or f'<{", ".join(self.data) or "nothing"}>'

    def to_html(self) -> str:
        """The best form as HTML, without a script of the program."""
        for kind in PICTURES:
            content = self.content(kind)
            if content is not None:
                return picture(kind, content)
        return self._repr_html_() or f'<pre>{html.escape(self.text)}</pre>'


@dataclass
class OutputFile:
    """A file that a program made or changed.  `content` has its bytes where run() got `download`."""

    name: str = ''
    size_bytes: int = 0
    mime: str = ''
    changed: bool = False
    sha256: str = ''
    path: str = ''
    url: str = ''
    error: str = ''
    name_base64: str = ''
    content: Optional[bytes] = field(default=None, repr=False)
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OutputFile:
        return cls(**known(cls, {name: one for name, one in value.items() if name != 'content'}))

    @property
    def id(self) -> str:
        """The id of the file that the server keeps, or an empty text."""
        return self.url.rpartition('/')[2]

    def _repr_png_(self) -> Optional[bytes]:
        return self.content if self.mime == 'image/png' else None

    def _repr_jpeg_(self) -> Optional[bytes]:
        return self.content if self.mime == 'image/jpeg' else None


@dataclass
class Run:
    """What came of a program: the record of docs/use/records.md."""

    status: types.RunResultStatus
    id: str = ''
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    stdout: str = ''
    stderr: str = ''
    result: Optional[types.Value] = None
    error: Optional[types.Failure] = None
    displays: List[Display] = field(default_factory=list)
    files: List[OutputFile] = field(default_factory=list)
    findings: List[types.Finding] = field(default_factory=list)
    warnings: List[types.Warning] = field(default_factory=list)
    feedback: List[str] = field(default_factory=list)
    stages: List[types.Stage] = field(default_factory=list)
    truncated: Optional[types.Truncated] = None
    usage: Dict[str, Any] = field(default_factory=dict)
    timings: Dict[str, Any] = field(default_factory=dict)
    limits: Dict[str, Any] = field(default_factory=dict)
    boundary: Optional[types.Boundary] = None
    tools: Optional[types.ToolsUsed] = None
    language: str = ''
    profile: str = ''
    index: int = -1  # the place in the iterable of run_many()
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any], index: int = -1) -> Run:
        if not isinstance(value.get('status'), str):
            raise bad_answer('has a record without a status')
        displays = [Display.from_json(one) for one in objects(value.get('displays'))]
        files = [OutputFile.from_json(one) for one in objects(value.get('files'))]
        return cls(**known(cls, {**value, 'displays': displays, 'files': files, 'index': index}))

    @classmethod
    def from_error(cls, error: Mapping[str, Any], index: int = -1) -> Run:
        """A line of run_many() that the server refused."""
        server = error.get('code') in ('engine_error', 'internal', 'worker_lost')
        return cls.from_json({'status': 'engine_error' if server else 'bad_request', 'error': dict(error)}, index)

    @property
    def ok(self) -> bool:
        return self.status == 'completed'

    @property
    def value(self) -> Any:
        """The program's value, or None; a value that is no JSON as its text."""
        result = plain(self.result)
        return result['value'] if 'value' in result else result.get('repr')

    @property
    def text(self) -> str:
        """The program's value as a text, or an empty text."""
        result = plain(self.result)
        if 'repr' in result:
            return str(result['repr'])
        return '' if 'value' not in result else json.dumps(result['value'], ensure_ascii=False)

    @property
    def stdout_bytes(self) -> bytes:
        return decoded(self.extra['stdout_base64']) if 'stdout_base64' in self.extra else self.stdout.encode()

    @property
    def stderr_bytes(self) -> bytes:
        return decoded(self.extra['stderr_base64']) if 'stderr_base64' in self.extra else self.stderr.encode()

    @property
    def results(self) -> List[Display]:
        """Displays, figures among the downloaded files, and the program's value."""
        found = list(self.displays)
        for file in self.files:
            if file.content is not None and file.mime in PICTURES:
                is_text = file.mime == 'image/svg+xml'
                text = file.content.decode('utf-8', 'replace') if is_text else base64.b64encode(file.content).decode()
                found.append(Display({file.mime: text, 'text/plain': file.name}))
        result = plain(self.result)
        if result:
            found.append(Display(plain(result.get('data')) or {'text/plain': self.text}))
        return found

    def file(self, name: str) -> Optional[OutputFile]:
        """The file of that name, or None."""
        return next((one for one in self.files if one.name == name), None)

    def why(self) -> List[str]:
        """Sentences about what was in the way: the error, its hint, findings, and warnings; without an obstacle none."""
        error = plain(self.error)
        found = [str(error.get(name) or '') for name in ('summary', 'message', 'hint')]
        for finding in objects(self.findings):
            found.append(': '.join(str(finding[name]) for name in ('rule', 'message') if finding.get(name)))
        found += [str(one.get('text') or '') for one in objects(self.warnings)]
        if not self.ok and not any(found):
            how = f'signal {self.signal}' if self.signal is not None else f'exit status {self.exit_code}'
            found.append(f'the status of the run is {self.status}, {how}')
        return list(dict.fromkeys(text for text in found if text))

    def raise_for_status(self) -> Run:
        """The run itself if it is completed; otherwise an exception."""
        if not self.ok:
            message = plain(self.error).get('message') or f'the status of the run is {self.status}'
            raise CaissonError(str(message), code=self.status)
        return self

    def _repr_html_(self) -> str:
        """For notebooks: output and pictures, escaped, because a program's output is not trusted."""
        parts = [f'<pre>{html.escape(text)}</pre>' for text in (self.stdout, self.stderr) if text]
        parts += [one.to_html() for one in self.results]
        if not self.ok:
            parts.append(f'<p><b>{html.escape(self.status)}</b> {html.escape(" ".join(self.why()))}</p>')
        return '\n'.join(parts)


@dataclass
class Process:
    """A program in a sandbox."""

    id: int = 0
    state: str = ''
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    timed_out: bool = False
    stdout: str = ''
    stderr: str = ''
    error: Optional[types.Failure] = None
    wall_ms: Optional[float] = None
    lost_bytes: int = 0  # output beyond `output_max`, which the client did not keep
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Process:
        return cls(**known(cls, value))

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def check_started(self) -> None:
        """InvalidRequest where the program could not be started."""
        error = plain(self.error)
        if error and self.exit_code is None and self.signal is None:
            raise InvalidRequest(str(error.get('message', '')), field='command', code=str(error.get('code', '')))

    def raise_for_status(self) -> Process:
        if not self.ok:
            how = 'was ended by its time-out' if self.timed_out else f'ended with {self.exit_code}, signal {self.signal}'
            raise CaissonError(f'the program {how}: {self.stderr[-1000:]}', code='failed')
        return self


@dataclass
class Entry:
    """A file or folder in a sandbox."""

    path: str = ''
    name: str = ''
    type: str = ''
    size_bytes: int = 0
    mode: str = ''
    modified_at: str = ''
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        return cls(**known(cls, value))


@dataclass
class StoredFile:
    """A file that the server keeps."""

    id: str = ''
    name: str = ''
    size_bytes: int = 0
    mime: str = ''
    sha256: str = ''
    expires_at: str = ''
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StoredFile:
        return cls(**known(cls, value))


class Output:
    """The output of a program, at most `most` bytes of each stream: a program may print without end."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.lost = 0
        self.streams: Dict[str, bytearray] = {'stdout': bytearray(), 'stderr': bytearray()}

    def take(self, name: str, content: bytes) -> None:
        stream = self.streams.get(name)
        if stream is not None:
            kept = content[: max(0, self.most - len(stream))]
            stream += kept
            self.lost += len(content) - len(kept)

    def fill(self, process: Process) -> Process:
        process.check_started()
        process.stdout = self.streams['stdout'].decode('utf-8', 'replace')
        process.stderr = self.streams['stderr'].decode('utf-8', 'replace')
        process.lost_bytes = self.lost
        return process


def plain(value: Any) -> Dict[str, Any]:
    """An object of JSON, or an empty one."""
    return dict(value) if isinstance(value, dict) else {}


def objects(value: Any) -> List[Dict[str, Any]]:
    """The objects of a list; anything else of a server is left out."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@dataclass
class Case:
    """What came of a case."""

    status: str
    passed: bool
    name: str = ''
    detail: str = ''
    output: Optional[str] = None
    expected: Optional[str] = None
    stdout: Optional[str] = None
    stderr: Optional[str] = None
    error_type: Optional[str] = None
    cpu_ms: Optional[float] = None
    duration_ms: Optional[float] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Case:
        return cls(**known(cls, value))


@dataclass
class Grade:
    """What came of a grading.  `score` and `reward` are None exactly if `mask` is true: then the engine or the
    checker is at fault.
    """

    status: str
    all_passed: bool = False
    score: Optional[float] = None
    mask: bool = False
    retryable: bool = False
    reward: Optional[Dict[str, Any]] = None
    id: Optional[str] = None
    codes: Optional[List[Any]] = None
    cases: List[Case] = field(default_factory=list)
    total: int = 0
    passed: int = 0
    signs: List[Dict[str, Any]] = field(default_factory=list)
    feedback: List[str] = field(default_factory=list)
    error: Optional[Dict[str, Any]] = None
    extra: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Grade:
        cases = [Case.from_json(case) for case in value.get('cases') or []]
        return cls(**known(cls, {**value, 'cases': cases}))

    @classmethod
    def from_error(cls, error: Mapping[str, Any], *, mask: bool, retryable: bool) -> Grade:
        """A line that was not graded: the request is wrong, or the engine could not take it."""
        return cls(
            status='engine_error' if mask else 'bad_request',
            score=None if mask else 0.0,
            mask=mask,
            retryable=retryable,
            error=dict(error),
        )

    @property
    def error_code(self) -> str:
        return str((self.error or {}).get('code') or '')

    @property
    def reason(self) -> str:
        """One sentence about what was in the way, or an empty text."""
        return str((self.error or {}).get('message') or '')
