/* Runs and programs of sandboxes whose events are read as they happen. */

import { fromBase64 } from './bytes.js'
import { badAnswer, EngineError, NotFound, Unreachable } from './errors.js'
import { isObject, processOf, runOf, type Json, type Process, type Run } from './results.js'
import { answerOf, type Toolbox } from './tools.js'
import { locationOf, objectOf, post, withQuery, type Answer, type Call, type Transport } from './transport.js'

/** The server sends an empty line each 15 seconds, so a connection that is silent for longer is lost. */
const SILENCE_MS = 60_000
const PAUSE_MS = 250
/** How long the end of a stream, or an abort, waits for the server to end the operation. */
const CANCEL_MS = 5000

/** Symbol.asyncDispose, where the runtime has none under the name that compilers use for `await using`. */
export const asyncDispose: typeof Symbol.asyncDispose = (Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')) as typeof Symbol.asyncDispose

/** `content` has the exact bytes of an output; `data` is the event as the server sent it. */
export interface Event {
  type: 'start' | 'stdout' | 'stderr' | 'display' | 'lost' | 'tool_call' | 'approval' | 'tool_cancelled' | 'tool_progress' | 'end'
  number: number
  text: string
  content: Uint8Array
  data: Json
}

function eventOf(data: Json, number: number): Event {
  const text = data.text ?? ''
  if (typeof data.type !== 'string' || typeof text !== 'string') throw badAnswer('has an event without a type')
  let content: Uint8Array
  try {
    content = typeof data.base64 === 'string' ? fromBase64(data.base64) : new TextEncoder().encode(text)
  } catch (cause) {
    throw badAnswer('has an event whose base64 is none', cause)
  }
  return { type: data.type as Event['type'], number, text, content, data }
}

/** Events of an operation that goes on at the server: a connection that breaks is followed by another one. */
export class EventStream implements AsyncIterable<Event> {
  private number = 0
  private answer: Answer | undefined
  private ended: Json | undefined
  private readonly events: AsyncGenerator<Event>
  private readonly aborter = new AbortController()
  private opening: Promise<void> | undefined
  location = ''
  private name = ''

  constructor(protected readonly transport: Transport, private readonly call: Call, private readonly given: AbortSignal | undefined, private readonly retries: number) {
    this.events = this.read()
    if (given?.aborted) this.onAbort()
    else given?.addEventListener('abort', this.onAbort, { once: true })
  }

  /** The id of the run, or the number of the program. */
  get id(): string {
    return this.name || (this.location.split('/').pop() ?? '')
  }

  get isOver(): boolean {
    return this.ended !== undefined
  }

  /** The signal of tools: it is aborted when the operation is over or cancelled. */
  protected get signal(): AbortSignal {
    return this.aborter.signal
  }

  [Symbol.asyncIterator](): AsyncIterator<Event> {
    // No return(): a loop that is left does not end the stream, so that result() can go on.
    return { next: () => this.events.next() }
  }

  async [asyncDispose](): Promise<void> {
    if (!this.isOver) await this.cancel().catch(() => undefined)
    this.close()
  }

  private readonly onAbort = () => {
    this.cancel().catch(() => undefined)
  }

  /** Send the request.  The operation does not depend on its connection, so an abort waits for the head of the answer, which names it. */
  open(): Promise<void> {
    this.opening ??= this.transport.answer({ ...this.call, headers: { ...this.call.headers, Accept: 'application/x-ndjson' } }, SILENCE_MS).then((answer) => {
      this.answer = answer
      this.location = locationOf(answer)
    })
    return this.opening
  }

  /** Stop reading.  The operation goes on at the server. */
  close() {
    this.given?.removeEventListener('abort', this.onAbort)
    if (!this.aborter.signal.aborted) this.aborter.abort()
    this.answer?.close()
    this.answer = undefined
  }

  /** End the operation. */
  async cancel(): Promise<void> {
    const wasOpen = this.opening
    this.opening ??= Promise.reject(this.stopped())
    this.opening.catch(() => undefined)
    if (!this.aborter.signal.aborted) this.aborter.abort()
    if (!wasOpen) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CANCEL_MS)
    })
    await Promise.race([wasOpen.catch(() => undefined), late])
    clearTimeout(timer)
    this.close()
    if (this.location && !this.isOver) await this.transport.bytes({ method: 'DELETE', path: this.location }).catch(ignoreNotFound)
  }

  private stopped(): unknown {
    return this.given?.aborted ? this.given.reason : new Unreachable('the stream is closed', { retryable: false })
  }

  private async *read(): AsyncGenerator<Event> {
    await this.open()
    for (let attempt = 0; !this.isOver;) {
      try {
        for await (const event of this.readAnswer()) {
          attempt = 0
          yield event
          if (this.isOver) break
        }
        if (!this.isOver) throw new Unreachable('the events ended without the last one')
      } catch (error) {
        if (this.aborter.signal.aborted) throw this.stopped()
        if (!(error instanceof EngineError) || !error.retryable || !this.location || attempt >= this.retries) throw error
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** attempt))
        attempt++
        await this.reopen()
      }
    }
    this.close()
  }

  private async reopen() {
    this.answer?.close()
    if (this.aborter.signal.aborted) throw this.stopped()
    const path = withQuery(`${this.location}/events`, { after: this.number })
    this.answer = await this.transport.answer({ method: 'GET', path, headers: { Accept: 'application/x-ndjson' }, repeatable: true, signal: this.signal }, SILENCE_MS)
  }

  private async *readAnswer(): AsyncGenerator<Event> {
    const answer = this.answer
    if (!answer) throw this.stopped()
    if (!answer.header('Content-Type').includes('ndjson')) {
      // A request that ended before it began is answered by its record.
      this.ended = { type: 'end', record: objectOf(new TextDecoder().decode(await answer.bytes())) }
      yield eventOf(this.ended, 1)
      return
    }
    for await (const line of answer.lines()) {
      if (!line.trim()) continue
      const data = objectOf(line)
      this.number += data.type === 'lost' && typeof data.events === 'number' ? data.events : 1
      const event = eventOf(data, this.number)
      if (event.type === 'start') this.name = String(data.id ?? '')
      if (event.type === 'end') this.ended = data
      this.notice(event)
      yield event
    }
  }

  /** Hook of a stream that answers events. */
  protected notice(_event: Event): void {}

  /** The record, after all events.  A long one is not in the event and is asked for. */
  protected async record(): Promise<Json> {
    for await (const _ of this) continue
    if (!this.ended) throw this.stopped()
    const record = this.ended.record ?? await this.transport.json({ method: 'GET', path: this.location, repeatable: true })
    if (!isObject(record)) throw badAnswer('has an end whose record is no object')
    return record
  }
}

