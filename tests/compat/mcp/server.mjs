// A daemon of their own for the tests of the Model Context Protocol.

import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

export const HERE = path.dirname(fileURLToPath(import.meta.url))
export const BUILD = path.resolve(HERE, '../../..', process.env.CAISSON_BUILD ?? 'build')
export const CAISSON = path.join(BUILD, 'caisson')

/** The caller's environment without anything that Caisson reads. */
export function environment() {
  const own = Object.entries(process.env).filter(([name]) => !/^(CAISSON_|OTEL_|XDG_|CODE_EXECUT)/.test(name))
  return { ...Object.fromEntries(own), HOME: '/nonexistent' }
}

const daemons = []
after(async () => {
  await Promise.all(daemons.map((stop) => stop()))
})

/** A daemon that needs no key; {url, socket}. */
export async function serve(...settings) {
  const folder = mkdtempSync(path.join(tmpdir(), 'caisson-mcp-test-'))
  const log = path.join(folder, 'log')
  const set = [`engine.state_dir=${folder}/state`, `engine.socket=${folder}/s`, 'engine.http=127.0.0.1:0', 'engine.log_level=info',
    'engine.http_keyless=true', ...settings]
  const daemon = spawn(path.join(BUILD, 'caissond'), set.flatMap((one) => ['--set', one]),
    { env: environment(), stdio: ['ignore', 'ignore', openSync(log, 'a')] })
  const gone = new Promise((resolve) => daemon.once('exit', resolve))
  daemons.push(async () => {
    daemon.kill('SIGTERM')
    const late = setTimeout(() => daemon.kill('SIGKILL'), 15000)
    await gone
    clearTimeout(late)
    rmSync(folder, { recursive: true, force: true })
  })
  for (const end = Date.now() + 60000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const address = /serving (http:\/\/127\.0\.0\.1:\d+)/.exec(readFileSync(log, 'utf8'))
    if (address) return { url: `${address[1]}/mcp`, base: address[1], socket: `${folder}/s` }
    if (daemon.exitCode !== null) break
  }
  throw new Error(`the daemon did not start:\n${readFileSync(log, 'utf8')}`)
}
