// Servers of the Model Context Protocol from npm, unmodified, spoken with by caisson tools over both transports.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const HERE = path.dirname(fileURLToPath(import.meta.url))
const BUILD = path.resolve(HERE, '../../..', process.env.CAISSON_BUILD ?? 'build')
const MODULES = path.join(HERE, 'node_modules')
const EVERYTHING = path.join(MODULES, '@modelcontextprotocol/server-everything/dist/index.js')
const FILESYSTEM = path.join(MODULES, '@modelcontextprotocol/server-filesystem/dist/index.js')
const USER = String(process.getuid())     // who can read this folder

const folder = mkdtempSync(path.join(tmpdir(), 'caisson-mcp-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function environment() {
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CAISSON_|XDG_|OTEL_)/.test(name))), HOME: '/nonexistent' }
}

/** tools(servers)('call', …): caisson tools with these mcpServers. */
function tools(mcpServers) {
  const config = path.join(mkdtempSync(path.join(folder, 'c')), 'caisson.yaml')
  writeFileSync(config, JSON.stringify({ mcpServers }))
  return (...args) => spawnSync(path.join(BUILD, 'caisson'), ['tools', ...args, '--config', config], { encoding: 'utf8', env: environment() })
}

const everything = tools({ e: { command: process.execPath, args: [EVERYTHING, 'stdio'], user: USER } })

function call(run, tool, args = {}) {
  const done = run('call', '--json', tool, JSON.stringify(args))
  assert.equal(done.status, 0, done.stderr)
  return JSON.parse(done.stdout)
}

async function freePort() {
  const server = createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

function speaks(name, run) {
  test(`server-everything ${name}: text, structure, images, links, errors`, () => {
    assert.equal(call(run, 'e.echo', { message: 'hallo ä' }), 'Echo: hallo ä')
    assert.match(call(run, 'e.get-sum', { a: 2, b: 40 }), /42/)
    assert.deepEqual(Object.keys(call(run, 'e.get-structured-content', { location: 'New York' })).sort(), ['conditions', 'humidity', 'temperature'])
    assert.ok(call(run, 'e.get-tiny-image').some((block) => block.type === 'image' && block.mimeType === 'image/png'))
    assert.ok(call(run, 'e.get-resource-links', { count: 2 }).filter((block) => block.type === 'resource_link').length === 2)
    assert.equal(call(run, 'e.trigger-long-running-operation', { duration: 1, steps: 2 }), 'Long running operation completed. Duration: 1 seconds, Steps: 2.')
    const wrong = run('call', 'e.get-sum', '{"a": "x"}')
    assert.equal(wrong.status, 1)
    assert.match(wrong.stderr, /Invalid arguments|Input validation error/)
  })

  test(`server-everything ${name}: a call that lasts too long is given up`, () => {
    const began = Date.now()
    const done = run('call', 'e.trigger-long-running-operation', '{"duration": 30, "steps": 3}', '--timeout', '1s')
    assert.match(done.stderr, /not answered within 1000 ms/)
    assert.ok(Date.now() - began < 30000)
  })
}

speaks('over stdio', everything)

test('server-everything over stdio has our environment and nothing of the caller\'s', () => {
  const seen = call(everything, 'e.get-env')
  assert.deepEqual(Object.keys(seen).sort(), ['HOME', 'LANG', 'PATH'])
})

test('server-everything over streamable HTTP', async (t) => {
  const port = await freePort()
  const server = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env: { ...environment(), PORT: String(port) }, stdio: 'ignore' })
  t.after(() => server.kill())
  const run = tools({ e: { type: 'http', url: `http://localhost:${port}/mcp` } })
  for (const end = Date.now() + 60_000; run('check').status !== 0;) assert.ok(Date.now() < end, 'it does not listen')
  assert.equal(call(run, 'e.echo', { message: 'x' }), 'Echo: x')
  assert.ok(call(run, 'e.get-tiny-image').some((block) => block.type === 'image'))
  assert.match(call(run, 'e.trigger-long-running-operation', { duration: 1, steps: 2 }), /completed/)
})

test('server-filesystem reads and writes where the kernel lets it, whatever it allows itself', () => {
  const data = path.join(folder, 'data')
  const other = path.join(folder, 'other')
  for (const one of [data, other]) {
    mkdirSync(one)
    chmodSync(one, 0o777)
  }
  chmodSync(folder, 0o755)
  writeFileSync(path.join(other, 'secret'), 'hunter2')
  const run = tools({ f: { command: process.execPath, args: [FILESYSTEM, data, other], user: USER, read: [HERE, path.dirname(process.execPath)], write: [data] } })
  assert.match(JSON.stringify(call(run, 'f.write_file', { path: path.join(data, 'a.txt'), content: 'line\n' })), /Successfully wrote/)
  assert.equal(readFileSync(path.join(data, 'a.txt'), 'utf8'), 'line\n')
  assert.match(JSON.stringify(call(run, 'f.read_text_file', { path: path.join(data, 'a.txt') })), /line/)
  assert.match(run('call', 'f.read_text_file', JSON.stringify({ path: '/etc/passwd' })).stderr, /outside allowed directories/)
  const walls = run('call', 'f.read_text_file', JSON.stringify({ path: path.join(other, 'secret') }))
  assert.ok(!`${walls.stdout}${walls.stderr}`.includes('hunter2'))
  assert.match(walls.stderr, /EACCES/)
})
