// What the tests of the page share: a daemon, Chromium, and a page that reports whatever a hostile program could do.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..')
const BUILD = path.resolve(ROOT, process.env.CAISSON_BUILD ?? 'build')
const CHROMIUM = '/usr/bin/chromium'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms) })

export async function until(condition, seconds = 60) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const got = await condition()
    if (got) return got
    if (Date.now() > end) throw new Error(`it did not happen: ${condition}`)
    await sleep(20)
  }
}

const ends = []
after(async () => {
  for (const end of ends.reverse()) await end()
})

export const program = (name) => path.join(BUILD, name)

/** A daemon: {url, folder}.  `prepare` is called with its state folder before it starts. */
export async function serve({ settings = [], prepare } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'caisson-web-'))
  const log = path.join(folder, 'log')
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CAISSON_|OTEL_|XDG_)/.test(name)))
  const all = [`engine.state_dir=${folder}/state`, `engine.socket=${folder}/s`, 'engine.http=127.0.0.1:0', 'engine.log_level=info',
    'engine.http_keyless=true', ...settings]
  prepare?.(`${folder}/state`)
  const daemon = spawn(program('caissond'), all.flatMap((one) => ['--set', one]),
    { env: { ...environment, HOME: '/nonexistent' }, stdio: ['ignore', 'ignore', openSync(log, 'a')] })
  const gone = new Promise((resolve) => { daemon.once('exit', resolve) })
  process.on('exit', () => daemon.kill('SIGTERM'))
  ends.push(async () => {
    daemon.kill('SIGTERM')
    const late = setTimeout(() => daemon.kill('SIGKILL'), 15000)
    await gone
    clearTimeout(late)
    rmSync(folder, { recursive: true, force: true })
  })
  const text = () => readFileSync(log, 'utf8')
  const address = await until(() => {
    if (daemon.exitCode !== null) throw new Error(`caissond ended:\n${text()}`)
    return /serving (http:\/\/127\.0\.0\.1:\d+)/.exec(text())
  })
  return { url: address[1], folder }
}

/** Why the tests cannot run here, or ''. */
export async function whyNot(url) {
  if (!existsSync(CHROMIUM)) return `needs chromium: ${CHROMIUM} does not exist`
  const answer = await fetch(`${url}/ui/`)
  return answer.ok ? '' : `needs the page: this build has none (status ${answer.status})`
}

/** Chromium's own sandbox does not start as root; an ordinary user has it. */
export async function browse() {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: process.getuid() === 0 ? ['--no-sandbox'] : [] })
  ends.push(() => browser.close())
  return browser
}

// Console messages of the browser itself that a test may expect.
const EXPECTED = /^Failed to load resource: the server responded with a status of (401|403|404|409|422)/

/** A page in a context of its own.  `seen` collects dialogs, errors, foreign requests and violations of the policy. */
export async function openPage(browser, url, { scheme = 'light', width = 1300, key } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 820 }, reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'] })
  const seen = []
  context.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== url) seen.push(`request: ${request.url()}`)
  })
  // A request that the policy refuses has no answer.
  context.on('response', (answer) => { if (/canary/.test(answer.url())) seen.push(`canary: ${answer.url()}`) })
  context.on('dialog', (dialog) => {
    seen.push(`dialog: ${dialog.message()}`)
    dialog.dismiss()
  })
  context.on('page', (other) => { if (context.pages().length > 1) seen.push(`window: ${other.url()}`) })
  const page = await context.newPage()
  page.setDefaultTimeout(15000)
  page.on('pageerror', (error) => seen.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' && !EXPECTED.test(message.text())) seen.push(`console: ${message.text()}`)
  })
  if (key) await page.addInitScript((text) => sessionStorage.setItem('caisson.key', text), key)
  return { page, seen, close: () => context.close() }
}

/** Findings of axe-core in a part of the page that are serious or critical, a line each. */
export async function axe(page, part = 'html') {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate((where) => window.axe.run(where, { iframes: false, resultTypes: ['violations'] }), part)
  return violations.filter((one) => ['serious', 'critical'].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target} ${node.failureSummary ?? ''}`))
}

export const at = async (page, url, name) => {
  await page.goto(`${url}/ui/#/${name}`)
  await page.waitForSelector('main h1', { state: 'attached' })
}

/** Text in place of that of an editor, as typing and pasting give it. */
export async function write(page, label, text) {
  await page.getByRole('textbox', { name: label, exact: true }).focus()
  await page.keyboard.press('Control+A')
  await page.evaluate((data) => {
    const clipboard = new DataTransfer()
    clipboard.setData('text/plain', data)
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData: clipboard, bubbles: true, cancelable: true }))
  }, text)
}
