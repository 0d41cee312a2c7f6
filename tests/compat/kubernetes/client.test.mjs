// The official JavaScript client of Kubernetes, unmodified, against the tests' own API server (tests/lib/kube_stub.py).

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ApiException, CoordinationV1Api, CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node'

const STUB = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../lib/kube_stub.py')
const NAMESPACE = 'workers'
const folder = mkdtempSync(path.join(tmpdir(), 'caisson-kubernetes-'))
const config = new KubeConfig()
let stub, lines, pods, leases

before(async () => {
  stub = spawn('/usr/bin/python3', [STUB, '--tls', folder], { stdio: ['pipe', 'pipe', 'inherit'] })
  lines = createInterface({ input: stub.stdout })[Symbol.asyncIterator]()
  const { url, token, ca } = JSON.parse((await lines.next()).value)
  const caData = readFileSync(ca, 'base64')
  config.loadFromOptions({
    clusters: [{ name: 'stub', server: url, caData }],
    users: [{ name: 'stub', token }],
    contexts: [{ name: 'stub', cluster: 'stub', user: 'stub', namespace: NAMESPACE }],
    currentContext: 'stub'
  })
  pods = config.makeApiClient(CoreV1Api)
  leases = config.makeApiClient(CoordinationV1Api)
})

after(async () => {
  stub.stdin.end()
  await new Promise((resolve) => stub.on('close', resolve))
  rmSync(folder, { recursive: true, force: true })
})

/** A call of a method of the stub. */
async function order(call, words = {}) {
  stub.stdin.write(JSON.stringify({ call, words }) + '\n')
  return JSON.parse((await lines.next()).value)
}

function pod(name, labels) {
  const spec = { containers: [{ name: 'worker', image: 'worker' }] }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec }
}

function create(name, labels = {}) {
  return pods.createNamespacedPod({ namespace: NAMESPACE, body: pod(name, labels) })
}

async function until(question, what) {
  for (const end = Date.now() + 10000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 10))) {
    const answer = await question()
    if (answer) return answer
  }
  assert.fail(what)
}

async function refused(promise, code, reason) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof ApiException, String(error))
    assert.equal(error.code, code)
    // For 401 the client keeps no body.
    if (code === 401) assert.match(error.message, /Unauthorized/)
    else assert.equal(JSON.parse(error.body).reason, reason)
    return true
  })
}

/** An informer of pods with a label, and the events that it has had. */
async function informer(label) {
  const labelSelector = `app=${label}`
  const events = []
  let stopped = false
  const list = () => pods.listNamespacedPod({ namespace: NAMESPACE, labelSelector })
  const made = makeInformer(config, `/api/v1/namespaces/${NAMESPACE}/pods`, list, labelSelector)
  for (const name of ['add', 'update', 'delete']) {
    made.on(name, ({ metadata }) => events.push([name, metadata.name, metadata.uid]))
  }
  made.on('error', (error) => {
    events.push(['error', error.message])
    if (!stopped) setTimeout(() => stopped || made.start(), 20)
  })
  await made.start()
  const stop = () => {
    stopped = true
    return made.stop()
  }
  return { made, events, stop, had: (name, about) => events.filter((event) => event[0] === name && event[1] === about) }
}

