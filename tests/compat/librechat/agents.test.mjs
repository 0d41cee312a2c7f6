// LibreChat's tools by its own package: programs, files from one call to the next, tools of the client in Python and Bash.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { assertVersions, canLoad, needsNode } from '../e2b/recipes.mjs'
import { BUILD, serve } from '../e2b/server.mjs'

const { createBashExecutionTool, createBashProgrammaticToolCallingTool, createCodeExecutionTool, createProgrammaticToolCallingTool, fetchSessionFiles,
  tool } = canLoad ? await import('@librechat/agents') : {}
const server = await serve()
const baseUrl = `${server.url}/librechat/v1`
const ID = /^[A-Za-z0-9_-]{21}$/

/** A key for one user of LibreChat. */
function makeKey(name) {
  const done = spawnSync(path.join(BUILD, 'caisson'), ['keys', 'create', '--name', name, '--tenant', name, '--scopes', 'run,files', '--set', `engine.state_dir=${server.folder}/state`], { encoding: 'utf8' })
  assert.equal(done.status, 0, done.stderr)
  return done.stdout.trim()
}

const key = makeKey('librechat')
const authHeaders = { 'X-API-Key': key }
const code = canLoad && createCodeExecutionTool({ baseUrl, authHeaders })
const bash = canLoad && createBashExecutionTool({ baseUrl, authHeaders })

/** A tool as the graph calls it: what the model reads, and what the host keeps. */
async function invoke(one, args, more = {}) {
  const message = await one.invoke({ type: 'tool_call', id: 'call_1', name: one.name, args, ...more }, { toolCall: { id: 'call_1', name: one.name, ...more } })
  return [message.content, message.artifact]
}

/** What the host gives to the next call. */
const inputs = (artifact) => artifact.files.map((one) => ({ kind: 'user', resource_id: 'me', ...one }))

const TOOLS = [
  { name: 'get-weather', description: 'The weather.', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }, allowed_callers: ['code_execution'] },
  { name: 'fail', description: 'Fails.', parameters: { type: 'object', properties: {} }, allowed_callers: ['code_execution'] },
]

function toolMap(asked) {
  const weather = tool(async ({ city }) => { asked.push(city); return { city, degrees: city.length } }, { name: 'get-weather', description: 'The weather.', schema: TOOLS[0].parameters })
  const fail = tool(async () => { throw new Error('there is no weather') }, { name: 'fail', description: 'Fails.', schema: TOOLS[1].parameters })
  return new Map([['get-weather', weather], ['fail', fail]])
}

test('a program in each language', needsNode, async () => {
  assert.match((await invoke(code, { lang: 'py', code: 'print(6 * 7)' }))[0], /^stdout:\n42/)
  assert.match((await invoke(code, { lang: 'js', code: 'console.log(6 * 7)' }))[0], /^stdout:\n42/)
  assert.match((await invoke(code, { lang: 'ts', code: 'const n: number = 42; console.log(n)' }))[0], /^stdout:\n42/)
  assert.match((await invoke(code, { lang: 'bash', code: 'echo "$1"', args: ['a b'] }))[0], /^stdout:\na b/)
  assert.match((await invoke(bash, { command: 'echo $((6 * 7))' }))[0], /^stdout:\n42/)
})

test('files go from one call to the next by their ids, changed in place or as they were', needsNode, async () => {
  const [text, made] = await invoke(code, { lang: 'py', code: 'import os\nos.makedirs("/mnt/data/plots")\nopen("/mnt/data/a.csv", "w").write("1\\n")\nopen("/mnt/data/plots/p.png", "wb").write(b"\\x89PNG")' })
  assert.match(text, /Session files: 2 persisted file\(s\) are available in \/mnt\/data, including 1 image/)
  assert.deepEqual(made.files.map((one) => one.name), ['a.csv', 'plots/p.png'])
  assert.ok([made.session_id, ...made.files.flatMap((one) => [one.id, one.storage_session_id, one.session_id])].every((id) => ID.test(id)))
  const [, changed] = await invoke(code, { lang: 'bash', code: 'cat /mnt/data/a.csv; echo 2 >> /mnt/data/a.csv' }, { session_id: made.session_id, _injected_files: inputs(made) })
  const [csv, png] = ['a.csv', 'plots/p.png'].map((name) => changed.files.find((one) => one.name === name))
  assert.equal(csv.modified_from.id, made.files[0].id)
  assert.equal(csv.modified_from.session_id, made.session_id)
  assert.notEqual(csv.id, made.files[0].id)
  assert.equal(csv.inherited, undefined)
  assert.equal(png.inherited, true)
  assert.equal(png.id, made.files[1].id)
  assert.equal(png.storage_session_id, made.session_id)
  assert.equal((await invoke(code, { lang: 'bash', code: 'cat a.csv' }, { _injected_files: inputs(changed) }))[0], 'stdout:\n1\n2')
  const listed = await fetchSessionFiles(baseUrl, made.session_id, { kind: 'user', id: 'me' }, authHeaders)
  assert.deepEqual(listed.map((one) => [one.id, one.name, one.storage_session_id]), made.files.map((one) => [one.id, one.name, made.session_id]))
})

