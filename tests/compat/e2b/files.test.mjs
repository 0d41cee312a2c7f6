// Files of sandboxes, by E2B's own client: written, read, listed, watched, and by signed URLs.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'

import { AuthenticationError, FileNotFoundError, FilesystemEventType, InvalidArgumentError, NotEnoughSpaceError, Sandbox, SandboxError } from 'e2b'
import { Sandbox as OldSandbox } from 'e2b-old'

import { needsRoot, serve, sleep, until } from './server.mjs'

const server = await serve()
const { options } = server
const sandbox = await Sandbox.create(options)
const { files } = sandbox
const run = (command, more) => sandbox.commands.run(command, more)
const out = async (command, more) => (await run(command, more)).stdout

// ---- reading and writing ----

test('a file is written and read, and its folders are made', async () => {
  const info = await files.write('a/b/c.txt', 'content ä👍')
  assert.deepEqual({ ...info }, { name: 'c.txt', path: '/home/user/a/b/c.txt', type: 'file', metadata: undefined })
  assert.equal(await files.read('a/b/c.txt'), 'content ä👍')
  assert.equal(await out('stat -c "%U %G %a" a a/b/c.txt'), 'user user 755\nuser user 644\n')
})

test('a file is read as text, bytes, a blob and a stream', async () => {
  const bytes = new Uint8Array(256).map((_, i) => i)
  await files.write('bytes', bytes.buffer)
  assert.deepEqual(await files.read('bytes', { format: 'bytes' }), bytes)
  assert.deepEqual(new Uint8Array(await (await files.read('bytes', { format: 'blob' })).arrayBuffer()), bytes)
  const parts = []
  for await (const part of await files.read('bytes', { format: 'stream' })) parts.push(...part)
  assert.deepEqual(Uint8Array.from(parts), bytes)
})

test('an empty file is one, also as bytes', async () => {
  await files.write('empty', '')
  assert.equal(await files.read('empty'), '')
  assert.equal((await files.read('empty', { format: 'bytes' })).length, 0)
  assert.equal((await files.getInfo('empty')).size, 0)
})

test('a folder in / is made as any other', needsRoot, async () => {
  assert.equal((await files.write('/app/src/main', 'x')).path, '/app/src/main')
  assert.equal(await out('stat -c %U /app /app/src/main; sudo mkdir /data && sudo chown user /data && touch /data/x && ls /data'), 'user\nuser\nx\n')
  assert.equal(await files.makeDir('/made'), true)
  await files.remove('/made')
  assert.equal(await files.exists('/made'), false)
})

test('a file of the kernel, which says that it has no size, is read', async () => {
  assert.match(await files.read('/proc/version'), /^Linux version/)
})

test('what is written again is replaced, and stays the same file', async () => {
  await files.write('again', 'something long')
  await run('ln again link-to-again')
  await files.write('again', 'short')
  assert.equal(await files.read('link-to-again'), 'short')
})

test('several files are written at once', async () => {
  const infos = await files.write([{ path: 'many/1', data: 'one' }, { path: '/tmp/many-2', data: new Blob(['two']) }, { path: 'many/3', data: '' }])
  assert.deepEqual(infos.map((one) => one.path), ['/home/user/many/1', '/tmp/many-2', '/home/user/many/3'])
  assert.equal(await files.read('many/1') + await files.read('/tmp/many-2') + await files.read('many/3'), 'onetwo')
  assert.deepEqual(await files.write([]), [])
})

test('a file is written as it is and compressed', async () => {
  const text = 'much of the same '.repeat(100_000)
  for (const more of [{ useOctetStream: true }, { useOctetStream: true, gzip: true }, { gzip: true }, {}]) {
    const info = await files.write('large', text, more)
    assert.equal(info.path, '/home/user/large')
    assert.equal(await files.read('large'), text)
    assert.equal(await files.read('large', { gzip: true }), text)
  }
})

