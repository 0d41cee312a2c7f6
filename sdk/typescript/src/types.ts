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

/** A request for a persistent sandbox.  A sandbox that stays until it is ended, its time is over, or nobody uses it.
 *  */
export interface SandboxRequest {
  /** A named set of the values below. */
  profile?: string
  /** Limits of the whole sandbox. Times, CPU time, output and value are those of each execution in a context: what
   *  one has that does not say, and where they are given here the most that it may ask for. */
  limits?: Limits
  /** What programs in it find, as in a run. Default: system, or the setting images.python. */
  image?: string
  /** What programs in it can reach. */
  network?: 'none' | 'allow' | 'public'
  /** Hosts that they may reach with network "allow", as in a run. */
  allow?: string[]
  /** Tools outside that programs in it may call, as in a run. Each number is for the whole sandbox. */
  tools?: ToolsRequest
  /** Environment variables of everything that is started in it. */
  env?: Record<string, string>
  /** Packages that programs in it need, such as requests==2.31.* or node:left-pad@1; a name alone is of Python. They
   *  are installed in layers where the settings name an index. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The same as the text of a requirements file: a package in each line, and with --hash options a lock. */
  requirements?: string
  /** Packages of Node as the text of a package-lock.json, of lockfileVersion 2 or 3. */
  lock?: string
  /** Ids of layers that exist, as caisson layers list shows them. */
  layers?: string[]
  /** Volumes of the caller that programs in it have below /mnt, as in a run. */
  volumes?: string[]
  /** Show only the sandbox's own processes in /proc, and nothing of the machine. */
  strict_proc?: boolean
  /** The second wall around files, sockets and signals. */
  landlock?: 'prefer' | 'require' | 'off'
  /** Limits by the kernel's controllers; without them rlimits and a poll stand in. */
  cgroup?: 'prefer' | 'require'
  /** How long it lives. */
  ttl_ms?: number
  /** How long it lives when idle. It is idle without a request and without a running program; 0: as long as ttl_ms.
   *  */
  idle_ms?: number
  /** Programs may be started as root inside, and that root may write the whole root file system, which is the
   *  sandbox's own and counts in disk_bytes and disk_files. Refused where the host cannot give it. */
  root?: boolean
  /** With root: programs of user may become root by sudo, without a password. */
  sudo?: boolean
  /** The user for whom it is, kept in its description. */
  user?: string
  /** Labels of the caller's, kept in its description. */
  labels?: Record<string, string>
}

/** A persistent sandbox. */
export interface SandboxInfo {
  /** Its id. */
  id: string
  /** What it does. */
  state: 'starting' | 'running' | 'paused' | 'over'
  /** When it was asked for, as RFC 3339 has it. */
  created_at: string
  /** When it will end, if its time is not changed. */
  expires_at: string
  /** How long it lives while nobody uses it; 0: as long as its time. */
  idle_ms: number
  /** Its profile. */
  profile: string
  /** How many contexts are in it. */
  contexts: number
  /** Limits of the whole sandbox, and of each execution in its contexts. */
  limits: Limits
  /** The imported image that its programs find. */
  image?: ImageUse
  /** Volumes that its programs have below /mnt. */
  volumes?: string[]
  /** Devices of the host that its programs have, because engine.devices grants them to its profile. */
  devices?: string[]
  /** Layers of packages that its programs have. */
  layers?: LayerUse[]
  /** What the caller should know. */
  warnings?: Warning[]
  /** The user for whom it is. */
  user?: string
  /** Labels of the caller's. */
  labels: Record<string, string>
  /** What is in force for everything in it; there once it is made. */
  boundary?: Boundary
  /** Programs in it may be started as root. */
  root?: boolean
  /** What is worth knowing of its state. */
  note?: string
}

