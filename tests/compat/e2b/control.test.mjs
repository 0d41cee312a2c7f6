// E2B's control plane, by its own client: sandboxes are made, found, listed, kept and ended.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { NotFoundError, Sandbox } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'

import { ask, needsRoot, serve, sleep, until } from './server.mjs'

const server = await serve()
const { options } = server

/** A sandbox for one test. */
async function make(t, more = {}, Class = Sandbox) {
  const { template, ...rest } = more
  const sandbox = await Class.create(template ?? 'base', { ...options, ...rest })
  t.after(() => sandbox.kill())
  return sandbox
}

async function all(paginator) {
  const items = []
  while (paginator.hasNext) items.push(...await paginator.nextItems())
  return items
}

test('a sandbox is made, runs, and is gone once it is killed', async () => {
  const sandbox = await Sandbox.create({ ...options })
  assert.match(sandbox.sandboxId, /^i[a-z0-9]{20}$/)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal(await sandbox.kill(), false)
})

test('a client of a year ago makes one by the first version of the paths', async (t) => {
  const sandbox = await make(t, {}, OldSandbox)
  assert.equal(await sandbox.isRunning(), true)
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
})

test('what is known of a sandbox is told', async (t) => {
  const before = Date.now()
  const sandbox = await make(t, { timeoutMs: 60_000, metadata: { who: 'me', 'a key': 'a value' } })
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.equal(info.name, 'base')
  assert.equal(info.state, 'running')
  assert.deepEqual(info.metadata, { who: 'me', 'a key': 'a value' })
  assert.ok(info.startedAt.getTime() >= before - 5 && info.startedAt.getTime() <= Date.now())
  assert.ok(Math.abs(info.endAt - info.startedAt - 60_000) < 2000)
  assert.ok(info.cpuCount >= 1 && info.memoryMB >= 512)
  assert.equal(info.envdVersion, '0.6.13')
  assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false })
})

test('pip may install beside the packages of Debian, unless the client says otherwise', async (t) => {
  const say = async (one) => (await one.commands.run('echo $PIP_BREAK_SYSTEM_PACKAGES')).stdout
  assert.equal(await say(await make(t)), '1\n')
  assert.equal(await say(await make(t, { envs: { PIP_BREAK_SYSTEM_PACKAGES: '0' } })), '0\n')
})

test('programs inside know where they are, by their environment and by files', needsRoot, async (t) => {
  const marks = async (one) => (await one.commands.run('for name in E2B_SANDBOX E2B_SANDBOX_ID E2B_TEMPLATE_ID; do echo "${!name} $(cat /run/e2b/.$name)"; done; stat -c "%U %a" /run/e2b/.E2B_SANDBOX_ID')).stdout
  const expected = (one, { templateId }) => `true true\n${one.sandboxId} ${one.sandboxId}\n${templateId} ${templateId}\nroot 644\n`
  const sandbox = await make(t)
  const info = await sandbox.getInfo()
  assert.equal(await marks(sandbox), expected(sandbox, info))
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.equal(await marks(fork), expected(fork, info))
  await sandbox.commands.run('sudo rm -r /run/e2b && sudo ln -s /nowhere /run/e2b')
  await sandbox.pause({ keepMemory: false })
  await sandbox.connect()
  assert.equal((await sandbox.commands.run('readlink /run/e2b')).stdout, '/nowhere\n')
})

test('of one that is not there the client says so', async () => {
  await assert.rejects(Sandbox.getInfo('inothere', options), NotFoundError)
  await assert.rejects(Sandbox.connect('inothere', options), NotFoundError)
  assert.equal(await Sandbox.kill('inothere', options), false)
  const { status, body } = await ask(server, 'GET', '/sandboxes/inothere')
  assert.equal(status, 404)
  assert.equal(body.code, 404)
})

test('a template that is not there is named', async () => {
  await assert.rejects(Sandbox.create('no-such-template', options), { message: "404: template 'no-such-template' not found" })
})

test('a gateway for MCP that the host does not have is what is missing, and its sandbox goes', async () => {
  const metadata = { gateway: 'none' }
  await assert.rejects(Sandbox.create({ ...options, metadata, mcp: { nothing: {} } }), /Failed to start MCP gateway: .*mcp-gateway: command not found/)
  assert.deepEqual(await all(Sandbox.list({ ...options, query: { metadata } })), [])
})