test('what is relative, and what begins with a tilde, is in the home folder', async () => {
  await files.write('~/tilde', 'x')
  assert.equal(await files.read('tilde'), 'x')
  assert.equal(await files.read('/home/user/tilde'), 'x')
  assert.equal(await files.read('below/../tilde'), 'x')
  await assert.rejects(files.read('~other/x'), (error) => error instanceof InvalidArgumentError && /user-specific home dir/.test(error.message))
})

test('root has files of its own, and everybody may read them', needsRoot, async () => {
  await files.write('mine', 'root\'s', { user: 'root' })
  assert.equal(await files.read('mine', { user: 'root' }), 'root\'s')
  assert.equal(await files.read('/root/mine'), 'root\'s')
  assert.equal(await out('stat -c "%U" /root/mine', { user: 'root' }), 'root\n')
  await files.write('/opt/of-user', 'x')
  assert.equal((await files.getInfo('/opt/of-user')).owner, 'user')
})

test('an account that is not there is refused', async () => {
  await assert.rejects(files.read('a', { user: 'nobody-at-all' }), (error) => error instanceof AuthenticationError && /nobody-at-all/.test(error.message))
  await assert.rejects(files.list('.', { user: 'nobody-at-all' }), AuthenticationError)
})

test('what is not there, and what is a folder, is said', async () => {
  await files.makeDir('folder')
  await assert.rejects(files.read('nothing'), (error) => error instanceof FileNotFoundError && /path '\/home\/user\/nothing' does not exist/.test(error.message))
  await assert.rejects(files.read('folder'), (error) => error instanceof InvalidArgumentError && /is a directory/.test(error.message))
  await assert.rejects(files.write('folder', 'x'), InvalidArgumentError)
})

test('a full disk is said', async () => {
  const chunk = new Blob([new Uint8Array(48 * 1024 * 1024)])
  await assert.rejects(async () => {
    for (let i = 0; i < 200; i++) await files.write(`/tmp/full/${i}`, chunk, { useOctetStream: true })
  }, NotEnoughSpaceError)
  await run('rm -rf /tmp/full')
})

// ---- metadata ----

test('metadata is kept with a file, told wherever it is, and replaced as a whole', async () => {
  const metadata = { author: 'me', purpose: 'a test = 1' }
  assert.deepEqual((await files.write('labelled', 'x', { metadata })).metadata, metadata)
  assert.deepEqual((await files.getInfo('labelled')).metadata, metadata)
  assert.deepEqual((await files.list('.')).find((one) => one.name === 'labelled').metadata, metadata)
  assert.deepEqual((await files.rename('labelled', 'moved')).metadata, metadata)
  assert.deepEqual((await files.write('moved', 'x', { metadata: { other: 'y' }, useOctetStream: true })).metadata, { other: 'y' })
  assert.equal((await files.write('moved', 'x')).metadata, undefined)
  assert.equal((await files.getInfo('moved')).metadata, undefined)
  await run('setfattr -n user.e2b.author -v you moved && setfattr -n user.other -v x moved')
  assert.deepEqual((await files.getInfo('moved')).metadata, { author: 'you' })
})

test('metadata that cannot be is refused', async () => {
  await assert.rejects(files.write('x', 'x', { metadata: { a: 'x'.repeat(5000) } }), SandboxError)
  const answer = await post('/files?path=x', 'x', { 'Content-Type': 'application/octet-stream', 'X-Metadata-A': 'ä' })
  assert.equal(answer.status, 400)
})

// ---- what there is ----

test('a file is described', async () => {
  await files.write('described', '12345')
  await run('chmod 640 described && ln -s described link && ln -s nowhere lost && mkdir -p deep && ln -s deep folder-link')
  const { modifiedTime, ...info } = await files.getInfo('described')
  assert.deepEqual(info, { name: 'described', path: '/home/user/described', type: 'file', size: 5, mode: 0o640, permissions: '-rw-r-----', owner: 'user', group: 'user',
    symlinkTarget: undefined, metadata: undefined })
  assert.ok(Math.abs(modifiedTime - Date.now()) < 60_000)
  const link = await files.getInfo('link')
  assert.deepEqual([link.type, link.mode, link.permissions, link.symlinkTarget], ['file', 0o640, 'Lrwxrwxrwx', '/home/user/described'])
  assert.deepEqual([(await files.getInfo('folder-link')).type, (await files.getInfo('deep')).permissions], ['dir', 'drwxr-xr-x'])
  assert.equal((await files.getInfo('lost')).type, undefined)
  await assert.rejects(files.getInfo('nothing'), FileNotFoundError)
})

