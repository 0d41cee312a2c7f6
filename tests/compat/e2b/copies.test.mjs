// What copies of a sandbox' files promise where programs inside are in their way, and what becomes of a sandbox when a copy fails.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Sandbox } from 'e2b'

import { ask, inside, needsRoot, serve, sleep, until } from './server.mjs'

const server = await serve()
const { options } = server

async function make(t, more = {}) {
  const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 600_000, ...more })
  t.after(() => sandbox.kill())
  return sandbox
}

/** tar of this sandbox does something else the first time that it is called with this option. */
async function spoil(sandbox, option, command, where = server) {
  const record = await inside(where, sandbox.sandboxId, `set -e
    mv /usr/bin/tar /usr/bin/tar.real
    printf '%s\\n' '#!/bin/bash' 'case "$*" in *${option}*) [ -e /tmp/spoilt ] || { touch /tmp/spoilt; ${command}; };; esac; exec tar.real "$@"' >/usr/bin/tar
    chmod 755 /usr/bin/tar`)
  assert.equal(record.exit_code, 0, record.stderr)
}

test('sudo is there in a fork and after a pause without memory', needsRoot, async (t) => {
  const sandbox = await make(t)
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.equal((await fork.commands.run('sudo whoami')).stdout, 'root\n')
  await sandbox.pause({ keepMemory: false })
  await sandbox.connect()
  assert.equal((await sandbox.commands.run('sudo whoami')).stdout, 'root\n')
})

test('a copy that lacks files is no copy: the sandbox stays as it is', needsRoot, async (t) => {
  for (const command of ['kill -9 $$', 'exit 2']) {
    const sandbox = await make(t)
    await spoil(sandbox, '--create', command)
    await assert.rejects(sandbox.pause({ keepMemory: false }), /could not be copied/)
    assert.equal((await sandbox.getInfo()).state, 'running')
    await sandbox.createSnapshot().then((made) => Sandbox.deleteSnapshot(made.snapshotId, options))
  }
})

test('files that come and go meanwhile are in the way of no copy', needsRoot, async (t) => {
  const sandbox = await make(t)
  const busy = await sandbox.commands.run('sudo bash -c \'while :; do for i in {1..200}; do : >/tmp/x$i; : >/usr/local/lib/x$i; done; rm -f /tmp/x* /usr/local/lib/x*; done\'',
    { background: true })
  for (let i = 0; i < 3; i++) await Sandbox.deleteSnapshot((await sandbox.createSnapshot()).snapshotId, options)
  await busy.kill()
})

test('a copy has its time, and ends with it', needsRoot, async (t) => {
  const hurried = await serve('engine.copy_ms=2000')
  const sandbox = await make(t, hurried.options)
  await spoil(sandbox, '--create', 'sleep 4322', hurried)
  await assert.rejects(sandbox.pause({ keepMemory: false }), /engine\.copy_ms/)
  assert.equal((await sandbox.getInfo()).state, 'running')
  await until(async () => (await inside(hurried, sandbox.sandboxId, 'pgrep -fx "sleep 4322"')).exit_code === 1)
})

test('the time of a sandbox goes on where it could not be paused', needsRoot, async (t) => {
  const sandbox = await make(t)
  await spoil(sandbox, '--create', 'exit 2')
  await sandbox.setTimeout(3000)
  await assert.rejects(sandbox.pause({ keepMemory: false }))
  await until(async () => !(await sandbox.isRunning()))
})

test('a sandbox that cannot be paused at its end is killed', needsRoot, async (t) => {
  const sandbox = await make(t, { lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
  await spoil(sandbox, '--create', 'exit 2')
  await sandbox.setTimeout(500)
  await until(async () => (await sandbox.getInfo().catch(() => 'gone')) === 'gone')
})

test('a sandbox whose files cannot be loaded stays paused, everybody who waits hears of it, and it does not end', needsRoot, async (t) => {
  const roomy = await serve()
  const sandbox = await make(t, roomy.options)
  const { diskSizeMB } = (await ask(roomy, 'GET', `/sandboxes/${sandbox.sandboxId}`)).body
  const holes = `for i in $(seq ${Math.ceil(diskSizeMB / 50) + 2}); do truncate -s 50M /srv/hole$i || exit; done`   // are none any more where they are loaded
  assert.equal((await inside(roomy, sandbox.sandboxId, holes)).exit_code, 0)
  await sandbox.pause({ keepMemory: false })
  for (let i = 0; i < 2; i++) {
    const tries = [1, 2].map(() => sandbox.connect({ timeoutMs: 1000 }).then(() => 'there', () => 'refused'))
    assert.deepEqual(await Promise.all(tries), ['refused', 'refused'])
    await sleep(1200)
    assert.equal((await sandbox.getInfo()).state, 'paused')
  }
})

test('sandboxes that are paused without their memory count, too', async () => {
  const small = await serve('engine.sandboxes_owner_max=2')
  const made = []
  for (let i = 0; i < 2; i++) {
    made.push(await Sandbox.create('base', small.options))
    await ask(small, 'POST', `/sandboxes/${made[i].sandboxId}/pause`, { memory: false })
  }
  const refused = await ask(small, 'POST', '/v2/sandboxes', { templateID: 'base' })
  assert.equal(refused.status, 429)
  assert.match(refused.body.message, /engine.sandboxes_owner_max is 2/)
  await made[0].kill()
  assert.equal((await ask(small, 'POST', '/v2/sandboxes', { templateID: 'base' })).status, 201)
})