test('the time of a sandbox can be set, shorter and longer', async (t) => {
  const sandbox = await make(t, { timeoutMs: 60_000 })
  for (const ms of [40_000, 600_000]) {
    const before = Date.now()
    await sandbox.setTimeout(ms)
    const after = Date.now(), { endAt } = await sandbox.getInfo()
    assert.ok(endAt >= before + ms - 5 && endAt <= after + ms, `${endAt - before}, ${endAt - after}`)
  }
})

test('to connect lengthens the life of a sandbox and never shortens it', async (t) => {
  const sandbox = await make(t, { timeoutMs: 100_000 })
  const { endAt } = await sandbox.getInfo()
  await Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 10_000 })
  assert.deepEqual((await sandbox.getInfo()).endAt, endAt)
  const again = await Sandbox.connect(sandbox.sandboxId, { ...options, timeoutMs: 200_000 })
  assert.equal(again.sandboxId, sandbox.sandboxId)
  assert.ok((await again.getInfo()).endAt - endAt >= 100_000)
})

test('at its end a sandbox is gone', async () => {
  const sandbox = await Sandbox.create({ ...options, timeoutMs: 60_000 })
  await sandbox.setTimeout(200)
  await until(async () => !(await sandbox.isRunning()))
  await assert.rejects(sandbox.getInfo(), NotFoundError)
})

test('a time that is too long, or none, is refused with its limit', async (t) => {
  const sandbox = await make(t)
  for (const timeout of [-1, 86401, 'soon']) {
    const { status, body } = await ask(server, 'POST', `/sandboxes/${sandbox.sandboxId}/timeout`, { timeout })
    assert.equal(status, 400)
    assert.match(body.message, /timeout has to be a number of seconds from 0 to 86400/)
  }
})

test('a time that is forgotten, or none, changes nothing', async (t) => {
  const sandbox = await make(t, { timeoutMs: 600_000 })
  const { endAt } = await sandbox.getInfo()
  for (const [body, shown] of [[{}, 'missing'], [{ timeout: null }, 'null'], [{ timeOut: 3600 }, 'missing'], [{ timeout: '5' }, '"5"'], [undefined, 'missing']]) {
    const got = await ask(server, 'POST', `/sandboxes/${sandbox.sandboxId}/timeout`, body)
    assert.deepEqual([got.status, got.body.code], [400, 400])
    assert.match(got.body.message, new RegExp(`timeout has to be a number of seconds from 0 to 86400; it is ${shown}`))
  }
  assert.deepEqual((await sandbox.getInfo()).endAt, endAt)
})

test('sandboxes are listed, newest first, with what is known of them', async (t) => {
  const mark = { list: `${Math.random()}` }
  const made = []
  for (let i = 0; i < 3; i++) made.push(await make(t, { metadata: { ...mark, n: `${i}` } }))
  const ids = made.map((one) => one.sandboxId)
  const listed = await all(Sandbox.list({ ...options, query: { metadata: mark } }))
  assert.deepEqual(listed.map((one) => one.sandboxId), ids.toReversed())
  assert.deepEqual(listed[0].metadata, { ...mark, n: '2' })
  assert.equal(listed[0].state, 'running')
  const one = await all(Sandbox.list({ ...options, query: { metadata: { ...mark, n: '1' } } }))
  assert.deepEqual(one.map((it) => it.sandboxId), [ids[1]])
})

test('a list comes in pages', async (t) => {
  const mark = { page: `${Math.random()}` }
  for (let i = 0; i < 3; i++) await make(t, { metadata: mark })
  const paginator = Sandbox.list({ ...options, limit: 2, query: { metadata: mark } })
  assert.equal((await paginator.nextItems()).length, 2)
  assert.equal(paginator.hasNext, true)
  assert.equal((await paginator.nextItems()).length, 1)
  assert.equal(paginator.hasNext, false)
})

test('metadata of any letters is found', async (t) => {
  const metadata = { 'k 1&=%+ä/?': 'v 2&=%+ö/?' }
  const sandbox = await make(t, { metadata })
  const listed = await all(Sandbox.list({ ...options, query: { metadata } }))
  assert.deepEqual(listed.map((one) => one.sandboxId), [sandbox.sandboxId])
  assert.deepEqual(listed[0].metadata, metadata)
})

