/* For the OpenAI Agents SDK: a tool that runs code, and a sandbox as the shell of shellTool().  `@openai/agents-core` is loaded when the tool is made. */

import type { FunctionTool, Shell } from '@openai/agents-core'

import type { Caisson } from './client.js'
import { codeToolOf, type CodeToolOptions } from './describe.js'
import type { Sandbox } from './sandbox.js'

/** A tool for `tools` of an Agent. */
export async function codeTool(client: Caisson, options: CodeToolOptions = {}): Promise<FunctionTool<unknown, any, string>> {
  const { tool } = await import('@openai/agents-core')
  const one = codeToolOf(client, options)
  return tool({
    name: one.name, description: one.description, parameters: one.schema as any, strict: true,
    execute: (input: unknown, _context: unknown, details?: { signal?: AbortSignal }) => one.run(input, details?.signal),
  }) as FunctionTool<unknown, any, string>
}

/** For shellTool({shell}): each command is a program of its own in the sandbox, and files stay from one to the next. */
export function sandboxShell(sandbox: Sandbox): Shell {
  return {
    async run({ commands, timeoutMs, maxOutputLength }) {
      const output: Awaited<ReturnType<Shell['run']>>['output'] = []
      for (const command of commands) {
        const process = await sandbox.exec(command, timeoutMs ? { timeout: timeoutMs / 1000 } : {})
        const cut = (text: string) => (maxOutputLength && text.length > maxOutputLength ? text.slice(0, maxOutputLength) : text)
        output.push({
          stdout: cut(process.stdout), stderr: cut(process.stderr),
          outcome: process.timedOut ? { type: 'timeout' } : { type: 'exit', exitCode: process.exitCode ?? 128 + (process.signal ?? 9) },
        })
        // A command that ran out of time leaves the ones behind it undone, as in a shell that was ended.
        if (process.timedOut) break
      }
      return { output, ...(maxOutputLength ? { maxOutputLength } : {}) }
    },
  }
}