test('whether something is there is said', async () => {
  assert.deepEqual([await files.exists('/etc/passwd'), await files.exists('/etc'), await files.exists('/etc/nothing')], [true, true, false])
})

test('a folder is made once', async () => {
  assert.equal(await files.makeDir('new/er/est'), true)
  assert.equal(await files.makeDir('new/er/est'), false)
  await files.write('new/file', '')
  await assert.rejects(files.makeDir('new/file'), InvalidArgumentError)
})

test('a folder is listed as deep as was asked, in order', async () => {
  await run('mkdir -p listed/b/c/d listed/a && touch listed/b/z listed/b/c/x listed/a/y listed/e')
  const names = async (more) => (await files.list('listed', more)).map((one) => one.path.slice('/home/user/listed/'.length))
  assert.deepEqual(await names(), ['a', 'b', 'e'])
  assert.deepEqual(await names({ depth: 2 }), ['a', 'a/y', 'b', 'b/c', 'b/z', 'e'])
  assert.deepEqual(await names({ depth: 10 }), ['a', 'a/y', 'b', 'b/c', 'b/c/d', 'b/c/x', 'b/z', 'e'])
  const [a] = await files.list('/home/user/listed')
  assert.deepEqual([a.name, a.type, a.path], ['a', 'dir', '/home/user/listed/a'])
  await run('ln -s listed to-listed')
  assert.deepEqual((await files.list('to-listed')).map((one) => one.path), ['a', 'b', 'e'].map((name) => `/home/user/to-listed/${name}`))
  assert.ok((await files.list('/')).some((one) => one.path === '/etc'))
})

test('what cannot be listed is said', async () => {
  await files.write('no-folder', '')
  await assert.rejects(files.list('nothing'), FileNotFoundError)
  await assert.rejects(files.list('no-folder'), InvalidArgumentError)
  await assert.rejects(files.list('.', { depth: 0 }), InvalidArgumentError)
  await run('ln -s loop loop')
  await assert.rejects(files.list('loop'), SandboxError)
})

test('many files are listed', async () => {
  await run('mkdir -p crowd && cd crowd && seq -w 1 12000 | xargs touch')
  const listed = await files.list('crowd')
  assert.equal(listed.length, 12000)
  assert.deepEqual([listed[0].name, listed.at(-1).name], ['00001', '12000'])
})

test('a file is renamed, over another too, and into folders that are made', async () => {
  await files.write('old', 'content')
  const info = await files.rename('old', 'there/new')
  assert.equal(info.path, '/home/user/there/new')
  assert.equal(await files.exists('old'), false)
  assert.equal(await files.read('there/new'), 'content')
  await assert.rejects(files.rename('old', 'x'), FileNotFoundError)
})

test('what is removed is gone, and what is not there may be removed', async () => {
  await run('mkdir -p gone/deep && touch gone/deep/f')
  await files.remove('gone')
  assert.equal(await files.exists('gone'), false)
  await files.remove('gone')
})

// ---- watching ----

async function watch(folder, more) {
  const events = []
  const handle = await files.watchDir(folder, (event) => { events.push(event) }, more)
  return { events, handle, has: (type, name) => until(() => events.find((one) => one.type === type && one.name === name)) }
}

test('what happens in a folder is told', async () => {
  await files.write('seen/f', 'first')
  const { events, handle, has } = await watch('seen')
  await files.write('seen/f', 'second')
  await has(FilesystemEventType.WRITE, 'f')
  await run('chmod 600 seen/f; mkdir seen/d; touch seen/d/below')
  await has(FilesystemEventType.CHMOD, 'f')
  await has(FilesystemEventType.CREATE, 'd')
  await files.rename('seen/f', 'seen/g')
  await has(FilesystemEventType.RENAME, 'f')
  await has(FilesystemEventType.CREATE, 'g')
  await files.remove('seen/g')
  await has(FilesystemEventType.REMOVE, 'g')
  assert.ok(!events.some((one) => one.name.includes('below')))
  await handle.stop()
  const before = events.length
  await files.write('seen/after', 'x')
  await sleep(300)
  assert.equal(events.length, before)
})

