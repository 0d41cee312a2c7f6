/* Exceptions of the client.  A program that fails is a result and not an exception. */

export interface ErrorDetails {
  /** The HTTP status, or 0. */
  status?: number
  /** The kind of the problem, as the server names it. */
  code?: string
  /** The id of the request in the log of the server. */
  requestId?: string
  cause?: unknown
}

export class CaissonError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = new.target.name
    this.status = details.status ?? 0
    this.code = details.code ?? ''
    this.requestId = details.requestId ?? ''
  }
}

/** The key is missing, unknown, or lacks a scope (401, 403). */
export class AuthError extends CaissonError {}

/** The request is wrong.  `field` is a JSON pointer into it, or a name. */
export class InvalidRequest extends CaissonError {
  readonly field: string

  constructor(message: string, details: ErrorDetails & { field?: string } = {}) {
    super(message, details)
    this.field = details.field ?? ''
  }
}

/** The path or the object does not exist (404, 410). */
export class NotFound extends CaissonError {}

export interface EngineDetails extends ErrorDetails {
  retryable?: boolean
  /** Seconds. */
  retryAfter?: number | undefined
  quota?: string
}

/** The server could not do its work (5xx).  `retryable`: the same request may succeed later. */
export class EngineError extends CaissonError {
  readonly retryable: boolean
  readonly retryAfter: number | undefined

  constructor(message: string, details: EngineDetails = {}) {
    super(message, details)
    this.retryable = details.retryable ?? true
    this.retryAfter = details.retryAfter
  }
}

/** A limit is reached (429).  `quota` names the limit. */
export class RateLimited extends EngineError {
  readonly quota: string

  constructor(message: string, details: EngineDetails = {}) {
    super(message, details)
    this.quota = details.quota ?? ''
  }
}

/** There is no connection to the server, or the connection broke. */
export class Unreachable extends EngineError {}

/** The server sent nothing for the time-out of the client. */
export class TimedOut extends EngineError {}

/** The answer is not what the description says. */
export function badAnswer(what: string, cause?: unknown): EngineError {
  return new EngineError(`the answer of the server ${what}`, { code: 'bad_answer', retryable: false, cause })
}

const text = (value: unknown, otherwise = ''): string => (typeof value === 'string' ? value : otherwise)

/** The exception for an answer of application/problem+json. */
export function fromProblem(status: number, problem: Record<string, unknown>, retryAfter: number | undefined): CaissonError {
  const message = text(problem.detail) || text(problem.message) || text(problem.title) || `HTTP status ${status}`
  const details = { status, code: text(problem.code), requestId: text(problem.request_id) }
  if (status === 401 || status === 403) return new AuthError(message, details)
  if (status === 404 || status === 410) return new NotFound(message, details)
  if (status === 429) return new RateLimited(message, { ...details, retryAfter, quota: text(problem.quota) })
  if (status >= 500) {
    const retryable = typeof problem.retryable === 'boolean' ? problem.retryable : [502, 503, 504].includes(status)
    return new EngineError(message, { ...details, retryable, retryAfter })
  }
  return new InvalidRequest(message, { ...details, field: text(problem.field) })
}
