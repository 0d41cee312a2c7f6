// Files of a sandbox that are kept, or go into others: snapshots, forks, and pauses without memory.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { NotFoundError, Sandbox, SandboxNotFoundError, Template } from 'e2b'

import { ask, inside, needsRoot, serve } from './server.mjs'

const server = await serve()
const { options } = server

const BOOT_ID = 'cat /proc/sys/kernel/random/boot_id'

async function make(t, template = 'base', more = {}) {
  const sandbox = await Sandbox.create(template, { ...options, ...more })
  t.after(() => sandbox.kill())
  return sandbox
}

async function snapshot(t, sandbox, more) {
  const made = await sandbox.createSnapshot(more)
  t.after(() => Sandbox.deleteSnapshot(made.snapshotId, options))
  return made
}

/** What a command printed, which has to end well. */
async function out(sandbox, command, user) {
  const record = await inside(server, sandbox.sandboxId, command, user)
  assert.equal(record.exit_code, 0, record.stderr)
  return record.stdout
}

async function ids(query) {
  const paginator = Sandbox.listSnapshots({ ...options, ...query })
  const found = []
  while (paginator.hasNext) found.push(...await paginator.nextItems())
  return found.map((one) => one.snapshotId)
}

test('a fork has the files of its sandbox, and both go on by themselves', async (t) => {
  const sandbox = await make(t)
  await out(sandbox, 'echo before >state', 'user')
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.notEqual(fork.sandboxId, sandbox.sandboxId)
  assert.equal(await fork.isRunning(), true)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal(await out(fork, 'cat state', 'user'), 'before\n')
  await out(fork, 'echo after >state', 'user')
  assert.equal(await out(sandbox, 'cat state', 'user'), 'before\n')
})

test('a fork has all files that root changed, wherever they are, and lacks those that are gone', needsRoot, async (t) => {
  const sandbox = await make(t)
  await out(sandbox, `set -e
    echo tool >/usr/local/bin/tool; chmod 4755 /usr/local/bin/tool; rm -rf /usr/share/doc/bash /etc/hostname
    mkdir -p /srv/a/b; mkfifo /srv/a/fifo; ln -s nowhere /srv/a/link; chown user /srv/a/b
    python3 -c 'import os; os.setxattr("/etc/passwd", "user.mark", b"1")'
    echo "odd" >"/tmp/a name
with a line feed"; echo conf >>/etc/hosts`)
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.equal(await out(fork, `set -e
    cat /usr/local/bin/tool; ls -d /usr/share/doc/bash /etc/hostname 2>&1 | wc -l; stat -c '%F %U' /srv/a/b /srv/a/fifo; readlink /srv/a/link
    python3 -c 'import os; print(os.getxattr("/etc/passwd", "user.mark"))'
    cat "/tmp/a name
with a line feed"; tail -1 /etc/hosts`), "tool\n2\ndirectory user\nfifo root\nnowhere\nb'1'\nodd\nconf\n")
})

test('names in / go along, those that are gone too', needsRoot, async (t) => {
  const sandbox = await make(t)
  await sandbox.files.write('/app/src/main', 'of user')
  await out(sandbox, 'mkdir -m 700 "/a data" /-n /.hidden; echo kept >"/a data/file"; ln -s /app/src /current; rmdir /mnt; rm -rf /srv; echo a file >/srv')
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.equal(await out(fork, 'cat /current/main "/a data/file" /srv; stat -c "%a %U %n" "/a data" /-n /.hidden /app/src; ls -d /mnt 2>&1 | wc -w'),
    'of userkept\na file\n700 root /a data\n700 root /-n\n700 root /.hidden\n755 user /app/src\n9\n')
  await fork.pause({ keepMemory: false })
  await fork.connect()
  assert.equal(await out(fork, 'cat /current/main /srv'), 'of usera file\n')
})

test('several forks are made at once, with the time that was asked for', async (t) => {
  const sandbox = await make(t)
  const forks = await sandbox.fork({ count: 3, timeoutMs: 60_000 })
  t.after(() => Promise.all(forks.map((one) => one.kill())))
  assert.equal(new Set(forks.map((one) => one.sandboxId)).size, 3)
  const info = await forks[2].getInfo()
  assert.ok(Math.abs(info.endAt - info.startedAt - 60_000) < 2000)
})

test('one that was killed cannot be forked, and none of a wrong number', async (t) => {
  const sandbox = await make(t)
  for (const count of [0, 101, 'x']) assert.equal((await ask(server, 'POST', `/sandboxes/${sandbox.sandboxId}/fork`, { count })).status, 400)
  await assert.rejects(Sandbox.fork('inothere', { ...options, count: 0 }), /count/)
  await sandbox.kill()
  await assert.rejects(sandbox.fork(), SandboxNotFoundError)
})

test('a fork has what its sandbox was made with', async (t) => {
  const sandbox = await make(t, 'base', { metadata: { a: 'b' }, envs: { WHO: 'me' } })
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.deepEqual((await fork.getInfo()).metadata, { a: 'b' })
  assert.equal(await out(fork, 'echo $WHO $E2B_SANDBOX_ID', 'user'), `me ${fork.sandboxId}\n`)
})

