// What others' programs make of /openapi.json: two linters, and a client that is generated from it.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'

import SwaggerParser from '@apidevtools/swagger-parser'
import createClient from 'openapi-fetch'

import { serve } from '../mcp/server.mjs'

const OURS = path.dirname(new URL(import.meta.url).pathname)
const BIN = path.join(OURS, 'node_modules', '.bin')
let daemon, folder, file

before(async () => {
  daemon = await serve()
  folder = mkdtempSync(path.join(OURS, 'node_modules', '.description-'))
  file = path.join(folder, 'openapi.json')
  writeFileSync(file, await (await fetch(`${daemon.base}/openapi.json`)).text())
})
after(() => rmSync(folder, { recursive: true, force: true }))

test('the linter of Redocly has nothing to say', () => {
  for (const name of ['redocly.yaml', '.redocly.lint-ignore.yaml']) copyFileSync(path.join(OURS, name), path.join(folder, name))
  const done = spawnSync(path.join(BIN, 'redocly'), ['lint', '--format', 'json', '--config', 'redocly.yaml', 'openapi.json'],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } })
  const found = JSON.parse(done.stdout.slice(done.stdout.indexOf('{')))
  assert.deepEqual(found.problems.filter((one) => !one.ignored).map((one) => `${one.ruleId}: ${one.message}`), [])
  assert.equal(found.totals.ignored, 5)
})

test('the linter finds a fault that is put in', async () => {
  const broken = JSON.parse(await (await fetch(`${daemon.base}/openapi.json`)).text())
  broken.paths['/v1/runs/{id}'].get.parameters[0].in = 'nowhere'
  writeFileSync(path.join(folder, 'broken.json'), JSON.stringify(broken))
  assert.equal(spawnSync(path.join(BIN, 'redocly'), ['lint', 'broken.json'], { cwd: folder }).status, 1)
  await assert.rejects(SwaggerParser.validate(path.join(folder, 'broken.json')))
})

test('swagger-parser takes the description', async () => {
  const description = await SwaggerParser.validate(file)
  assert.ok(Object.keys(description.paths).length > 50)
})

test('types are generated, and a program that uses them wrongly is no TypeScript', () => {
  // Without that option a member that has a default could not be left out.
  execFileSync(path.join(BIN, 'openapi-typescript'), [file, '--default-non-nullable=false', '-o', path.join(folder, 'api.ts')], { stdio: 'pipe' })
  const check = (name, text) => {
    writeFileSync(path.join(folder, name), text)
    return spawnSync(path.join(BIN, 'tsc'), ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext', name],
      { cwd: folder, encoding: 'utf8' })
  }
  const begin = `import createClient from 'openapi-fetch'
import type { paths } from './api.js'
const client = createClient<paths>({ baseUrl: 'http://localhost' })
`
  writeFileSync(path.join(folder, 'package.json'), '{"type": "module"}')
  const good = check('good.ts', `${begin}
const { data, error } = await client.POST('/v1/runs', { body: { language: 'python', code: 'print(1)' } })
if (error) {
  const field: string | undefined = error.field, status: number = error.status
  console.log(field, status)
} else if (typeof data === 'object' && 'stdout' in data) {
  const text: string = data.stdout
  console.log(text)
}
`)
  assert.equal(good.status, 0, good.stdout)
  const bad = check('bad.ts', `${begin}
await client.POST('/v1/runs', { body: { language: 'python', code: 1 } })
await client.GET('/v1/nothing', {})
`)
  assert.equal(bad.status, 2, bad.stdout)
  assert.match(bad.stdout, /bad\.ts\(5,.*'number'/)
  assert.match(bad.stdout, /bad\.ts\(6,.*nothing/)
})

test('a run, a file and a problem by the generated client', async () => {
  const client = createClient({ baseUrl: daemon.base })
  const run = await client.POST('/v1/runs', { body: { language: 'python', code: 'print(6 * 7)' } })
  assert.equal(run.response.status, 200)
  assert.deepEqual([run.data.status, run.data.stdout], ['completed', '42\n'])

  const kept = await client.POST('/v1/files', { params: { query: { name: 'notes.txt' } }, body: 'hello', bodySerializer: (body) => body,
    headers: { 'Content-Type': 'application/octet-stream' } })
  assert.equal(kept.response.status, 201)
  const read = await client.GET('/v1/files/{id}', { params: { path: { id: kept.data.id } }, parseAs: 'text' })
  assert.equal(read.data, 'hello')

  const { data, error, response } = await client.POST('/v1/runs', { body: { language: 'python', code: 'print(1)', limits: { wall_ms: -1 } } })
  assert.equal(data, undefined)
  assert.deepEqual([response.status, error.code, error.field, error.retryable], [422, 'bad_request', '/limits/wall_ms', false])
  assert.equal((await fetch(new URL(error.type, daemon.base))).status, 200)
})