export interface OutputHandlers {
  onStdout?: (text: string) => unknown
  onStderr?: (text: string) => unknown
}

/** Read to the end, and call the handlers. */
export async function deliver(stream: EventStream, handlers: OutputHandlers) {
  for await (const event of stream) {
    if (event.type === 'stdout') await handlers.onStdout?.(event.text)
    if (event.type === 'stderr') await handlers.onStderr?.(event.text)
  }
}

export class RunStream extends EventStream {
  private fault: unknown
  private done: Promise<Run> | undefined

  constructor(transport: Transport, call: Call, given: AbortSignal | undefined, retries: number, private readonly toolbox: Toolbox, private readonly finish: (run: Run) => Promise<Run>) {
    super(transport, call, given, retries)
  }

  /** The result, after all events. */
  async result(): Promise<Run> {
    this.done ??= this.record().then((record) => this.finish(runOf(record)))
    const run = await this.done
    if (this.fault) throw this.fault
    return run
  }

  protected override notice(event: Event) {
    if (event.type !== 'tool_call' && event.type !== 'approval') return
    answerOf(this.toolbox, event.data, this.signal)
      .then((answer) => this.transport.bytes(post(`${this.location}/tool-results`, { results: [answer] }, { repeatable: true })))
      .catch((error: unknown) => {
        // Not found: the run is over.  Otherwise the call ends by its time-out, and the caller gets the error with the result.
        if (!(error instanceof NotFound) && !this.isOver) this.fault = error
      })
  }
}

export class ProcessStream extends EventStream {
  private readonly output: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  private readonly size = { stdout: 0, stderr: 0 }
  private lost = 0

  constructor(transport: Transport, call: Call, given: AbortSignal | undefined, retries: number, private readonly outputMax: number) {
    super(transport, call, given, retries)
  }

  /** A program may print without end, so the result has at most outputMax bytes of a stream. */
  protected override notice(event: Event) {
    if (event.type !== 'stdout' && event.type !== 'stderr') return
    const kept = event.content.subarray(0, Math.max(0, this.outputMax - this.size[event.type]))
    if (kept.length) this.output[event.type].push(kept)
    this.size[event.type] += kept.length
    this.lost += event.content.length - kept.length
  }

  /** The result, after all events. */
  async result(): Promise<Process> {
    const record = await this.record()
    const [stdout, stderr] = await Promise.all([joined(this.output.stdout), joined(this.output.stderr)])
    return processOf(record, { stdout, stderr }, this.lost)
  }

  /** Write to the standard input of a program that was started with `stdin: true`; `end` closes it. */
  async write(content: Uint8Array | string, end = false): Promise<void> {
    await this.open()
    const body = typeof content === 'string' ? new TextEncoder().encode(content) : content
    await this.transport.bytes({
      method: 'POST', path: withQuery(`${this.location}/stdin`, { end: end ? 'true' : undefined }), body, headers: { 'Content-Type': 'application/octet-stream' },
    })
  }

  async kill(signal = 'KILL'): Promise<void> {
    await this.open()
    await this.transport.bytes(post(`${this.location}/signal`, { signal }))
  }
}

const joined = async (parts: Uint8Array[]) => new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer())

export function ignoreNotFound(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
