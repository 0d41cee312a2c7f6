// Ports of programs in sandboxes, from outside: by the Host that E2B's client names, and by its headers.

import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'

import { Sandbox } from 'e2b'

import { needsRoot, serve, sleep, until } from './server.mjs'

const server = await serve()
const { options } = server
const sandbox = await Sandbox.create(options)
const { port: serverPort } = new URL(server.url)

/** A server in the sandbox that says what it was asked, and does what the path names. */
const program = `
const http = require('node:http')
const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => {
    const body = Buffer.concat(parts)
    const path = request.url.split('?')[0]
    if (path === '/echo') response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body: body.toString().slice(0, 100), length: body.length }))
    else if (path === '/status') response.writeHead(418, 'I am a teapot', [['Set-Cookie', 'a=1'], ['Set-Cookie', 'b=2'], ['Cache-Control', 'max-age=9']]).end('short')
    else if (path === '/large') { response.writeHead(200); for (let i = 0; i < 300; i++) response.write(Buffer.alloc(65536, 'x')); response.end() }
    else if (path === '/slow') { response.write('one,'); setTimeout(() => response.end('two'), 300) }
    else if (path === '/none') response.writeHead(204).end()
    else if (path === '/break') { response.writeHead(200, { 'Content-Length': 100 }); response.write('part'); setTimeout(() => request.socket.destroy(), 100) }
    else if (path === '/interim') { response.writeEarlyHints({ link: '</style.css>; rel=preload' }); response.end('late') }
    else if (path === '/never') {}
    else response.writeHead(404).end()
  })
})
server.on('upgrade', (request, socket, head) => {
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: echo\\r\\nX-Mark: yes\\r\\n\\r\\nhello ')
  socket.write(head)
  socket.on('data', (bytes) => bytes.toString() === 'bye' ? socket.end('good bye') : socket.write(bytes))
  socket.on('error', () => {})
})
server.listen(3000, '127.0.0.1')
`
await sandbox.files.write('server.js', program)
const listens = (port) => until(async () => (await sandbox.commands.run(`python3 -c "import socket; socket.create_connection(('localhost', ${port}))" && echo yes || true`)).stdout === 'yes\n')
await sandbox.commands.run('node server.js', { background: true, timeoutMs: 0 })
await listens(3000)

/** A request to a port, by the name that the client gives it. */
function ask(port, path, { method = 'GET', headers = {}, body, host = sandbox.getHost(port) } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port: serverPort, path, method, headers: { Host: host, ...headers }, agent: false }, (response) => {
      const parts = []
      response.on('data', (part) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, raw: response.rawHeaders, text: Buffer.concat(parts).toString() }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

test('a program answers at the name of its port', async () => {
  assert.equal(sandbox.getHost(3000), `3000-${sandbox.sandboxId}.e2b.test`)
  const got = await ask(3000, '/echo?a=%2F&b', { headers: { 'X-Own': 'mine', 'E2b-Sandbox-Port': '1' } })
  assert.equal(got.status, 200)
  const { method, url, headers } = JSON.parse(got.text)
  assert.deepEqual([method, url, headers['x-own'], headers.host, headers.connection], ['GET', '/echo?a=%2F&b', 'mine', `3000-${sandbox.sandboxId}.e2b.test`, 'close'])
  assert.equal(headers['e2b-sandbox-port'], undefined)
})

test('and by headers', async () => {
  const answer = await fetch(`${server.url}/echo`, { headers: { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '3000' } })
  assert.equal((await answer.json()).url, '/echo')
})

test('bodies of any length go in, with their length and in chunks', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const got = JSON.parse((await ask(3000, '/echo', { method, body: 'body', headers: { 'Content-Length': 4 } })).text)
    assert.deepEqual([got.method, got.body], [method, 'body'])
  }
  const chunked = JSON.parse((await ask(3000, '/echo', { method: 'POST', body: Buffer.alloc(3_000_000, 'y'), headers: { 'Transfer-Encoding': 'chunked' } })).text)
  assert.deepEqual([chunked.length, chunked.headers['transfer-encoding']], [3_000_000, 'chunked'])
  const sized = JSON.parse((await ask(3000, '/echo', { method: 'POST', body: Buffer.alloc(3_000_000, 'y'), headers: { 'Content-Length': 3_000_000 } })).text)
  assert.equal(sized.length, 3_000_000)
})

