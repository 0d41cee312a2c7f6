/* For LangChain: a tool that runs code.  `@langchain/core` is loaded when the tool is made. */

import type { StructuredToolInterface } from '@langchain/core/tools'

import type { Caisson } from './client.js'
import { codeToolOf, type CodeToolOptions } from './describe.js'

/** A tool for bindTools() and agents. */
export async function codeTool(client: Caisson, options: CodeToolOptions = {}): Promise<StructuredToolInterface> {
  const { tool } = await import('@langchain/core/tools')
  const one = codeToolOf(client, options)
  return tool((input: unknown, config: { signal?: AbortSignal } | undefined) => one.run(input, config?.signal), {
    name: one.name, description: one.description, schema: one.schema,
  }) as unknown as StructuredToolInterface
}