test('create, get, list in pages, delete with preconditions', async () => {
  for (let i = 0; i < 5; i++) await create(`page-${i}`, { app: 'page' })
  await refused(create('page-0'), 409, 'AlreadyExists')
  const names = []
  let _continue
  do {
    const page = await pods.listNamespacedPod({ namespace: NAMESPACE, labelSelector: 'app=page', limit: 2, _continue })
    assert.ok(page.items.length <= 2)
    names.push(...page.items.map((one) => one.metadata.name))
    _continue = page.metadata._continue
  } while (_continue)
  assert.deepEqual(names, ['page-0', 'page-1', 'page-2', 'page-3', 'page-4'])
  const running = await until(async () => {
    const one = await pods.readNamespacedPod({ namespace: NAMESPACE, name: 'page-0' })
    return one.status.phase === 'Running' && one
  }, 'the pod runs')
  assert.match(running.status.podIP, /^127\.0\.1\.\d+$/)
  assert.ok(running.metadata.creationTimestamp instanceof Date)
  const remove = (uid) =>
    pods.deleteNamespacedPod({ namespace: NAMESPACE, name: 'page-0', body: { preconditions: { uid } } })
  await refused(remove('00000000-0000-0000-0000-000000000000'), 409, 'Conflict')
  const leaving = await remove(running.metadata.uid)
  assert.ok(leaving.metadata.deletionTimestamp instanceof Date)
  await until(async () => (await order('pod', { name: 'page-0' })) === null, 'the pod is gone')
  await refused(remove(running.metadata.uid), 404, 'NotFound')
})

test('a lease has one holder', async () => {
  const made = await leases.createNamespacedLease({
    namespace: NAMESPACE,
    body: { metadata: { name: 'gateway' }, spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } }
  })
  const body = { ...made, spec: { ...made.spec, holderIdentity: 'b' } }
  const taken = await leases.replaceNamespacedLease({ namespace: NAMESPACE, name: 'gateway', body })
  assert.equal(taken.spec.holderIdentity, 'b')
  await refused(leases.replaceNamespacedLease({ namespace: NAMESPACE, name: 'gateway', body }), 409, 'Conflict')
})

test('an informer sees each change, whatever happens to its watch', async () => {
  await order('create_pod', { name: 'w-0', labels: { app: 'w' } })
  const { made, events, stop, had } = await informer('w')
  try {
    assert.equal(made.list(NAMESPACE).length, 1)
    await until(() => made.get('w-0', NAMESPACE)?.status.phase === 'Running', 'the pod runs in the cache')
    await order('create_pod', { name: 'w-1', labels: { app: 'w' } })
    await order('create_pod', { name: 'other', labels: { app: 'other' } })
    await until(() => had('add', 'w-1').length, 'w-1 is added')

    assert.ok((await order('cut_watches', { middle: true })) >= 1, 'a watch was open')
    await order('create_pod', { name: 'w-2', labels: { app: 'w' } })
    await until(() => had('add', 'w-2').length === 1, 'w-2 is added after half a line')

    await order('stop')
    const lists = await order('count', { verb: 'list' })
    await order('create_pod', { name: 'w-3', labels: { app: 'w' } })
    await order('expire')
    await order('start')
    await until(() => had('add', 'w-3').length === 1, 'w-3 is added after 410')
    assert.equal(await order('count', { verb: 'list' }), lists + 1, 'the client lists again')

    await order('replace_pod', { name: 'w-1' })
    await until(() => had('delete', 'w-1').length === 1 && had('add', 'w-1').length === 2, 'w-1 has a successor')
    assert.notEqual(had('add', 'w-1')[0][2], had('add', 'w-1')[1][2])
    await order('delete_pod', { name: 'w-2', grace: 0 })
    await until(() => had('delete', 'w-2').length === 1, 'w-2 is deleted')
    assert.deepEqual(made.list(NAMESPACE).map((one) => one.metadata.name).sort(), ['w-0', 'w-1', 'w-3'])
    assert.equal(had('add', 'other').length, 0)
  } catch (error) {
    error.message += `\nevents: ${JSON.stringify(events)}`
    throw error
  } finally {
    await stop()
  }
})

test('refusals have their reasons', async () => {
  await order('fail', { status: 429, reason: 'TooManyRequests', verb: 'list' })
  await refused(pods.listNamespacedPod({ namespace: NAMESPACE }), 429, 'TooManyRequests')
  await order('quota', { pods: 0 })
  await refused(create('over'), 403, 'Forbidden')
  await order('quota', { pods: null })
  await refused(create('Bad_Name'), 422, 'Invalid')
  await order('rotate_token')
  await refused(pods.listNamespacedPod({ namespace: NAMESPACE }), 401, 'Unauthorized')
})
