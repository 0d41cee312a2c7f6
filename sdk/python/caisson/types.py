"""Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _ModuleFile(TypedDict):
    name: str
    content: str


class ModuleFile(_ModuleFile, total=False):
    """A module.  A file that programs can import and cannot change: of Python, JavaScript or data."""

    content_base64: str


class InputFile(TypedDict, total=False):
    """An input file.  A file that is in the home directory before the program starts."""

    name: str
    content: str
    content_base64: str
    path: str
    id: str


class _ExportRule(TypedDict):
    pattern: str


class ExportRule(_ExportRule, total=False):
    """An export.  Files of the home directory that are copied to this host after the run, or kept for its caller."""

    path: str


LimitsOutputAction = Literal[
    'continue',
    'kill',
]


class Limits(TypedDict, total=False):
    """Limits of a run.  What a run may use. Each has a default, a ceiling set by the administrator, and a status of
    its own.
    """

    wall_ms: int
    cpu_ms: int
    cpu_milli: int
    memory_bytes: int
    pids: int
    disk_bytes: int
    disk_files: int
    tmp_bytes: int
    open_files: int
    output_bytes: int
    output_action: LimitsOutputAction
    background_ms: int
    value_bytes: int
    output_files: int
    code_bytes: int
    input_bytes: int


ToolsRequest = TypedDict(
    'ToolsRequest',
    {
        'enabled': 'bool',
        'allow': 'List[str]',
        'deny': 'List[str]',
        'ask': 'List[str]',
        'client': 'List[ClientTool]',
        'calls': 'int',
        'payload_bytes': 'int',
        'call_ms': 'int',
        'ask_ms': 'int',
        'concurrent': 'int',
        'decode': 'bool',
        'raise': 'bool',
        'record': 'bool',
        'replay': 'List[ToolRecord]',
    },
    total=False,
)


class _ClientTool(TypedDict):
    name: str


class ClientTool(_ClientTool, total=False):
    """A tool of the client's own.  Its calls come as events of the run, and wait for POST
    /v1/runs/{id}/tool-results.
    """

    description: str
    input_schema: Any
    ask: bool


class _ToolRecord(TypedDict):
    server: str
    tool: str
    arguments: Any


class ToolRecord(_ToolRecord, total=False):
    """A call of a tool.  What was asked, and what came."""

    result: Any
    error: str
    duration_ms: float


RunRequestExtract = Literal[
    'none',
    'last_fence',
    'tagged_fence',
    'verl',
]


RunRequestNetwork = Literal[
    'none',
    'allow',
    'public',
]


RunRequestReview = Literal[
    'off',
    'advisory',
    'required',
]


RunRequestLandlock = Literal[
    'prefer',
    'require',
    'off',
]


RunRequestCgroup = Literal[
    'prefer',
    'require',
]


RunRequestDeps = Literal[
    'image',
    'locked',
    'auto',
]


RunRequestRetry = Literal[
    'never',
    'safe',
]


RunRequestFormat = Literal[
    'plain',
    'brief',
    'kodeagent',
    'agentos',
    'linx',
    'codemie',
    'mcp-light',
]


class RunRequest(TypedDict, total=False):
    """A request to run code.  One execution of a program in a fresh sandbox."""

    language: str
    code: str
    code_base64: str
    name: str
    args: List[str]
    extract: RunRequestExtract
    prelude: str
    prelude_base64: str
    modules: List[ModuleFile]
    input: Any
    stdin: str
    stdin_base64: str
    env: Dict[str, str]
    files: List[InputFile]
    exports: List[ExportRule]
    profile: str
    limits: Limits
    image: str
    network: RunRequestNetwork
    allow: List[str]
    policy: str
    allow_imports: List[str]
    forbidden_modules: List[str]
    review: RunRequestReview
    advise: bool
    tools: ToolsRequest
    preload: List[str]
    packages: Union[List[str], str, Dict[str, List[str]]]
    requirements: str
    lock: str
    layers: List[str]
    packages_from_code: bool
    strict_proc: bool
    landlock: RunRequestLandlock
    cgroup: RunRequestCgroup
    deps: RunRequestDeps
    backend: str
    retry: RunRequestRetry
    volumes: List[str]
    work_dir: str
    workspace: str
    context: str
    svg: bool
    show_saved: bool
    quiet_errors: bool
    cwd: str
    task_id: str
    user: str
    labels: Dict[str, str]
    format: RunRequestFormat
    aliases: bool


class Truncated(TypedDict):
    """What was cut.  Bytes that were left out of the middle of a stream."""

    stdout_bytes: int
    stderr_bytes: int
    stdout_total_bytes: int
    stderr_total_bytes: int


class _Value(TypedDict):
    type: str


class Value(_Value, total=False):
    """The program's value.  __return_value__, or the value of the last expression."""

    value: Any
    repr: str
    truncated: bool
    data: Dict[str, str]


