/* Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit. */

/** A module.  A file that programs can import and cannot change: of Python, JavaScript or data. */
export interface ModuleFile {
  /** Its name with the folders of a package, such as helpers.py or util/__init__.py. */
  name: string
  /** The content, as text; content_base64 for any bytes. */
  content: string
  /** The exact bytes, in base64, of content */
  content_base64?: string
}

/** An input file.  A file that is in the home directory before the program starts. */
export interface InputFile {
  /** Name below the home directory, folders included, used exactly as it is. Default: the last part of path, or the
   *  name of the file that is kept. */
  name?: string
  /** The content, as text; content_base64 for any bytes. */
  content?: string
  /** The exact bytes, in base64, of content */
  content_base64?: string
  /** A file of this host. Only the command line and the library may use it. */
  path?: string
  /** A file that is kept, by its id (POST /v1/files). Only the HTTP interface has some. */
  id?: string
}

/** An export.  Files of the home directory that are copied to this host after the run, or kept for its caller. */
export interface ExportRule {
  /** A glob(7) pattern; without a slash it is compared with the last part of a name. */
  pattern: string
  /** A folder of this host, made if it does not exist. Only the command line and the library may use it; over HTTP it
   *  is left out, and the file is kept under an id. */
  path?: string
}

/** Limits of a run.  What a run may use. Each has a default, a ceiling set by the administrator, and a status of its
 *  own. */
export interface Limits {
  /** Wall-clock time from the program's first instruction; then the whole tree is killed. */
  wall_ms?: number
  /** CPU time of all processes together; 0 leaves it to the wall clock. */
  cpu_ms?: number
  /** Share of the machine in thousandths of a core. */
  cpu_milli?: number
  /** Memory of the whole process tree, tmpfs included, without swap. */
  memory_bytes?: number
  /** Processes and threads. */
  pids?: number
  /** Bytes of the home directory; it lives in memory and counts there too. */
  disk_bytes?: number
  /** Files and folders in the home directory. */
  disk_files?: number
  /** Bytes of /tmp and of /dev/shm, each. */
  tmp_bytes?: number
  /** Open descriptors of each process. */
  open_files?: number
  /** Bytes kept of each output stream, head and tail; everything is counted. */
  output_bytes?: number
  /** What happens to a run that prints more than output_bytes. */
  output_action?: 'continue' | 'kill'
  /** How long processes that the program left behind may go on after it ended. */
  background_ms?: number
  /** Bytes of JSON of the program's value. */
  value_bytes?: number
  /** New and changed files that are listed in the record. */
  output_files?: number
  /** Bytes of the program's text. */
  code_bytes?: number
  /** Bytes of all input files together. */
  input_bytes?: number
}

/** Tools.  What code may call outside: tools.NAME(...) in Python and JavaScript, tool NAME in Bash. */
export interface ToolsRequest {
  /** Code finds `tools`, even where none is allowed. */
  enabled?: boolean
  /** Tools that may be called: weather, server.weather, server.*, get_*. */
  allow?: string[]
  /** Tools that may not, whatever allow says. */
  deny?: string[]
  /** Tools of which each call waits for a yes, beside those that are marked so. */
  ask?: string[]
  /** Tools of the client's own. They need a run whose events are read, and are allowed. */
  client?: ClientTool[]
  /** Calls in all. */
  calls?: number
  /** Bytes of the arguments of a call, and of its result. */
  payload_bytes?: number
  /** Time of one call. */
  call_ms?: number
  /** Time that a call waits for a yes. */
  ask_ms?: number
  /** Calls at once; others wait. */
  concurrent?: number
  /** Code gets values, and not their JSON text. */
  decode?: boolean
  /** What goes wrong is an exception, and not a value with an error. */
  raise?: boolean
  /** The record has every call with its arguments and its result. */
  record?: boolean
  /** Calls of an earlier run, which are answered as then; nothing is called outside. */
  replay?: ToolRecord[]
}

/** A tool of the client's own.  Its calls come as events of the run, and wait for POST /v1/runs/{id}/tool-results. */
export interface ClientTool {
  /** What code calls it: letters, digits, _ - . and /, and no _ first. */
  name: string
  /** What it does, for whoever writes the code. */
  description?: string
  /** A JSON Schema of its arguments, which are an object. Default: any. */
  input_schema?: unknown
  /** Each call waits for a yes before it is made. */
  ask?: boolean
}

