/* Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit. */

import type { Boundary, Failure, Finding, InputFile, LayerUse, Limits, Review, Warning } from './types-runs.js'

/** A request to check code.  Nothing is run. */
export interface CheckRequest {
  /** The caller's own name for this request, kept in the answer. */
  id?: string
  /** Where the program was read from, kept in the answer. */
  file?: string
  /** python, javascript, typescript or bash, or an alias of one. */
  language?: string
  /** The program's text. */
  code: string
  /** The exact bytes, in base64, of code */
  code_base64?: string
  /** The prelude of the program, checked separately. */
  prelude?: string
  /** The exact bytes, in base64, of prelude */
  prelude_base64?: string
  /** A named set of values, as of a run: its policy, allow_imports and forbidden_modules. Default: engine.profile. */
  profile?: string
  /** The policy that it is compared with. Default: the profile's; linx, if the profile has none. */
  policy?: string
  /** Modules that may be imported whatever the policy says of them, beside those of the profile. */
  allow_imports?: string[]
  /** Modules that may not be imported, in place of the policy's own list; patterns such as * are possible. An empty
   *  list forbids none. */
  forbidden_modules?: string[]
  /** Names of tools. A program that defines a function or a class of such a name gets the finding shadows_tool, which
   *  refuses nothing. */
  tools?: string[]
  /** The lowest severity that is refused, instead of the policy's own; SAFE refuses nothing. */
  block_at?: 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL' | 'SAFE'
}

/** What a check found.  One for each program. */
export interface CheckResult {
  /** The caller's name for the request. */
  id?: string
  /** Where the program was read from. */
  file?: string
  /** Its language. */
  language?: string
  /** The policy. */
  policy: string
  /** What the policy says. */
  verdict: 'allow' | 'deny'
  /** The same in one sentence; empty where nothing was found. */
  reason: string
  /** Of a denied program that parses: disallowed_import, forbidden_builtin, pattern, or prelude_failed for a prelude
   *  that does not parse. */
  code?: string
  /** The findings' points, added up. */
  score: number
  /** Everything that was found, in the order of the text. */
  findings: Finding[]
  /** There were more than are listed. */
  findings_truncated: boolean
  /** Modules that it brings in, by their names, sorted. */
  imports?: string[]
  /** Those of them that a Python program can do without: they are imported in a try statement that handles
   *  ImportError, and nowhere else. */
  optional_imports?: string[]
  /** The program does not parse, or could not be checked; else null. */
  error: Failure | null
}

/** A case.  One call of a function, or one run with standard input, and what has to come of it. */
export interface GradeCase {
  /** Its name. Default: case and its number, from 1. */
  name?: string
  /** The function, if it is another than that of the request. */
  function?: string
  /** Positional arguments, an array. */
  args?: unknown
  /** The same as a Python literal, for what JSON does not have: (1, {2}, b'x', nan). */
  args_python?: string
  /** Arguments by name, an object. */
  kwargs?: unknown
  /** The same as a Python literal, a dict. */
  kwargs_python?: string
  /** The value that has to come; null is one, too. */
  expected?: unknown
  /** The same as a Python literal. */
  expected_python?: string
  /** Its type, or one that it is a kind of: int, int | None, collections.Counter. */
  expected_type?: string
  /** The exception that has to come, or one that it is a kind of: ValueError, json.JSONDecodeError. */
  expected_exception?: string
  /** Exactly that exception, and none that is a kind of it. */
  exact?: boolean
  /** True is no 1, and 1.0 neither. */
  strict_type?: boolean
  /** How far numbers may be off, absolute or relative. */
  tolerance?: number
  /** What the program reads; then expected_stdout is what it has to write. */
  stdin?: string
  /** The exact bytes, in base64, of stdin */
  stdin_base64?: string
  /** What the program has to write. */
  expected_stdout?: string
  /** The exact bytes, in base64, of expected_stdout */
  expected_stdout_base64?: string
  /** The program's arguments, beside stdin. */
  argv?: string[]
  /** Its part of the score. Default: 1. */
  weight?: number
  /** CPU time that it may take. */
  cpu_ms?: number
  /** Wall-clock time that it may take; 0: twice cpu_ms and a second. */
  wall_ms?: number
}