test('a sandbox that is paused stands still, is listed as such, and goes on when one connects', async (t) => {
  const mark = { paused: `${Math.random()}` }
  const sandbox = await make(t, { metadata: mark })
  assert.equal(await sandbox.pause(), true)
  assert.equal(await sandbox.pause(), false)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal((await Sandbox.getInfo(sandbox.sandboxId, options)).state, 'paused')
  const states = async (...state) => (await all(Sandbox.list({ ...options, query: { metadata: mark, state } }))).length
  assert.equal(await states('paused'), 1)
  assert.equal(await states('running'), 0)
  assert.equal(await states('running', 'paused'), 1)
  const again = await Sandbox.connect(sandbox.sandboxId, options)
  assert.equal(await again.isRunning(), true)
  assert.equal(await states('running'), 1)
})

test('a program that was just started has a quarter of a second before its sandbox stands still', async (t) => {
  const sandbox = await make(t)
  const before = performance.now()
  const { pid } = await sandbox.commands.run('sleep 1000', { background: true })
  assert.equal(await sandbox.pause(), true)
  assert.ok(performance.now() - before >= 249)
  await sandbox.connect()
  assert.ok((await sandbox.commands.list()).some((one) => one.pid === pid))
  await sandbox.commands.run('sleep 1000', { background: true })
  await Promise.all([sandbox.pause().catch(() => {}), sandbox.kill()])
  assert.equal(await sandbox.isRunning(), false)
})

test('a paused sandbox can be killed', async () => {
  const sandbox = await Sandbox.create(options)
  await sandbox.pause()
  assert.equal(await sandbox.kill(), true)
  await assert.rejects(Sandbox.connect(sandbox.sandboxId, options), NotFoundError)
})

test('one that pauses at its end is there afterwards', async (t) => {
  const sandbox = await make(t, { timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: false } })
  await sandbox.setTimeout(200)
  await until(async () => (await Sandbox.getInfo(sandbox.sandboxId, options)).state === 'paused')
  await sleep(300)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal((await sandbox.getInfo()).lifecycle.onTimeout, 'pause')
})

test('one that resumes by itself is woken by what is sent to it', async (t) => {
  const sandbox = await make(t, { timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: true } })
  await sandbox.pause()
  assert.equal((await sandbox.getInfo()).state, 'paused')
  assert.equal(await sandbox.isRunning(), true)
  assert.equal((await sandbox.getInfo()).state, 'running')
})

test('a request without a key is refused, in words that the client knows', async () => {
  const answer = await fetch(`${server.url}/v2/sandboxes`)
  assert.equal(answer.status, 401)
  assert.equal((await answer.json()).code, 401)
})

test('a sandbox that is gone answers 502, and says that it was not found', async () => {
  const { status, body } = await ask(server, 'GET', '/health', undefined, { 'E2b-Sandbox-Id': 'inothere', 'E2b-Sandbox-Port': '49983' })
  assert.equal(status, 502)
  assert.deepEqual(body, { code: 502, message: 'The sandbox was not found', sandboxId: 'inothere' })
})

test('the server says that it is well', async () => {
  assert.equal((await ask(server, 'GET', '/health')).status, 200)
})

test('what is no JSON, and what has the wrong type, is refused with its name', async () => {
  const answer = await fetch(`${server.url}/v2/sandboxes`, { method: 'POST', headers: { 'X-API-Key': 'x' }, body: '{' })
  assert.equal(answer.status, 400)
  for (const [body, word] of [[{}, /templateID/], [{ templateID: 'base', metadata: [] }, /metadata/], [{ templateID: 'base', envVars: { A: 1 } }, /envVars/],
    [{ templateID: 'base', timeout: 'x' }, /timeout.*it is "x"/], [{ templateID: 'base', timeout: '5' }, /timeout.*it is "5"/], [{ templateID: 5 }, /templateID is 5; it has to be a text/],
    [{ templateID: 'base', secure: 'no' }, /secure is "no"; it has to be true or false/], [{ templateID: 'base', autoResume: 'x' }, /autoResume is "x"; it has to be an object/],
    [{ templateID: 'base', autoResume: { enabled: 1 } }, /autoResume\.enabled is 1/], [{ templateID: 'base', autoPause: 'yes' }, /autoPause is "yes"/],
    [{ templateID: 'base', network: [] }, /network is \[\]/], [{ templateID: 'base', network: { allowPublicTraffic: 'no' } }, /network\.allowPublicTraffic/],
    [{ templateID: 'base', volumeMounts: [{ name: 'data', path: '/data' }] }, /volume mounts are not enabled/], [{ templateID: 'base', volumeMounts: 5 }, /volume mounts/]]) {
    for (const version of ['/v2', '']) {
      const got = await ask(server, 'POST', `${version}/sandboxes`, body)
      assert.deepEqual([got.status, got.body.code], [400, 400])
      assert.match(got.body.message, word)
    }
  }
})