test('a form of LibreChat becomes files of a program', needsNode, async () => {
  const form = new FormData()
  form.append('entity_id', 'asst_1')
  form.append('file', new Blob(['x,y\n1,2\n']), 'süß 1.csv')
  const uploaded = await (await fetch(`${baseUrl}/upload`, { method: 'POST', body: form, headers: { ...authHeaders, 'User-Id': 'me' } })).json()
  assert.equal(uploaded.message, 'success')
  const [{ fileId, filename }] = uploaded.files
  assert.ok(ID.test(fileId) && ID.test(uploaded.session_id))
  assert.equal(uploaded.storage_session_id, uploaded.session_id)
  // As primeFiles() asks for its age.
  const files = await (await fetch(`${baseUrl}/files/${uploaded.session_id}?detail=summary`, { headers: authHeaders })).json()
  const found = files.find((one) => one.name.startsWith(`${uploaded.session_id}/${fileId}`))
  assert.ok(Date.now() - new Date(found.lastModified) < 60_000)
  const object = await (await fetch(`${baseUrl}/sessions/${uploaded.session_id}/objects/${fileId}?kind=user&id=me`, { headers: authHeaders })).json()
  assert.equal(object.lastModified, found.lastModified)
  const given = [{ id: fileId, session_id: uploaded.session_id, name: filename }]     // the older name of the field
  const one = createCodeExecutionTool({ baseUrl, authHeaders, user_id: 'me', files: given })
  assert.equal((await invoke(one, { lang: 'py', code: 'print(open("/mnt/data/süß 1.csv").read())' }))[0], 'stdout:\nx,y\n1,2')
  const download = await fetch(`${baseUrl}/download/${uploaded.session_id}/${fileId}`, { headers: authHeaders })
  assert.equal(await download.text(), 'x,y\n1,2\n')
})

test('a skill is uploaded with its folders', needsNode, async () => {
  const form = new FormData()
  for (const name of ['skills/x/SKILL.md', 'skills/x/run.py']) form.append('file', new Blob([name]), name)
  form.append('kind', 'skill')
  form.append('id', 'x')
  form.append('version', '3')
  const uploaded = await (await fetch(`${baseUrl}/upload/batch`, { method: 'POST', body: form, headers: authHeaders })).json()
  assert.deepEqual([uploaded.message, uploaded.succeeded, uploaded.failed], ['success', 2, 0])
  const files = uploaded.files.map((one) => ({ id: one.fileId, resource_id: 'x', kind: 'skill', version: 3, storage_session_id: uploaded.storage_session_id, name: one.filename }))
  const [text, artifact] = await invoke(code, { lang: 'bash', code: 'cat /mnt/data/skills/x/SKILL.md' }, { _injected_files: files })
  assert.equal(text, 'stdout:\nskills/x/SKILL.md')
  assert.deepEqual(artifact.files.map((one) => [one.inherited, one.kind, one.resource_id, one.version]), [[true, 'skill', 'x', 3], [true, 'skill', 'x', 3]])
})

test('a program in Python calls tools of the client, at once and one after another', needsNode, async () => {
  const asked = []
  const ptc = createProgrammaticToolCallingTool({ baseUrl, authHeaders })
  const program = `
a, b = await asyncio.gather(get_weather(city="Oslo"), get_weather(city="Rome"))
c = await get_weather(city=f"x{a['degrees'] + b['degrees']}")
try:
    await fail()
except Exception as error:
    print(error)
with open("/mnt/data/w.json", "w") as file:
    json.dump([a, b, c], file)
print(c["city"])`
  const [text, artifact] = await invoke(ptc, { code: program }, { toolMap: toolMap(asked), toolDefs: TOOLS })
  assert.match(text, /^stdout:\nthere is no weather\nx8\n/)
  assert.deepEqual(asked.sort(), ['Oslo', 'Rome', 'x8'])
  assert.deepEqual(artifact.files.map((one) => one.name), ['w.json'])
  const [again] = await invoke(ptc, { code: 'print(json.load(open("/mnt/data/w.json"))[0], (await get_weather(city="Bonn"))["degrees"])' },
    { toolMap: toolMap(asked), toolDefs: TOOLS, _injected_files: inputs(artifact) })
  assert.match(again, /\{'city': 'Oslo', 'degrees': 4\} 4/)
})