/** A checker program.  Decides about the output of a program. A checker runs in a sandbox of its own. */
export interface GradeChecker {
  /** How the checker gets its files and gives its verdict. */
  kind?: 'command' | 'testlib' | 'openr1' | 'scalebox'
  /** Language of the checker. */
  language?: string
  /** Text of the checker. */
  code: string
  /** The exact bytes, in base64, of code */
  code_base64?: string
}

/** A request to grade a submission.  A program and what it is judged by: cases, test code, or both. */
export interface GradeRequest {
  /** The caller's own name for it, kept in the result. */
  id?: string
  /** The language of the submission. */
  language?: string
  /** A problem of a stored set, as SET/ID: the request has the problem's fields beside its own. Over HTTP only. */
  problem?: string
  /** The submission. */
  code?: string
  /** The exact bytes, in base64, of code */
  code_base64?: string
  /** The answer of a model, in place of `code`; the submission is extracted from it, by last_fence if `extract` is
   *  not given. An answer without a block of code is no_code_block. */
  completion?: string
  /** The exact bytes, in base64, of completion */
  completion_base64?: string
  /** The data set whose record the request has; the record's fields become cases and tests. */
  format?:
    | 'caisson' | 'lcb' | 'apps' | 'taco' | 'codecontests' | 'primeintellect' | 'verl' | 'scalebox' | 'humanevalplus'
    | 'mbppplus' | 'kodcode' | 'codeforces' | 'leetcode' | 'skyrl'
  /** Imports that are executed before the submission. */
  prelude?: 'none' | 'lcb' | 'verl' | 'rllm'
  /** Classes that are there for the submission, with conversion of arguments and values. */
  helpers?: 'none' | 'leetcode'
  /** Whether each case has a process of its own. */
  instance?: 'fresh' | 'shared'
  /** A program whose values are expected in the cases that expect none; it runs once, and the values are cached by
   *  hash. */
  reference?: string
  /** The exact bytes, in base64, of reference */
  reference_base64?: string
  /** Add the integer codes of LiveCodeBench to the result. */
  compat_codes?: boolean
  /** Code that is executed before it, in the same namespace. A set-up that fails is an error of the request, not of
   *  the submission. */
  setup?: string
  /** The function that cases call; dotted names are looked up. */
  function?: string
  /** The cases. Without cases and tests the submission is executed, and `function` has to be there; then all_passed
   *  is false and total is 0. */
  cases?: GradeCase[]
  /** Test code in Python: asserts, check(candidate), unittest, functions of pytest. */
  tests?: string
  /** The function that check() is given. */
  entry_point?: string
  /** Test code and submission share one process. Then a verdict can be forged, and is marked. */
  shared_process?: boolean
  /** How standard output and values are compared. */
  compare?: 'trimmed' | 'exact' | 'tokens' | 'floats' | 'lines' | 'lcb' | 'verl' | 'prime' | 'evalplus' | 'program'
  /** The checker program, for compare program, which is the default beside a checker. */
  checker?: GradeChecker
  /** How far numbers may be off where a case does not say. Default for compare floats: 1e-6. */
  tolerance?: number
  /** CPU time of a case that does not say. */
  case_cpu_ms?: number
  /** CPU time of all cases together; 0: no limit. Later cases are timeout. */
  total_cpu_ms?: number
  /** Cases that are run at most; 0: all. */
  max_cases?: number
  /** Which cases are run, if max_cases is less than their number. */
  select?: 'all' | 'first' | 'longest'
  /** End with the first case that is not passed. */
  stop_on_fail?: boolean
  /** Results and feedback may say what was expected. */
  show_expected?: boolean
  /** How long the feedback may be, all lines together. */
  feedback_chars?: number
  /** A named set of values, as of a run. */
  profile?: string
  /** Limits of each sandbox. The times are those of loading the submission, and of test code as a whole. */
  limits?: Limits
  /** What the submission finds, as in a run. Default: small, if no profile is named. */
  image?: string
  /** Which part of `code` is the submission, where a model wrote text around it. */
  extract?: 'none' | 'last_fence' | 'tagged_fence' | 'verl'
  /** Whether a model reviews the submission before it runs. The setting review.mode is the least. */
  review?: 'off' | 'advisory' | 'required'
  /** What happens when the worker of a gateway that grades is lost, as of a run. */
  retry?: 'never' | 'safe'
  /** Add the field names of older systems to the result. */
  aliases?: boolean
  /** Modules that may not be imported, in place of the policy's own list; patterns such as * are possible. An empty
   *  list forbids none. */
  forbidden_modules?: string[]
  /** The source policy that the submission has to pass. */
  policy?: string
  /** Modules that may be imported whatever the policy says of them, beside those of the profile. */
  allow_imports?: string[]
  /** Packages for the submission, the test code and the checker, such as numpy==1.26.*, or left-pad@1 for JavaScript;
   *  they are installed in layers where the settings name an index. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The same as the text of a requirements file: a package in each line, and with --hash options a lock. */
  requirements?: string
  /** Packages of Node as the text of a package-lock.json, of lockfileVersion 2 or 3. */
  lock?: string
  /** Ids of layers that exist, as caisson layers list shows them. */
  layers?: string[]
  /** Environment variables of the submission. */
  env?: Record<string, string>
  /** Files that the submission finds. */
  files?: InputFile[]
}