/** A call of a tool.  What was asked, and what came. */
export interface ToolRecord {
  /** The server of the tool; client, where whoever started the run serves it. */
  server: string
  /** The tool's name there. */
  tool: string
  /** Its arguments, an object. */
  arguments: unknown
  /** What came of it, where it was called. */
  result?: unknown
  /** What was wrong, where it failed or was refused. */
  error?: string
  /** How long it took. */
  duration_ms?: number
}

/** A request to run code.  One execution of a program in a fresh sandbox. */
export interface RunRequest {
  /** python, javascript, typescript or bash, or an alias of one. */
  language?: string
  /** The program's text. */
  code?: string
  /** The exact bytes, in base64, of code */
  code_base64?: string
  /** The program's file name in the home directory. Default: main with the language's extension. */
  name?: string
  /** The program's arguments. */
  args?: string[]
  /** Which part of `code` is the program, where a model wrote text around it. */
  extract?: 'none' | 'last_fence' | 'tagged_fence' | 'verl'
  /** Code that runs before the program, in the same namespace: tools as functions. The prelude is a file of its own
   *  and is checked separately; line numbers are those of the program's own text. */
  prelude?: string
  /** The exact bytes, in base64, of prelude */
  prelude_base64?: string
  /** Modules that the program can import, read-only and outside of the home directory. */
  modules?: ModuleFile[]
  /** A value for the program, which finds the JSON in .input.json of the home directory. */
  input?: unknown
  /** What the program reads from standard input. Default: nothing. */
  stdin?: string
  /** The exact bytes, in base64, of stdin */
  stdin_base64?: string
  /** Environment variables, added to the few that every run has. */
  env?: Record<string, string>
  /** Input files. */
  files?: InputFile[]
  /** Files to copy to this host or to keep after the run, also after one that failed. */
  exports?: ExportRule[]
  /** A named set of the values below. */
  profile?: string
  /** Limits of the run. */
  limits?: Limits
  /** What the program finds. system, data, small: the host's programs and libraries, with the modules of Python
   *  loaded ahead that the name stands for. Another name: an image of caisson image list. Default: system, or the
   *  setting images.LANGUAGE. */
  image?: string
  /** What the program can reach. */
  network?: 'none' | 'allow' | 'public'
  /** Hosts that the program may reach with network "allow": example.org, *.example.org, example.org:8443. Ports are
   *  80 and 443 where none is given. */
  allow?: string[]
  /** The source policy that the program has to pass before it is run. See caisson policy list. */
  policy?: string
  /** Modules that may be imported whatever the policy says of them, beside those of the profile. */
  allow_imports?: string[]
  /** Modules that may not be imported, in place of the policy's own list; patterns such as * are possible. An empty
   *  list forbids none. */
  forbidden_modules?: string[]
  /** Whether a model reviews the program before it runs. The setting review.mode is the least. */
  review?: 'off' | 'advisory' | 'required'
  /** What the policy finds is recorded, and the program is run all the same. */
  advise?: boolean
  /** Tools outside that the program may call. */
  tools?: ToolsRequest
  /** Modules that are bound in the program before it starts. */
  preload?: string[]
  /** Packages that the program needs, such as requests==2.31.*, left-pad@1 for JavaScript or node:left-pad@1 for any
   *  language; they are installed in layers where the settings name an index. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The same as the text of a requirements file: a package in each line, and with --hash options a lock. */
  requirements?: string
  /** Packages of Node as the text of a package-lock.json, of lockfileVersion 2 or 3. */
  lock?: string
  /** Ids of layers that exist, as caisson layers list shows them. */
  layers?: string[]
  /** Read the packages from a block of inline metadata (PEP 723) in the program. */
  packages_from_code?: boolean
  /** Show only the sandbox's own processes in /proc, and nothing of the machine. */
  strict_proc?: boolean
  /** The second wall around files, sockets and signals. */
  landlock?: 'prefer' | 'require' | 'off'
  /** Limits by the kernel's controllers; without them rlimits and a poll stand in. */
  cgroup?: 'prefer' | 'require'
  /** Which packages are installed for the program. */
  deps?: 'image' | 'locked' | 'auto'
  /** native; host: no sandbox, for development, when the configuration allows it; or, in the daemon, docker: a
   *  container of the engine that the configuration names, or e2b: a sandbox of the server that it names. */
  backend?: string
  /** What happens when a process of the engine that runs the program is lost, or the worker of a gateway. Not in a
   *  context, where variables are lost with it. */
  retry?: 'never' | 'safe'
  /** Volumes of the caller that the program has below /mnt, each under its name: NAME, or NAME:ro for one that is
   *  only read. */
  volumes?: string[]
  /** A folder of this host whose files are the inputs and which gets the outputs. Only the command line and the
   *  library may use it. */
  work_dir?: string
  /** A named folder of this user (of the field user) that lasts: its files are the inputs, and what the run makes,
   *  changes or removes is made, changed or removed there. Only the HTTP interface has some. */
  workspace?: string
  /** The context to run in, instead of a fresh sandbox: its interpreter, its variables. The walls and limits are
   *  those of its sandbox; limits of time, CPU time, output and value may be given, as far as the sandbox was not
   *  made with less. */
  context?: string
  /** In a context: figures as SVG beside PNG. */
  svg?: boolean
  /** In a context of Python: pictures that PIL saves into a file are shown as well. */
  show_saved?: boolean
  /** In a context: an error that ends it is in the record, and not on standard error besides. */
  quiet_errors?: boolean
  /** In a context: the working folder from this execution on. */
  cwd?: string
  /** The caller's own name for this run, kept in the record as it is. */
  task_id?: string
  /** The user for whom this runs, kept in the record. */
  user?: string
  /** Labels of the caller's, kept in the record. */
  labels?: Record<string, string>
  /** The form of the record as text, where an answer is text. */
  format?: 'plain' | 'brief' | 'kodeagent' | 'agentos' | 'linx' | 'codemie' | 'mcp-light'
  /** Add the field names of older systems to the record. */
  aliases?: boolean
}

