/* Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit. */

import type { Boundary, Failure, ImageUse, LayerUse, Limits, ToolsRequest, Truncated, Warning } from './types-runs.js'

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
