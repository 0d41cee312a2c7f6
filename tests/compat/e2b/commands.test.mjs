// Programs in sandboxes, by E2B's own client: commands, their output, input and end.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, TimeoutError } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'

import { needsRoot, serve, until } from './server.mjs'

const server = await serve()
const { options } = server
const sandbox = await Sandbox.create({ ...options, envs: { SHARED: 'of the sandbox' } })
const run = (command, more) => sandbox.commands.run(command, more)

test('what a command prints comes back, and so does its end', async () => {
  const done = await run('echo out; echo err >&2')
  assert.deepEqual([done.exitCode, done.stdout, done.stderr, done.error], [0, 'out\n', 'err\n', undefined])
})

test('output comes as it is printed', async () => {
  const seen = []
  const heard = (stream) => async (text) => {
    seen.push([stream, text])
    await sandbox.files.write(`/tmp/heard${seen.length}`, '')
  }
  const wait = (n) => `until [ -e /tmp/heard${n} ]; do sleep 0.02; done`
  await run(`echo one; ${wait(1)}; echo two >&2; ${wait(2)}; echo three`, { onStdout: heard('out'), onStderr: heard('err') })
  assert.deepEqual(seen, [['out', 'one\n'], ['err', 'two\n'], ['out', 'three\n']])
})

test('a command that fails has its status', async () => {
  await assert.rejects(run('echo so far; echo why >&2; exit 3'), (error) => {
    assert.ok(error instanceof CommandExitError)
    assert.deepEqual([error.exitCode, error.stdout, error.stderr, error.error], [3, 'so far\n', 'why\n', 'exit status 3'])
    return true
  })
})

test('a command that is not there is bash\'s to tell', async () => {
  await assert.rejects(run('no-such-command-at-all'), (error) => error instanceof CommandExitError && error.exitCode === 127 && /not found/.test(error.stderr))
})

test('any characters go in and come out', async () => {
  const text = '!@#$%^&*()_+{}[]|\\:;\'<>?,./ äöü 日本語 👍'
  assert.equal((await run(`cat <<'END'\n${text}\nEND`)).stdout, `${text}\n`)
  assert.equal((await run('printf "a\\nb\\nc"')).stdout, 'a\nb\nc')
})

test('much output is whole', async () => {
  const { stdout } = await run('seq 1 300000')
  assert.equal(stdout.length, 1988895)
  assert.ok(stdout.endsWith('300000\n'))
})

test('the environment is the sandbox\'s, and a command\'s own on top of it', async () => {
  assert.equal((await run('echo "$SHARED, $MINE, $E2B_SANDBOX"', { envs: { MINE: 'of the command' } })).stdout, 'of the sandbox, of the command, true\n')
  assert.equal((await run('echo $SHARED', { envs: { SHARED: 'changed' } })).stdout, 'changed\n')
  assert.equal((await run('echo $SHARED')).stdout, 'of the sandbox\n')
  assert.equal((await run('echo "$HOME $USER $LOGNAME"')).stdout, '/home/user user user\n')
  assert.equal((await run('umask')).stdout, '0022\n')
})