/** What was cut.  Bytes that were left out of the middle of a stream. */
export interface Truncated {
  /** Bytes missing from stdout; 0: it is complete. */
  stdout_bytes: number
  /** Bytes missing from stderr; 0: it is complete. */
  stderr_bytes: number
  /** Bytes that the program wrote to stdout. */
  stdout_total_bytes: number
  /** Bytes that the program wrote to stderr. */
  stderr_total_bytes: number
}

/** The program's value.  __return_value__, or the value of the last expression. */
export interface Value {
  /** Its type, as the language names it. */
  type: string
  /** The value, where it can be written as JSON. */
  value?: unknown
  /** Its text form, where it cannot. */
  repr?: string
  /** It was longer than value_bytes; repr has its beginning. */
  truncated?: boolean
  /** In a context: the value as MIME types, as a display has them. */
  data?: Record<string, string>
}

/** A display.  What a program showed, in one or more MIME types. */
export interface Display {
  /** MIME type to text, or to base64 for types that are not text. */
  data: Record<string, string>
}

/** An error.  What went wrong: in the program, or before it could start. */
export interface Failure {
  /** The engine's code, when the run was refused or the engine failed. */
  code?: string
  /** Of a run that was refused or lost: whether the same request may succeed later, and can be sent again because
   *  nothing of the program ran. */
  retryable?: boolean
  /** JSON pointer or name of the field of the request that is wrong. */
  field?: string
  /** Type of the program's exception. */
  type?: string
  /** What happened, in one sentence. */
  message: string
  /** Type and message of the program's exception, in one line. */
  summary?: string
  /** Line in the program's own text, from 1. */
  line?: number
  /** Column in that line, from 1. */
  column?: number
  /** That line. */
  text?: string
  /** The traceback's lines. */
  traceback?: string[]
  /** The last lines of standard error. */
  tail?: string[]
  /** Of status timeout: the limit that ended it: wall_ms, cpu_ms, or cpu_ms_per_day, the key's quota of CPU time. */
  limit?: string
  /** What to do about it. */
  hint?: string
}

/** A finding.  One hit of a source policy. */
export interface Finding {
  /** The rule's id. */
  rule: string
  /** prelude, if it is in the prelude; else it is in the program. */
  file?: string
  /** How serious it is. */
  severity: 'LOW' | 'MEDIUM' | 'HIGH' | 'CRITICAL'
  /** Its points. */
  score: number
  /** Line, from 1. */
  line: number
  /** Column in characters, from 1. */
  column: number
  /** Line of its end. */
  end_line?: number
  /** Column behind its last character. */
  end_column?: number
  /** What was found. */
  message: string
  /** The line of the program. */
  text?: string
  /** What to do instead. */
  advice?: string
}

