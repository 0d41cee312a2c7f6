/* Requests by fetch; at a Unix socket by node:http.  A time-out is for the head of an answer, and begins anew with each piece of the body. */

import { badAnswer, fromProblem, InvalidRequest, TimedOut, Unreachable, CaissonError } from './errors.js'
import { isObject, type Json } from './results.js'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Refused before the program began: every request may be sent again. */
const REFUSED = [429, 503]
/** The server was lost, and the program may have begun: only a repeatable request may be sent again. */
const LOST = [502, 504]
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000
/** Of an answer by lines; a record of the server has at most 64 MiB. */
const LINE_MAX = 256 * 1024 * 1024

export interface Call {
  method: string
  path: string
  body?: string | Uint8Array
  headers?: Record<string, string>
  /** Sending the request twice has the effect of sending it once. */
  repeatable?: boolean
  signal?: AbortSignal | undefined
}

export interface Endpoint {
  base: string
  fetch: Fetch
}

/** http://HOST:PORT, https://HOST:PORT/PATH, or unix:/PATH. */
export function endpointOf(url: string, own: Fetch | undefined): Endpoint {
  if (url.startsWith('unix:')) {
    const path = url.slice(5).replace(/^\/\//, '')
    if (!path.startsWith('/')) throw new InvalidRequest(`the address "${url}" has no absolute path; write unix:/PATH`, { field: 'baseUrl' })
    return { base: 'http://localhost', fetch: own ?? ((target, init) => fetchBySocket(path, target, init)) }
  }
  let parsed
  try {
    parsed = new URL(url)
  } catch (cause) {
    throw new InvalidRequest(`the address "${url}" is no http://HOST:PORT, https://HOST:PORT or unix:/PATH`, { field: 'baseUrl', cause })
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new InvalidRequest(`the address "${url}" is no http://HOST:PORT, https://HOST:PORT or unix:/PATH`, { field: 'baseUrl' })
  }
  return { base: url.replace(/\/+$/, ''), fetch: own ?? ((target, init) => fetch(target, init)) }
}

/** fetch() at a Unix socket, which Node has by node:http alone. */
async function fetchBySocket(socketPath: string, url: string, init: RequestInit): Promise<Response> {
  const [{ request }, { Readable }] = await Promise.all([import('node:http'), import('node:stream')])
  const { pathname, search } = new URL(url)
  const body = init.body as string | Uint8Array | undefined
  const length = body === undefined ? 0 : Buffer.byteLength(body)
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        socketPath, path: pathname + search, method: init.method ?? 'GET', agent: false,
        headers: { ...init.headers as Record<string, string>, 'Content-Length': length }, ...(init.signal ? { signal: init.signal } : {}),
      },
      (answer) => {
        const headers = new Headers()
        for (const [name, value] of Object.entries(answer.headers)) for (const one of [value ?? []].flat()) headers.append(name, one)
        const status = answer.statusCode ?? 0
        if (status < 200 || status > 599) {
          asked.destroy()
          reject(badAnswer(`has the status ${status}`))
          return
        }
        const hasBody = status !== 204 && status !== 304
        if (!hasBody) answer.resume()
        resolve(new Response(hasBody ? Readable.toWeb(answer) as ReadableStream<Uint8Array> : null, { status, headers }))
      },
    )
    asked.on('error', reject)
    asked.end(body)
  })
}

/** A signal that follows another one, and a time-out that touch() begins anew. */
class Deadline {
  readonly controller = new AbortController()
  private timer: ReturnType<typeof setTimeout> | undefined
  isOver = false

  constructor(private readonly ms: number, private readonly given: AbortSignal | undefined) {
    given?.addEventListener('abort', this.follow)
    if (given?.aborted) this.follow()
    this.touch()
  }

  private readonly follow = () => this.controller.abort(this.given?.reason)

  touch() {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.isOver = true
      this.controller.abort()
    }, this.ms)
  }

  end() {
    clearTimeout(this.timer)
    this.given?.removeEventListener('abort', this.follow)
  }
}

