/* Tools that programs call and this process serves. */

import { InvalidRequest } from './errors.js'
import { isObject, type Json } from './results.js'
import type { ToolAnswer, ToolsRequest } from './types.js'

/** A function with a name, and its arguments as a JSON Schema.  TypeScript's types do not exist at run time. */
export interface Tool {
  name: string
  description?: string
  inputSchema?: Json
  /** Each call waits for approve(). */
  ask?: boolean
  execute(args: any, options: { signal: AbortSignal }): unknown
}

/** Names to functions or tools; or tools and names of tools of the server; or the member `tools` of a request. */
export type Tools = Record<string, ((args: any, options: { signal: AbortSignal }) => unknown) | Omit<Tool, 'name'>> | (Tool | string)[]

/** Whether the call may be made; a text says why not. */
export type Approve = (tool: string, args: Json) => boolean | string | Promise<boolean | string>

const ERROR_MAX = 4000

export interface Toolbox {
  request: ToolsRequest | undefined
  functions: Map<string, Tool['execute']>
  approve: Approve | undefined
}

export function toolboxOf(tools: Tools | undefined, request: ToolsRequest | undefined, approve: Approve | undefined): Toolbox {
  const functions = new Map<string, Tool['execute']>()
  const client: NonNullable<ToolsRequest['client']> = []
  const allow: string[] = []
  const list: (Tool | string)[] = Array.isArray(tools)
    ? tools
    : Object.entries(tools ?? {}).map(([name, one]) => ({ name, ...(typeof one === 'function' ? { execute: one } : one) }) as Tool)
  for (const one of list) {
    if (typeof one === 'string') {
      allow.push(one)
      continue
    }
    if (!one || typeof one.name !== 'string' || typeof one.execute !== 'function') {
      throw new InvalidRequest('tools takes objects with name and execute(), and names of tools of the server', { field: 'tools' })
    }
    if (functions.has(one.name)) throw new InvalidRequest(`two tools have the name ${one.name}`, { field: 'tools' })
    functions.set(one.name, one.execute.bind(one))
    client.push({
      name: one.name, ...(one.description ? { description: one.description } : {}), ...(one.inputSchema ? { input_schema: one.inputSchema } : {}),
      ...(one.ask ? { ask: true } : {}),
    })
  }
  if (!list.length) return { request, functions, approve }
  const whole: ToolsRequest = {
    ...(functions.size ? { decode: true, raise: true } : {}), ...request, ...(client.length ? { client } : {}), ...(allow.length ? { allow } : {}),
  }
  return { request: whole, functions, approve }
}

export const needsEvents = (box: Toolbox) => box.functions.size > 0 || box.approve !== undefined

function errorAnswer(call: string, error: unknown): ToolAnswer {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return { call, error: (text || 'the tool failed').slice(0, ERROR_MAX) }
}

/** The answer to an event tool_call or approval. */
export async function answerOf(box: Toolbox, event: Json, signal: AbortSignal): Promise<ToolAnswer> {
  const call = String(event.call ?? ''), tool = String(event.tool ?? ''), args = isObject(event.arguments) ? event.arguments : {}
  try {
    if (event.type === 'approval') {
      const answer = box.approve ? await box.approve(tool, args) : 'this client approves no calls'
      return typeof answer === 'string' ? { call, approve: false, error: answer.slice(0, ERROR_MAX) } : { call, approve: answer }
    }
    const execute = box.functions.get(tool)
    if (!execute) return errorAnswer(call, `the client has no tool ${tool}`)
    const result = await execute(args, { signal })
    // undefined is no JSON: the result of a function without one is null.
    return { call, result: JSON.parse(JSON.stringify(result ?? null)) as unknown }
  } catch (error) {
    return errorAnswer(call, error)
  }
}
