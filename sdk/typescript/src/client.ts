/* A client of a server. */

import { bytesOf, member, type Content } from './bytes.js'
import { EngineError, InvalidRequest, RateLimited, Unreachable } from './errors.js'
import { gradeOf, isObject, objects, runOf, why, type Grade, type Json, type Run } from './results.js'
import { Context, Sandbox, type SandboxOptions } from './sandbox.js'
import { deliver, ignoreNotFound, RunStream, type OutputHandlers } from './streams.js'
import { needsEvents, toolboxOf, type Approve, type Toolbox, type Tools } from './tools.js'
import { below, objectOf, post, Transport, withQuery, type Call, type Fetch } from './transport.js'
import type { CheckRequest, CheckResult, ExportRule, GradeRequest, Health, InputFile, KeptRun, LayerInfo, LayerRequest, MeInfo, RunRequest, SandboxInfo, StoredFile, ToolsRequest } from './types.js'

export interface CaissonOptions {
  /** http://HOST:PORT, https://HOST:PORT, or in Node unix:/PATH.  Default: CAISSON_URL, else http://127.0.0.1:8080. */
  baseUrl?: string
  /** Default: CAISSON_KEY. */
  key?: string
  /** Used in place of the global fetch. */
  fetch?: Fetch
  /** How long the server may send nothing while a request goes on, in seconds.  Default: 600. */
  timeout?: number
  /** How often a request is sent again that the server could not begin, or that may be carried out twice.  Default: 2. */
  retries?: number
}

/** What to run, beside the code.  Members that are not listed here are those of RunRequest. */
export interface RunOptions extends Omit<RunRequest, 'code' | 'language' | 'stdin' | 'files' | 'exports' | 'tools'>, OutputHandlers {
  stdin?: Content
  /** Names to contents, or the objects of the API. */
  files?: Record<string, Content> | InputFile[]
  /** Patterns of files that the server keeps after the run. */
  exports?: (string | ExportRule)[]
  /** Patterns of files whose content the result has. */
  download?: string[]
  /** Functions of this process, and names of tools of the server. */
  tools?: Tools
  /** Further members of `tools` of a request, such as calls and call_ms. */
  toolOptions?: ToolsRequest
  approve?: Approve
  /** Time of the program in seconds: the limit wall_ms. */
  timeout?: number
  /** The server carries the program out once, so a connection that breaks is tried again. */
  idempotencyKey?: string
  signal?: AbortSignal
}

export type Program = string | ({ code: string; language?: string } & RunOptions)

const DEFAULT_URL = 'http://127.0.0.1:8080'
/** fetch() of Node ends a request whose answer does not begin within 300 seconds, so longer runs are read as a stream. */
const LONG_RUN_S = 240

export function milliseconds(name: string, seconds: number): number {
  if (!(seconds >= 0 && seconds < 1e9)) throw new InvalidRequest(`${name} is ${seconds}; it has to be a number of seconds from 0 on`, { field: name })
  return Math.round(seconds * 1000)
}

/** A body has at most 64 MiB at the server; a batch above half of that becomes several requests. */
const BODY_MAX = 32 * 1024 * 1024
const LONGEST_PAUSE_S = 30
/** Codes of line errors that say something about the server and nothing about the line. */
const SERVER_CODES = ['engine_error', 'cancelled', 'isolation_unavailable', 'worker_lost', 'internal']

const isOfServer = (error: unknown) => isObject(error) && SERVER_CODES.includes(String(error.code))

/** The numbers of the lines of the next request.  A character has at most three bytes. */
function partOf(lines: string[], unanswered: Set<number>): number[] {
  const part: number[] = []
  let size = 0
  for (const number of unanswered) {
    const length = 3 * (lines[number]?.length ?? 0)
    if (part.length && size + length > BODY_MAX) break
    part.push(number)
    size += length
  }
  return part
}

const environment = (name: string) => (typeof process === 'undefined' ? undefined : process.env?.[name])

/** The body of a request, and the tools that this process serves. */
export async function requestOf(code: string, language: string | undefined, options: RunOptions): Promise<{ body: Json; toolbox: Toolbox }> {
  const { stdin, files, exports, download, tools, toolOptions, approve, timeout, idempotencyKey, signal, onStdout, onStderr, ...rest } = options
  const toolbox = toolboxOf(tools, toolOptions, approve)
  const body: Json = { code, ...(language === undefined ? {} : { language }), ...rest }
  if (stdin !== undefined) Object.assign(body, await member('stdin', stdin))
  if (files) {
    body.files = Array.isArray(files)
      ? files
      : await Promise.all(Object.entries(files).map(async ([name, content]) => ({ name, ...await member('content', content) })))
  }
  const patterns = [...exports ?? [], ...download ?? []].map((one) => (typeof one === 'string' ? { pattern: one } : one))
  if (patterns.length) body.exports = patterns
  if (timeout !== undefined) body.limits = { wall_ms: milliseconds('timeout', timeout), ...rest.limits }
  if (toolbox.request) body.tools = toolbox.request
  return { body, toolbox }
}