test('status and headers are the program\'s', async () => {
  const got = await ask(3000, '/status')
  assert.deepEqual([got.status, got.text, got.headers['set-cookie'], got.headers['cache-control']], [418, 'short', ['a=1', 'b=2'], 'max-age=9'])
  assert.equal(got.headers['x-content-type-options'], undefined)
  assert.equal((await ask(3000, '/none')).status, 204)
  assert.equal((await ask(3000, '/nothing')).status, 404)
  const head = await ask(3000, '/echo', { method: 'HEAD' })
  assert.deepEqual([head.status, head.text], [200, ''])
})

test('large answers, slow ones and early hints arrive', async () => {
  assert.equal((await ask(3000, '/large')).text.length, 300 * 65536)
  assert.equal((await ask(3000, '/slow')).text, 'one,two')
  const hinted = await ask(3000, '/interim')
  assert.deepEqual([hinted.status, hinted.text], [200, 'late'])
})

test('an answer that breaks off is no whole one', async () => {
  await assert.rejects(ask(3000, '/break'))
})

test('a port on which nobody listens says so', async () => {
  const got = await ask(3999, '/')
  assert.equal(got.status, 502)
  assert.deepEqual(JSON.parse(got.text), { sandboxId: sandbox.sandboxId, message: 'The sandbox is running but port is not open', port: 3999, code: 502 })
})

test('a browser is shown a page', async () => {
  const got = await ask(3999, '/', { headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64)' } })
  assert.deepEqual([got.status, got.headers['content-type']], [502, 'text/html; charset=utf-8'])
  assert.match(got.text, /<title>Closed Port Error<\/title>/)
})

test('programs of E2B\'s image call python', needsRoot, async () => {
  assert.match((await sandbox.commands.run('python --version')).stdout, /^Python 3/)
  await sandbox.commands.run('python -m http.server 8000', { background: true, timeoutMs: 0 })
  await until(async () => (await ask(8000, '/')).status === 200)
})

test('a sandbox that is not there says so', async () => {
  const got = await ask(3000, '/', { host: '3000-inothere.e2b.test' })
  assert.equal(got.status, 502)
  assert.equal(JSON.parse(got.text).message, 'The sandbox was not found')
})

test('a program that speaks no HTTP is told as that', async () => {
  await sandbox.commands.run('while true; do python3 -c "' +
    'import socket\ns = socket.create_server((\'127.0.0.1\', 3001), reuse_port=True)\nwhile True:\n  c, _ = s.accept(); c.recv(9); c.sendall(b\'SSH-2.0-nonsense\\r\\n\'); c.close()"; done',
  { background: true, timeoutMs: 0 })
  await listens(3001)
  const got = await ask(3001, '/')
  assert.equal(got.status, 502)
  assert.match(got.text, /does not answer as HTTP does/)
})

test('who listens by IPv6 alone is found', async () => {
  await sandbox.commands.run('python3 -m http.server 3002 --bind ::1', { background: true, timeoutMs: 0 })
  await until(async () => (await ask(3002, '/')).status === 200)
})

function upgrade(path = '/', headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port: serverPort, path, headers: { Host: sandbox.getHost(3000), Connection: 'Upgrade', Upgrade: 'echo', ...headers } })
    request.on('upgrade', (response, socket, head) => resolve({ response, socket, head }))
    request.on('response', (response) => reject(new Error(`${response.statusCode}`)))
    request.on('error', reject)
    request.end()
  })
}

test('a connection becomes something else, and bytes go both ways', async () => {
  const { response, socket, head } = await upgrade()
  assert.deepEqual([response.headers.upgrade, response.headers['x-mark']], ['echo', 'yes'])
  let seen = head.toString()
  socket.on('data', (bytes) => { seen += bytes })
  const ended = new Promise((resolve) => socket.on('end', resolve))
  await until(() => seen === 'hello ')
  socket.write('there')
  await until(() => seen === 'hello there')
  const much = 'z'.repeat(2_000_000)
  socket.write(much)
  await until(() => seen.length === 11 + much.length)
  socket.write('bye')
  await ended
  assert.ok(seen.endsWith('zgood bye'))
})