/** Persistent sandboxes. */
export interface SandboxList {
  /** Those of the tenant. */
  sandboxes: SandboxInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A change of a persistent sandbox. */
export interface SandboxChange {
  /** How long it lives from now on. */
  ttl_ms: number
}

/** What a persistent sandbox uses.  By the kernel's count; 0 where it does not count. */
export interface SandboxUsage {
  /** CPU time of everything in it, since it was made. */
  cpu_ms: number
  /** Memory now, files in it included. */
  memory_bytes: number
  /** The most that it was. */
  memory_peak_bytes: number
  /** Bytes of its disk that are in use; with root inside that is the whole root file system that it may write. */
  disk_bytes: number
  /** Files and folders there. */
  disk_files: number
  /** limits.disk_bytes. */
  disk_bytes_max: number
  /** limits.disk_files. */
  disk_files_max: number
  /** Processes and threads now, without its process 1. */
  processes: number
  /** Processes that the memory limit ended. */
  oom_kills: number
  /** Forks that the process limit refused. */
  pids_hits: number
}

/** A request for a context.  A live interpreter in a persistent sandbox, whose variables last from one execution to
 *  the next. */
export interface ContextRequest {
  /** python, javascript, typescript or bash, or an alias of one. */
  language?: string
  /** Its working folder. */
  cwd?: string
  /** A new interpreter for every execution: what lasts are the files. */
  fresh?: boolean
  /** Who it is inside: user, or root. */
  user?: 'user' | 'root'
  /** Environment variables, added to those of the sandbox. */
  env?: Record<string, string>
}

/** A context.  A live interpreter in a persistent sandbox. */
export interface ContextInfo {
  /** Its id. */
  id: string
  /** The sandbox that it is in. */
  sandbox: string
  /** Its language. */
  language: string
  /** What it does. */
  state: 'starting' | 'idle' | 'busy' | 'dead'
  /** The working folder that it began in. */
  cwd: string
  /** Executions so far, the one that goes on included. */
  executions: number
  /** Executions that wait. */
  waiting: number
  /** When it was asked for. */
  created_at: string
  /** Whether its interpreter was forked from one that had loaded its modules. */
  warm: boolean
  /** Who it is inside, where that is root. */
  user?: 'user' | 'root'
  /** Why it is dead. */
  reason?: string
}

/** Contexts. */
export interface ContextList {
  /** Those of the sandbox. */
  contexts: ContextInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A request for a session.  A persistent sandbox with one context in it, for a conversation. */
export interface SessionRequest {
  /** What lasts from one execution to the next. Default: files or interpreter, as the profile of the sandbox says;
   *  else interpreter. */
  mode?: 'none' | 'files' | 'interpreter'
  /** python, javascript, typescript or bash, or an alias of one. */
  language?: string
  /** Its sandbox; without idle_ms the setting sessions.idle holds. */
  sandbox?: SandboxRequest
}

/** A session.  A persistent sandbox with one context in it. */
export interface SessionInfo {
  /** Its id. */
  id: string
  /** What lasts from one execution to the next. */
  mode: 'none' | 'files' | 'interpreter'
  /** Its context. */
  context?: ContextInfo
  /** Its sandbox. */
  sandbox?: SandboxInfo
}

/** Sessions. */
export interface SessionList {
  /** Those of the tenant. */
  sessions: SessionInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A request to start a program.  A program in a persistent sandbox. */
export interface ProcessRequest {
  /** A command line for bash -c. One of command and args has to be there. */
  command?: string
  /** The program and its arguments, without a shell. */
  args?: string[]
  /** Its working folder. */
  cwd?: string
  /** Who it is inside: user, or root. */
  user?: 'user' | 'root'
  /** Environment variables, added to those of the sandbox. */
  env?: Record<string, string>
  /** Its standard input is written by requests; otherwise it is empty. */
  stdin?: boolean
  /** It has a terminal: standard input, output and error are one. */
  terminal?: boolean
  /** Rows of its terminal. */
  rows?: number
  /** Columns of its terminal. */
  columns?: number
  /** After this time it is killed, with all that it started in its session; 0: never. */
  timeout_ms?: number
}

/** A program in a persistent sandbox. */
export interface ProcessInfo {
  /** Its number, for requests. */
  id: number
  /** Its process id inside; 0: it was not started. */
  pid: number
  /** The sandbox that it is in. */
  sandbox: string
  /** What was started, as text. */
  command: string
  /** Whether it goes on. */
  state: 'running' | 'over'
  /** Whether it has a terminal. */
  terminal: boolean
  /** Time since it was asked for. */
  age_ms: number
  /** Its exit status. */
  exit_code?: number
  /** The signal that ended it. */
  signal?: number
  /** It was ended for timeout_ms. */
  timed_out?: boolean
  /** cpu_ms_per_day: it was ended, for the key's quota of CPU time is used up. */
  limit?: string
  /** How long it went on. */
  wall_ms?: number
  /** Why it could not be started, or what became of its sandbox. */
  error?: Failure
  /** What it printed, head and tail; of one that goes on, so far. */
  stdout?: string
  /** The same of its standard error. */
  stderr?: string
  /** Bytes missing from the middle. */
  truncated?: Truncated
}

/** Programs. */
export interface ProcessList {
  /** Those of the sandbox, newest first. */
  processes: ProcessInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A signal. */
export interface ProcessSignal {
  /** TERM, KILL, INT, HUP, or another one's name or number. */
  signal: string
}

/** The size of a terminal. */
export interface ProcessSize {
  /** Rows. */
  rows: number
  /** Columns. */
  columns: number
}

/** A file of a persistent sandbox. */
export interface EntryInfo {
  /** Its path as it was asked for; in a list, below the folder. Bytes that are no UTF-8 are shown as U+FFFD. */
  path: string
  /** The exact bytes, where they are no UTF-8. */
  path_base64?: string
  /** The last part. */
  name: string
  /** What it is. */
  type: 'file' | 'folder' | 'link' | 'other'
  /** Its size. */
  size_bytes: number
  /** Permission bits in octal. */
  mode: string
  /** When its content was changed. */
  modified_at: string
  /** Whose it is, by name; a number that has none. */
  owner: string
  /** The same of its group. */
  group: string
  /** Of a link. */
  target?: string
  /** Of a link that leads somewhere: where, without links. */
  real_path?: string
  /** Of such a link: what is there. */
  real_type?: 'file' | 'folder' | 'link' | 'other'
}

/** A file that was not written. */
export interface UploadError {
  /** Its name in the body. */
  name: string
  /** The code of the error. */
  code: string
  /** Why it was not written. */
  message: string
}

/** What came of an upload. */
export interface UploadResult {
  /** The files that were written. */
  entries: EntryInfo[]
  /** The files that were not written. */
  errors: UploadError[]
}

/** A change of a file. */
export interface FileChange {
  /** rename, mode, or folder: make one, with those above it. */
  action: string
  /** The new path, of rename. */
  to?: string
  /** The permission bits in octal, of mode: 0644. */
  mode?: string
}

/** Files. */
export interface EntryList {
  /** By name, and what is in a folder behind it. */
  entries: EntryInfo[]
  /** There are more than can be listed. */
  truncated: boolean
}

/** A file that is kept. */
export interface StoredFile {
  /** Its id. */
  id: string
  /** Its name. Bytes that are no UTF-8 are shown as U+FFFD. */
  name: string
  /** The exact bytes of the name, where they are no UTF-8. */
  name_base64?: string
  /** Its size. */
  size_bytes: number
  /** SHA-256 of its content, in hex. */
  sha256: string
  /** Its type, by its name and its first bytes. */
  mime: string
  /** sandbox:/v1/files/ID, as answers of models name it. */
  url: string
  /** When it was kept, as RFC 3339 has it. */
  created_at: string
  /** When it will be removed. */
  expires_at: string
  /** The run that made it. */
  run?: string
  /** The user for whom it is. */
  user?: string
}

/** Files that are kept. */
export interface StoredList {
  /** Those of the tenant, newest first. */
  files: StoredFile[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A workspace.  A folder of a user that lasts from run to run. */
export interface WorkspaceInfo {
  /** Its id. */
  id: string
  /** Its name. */
  name: string
  /** Whose it is; empty: nobody was named. */
  user: string
  /** Bytes of all files in it. */
  stored_bytes: number
  /** When it was made. */
  created_at: string
  /** When it was last used. */
  used_at: string
  /** When it will be removed, if nobody uses it. */
  expires_at: string
}

/** Workspaces. */
export interface WorkspaceList {
  /** Those of the tenant, the last used first. */
  workspaces: WorkspaceInfo[]
  /** The `cursor` of the next page; left out on the last page. */
  next?: string
}

/** A file of a workspace. */
export interface WorkspaceFile {
  /** Its path in the workspace. */
  name: string
  /** Its size. */
  size_bytes: number
  /** When its content was changed. */
  modified_at: string
}

/** Files of a workspace. */
export interface WorkspaceFiles {
  /** By name. */
  files: WorkspaceFile[]
  /** There are more than can be listed. */
  truncated: boolean
}

/** A request for a volume.  A file system of the caller's that outlives programs. */
export interface VolumeRequest {
  /** Its name: a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit. Programs have it at /mnt/NAME. */
  name: string
  /** Its size, which is taken from the disk at once. The file system itself needs a part of it. */
  size_bytes?: number
}

/** A volume.  A file system that outlives programs. */
export interface VolumeInfo {
  /** Its name, for the field volumes of requests. */
  name: string
  /** Its size. */
  size_bytes: number
  /** Where programs have it: /mnt/NAME. */
  path: string
  /** When it was made, as RFC 3339 has it. */
  created_at: string
}

/** Volumes. */
export interface VolumeList {
  /** Those of the caller, by name. */
  volumes: VolumeInfo[]
}

/** Usage of models.  Sums of what servers of models reported. */
export interface ModelUsage {
  /** With by=component: the component that called. */
  component?: string
  /** With by=model: the model. */
  model?: string
  /** With by=key: the tenant of the key. */
  tenant?: string
  /** With by=key: the key's id; empty for callers without a key. */
  key?: string
  /** Requests to a server. */
  calls: number
  /** Those of them that the server answered without usage. */
  usage_missing: number
  /** Tokens of the prompts. */
  prompt_tokens: number
  /** Tokens of the answers. */
  completion_tokens: number
  /** Both together. */
  total_tokens: number
  /** Those of the prompts that the server had cached. */
  cached_tokens: number
  /** Those of the answers that were thought and not said. */
  reasoning_tokens: number
  /** Cost by the prices of the settings, in thousand-millionths of a US dollar. */
  cost_nanousd: number
  /** The same in US dollars. */
  cost_usd: string
}

/** A report of usage. */
export interface ModelUsageReport {
  /** The begin of the first day that counts, as RFC 3339 has it; null: since the beginning. */
  since: string | null
  /** component, model or key. */
  by: string
  /** All sums together. */
  total: ModelUsage
  /** The sums, those with the highest cost first. */
  usage: ModelUsage[]
}

/** An image.  A root file system in which programs can run. */
export interface ImageInfo {
  /** Its name, for the field image of requests. */
  name: string
  /** Its id, another one for each import. */
  id: string
  /** The archive that it was imported from: tar, docker or oci. */
  kind: string
  /** sha256: and the hash of the image's configuration, or of an archive of the kind tar. */
  digest: string
  /** When it was imported, as RFC 3339 has it. */
  created_at: string
  /** Bytes of all files of all layers. */
  size_bytes: number
  /** Files, folders and links of all layers. */
  files: number
  /** What programs can be run with. */
  interpreters: ImageInterpreter[]
  /** Distributions of Python and their versions, such as numpy 1.24.2. */
  libraries: string[]
}

/** An interpreter of an image. */
export interface ImageInterpreter {
  /** python, node or bash. */
  name: string
  /** Its path inside. */
  path: string
  /** Its version as far as the name of its file has it, such as 3.11; or an empty text. */
  version: string
}

/** Images. */
export interface ImageList {
  /** By name. system, data and small, which are the host's own file system, are not listed. */
  images: ImageInfo[]
}

/** A request for a layer.  An immutable folder of packages of one language. */
export interface LayerRequest {
  /** The image of the programs that will have the layer. Default: the host's own file system. */
  image?: string
  /** Packages, such as requests==2.31.* or node:left-pad@1; a name alone is of Python. */
  packages?: string[] | string | { python?: string[]; node?: string[] }
  /** The same as the text of a requirements file: a package in each line, and with --hash options a lock. */
  requirements?: string
  /** Packages of Node as the text of a package-lock.json, of lockfileVersion 2 or 3. */
  lock?: string
}

/** A layer.  An immutable folder of packages. */
export interface LayerInfo {
  /** Its id. */
  id: string
  /** python or javascript. */
  language: string
  /** Version of the interpreter. */
  runtime: string
  /** The layer is the caller's; others came from an administrator, and are for all. */
  own: boolean
  /** The layer was made from a lock, and does not expire. */
  pinned: boolean
  /** Its packages and their versions, such as six==1.16.0. */
  packages: string[] | string | { python?: string[]; node?: string[] }
  /** What was found as the layer was made, such as .pth files, which have no effect. */
  notes: string[]
  /** Bytes of all files. */
  size_bytes: number
  /** Files, folders and links. */
  files: number
  /** When the layer was made, as RFC 3339 has it. */
  created_at: string
  /** When the layer was last asked for. */
  used_at: string
}

/** Layers. */
export interface LayerList {
  /** Oldest use first. */
  layers: LayerInfo[]
  /** There are more than can be listed. */
  truncated: boolean
}

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