/** An output file.  A regular file that the program made or changed. */
export interface OutputFile {
  /** Name below the home directory; bytes that are no UTF-8 are shown as U+FFFD. */
  name: string
  /** The exact bytes of the name, where they are no UTF-8. */
  name_base64?: string
  /** Its size. */
  size_bytes: number
  /** SHA-256 of its content, in hex. */
  sha256?: string
  /** MIME type, by name and first bytes. */
  mime: string
  /** true: an input file with new content; false: a new file. */
  changed: boolean
  /** Where it was exported to. */
  path?: string
  /** sandbox:/v1/files/ID, where it was kept; GET /v1/files/ID has it. */
  url?: string
  /** Why it could not be taken; the other files are not affected. */
  error?: string
}

/** A review by a model.  A reviewer can refuse a program, and can allow nothing that a policy or the sandbox refuses.
 *  */
export interface Review {
  /** The mode that was in force. */
  mode: 'off' | 'advisory' | 'required'
  /** What the reviewer says. */
  verdict: 'secure' | 'insecure' | 'unavailable' | 'skipped'
  /** The reviewer's sentence. */
  reason?: string
  /** The reviewer's estimate. */
  risk?: 'none' | 'low' | 'medium' | 'high'
  /** The reviewer's findings. */
  findings?: ReviewFinding[]
  /** Further members of the reviewer's answer. */
  extra?: unknown
  /** The model, or command or url for a reviewer of the administrator's own. */
  model?: string
  /** Requests that were sent; 0 for an answer of the cache. */
  attempts: number
  /** Time from the question to the verdict. */
  latency_ms: number
  /** The verdict is that of an earlier review of the same program. */
  cached: boolean
  /** What the review used, if something was sent. */
  usage?: ReviewUsage
  /** Why there is no verdict. */
  error?: string
}

/** A finding of a reviewer. */
export interface ReviewFinding {
  /** Line of the program, from 1, as the reviewer gave it. */
  line?: number
  /** The reviewer's name for it. */
  rule?: string
  /** The reviewer's reason. */
  why?: string
}

/** What a review used.  As the server of the model reported it; nothing is estimated. */
export interface ReviewUsage {
  /** Requests that were sent. */
  calls: number
  /** Those of them that the server answered without usage. */
  usage_missing: number
  /** Tokens of the prompts. */
  prompt_tokens: number
  /** Tokens of the answers. */
  completion_tokens: number
  /** Both together. */
  total_tokens: number
  /** Those of the prompt that the server had cached. */
  cached_tokens: number
  /** Those of the answer that were thought and not said. */
  reasoning_tokens: number
  /** Cost by the prices of the settings, in thousand-millionths of a US dollar; 0 without prices. */
  cost_nanousd: number
}

/** A stage of a run. */
export interface Stage {
  /** syntax, policy, review, packages, queue, prepare, run or collect. */
  name: string
  /** What came of it. */
  verdict: 'passed' | 'refused' | 'failed' | 'skipped'
  /** How long it took, in milliseconds. */
  ms: number
  /** Findings of this stage, where it can have some. */
  findings?: number
}

/** What the run used.  From the kernel's counters, for the whole process tree. */
export interface Usage {
  /** Wall-clock time from the program's first instruction to its end. */
  wall_ms: number
  /** CPU time of all processes together. */
  cpu_ms: number
  /** Time in which the CPU share made it wait. */
  throttled_ms?: number
  /** Of a run that was ended by its wall-clock limit or by a caller: the longest time for which one of its processes
   *  was ready to run and other programs had the CPU. */
  waited_ms?: number
  /** Largest use of memory. */
  memory_peak_bytes?: number
  /** Most processes and threads at once, where the kernel counts them. */
  processes_peak?: number
  /** What the home directory held at the end. */
  disk_bytes?: number
  /** Files and folders in the home directory at the end, the program's own file among them. */
  disk_files?: number
  /** Of a run with a network: requests for a connection, the refused ones among them. */
  network_connections?: number
  /** Of a run with a network: requests that the proxy did not forward. */
  network_refused?: number
  /** Of a run with a network: bytes that the program received. */
  network_in_bytes?: number
  /** Of a run with a network: bytes that the program sent. */
  network_out_bytes?: number
}

/** Where the time went.  Stages of a run, in milliseconds. */
export interface Timings {
  /** Waiting for room. */
  queue_ms: number
  /** Making the sandbox, input files included. */
  prepare_ms: number
  /** The program. */
  run_ms: number
  /** Ending everything and reading the files. */
  collect_ms: number
  /** From request to record. */
  total_ms: number
}