test('members that are null, and others that are unknown, are as none', async () => {
  const names = ['timeout', 'secure', 'network', 'metadata', 'envVars', 'autoPause', 'autoPauseMemory', 'autoResume', 'allow_internet_access', 'volumeMounts', 'mcp', 'iam']
  const got = await ask(server, 'POST', '/v2/sandboxes', { templateID: 'base', ...Object.fromEntries(names.map((name) => [name, null])), of: { the: 'future' } })
  assert.equal(got.status, 201)
  const where = `/sandboxes/${got.body.sandboxID}`
  assert.equal((await ask(server, 'POST', `/v2${where}/connect`, { timeout: null, memory: null, more: 1 })).status, 200)
  assert.equal((await ask(server, 'DELETE', where)).status, 204)
})

test('what is asked of a list, of logs and of metrics has its kind', async (t) => {
  const where = `/sandboxes/${(await make(t)).sandboxId}`
  for (const [path, word] of [['/v2/sandboxes?state=foo', /state is "foo"/], ['/v2/sandboxes?state=running,foo', /state is "running,foo"/], [`${where}/logs?start=x`, /start is "x"/],
    [`/v2${where}/logs?cursor=x`, /cursor is "x"/], [`${where}/logs?limit=-1`, /limit is "-1"/], [`${where}/metrics?start=x`, /start is "x"/], [`${where}/metrics?end=1e9`, /end is "1e9"/]]) {
    const got = await ask(server, 'GET', path)
    assert.deepEqual([got.status, got.body.code], [400, 400])
    assert.match(got.body.message, word)
  }
  for (const [path, body, word] of [['pause', { memory: 'x' }, /memory is "x"/], ['connect', { memory: 1 }, /memory is 1/], ['fork', { count: 'x' }, /count is "x"/],
    ['fork', { count: 0 }, /count is 0/], ['snapshots', { name: 5 }, /name is 5/]]) {
    const got = await ask(server, 'POST', `${where}/${path}`, body)
    assert.deepEqual([got.status, got.body.code], [400, 400])
    assert.match(got.body.message, word)
  }
})

test('what is not there is told in words of E2B, too', async () => {
  for (const path of ['/volumes', '/volumes/x', '/secrets', '/teams', '/v2/nothing', '/v3/nothing', '/sandboxes/a/b/c', '/templates/a/b/c/d/e', '/snapshots/x']) {
    const got = await ask(server, 'GET', path)
    assert.deepEqual([got.status, got.body.code, typeof got.body.message], [404, 404, 'string'])
  }
  assert.equal((await ask(server, 'PUT', '/sandboxes')).body.code, 405)
  assert.equal((await ask(server, 'GET', '/v1/nothing')).body.code, 'not_found')
})

test('a port that is none is refused', async (t) => {
  const sandbox = await make(t)
  for (const port of ['abc', '99999', '0', '', '49983x', '-1']) {
    const got = await ask(server, 'GET', '/health', undefined, { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': port })
    assert.deepEqual([got.status, got.body.code], [400, 400])
    assert.match(got.body.message, /Invalid sandbox port/)
  }
})

test('what is kept of a request has a length', async () => {
  for (const [name, value] of [['metadata', { a: 'x'.repeat(70_000) }], ['envVars', { A: 'x'.repeat(70_000) }], ['network', { allowOut: ['x'.repeat(70_000)] }]]) {
    const answer = await ask(server, 'POST', '/v2/sandboxes', { templateID: 'base', [name]: value })
    assert.equal(answer.status, 400)
    assert.match(answer.body.message, new RegExp(name))
  }
})

test('a new sandbox has some time', async () => {
  const answer = await ask(server, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 0 })
  assert.equal(answer.status, 400)
  assert.match(answer.body.message, /timeout is 0/)
})

test('a filter that is no text finds nothing, and not everything', async () => {
  const answer = await ask(server, 'GET', '/v2/sandboxes?metadata=a%3D%2525ff')
  assert.equal(answer.status, 400)
  assert.match(answer.body.message, /metadata/)
})
