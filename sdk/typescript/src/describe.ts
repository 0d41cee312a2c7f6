/* What models are told of a tool that runs code, and what they get of a run. */

import type { Caisson, RunOptions } from './client.js'
import { why, type Run } from './results.js'

export interface CodeToolOptions extends Omit<RunOptions, 'signal' | 'onStdout' | 'onStderr' | 'idempotencyKey'> {
  /** The name of the tool.  Default: run_code. */
  name?: string
  description?: string
  /** Languages that the model may choose.  Default: python, javascript, bash. */
  languages?: string[]
}

export interface CodeInput {
  code: string
  language: string
}

export interface CodeTool {
  name: string
  description: string
  schema: { type: 'object'; properties: { code: { type: 'string' }; language: { type: 'string'; enum: string[] } }; required: string[]; additionalProperties: false }
  run(input: unknown, signal?: AbortSignal): Promise<string>
}

/** A run as a text for a model. */
export function textOf(run: Run): string {
  const parts = [run.stdout, run.stderr && `stderr:\n${run.stderr}`, run.text && `value: ${run.text}`]
  const files = run.files.map((one) => one.name).join(', ')
  if (files) parts.push(`files: ${files}`)
  if (!run.ok) parts.push(`status: ${run.status}. ${why(run).join(' ')}`)
  return parts.filter(Boolean).join('\n') || 'The program printed nothing.'
}

export function codeToolOf(client: Caisson, options: CodeToolOptions): CodeTool {
  const { name = 'run_code', languages = ['python', 'javascript', 'bash'], description, ...rest } = options
  return {
    name,
    description: description ?? `Run a program in a sandbox without a network, and get its output and the value of its last expression. Languages: ${languages.join(', ')}.`,
    schema: {
      type: 'object', properties: { code: { type: 'string' }, language: { type: 'string', enum: languages } }, required: ['code', 'language'],
      additionalProperties: false,
    },
    async run(input, signal) {
      const { code, language } = checked(input, languages)
      return textOf(await client.run(code, { ...rest, language, ...(signal ? { signal } : {}) }))
    },
  }
}

export function checked(input: unknown, languages: string[]): CodeInput {
  const { code, language = languages[0] } = (input ?? {}) as Partial<CodeInput>
  if (typeof code !== 'string') throw new TypeError('code has to be a text')
  if (typeof language !== 'string' || !languages.includes(language)) throw new TypeError(`language has to be one of ${languages.join(', ')}`)
  return { code, language }
}