test('new folders join a watch that goes into folders', async () => {
  await files.makeDir('deeply/in')
  const { handle, has } = await watch('deeply', { recursive: true })
  await files.write('deeply/in/f', 'x')
  await has(FilesystemEventType.WRITE, 'in/f')
  await files.makeDir('deeply/new')
  await has(FilesystemEventType.CREATE, 'new')
  await files.write('deeply/new/f', 'x')
  await has(FilesystemEventType.WRITE, 'new/f')
  await files.write('deeply/a/b/c/f', 'x')
  await has(FilesystemEventType.CREATE, 'a/b/c')
  await handle.stop()
})

test('events have what their file is, if that is asked for', async () => {
  await files.makeDir('looked')
  const { handle, has } = await watch('looked', { includeEntry: true })
  await files.write('looked/f', '12345', { metadata: { a: 'b' } })
  const event = await has(FilesystemEventType.CREATE, 'f')
  assert.deepEqual([event.entry.name, event.entry.path, event.entry.type], ['f', '/home/user/looked/f', 'file'])
  await files.remove('looked/f')
  assert.equal((await has(FilesystemEventType.REMOVE, 'f')).entry, undefined)
  await handle.stop()
})

test('what cannot be watched is said', async () => {
  await files.write('no-folder', '')
  await assert.rejects(files.watchDir('nothing', () => {}), FileNotFoundError)
  await assert.rejects(files.watchDir('no-folder', () => {}), InvalidArgumentError)
})

test('a watch ends at its time, and says so', async () => {
  await files.makeDir('timed-watch')
  let ended
  await files.watchDir('timed-watch', () => {}, { timeoutMs: 2000, onExit: (error) => { ended = error ?? true } })
  await until(() => ended)
})

test('events are collected for who asks for them', async () => {
  await files.makeDir('collected')
  const { body: { watcherId } } = await rpc('CreateWatcher', { path: 'collected' })
  assert.deepEqual((await rpc('GetWatcherEvents', { watcherId })).body, { events: [] })
  await files.write('collected/f', 'x')
  const events = []
  await until(async () => {
    events.push(...(await rpc('GetWatcherEvents', { watcherId })).body.events)
    return events.some((one) => one.type === 'EVENT_TYPE_WRITE')
  })
  assert.deepEqual(events[0], { name: 'f', type: 'EVENT_TYPE_CREATE' })
  assert.deepEqual((await rpc('RemoveWatcher', { watcherId })).body, {})
  assert.equal((await rpc('GetWatcherEvents', { watcherId })).status, 404)
  assert.equal((await rpc('CreateWatcher', { path: 'nothing' })).status, 404)
  for (let i = 0; i < 100; i++) assert.equal((await rpc('CreateWatcher', { path: 'collected' })).status, 200)
  assert.deepEqual((await rpc('CreateWatcher', { path: 'collected' })).body.code, 'resource_exhausted')
})

// ---- signed URLs ----

test('a file is fetched and written by a signed URL', async () => {
  await files.write('signed file+&=.txt', 'content')
  const url = await sandbox.downloadUrl('signed file+&=.txt')
  assert.equal(await (await fetch(url)).text(), 'content')
  const form = new FormData()
  form.append('file', new Blob(['by form']), 'whatever')
  const answer = await fetch(await sandbox.uploadUrl('by-url'), { method: 'POST', body: form })
  assert.equal(answer.status, 200)
  assert.equal((await answer.json())[0].path, '/home/user/by-url')
  assert.equal(await files.read('by-url'), 'by form')
})