/** The boundary that was in force.  Facts, noted by each layer after it was applied. */
export interface Boundary {
  /** native, host, docker or e2b. */
  backend: string
  /** full, degraded or none. */
  isolation: 'full' | 'degraded' | 'none' | 'remote' | 'container'
  /** Namespaces of its own. */
  namespaces: string[]
  /** The system call filter is loaded. */
  seccomp: boolean
  /** Landlock's ABI; 0: not in force. */
  landlock_abi: number
  /** PR_SET_NO_NEW_PRIVS is set. */
  no_new_privileges: boolean
  /** Capabilities left in any of the five sets; null: not limited. In a sandbox with root those of its root, over
   *  that sandbox alone; its user has none. */
  capabilities: number | null
  /** v1, v2 or none. */
  cgroup: string
  /** Controllers that limit this run. */
  controllers: string[]
  /** none: a network namespace with loopback only; proxy: the same, and a filtering proxy; host: the host's own. */
  network: string
  /** The uid that the host sees, or the first of them. */
  host_uid: number
  /** How many uids it has, from host_uid on: 1, or a block where it has root. */
  host_uids: number
  /** No other live sandbox has that uid, or any of them. */
  own_uid: boolean
  /** Made without privileges. */
  rootless: boolean
  /** Its root file system is its own and can be written by its root; nothing of the host's is. */
  overlay: boolean
  /** /proc shows the sandbox's processes and nothing of the machine. */
  strict_proc: boolean
  /** What is weaker than it could be, and the remedy. */
  degraded: string[]
  /** Of a worker of a gateway: what its pod gives to sandboxes, A to F; host outside of pods. */
  tier?: string
  /** Of a worker of a gateway: features that its host does not give. */
  missing?: string[]
}

/** Calls of tools. */
export interface ToolsUsed {
  /** Calls that were made. */
  calls: number
  /** Those of them that failed. */
  failed: number
  /** Others, that were not made: unknown, not allowed, too many, too large, wrong arguments. */
  refused: number
  /** Each of them, in the order of their ends, where the request said record. */
  list?: ToolRecord[]
  /** There were more than could be kept. */
  list_truncated?: boolean
}

/** A warning.  Something that the caller should know and that changed nothing. */
export interface Warning {
  /** A stable name. */
  code: string
  /** One sentence. */
  text: string
}

/** An input file as it was taken. */
export interface TakenFile {
  /** Name below the home directory. */
  name: string
  /** Its size. */
  size_bytes: number
  /** SHA-256 of its content, in hex. */
  sha256: string
  /** How long it took to open and to hash it, in milliseconds. */
  ms?: number
}

/** An image of a run.  An imported root file system in which the program ran. */
export interface ImageUse {
  /** Its name. */
  name: string
  /** The id of what had the name when the run began. */
  id: string
  /** sha256: and the hash of the image's configuration, or of the archive that it was imported from. */
  digest: string
}

/** A layer of a run.  An immutable folder of packages that the program could import. */
export interface LayerUse {
  /** Its id. */
  id: string
  /** python or javascript. */
  language: string
  /** The layer existed before the run asked. */
  cached: boolean
  /** How long the run waited for the layer. */
  wait_ms: number
  /** Its packages and their versions, such as six==1.16.0. */
  packages: string[] | string | { python?: string[]; node?: string[] }
  /** With deps auto: imports for which no package is known. */
  unmapped?: string[]
}

