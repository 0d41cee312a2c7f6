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


KeptRunStatus = Literal[
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


class _KeptRun(TypedDict):
    id: str
    state: str
    url: str
    age_ms: int


class KeptRun(_KeptRun, total=False):
    """A run that is kept.  What is known of a run whose record is asked for later."""

    status: KeptRunStatus
    language: str
    profile: str
    key_id: str
    tenant: str
    created_at: str
    exit_code: int
    total_ms: float
    cpu_ms: float
    memory_peak_bytes: int


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