test('a signed URL has its time', async () => {
  await files.write('timed', 'content')
  assert.equal(await (await fetch(await sandbox.downloadUrl('timed', { useSignatureExpiration: 60 }))).text(), 'content')
  const late = await fetch(await sandbox.downloadUrl('timed', { useSignatureExpiration: -60 }))
  assert.equal(late.status, 401)
  assert.deepEqual(await late.json(), { code: 401, message: 'signature is already expired' })
})

test('a signature is for one file, one account and one direction', async () => {
  await files.write('one', '1')
  const url = new URL(await sandbox.downloadUrl('one'))
  for (const [name, value] of [['path', 'two'], ['username', 'root'], ['signature', 'v1_x'], ['signature_expiration', '9999999999']]) {
    const other = new URL(url)
    other.searchParams.set(name, value)
    assert.equal((await fetch(other)).status, 401, name)
  }
  assert.equal((await fetch(url, { method: 'POST', body: 'x', headers: { 'Content-Type': 'application/octet-stream' } })).status, 401)
  const bare = new URL(url)
  bare.searchParams.delete('signature')
  assert.equal((await fetch(bare)).status, 401)
  const expected = createHash('sha256').update(`one:read::${sandbox.envdAccessToken}`).digest('base64').replaceAll('=', '')
  assert.equal(url.searchParams.get('signature'), `v1_${expected}`)
})

// ---- what a client has no word for ----

const head = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': sandbox.envdAccessToken }
const post = (where, body, headers = {}) => fetch(server.url + where, { method: 'POST', body, headers: { ...head, ...headers } })

async function rpc(method, body) {
  const answer = await post(`/filesystem.Filesystem/${method}`, JSON.stringify(body), { 'Content-Type': 'application/json' })
  return { status: answer.status, body: await answer.json() }
}