class Display(TypedDict):
    """A display.  What a program showed, in one or more MIME types."""

    data: Dict[str, str]


class _Failure(TypedDict):
    message: str


class Failure(_Failure, total=False):
    """An error.  What went wrong: in the program, or before it could start."""

    code: str
    retryable: bool
    field: str
    type: str
    summary: str
    line: int
    column: int
    text: str
    traceback: List[str]
    tail: List[str]
    limit: str
    hint: str


FindingSeverity = Literal[
    'LOW',
    'MEDIUM',
    'HIGH',
    'CRITICAL',
]


class _Finding(TypedDict):
    rule: str
    severity: FindingSeverity
    score: int
    line: int
    column: int
    message: str


class Finding(_Finding, total=False):
    """A finding.  One hit of a source policy."""

    file: str
    end_line: int
    end_column: int
    text: str
    advice: str


class _OutputFile(TypedDict):
    name: str
    size_bytes: int
    mime: str
    changed: bool


class OutputFile(_OutputFile, total=False):
    """An output file.  A regular file that the program made or changed."""

    name_base64: str
    sha256: str
    path: str
    url: str
    error: str


ReviewMode = Literal[
    'off',
    'advisory',
    'required',
]


ReviewVerdict = Literal[
    'secure',
    'insecure',
    'unavailable',
    'skipped',
]


ReviewRisk = Literal[
    'none',
    'low',
    'medium',
    'high',
]


class _Review(TypedDict):
    mode: ReviewMode
    verdict: ReviewVerdict
    attempts: int
    latency_ms: float
    cached: bool


class Review(_Review, total=False):
    """A review by a model.  A reviewer can refuse a program, and can allow nothing that a policy or the sandbox
    refuses.
    """

    reason: str
    risk: ReviewRisk
    findings: List[ReviewFinding]
    extra: Any
    model: str
    usage: ReviewUsage
    error: str


class ReviewFinding(TypedDict, total=False):
    """A finding of a reviewer."""

    line: int
    rule: str
    why: str


class ReviewUsage(TypedDict):
    """What a review used.  As the server of the model reported it; nothing is estimated."""

    calls: int
    usage_missing: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_nanousd: int


StageVerdict = Literal[
    'passed',
    'refused',
    'failed',
    'skipped',
]


class _Stage(TypedDict):
    name: str
    verdict: StageVerdict
    ms: float


class Stage(_Stage, total=False):
    """A stage of a run."""

    findings: int


class _Usage(TypedDict):
    wall_ms: float
    cpu_ms: float


class Usage(_Usage, total=False):
    """What the run used.  From the kernel's counters, for the whole process tree."""

    throttled_ms: float
    waited_ms: float
    memory_peak_bytes: int
    processes_peak: int
    disk_bytes: int
    disk_files: int
    network_connections: int
    network_refused: int
    network_in_bytes: int
    network_out_bytes: int


