/* For the AI SDK: a sandbox as its sandbox session, and a tool that runs code.  `ai` is imported for its types alone. */

import type { Experimental_SandboxSession as SandboxSession, Tool } from 'ai'

import type { Caisson } from './client.js'
import { checked, codeToolOf, type CodeInput, type CodeToolOptions } from './describe.js'
import { orNull, type Sandbox } from './sandbox.js'
import type { ProcessStream } from './streams.js'

const DESCRIPTION = 'A Linux sandbox of Caisson. Programs start in /home/user, which they may write. There is no network unless the sandbox was made with one.'

type Entry = 'file' | 'directory' | 'symlink' | 'other'
const ENTRIES: Record<string, Entry> = { file: 'file', folder: 'directory', link: 'symlink', other: 'other' }
type SessionProcess = Awaited<ReturnType<SandboxSession['spawn']>>

interface ProcessOptions {
  command: string
  workingDirectory?: string
  env?: Record<string, string>
  abortSignal?: AbortSignal
}

const common = (options: ProcessOptions) => ({
  ...(options.workingDirectory === undefined ? {} : { cwd: options.workingDirectory }), ...(options.env ? { env: options.env } : {}),
  ...(options.abortSignal ? { signal: options.abortSignal } : {}),
})

const signalOf = (signal: AbortSignal | undefined) => (signal ? { signal } : {})

/** 128 + n of a signal, as a shell has it. */
const exitCodeOf = (process: { exitCode: number | null; signal: number | null }) => process.exitCode ?? 128 + (process.signal ?? 9)

/** The session of a sandbox, for `experimental_sandbox`.  The sandbox is the caller's to end. */
export function sandboxSession(sandbox: Sandbox, description = DESCRIPTION): SandboxSession {
  const { files } = sandbox
  const readBinaryFile: SandboxSession['readBinaryFile'] = ({ path, abortSignal }) => orNull(files.read(path, signalOf(abortSignal)))
  const writeBinaryFile: SandboxSession['writeBinaryFile'] = async ({ path, content, abortSignal }) => {
    await files.write(path, content, signalOf(abortSignal))
  }
  const stat: SandboxSession['stat'] = async ({ path }) => {
    const entry = await orNull(files.stat(path))
    if (!entry) return null
    const type = ENTRIES[entry.type === 'link' ? entry.real_type ?? 'other' : entry.type]
    return { type: type === 'file' || type === 'directory' ? type : 'other', size: entry.size_bytes }
  }
  return {
    description,
    readBinaryFile,
    writeBinaryFile,
    stat,
    async readFile(options) {
      const content = await readBinaryFile(options)
      return content && new Blob([content as BlobPart]).stream() as ReadableStream<Uint8Array>
    },
    async readTextFile({ encoding = 'utf-8', startLine, endLine, ...options }) {
      const content = await readBinaryFile(options)
      if (!content) return null
      const text = new TextDecoder(encoding).decode(content)
      if (startLine === undefined && endLine === undefined) return text
      return (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice((startLine ?? 1) - 1, endLine).join('')
    },
    async writeFile({ content, ...options }) {
      await writeBinaryFile({ ...options, content: new Uint8Array(await new Response(content as BodyInit).arrayBuffer()) })
    },
    async writeTextFile({ content, encoding = 'utf-8', path, abortSignal }) {
      if (!/^utf-?8$/i.test(encoding)) throw new TypeError(`the encoding ${encoding} is not supported; use utf-8`)
      await files.write(path, content, signalOf(abortSignal))
    },
    async listDirectory({ path }) {
      const here = await stat({ path })
      if (!here) return null
      if (here.type !== 'directory') throw new Error(`${path} is no directory`)
      return (await files.list(path, { depth: 1 })).map((one) => ({ name: one.name, type: ENTRIES[one.type] ?? 'other' }))
    },
    async deleteFile({ path }) {
      const entry = await orNull(files.stat(path))
      if (!entry) return false
      if (entry.type === 'folder') throw new Error(`${path} is a directory`)
      await files.remove(path)
      return true
    },
    spawn: (async (options: ProcessOptions & { stdin?: boolean }) =>
      processOf(await sandbox.start(options.command, { ...common(options), stdin: options.stdin === true }), options.stdin === true)) as SandboxSession['spawn'],
    async run(options) {
      const process = await sandbox.exec(options.command, common(options))
      return { exitCode: exitCodeOf(process), stdout: process.stdout, stderr: process.stderr }
    },
  }
}

function processOf(stream: ProcessStream, hasStdin: boolean): SessionProcess {
  const sinks: Partial<Record<string, ReadableStreamDefaultController<Uint8Array>>> = {}
  const outputOf = (name: string) => new ReadableStream<Uint8Array>({
    start(controller) {
      sinks[name] = controller
    },
    cancel() {
      delete sinks[name]
    },
  })
  const [stdout, stderr] = [outputOf('stdout'), outputOf('stderr')]
  const done = (async () => {
    try {
      for await (const event of stream) sinks[event.type]?.enqueue(event.content)
      for (const sink of Object.values(sinks)) sink?.close()
    } catch (error) {
      for (const sink of Object.values(sinks)) sink?.error(error)
      throw error
    }
    return { exitCode: exitCodeOf(await stream.result()) }
  })()
  done.catch(() => undefined)   // wait() reports it
  const process = { stdout, stderr, wait: () => done, kill: () => stream.kill().catch(() => undefined) }
  if (!hasStdin) return process
  return { ...process, stdin: new WritableStream<Uint8Array>({ write: (piece) => stream.write(piece), close: () => stream.write(new Uint8Array(), true) }) }
}

/** A tool for generateText() and streamText(). */
export function codeTool(client: Caisson, options: CodeToolOptions = {}): Tool<CodeInput, string> {
  const one = codeToolOf(client, options)
  const jsonSchema = { input: () => one.schema, output: () => one.schema }
  const validate = (value: unknown) => {
    try {
      return { value: checked(value, one.schema.properties.language.enum) }
    } catch (error) {
      return { issues: [{ message: (error as Error).message }] }
    }
  }
  return {
    description: one.description,
    inputSchema: { '~standard': { version: 1, vendor: 'caisson', validate, jsonSchema } },
    execute: (input: CodeInput, { abortSignal }: { abortSignal?: AbortSignal }) => one.run(input, abortSignal),
  } as unknown as Tool<CodeInput, string>
}
