// Where keys are needed: one of ours in E2B's spelling, what it may, and whose sandboxes it sees.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'

import { AuthenticationError, NotFoundError, Sandbox } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'

import { BUILD, serve } from './server.mjs'

// The store has to have a key before a daemon that needs some starts.
const server = await serve()
const settings = ['--set', `engine.state_dir=${server.folder}/state`, '--set', 'engine.http=127.0.0.1:1', '--set', 'engine.http_keyless=false']

function caisson(...args) {
  const done = spawnSync(path.join(BUILD, 'caisson'), [...args, ...settings], { encoding: 'utf8' })
  return { status: done.status, out: done.stdout, error: done.stderr }
}

/** The variables that `caisson e2b env` prints. */
function env(...args) {
  const done = caisson('e2b', 'env', ...args)
  assert.equal(done.status, 0, done.error)
  return Object.fromEntries(done.out.trim().split('\n').map((line) => /^export (\w+)=(.*)$/.exec(line).slice(1)))
}

const made = env('--tenant', 'one')
const guarded = await serve('engine.http_keyless=false', `engine.state_dir=${server.folder}/state`)
const options = { ...guarded.options, apiKey: made.E2B_API_KEY }

test('the environment has a key as clients of a year ago want it, and where the daemon is', () => {
  assert.match(made.E2B_API_KEY, /^e2b_[0-9a-f]+$/)
  assert.equal(made.E2B_API_URL, 'http://127.0.0.1:1')
  assert.equal(made.E2B_SANDBOX_URL, 'http://127.0.0.1:1')
  assert.equal(env('--url', 'https://x.test', '--domain', 'y.test').E2B_DOMAIN, 'y.test')
})

test('what is printed for a shell is words and nothing that it would carry out', () => {
  for (const [option, value] of [['--url', 'http://x"; rm -rf $(id)'], ['--url', 'http://x/a;b'], ['--url', 'ftp://x'], ['--url', ''], ['--domain', 'a b;c'], ['--domain', ''],
    ['--key', 'e2b_$(id)']]) {
    const done = caisson('e2b', 'env', option, value)
    assert.deepEqual([done.status, done.out], [64, ''], value)
    assert.ok(done.error.includes(`${option} is "${value}"`), done.error)
  }
})

test('a key of ours is spelled again, and anything else is refused', () => {
  const text = Buffer.from(made.E2B_API_KEY.slice(4), 'hex').toString()
  assert.match(text, /^csn_/)
  assert.equal(env('--key', text).E2B_API_KEY, made.E2B_API_KEY)
  const done = caisson('e2b', 'env', '--key', 'wrong')
  assert.equal(done.status, 64)
  assert.match(done.error, /csn_/)
})

test('a client is let in by that key, and by the key as it is', async (t) => {
  for (const Class of [Sandbox, OldSandbox]) {
    const sandbox = await Class.create('base', options)
    t.after(() => sandbox.kill())
    assert.equal(await sandbox.isRunning(), true)
  }
  const plain = Buffer.from(made.E2B_API_KEY.slice(4), 'hex').toString()
  assert.ok(Array.isArray(await Sandbox.list({ ...options, apiKey: plain }).nextItems()))
})

test('a key that is none of ours is refused', async () => {
  for (const apiKey of [guarded.options.apiKey, 'csn_wrong', 'e2b_63'])
    await assert.rejects(Sandbox.create('base', { ...options, apiKey }), AuthenticationError)
})

test('a tenant sees its own sandboxes and snapshots alone', async (t) => {
  const other = { ...options, apiKey: env('--tenant', 'two').E2B_API_KEY }
  const sandbox = await Sandbox.create('base', options)
  const snapshot = await sandbox.createSnapshot({ name: 'own' })
  t.after(async () => {
    await sandbox.kill()
    await Sandbox.deleteSnapshot(snapshot.snapshotId, options)
  })
  assert.deepEqual(await Sandbox.list(other).nextItems(), [])
  await assert.rejects(Sandbox.getInfo(sandbox.sandboxId, other), NotFoundError)
  assert.equal(await Sandbox.kill(sandbox.sandboxId, other), false)
  assert.deepEqual(await Sandbox.listSnapshots(other).nextItems(), [])
  await assert.rejects(Sandbox.create(snapshot.snapshotId, other), /404/)
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId, other), false)
})

test('a key without the scope may not', async () => {
  const done = caisson('keys', 'create', '--name', 'reader', '--scopes', 'read')
  const answer = await fetch(`${guarded.url}/v2/sandboxes`, { method: 'POST', headers: { 'X-API-Key': done.out.trim() }, body: '{"templateID":"base"}' })
  assert.equal(answer.status, 403)
  assert.match((await answer.json()).message, /scope/)
})