/** Rewards.  What trainers take from a grading. */
export interface GradeReward {
  /** 1 if all cases have passed, else 0. */
  binary: number
  /** Passed cases as part of all that were not skipped. */
  partial: number
  /** The first case that was not passed, from 0; null: none. */
  first_fail_index: number | null
  /** Cases that passed. */
  passed: number
  /** Cases that were not skipped. */
  total: number
}

/** What came of a case. */
export interface CaseResult {
  /** Its name. */
  name: string
  /** What came of it. */
  status:
    | 'passed' | 'failed' | 'error' | 'timeout' | 'crash' | 'memory_exceeded' | 'output_limit' | 'unencodable' |
    'unproxyable' | 'skipped' | 'not_run' | 'bad_case'
  /** status is passed. */
  passed: boolean
  /** The same in one sentence; OK where it passed. */
  detail: string
  /** What came, as its interpreter writes it. */
  output?: string
  /** What was expected, where the caller lets that be shown. */
  expected?: string
  /** The exception that came, expected or not. */
  error_type?: string
  /** Line of the submission in which it came, or of the test code. */
  line?: number
  /** Its part of the score. */
  weight: number
  /** CPU time that it took. */
  cpu_ms?: number
  /** Wall-clock time that it took. */
  duration_ms?: number
  /** Largest use of memory: of the sandbox of the case, or of its process where cases share a sandbox, and then never
   *  more than of that sandbox. */
  memory_peak_bytes?: number
  /** What it wrote to standard output, its beginning and end. */
  stdout?: string
  /** What it wrote to standard error, its beginning and end. */
  stderr?: string
}

/** A sign of cheating.  Advice; no verdict depends on it. */
export interface GradeSign {
  /** A stable name: early_exit, patched_builtins, suspicious_eq, foreign_descriptor, forged_marker,
   *  verdict_shaped_output, reads_internals, reads_tests, breaks_checker, breaks_engine. */
  sign: string
  /** Where, or what. */
  detail?: string
  /** In which case. */
  case_name?: string
}

