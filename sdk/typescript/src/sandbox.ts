/* Persistent sandboxes and their contexts. */

import { bytesOf, type Content } from './bytes.js'
import type { Caisson, RunOptions } from './client.js'
import { NotFound } from './errors.js'
import { objects, type Json, type Process, type Run } from './results.js'
import { asyncDispose, deliver, ProcessStream, type OutputHandlers, type RunStream } from './streams.js'
import { below, objectOf, post, withQuery } from './transport.js'
import type { ContextInfo, ContextRequest, EntryInfo, FileChange, ProcessRequest, SandboxInfo, SandboxRequest, SandboxUsage } from './types.js'

export interface SandboxOptions extends Omit<SandboxRequest, 'ttl_ms' | 'idle_ms'> {
  /** Seconds. */
  ttl?: number
  /** Seconds without an operation after which it ends. */
  idle?: number
  signal?: AbortSignal
}

export interface ExecOptions extends Omit<ProcessRequest, 'command' | 'args' | 'stdin' | 'timeout_ms'>, OutputHandlers {
  stdin?: Content
  /** Seconds. */
  timeout?: number
  /** Bytes of each output stream that the result has.  Default: 64 MiB. */
  outputMax?: number
  signal?: AbortSignal
}

const OUTPUT_MAX = 64 * 1024 * 1024

/** A sandbox that stays until kill(), the end of its time, or the end of the block of its `await using`. */
export class Sandbox {
  readonly id: string
  readonly files: SandboxFiles
  private readonly contexts = new Map<string, Promise<Context>>()

  constructor(readonly client: Caisson, public info: SandboxInfo) {
    this.id = info.id
    this.files = new SandboxFiles(this)
  }

  async [asyncDispose](): Promise<void> {
    await this.kill()
  }

  path(...parts: (string | number)[]): string {
    return below('sandboxes', this.id, ...parts)
  }

  /** Run code in the interpreter of that language: variables last from run to run. */
  async run(code: string, options: RunOptions & { language?: string } = {}): Promise<Run> {
    const { language = 'python', ...rest } = options
    let context = this.contexts.get(language)
    if (!context) {
      context = this.context(language)
      this.contexts.set(language, context)
      context.catch(() => this.contexts.delete(language))
    }
    return (await context).run(code, rest)
  }

  /** Run a program to its end: a command line of Bash, or a list of the program and its arguments.  An abort ends the program. */
  async exec(command: string | string[], options: ExecOptions = {}): Promise<Process> {
    const { stdin, ...rest } = options
    const stream = await this.start(command, { ...rest, stdin: stdin !== undefined })
    try {
      // A program may end before it has read its standard input.
      if (stdin !== undefined) bytesOf(stdin).then((content) => stream.write(content, true)).catch(() => undefined)
      await deliver(stream, options)
      return await stream.result()
    } catch (error) {
      await stream.cancel().catch(() => undefined)
      throw error
    }
  }

  /** Start a program; iterate over its events, and take result(). */
  async start(command: string | string[], options: Omit<ExecOptions, 'stdin'> & { stdin?: boolean } = {}): Promise<ProcessStream> {
    const { timeout, signal, outputMax = OUTPUT_MAX, onStdout, onStderr, ...rest } = options
    const body = {
      ...rest, ...(typeof command === 'string' ? { command } : { args: command }), ...(timeout === undefined ? {} : { timeout_ms: Math.round(timeout * 1000) }),
    }
    const stream = new ProcessStream(this.client.transport, post(this.path('processes'), body), signal, this.client.retries, outputMax)
    await stream.open()
    return stream
  }

  /** Start an interpreter whose variables last. */
  async context(language = 'python', options: Omit<ContextRequest, 'language'> = {}): Promise<Context> {
    return new Context(this.client, await this.client.transport.json(post(this.path('contexts'), { language, ...options })))
  }

  /** What the sandbox is now: state, limits, boundary. */
  async refresh(): Promise<SandboxInfo> {
    return this.change('GET', this.path())
  }

  /** Let it live for so many seconds from now on. */
  async setTtl(seconds: number): Promise<void> {
    await this.change('PATCH', this.path(), { ttl_ms: Math.round(seconds * 1000) })
  }

  async metrics(): Promise<SandboxUsage> {
    return await this.client.request('GET', this.path('metrics')) as unknown as SandboxUsage
  }

  /** Freeze all its processes. */
  async pause(): Promise<void> {
    await this.change('POST', this.path('pause'), {})
  }