test('a command has a working folder', async () => {
  assert.equal((await run('pwd')).stdout, '/home/user\n')
  assert.equal((await run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  await run('mkdir -p below')
  assert.equal((await run('pwd', { cwd: 'below' })).stdout, '/home/user/below\n')
})

test('a working folder that is none is named', async () => {
  await assert.rejects(run('pwd', { cwd: '/nowhere' }), (error) => error instanceof InvalidArgumentError && /cwd '\/nowhere' does not exist/.test(error.message))
  await run('touch /tmp/file')
  await assert.rejects(run('pwd', { cwd: '/tmp/file' }), (error) => error instanceof InvalidArgumentError && /cwd '\/tmp\/file' is not a directory/.test(error.message))
})

test('a command is who it is asked to be', needsRoot, async () => {
  assert.equal((await run('whoami')).stdout, 'user\n')
  assert.equal((await run('whoami; pwd; echo $HOME $USER', { user: 'root' })).stdout, 'root\n/root\n/root root\n')
})

test('an account that is not there is refused', async () => {
  await assert.rejects(run('whoami', { user: 'nobody-at-all' }), (error) => error instanceof AuthenticationError && /invalid username: 'nobody-at-all'/.test(error.message))
})

test('a time-out ends a command', async () => {
  await assert.rejects(run('sleep 4711', { timeoutMs: 500 }), TimeoutError)
  await until(async () => (await sandbox.commands.list()).every((one) => !one.args.join(' ').includes('4711')))
  await assert.rejects(run('pgrep -f "sleep 471[1]"'), CommandExitError)
})

test('a command in the background goes on, is listed, and is killed', async () => {
  const command = await run('sleep 4712', { background: true, envs: { A: 'b' }, cwd: '/tmp' })
  const listed = (await sandbox.commands.list()).find((one) => one.pid === command.pid)
  assert.equal(listed.cmd, '/bin/bash')
  assert.deepEqual(listed.args, ['-l', '-c', 'sleep 4712'])
  assert.deepEqual(listed.envs, { A: 'b' })
  assert.equal(listed.cwd, '/tmp')
  assert.equal(await sandbox.commands.kill(command.pid), true)
  await assert.rejects(run(`kill -0 ${command.pid}`), CommandExitError)
  await assert.rejects(command.wait(), (error) => error instanceof CommandExitError && error.exitCode === -1 && error.error === 'signal: killed')
  assert.equal(await sandbox.commands.kill(command.pid), false)
})

test('a process that is not there cannot be killed', async () => {
  assert.equal(await sandbox.commands.kill(999999), false)
  await assert.rejects(sandbox.commands.connect(999999), NotFoundError)
})

test('a command is waited for, and killed, by its handle', async () => {
  const one = await run('sleep 0.2; echo done; exit 2', { background: true })
  await assert.rejects(one.wait(), (error) => error.exitCode === 2 && error.stdout === 'done\n')
  const other = await run('sleep 4713', { background: true })
  assert.equal(await other.kill(), true)
})

test('others listen to a command that goes on, from then on', async () => {
  let first = ''
  const command = await run('for i in $(seq 1 2000); do echo $i; sleep 0.05; done', { background: true, timeoutMs: 0, onStdout: (text) => { first += text } })
  await until(() => first.split('\n').length > 3)
  let heard = ''
  const other = await sandbox.commands.connect(command.pid, { onStdout: (text) => { heard += text } })
  assert.equal(other.pid, command.pid)
  await until(() => heard.split('\n').length > 5)
  assert.notEqual(heard.split('\n')[0], '1')
  await other.kill()
  await assert.rejects(command.wait(), CommandExitError)
})

test('the end of a command can be heard of afterwards', async () => {
  const command = await run('exit 7', { background: true })
  await command.wait().catch(() => {})
  const late = await sandbox.commands.connect(command.pid)
  await assert.rejects(late.wait(), (error) => error.exitCode === 7)
})

test('who stops listening does not end a command', async () => {
  const command = await run('sleep 0.5; echo here > /tmp/later; sleep 0.5', { background: true })
  await command.disconnect()
  await until(async () => (await sandbox.files.exists('/tmp/later')))
  assert.equal((await sandbox.files.read('/tmp/later')), 'here\n')
})

test('a command reads what is sent to it', async () => {
  let seen = ''
  const command = await run('cat', { background: true, stdin: true, onStdout: (text) => { seen += text } })
  await sandbox.commands.sendStdin(command.pid, 'Hello ')
  await sandbox.commands.sendStdin(command.pid, '')
  await sandbox.commands.sendStdin(command.pid, 'ä👍\n')
  await until(() => seen === 'Hello ä👍\n')
  await sandbox.commands.closeStdin(command.pid)
  assert.equal((await command.wait()).exitCode, 0)
  await assert.rejects(sandbox.commands.sendStdin(command.pid, 'x'), SandboxError)
})

test('what is long is read as fast as the command reads', async () => {
  const command = await run('sleep 0.3; wc -c', { background: true, stdin: true })
  await sandbox.commands.sendStdin(command.pid, 'x'.repeat(1_000_000))
  await sandbox.commands.closeStdin(command.pid)
  assert.equal((await command.wait()).stdout.trim(), '1000000')
})

test('a command without input finds it at its end, and cannot be written to', async () => {
  assert.equal((await run('wc -c')).stdout.trim(), '0')
  const command = await run('sleep 4714', { background: true })
  await assert.rejects(sandbox.commands.sendStdin(command.pid, 'x'), SandboxError)
  await command.kill()
})

test('what a command leaves behind goes on', async () => {
  await run('nohup sleep 4715 > /dev/null 2>&1 &')
  assert.match((await run('pgrep -f "sleep 471[5]"')).stdout, /\d+/)
  await run('pkill -f "sleep 471[5]"')
})

test('openssl finds what it needs to make a certificate', async () => {
  await run('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout /tmp/key -out /tmp/cert')
  assert.match((await run('openssl x509 -in /tmp/cert -noout -subject -ext basicConstraints')).stdout, /CN = localhost\n.*critical\n +CA:TRUE/)
})

test('many commands go on at once', async () => {
  const done = await Promise.all(Array.from({ length: 30 }, (_, i) => run(`sleep 0.1; echo ${i}`)))
  assert.deepEqual(done.map((one) => one.stdout), Array.from({ length: 30 }, (_, i) => `${i}\n`))
})

test('a terminal is one, has its size, reads and ends', async () => {
  let seen = ''
  const decoder = new TextDecoder()
  const pty = await sandbox.pty.create({ cols: 100, rows: 30, cwd: '/tmp', envs: { MARK: 'mark' }, onData: (bytes) => { seen += decoder.decode(bytes, { stream: true }) } })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; pwd; echo $MARK $TERM; tty\n'))
  await until(() => /30 100\r\n\/tmp\r\nmark xterm-256color\r\n\/dev\/pts\/\d+/.test(seen))
  await sandbox.pty.resize(pty.pid, { cols: 70, rows: 20 })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
  await until(() => seen.includes('20 70'))
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('exit\n'))
  assert.equal((await pty.wait()).exitCode, 0)
})

test('a terminal is killed, and one can connect to it', async () => {
  const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} })
  let seen = ''
  const other = await sandbox.pty.connect(pty.pid, { onData: (bytes) => { seen += new TextDecoder().decode(bytes) } })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('echo $((40 + 2))\n'))
  await until(() => seen.includes('42'))
  assert.equal(await sandbox.pty.kill(pty.pid), true)
  await assert.rejects(other.wait())
})