/** An answer whose body is read by pieces; close() ends the connection. */
export class Answer {
  private isClosed = false

  constructor(readonly response: Response, private readonly deadline: Deadline, private readonly broken: (error: unknown) => unknown) {}

  get status() {
    return this.response.status
  }

  header(name: string): string {
    return this.response.headers.get(name) ?? ''
  }

  close() {
    if (this.isClosed) return
    this.isClosed = true
    this.deadline.end()
    this.deadline.controller.abort()
  }

  async *pieces(): AsyncGenerator<Uint8Array> {
    const reader = this.response.body?.getReader()
    try {
      while (reader) {
        const { done, value } = await reader.read()
        this.deadline.touch()
        if (done) break
        yield value
      }
    } catch (error) {
      throw this.broken(error)
    } finally {
      this.close()
    }
  }

  async bytes(): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const piece of this.pieces()) {
      parts.push(piece)
      size += piece.length
    }
    const announced = this.header('Content-Length')
    if (announced && Number(announced) !== size && !this.header('Content-Encoding')) {
      throw new Unreachable(`the answer ends after ${size} of ${announced} bytes`)
    }
    const whole = new Uint8Array(size)
    let place = 0
    for (const part of parts) {
      whole.set(part, place)
      place += part.length
    }
    return whole
  }

  /** Lines without their ends. */
  async *lines(): AsyncGenerator<string> {
    const decoder = new TextDecoder()
    let parts: string[] = []
    let size = 0
    for await (const piece of this.pieces()) {
      const found = decoder.decode(piece, { stream: true }).split('\n')
      for (const one of found.slice(0, -1)) {
        yield parts.join('') + one
        parts = []
        size = 0
      }
      const rest = found[found.length - 1] ?? ''
      parts.push(rest)
      size += rest.length
      if (size > LINE_MAX) throw badAnswer(`has a line of more than ${LINE_MAX} characters`)
    }
    if (size) throw new Unreachable('the answer ends in the middle of a line')
  }

  async error(): Promise<CaissonError> {
    const body = new TextDecoder().decode(await this.bytes())
    let problem: Json
    try {
      problem = objectOf(body)
    } catch {
      problem = { detail: body.slice(0, 1000) }
    }
    return fromProblem(this.status, problem, retryAfterOf(this))
  }
}

/** The JSON object of a text.  Errors: EngineError with the code `bad_answer`. */
export function objectOf(body: string): Json {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch (cause) {
    throw badAnswer(`is no JSON: ${JSON.stringify(body.slice(0, 200))}`, cause)
  }
  if (!isObject(value)) throw badAnswer('is no JSON object')
  return value
}

function retryAfterOf(answer: Answer): number | undefined {
  const text = answer.header('Retry-After')
  return text && Number.isFinite(Number(text)) ? Math.max(0, Number(text)) : undefined
}

const sleep = (ms: number, signal: AbortSignal | undefined) => new Promise<void>((resolve, reject) => {
  if (signal?.aborted) return reject(signal.reason)
  const stop = () => {
    clearTimeout(timer)
    reject(signal?.reason)
  }
  const timer = setTimeout(() => {
    signal?.removeEventListener('abort', stop)
    resolve()
  }, ms)
  signal?.addEventListener('abort', stop)
})

export class Transport {
  private readonly endpoint: Endpoint
  readonly name: string

  constructor(url: string, private readonly key: string, own: Fetch | undefined, readonly timeoutMs: number, private readonly retries: number) {
    this.endpoint = endpointOf(url, own)
    this.name = url
  }