test('a program in Bash calls tools of the client', needsNode, async () => {
  const asked = []
  const ptc = createBashProgrammaticToolCallingTool({ baseUrl, authHeaders })
  const program = `
{ one=$(get_weather '{"city": "Oslo"}'); printf '%s\\n' "$one" > /mnt/data/1.json; } &
{ two=$(get_weather '{"city": "Rome"}'); printf '%s\\n' "$two" > /mnt/data/2.json; } &
wait
cat /mnt/data/1.json /mnt/data/2.json
fail || echo "failed with $?"`
  const [text, artifact] = await invoke(ptc, { code: program }, { toolMap: toolMap(asked), toolDefs: TOOLS })
  assert.match(text, /"city": ?"Oslo"[^]*"city": ?"Rome"[^]*failed with 1/)
  assert.deepEqual(asked.sort(), ['Oslo', 'Rome'])
  assert.deepEqual(artifact.files.map((one) => one.name), ['1.json', '2.json'])
})

test('without tools a programmatic call is a program', needsNode, async () => {
  const ptc = createProgrammaticToolCallingTool({ baseUrl, authHeaders })
  const [text] = await invoke(ptc, { code: 'import asyncio\nawait asyncio.sleep(0)\nprint(1)', tool_manifest: [] }, { toolMap: new Map(), toolDefs: [] })
  assert.match(text, /^stdout:\n1/)
})

test('errors are those that the client knows', needsNode, async () => {
  const ptc = createProgrammaticToolCallingTool({ baseUrl, authHeaders, runTimeoutMs: 1000 })
  const more = { toolMap: toolMap([]), toolDefs: TOOLS }
  await assert.rejects(invoke(ptc, { code: 'while True: pass' }, more), /Execution exceeded the time limit/)
  await assert.rejects(invoke(ptc, { code: 'raise ValueError("x y")' }, more), /Execution exited with code 1\n[^]*ValueError: x y/)
  assert.match((await invoke(code, { lang: 'py', code: 'raise ValueError("x y")' }))[0], /stderr:\n[^]*ValueError: x y/)
  const wrong = createCodeExecutionTool({ baseUrl, authHeaders: { 'X-API-Key': `csn_${'0'.repeat(40)}` } })
  await assert.rejects(invoke(wrong, { lang: 'py', code: '1' }), /Code execution is not authorized/)
  await assert.rejects(invoke(code, { lang: 'rs', code: 'fn main() {}' }), /request was rejected/)
  const stateful = createCodeExecutionTool({ baseUrl, authHeaders, executionProfile: 'stateful' })
  await assert.rejects(invoke(stateful, { lang: 'py', code: '1' }), /does not provide the requested execution profile/)
})

test('another key sees neither files nor sessions', needsNode, async () => {
  const mallory = { 'X-API-Key': makeKey('mallory') }
  const [, made] = await invoke(code, { lang: 'bash', code: 'echo secret > /mnt/data/s.txt' })
  const { id } = made.files[0]
  assert.deepEqual(await fetchSessionFiles(baseUrl, made.session_id, { kind: 'user', id: 'me' }, mallory), [])
  for (const [method, where] of [['GET', `download/${made.session_id}/${id}`], ['GET', `sessions/${made.session_id}/objects/${id}`], ['DELETE', `files/${made.session_id}/${id}`]]) {
    const answer = await fetch(`${baseUrl}/${where}`, { method, headers: mallory })
    assert.equal(answer.status, 404)
    assert.deepEqual(Object.keys(await answer.json()), ['message'])
  }
  const theirs = createCodeExecutionTool({ baseUrl, authHeaders: mallory })
  await assert.rejects(invoke(theirs, { lang: 'bash', code: 'cat s.txt' }, { _injected_files: inputs(made) }), /temporarily unavailable/)
  assert.equal((await invoke(code, { lang: 'bash', code: 'cat s.txt' }, { _injected_files: inputs(made) }))[0], 'stdout:\nsecret')
})

test('docs/use/librechat.md has the address that this test uses', needsNode, () => {
  const page = readFileSync(path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../../docs/use/librechat.md'), 'utf8')
  assertVersions('librechat', '@librechat/agents')
  assert.match(page, /LIBRECHAT_CODE_BASEURL=http:\/\/127\.0\.0\.1:8080\/librechat\/v1\n/)
})