test('a sandbox that is killed in the middle is told as that', async () => {
  const doomed = await Sandbox.create(options)
  const command = doomed.commands.run('sleep 4716', { timeoutMs: 0 })
  const refused = assert.rejects(command, TimeoutError)
  await until(async () => (await doomed.commands.list()).some((one) => one.args.includes('sleep 4716')))
  await doomed.kill()
  await refused
  await assert.rejects(doomed.commands.run('true'), (error) => error instanceof SandboxError)
})

test('a client of a year ago runs commands', async (t) => {
  const old = await OldSandbox.create(options)
  t.after(() => old.kill())
  assert.equal((await old.commands.run('echo hello')).stdout, 'hello\n')
  await assert.rejects(old.commands.run('exit 4'), (error) => error.exitCode === 4)
})

// ---- what a client has no word for ----

async function rpc(method, body, headers = {}, at = sandbox) {
  const answer = await fetch(`${server.url}/process.Process/${method}`, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': at.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': at.envdAccessToken, ...headers } })
  return { status: answer.status, body: await answer.json() }
}

test('without the token nothing is done', async () => {
  const { status, body } = await rpc('List', {}, { 'X-Access-Token': 'wrong' })
  assert.equal(status, 401)
  assert.equal(body.code, 401)
})

test('errors of unary calls have a code and a status', async () => {
  let got = await rpc('SendSignal', { process: { pid: 999999 }, signal: 'SIGNAL_SIGKILL' })
  assert.deepEqual([got.status, got.body.code, got.body.message], [404, 'not_found', 'process with pid 999999 not found'])
  got = await rpc('SendInput', '{')
  assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
  got = await rpc('List', [])
  assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
  assert.equal((await rpc('List', {}, { 'Content-Type': 'application/proto' })).status, 415)
  assert.equal((await rpc('Nothing', {})).status, 404)
})