class Timings(TypedDict):
    """Where the time went.  Stages of a run, in milliseconds."""

    queue_ms: float
    prepare_ms: float
    run_ms: float
    collect_ms: float
    total_ms: float


BoundaryIsolation = Literal[
    'full',
    'degraded',
    'none',
    'remote',
    'container',
]


class _Boundary(TypedDict):
    backend: str
    isolation: BoundaryIsolation
    namespaces: List[str]
    seccomp: bool
    landlock_abi: int
    no_new_privileges: bool
    capabilities: Optional[int]
    cgroup: str
    controllers: List[str]
    network: str
    host_uid: int
    host_uids: int
    own_uid: bool
    rootless: bool
    overlay: bool
    strict_proc: bool
    degraded: List[str]


class Boundary(_Boundary, total=False):
    """The boundary that was in force.  Facts, noted by each layer after it was applied."""

    tier: str
    missing: List[str]


class _ToolsUsed(TypedDict):
    calls: int
    failed: int
    refused: int


class ToolsUsed(_ToolsUsed, total=False):
    """Calls of tools."""

    list: List[ToolRecord]
    list_truncated: bool


class Warning(TypedDict):
    """A warning.  Something that the caller should know and that changed nothing."""

    code: str
    text: str


class _TakenFile(TypedDict):
    name: str
    size_bytes: int
    sha256: str


class TakenFile(_TakenFile, total=False):
    """An input file as it was taken."""

    ms: float


class ImageUse(TypedDict):
    """An image of a run.  An imported root file system in which the program ran."""

    name: str
    id: str
    digest: str


class _LayerUse(TypedDict):
    id: str
    language: str
    cached: bool
    wait_ms: int
    packages: Union[List[str], str, Dict[str, List[str]]]


class LayerUse(_LayerUse, total=False):
    """A layer of a run.  An immutable folder of packages that the program could import."""

    unmapped: List[str]


RunResultStatus = Literal[
    'completed',
    'failed',
    'blocked',
    'syntax_error',
    'timeout',
    'memory_exceeded',
    'disk_exceeded',
    'process_limit',
    'output_limit',
    'crashed',
    'cancelled',
    'dependency_failed',
    'unsupported_language',
    'isolation_unavailable',
    'capacity',
    'bad_request',
    'engine_error',
]


RunResultFormat = Literal[
    'plain',
    'brief',
    'kodeagent',
    'agentos',
    'linx',
    'codemie',
    'mcp-light',
]


class _RunResult(TypedDict):
    schema: str
    id: str
    status: RunResultStatus
    exit_code: Optional[int]
    signal: Optional[int]
    stdout: str
    stderr: str
    truncated: Truncated
    result: Optional[Value]
    displays: List[Display]
    error: Optional[Failure]
    findings: List[Finding]
    files: List[OutputFile]
    files_truncated: bool
    feedback: List[str]
    usage: Usage
    timings: Timings
    boundary: Optional[Boundary]
    limits: Limits
    warnings: List[Warning]
    inputs: List[TakenFile]


class RunResult(_RunResult, total=False):
    """The record of a run.  One for every front and backend; everything that is known about a run."""

    stdout_base64: str
    stderr_base64: str
    review: Review
    stages: List[Stage]
    format: RunResultFormat
    tools: ToolsUsed
    language: str
    profile: str
    packages: Union[List[str], str, Dict[str, List[str]]]
    image: ImageUse
    layers: List[LayerUse]
    volumes: List[str]
    devices: List[str]
    work_dir: str
    workspace: str
    task_id: str
    user: str
    labels: Dict[str, str]
    started_at: str
    finished_at: str
    aliases: Dict[str, Any]


class KeptRun(TypedDict):
    """A run that is kept.  What is known of a run whose record is asked for later."""

    id: str
    state: str
    url: str
    age_ms: int


class _KeptRuns(TypedDict):
    runs: List[KeptRun]


class KeptRuns(_KeptRuns, total=False):
    """Runs that are kept."""

    next: str


class _ToolAnswer(TypedDict):
    call: str