  async resume(): Promise<void> {
    await this.change('POST', this.path('resume'), {})
  }

  /** End it with everything in it.  A sandbox that has ended is no error. */
  async kill(): Promise<void> {
    await this.client.remove(this.path())
  }

  private async change(method: string, path: string, body?: Json): Promise<SandboxInfo> {
    this.info = await this.client.request(method, path, body) as unknown as SandboxInfo
    return this.info
  }
}

/** The files of a sandbox.  Paths begin at /home/user unless they are absolute. */
export class SandboxFiles {
  constructor(private readonly sandbox: Sandbox) {}

  private at(name: string, query: Record<string, string | number | undefined>): string {
    return withQuery(this.sandbox.path(name), query)
  }

  read(path: string, options: { signal?: AbortSignal } = {}): Promise<Uint8Array> {
    return this.sandbox.client.transport.bytes({ method: 'GET', path: this.at('files', { path }), repeatable: true, signal: options.signal })
  }

  async readText(path: string, options: { signal?: AbortSignal } = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** Write a file and the folders above it; the file is there as a whole or not at all. */
  async write(path: string, content: Content, options: { mode?: string; signal?: AbortSignal } = {}): Promise<EntryInfo> {
    return await this.sandbox.client.transport.json({
      method: 'PUT', path: this.at('files', { path, mode: options.mode }), body: await bytesOf(content), headers: { 'Content-Type': 'application/octet-stream' },
      repeatable: true, signal: options.signal,
    }) as unknown as EntryInfo
  }

  async list(path = '.', options: { depth?: number } = {}): Promise<EntryInfo[]> {
    const value = await this.sandbox.client.request('GET', this.at('entries', { path, depth: options.depth }))
    return objects(value.entries) as unknown as EntryInfo[]
  }

  async stat(path: string): Promise<EntryInfo> {
    return await this.sandbox.client.request('GET', this.at('entry', { path })) as unknown as EntryInfo
  }

  async exists(path: string): Promise<boolean> {
    return (await orNull(this.stat(path))) !== null
  }

  /** Rename, make a folder, or change the mode. */
  async change(path: string, change: FileChange): Promise<EntryInfo> {
    return await this.sandbox.client.request('PATCH', this.at('files', { path }), change) as unknown as EntryInfo
  }

  /** Remove a file, or a folder with all in it. */
  async remove(path: string): Promise<void> {
    await this.sandbox.client.transport.bytes({ method: 'DELETE', path: this.at('files', { path }) })
  }

  /** What happens in a folder: objects with type, path and folder.  The first one has the type `start`.  Leaving the loop ends it. */
  async *watch(path = '.', options: { depth?: number; signal?: AbortSignal } = {}): AsyncGenerator<Json> {
    const answer = await this.sandbox.client.transport.answer({
      method: 'GET', path: this.at('watch', { path, depth: options.depth }), headers: { Accept: 'application/x-ndjson' }, repeatable: true, signal: options.signal,
    })
    try {
      for await (const line of answer.lines()) if (line.trim()) yield objectOf(line)
    } finally {
      answer.close()
    }
  }
}

/** An interpreter in a sandbox, whose variables last. */
export class Context {
  readonly id: string
  readonly language: string
  info: ContextInfo

  constructor(readonly client: Caisson, info: Json) {
    this.info = info as unknown as ContextInfo
    this.id = this.info.id
    this.language = this.info.language
  }

  async [asyncDispose](): Promise<void> {
    await this.close()
  }

  private path(...parts: string[]): string {
    return below('contexts', this.id, ...parts)
  }

  run(code: string, options: RunOptions = {}): Promise<Run> {
    return this.client.runAt(this.path('runs'), code, undefined, options)
  }

  stream(code: string, options: RunOptions = {}): Promise<RunStream> {
    return this.client.streamAt(this.path('runs'), code, undefined, options)
  }

  /** Interrupt what it executes; variables stay. */
  async interrupt(): Promise<void> {
    await this.client.request('POST', this.path('interrupt'), {})
  }

  /** Put a new interpreter in its place. */
  async restart(): Promise<void> {
    await this.client.request('POST', this.path('restart'), {})
  }

  async close(): Promise<void> {
    await this.client.remove(this.path())
  }
}

/** The value, or null where there is no such file. */
export function orNull<T>(value: PromiseLike<T>): Promise<T | null> {
  return Promise.resolve(value).catch((error: unknown) => {
    if (error instanceof NotFound) return null
    throw error
  })
}