test('what has the wrong type is refused with its name', async () => {
  for (const [method, body, word] of [['SendSignal', { process: { pid: 'x' }, signal: 'SIGNAL_SIGKILL' }, /process\.pid is "x"; it has to be a whole number/],
    ['SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_FOO' }, /signal is "SIGNAL_FOO"; it has to be one of: SIGNAL_SIGKILL SIGNAL_SIGTERM/],
    ['SendSignal', { process: 1 }, /process is 1; it has to be an object/], ['CloseStdin', { process: { tag: 5 } }, /process\.tag is 5/],
    ['SendInput', { process: { pid: 1 }, input: { stdin: 5 } }, /input\.stdin is 5/], ['Update', { process: { pid: 1 }, pty: { size: { rows: -1 } } }, /pty\.size\.rows is -1/],
    ['Update', { process: { pid: 1 }, pty: { size: { cols: 99999999 } } }, /pty\.size\.cols is 99999999; .* from 0 to 65535/]]) {
    const got = await rpc(method, body)
    assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
    assert.match(got.body.message, word)
  }
  for (const timeout of ['abc', '-1', '1s', '12345678901']) {
    const got = await rpc('List', {}, { 'Connect-Timeout-Ms': timeout })
    assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
    assert.match(got.body.message, /Connect-Timeout-Ms is/)
  }
  assert.equal((await rpc('List', { unknown: 1 }, { 'Connect-Timeout-Ms': '60000' })).status, 200)
})

function envelope(message) {
  const text = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(text.length, 1)
  return Buffer.concat([head, text])
}

async function open(service, method, body, headers = {}) {
  const answer = await fetch(`${server.url}/${service}/${method}`, { method: 'POST', body,
    headers: { 'Content-Type': 'application/connect+json', 'E2b-Sandbox-Id': sandbox.sandboxId, 'X-Access-Token': sandbox.envdAccessToken, ...headers } })
  assert.equal(answer.status, 200)
  return answer
}

/** All messages of a stream. */
async function stream(...request) {
  const answer = await open(...request)
  const bytes = Buffer.from(await answer.arrayBuffer())
  const messages = []
  for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1))
    messages.push([bytes[at], JSON.parse(bytes.subarray(at + 5, at + 5 + bytes.readUInt32BE(at + 1)).toString())])
  return messages
}

test('a stream ends with an envelope that says how', async () => {
  const good = await stream('process.Process', 'Start', envelope({ process: { cmd: '/bin/echo', args: ['hi'] } }))
  assert.equal(typeof good[0][1].event.start.pid, 'number')
  assert.deepEqual(good.slice(1), [[0, { event: { data: { stdout: 'aGkK' } } }], [0, { event: { end: { exitCode: 0, exited: true, status: 'exit status 0' } } }], [2, {}]])
  for (const [body, code] of [[envelope({}), 'invalid_argument'], [envelope({ process: { cmd: '/no/such' } }), 'invalid_argument'], [Buffer.from('x'), 'invalid_argument'],
    [envelope({ process: { cmd: 'x', args: [1] } }), 'invalid_argument'], [envelope({ process: { cmd: 'x', cwd: '~other' } }), 'invalid_argument']]) {
    const bad = await stream('process.Process', 'Start', body)
    assert.equal(bad.length, 1)
    assert.deepEqual([bad[0][0], bad[0][1].error.code], [2, code])
  }
})