class ToolAnswer(_ToolAnswer, total=False):
    """An answer to a call.  To an event tool_call: result or error.  To an event approval: approve."""

    result: Any
    error: str
    approve: bool


class ToolAnswers(TypedDict):
    """Answers to calls."""

    results: List[ToolAnswer]


class ToolRefusal(TypedDict):
    """An answer that was not taken."""

    call: str
    field: str
    message: str


class ToolsTaken(TypedDict):
    """What became of answers to calls."""

    taken: int
    errors: List[ToolRefusal]


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


class _VolumeRequest(TypedDict):
    name: str


class VolumeRequest(_VolumeRequest, total=False):
    """A request for a volume.  A file system of the caller's that outlives programs."""

    size_bytes: int


class VolumeInfo(TypedDict):
    """A volume.  A file system that outlives programs."""

    name: str
    size_bytes: int
    path: str
    created_at: str


class VolumeList(TypedDict):
    """Volumes."""

    volumes: List[VolumeInfo]


class _ModelUsage(TypedDict):
    calls: int
    usage_missing: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_nanousd: int
    cost_usd: str


class ModelUsage(_ModelUsage, total=False):
    """Usage of models.  Sums of what servers of models reported."""

    component: str
    model: str
    tenant: str
    key: str


class ModelUsageReport(TypedDict):
    """A report of usage."""

    since: Optional[str]
    by: str
    total: ModelUsage
    usage: List[ModelUsage]


class ImageInfo(TypedDict):
    """An image.  A root file system in which programs can run."""

    name: str
    id: str
    kind: str
    digest: str
    created_at: str
    size_bytes: int
    files: int
    interpreters: List[ImageInterpreter]
    libraries: List[str]


class ImageInterpreter(TypedDict):
    """An interpreter of an image."""

    name: str
    path: str
    version: str


class ImageList(TypedDict):
    """Images."""

    images: List[ImageInfo]


class LayerRequest(TypedDict, total=False):
    """A request for a layer.  An immutable folder of packages of one language."""

    image: str
    packages: Union[List[str], str, Dict[str, List[str]]]
    requirements: str
    lock: str


class LayerInfo(TypedDict):
    """A layer.  An immutable folder of packages."""

    id: str
    language: str
    runtime: str
    own: bool
    pinned: bool
    packages: Union[List[str], str, Dict[str, List[str]]]
    notes: List[str]
    size_bytes: int
    files: int
    created_at: str
    used_at: str


class LayerList(TypedDict):
    """Layers."""

    layers: List[LayerInfo]
    truncated: bool


CheckRequestBlockAt = Literal[
    'LOW',
    'MEDIUM',
    'HIGH',
    'CRITICAL',
    'SAFE',
]


class _CheckRequest(TypedDict):
    code: str


class CheckRequest(_CheckRequest, total=False):
    """A request to check code.  Nothing is run."""

    id: str
    file: str
    language: str
    code_base64: str
    prelude: str
    prelude_base64: str
    profile: str
    policy: str
    allow_imports: List[str]
    forbidden_modules: List[str]
    tools: List[str]
    block_at: CheckRequestBlockAt


CheckResultVerdict = Literal[
    'allow',
    'deny',
]


class _CheckResult(TypedDict):
    policy: str
    verdict: CheckResultVerdict
    reason: str
    score: int
    findings: List[Finding]
    findings_truncated: bool
    error: Optional[Failure]


class CheckResult(_CheckResult, total=False):
    """What a check found.  One for each program."""

    id: str
    file: str
    language: str
    code: str
    imports: List[str]
    optional_imports: List[str]


class GradeCase(TypedDict, total=False):
    """A case.  One call of a function, or one run with standard input, and what has to come of it."""

    name: str
    function: str
    args: Any
    args_python: str
    kwargs: Any
    kwargs_python: str
    expected: Any
    expected_python: str
    expected_type: str
    expected_exception: str
    exact: bool
    strict_type: bool
    tolerance: float
    stdin: str
    stdin_base64: str
    expected_stdout: str
    expected_stdout_base64: str
    argv: List[str]
    weight: float
    cpu_ms: int
    wall_ms: int


