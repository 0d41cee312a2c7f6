// The client of E2B in @openai/agents-extensions, by itself: programs, files, terminals, ports, copies, pause and resume.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { canLoad, needsNode } from '../e2b/recipes.mjs'
import { serve, sleep } from '../e2b/server.mjs'

const { Manifest } = canLoad ? await import('@openai/agents/sandbox') : {}
const { E2BSandboxClient } = canLoad ? await import('@openai/agents-extensions/sandbox/e2b') : {}
const server = await serve()
Object.assign(process.env, { E2B_API_KEY: server.options.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url })

/** A session for one test. */
async function make(t, options = {}, manifest = {}) {
  const session = await new E2BSandboxClient({ timeout: 120, ...options }).create({ manifest: new Manifest(manifest) })
  t.after(() => session.close?.().catch(() => {}))
  return session
}

test('the files of a manifest are in the work folder, and the variables of the client in the environment', needsNode, async (t) => {
  const session = await make(t, { env: { WORD: 'a b' } }, { entries: { 'a/b.txt': { type: 'file', content: 'one\n' } } })
  const said = await session.execCommand({ cmd: 'pwd; cat a/b.txt; echo "$WORD"; id -un' })
  assert.match(said, /\/workspace\none\na b\nuser\n/)
})

test('programs have a status, a folder and a time', needsNode, async (t) => {
  const session = await make(t, { commandTimeoutMs: 1500 })
  assert.match(await session.execCommand({ cmd: 'echo out; echo err >&2; exit 3' }), /exited with code 3[^]*out[^]*err/)
  assert.match(await session.execCommand({ cmd: 'mkdir d; cd d; pwd' }), /\/workspace\/d\n/)
  assert.match(await session.execCommand({ cmd: 'pwd', workdir: 'd' }), /\/workspace\/d\n/)
  const begun = Date.now()
  await assert.rejects(session.execCommand({ cmd: 'sleep 60' }))
  assert.ok(Date.now() - begun < 20_000)
})

test('a terminal takes input', needsNode, async (t) => {
  const session = await make(t)
  const said = await session.execCommand({ cmd: 'read line; echo "got $line"', tty: true, yieldTimeMs: 500 })
  const id = Number(/session ID (\d+)/i.exec(said)?.[1])
  assert.ok(id > 0, said)
  let more = await session.writeStdin({ sessionId: id, chars: 'a b\n', yieldTimeMs: 1500 })
  for (let n = 0; n < 10 && !/got a b/.test(more); n++) more += await session.writeStdin({ sessionId: id, chars: '', yieldTimeMs: 500 })
  assert.match(more, /got a b/)
})

test('files are written and read', needsNode, async (t) => {
  const session = await make(t)
  await session.materializeEntry({ path: 'd/x.bin', entry: { type: 'file', content: new Uint8Array([0, 255, 10]) } })
  assert.deepEqual([...await session.readFile({ path: 'd/x.bin' })], [0, 255, 10])
  assert.equal(await session.pathExists('d/x.bin'), true)
  assert.equal(await session.pathExists('d/y'), false)
})

for (const workspacePersistence of ['tar', 'snapshot'])
  test(`the work folder is kept as ${workspacePersistence}`, needsNode, async (t) => {
    const one = await make(t, { workspacePersistence })
    await one.execCommand({ cmd: 'mkdir -p d; echo kept > d/x; chmod 755 d/x' })
    const archive = await one.persistWorkspace()
    const two = await make(t, { workspacePersistence })
    await two.hydrateWorkspace(archive)
    assert.match(await two.execCommand({ cmd: 'cat d/x; stat -c %a d/x' }), /kept\n755/)
  })

test('a paused session is found again by its state', needsNode, async (t) => {
  const client = new E2BSandboxClient({ timeout: 120, pauseOnExit: true })
  const session = await client.create({ manifest: new Manifest({}) })
  await session.execCommand({ cmd: 'echo kept > x; (sleep 100 & echo $! > pid)' })
  const state = JSON.parse(JSON.stringify(await client.serializeSessionState(session.state)))
  await session.close()
  await sleep(100)
  const again = await client.resume(await client.deserializeSessionState(state))
  t.after(() => { again.state.pauseOnExit = false; return again.close() })
  assert.equal(again.state.sandboxId, session.state.sandboxId)
  assert.match(await again.execCommand({ cmd: 'cat x; kill -0 $(cat pid) && echo lives' }), /kept\nlives/)
})