test('a program of the wrong types is not begun', async () => {
  const cmd = '/bin/true'
  for (const [message, word] of [[{ process: { cmd, args: 'x' } }, /process\.args is "x"/], [{ process: { cmd: 5 } }, /process\.cmd is 5/], [{ process: { cmd, cwd: 5 } }, /process\.cwd is 5/],
    [{ process: { cmd, envs: { 'A=B': '1' } } }, /process\.envs is/], [{ process: { cmd, envs: { A: 1 } } }, /process\.envs is/], [{ process: { cmd }, tag: 5 }, /tag is 5/],
    [{ process: { cmd }, stdin: 'no' }, /stdin is "no"/], [{ process: { cmd }, pty: { size: { cols: 99999999 } } }, /pty\.size\.cols/],
    [{ process: { cmd }, pty: { size: { rows: -1 } } }, /pty\.size\.rows/]]) {
    const bad = await stream('process.Process', 'Start', envelope(message))
    assert.equal(bad.length, 1)
    assert.deepEqual([bad[0][0], bad[0][1].error.code], [2, 'invalid_argument'])
    assert.match(bad[0][1].error.message, word)
  }
  const late = await stream('process.Process', 'Start', envelope({ process: { cmd } }), { 'Connect-Timeout-Ms': 'abc' })
  assert.match(late[0][1].error.message, /Connect-Timeout-Ms is "abc"/)
  const good = await stream('process.Process', 'Start', envelope({ process: { cmd, args: null, envs: null, cwd: null, more: 1 }, pty: null, tag: null, stdin: null }))
  assert.equal(good.at(-2)[1].event.end.status, 'exit status 0')
})

test('on a stream on which nothing happens there are signs of life', async () => {
  const answer = await open('process.Process', 'Start', envelope({ process: { cmd: '/bin/sleep', args: ['50'] }, tag: 'silent' }), { 'Keepalive-Ping-Interval': '1' })
  let text = '', signs = 0
  for await (const part of answer.body) {
    text += Buffer.from(part)
    const heard = text.split('"keepalive"').length - 1
    if (signs < 2 && heard >= 2) await rpc('SendSignal', { process: { tag: 'silent' }, signal: 'SIGNAL_SIGKILL' })
    signs = heard
  }
  assert.ok(signs >= 2, text)
  assert.match(text, /signal: killed/)
})

test('a program is found by its tag', async () => {
  const started = stream('process.Process', 'Start', envelope({ process: { cmd: '/bin/sleep', args: ['4717'] }, tag: 'mine' }))
  await until(async () => (await rpc('List', {})).body.processes.some((one) => one.tag === 'mine'))
  assert.deepEqual(await rpc('SendSignal', { process: { tag: 'mine' }, signal: 'SIGNAL_SIGTERM' }), { status: 200, body: {} })
  const end = (await started).at(-2)[1].event.end
  assert.deepEqual([end.exitCode, end.exited, end.status], [-1, false, 'signal: terminated'])
})

test('a tag has a length', async () => {
  const body = Buffer.from(JSON.stringify({ process: { cmd: '/bin/true' }, tag: 'x'.repeat(300) }))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  const answer = await fetch(`${server.url}/process.Process/Start`, { method: 'POST', body: Buffer.concat([head, body]), headers: {
    'Content-Type': 'application/connect+json', 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': sandbox.envdAccessToken ?? '' } })
  assert.match(await answer.text(), /invalid_argument.*tag has 300 bytes/)
})