GradeCheckerKind = Literal[
    'command',
    'testlib',
    'openr1',
    'scalebox',
]


class _GradeChecker(TypedDict):
    code: str


class GradeChecker(_GradeChecker, total=False):
    """A checker program.  Decides about the output of a program. A checker runs in a sandbox of its own."""

    kind: GradeCheckerKind
    language: str
    code_base64: str


GradeRequestFormat = Literal[
    'caisson',
    'lcb',
    'apps',
    'taco',
    'codecontests',
    'primeintellect',
    'verl',
    'scalebox',
    'humanevalplus',
    'mbppplus',
    'kodcode',
    'codeforces',
    'leetcode',
    'skyrl',
]


GradeRequestPrelude = Literal[
    'none',
    'lcb',
    'verl',
    'rllm',
]


GradeRequestHelpers = Literal[
    'none',
    'leetcode',
]


GradeRequestInstance = Literal[
    'fresh',
    'shared',
]


GradeRequestCompare = Literal[
    'trimmed',
    'exact',
    'tokens',
    'floats',
    'lines',
    'lcb',
    'verl',
    'prime',
    'evalplus',
    'program',
]


GradeRequestSelect = Literal[
    'all',
    'first',
    'longest',
]


GradeRequestExtract = Literal[
    'none',
    'last_fence',
    'tagged_fence',
    'verl',
]


GradeRequestReview = Literal[
    'off',
    'advisory',
    'required',
]


GradeRequestRetry = Literal[
    'never',
    'safe',
]


class GradeRequest(TypedDict, total=False):
    """A request to grade a submission.  A program and what it is judged by: cases, test code, or both."""

    id: str
    language: str
    problem: str
    code: str
    code_base64: str
    completion: str
    completion_base64: str
    format: GradeRequestFormat
    prelude: GradeRequestPrelude
    helpers: GradeRequestHelpers
    instance: GradeRequestInstance
    reference: str
    reference_base64: str
    compat_codes: bool
    setup: str
    function: str
    cases: List[GradeCase]
    tests: str
    entry_point: str
    shared_process: bool
    compare: GradeRequestCompare
    checker: GradeChecker
    tolerance: float
    case_cpu_ms: int
    total_cpu_ms: int
    max_cases: int
    select: GradeRequestSelect
    stop_on_fail: bool
    show_expected: bool
    feedback_chars: int
    profile: str
    limits: Limits
    image: str
    extract: GradeRequestExtract
    review: GradeRequestReview
    retry: GradeRequestRetry
    aliases: bool
    forbidden_modules: List[str]
    policy: str
    allow_imports: List[str]
    packages: Union[List[str], str, Dict[str, List[str]]]
    requirements: str
    lock: str
    layers: List[str]
    env: Dict[str, str]
    files: List[InputFile]


class GradeReward(TypedDict):
    """Rewards.  What trainers take from a grading."""

    binary: float
    partial: float
    first_fail_index: Optional[int]
    passed: int
    total: int


CaseResultStatus = Literal[
    'passed',
    'failed',
    'error',
    'timeout',
    'crash',
    'memory_exceeded',
    'output_limit',
    'unencodable',
    'unproxyable',
    'skipped',
    'not_run',
    'bad_case',
]


class _CaseResult(TypedDict):
    name: str
    status: CaseResultStatus
    passed: bool
    detail: str
    weight: float


class CaseResult(_CaseResult, total=False):
    """What came of a case."""

    output: str
    expected: str
    error_type: str
    line: int
    cpu_ms: float
    duration_ms: float
    memory_peak_bytes: int
    stdout: str
    stderr: str


class _GradeSign(TypedDict):
    sign: str


