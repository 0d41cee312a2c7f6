// Templates that are built here: steps, files, layers that are there already, tags, and what runs in each sandbox.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'

import { BuildError, Sandbox, Template, waitForFile, waitForPort, waitForTimeout } from 'e2b'

import { ask, needsRoot, serve, until } from './server.mjs'

const server = await serve()
const { options } = server

const folder = mkdtempSync(path.join(tmpdir(), 'caisson-context-'))
after(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(path.join(folder, 'src/deep'), { recursive: true })
writeFileSync(path.join(folder, 'one.txt'), 'one\n')
writeFileSync(path.join(folder, 'two.txt'), 'two\n')
writeFileSync(path.join(folder, 'src/main.py'), 'print("main")\n')
writeFileSync(path.join(folder, 'src/deep/.hidden'), 'hidden\n')
symlinkSync('main.py', path.join(folder, 'src/link.py'))

let made = 0
const unique = () => `mine-${++made}`
const context = () => Template({ fileContextPath: folder })

/** A template, and the lines of its log. */
async function build(template, name = unique(), more = {}) {
  const lines = []
  const info = await Template.build(template, name, { ...options, onBuildLogs: (one) => lines.push(one.message), ...more })
  return { ...info, name, lines, log: lines.join('\n') }
}

async function start(t, name, more = {}) {
  const sandbox = await Sandbox.create(name, { ...options, ...more })
  t.after(() => sandbox.kill())
  return sandbox
}

/** What a command printed there. */
const out = async (sandbox, command, more) => (await sandbox.commands.run(command, more)).stdout

async function fails(template, step, words) {
  const name = unique()
  await assert.rejects(build(template, name), (error) => error instanceof BuildError && words.test(error.message))
  const { body } = await ask(server, 'GET', `/templates/${name}`)
  assert.equal(body.buildStatus, 'error')
  const status = await ask(server, 'GET', `/templates/${name}/builds/${body.buildID}/status`)
  assert.equal(status.body.status, 'error')
  assert.equal(status.body.reason.step, step)
  await assert.rejects(Sandbox.create(name, options), /no build that is ready/)
}

test('steps change files, which every sandbox of the template has', needsRoot, async (t) => {
  const { name, log, templateId, buildId } = await build(Template().fromBaseImage().runCmd('echo built > made.txt; id -un > who.txt')
    .runCmd('echo root > /opt/made && id -un', { user: 'root' }))
  assert.match(log, /\[builder 1\/2\] RUN echo built/)
  assert.match(log, /\[builder 2\/2\] \[stdout\]: root/)
  for (let i = 0; i < 2; i++) {
    const sandbox = await start(t, name)
    assert.equal(await out(sandbox, 'cat made.txt who.txt /opt/made; stat -c %U made.txt /opt/made'), 'built\nuser\nroot\nuser\nroot\n')
    const info = await sandbox.getInfo()
    assert.equal(info.templateId, templateId)
    assert.equal(info.name, name)
  }
  assert.equal((await start(t, templateId)) instanceof Sandbox, true)
  assert.match(buildId, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('environment, user and working folder are those of its sandboxes', needsRoot, async (t) => {
  const { name } = await build(Template().fromBaseImage().setEnvs({ ONE: '1', TWO: 'a b' }).setWorkdir('/app').runCmd('echo "$ONE-$TWO $PWD" > here')
    .setWorkdir('below').setUser('root').runCmd('pwd > there'))
  const sandbox = await start(t, name, { envs: { TWO: 'mine' } })
  assert.equal(await out(sandbox, 'cat ../here there; id -un; pwd; echo $ONE $TWO'), '1-a b /app\n/app/below\nroot\n/app/below\n1 mine\n')
  assert.equal(await sandbox.files.read('there'), '/app/below\n')
  assert.equal(await out(sandbox, 'id -un; stat -c %U /app', { user: 'user' }), 'user\nuser\n')
})

test('files and folders of the client are copied', needsRoot, async (t) => {
  const { name } = await build(context().fromBaseImage().copy('one.txt', 'renamed.txt').copy('one.txt', '/data/').copy('*.txt', 'many')
    .copy('src', '/app', { user: 'root' }).copy('two.txt', 'strict.txt', { mode: 0o600 }).copy('.', 'all')
    .copyItems([{ src: 'src/deep', dest: 'deep' }]))
  const sandbox = await start(t, name)
  assert.equal(await out(sandbox, 'cat renamed.txt /data/one.txt many/*; cat /app/deep/.hidden all/src/deep/.hidden deep/.hidden'), 'one\none\none\ntwo\nhidden\nhidden\nhidden\n')
  assert.equal(await out(sandbox, 'python3 /app/link.py; readlink /app/link.py; stat -c "%U %a" renamed.txt /app/main.py strict.txt /data/one.txt'),
    'main\nmain.py\nuser 644\nroot 644\nuser 600\nuser 644\n')
  assert.equal(await out(sandbox, 'ls -A /tmp'), '')
})

test('a step that is there already is not done again', needsRoot, async () => {
  const template = (last) => Template().fromBaseImage().runCmd('date +%N > when').setEnvs({ A: 'b' }).runCmd(`echo ${last}`)
  const first = await build(template('first'))
  assert.doesNotMatch(first.log, /CACHED/)
  const again = await build(template('first'))
  assert.equal(again.log.match(/CACHED/g).length, 2)
  const other = await build(template('second'))
  assert.match(other.log, /CACHED \[builder 1\/3\]/)
  assert.match(other.log, /\n\[builder 3\/3\] RUN echo second/)
  const forced = await build(template('first'), unique(), { skipCache: true })
  assert.doesNotMatch(forced.log, /CACHED/)
  const from = await build(Template().fromBaseImage().runCmd('date +%N > when').skipCache().runCmd('echo first'))
  assert.equal(from.log.match(/CACHED/g).length, 1)
})

test('other files of the same name are another layer', needsRoot, async (t) => {
  writeFileSync(path.join(folder, 'changing'), '1')
  await build(context().fromBaseImage().copy('changing', 'changing'))
  writeFileSync(path.join(folder, 'changing'), '2')
  const { name } = await build(context().fromBaseImage().copy('changing', 'changing'))
  assert.equal(await (await start(t, name)).files.read('changing'), '2')
})

test('a template begins with another', needsRoot, async (t) => {
  const base = await build(Template().fromBaseImage().setEnvs({ FROM: 'base' }).runCmd('echo base > base'))
  const { name } = await build(Template().fromTemplate(base.name).runCmd('echo $FROM > more'))
  assert.equal(await out(await start(t, name), 'cat base more; echo $FROM'), 'base\nbase\nbase\n')
  const python = await build(Template().fromTemplate('code-interpreter-v1').runCmd('touch here'))
  assert.equal(await out(await start(t, python.name), 'ls'), 'here\n')
})

test('what failed is told with its step', needsRoot, async () => {
  await fails(Template().fromImage('registry.example.com/nothing:1'), 'base', /no registry/)
  await fails(Template().fromImage('debian', { username: 'a', password: 'b' }), 'base', /no registry/)
  await fails(Template().fromTemplate('nothing-of-this-name'), 'base', /not found/)
  await fails(Template().fromBaseImage().runCmd('true').runCmd('exit 3'), '2', /exit 3.*exit status 3/)
  await fails(Template().fromBaseImage().runCmd('./nothing'), '1', /exit status 127/)
  await fails(Template().fromBaseImage().setUser('; exit 1'), '1', /there are user and root/)
  await fails(Template().fromBaseImage().setWorkdir('/etc/hostname'), '1', /exit status 1/)
  await fails(Template().fromBaseImage().setWorkdir(`/${'a'.repeat(5000)}`), '1', /5001 bytes, at most 4095/)
  await fails(Template().fromBaseImage().remove('nothing/here'), '1', /exit status 1/)
  await fails(Template().fromBaseImage().setStartCmd('./nothing', waitForTimeout(10000)), 'finalize', /start command ended with exit status 127/)
})

test('other images are this host, and the log says so', needsRoot, async () => {
  const { log } = await build(Template().fromUbuntuImage('22.04').runCmd('true'))
  assert.match(log, /FROM ubuntu:22\.04/)
  assert.match(log, /there is no registry here/)
})

test('what a template starts goes on in each sandbox, and is ready', needsRoot, async (t) => {
  const { name } = await build(Template().fromBaseImage().setEnvs({ PORT: '8123' }).setStartCmd('python3 -m http.server $PORT', waitForPort(8123)))
  for (let i = 0; i < 2; i++) {
    const sandbox = await start(t, name)
    assert.equal(await out(sandbox, 'curl -s -o /dev/null -w "%{http_code}" localhost:8123'), '200')
  }
  const slow = await build(Template().fromBaseImage().setStartCmd('sleep 1; touch ready; sleep 1000', waitForFile('/home/user/ready')))
  const sandbox = await start(t, slow.name)
  assert.equal(await out(sandbox, 'ls'), 'ready\n')
  await sandbox.pause({ keepMemory: false })
  const resumed = await Sandbox.connect(sandbox.sandboxId, options)
  await out(resumed, 'until pgrep -fx "sleep 1000"; do sleep 0.1; done')
})

test('a snapshot of such a sandbox is still of that template', needsRoot, async (t) => {
  const { name, templateId } = await build(Template().fromBaseImage().setEnvs({ KEPT: 'yes' }).setWorkdir('/srv').runCmd('echo a > a', { user: 'root' }))
  const sandbox = await start(t, name)
  await sandbox.commands.run('echo b > /home/user/b')
  const snapshot = await sandbox.createSnapshot()
  t.after(() => Sandbox.deleteSnapshot(snapshot.snapshotId, options))
  const again = await start(t, snapshot.snapshotId)
  assert.equal(await out(again, 'cat a ~/b; echo $KEPT; pwd'), 'a\nb\nyes\n/srv\n')
  assert.equal((await again.getInfo()).templateId, templateId)
})

test('a build goes on without its client', async () => {
  const name = unique()
  const info = await Template.buildInBackground(Template().fromBaseImage().runCmd('sleep 3; echo done'), name, options)
  assert.equal((await Template.getBuildStatus(info, options)).status, 'building')
  for (;;) {
    const status = await Template.getBuildStatus(info, options)
    if (status.status !== 'building') {
      assert.equal(status.status, 'ready')
      assert.ok(status.logEntries.some((one) => /done/.test(one.message)))
      const rest = await Template.getBuildStatus(info, { ...options, logsOffset: status.logEntries.length })
      assert.equal(rest.logEntries.length, 0)
      break
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.equal(await Template.exists(name, options), true)
  assert.equal(await Template.exists('nothing-of-this-name', options), false)
})

test('tags name builds', async (t) => {
  const name = unique()
  const first = await build(Template().fromBaseImage().runCmd('echo 1 > n'), `${name}:v1`)
  const second = await build(Template().fromBaseImage().runCmd('echo 2 > n'), `${name}:v2`, { tags: ['latest'] })
  assert.equal(first.templateId, second.templateId)
  assert.deepEqual([first.tags, second.tags], [['v1'], ['v2', 'latest']])
  await assert.rejects(Sandbox.create(name, options), /no build that is ready, and none with this tag/)
  assert.equal(await (await start(t, `${name}:v1`)).files.read('n'), '1\n')
  assert.equal(await (await start(t, `${name}:latest`)).files.read('n'), '2\n')
  const assigned = await Template.assignTags(`${name}:v1`, ['default', 'stable'], options)
  assert.deepEqual(assigned, { buildId: first.buildId, tags: ['default', 'stable'] })
  assert.equal(await (await start(t, name)).files.read('n'), '1\n')
  await Template.assignTags(`${name}:v2`, 'stable', options)
  const tags = await Template.getTags(name, options)
  assert.deepEqual(Object.fromEntries(tags.map((one) => [one.tag, one.buildId])),
    { v1: first.buildId, default: first.buildId, v2: second.buildId, latest: second.buildId, stable: second.buildId })
  await Template.removeTags(name, ['stable', 'latest'], options)
  assert.equal((await Template.getTags(name, options)).length, 3)
  assert.equal(await Template.exists(`${name}:v1`, options), true)
  assert.equal(await Template.exists(`${name}:latest`, options), false)
  await assert.rejects(Template.removeTags(name, 'stable', options), /not all of these tags/)
  await assert.rejects(Template.assignTags(`${name}:v1`, ':wrong', options), /tags has to be/)
  await assert.rejects(Template.assignTags(`${name}:v1`, `${name}:`, options), /tags has to be/)
  await assert.rejects(Template.assignTags(`${name}:nothing`, 'a', options), /not found/)
})

test('templates are listed, and can be forgotten', async () => {
  const { name, templateId } = await build(Template().fromBaseImage(), unique(), { cpuCount: 1, memoryMB: 256 })
  const { body } = await ask(server, 'GET', '/templates')
  const one = body.find((each) => each.templateID === templateId)
  assert.deepEqual([one.names, one.cpuCount, one.memoryMB, one.public, one.buildStatus, one.buildCount], [[name], 1, 256, false, 'ready', 1])
  assert.ok(body.some((each) => each.names[0] === 'base'))
  const sandbox = await Sandbox.create(name, options)
  assert.equal((await sandbox.getInfo()).memoryMB, 256)
  await sandbox.kill()
  assert.equal((await ask(server, 'DELETE', `/templates/${templateId}`)).status, 204)
  assert.equal((await ask(server, 'DELETE', `/templates/${templateId}`)).status, 404)
  await assert.rejects(Sandbox.create(name, options), /not found/)
})

test('what is wrong is told', async () => {
  const wrong = async (method, where, body, status, words) => {
    const answer = await ask(server, method, where, body)
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    assert.match(answer.body.message, words)
  }
  await wrong('POST', '/v3/templates', {}, 400, /name has to be/)
  await wrong('POST', '/v3/templates', { name: 'a b' }, 400, /name has to be/)
  await wrong('POST', '/v3/templates', { name: 'a:' }, 400, /name has to be/)
  await wrong('POST', '/v3/templates', { name: 'base' }, 403, /part of this server/)
  await wrong('POST', '/v3/templates', { name: 'a', cpuCount: 0 }, 400, /whole number from 1/)
  await wrong('POST', '/v3/templates', { name: 'a', tags: ['b c'] }, 400, /tags has to be/)
  await wrong('GET', '/templates/nothing/files/abc', undefined, 404, /not found/)
  await wrong('GET', '/templates/nothing/builds/abc/status', undefined, 404, /not found/)
  const { body } = await ask(server, 'POST', '/v3/templates', { name: 'wrongs' })
  const where = `/v2/templates/${body.templateID}/builds/${body.buildID}`
  await wrong('POST', where, { steps: {} }, 400, /steps has to be a list/)
  await wrong('POST', where, { steps: [{ type: 'EXPOSE', args: ['1'] }] }, 400, /step 1 is "EXPOSE"/)
  await wrong('POST', where, { steps: [{ type: 'RUN', args: [1] }] }, 400, /texts/)
  await wrong('POST', where, { steps: [{ type: 'RUN' }] }, 400, /no args/)
  await wrong('POST', where + 'x', {}, 404, /not found/)
  assert.equal((await ask(server, 'POST', where, {})).status, 202)
  await wrong('POST', where, {}, 409, /begun already/)
  await wrong('PATCH', `/v2/templates/${body.templateID}`, { public: true }, 400, /none is public/)
  assert.equal((await ask(server, 'PATCH', `/v2/templates/${body.templateID}`, { public: false })).status, 200)
  const put = await fetch(`${server.url}/templates/files/${'0'.repeat(32)}`, { method: 'PUT', body: 'x' })
  assert.equal(put.status, 403)
})

test('an archive that is none fails its step', needsRoot, async () => {
  const { body } = await ask(server, 'POST', '/v3/templates', { name: unique() })
  const link = await ask(server, 'GET', `/templates/${body.templateID}/files/abc`)
  assert.deepEqual([link.status, link.body.present], [201, false])
  assert.equal((await fetch(link.body.url, { method: 'PUT', body: 'no archive at all' })).status, 200)
  assert.equal((await ask(server, 'GET', `/templates/${body.templateID}/files/abc`)).body.present, true)
  const where = `/templates/${body.templateID}/builds/${body.buildID}`
  await ask(server, 'POST', `/v2${where}`, { steps: [{ type: 'COPY', args: ['a', 'b', '', ''], filesHash: 'abc' }] })
  for (;;) {
    const status = (await ask(server, 'GET', `${where}/status`)).body
    if (status.status === 'building') continue
    assert.equal(status.status, 'error')
    assert.match(status.reason.message, /unpack the files of COPY a/)
    break
  }
})

test('files that an archive does not have fail their step', needsRoot, async () => {
  const { body } = await ask(server, 'POST', '/v3/templates', { name: unique() })
  const link = await ask(server, 'GET', `/templates/${body.templateID}/files/other`)
  const { stdout } = spawnSync('tar', ['-C', folder, '-cz', 'one.txt'])
  assert.equal((await fetch(link.body.url, { method: 'PUT', body: stdout })).status, 200)
  const where = `/templates/${body.templateID}/builds/${body.buildID}`
  await ask(server, 'POST', `/v2${where}`, { steps: [{ type: 'COPY', args: ['nope', '/app', '', ''], filesHash: 'other' }] })
  const status = await until(async () => {
    const got = (await ask(server, 'GET', `${where}/status`)).body
    return got.status !== 'building' && got
  })
  assert.equal(status.status, 'error')
  assert.match(status.logs.join('\n'), /there is no 'nope' in the archive/)
})

test('a name of the environment has no =', needsRoot, async () => {
  await fails(Template().fromBaseImage().setEnvs({ 'A=B': 'c' }), '1', /ENV 'A=B'/)
})

test('numbers of a template are told with their bounds', async () => {
  const got = await ask(server, 'POST', '/v3/templates', { name: unique(), cpuCount: 99999 })
  assert.deepEqual([got.status, got.body.message], [400, 'cpuCount is 99999; it has to be a whole number from 1 to 1024'])
  assert.match((await ask(server, 'POST', '/v3/templates', { name: unique(), memoryMB: 'x' })).body.message, /memoryMB is "x"; it has to be a whole number from 1 to/)
  assert.match((await ask(server, 'POST', '/v3/templates', { name: 5 })).body.message, /name is 5; it has to be a text/)
})

test('a build has a time', async () => {
  const quick = await serve('engine.build_ms=1000')
  await assert.rejects(Template.build(Template().fromBaseImage().runCmd('sleep 100'), 'late', quick.options), /engine\.build_ms/)
})

test('four builds of an owner go on at once', async () => {
  const other = await serve()
  const begin = (i) => Template.buildInBackground(Template().fromBaseImage().runCmd(`sleep 300; echo ${i}`), `at-once-${i}`, other.options)
  for (let i = 0; i < 4; i++) await begin(i)
  await assert.rejects(begin(4), /4 builds of yours go on/)
})

test('a build that the daemon did not survive is told', async () => {
  const first = await serve()
  const info = await Template.buildInBackground(Template().fromBaseImage().runCmd('sleep 300'), 'lost', first.options)
  first.daemon.kill('SIGKILL')
  await new Promise((resolve) => first.daemon.once('exit', resolve))
  const second = await serve(`engine.state_dir=${first.folder}/state`)
  const status = await Template.getBuildStatus(info, second.options)
  assert.equal(status.status, 'error')
  assert.match(status.reason.message, /ended with the daemon/)
})

test('what was built outlives the daemon', needsRoot, async () => {
  const first = await serve()
  await Template.build(Template().fromBaseImage().runCmd('echo here > f'), 'kept', first.options)
  first.daemon.kill('SIGTERM')
  await new Promise((resolve) => first.daemon.once('exit', resolve))
  const second = await serve(`engine.state_dir=${first.folder}/state`)
  const sandbox = await Sandbox.create('kept', second.options)
  assert.equal(await sandbox.files.read('f'), 'here\n')
  await sandbox.kill()
})

test('what is kept of builds has bounds', needsRoot, async () => {
  const name = unique()
  const run = async (steps, more) => {
    const { body } = await ask(server, 'POST', '/v3/templates', { name })
    return ask(server, 'POST', `/v2/templates/${body.templateID}/builds/${body.buildID}`, { steps, ...more })
  }
  const wrong = async (answer, words) => {
    const { status, body } = await answer
    assert.equal(status, 400, JSON.stringify(body))
    assert.match(body.message, words)
  }
  await wrong(run(Array(501).fill({ type: 'USER', args: ['user'] })), /at most 500/)
  await wrong(run([{ type: 'RUN', args: ['x'.repeat(300000)] }]), /262144 bytes/)
  await wrong(run([], { startCmd: 'x'.repeat(9000) }), /8192 are possible/)
  await assert.rejects(build(Template().fromBaseImage().setEnvs({ A: 'x'.repeat(9000) })), /8192 are possible/)
  const { lines } = await build(Template().fromBaseImage().runCmd('yes | head -n 5000'))
  assert.ok(lines.length >= 990 && lines.length <= 1010, String(lines.length))
  const long = await build(Template().fromBaseImage().runCmd('for i in $(seq 500); do printf "%01999d\\n" $i; done'))
  assert.ok(long.lines.join('').length < 140000)
  for (let i = 0; i < 25; i++) assert.equal((await ask(server, 'POST', '/v3/templates', { name })).status, 202)
  assert.equal((await ask(server, 'GET', `/templates/${name}`)).body.buildCount, 20)
  const tags = Array.from({ length: 21 }, (_, i) => `t${i}`)
  assert.equal((await ask(server, 'POST', '/v3/templates', { name, tags })).status, 400)
})

test('an owner has a hundred templates', async () => {
  const other = await serve()
  for (let i = 0; i < 100; i++) assert.equal((await ask(other, 'POST', '/v3/templates', { name: `many-${i}` })).status, 202)
  const { status, body } = await ask(other, 'POST', '/v3/templates', { name: 'one-more' })
  assert.equal(status, 429)
  assert.match(body.message, /100 templates/)
  assert.equal((await ask(other, 'POST', '/v3/templates', { name: 'many-7:v2' })).status, 202)
  assert.equal((await ask(other, 'GET', '/templates')).body.filter((one) => /^many-/.test(one.names[0])).length, 100)
})

test('where files are put is signed', async () => {
  const { body } = await ask(server, 'POST', '/v3/templates', { name: unique() })
  const link = (await ask(server, 'GET', `/templates/${body.templateID}/files/abc-signed`)).body.url
  const put = async (url) => (await fetch(url, { method: 'PUT', body: 'x' })).status
  for (const [from, to] of [[/files\/./, 'files/z'], [/owner=../, 'owner=61'], [/until=\d/, 'until=9'], [/signature=./, 'signature=z'], [/signature=.*/, '']])
    assert.equal(await put(link.replace(from, to)), 403)
  assert.equal(await put(link), 200)
})

test('layers make room for others, but for those that a template needs', needsRoot, async () => {
  const small = await serve('engine.files_bytes_max=28000000')   // for two files, and some that every sandbox has
  const make = (i) => Template.build(Template().fromBaseImage().runCmd(`head -c 10000000 /dev/urandom > f${i}`), `room-${i}`, small.options)
  await make(0)
  await make(1)
  await assert.rejects(make(2), /engine\.files_bytes_max/)
  assert.equal((await ask(small, 'DELETE', '/templates/room-0')).status, 204)
  await make(3)
  const sandbox = await Sandbox.create('room-1', small.options)
  assert.equal((await sandbox.commands.run('stat -c %s f1')).stdout, '10000000\n')
  await sandbox.kill()
})
