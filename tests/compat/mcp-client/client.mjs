// A client for the conformance suite: client.mjs URL.  It is caisson tools, told by the scenario what to call.
//
// The suite gives calls for some scenarios (MCP_CONFORMANCE_CONTEXT); for others a client just has to list, or to call every tool.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..')
const BUILD = path.resolve(ROOT, process.env.CAISSON_BUILD ?? 'build')

const ARGUMENTS = { add_numbers: { a: 5, b: 3 } }
const VALUES = { string: 'text', integer: 7, number: 1.5, boolean: true, array: [], object: {} }

const folder = mkdtempSync(path.join(tmpdir(), 'caisson-mcp-client-'))
const config = path.join(folder, 'caisson.yaml')
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? 'auto'
writeFileSync(config, JSON.stringify({ mcpServers: { suite: { type: 'http', url: process.argv[2], protocol: revision } } }))

function caisson(...args) {
  const done = spawnSync(path.join(BUILD, 'caisson'), ['tools', ...args, '--config', config], { encoding: 'utf8' })
  process.stderr.write(done.stderr)
  return done
}

/** Something for every argument that has to be there. */
function invent(schema) {
  const properties = schema?.properties ?? {}
  return Object.fromEntries((schema?.required ?? Object.keys(properties)).map((name) => [name, properties[name]?.default ?? VALUES[properties[name]?.type] ?? null]))
}

const { tools } = JSON.parse(caisson('list', '--json').stdout)
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
// One scenario wants to have a schema back as it was seen.
const focal = tools.find((tool) => tool.name === 'json_schema_2020_12_tool')
if (focal) ARGUMENTS.json_schema_echo = { schema: focal.input_schema }
const calls = context.toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: ARGUMENTS[tool.name] ?? invent(tool.input_schema) }))
for (const call of calls) caisson('call', `suite.${call.name}`, JSON.stringify(call.arguments ?? {}), '--timeout', '10s')
rmSync(folder, { recursive: true })