class GradeSign(_GradeSign, total=False):
    """A sign of cheating.  Advice; no verdict depends on it."""

    detail: str
    case_name: str


GradeResultStatus = Literal[
    'completed',
    'failed',
    'blocked',
    'syntax_error',
    'timeout',
    'memory_exceeded',
    'disk_exceeded',
    'process_limit',
    'output_limit',
    'crashed',
    'cancelled',
    'dependency_failed',
    'unsupported_language',
    'isolation_unavailable',
    'capacity',
    'bad_request',
    'engine_error',
]


GradeResultInstance = Literal[
    'fresh',
    'shared',
]


class _GradeResult(TypedDict):
    schema: str
    grade_id: str
    status: GradeResultStatus
    all_passed: bool
    score: Optional[float]
    mask: bool
    retryable: bool
    reward: Optional[GradeReward]
    total: int
    passed: int
    failed: int
    skipped: int
    cases: List[CaseResult]
    signs: List[GradeSign]
    feedback: List[str]
    shared_process: bool
    error: Optional[Failure]
    findings: List[Finding]
    stdout: str
    stderr: str
    runs: int
    retried: bool
    cpu_ms: float
    wall_ms: float
    boundary: Optional[Boundary]


class GradeResult(_GradeResult, total=False):
    """What came of grading.  One for each submission."""

    id: str
    codes: Any
    instance: GradeResultInstance
    language: str
    stdout_base64: str
    stderr_base64: str
    memory_peak_bytes: int
    review: Review
    layers: List[LayerUse]
    warnings: List[Warning]
    aliases: Dict[str, Any]


ProfileInfoSession = Literal[
    'none',
    'files',
    'interpreter',
]


class _ProfileInfo(TypedDict):
    name: str
    description: str
    sets: Any


class ProfileInfo(_ProfileInfo, total=False):
    """A profile."""

    session: ProfileInfoSession
    internal: bool


class ProfileList(TypedDict):
    """Profiles."""

    profiles: List[ProfileInfo]


class PolicyInfo(TypedDict):
    """A source policy."""

    name: str
    description: str
    file: str
    extends: List[str]


class PolicyList(TypedDict):
    """Source policies."""

    policies: List[PolicyInfo]


class PolicyDetail(TypedDict):
    """A source policy with its rules.  docs/use/policies.md has what a rule is."""

    name: str
    description: str
    file: str
    extends: List[str]
    block_at: str
    block_score: int
    allow: List[str]
    rules: Any


class LanguageInfo(TypedDict):
    """A language."""

    name: str
    title: str
    aliases: List[str]


class LanguageList(TypedDict):
    """Languages."""

    languages: List[LanguageInfo]


ProblemSetInfoFormat = Literal[
    'caisson',
    'lcb',
    'apps',
    'taco',
    'codecontests',
    'primeintellect',
    'verl',
    'scalebox',
    'humanevalplus',
    'mbppplus',
    'kodcode',
    'codeforces',
    'leetcode',
    'skyrl',
]


class ProblemSetInfo(TypedDict):
    """A set of problems.  Problems that are stored once, and are named by requests to grade."""

    name: str
    format: ProblemSetInfoFormat
    problems: int
    size_bytes: int
    created_at: str


class ProblemSetList(TypedDict):
    """Sets of problems."""

    problem_sets: List[ProblemSetInfo]


class _Health(TypedDict):
    status: str


class Health(_Health, total=False):
    """Health."""

    version: str
    tier: str
    missing: List[str]


class _NamedState(TypedDict):
    state: str


class NamedState(_NamedState, total=False):
    """A request that goes on.  What is known of the request of an Idempotency-Key before its answer."""

    id: str


class _Problem(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    message: str
    retryable: bool
    request_id: str


class Problem(_Problem, total=False):
    """A problem.  Why a request was not carried out (RFC 9457)."""

    field: str
    quota: str
    limit: int
    current: int
    remaining: int
    retry_after_s: int
    running: int
    queued: int