test('sandboxes are made of a snapshot, and of its name', async (t) => {
  const sandbox = await make(t)
  await out(sandbox, 'echo kept >file', 'user')
  const kept = await snapshot(t, sandbox, { name: 'my-snap.1' })
  assert.deepEqual(kept.names, ['my-snap.1:default'])
  for (const name of [kept.snapshotId, 'my-snap.1', 'my-snap.1:default', 'team/my-snap.1:default']) {
    const made = await make(t, name)
    assert.equal(await out(made, 'cat file', 'user'), 'kept\n')
  }
})

test('snapshots outlive their sandbox', async (t) => {
  const sandbox = await make(t)
  await out(sandbox, 'echo kept >file', 'user')
  const kept = await snapshot(t, sandbox)
  await sandbox.kill()
  assert.equal(await out(await make(t, kept.snapshotId), 'cat file', 'user'), 'kept\n')
})

test('snapshots are listed by pages, by sandbox and by name, and deleted once', async (t) => {
  const sandbox = await make(t)
  const kept = []
  for (const name of ['one', 'two', undefined]) kept.push(await snapshot(t, sandbox, { name }))
  const own = kept.map((one) => one.snapshotId)
  assert.deepEqual(await ids({ sandboxId: sandbox.sandboxId, limit: 2 }), own.toReversed())
  assert.deepEqual(await ids({ name: 'two' }), [own[1]])
  assert.deepEqual(await ids({ name: 'three' }), [])
  assert.equal(await Sandbox.deleteSnapshot(own[0], options), true)
  assert.equal(await Sandbox.deleteSnapshot(own[0], options), false)
  assert.ok(!(await ids({})).includes(own[0]))
})

test('a snapshot has a name of few letters, or none', async (t) => {
  const sandbox = await make(t)
  for (const name of ['', 'a/b', 'x'.repeat(129), 7]) assert.equal((await ask(server, 'POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, { name })).status, 400)
  await assert.rejects(Sandbox.createSnapshot('inothere', options), NotFoundError)
})

test('paused without its memory a sandbox costs none, and has its files when it goes on', needsRoot, async (t) => {
  const sandbox = await make(t)
  await out(sandbox, 'echo kept >file; sleep 1000 >/dev/null 2>&1 &', 'user')
  const before = await out(sandbox, BOOT_ID)
  assert.equal(await sandbox.pause({ keepMemory: false }), true)
  assert.equal(await sandbox.isRunning(), false)
  assert.equal((await sandbox.getInfo()).state, 'paused')
  const { sandboxes } = await (await fetch(`${server.url}/v1/sandboxes`)).json()
  assert.ok(!sandboxes.some((one) => one.labels.e2b === sandbox.sandboxId))
  const again = await sandbox.connect()
  assert.equal(again.sandboxId, sandbox.sandboxId)
  assert.equal(await sandbox.isRunning(), true)
  assert.equal(await out(sandbox, 'cat file; pgrep -c sleep || true', 'user'), 'kept\n0\n')
  assert.notEqual(await out(sandbox, BOOT_ID), before)
})

test('one that is paused without its memory can be killed', async () => {
  const sandbox = await Sandbox.create(options)
  await sandbox.pause({ keepMemory: false })
  assert.equal(await sandbox.kill(), true)
  assert.equal(await sandbox.kill(), false)
})

test('a paused sandbox for which there is no room stays paused, with its files', needsRoot, async (t) => {
  const small = await serve('engine.uid_count=4000', 'engine.uid_first=2600000000')   // one block of ids, for one sandbox with root
  const first = await Sandbox.create('base', small.options)
  await first.files.write('file', 'kept')
  await first.pause({ keepMemory: false })
  const second = await Sandbox.create('base', small.options)
  await assert.rejects(first.connect())
  await second.kill()
  t.after(() => first.kill())
  assert.equal((await first.getInfo()).state, 'paused')
  await first.connect()
  assert.equal(await first.files.read('file'), 'kept')
})

test('a sandbox tells what it uses now, and nothing of a time when it was not there', async (t) => {
  const sandbox = await make(t)
  await out(sandbox, 'head -c 5000000 /dev/urandom >big', 'user')
  const [metric] = await sandbox.getMetrics()
  assert.ok(metric.memUsed > 5e6 && metric.memUsed < metric.memTotal)
  assert.ok(metric.diskUsed >= 5e6 && metric.diskUsed < metric.diskTotal)
  assert.ok(metric.cpuCount >= 1 && metric.cpuUsedPct >= 0)
  const hour = 3600_000
  assert.deepEqual(await sandbox.getMetrics({ start: new Date(Date.now() - 2 * hour), end: new Date(Date.now() - hour) }), [])
  assert.equal((await sandbox.getMetrics({ start: new Date(Date.now() - hour), end: new Date() })).length, 1)
})

test('the templates of this server are there, and others are not', async () => {
  assert.equal(await Template.exists('base', options), true)
  assert.equal(await Template.exists('code-interpreter-v1', options), true)
  assert.equal(await Template.exists('not-there', options), false)
  const { body } = await ask(server, 'GET', '/v2/templates')
  assert.deepEqual(body.map((one) => one.names[0]), ['base', 'code-interpreter-v1', 'mcp-gateway'])
  assert.equal((await ask(server, 'DELETE', '/templates/base')).status, 403)
})