test('nothing is removed or renamed without its name, and homes stay', async () => {
  await files.write('kept', 'content')
  for (const [method, body, word] of [['Remove', { path: 5 }, /path is 5; it has to be a text/], ['Remove', {}, /path is missing or empty/], ['Remove', { path: '' }, /path is missing or empty/],
    ['Remove', { path: null }, /path is missing or empty/], ['Remove', { Path: 'kept' }, /path is missing or empty/], ['Remove', { path: '~' }, /path is \/home\/user/],
    ['Remove', { path: '.' }, /path is \/home\/user/], ['Remove', { path: '/home/user/' }, /path is \/home\/user/], ['Remove', { path: '/home/user/x/..' }, /home folder/],
    ['Remove', { path: '/home' }, /path is \/home/], ['Remove', { path: '/' }, /path is \//], ['Remove', { path: '/root' }, /path is \/root/],
    ['Move', { source: 5, destination: 'x' }, /source is 5/], ['Move', { destination: '/tmp/x' }, /source is missing or empty/], ['Move', { source: '~', destination: '/tmp/x' }, /source is \/home\/user/],
    ['Move', { source: 'kept' }, /destination is missing or empty/], ['Move', { source: 'kept', destination: [] }, /destination is \[\]/]]) {
    const got = await rpc(method, body)
    assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
    assert.match(got.body.message, word)
  }
  await assert.rejects(files.remove(''), /path is missing or empty/)
  assert.equal(await files.read('kept'), 'content')
})

test('what has the wrong type is refused, and what is missing is the home folder', async () => {
  for (const [method, body, word] of [['Stat', { path: 5 }, /path is 5/], ['ListDir', { path: '.', depth: 'x' }, /depth is "x"/], ['ListDir', { path: '.', depth: -1 }, /depth is -1/],
    ['MakeDir', { path: {} }, /path is {}/], ['CreateWatcher', { path: '.', recursive: 'yes' }, /recursive is "yes"/], ['GetWatcherEvents', { watcherId: 5 }, /watcherId is 5/]]) {
    const got = await rpc(method, body)
    assert.deepEqual([got.status, got.body.code], [400, 'invalid_argument'])
    assert.match(got.body.message, word)
  }
  assert.equal((await rpc('Stat', {})).body.entry.path, '/home/user')
  assert.equal((await rpc('ListDir', { path: null, depth: '1', unknown: 1 })).status, 200)
  assert.deepEqual((await rpc('GetWatcherEvents', { watcherId: 'nope' })).body, { code: 'not_found', message: 'watcher with id nope not found' })
})

test('what is missing of a move is its source', async () => {
  assert.deepEqual((await rpc('Move', { source: 'nope.txt', destination: 'dst.txt' })).body, { code: 'not_found', message: "path not found: '/home/user/nope.txt'" })
})

test('a part of a file is fetched', async () => {
  await files.write('part', '0123456789')
  const get = async (range) => fetch(`${server.url}/files?path=part`, { headers: { ...head, Range: range } })
  const some = await get('bytes=2-4')
  assert.deepEqual([some.status, some.headers.get('content-range'), await some.text()], [206, 'bytes 2-4/10', '234'])
  const beyond = await get('bytes=10-')
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */10'])
})

test('forms have parts for files, and others that are for nobody', async () => {
  const form = new FormData()
  form.append('other', 'ignored')
  form.append('file', new Blob(['x']), 'formed')
  assert.deepEqual(await (await post('/files', form)).json(), [{ path: '/home/user/formed', name: 'formed', type: 'file' }])
  const twice = new FormData()
  twice.append('file', new Blob(['x']), 'a')
  twice.append('file', new Blob(['y']), 'b')
  assert.equal((await post('/files?path=same', twice)).status, 400)
  const nameless = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nplain\r\n--b--\r\n'
  assert.equal((await post('/files?path=plain', nameless, { 'Content-Type': 'multipart/form-data; boundary=b' })).status, 200)
  assert.equal(await files.read('plain'), 'plain')
  assert.equal((await post('/files', nameless, { 'Content-Type': 'multipart/form-data; boundary=b' })).status, 400)
  assert.equal((await post('/files', '--b\r\nContent-Dis', { 'Content-Type': 'multipart/form-data; boundary=b' })).status, 400)
})

test('bodies that are none are refused', async () => {
  const octets = { 'Content-Type': 'application/octet-stream' }
  assert.equal((await post('/files', 'x', octets)).status, 400)
  assert.equal((await post('/files?path=x', 'x', { 'Content-Type': 'text/html' })).status, 400)
  assert.equal((await post('/files?path=x', 'no gzip', { ...octets, 'Content-Encoding': 'gzip' })).status, 400)
  assert.equal((await post('/files?path=x', gzipSync('x'.repeat(1000)).subarray(0, 15), { ...octets, 'Content-Encoding': 'gzip' })).status, 400)
  assert.equal((await post('/files?path=x', 'x', { ...octets, 'Content-Encoding': 'br' })).status, 400)
  assert.equal((await post('/files?path=bomb', gzipSync(Buffer.alloc(30_000_000)), { ...octets, 'Content-Encoding': 'gzip' })).status, 200)
  assert.equal((await files.getInfo('bomb')).size, 30_000_000)
})

test('a wrong token is refused though it is for files', async () => {
  for (const token of ['wrong', ''])
    assert.equal((await fetch(`${server.url}/files?path=x`, { headers: { ...head, 'X-Access-Token': token } })).status, 401)
})

test('a client of a year ago writes, reads, lists and watches', async (t) => {
  const old = await OldSandbox.create(options)
  t.after(() => old.kill())
  await old.files.write('f', 'old')
  assert.equal(await old.files.read('f'), 'old')
  assert.ok((await old.files.list('.')).some((one) => one.name === 'f'))
  let seen
  const handle = await old.files.watchDir('.', (event) => { seen = event })
  await old.files.write('g', 'x')
  await until(() => seen)
  await handle.stop()
})

test('what root lays in place of the list of accounts holds nobody up', needsRoot, async (t) => {
  const own = await Sandbox.create(options)
  t.after(() => own.kill())
  await own.files.write('file', '1')
  await own.commands.run('rm /etc/passwd; mkfifo /etc/passwd; rm /etc/group; ln -s /dev/zero /etc/group', { user: 'root' })
  const [entry] = await own.files.list('.')
  assert.equal(entry.owner, '1000')
})
