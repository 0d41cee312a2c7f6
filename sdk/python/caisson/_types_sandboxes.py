"""Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union
from ._types_runs import Boundary, Failure, ImageUse, LayerUse, Limits, ToolsRequest, Truncated, Warning


SandboxRequestNetwork = Literal[
    'none',
    'allow',
    'public',
]


SandboxRequestLandlock = Literal[
    'prefer',
    'require',
    'off',
]


SandboxRequestCgroup = Literal[
    'prefer',
    'require',
]


class SandboxRequest(TypedDict, total=False):
    """A request for a persistent sandbox.  A sandbox that stays until it is ended, its time is over, or nobody uses
    it.
    """

    profile: str
    limits: Limits
    image: str
    network: SandboxRequestNetwork
    allow: List[str]
    tools: ToolsRequest
    env: Dict[str, str]
    packages: Union[List[str], str, Dict[str, List[str]]]
    requirements: str
    lock: str
    layers: List[str]
    volumes: List[str]
    strict_proc: bool
    landlock: SandboxRequestLandlock
    cgroup: SandboxRequestCgroup
    ttl_ms: int
    idle_ms: int
    root: bool
    sudo: bool
    user: str
    labels: Dict[str, str]


SandboxInfoState = Literal[
    'starting',
    'running',
    'paused',
    'over',
]


class _SandboxInfo(TypedDict):
    id: str
    state: SandboxInfoState
    created_at: str
    expires_at: str
    idle_ms: int
    profile: str
    contexts: int
    limits: Limits
    labels: Dict[str, str]


class SandboxInfo(_SandboxInfo, total=False):
    """A persistent sandbox."""

    image: ImageUse
    volumes: List[str]
    devices: List[str]
    layers: List[LayerUse]
    warnings: List[Warning]
    user: str
    boundary: Boundary
    root: bool
    note: str


class _SandboxList(TypedDict):
    sandboxes: List[SandboxInfo]


class SandboxList(_SandboxList, total=False):
    """Persistent sandboxes."""

    next: str


class SandboxChange(TypedDict):
    """A change of a persistent sandbox."""

    ttl_ms: int


class SandboxUsage(TypedDict):
    """What a persistent sandbox uses.  By the kernel's count; 0 where it does not count."""

    cpu_ms: float
    memory_bytes: int
    memory_peak_bytes: int
    disk_bytes: int
    disk_files: int
    disk_bytes_max: int
    disk_files_max: int
    processes: int
    oom_kills: int
    pids_hits: int


ContextRequestUser = Literal[
    'user',
    'root',
]


class ContextRequest(TypedDict, total=False):
    """A request for a context.  A live interpreter in a persistent sandbox, whose variables last from one execution
    to the next.
    """

    language: str
    cwd: str
    fresh: bool
    user: ContextRequestUser
    env: Dict[str, str]


ContextInfoState = Literal[
    'starting',
    'idle',
    'busy',
    'dead',
]


ContextInfoUser = Literal[
    'user',
    'root',
]


class _ContextInfo(TypedDict):
    id: str
    sandbox: str
    language: str
    state: ContextInfoState
    cwd: str
    executions: int
    waiting: int
    created_at: str
    warm: bool


class ContextInfo(_ContextInfo, total=False):
    """A context.  A live interpreter in a persistent sandbox."""

    user: ContextInfoUser
    reason: str


class _ContextList(TypedDict):
    contexts: List[ContextInfo]


class ContextList(_ContextList, total=False):
    """Contexts."""

    next: str


SessionRequestMode = Literal[
    'none',
    'files',
    'interpreter',
]


class SessionRequest(TypedDict, total=False):
    """A request for a session.  A persistent sandbox with one context in it, for a conversation."""

    mode: SessionRequestMode
    language: str
    sandbox: SandboxRequest


SessionInfoMode = Literal[
    'none',
    'files',
    'interpreter',
]


class _SessionInfo(TypedDict):
    id: str
    mode: SessionInfoMode


class SessionInfo(_SessionInfo, total=False):
    """A session.  A persistent sandbox with one context in it."""

    context: ContextInfo
    sandbox: SandboxInfo


class _SessionList(TypedDict):
    sessions: List[SessionInfo]


class SessionList(_SessionList, total=False):
    """Sessions."""

    next: str


ProcessRequestUser = Literal[
    'user',
    'root',
]


class ProcessRequest(TypedDict, total=False):
    """A request to start a program.  A program in a persistent sandbox."""

    command: str
    args: List[str]
    cwd: str
    user: ProcessRequestUser
    env: Dict[str, str]
    stdin: bool
    terminal: bool
    rows: int
    columns: int
    timeout_ms: int


ProcessInfoState = Literal[
    'running',
    'over',
]


class _ProcessInfo(TypedDict):
    id: int
    pid: int
    sandbox: str
    command: str
    state: ProcessInfoState
    terminal: bool
    age_ms: int


class ProcessInfo(_ProcessInfo, total=False):
    """A program in a persistent sandbox."""

    exit_code: int
    signal: int
    timed_out: bool
    limit: str
    wall_ms: float
    error: Failure
    stdout: str
    stderr: str
    truncated: Truncated


class _ProcessList(TypedDict):
    processes: List[ProcessInfo]


class ProcessList(_ProcessList, total=False):
    """Programs."""

    next: str


class ProcessSignal(TypedDict):
    """A signal."""

    signal: str


class ProcessSize(TypedDict):
    """The size of a terminal."""

    rows: int
    columns: int


EntryInfoType = Literal[
    'file',
    'folder',
    'link',
    'other',
]


EntryInfoRealType = Literal[
    'file',
    'folder',
    'link',
    'other',
]


class _EntryInfo(TypedDict):
    path: str
    name: str
    type: EntryInfoType
    size_bytes: int
    mode: str
    modified_at: str
    owner: str
    group: str


class EntryInfo(_EntryInfo, total=False):
    """A file of a persistent sandbox."""

    path_base64: str
    target: str
    real_path: str
    real_type: EntryInfoRealType


class UploadError(TypedDict):
    """A file that was not written."""

    name: str
    code: str
    message: str


class UploadResult(TypedDict):
    """What came of an upload."""

    entries: List[EntryInfo]
    errors: List[UploadError]


class _FileChange(TypedDict):
    action: str


class FileChange(_FileChange, total=False):
    """A change of a file."""

    to: str
    mode: str


class EntryList(TypedDict):
    """Files."""

    entries: List[EntryInfo]
    truncated: bool


class _StoredFile(TypedDict):
    id: str
    name: str
    size_bytes: int
    sha256: str
    mime: str
    url: str
    created_at: str
    expires_at: str


class StoredFile(_StoredFile, total=False):
    """A file that is kept."""

    name_base64: str
    run: str
    user: str


class _StoredList(TypedDict):
    files: List[StoredFile]


class StoredList(_StoredList, total=False):
    """Files that are kept."""

    next: str


class WorkspaceInfo(TypedDict):
    """A workspace.  A folder of a user that lasts from run to run."""

    id: str
    name: str
    user: str
    stored_bytes: int
    created_at: str
    used_at: str
    expires_at: str


class _WorkspaceList(TypedDict):
    workspaces: List[WorkspaceInfo]


class WorkspaceList(_WorkspaceList, total=False):
    """Workspaces."""

    next: str


class WorkspaceFile(TypedDict):
    """A file of a workspace."""

    name: str
    size_bytes: int
    modified_at: str


class WorkspaceFiles(TypedDict):
    """Files of a workspace."""

    files: List[WorkspaceFile]
    truncated: bool