/** The record of a run.  One for every front and backend; everything that is known about a run. */
export interface RunResult {
  /** Version of this record. */
  schema: string
  /** The run's id. */
  id: string
  /** How it ended. */
  status:
    | 'completed' | 'failed' | 'blocked' | 'syntax_error' | 'timeout' | 'memory_exceeded' | 'disk_exceeded' |
    'process_limit' | 'output_limit' | 'crashed' | 'cancelled' | 'dependency_failed' | 'unsupported_language' |
    'isolation_unavailable' | 'capacity' | 'bad_request' | 'engine_error'
  /** The program's exit status; null if it was ended by a signal or never ran. */
  exit_code: number | null
  /** The signal that ended it, or null. */
  signal: number | null
  /** What it wrote to standard output. */
  stdout: string
  /** The exact bytes, in base64, of stdout */
  stdout_base64?: string
  /** What it wrote to standard error. */
  stderr: string
  /** The exact bytes, in base64, of stderr */
  stderr_base64?: string
  /** What is missing from the streams. */
  truncated: Truncated
  /** The program's value, or null. */
  result: Value | null
  /** What the program showed. */
  displays: Display[]
  /** What went wrong, or null. */
  error: Failure | null
  /** What source policies found. */
  findings: Finding[]
  /** New and changed regular files, sorted by name. */
  files: OutputFile[]
  /** There were more files than are listed. */
  files_truncated: boolean
  /** What a model says of the program, if one was to be asked. */
  review?: Review
  /** Stages of the run in their order, up to the one that ended it. */
  stages?: Stage[]
  /** The form of this record as text, of the request or its profile. */
  format?: 'plain' | 'brief' | 'kodeagent' | 'agentos' | 'linx' | 'codemie' | 'mcp-light'
  /** Sentences for a model that will try again. */
  feedback: string[]
  /** What the run used. */
  usage: Usage
  /** Where the time went. */
  timings: Timings
  /** What was enforced; null if nothing ran. */
  boundary: Boundary | null
  /** The limits that were in force. */
  limits: Limits
  /** Calls of tools, where it had some. */
  tools?: ToolsUsed
  /** What the caller should know. */
  warnings: Warning[]
  /** The language. */
  language?: string
  /** The profile. */
  profile?: string
  /** Input files as they were taken. */
  inputs: TakenFile[]
  /** Packages that the request named. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The imported image that the program had. */
  image?: ImageUse
  /** Layers of packages that the program had. */
  layers?: LayerUse[]
  /** Volumes that the program had below /mnt. */
  volumes?: string[]
  /** Devices of the host that the program had, because engine.devices grants them to its profile. */
  devices?: string[]
  /** The folder of this host that got the output files. */
  work_dir?: string
  /** The workspace that it worked in. */
  workspace?: string
  /** The caller's name for this run. */
  task_id?: string
  /** The user for whom it ran. */
  user?: string
  /** The caller's labels. */
  labels?: Record<string, string>
  /** RFC 3339, UTC. */
  started_at?: string
  /** RFC 3339, UTC. */
  finished_at?: string
  /** The field names of older systems, when the request asked for them. */
  aliases?: Record<string, unknown>
}

/** A run that is kept.  What is known of a run whose record is asked for later. */
export interface KeptRun {
  /** Its id. */
  id: string
  /** The stage of a run that goes on; `over` of one that has a record. */
  state: string
  /** The path of its record. */
  url: string
  /** Time since it was asked for. */
  age_ms: number
  /** The status of a run that is over. */
  status?:
    | 'completed' | 'failed' | 'blocked' | 'syntax_error' | 'timeout' | 'memory_exceeded' | 'disk_exceeded' |
    'process_limit' | 'output_limit' | 'crashed' | 'cancelled' | 'dependency_failed' | 'unsupported_language' |
    'isolation_unavailable' | 'capacity' | 'bad_request' | 'engine_error'
  /** Its language. */
  language?: string
  /** Its profile. */
  profile?: string
  /** The id of the key that asked for it. */
  key_id?: string
  /** Whose it is. */
  tenant?: string
  /** When it was asked for, as RFC 3339 has it. */
  created_at?: string
  /** The exit status of its program. */
  exit_code?: number
  /** The time from request to record, of a run that is over. */
  total_ms?: number
  /** CPU time of its program, of a run of the audit. */
  cpu_ms?: number
  /** The most memory of its program, of a run of the audit. */
  memory_peak_bytes?: number
}

/** Runs that are kept. */
export interface KeptRuns {
  /** Those of the tenant, newest first. */
  runs: KeptRun[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** An answer to a call.  To an event tool_call: result or error.  To an event approval: approve. */
export interface ToolAnswer {
  /** The id of the call, from its event. */
  call: string
  /** What the tool gives back. */
  result?: unknown
  /** What went wrong; or, with approve false, why not. */
  error?: string
  /** Whether the call may be made. */
  approve?: boolean
}

/** Answers to calls. */
export interface ToolAnswers {
  /** One for each call. */
  results: ToolAnswer[]
}

/** An answer that was not taken. */
export interface ToolRefusal {
  /** The id of the call. */
  call: string
  /** A JSON pointer to the answer in the request. */
  field: string
  /** Why the answer was not taken. */
  message: string
}

/** What became of answers to calls. */
export interface ToolsTaken {
  /** How many answers were taken. */
  taken: number
  /** Those that were not. */
  errors: ToolRefusal[]
}
