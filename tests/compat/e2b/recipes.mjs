// What the tests of recipes share: the programs of docs/integrations.md as they stand there, and a stand-in for a model.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const COMPAT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')
const LINES_MAX = 15
const PAGE = readFileSync(path.join(COMPAT, '../../docs/integrations.md'), 'utf8')

/** For test(): clients that Node 18 cannot load. */
export const canLoad = Number(process.versions.node.split('.')[0]) >= 20
export const needsNode = canLoad ? {} : { skip: `needs node20: the clients of 2026 do not run on an older Node` }

/** The program of a recipe, below a heading of docs/integrations.md. */
export function recipe(heading) {
  const part = PAGE.split(/^### /m).find((one) => one.startsWith(`${heading}\n`))
  const code = /^```js\n([^]*?)^```$/m.exec(part ?? '')?.[1]
  assert.ok(code, `docs/integrations.md has no program below "### ${heading}"`)
  const lines = code.split('\n').filter((line) => line.trim()).length
  assert.ok(lines <= LINES_MAX, `the recipe of ${heading} has ${lines} lines, at most ${LINES_MAX}`)
  return code
}

/** docs/integrations.md names the versions that a folder installs. */
export function assertVersions(folder, ...names) {
  const { dependencies } = JSON.parse(readFileSync(path.join(COMPAT, folder, 'package.json'), 'utf8'))
  for (const name of names) assert.ok(PAGE.includes(`\`${name}\` ${dependencies[name]}`), `docs/integrations.md has another version of ${name} than ${dependencies[name]}`)
}

/** A server of OpenAI's chat/completions: the n-th request gets the n-th entry of the script, made of the request. */
export async function startModel(...script) {
  const requests = []
  const server = http.createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const body = JSON.parse(text)
    requests.push(body)
    const message = script[Math.min(requests.length, script.length) - 1](body)
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ id: `chat_${requests.length}`, object: 'chat.completion', created: 1, model: body.model, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }] }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close())
  return { url: `http://127.0.0.1:${server.address().port}/v1`, requests }
}

/** An entry that calls tools: [name, arguments] each; and one that says what the last tool answered. */
export const calls = (...list) => ({ messages }) => ({ tool_calls: list.map(([name, args], n) => (
  { id: `call_${messages.length}_${n}`, type: 'function', function: { name, arguments: JSON.stringify(args) } })) })
export const textOf = (message) => typeof message.content === 'string' ? message.content : message.content.map((one) => one.text).join('')
export const says = (before = 'It said: ') => ({ messages }) => ({ content: before + textOf(messages.at(-1)) })

/** Run a program with the packages of a folder, against a daemon and a model: what it printed. */
export async function runRecipe(folder, code, server, model) {
  const program = spawn(process.execPath, ['--input-type=module', '--eval', code], { cwd: path.join(COMPAT, folder), stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: '/nonexistent', E2B_API_KEY: server.options.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url,
      OPENAI_API_KEY: 'none', OPENAI_BASE_URL: model.url, OPENAI_AGENTS_DISABLE_TRACING: '1', LANGSMITH_TRACING: 'false' } })
  const out = [], errors = []
  program.stdout.on('data', (piece) => out.push(piece))
  program.stderr.on('data', (piece) => errors.push(piece))
  const [status] = await once(program, 'close')
  assert.equal(status, 0, `${Buffer.concat(out)}\n${Buffer.concat(errors)}`)
  return Buffer.concat(out).toString()
}
