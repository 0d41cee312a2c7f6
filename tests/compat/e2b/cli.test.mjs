// The command line of E2B, @e2b/cli, with our server: what it lists, starts, shows and ends.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { Sandbox } from 'e2b'

import { serve } from './server.mjs'

const server = await serve()
const CLI = path.resolve(path.dirname(fileURLToPath(import.meta.url)), 'node_modules/@e2b/cli/dist/index.js')
const env = { PATH: process.env.PATH, HOME: server.folder, NO_COLOR: '1', E2B_API_KEY: server.options.apiKey, E2B_API_URL: server.url,
  E2B_SANDBOX_URL: server.url, E2B_DOMAIN: 'e2b.test' }

/** What became of a program with this input. */
function run(program, args, input) {
  return new Promise((resolve) => {
    const child = spawn(program, args, { env })
    const got = { out: '', error: '' }
    child.stdout.on('data', (bytes) => { got.out += bytes })
    child.stderr.on('data', (bytes) => { got.error += bytes })
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const late = setTimeout(() => child.kill('SIGKILL'), 60_000)
    child.once('close', (status) => {
      clearTimeout(late)
      resolve({ ...got, status })
    })
  })
}

const cli = (args, input = '') => run('node', [CLI, ...args], input)

async function make(t) {
  const sandbox = await Sandbox.create('base', { ...server.options, metadata: { who: 'cli' } })
  t.after(() => sandbox.kill())
  return sandbox
}

test('sandboxes are listed, and one is described', async (t) => {
  const sandbox = await make(t)
  const listed = await cli(['sandbox', 'list', '--format', 'json'])
  assert.equal(listed.status, 0, listed.error)
  const found = JSON.parse(listed.out).find((one) => one.sandboxId === sandbox.sandboxId)
  assert.deepEqual(found.metadata, { who: 'cli' })
  const info = await cli(['sandbox', 'info', sandbox.sandboxId])
  assert.match(info.out, /State: running/)
})

test('a command is executed, with its input, output and status', async (t) => {
  const sandbox = await make(t)
  const said = await cli(['sandbox', 'exec', sandbox.sandboxId, 'echo', 'from', 'cli'])
  assert.deepEqual([said.status, said.out], [0, 'from cli\n'])
  assert.equal((await cli(['sandbox', 'exec', sandbox.sandboxId, 'cat'], 'piped')).out, 'piped')
  assert.equal((await cli(['sandbox', 'exec', sandbox.sandboxId, 'exit 3'])).status, 3)
})

test('a terminal is connected', async (t) => {
  const sandbox = await make(t)
  const pty = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)'
  const done = await run('python3', ['-c', pty, 'node', CLI, 'sandbox', 'connect', sandbox.sandboxId], 'echo sum $((40 + 2)); exit\n')
  assert.match(done.out, /sum 42/, done.error)
})

test('what happened is shown', async (t) => {
  const sandbox = await make(t)
  await sandbox.commands.run('echo "a \\"quoted\\" text"')
  const logs = await cli(['sandbox', 'logs', sandbox.sandboxId, '--format', 'json'])
  assert.equal(logs.status, 0, logs.error)
  const lines = logs.out.trim().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  assert.equal(lines[0].message, 'the sandbox runs')
  assert.ok(lines.some((line) => /process \d+ started: .*quoted/.test(line.message)))
  assert.ok(lines.some((line) => /process \d+ ended with status 0/.test(line.message)))
  assert.match((await cli(['sandbox', 'metrics', sandbox.sandboxId])).out, /CPU.*Memory.*Disk/)
})

test('a sandbox is paused, goes on, and is killed', async (t) => {
  const sandbox = await make(t)
  assert.match((await cli(['sandbox', 'pause', sandbox.sandboxId])).out, /has been paused/)
  assert.equal((await sandbox.getInfo()).state, 'paused')
  assert.match((await cli(['sandbox', 'resume', sandbox.sandboxId])).out, /has been resumed/)
  assert.match((await cli(['sandbox', 'kill', sandbox.sandboxId])).out, /has been killed/)
  assert.equal(await sandbox.isRunning(), false)
})

test('templates are listed', async () => {
  const done = await cli(['template', 'list'])
  assert.match(done.out, /base[^]*code-interpreter-v1/)
})
