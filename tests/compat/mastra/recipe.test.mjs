// Mastra with its client of E2B: the recipe of docs/integrations.md, and programs of a workspace.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { assertVersions, canLoad, needsNode, recipe, runRecipe } from '../e2b/recipes.mjs'
import { serve } from '../e2b/server.mjs'

const { E2BSandbox } = canLoad ? await import('@mastra/e2b') : {}
const server = await serve()
Object.assign(process.env, { E2B_API_KEY: server.options.apiKey, E2B_API_URL: server.url, E2B_SANDBOX_URL: server.url })

test('the recipe of Mastra', needsNode, async () => {
  assertVersions('mastra', '@mastra/core', '@mastra/e2b')
  assert.match(await runRecipe('mastra', recipe('Mastra'), server, { url: server.url }), /^\d+ \/etc\/passwd\n/)
})

test('programs have a status, streams, a folder and an environment', needsNode, async (t) => {
  const sandbox = new E2BSandbox({ template: 'base', timeout: 60_000 })
  await sandbox._start()
  t.after(() => sandbox._destroy())
  const good = await sandbox.executeCommand('sh', ['-c', 'echo "$WORD"; pwd; echo e >&2'], { env: { WORD: 'a b' }, cwd: '/tmp' })
  assert.deepEqual([good.success, good.exitCode, good.stdout, good.stderr], [true, 0, 'a b\n/tmp\n', 'e\n'])
  const bad = await sandbox.executeCommand('sh', ['-c', 'exit 3'])
  assert.deepEqual([bad.success, bad.exitCode], [false, 3])
})

test('a program in the background is read and ended', needsNode, async (t) => {
  const sandbox = new E2BSandbox({ template: 'base', timeout: 60_000 })
  await sandbox._start()
  t.after(() => sandbox._destroy())
  const handle = await sandbox.processes.spawn('read line; echo "got $line"; exec sleep 100')
  await handle.sendStdin('a b\n')
  for (let n = 0; n < 100 && !handle.stdout.includes('got a b'); n++) await new Promise((resolve) => setTimeout(resolve, 50))
  assert.match(handle.stdout, /got a b/)
  assert.equal(await handle.kill(), true)
  assert.equal((await handle.wait()).success, false)
})