export class Caisson {
  readonly transport: Transport
  readonly retries: number

  constructor(options: CaissonOptions = {}) {
    this.retries = options.retries ?? 2
    const timeout = options.timeout ?? 600
    if (!(this.retries >= 0)) throw new InvalidRequest(`retries is ${this.retries}; it has to be 0 or more`, { field: 'retries' })
    if (!(timeout > 0)) throw new InvalidRequest(`timeout is ${timeout}; it has to be more than 0 seconds`, { field: 'timeout' })
    const url = options.baseUrl ?? environment('CAISSON_URL') ?? DEFAULT_URL
    this.transport = new Transport(url, options.key ?? environment('CAISSON_KEY') ?? '', options.fetch, timeout * 1000, this.retries)
  }

  /** The JSON object of any path of the interface. */
  request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Json> {
    return this.transport.json({ method, path, signal, repeatable: method === 'GET', ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  }

  // ---- runs ----

  /** Run a program.  A program that fails is a result: see orThrow() of it.  An abort ends the program. */
  run(code: string, options: RunOptions & { language?: string } = {}): Promise<Run> {
    const { language, ...rest } = options
    return this.runAt('/v1/runs', code, language ?? 'python', rest)
  }

  /** Start a program; iterate over its events, and take result().  `await using` ends a program that goes on. */
  async stream(code: string, options: RunOptions & { language?: string } = {}): Promise<RunStream> {
    const { language, ...rest } = options
    return this.streamAt('/v1/runs', code, language ?? 'python', rest)
  }

  async runAt(path: string, code: string, language: string | undefined, options: RunOptions): Promise<Run> {
    const { body, toolbox } = await requestOf(code, language, options)
    const wall = (body.limits as { wall_ms?: number } | undefined)?.wall_ms ?? 0
    if (options.onStdout || options.onStderr || needsEvents(toolbox) || wall > LONG_RUN_S * 1000) {
      const stream = this.opened(path, body, toolbox, options)
      try {
        await deliver(stream, options)
        return await stream.result()
      } catch (error) {
        await stream.cancel().catch(() => undefined)
        throw error
      }
    }
    return this.withFiles(runOf(await this.transport.json(this.runCall(path, body, options))), options)
  }

  async streamAt(path: string, code: string, language: string | undefined, options: RunOptions): Promise<RunStream> {
    const { body, toolbox } = await requestOf(code, language, options)
    const stream = this.opened(path, body, toolbox, options)
    await stream.open()
    return stream
  }

  private opened(path: string, body: Json, toolbox: Toolbox, options: RunOptions): RunStream {
    const { signal, ...call } = this.runCall(path, body, options)
    return new RunStream(this.transport, call, signal, this.retries, toolbox, (run) => this.withFiles(run, options))
  }

  private runCall(path: string, body: Json, options: RunOptions): Call {
    const key = options.idempotencyKey
    return post(path, body, { signal: options.signal, ...(key ? { headers: { 'Idempotency-Key': key }, repeatable: true } : {}) })
  }

  /** Move the kept files of a run into its result. */
  private async withFiles(run: Run, options: RunOptions): Promise<Run> {
    if (!options.download?.length) return run
    for (const file of run.files.filter((one) => one.id)) {
      file.content = await this.files.read(file.id)
      await this.files.remove(file.id)
      file.id = ''
    }
    return run
  }

  /**
   * Run many programs.  Without `concurrency` all go in one request, and the server runs as many at once as it has room for.
   * `ordered` (the default): results come in the order of the programs; else as the programs end.  `index` is the place of a program.
   */
  runMany(programs: Iterable<Program>, options: { concurrency?: number; ordered?: boolean; signal?: AbortSignal } = {}): AsyncGenerator<Run> {
    const { concurrency, ordered = true, signal } = options
    if (concurrency === undefined) return this.runLines(programs, ordered, signal)
    if (!(concurrency >= 1)) throw new InvalidRequest(`concurrency is ${concurrency}; it has to be 1 or more`, { field: 'concurrency' })
    return this.runConcurrently(programs, concurrency, ordered, signal)
  }

  private async *runConcurrently(programs: Iterable<Program>, concurrency: number, ordered: boolean, signal: AbortSignal | undefined): AsyncGenerator<Run> {
    const aborter = new AbortController()
    const follow = () => aborter.abort(signal?.reason)
    signal?.addEventListener('abort', follow)
    const waiting: Promise<{ run: Run; self: number }>[] = []
    const places: number[] = []
    const take = async () => {
      const { run, self } = await (ordered ? waiting[0]! : Promise.race(waiting))
      const place = places.indexOf(self)
      waiting.splice(place, 1)
      places.splice(place, 1)
      return run
    }
    try {
      let index = 0
      for (const program of programs) {
        const { code, ...rest } = typeof program === 'string' ? { code: program } : program
        const self = index++
        const one = this.run(code, { ...rest, signal: aborter.signal }).then((run) => ({ run: Object.assign(run, { index: self }), self }))
        one.catch(() => undefined)
        waiting.push(one)
        places.push(self)
        if (waiting.length >= concurrency) yield await take()
      }
      while (waiting.length) yield await take()
    } finally {
      signal?.removeEventListener('abort', follow)
      aborter.abort(signal?.reason)
    }
  }

  private async *runLines(programs: Iterable<Program>, ordered: boolean, signal: AbortSignal | undefined): AsyncGenerator<Run> {
    const lines: string[] = []
    for (const program of programs) {
      const whole: Exclude<Program, string> = typeof program === 'string' ? { code: program } : program
      const { code, language, ...rest } = whole
      if (rest.download?.length) throw new InvalidRequest('runMany without `concurrency` does not download files; give concurrency', { field: 'download' })
      const { body, toolbox } = await requestOf(code, language ?? 'python', rest)
      if (needsEvents(toolbox)) throw new InvalidRequest('runMany without `concurrency` cannot serve tools; give concurrency', { field: 'tools' })
      lines.push(JSON.stringify({ ...body, id: String(lines.length) }))
    }
    const early = new Map<number, Run>()
    let following = 0
    for await (const [index, answer] of this.lines('/v1/runs/bulk', lines, false, signal)) {
      const run = isObject(answer.record) ? runOf(answer.record, index) : runOf({ status: isOfServer(answer.error) ? 'engine_error' : 'bad_request', error: answer.error }, index)
      if (!ordered) {
        yield run
        continue
      }
      early.set(index, run)
      for (let next = early.get(following); next; next = early.get(following)) {
        early.delete(following++)
        yield next
      }
    }
  }

  /** Answers to lines, in any order.  Lines without an answer are sent again where that is safe. */
  private async *lines(path: string, lines: string[], repeatable: boolean, signal: AbortSignal | undefined): AsyncGenerator<[number, Json]> {
    const unanswered = new Set(lines.keys())
    for (let attempt = 0; unanswered.size;) {
      const part = partOf(lines, unanswered), missing = new Set(part)
      let limited: RateLimited | undefined, isFurther = false
      try {
        const body = part.map((number) => `${lines[number]}\n`).join('')
        const answer = await this.transport.answer({ method: 'POST', path, body, headers: { 'Content-Type': 'application/x-ndjson' }, signal, repeatable })
        try {
          for await (const line of answer.lines()) {
            if (!line.trim()) continue
            const value = objectOf(line), number = Number(value.id), error = isObject(value.error) ? value.error : undefined
            if (!missing.delete(number)) continue
            if (error?.code === 'capacity') {
              limited = new RateLimited(String(error.message), { code: 'capacity', retryAfter: Number(error.retry_after_s ?? 0) })
              continue
            }
            unanswered.delete(number)
            isFurther = true
            yield [number, value]
          }
        } finally {
          answer.close()
        }
        if (missing.size) throw new Unreachable(`${missing.size} of ${part.length} lines were not answered`, { retryable: repeatable })
        if (limited) throw limited
        attempt = 0
      } catch (error) {
        attempt = isFurther ? 0 : attempt + 1
        if (!(error instanceof EngineError) || !error.retryable || attempt > this.retries || !(repeatable || error instanceof RateLimited)) throw error
        if ((error.retryAfter ?? 0) > LONGEST_PAUSE_S) throw error
        await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 0.25 * 2 ** attempt) * 1000))
      }
    }
  }

  /** Sentences about what was in the way of a run, or of the run with that id. */
  async why(run: Run | string): Promise<string[]> {
    return why(typeof run === 'string' ? await this.runs.get(run) : run)
  }

  /** Compare a program with a source policy; nothing is run. */
  async check(code: string, options: Omit<CheckRequest, 'code'> & { signal?: AbortSignal } = {}): Promise<CheckResult> {
    const { signal, ...rest } = options
    return await this.transport.json(post('/v1/check', { language: 'python', code, ...rest }, { repeatable: true, signal })) as unknown as CheckResult
  }

  // ---- gradings ----

  /** Grade one submission.  The result of an engine fault has mask true. */
  async grade(request: GradeRequest, options: { signal?: AbortSignal } = {}): Promise<Grade> {
    return gradeOf(await this.transport.json(post('/v1/grade', request, { repeatable: true, signal: options.signal })))
  }

  /** Grade many submissions in one request; the results in the order of the requests. */
  async gradeMany(requests: Iterable<GradeRequest>, options: { signal?: AbortSignal } = {}): Promise<Grade[]> {
    const all = [...requests]
    const grades: Grade[] = []
    const lines = all.map((request, number) => JSON.stringify({ ...request, id: String(number) }))
    for await (const [number, answer] of this.lines('/v1/grade', lines, true, options.signal)) {
      const isServer = isOfServer(answer.error)
      const refused = { status: isServer ? 'engine_error' : 'bad_request', score: isServer ? null : 0, mask: isServer, retryable: isServer, error: answer.error }
      grades[number] = { ...gradeOf(isObject(answer.result) ? answer.result : refused), id: all[number]?.id ?? null }
    }
    return grades
  }

  // ---- what the server keeps ----

  /** Make a persistent sandbox; `await using` ends it with its block. */
  async sandbox(options: SandboxOptions = {}): Promise<Sandbox> {
    const { ttl, idle, signal, ...rest } = options
    const body = { ...rest, ...(ttl === undefined ? {} : { ttl_ms: milliseconds('ttl', ttl) }), ...(idle === undefined ? {} : { idle_ms: milliseconds('idle', idle) }) }
    return new Sandbox(this, await this.transport.json(post('/v1/sandboxes', body, { signal })) as unknown as SandboxInfo)
  }

  /** A context that exists, by its id. */
  async context(id: string): Promise<Context> {
    return new Context(this, await this.request('GET', below('contexts', id)))
  }

  readonly sandboxes = {
    list: () => this.pages<SandboxInfo>('/v1/sandboxes', 'sandboxes'),
    get: async (id: string): Promise<Sandbox> => new Sandbox(this, await this.request('GET', below('sandboxes', id)) as unknown as SandboxInfo),
  }

  readonly runs = {
    list: () => this.pages<KeptRun>('/v1/runs', 'runs'),
    get: async (id: string): Promise<Run> => runOf(await this.request('GET', below('runs', id))),
    /** End a run that goes on, and forget one that is over. */
    cancel: async (id: string): Promise<void> => this.remove(below('runs', id)),
  }

  /** Files that the server keeps under an id; a run takes one as {id} in `files`. */
  readonly files = {
    upload: async (name: string, content: Content): Promise<StoredFile> => {
      const call = { method: 'POST', path: withQuery('/v1/files', { name }), body: await bytesOf(content), headers: { 'Content-Type': 'application/octet-stream' } }
      const value = await this.transport.json(call)
      return (objects(value.files)[0] ?? value) as unknown as StoredFile
    },
    list: () => this.pages<StoredFile>('/v1/files', 'files'),
    info: async (id: string): Promise<StoredFile> => await this.request('GET', below('files', id, 'info')) as unknown as StoredFile,
    read: (id: string): Promise<Uint8Array> => this.transport.bytes({ method: 'GET', path: below('files', id), repeatable: true }),
    remove: async (id: string): Promise<void> => this.remove(below('files', id)),
  }

  /** Immutable folders of packages. */
  readonly layers = {
    create: async (request: LayerRequest): Promise<LayerInfo> =>
      await this.transport.json(post('/v1/layers', request, { repeatable: true })) as unknown as LayerInfo,
    list: async (): Promise<LayerInfo[]> => objects((await this.request('GET', '/v1/layers')).layers) as unknown as LayerInfo[],
    get: async (id: string): Promise<LayerInfo> => await this.request('GET', below('layers', id)) as unknown as LayerInfo,
    remove: async (id: string): Promise<void> => this.remove(below('layers', id)),
  }

  /** Whether the server can run programs.  EngineError where it cannot. */
  async health(): Promise<Health> {
    return await this.request('GET', '/readyz') as unknown as Health
  }

  /** The key, its scopes and quotas, and what it may do. */
  async me(): Promise<MeInfo> {
    return await this.request('GET', '/v1/me') as unknown as MeInfo
  }

  async remove(path: string): Promise<void> {
    await this.transport.bytes({ method: 'DELETE', path }).catch(ignoreNotFound)
  }

  /** The members of all pages of a list. */
  async *pages<T>(path: string, name: string): AsyncGenerator<T> {
    for (let cursor: string | undefined; ;) {
      const value = await this.request('GET', withQuery(path, { cursor }))
      yield* objects(value[name]) as T[]
      const following = value.next ?? value.next_cursor
      if (typeof following !== 'string' || !following || following === cursor) return
      cursor = following
    }
  }
}
