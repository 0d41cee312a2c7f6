// What programs in a sandbox reach: the proxy says 403 where a rule forbids it, and something else where there is no way on this host.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { InvalidArgumentError, Sandbox, SandboxError } from 'e2b'

import { ask, serve } from './server.mjs'

const server = await serve()
const { options } = server

async function make(t, more) {
  const sandbox = await Sandbox.create('base', { ...options, ...more })
  t.after(() => sandbox.kill())
  return sandbox
}

/** Whether each address is refused by a rule. */
async function refused(sandbox, ...hosts) {
  const found = {}
  for (const host of hosts) {
    const { stdout } = await sandbox.commands.run(`curl -s -o /dev/null -w '%{http_code}' --max-time 20 http://${host}/ || true`)
    found[host] = stdout === '403'
  }
  return found
}

const all = ({ allTraffic }) => [allTraffic]

test('a sandbox reaches public addresses, and none of this host or its networks', async (t) => {
  const sandbox = await make(t)
  assert.deepEqual(await refused(sandbox, '1.1.1.1', '10.0.0.1', '169.254.169.254'), { '1.1.1.1': false, '10.0.0.1': true, '169.254.169.254': true })
})

test('without internet access nothing is reached', async (t) => {
  const sandbox = await make(t, { allowInternetAccess: false })
  assert.deepEqual(await refused(sandbox, '1.1.1.1', 'example.org'), { '1.1.1.1': true, 'example.org': true })
  assert.equal((await sandbox.getInfo()).allowInternetAccess, false)
})

test('what is denied is not reached, and what is allowed goes before', async (t) => {
  const denied = await make(t, { network: { denyOut: ['1.1.1.1', '9.0.0.0/8'] } })
  assert.deepEqual(await refused(denied, '1.1.1.1', '9.9.9.9', '8.8.8.8'), { '1.1.1.1': true, '9.9.9.9': true, '8.8.8.8': false })
  const few = await make(t, { network: { denyOut: all, allowOut: ['1.1.1.1', '8.8.8.8/32', '*.example.org'] } })
  assert.deepEqual(await refused(few, '1.1.1.1', '8.8.8.8', '9.9.9.9', 'a.example.org'),
    { '1.1.1.1': false, '8.8.8.8': false, '9.9.9.9': true, 'a.example.org': false })
})

test('to update the network replaces all rules, and clears those that are not given', async (t) => {
  const sandbox = await make(t, { network: { denyOut: all, allowOut: ['1.1.1.1'] } })
  await sandbox.updateNetwork({ denyOut: ['1.1.1.1'] })
  assert.deepEqual(await refused(sandbox, '1.1.1.1', '8.8.8.8'), { '1.1.1.1': true, '8.8.8.8': false })
  await sandbox.updateNetwork({})
  assert.deepEqual(await refused(sandbox, '1.1.1.1', '8.8.8.8'), { '1.1.1.1': false, '8.8.8.8': false })
  assert.deepEqual(await refused(sandbox, '10.0.0.1'), { '10.0.0.1': true })
})

test('rules go along with a fork', async (t) => {
  const sandbox = await make(t, { network: { denyOut: ['1.1.1.1'] } })
  const [fork] = await sandbox.fork()
  t.after(() => fork.kill())
  assert.deepEqual(await refused(fork, '1.1.1.1', '8.8.8.8'), { '1.1.1.1': true, '8.8.8.8': false })
})

test('a rule that is none is refused with its text, and so is what is not there', async (t) => {
  for (const network of [{ denyOut: ['example.org'] }, { allowOut: ['1.2.3.4/33'] }, { allowOut: ['http://x'] }, { denyOut: 'x' }, { denyOut: [7] },
    { rules: { 'example.org': [{}] } }]) {
    const { status, body } = await ask(server, 'POST', '/v2/sandboxes', { templateID: 'base', network })
    assert.equal(status, 400, JSON.stringify(network))
    assert.match(body.message, /denyOut|allowOut|rules/)
  }
  const sandbox = await make(t)
  await assert.rejects(sandbox.updateNetwork({ denyOut: ['nonsense'] }), (error) => error instanceof SandboxError || error instanceof InvalidArgumentError)
})

test('where the administrator allows no network, sandboxes are made without, and their rules let nothing out', async (t) => {
  for (const network of ['none', 'allow']) {
    const closed = await serve(`engine.network=${network}`)
    const sandbox = await Sandbox.create('base', closed.options)
    t.after(() => sandbox.kill())
    await sandbox.updateNetwork({ allowOut: ['1.1.1.1'] })
    const { stdout } = await sandbox.commands.run("curl -s -o /dev/null -w '%{http_code}' --noproxy '*' --max-time 5 http://1.1.1.1/ || curl -s -o /dev/null -w '%{http_code}' --max-time 5 http://1.1.1.1/ || true")
    assert.equal(stdout, '000000')
  }
})