test('a client that leaves in the middle leaves nothing behind', async () => {
  for (let i = 0; i < 5; i++) (await upgrade()).socket.destroy()
  const never = http.request({ host: '127.0.0.1', port: serverPort, path: '/never', headers: { Host: sandbox.getHost(3000) } })
  never.on('error', () => {})
  never.end()
  await sleep(200)
  never.destroy()
  const open = async () => Number((await sandbox.commands.run('cat /proc/net/tcp | awk \'$2 ~ /:0BB8$/ && $4 == "01"\' | wc -l')).stdout)
  await until(async () => await open() === 0)
})

test('a sandbox without public traffic wants its token', async (t) => {
  const closed = await Sandbox.create({ ...options, network: { allowPublicTraffic: false } })
  t.after(() => closed.kill())
  await closed.commands.run('python3 -m http.server 3000', { background: true, timeoutMs: 0 })
  const get = (headers) => ask(3000, '/', { host: closed.getHost(3000), headers })
  await until(async () => (await get({ 'E2B-Traffic-Access-Token': closed.trafficAccessToken })).status === 200)
  assert.equal((await get({})).status, 403)
  assert.equal((await get({ 'E2B-Traffic-Access-Token': 'wrong' })).status, 403)
})

test('on a port that speaks TLS inside, requests and connections go by TLS', async (t) => {
  const closed = await Sandbox.create({ ...options, network: { httpsPorts: [8443, 8444, 8445] } })
  t.after(() => closed.kill())
  const made = await closed.commands.run('openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key -out cert')
  assert.equal(made.exitCode, 0)
  await closed.files.write('server.js', `
    const tls = { key: require('fs').readFileSync('key'), cert: require('fs').readFileSync('cert') }
    ${program.replace('http.createServer(', "require('node:https').createServer(tls, ").replace('3000', '8443')}
    require('node:net').createServer((socket) => socket.end('no TLS at all')).listen(8444)`)
  await closed.commands.run('node server.js', { background: true, timeoutMs: 0 })
  const on = (port, path, more) => ask(port, path, { host: closed.getHost(port), ...more })
  await until(async () => (await on(8443, '/echo')).status === 200)
  const body = Buffer.alloc(1_000_000, 'b')
  const { length, method } = JSON.parse((await on(8443, '/echo', { method: 'POST', body })).text)
  assert.deepEqual([length, method], [body.length, 'POST'])
  assert.equal((await on(8443, '/large')).text.length, 300 * 65536)
  assert.equal((await on(8443, '/none')).status, 204)
  assert.match((await on(8444, '/echo')).text, /TLS/)
  assert.equal((await on(8445, '/echo')).status, 502)
  assert.equal(await new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port: serverPort, headers: { Host: closed.getHost(8443), Connection: 'Upgrade', Upgrade: 'echo' }, agent: false })
    request.on('error', reject).on('upgrade', (_, socket, head) => {
      let text = head.toString()
      socket.on('data', (bytes) => { text += bytes }).on('end', () => resolve(text))
      socket.write('bye')
    }).end()
  }), 'hello good bye')
  assert.deepEqual((await closed.getInfo()).network.httpsPorts, [8443, 8444, 8445])
  for (const httpsPorts of ['x', [0], [65536], ['443'], [1.5]])
    await assert.rejects(Sandbox.create({ ...options, network: { httpsPorts } }), /httpsPorts/)
})

test('the Host that a program sees can be chosen', async (t) => {
  const masked = await Sandbox.create({ ...options, network: { maskRequestHost: 'localhost:${PORT}' } })
  t.after(() => masked.kill())
  await masked.files.write('server.js', program)
  await masked.commands.run('node server.js', { background: true, timeoutMs: 0 })
  const got = await until(async () => {
    const answer = await ask(3000, '/echo', { host: masked.getHost(3000) })
    return answer.status === 200 && answer
  })
  assert.equal(JSON.parse(got.text).headers.host, 'localhost:3000')
})

test('connections end with their sandbox', async () => {
  const doomed = await Sandbox.create(options)
  await doomed.files.write('server.js', program)
  await doomed.commands.run('node server.js', { background: true, timeoutMs: 0 })
  await until(async () => (await ask(3000, '/echo', { host: doomed.getHost(3000) })).status === 200)
  const { socket } = await upgrade('/', { Host: doomed.getHost(3000) })
  const closed = new Promise((resolve) => socket.on('close', resolve))
  socket.on('error', () => {})
  socket.resume()
  const waiting = ask(3000, '/never', { host: doomed.getHost(3000) })
  await sleep(200)
  await doomed.kill()
  await closed
  assert.equal((await waiting).status, 502)
})
