// The AI SDK with a tool that runs commands by E2B's client: the recipe of docs/integrations.md.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { assertVersions, calls, needsNode, recipe, runRecipe, says, startModel } from '../e2b/recipes.mjs'
import { serve } from '../e2b/server.mjs'

const server = await serve()

test('the recipe of the AI SDK', needsNode, async () => {
  assertVersions('ai-sdk', 'ai', '@ai-sdk/openai-compatible', 'e2b')
  const model = await startModel(calls(['shell', { command: 'wc -l < /etc/passwd; exit 3' }]), calls(['shell', { command: 'echo $((6 * 7))' }]), says())
  const said = await runRecipe('ai-sdk', recipe('AI SDK'), server, model)
  const [, failed, good] = model.requests.map(({ messages }) => JSON.parse(messages.at(-1).role === 'tool' ? messages.at(-1).content : 'null'))
  assert.deepEqual([failed.exitCode, failed.stdout.trim()], [3, '3'])
  assert.deepEqual([good.exitCode, good.stdout], [0, '42\n'])
  assert.match(said, /^It said: .*42/)
})
