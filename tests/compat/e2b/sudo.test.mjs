// Root for programs of `user`, as in the sandboxes of E2B: sudo without a password.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { CommandExitError, Sandbox } from 'e2b'

import { needsRoot, serve, sleep, until } from './server.mjs'

const server = await serve()

async function make(t) {
  const sandbox = await Sandbox.create('base', server.options)
  t.after(() => sandbox.kill())
  const run = async (command, more) => (await sandbox.commands.run(command, more)).stdout
  return { sandbox, run }
}

test('a command becomes root, in its folder, with its descriptors, and its status comes back', needsRoot, async (t) => {
  const { sandbox, run } = await make(t)
  assert.equal(await run('sudo whoami'), 'root\n')
  assert.equal(await run('cd /var && sudo -n pwd'), '/var\n')
  assert.equal(await run('echo through | sudo cat; sudo sh -c "echo to >&2" 2>&1'), 'through\nto\n')
  assert.equal(await run('sudo -E A="b c" env | grep -E "^(A|HOME|SUDO_USER)=" | sort'), 'A=b c\nHOME=/root\nSUDO_USER=user\n')
  await assert.rejects(sandbox.commands.run('sudo sh -c "exit 7"'), (error) => error instanceof CommandExitError && error.exitCode === 7)
  await assert.rejects(sandbox.commands.run('sudo no-such-program'), (error) => error.exitCode === 127 && /no-such-program: command not found/.test(error.stderr))
})

test('what root makes is root\'s, and user may be named, too', needsRoot, async (t) => {
  const { run } = await make(t)
  assert.equal(await run('sudo mkdir /opt/own && sudo touch /usr/local/lib/x && stat -c %U /opt/own /usr/local/lib/x'), 'root\nroot\n')
  assert.equal(await run('sudo -u user whoami; sudo -u root -H -- id -u'), 'user\n0\n')
  assert.equal(await run('sudo sudo whoami'), 'root\n')
})

test('a signal reaches the program, and nothing is left of one whose asker is gone', needsRoot, async (t) => {
  const { sandbox, run } = await make(t)
  assert.equal(await run('sudo sleep 100 & sleep 0.5; kill -TERM $!; wait $!; echo $?'), '143\n')
  const command = await sandbox.commands.run('sudo sleep 4321', { background: true })
  await until(async () => (await run('pgrep -fx "sleep 4321" || true')) !== '')
  await command.kill()
  await until(async () => (await run('pgrep -fx "sleep 4321" || true')) === '')
})

test('many ask at once, and nonsense is cut', needsRoot, async (t) => {
  const { run } = await make(t)
  assert.equal(await run('for i in $(seq 100); do sudo true & done; wait; echo done'), 'done\n')
  assert.equal(await run(`python3 -c '
import array, os, socket
for data, fds in ((b"", 3), (b"x", 3), (b"/\\0nine\\0", 3), (b"/\\x00${'9'.repeat(5)}\\0a\\0", 3), (b"/\\x001\\0true\\0", 1), (b"/\\x001\\0true\\0", 0), (b"\\0" * 5000, 3)):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/sudo.socket")
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * fds))] if fds else [])
    assert not s.recv(10), data
'; sudo echo still`), 'still\n')
  await sleep(0)
})