  /** One attempt; the head of the answer. */
  async open(call: Call, timeoutMs = this.timeoutMs): Promise<Answer> {
    const deadline = new Deadline(timeoutMs, call.signal)
    const broken = (error: unknown) => {
      if (call.signal?.aborted) return call.signal.reason
      if (deadline.isOver) return new TimedOut(`the server at ${this.name} sent nothing in the time-out of the client`, { cause: error })
      if (error instanceof CaissonError) return error
      const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) ?? (error as { code?: string }) : undefined
      const code = ['ECONNREFUSED', 'ENOENT', 'ENOTFOUND', 'EACCES'].includes(cause?.code ?? '') ? 'not_connected' : ''
      return new Unreachable(`no answer of ${this.name}: ${error instanceof Error ? error.message : String(error)} ${cause?.code ?? ''}`.trim(), { code, cause: error })
    }
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json', ...call.headers, ...(this.key ? { Authorization: `Bearer ${this.key}` } : {}) }
    try {
      const response = await this.endpoint.fetch(this.endpoint.base + call.path, {
        method: call.method, headers, signal: deadline.controller.signal, redirect: 'manual', ...(call.body === undefined ? {} : { body: call.body as BodyInit }),
      })
      deadline.touch()
      return new Answer(response, deadline, broken)
    } catch (error) {
      deadline.end()
      throw broken(error)
    }
  }

  /** An answer below 400, or a 503 with a record; sent again where that is safe. */
  async answer(call: Call, timeoutMs?: number): Promise<Answer> {
    for (let attempt = 0; ; attempt++) {
      let pause: number
      try {
        const answer = await this.open(call, timeoutMs)
        if (answer.status < 300) return answer
        if (answer.status < 400) {
          answer.close()
          throw badAnswer(`is a redirect to ${answer.header('Location').slice(0, 200) || 'nowhere'}; give the final address of the server`)
        }
        const retryAfter = retryAfterOf(answer)
        const maySendAgain = REFUSED.includes(answer.status) || (LOST.includes(answer.status) && call.repeatable)
        const wait = retryAfter === undefined ? FIRST_PAUSE_MS * 2 ** attempt : retryAfter * 1000
        if (!maySendAgain || attempt >= this.retries || (retryAfter ?? 0) * 1000 > LONGEST_PAUSE_MS) {
          if (answer.status === 503 && !answer.header('Content-Type').includes('problem')) return answer
          throw await answer.error()
        }
        answer.close()
        pause = wait
      } catch (error) {
        const isSafe = error instanceof Unreachable || error instanceof TimedOut
        if (!isSafe || attempt >= this.retries || !(call.repeatable || error.code === 'not_connected')) throw error
        pause = FIRST_PAUSE_MS * 2 ** attempt
      }
      await sleep(Math.min(pause, LONGEST_PAUSE_MS), call.signal)
    }
  }

  async bytes(call: Call): Promise<Uint8Array> {
    return this.again(call, async (answer) => answer.bytes())
  }

  async json(call: Call): Promise<Json> {
    return this.again(call, async (answer) => {
      const body = await answer.bytes()
      return body.length ? objectOf(new TextDecoder().decode(body)) : {}
    })
  }

  /** A body that breaks is read again from another answer, where the request is repeatable. */
  private async again<T>(call: Call, read: (answer: Answer) => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const answer = await this.answer(call)
      try {
        return await read(answer)
      } catch (error) {
        if (!(error instanceof Unreachable) || !call.repeatable || attempt >= this.retries) throw error
        await sleep(FIRST_PAUSE_MS * 2 ** attempt, call.signal)
      }
    }
  }
}

/** The path of an operation, as the server names it; without a usable path an empty text. */
export function locationOf(answer: Answer): string {
  const path = answer.header('Location').replace(/^.*?(?=\/v1\/)/, '')
  return /^\/v1\/[!-~]+$/.test(path) ? path : ''
}

export const below = (...parts: (string | number)[]) => `/v1/${parts.map((part) => encodeURIComponent(part)).join('/')}`

export function withQuery(path: string, query: Record<string, string | number | undefined>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length ? `${path}?${given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}` : path
}

/** JSON; a member that is undefined is left out. */
export const post = (path: string, body: unknown, more: Partial<Call> = {}): Call => ({ method: 'POST', path, body: JSON.stringify(body ?? {}), ...more })
