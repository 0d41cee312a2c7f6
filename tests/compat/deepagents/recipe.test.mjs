// deepagents with a back end by E2B's client: the recipe of docs/integrations.md.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { assertVersions, calls, needsNode, recipe, runRecipe, says, startModel } from '../e2b/recipes.mjs'
import { serve } from '../e2b/server.mjs'

const server = await serve()

test('the recipe of deepagents', needsNode, async () => {
  assertVersions('deepagents', 'deepagents', 'langchain', 'e2b')
  const model = await startModel(
    calls(['write_file', { file_path: '/home/user/a b.txt', content: 'one\ntwo\n' }]),
    calls(['edit_file', { file_path: '/home/user/a b.txt', old_string: 'two', new_string: 'three' }]),
    calls(['execute', { command: 'wc -l < "a b.txt"; cat "a b.txt"; exit 3' }]),
    calls(['read_file', { file_path: '/home/user/a b.txt' }], ['ls', { path: '/home/user' }], ['grep', { pattern: 'three', path: '/home/user' }]),
    says())
  const said = await runRecipe('deepagents', recipe('deepagents'), server, model)
  const results = model.requests.at(-1).messages.filter((one) => one.role === 'tool').map((one) => JSON.stringify(one.content))
  assert.match(results[2], /2\\none\\nthree/)
  assert.match(results[2], /3/)
  assert.match(results[3], /three/)
  assert.match(results[4], /a b\.txt/)
  assert.match(said, /^It said: [^]*three/)
})
