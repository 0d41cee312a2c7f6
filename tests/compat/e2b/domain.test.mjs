// A client of a year ago that knows no E2B_SANDBOX_URL: it asks https://PORT-ID.DOMAIN, as at E2B's own service.  What is in front of the
// daemon then is a name server and something that speaks TLS, which are as small here as they can be.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import dns from 'node:dns'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import tls from 'node:tls'
import { Sandbox } from 'code-interpreter-old'
import { BUILD, serve } from './server.mjs'

// Under a name that is not the machine's own nobody is answered without a key, which has to be there before the daemon is.
const folder = mkdtempSync(path.join(tmpdir(), 'e2b-domain-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const settings = [`engine.state_dir=${folder}/state`, 'engine.http_keyless=false']
const apiKey = key()
const server = await serve(...settings)
const { hostname, port } = new URL(server.options.apiUrl)

function key() {
  const done = spawnSync(path.join(BUILD, 'caisson'), ['e2b', 'env', ...[...settings, 'engine.http=127.0.0.1:1'].flatMap((one) => ['--set', one])], { encoding: 'utf8' })
  assert.equal(done.status, 0, done.stderr)
  return /E2B_API_KEY=(\S+)/.exec(done.stdout)[1]
}

function certificate() {
  const [key, cert] = ['key', 'cert'].map((name) => path.join(folder, name))
  const done = spawnSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=e2b.test', '-keyout', key, '-out', cert],
    { encoding: 'utf8' })
  assert.equal(done.status, 0, done.stderr)
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

test('the code interpreter of a year ago finds its sandboxes below a domain', async (t) => {
  const front = tls.createServer(certificate(), (client) => {
    const daemon = net.connect(Number(port), hostname)
    client.pipe(daemon).pipe(client)
    for (const one of [client, daemon]) one.on('error', () => { client.destroy(); daemon.destroy() })
  })
  await new Promise((resolve) => front.listen(0, '127.0.0.1', resolve))
  t.after(() => front.close())
  const asked = new Set(), lookup = dns.lookup
  t.mock.method(dns, 'lookup', (name, options, done) => {
    asked.add(name)
    lookup(name.endsWith('.e2b.test') ? '127.0.0.1' : name, options, done)
  })
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
  const sandbox = await Sandbox.create({ apiKey, domain: `e2b.test:${front.address().port}` })
  t.after(() => sandbox.kill())
  const execution = await sandbox.runCode('import os\nprint("here")\n6 * 7')
  assert.deepEqual([execution.text, execution.logs.stdout], ['42', ['here\n']])
  assert.equal((await sandbox.commands.run('echo $HOME')).stdout, '/home/user\n')
  assert.deepEqual([...asked].sort(), [`49983-${sandbox.sandboxId}.e2b.test`, `49999-${sandbox.sandboxId}.e2b.test`, 'api.e2b.test'])
})
