"""Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union
from ._types_runs import Boundary, Failure, Finding, InputFile, LayerUse, Limits, Review, Warning


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


class MeKey(TypedDict):
    """A key."""

    id: str
    name: str


class MeRights(TypedDict):
    """What a caller may do.  The operations that are refused for lack of a scope, or because this daemon keeps
    nothing, are false.
    """

    run: bool
    grade: bool
    check: bool
    sandboxes: bool
    contexts: bool
    layers: bool
    images: bool
    volumes: bool
    files: bool
    tools: bool
    events: bool
    metrics: bool
    audit: bool
    usage: bool
    keys: bool
    logs: bool


class MeQuotas(TypedDict):
    """Quotas of a key.  0: no limit but those of the engine."""

    running_max: int
    queued_max: int
    cpu_ms_per_day: int
    stored_bytes: int
    review_budget_usd: Optional[str]


class MeUsed(TypedDict):
    """What is used of quotas."""

    cpu_ms: int
    stored_bytes: int


class MeInfo(TypedDict):
    """The caller."""

    key: Optional[MeKey]
    tenant: str
    admin: bool
    scopes: Optional[List[str]]
    may: MeRights
    quotas: Optional[MeQuotas]
    used: Optional[MeUsed]
    version: str
    page: Optional[str]


class KeyInfo(TypedDict):
    """A key.  Its text is no part of it: nobody has it but its owner."""

    id: str
    name: str
    tenant: str
    scopes: List[str]
    created_at: str
    expires_at: Optional[str]
    revoked_at: Optional[str]
    used_at: Optional[str]
    quotas: MeQuotas


class _KeyList(TypedDict):
    keys: List[KeyInfo]


class KeyList(_KeyList, total=False):
    """Keys."""

    next: str


MetricsSeries = TypedDict(
    'MetricsSeries',
    {
        'step_s': 'int',
        'from': 'str',
        'series': 'Any',
    },
)


class PreviewRequest(TypedDict):
    """A preview.  HTML that a program made, for a frame of a page."""

    html: str


class PreviewInfo(TypedDict):
    """The link of a preview."""

    url: str
    expires_at: str


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


DaemonEventType = Literal[
    'run.started',
    'run.finished',
    'sandbox.created',
    'sandbox.paused',
    'sandbox.resumed',
    'sandbox.ended',
    'context.created',
    'context.ended',
    'pool.changed',
    'lost',
    'lagged',
]


DaemonEventStatus = Literal[
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


class _DaemonEvent(TypedDict):
    type: DaemonEventType


class DaemonEvent(_DaemonEvent, total=False):
    """An event of /v1/events."""

    time: str
    id: str
    tenant: str
    key_id: str
    language: str
    profile: str
    sandbox: str
    context: str
    status: DaemonEventStatus
    exit_code: int
    total_ms: float
    cpu_ms: float
    memory_peak_bytes: int
    ready: int
    making: int
    target: int
    memory_bytes: int
    message: str