/** What came of grading.  One for each submission. */
export interface GradeResult {
  /** Version of this record. */
  schema: string
  /** The caller's name for it. */
  id?: string
  /** Ours. */
  grade_id: string
  /** completed: each case has a verdict. Otherwise what was in the way: of the submission (failed, syntax_error,
   *  blocked, timeout and others) or of the engine. */
  status:
    | 'completed' | 'failed' | 'blocked' | 'syntax_error' | 'timeout' | 'memory_exceeded' | 'disk_exceeded' |
    'process_limit' | 'output_limit' | 'crashed' | 'cancelled' | 'dependency_failed' | 'unsupported_language' |
    'isolation_unavailable' | 'capacity' | 'bad_request' | 'engine_error'
  /** There is a case, and each has passed that was not skipped. */
  all_passed: boolean
  /** Weights of the passed cases, as part of all that were not skipped; 0 to 1. null exactly if mask is true. */
  score: number | null
  /** The engine or the checker is at fault, and the grading says nothing about the submission. */
  mask: boolean
  /** The same request may get a score later. */
  retryable: boolean
  /** The rewards of the grading; null exactly if mask is true. */
  reward: GradeReward | null
  /** With compat_codes: for each case true, -2 wrong, -3 time, -4 error, -5 engine, up to the first failure. */
  codes?: unknown
  /** Whether each case had a process of its own; fresh also where shared was asked for and all cases ran in their
   *  own. */
  instance?: 'fresh' | 'shared'
  /** Cases. */
  total: number
  /** Those that passed. */
  passed: number
  /** Those that did not. */
  failed: number
  /** Tests that skipped themselves. */
  skipped: number
  /** Each case, in the order of the request; then each test of the test code. */
  cases: CaseResult[]
  /** Signs of cheating. */
  signs: GradeSign[]
  /** Lines for a model that will try again. */
  feedback: string[]
  /** Test code and submission shared one process: the verdict can be forged. */
  shared_process: boolean
  /** What was in the way, or null. */
  error: Failure | null
  /** What the source policy found. */
  findings: Finding[]
  /** The language. */
  language?: string
  /** What the submission wrote as it was loaded. */
  stdout: string
  /** The exact bytes, in base64, of stdout */
  stdout_base64?: string
  /** The same of standard error. */
  stderr: string
  /** The exact bytes, in base64, of stderr */
  stderr_base64?: string
  /** Largest use of memory of a sandbox of it. */
  memory_peak_bytes?: number
  /** What a model says of the submission, if one was to be asked. */
  review?: Review
  /** Sandboxes that it took. */
  runs: number
  /** It was graded again, because the machine was busy and it had to wait for the CPU. */
  retried: boolean
  /** CPU time of all sandboxes of it. */
  cpu_ms: number
  /** From request to result. */
  wall_ms: number
  /** Layers of packages that the programs had. */
  layers?: LayerUse[]
  /** What the caller should know of the packages, and of the text around the submission. */
  warnings?: Warning[]
  /** What was enforced; null if nothing ran. */
  boundary: Boundary | null
  /** The field names of older systems, when the request asked for them. */
  aliases?: Record<string, unknown>
}

/** A profile. */
export interface ProfileInfo {
  /** The name that requests give. */
  name: string
  /** What it is for. */
  description: string
  /** The members of a run_request that it sets. */
  sets: unknown
  /** What lasts from one run to the next in a session, if the profile says so. */
  session?: 'none' | 'files' | 'interpreter'
  /** The engine uses it itself, and a request cannot name it. */
  internal?: boolean
}

/** Profiles. */
export interface ProfileList {
  /** The built-in ones and those of the administrator. */
  profiles: ProfileInfo[]
}

/** A source policy. */
export interface PolicyInfo {
  /** The name that requests give. */
  name: string
  /** What it is for. */
  description: string
  /** The file that has it. */
  file: string
  /** The policies that it extends, the nearest first. */
  extends: string[]
}

/** Source policies. */
export interface PolicyList {
  /** The built-in ones and those of the administrator. */
  policies: PolicyInfo[]
}

/** A source policy with its rules.  docs/use/policies.md has what a rule is. */
export interface PolicyDetail {
  /** The name that requests give. */
  name: string
  /** What it is for. */
  description: string
  /** The file that has it. */
  file: string
  /** The policies that it extends, the nearest first. */
  extends: string[]
  /** The severity from which on a finding refuses the program. */
  block_at: string
  /** The sum of scores from which on the program is refused. */
  block_score: number
  /** Modules that may be imported beside those of the rules. */
  allow: string[]
  /** The rules, those of the policies that it extends included. */
  rules: unknown
}

/** A language. */
export interface LanguageInfo {
  /** The name that requests give. */
  name: string
  /** Its name for people. */
  title: string
  /** Other names that are understood. */
  aliases: string[]
}

