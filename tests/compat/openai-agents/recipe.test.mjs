// OpenAI Agents with its own client of E2B: the recipe of docs/integrations.md, and what else that client does.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { assertVersions, calls, needsNode, recipe, runRecipe, says, startModel } from '../e2b/recipes.mjs'
import { serve } from '../e2b/server.mjs'

const server = await serve()

test('the recipe of OpenAI Agents', needsNode, async () => {
  assertVersions('openai-agents', '@openai/agents', '@openai/agents-extensions', 'e2b')
  const model = await startModel(calls(['exec_command', { cmd: 'pwd; echo $((6 * 7)); exit 3' }]), says())
  const said = await runRecipe('openai-agents', recipe('OpenAI Agents'), server, model)
  assert.match(said, /^It said: [^]*Process exited with code 3[^]*\/workspace\n42/)
})