test('who may only read gets no token by which a sandbox could be entered', async (t) => {
  const sandbox = await Sandbox.create('base', options)
  t.after(() => sandbox.kill())
  const done = caisson('keys', 'create', '--name', 'reader', '--tenant', 'one', '--scopes', 'read', '--json')
  assert.equal(done.status, 0, done.error)
  const reader = JSON.parse(done.out).key
  for (const where of [`/sandboxes/${sandbox.sandboxId}`, '/v2/sandboxes']) {
    const text = await (await fetch(guarded.url + where, { headers: { 'X-API-Key': reader } })).text()
    assert.ok(text.includes(sandbox.sandboxId), text)
    assert.ok(!/AccessToken/.test(text), text)
  }
  const own = await (await fetch(`${guarded.url}/sandboxes/${sandbox.sandboxId}`, { headers: { 'X-API-Key': made.E2B_API_KEY } })).json()
  assert.ok(own.envdAccessToken)
})

test('no program starts in a sandbox when the day of its key is used up', async (t) => {
  const done = caisson('keys', 'create', '--name', 'cpu', '--tenant', 'cpu', '--scopes', 'run,sandboxes,read', '--cpu-per-day', '900ms')
  assert.equal(done.status, 0, done.error)
  const sandbox = await Interpreter.create({ ...options, apiKey: done.out.trim() })
  t.after(() => sandbox.kill())
  assert.equal((await sandbox.runCode('1 + 1')).text, '2')
  // The program may end itself before the CPU time is counted, or be killed.
  await sandbox.commands.run("python3 -c 'import time\nwhile time.process_time() < 1: pass'").catch(() => {})
  let refused
  for (const until = Date.now() + 30_000; !refused && Date.now() < until;)
    await sandbox.commands.run('true').catch((error) => { refused = error })
  assert.match(refused.message, /CPU time/)
  await assert.rejects(sandbox.runCode('1 + 1'), /429/)
  assert.equal((await sandbox.files.list('/')).length > 0, true)
})

// ---- pages in browsers

const page = { Origin: 'https://page.test' }
const preflight = (server, path, headers = {}) => fetch(server.url + path, { method: 'OPTIONS', headers: {
  ...page, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,e2b-sandbox-id,x-api-key', ...headers } })

test('a page may ask for everything, and says so without a key or a sandbox', async () => {
  for (const path of ['/v2/sandboxes', '/sandboxes/iabc/timeout', '/process.Process/Start', '/filesystem.Filesystem/Stat', '/files?path=a', '/execute', '/contexts/x/restart']) {
    const answer = await preflight(guarded, path)
    assert.equal(answer.status, 204, path)
    const got = (name) => answer.headers.get(`access-control-${name}`)
    assert.deepEqual([got('allow-origin'), got('allow-headers')], ['*', 'authorization,e2b-sandbox-id,x-api-key'])
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      assert.ok(got('allow-methods').split(', ').includes(method))
  }
  const named = await preflight(guarded, '/execute', { 'E2b-Sandbox-Id': 'i00000000000000000000', 'E2b-Sandbox-Port': '49999' })
  assert.equal(named.status, 204)
})

test('a page may read what is answered, errors too', async (t) => {
  const sandbox = await Sandbox.create('base', options)
  t.after(() => sandbox.kill())
  const target = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'X-Access-Token': sandbox.envdAccessToken }
  const readable = async (path, status, headers) => {
    const answer = await fetch(guarded.url + path, { headers: { ...page, ...headers } })
    assert.equal(answer.status, status, path)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*', path)
    const names = answer.headers.get('access-control-expose-headers').toLowerCase().split(', ')
    for (const name of ['x-next-token', 'x-total-running', 'retry-after', 'ratelimit-reset'])
      assert.ok(names.includes(name), name)
    await answer.body?.cancel()
  }
  await readable('/v2/sandboxes', 200, { 'X-API-Key': made.E2B_API_KEY })
  await readable('/v2/sandboxes', 401, {})
  await readable('/sandboxes/nope', 404, { 'X-API-Key': made.E2B_API_KEY })
  await readable('/health', 204, { ...target, 'E2b-Sandbox-Port': '49983' })
  await readable('/contexts', 200, { ...target, 'E2b-Sandbox-Port': '49999' })
  await readable('/health', 502, { 'E2b-Sandbox-Id': 'i00000000000000000000' })
})

test('who is no page is told nothing of pages', async () => {
  const answer = await fetch(`${guarded.url}/v2/sandboxes`, { headers: { 'X-API-Key': made.E2B_API_KEY } })
  assert.equal(answer.headers.get('access-control-allow-origin'), null)
})

test('other interfaces are not for pages, and neither is a daemon that needs no key', async () => {
  assert.equal((await preflight(guarded, '/v1/sandboxes')).headers.get('access-control-allow-origin'), null)
  for (const path of ['/v2/sandboxes', '/execute'])
    assert.equal((await preflight(server, path)).headers.get('access-control-allow-origin'), null, path)
  const answer = await fetch(`${server.url}/v2/sandboxes`, { headers: { ...page, 'X-API-Key': server.options.apiKey } })
  assert.equal(answer.headers.get('access-control-allow-origin'), null)
  assert.equal(answer.status, 403)
})