/** Languages. */
export interface LanguageList {
  /** Those that run here. */
  languages: LanguageInfo[]
}

/** A set of problems.  Problems that are stored once, and are named by requests to grade. */
export interface ProblemSetInfo {
  /** Name of the set; a problem of the set is NAME/ID. */
  name: string
  /** Format of its problems. */
  format:
    | 'caisson' | 'lcb' | 'apps' | 'taco' | 'codecontests' | 'primeintellect' | 'verl' | 'scalebox' | 'humanevalplus'
    | 'mbppplus' | 'kodcode' | 'codeforces' | 'leetcode' | 'skyrl'
  /** Number of its problems. */
  problems: number
  /** Bytes of the set in the store, with its index. */
  size_bytes: number
  /** Time of its upload, as RFC 3339 has it. */
  created_at: string
}

/** Sets of problems. */
export interface ProblemSetList {
  /** Those of the caller, by name. */
  problem_sets: ProblemSetInfo[]
}

/** A key. */
export interface MeKey {
  /** Its id, which is no secret. */
  id: string
  /** Its name. */
  name: string
}

/** What a caller may do.  The operations that are refused for lack of a scope, or because this daemon keeps nothing,
 *  are false. */
export interface MeRights {
  /** Run programs. */
  run: boolean
  /** Grade submissions. */
  grade: boolean
  /** Compare programs with a source policy. */
  check: boolean
  /** Make persistent sandboxes. */
  sandboxes: boolean
  /** Start contexts in them. */
  contexts: boolean
  /** Make and list layers of packages. */
  layers: boolean
  /** List images. */
  images: boolean
  /** Make and list volumes. */
  volumes: boolean
  /** Keep files and workspaces. */
  files: boolean
  /** Let programs call tools beyond those of their profile. */
  tools: boolean
  /** Read events. */
  events: boolean
  /** Read figures of the whole daemon. */
  metrics: boolean
  /** List runs that are over. */
  audit: boolean
  /** Read what reviews by models used and cost. */
  usage: boolean
  /** List keys. */
  keys: boolean
  /** Read the log of the daemon. */
  logs: boolean
}

/** Quotas of a key.  0: no limit but those of the engine. */
export interface MeQuotas {
  /** Programs that run at the same time. */
  running_max: number
  /** Programs that wait. */
  queued_max: number
  /** CPU time within 24 hours. */
  cpu_ms_per_day: number
  /** Bytes of kept files, workspaces and records. */
  stored_bytes: number
  /** Cost of reviews by models in US dollars; null: no limit. */
  review_budget_usd: string | null
}

/** What is used of quotas. */
export interface MeUsed {
  /** CPU time of the tenant within the last 24 hours. */
  cpu_ms: number
  /** Bytes that are kept of the tenant. */
  stored_bytes: number
}

/** The caller. */
export interface MeInfo {
  /** The key of the request; null: none was needed. */
  key: MeKey | null
  /** The tenant, whose keys share all objects. */
  tenant: string
  /** It has the rights of an administrator. */
  admin: boolean
  /** The scopes of the key; null: there is no key. */
  scopes: string[] | null
  /** What it may do. */
  may: MeRights
  /** The quotas of the key; null: there is no key. */
  quotas: MeQuotas | null
  /** What is used of them; null: this daemon keeps nothing. */
  used: MeUsed | null
  /** The version of the daemon. */
  version: string
  /** Why this daemon shows no page at /ui/; null: it shows one. */
  page: string | null
}

/** A key.  Its text is no part of it: nobody has it but its owner. */
export interface KeyInfo {
  /** Its id. */
  id: string
  /** Its name. */
  name: string
  /** The tenant, whose keys share all objects. */
  tenant: string
  /** What it may do. */
  scopes: string[]
  /** When it was made, as RFC 3339 has it. */
  created_at: string
  /** When it ends; null: never. */
  expires_at: string | null
  /** When it was revoked; null: it was not. */
  revoked_at: string | null
  /** Its last use, to the minute; null: none. */
  used_at: string | null
  /** Its quotas. */
  quotas: MeQuotas
}

