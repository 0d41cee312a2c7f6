/* Results as objects.  `record` has everything, as the server sent it. */

import { fromBase64, toBase64 } from './bytes.js'
import { badAnswer, CaissonError, InvalidRequest } from './errors.js'
import type { Failure, Finding, GradeResult, ProcessInfo, RunResult, Value } from './types.js'

export type Status = RunResult['status']

/** A program that was carried out, and ended by itself or by a limit. */
export type EndedStatus = 'failed' | 'timeout' | 'memory_exceeded' | 'disk_exceeded' | 'process_limit' | 'output_limit' | 'crashed'

/** A value or a figure by MIME types: text, and base64 for types that are not text.  It comes from the program. */
export interface Display {
  data: Record<string, string>
}

/** A file that the program made or changed; `content` where `download` named it. */
export interface OutputFile {
  name: string
  sizeBytes: number
  mime: string
  changed: boolean
  sha256: string
  /** The id of the file at the server, or an empty text. */
  id: string
  error: string
  content?: Uint8Array
}

interface RunBase {
  id: string
  exitCode: number | null
  signal: number | null
  stdout: string
  stderr: string
  /** The program's value, or null. */
  result: Value | null
  /** The value itself; a value that is no JSON as its text. */
  value: unknown
  /** The value as a text. */
  text: string
  displays: Display[]
  files: OutputFile[]
  findings: Finding[]
  feedback: string[]
  warnings: { code: string; text: string }[]
  /** The place in the programs of runMany(). */
  index: number
  record: RunResult
  /** The run itself if it is completed; otherwise an exception. */
  orThrow(): CompletedRun
}

export interface CompletedRun extends RunBase {
  status: 'completed'
  ok: true
}

export interface EndedRun extends RunBase {
  status: EndedStatus
  ok: false
  error: Failure | null
}

/** Nothing ran, or the engine ended the run: `error` says why. */
export interface RefusedRun extends RunBase {
  status: Exclude<Status, 'completed' | EndedStatus>
  ok: false
  error: Failure | null
}

export type Run = CompletedRun | EndedRun | RefusedRun

export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The objects of a list; anything else of a server is left out. */
export const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function fileOf(one: Json): OutputFile {
  return {
    name: text(one.name), sizeBytes: Number(one.size_bytes ?? 0), mime: text(one.mime), changed: one.changed === true, sha256: text(one.sha256),
    id: text(one.url).split('/').pop() ?? '', error: text(one.error),
  }
}

function valueText(result: Json | null): string {
  if (!result) return ''
  if (typeof result.repr === 'string') return result.repr
  return 'value' in result ? JSON.stringify(result.value) : ''
}

export function runOf(value: unknown, index = -1): Run {
  if (!isObject(value) || typeof value.status !== 'string') throw badAnswer('has a record without a status')
  const record = value as unknown as RunResult
  const result = isObject(value.result) ? value.result : null
  const run = {
    id: text(value.id), status: record.status, ok: record.status === 'completed', exitCode: record.exit_code ?? null, signal: record.signal ?? null,
    stdout: text(value.stdout), stderr: text(value.stderr), result: result as Value | null, value: result ? result.value ?? result.repr : undefined,
    text: valueText(result), displays: objects(value.displays).map((one) => ({ data: isObject(one.data) ? one.data as Record<string, string> : {} })),
    files: objects(value.files).map(fileOf), findings: objects(value.findings) as unknown as Finding[],
    feedback: Array.isArray(value.feedback) ? value.feedback.map(String) : [],
    warnings: objects(value.warnings).map((one) => ({ code: text(one.code), text: text(one.text) })),
    error: isObject(value.error) ? value.error as unknown as Failure : null, index, record,
    orThrow() {
      if (this.ok) return this
      throw new CaissonError(this.error?.message ?? `the status of the run is ${this.status}`, { code: this.status })
    },
  }
  return run as unknown as Run
}

/** Sentences about what was in the way of a run; without an obstacle none. */
export function why(run: Run): string[] {
  const error = run.ok ? null : run.error
  const found = [error?.summary, error?.message, error?.hint, ...run.findings.map((one) => one.message), ...run.warnings.map((one) => one.text)]
    .filter((one): one is string => Boolean(one))
  if (!run.ok && !found.length) {
    found.push(`the status of the run is ${run.status}, ${run.signal === null ? `exit status ${run.exitCode}` : `signal ${run.signal}`}`)
  }
  return [...new Set(found)]
}

/** The exact bytes of an output. */
export function outputBytes(run: Run, stream: 'stdout' | 'stderr'): Uint8Array {
  const exact = run.record[`${stream}_base64`]
  return exact === undefined ? new TextEncoder().encode(run[stream]) : fromBase64(exact)
}

/** What came of a grading.  `score` and `reward` are null exactly if `mask` is true: then the engine or the checker is at fault. */
export interface Grade {
  id: string | null
  status: string
  allPassed: boolean
  score: number | null
  mask: boolean
  retryable: boolean
  reward: Json | null
  total: number
  passed: number
  cases: Json[]
  error: Failure | null
  record: GradeResult
}

export function gradeOf(value: unknown, id: string | null = null): Grade {
  if (!isObject(value) || typeof value.status !== 'string') throw badAnswer('has a result without a status')
  return {
    id: id ?? (typeof value.id === 'string' ? value.id : null), status: value.status, allPassed: value.all_passed === true,
    score: typeof value.score === 'number' ? value.score : null, mask: value.mask === true, retryable: value.retryable === true,
    reward: isObject(value.reward) ? value.reward : null, total: Number(value.total ?? 0), passed: Number(value.passed ?? 0),
    cases: objects(value.cases), error: isObject(value.error) ? value.error as unknown as Failure : null, record: value as unknown as GradeResult,
  }
}

/** A program in a sandbox. */
export interface Process {
  id: number
  exitCode: number | null
  signal: number | null
  timedOut: boolean
  stdout: string
  stderr: string
  /** Output beyond outputMax, which the client did not keep. */
  lostBytes: number
  record: ProcessInfo
}

export function processOf(value: Json, output: { stdout: Uint8Array; stderr: Uint8Array }, lostBytes: number): Process {
  const record = value as unknown as ProcessInfo
  // The program could not be started.
  if (record.error && record.exit_code == null && record.signal == null) {
    throw new InvalidRequest(record.error.message, { field: 'command', code: record.error.code ?? '' })
  }
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
  return {
    id: record.id, exitCode: record.exit_code ?? null, signal: record.signal ?? null, timedOut: record.timed_out === true,
    stdout: decode(output.stdout), stderr: decode(output.stderr), lostBytes, record,
  }
}

/** A picture of a display or a file as a data URL, or null: PNG, JPEG and SVG. */
export function pictureUrl(display: Display): string | null {
  for (const kind of ['image/png', 'image/jpeg']) if (display.data[kind]) return `data:${kind};base64,${display.data[kind]}`
  const svg = display.data['image/svg+xml']
  return svg ? `data:image/svg+xml;base64,${toBase64(new TextEncoder().encode(svg))}` : null
}
