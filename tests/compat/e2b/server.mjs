// What the tests of E2B's clients share: a daemon of their own, and the options by which a client finds it.
//
// The clients are those of npm, unmodified: `e2b` and `@e2b/code-interpreter`, and under `e2b-old` and `code-interpreter-old` versions that
// speak the first version of the control plane.

import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..')
export const BUILD = path.resolve(ROOT, process.env.CAISSON_BUILD ?? 'build')

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Wait for something that has to happen; what it gave. */
export async function until(condition, seconds = 60) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const got = await condition()
    if (got) return got
    if (Date.now() > end) throw new Error(`it did not happen: ${condition}`)
    await sleep(20)
  }
}

/** The caller's environment without anything that Caisson or a client of E2B reads. */
function environment() {
  const own = Object.entries(process.env).filter(([name]) => !/^(CAISSON_|E2B_|OTEL_|XDG_|CODE_EXECUT)/.test(name))
  return { ...Object.fromEntries(own), HOME: '/nonexistent' }
}

/** Why there is no root inside here, or ''. */
function whyNoRoot() {
  const done = spawnSync(path.join(BUILD, 'caisson'), ['doctor', '--json'], { encoding: 'utf8', env: environment() })
  const check = JSON.parse(done.stdout).checks.find((one) => one.name === 'root inside')
  return check?.state === 'ok' ? '' : check?.detail ?? 'caisson doctor does not say'
}

/** For test(): what it needs beside a daemon. */
export const noRoot = whyNoRoot()
export const needsRoot = noRoot ? { skip: `needs root inside: ${noRoot}` } : {}

const daemons = []
after(async () => {
  await Promise.all(daemons.map((one) => one.stop()))
})

/** A program that serves HTTP, once it does: {process, url, text(), stop()}. */
async function start(program, log, settings) {
  const process_ = spawn(path.join(BUILD, program), settings.flatMap((one) => ['--set', one]),
    { env: environment(), stdio: ['ignore', 'ignore', openSync(log, 'a')] })
  process.once('exit', () => process_.kill('SIGKILL'))   // of a test that broke
  const gone = new Promise((resolve) => process_.once('exit', resolve))
  process.on('exit', () => process_.kill('SIGTERM'))   // a file that fails outside of its tests, too, leaves nothing behind
  const text = () => readFileSync(log, 'utf8')
  const address = await until(() => {
    if (process_.exitCode !== null) throw new Error(`${program} ended:\n${text()}`)
    return /serving (http:\/\/127\.0\.0\.1:\d+)/.exec(text())
  })
  return {
    process: process_, url: address[1],
    async stop() {
      process_.kill('SIGTERM')
      const late = setTimeout(() => process_.kill('SIGKILL'), 15000)
      await gone
      clearTimeout(late)
    },
  }
}

/** With CAISSON_GATEWAY=N the clients speak with a gateway before N daemons. */
const WORKERS = Number(process.env.CAISSON_GATEWAY ?? 0)

async function startGateway(folder, keyFile, workers) {
  const gateway = await start('caisson-gateway', path.join(folder, 'gateway.log'), [`gateway.workers=${workers.map((one) => one.url)}`,
    `gateway.key_file=${keyFile}`, 'gateway.listen=127.0.0.1:0', 'engine.log_level=info'])
  await until(async () => (await (await fetch(`${gateway.url}/healthz`)).json()).workers_ready === workers.length)
  return gateway
}

/** A daemon, and `options` for a client of E2B. */
export async function serve(...settings) {
  const folder = mkdtempSync(path.join(tmpdir(), 'caisson-e2b-'))
  const log = path.join(folder, 'log')
  const keyFile = path.join(folder, 'key')
  writeFileSync(keyFile, `${'0123456789abcdef'.repeat(3)}\n`)
  const programs = []
  for (let n = 0; n < Math.max(WORKERS, 1); n++) {
    const own = n ? `${folder}/${n}` : folder
    mkdirSync(own, { recursive: true })
    programs.push(await start('caissond', path.join(own, 'log'), [`engine.state_dir=${own}/state`, `engine.socket=${own}/s`,
      'engine.http=127.0.0.1:0', 'engine.log_level=info', 'engine.http_keyless=true', 'engine.sandboxes_owner_max=100',
      ...(WORKERS ? [`gateway.key_file=${keyFile}`] : []), ...settings]))
  }
  const daemon = programs[0].process
  if (WORKERS) programs.unshift(await startGateway(folder, keyFile, programs))
  const server = {
    daemon, log, folder, url: programs[0].url,
    async stop() {
      for (const one of programs) await one.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  daemons.push(server)
  server.options = { apiKey: `e2b_${'0'.repeat(40)}`, apiUrl: server.url, sandboxUrl: server.url, domain: 'e2b.test' }
  return server
}

/** What a client has no word for. */
export async function ask(server, method, where, body, headers = {}) {
  const answer = await fetch(server.url + where, { method, headers: { 'X-API-Key': server.options.apiKey, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body) })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: /json/.test(answer.headers.get('content-type')) && text ? JSON.parse(text) : text }
}

/** A command in a sandbox by our own interface: its record. */
export async function inside(server, sandboxId, command, user = 'root') {
  const own = async (method, where, body) => (await fetch(server.url + where, { method, body: body && JSON.stringify(body) })).json()
  const { sandboxes } = await own('GET', '/v1/sandboxes')
  const { id } = sandboxes.find((one) => one.labels.e2b === sandboxId)
  return own('POST', `/v1/sandboxes/${id}/processes`, { command, user })
}