/** Keys. */
export interface KeyList {
  /** The newest first. */
  keys: KeyInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** Figures of the last hour. */
export interface MetricsSeries {
  /** Time between two values. */
  step_s: number
  /** The time of the oldest value, as RFC 3339 has it. */
  from: string
  /** By name a list of pairs, oldest first: seconds since 1970 (UTC), and a value or null. */
  series: unknown
}

/** A preview.  HTML that a program made, for a frame of a page. */
export interface PreviewRequest {
  /** The document, at most 4 MiB. */
  html: string
}

/** The link of a preview. */
export interface PreviewInfo {
  /** The path of the document, with a signature. It needs no key. */
  url: string
  /** When the link and the document end, as RFC 3339 has it. */
  expires_at: string
}

/** Health. */
export interface Health {
  /** `ok`, or `ready`. */
  status: string
  /** The version of the daemon. */
  version?: string
  /** Of `/readyz`: what the pod or container lets sandboxes have, `A` to `F`; `host` outside of containers. */
  tier?: string
  /** Of `/readyz`: features that this host does not give to sandboxes. */
  missing?: string[]
}

/** A request that goes on.  What is known of the request of an Idempotency-Key before its answer. */
export interface NamedState {
  /** The stage of its run; `running` before there is one. */
  state: string
  /** The id of its run. */
  id?: string
}

/** A problem.  Why a request was not carried out (RFC 9457). */
export interface Problem {
  /** The path of the page that explains the code. */
  type: string
  /** The meaning of the status. */
  title: string
  /** The status of the answer. */
  status: number
  /** What is wrong with this request, and what to do. */
  detail: string
  /** The path of the request. */
  instance: string
  /** The kind of the problem, for programs. */
  code: string
  /** The same as detail. */
  message: string
  /** Whether the same request may succeed later. */
  retryable: boolean
  /** The id of the request, also in the log. */
  request_id: string
  /** A JSON pointer into the body, or the name of a parameter or of a header. */
  field?: string
  /** Of 429: the limit that was met. */
  quota?: string
  /** Of 429: its number. */
  limit?: number
  /** Of 429: what is used of it. */
  current?: number
  /** Of 429: what is left of it. */
  remaining?: number
  /** Of 429: seconds until the request may be tried again. */
  retry_after_s?: number
  /** Of 429: runs that go on. */
  running?: number
  /** Of 429: runs that wait. */
  queued?: number
}

/** An event of /v1/events. */
export interface DaemonEvent {
  /** What has happened. */
  type:
    | 'run.started' | 'run.finished' | 'sandbox.created' | 'sandbox.paused' | 'sandbox.resumed' | 'sandbox.ended' |
    'context.created' | 'context.ended' | 'pool.changed' | 'lost' | 'lagged'
  /** When, as RFC 3339 has it. */
  time?: string
  /** The id of the run, sandbox or context, or the key of the pool. */
  id?: string
  /** Whose it is. */
  tenant?: string
  /** The id of the key that asked for it. */
  key_id?: string
  /** The language of a run or context. */
  language?: string
  /** The profile of a run or sandbox. */
  profile?: string
  /** The sandbox of a context. */
  sandbox?: string
  /** The context of a run. */
  context?: string
  /** The status of a run that is over. */
  status?:
    | 'completed' | 'failed' | 'blocked' | 'syntax_error' | 'timeout' | 'memory_exceeded' | 'disk_exceeded' |
    'process_limit' | 'output_limit' | 'crashed' | 'cancelled' | 'dependency_failed' | 'unsupported_language' |
    'isolation_unavailable' | 'capacity' | 'bad_request' | 'engine_error'
  /** The exit status of its program. */
  exit_code?: number
  /** The time of a run from request to record. */
  total_ms?: number
  /** CPU time of its program. */
  cpu_ms?: number
  /** The most memory of its program. */
  memory_peak_bytes?: number
  /** Interpreters and sandboxes of a pool that wait. */
  ready?: number
  /** Those that are being made. */
  making?: number
  /** How many the pool wants to have. */
  target?: number
  /** Memory of those that wait. */
  memory_bytes?: number
  /** What to do after `lost` and `lagged`. */
  message?: string
}
