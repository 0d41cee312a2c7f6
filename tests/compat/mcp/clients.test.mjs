// The official clients, unmodified: the one of 2025 (@modelcontextprotocol/sdk) and the one of 2026 (@modelcontextprotocol/client), over both
// transports, in both revisions.

import assert from 'node:assert/strict'
import test from 'node:test'

import { CAISSON, environment, serve } from './server.mjs'

const old = Number(process.versions.node.split('.')[0]) < 20 && 'needs node20: the clients of 2026 do not run on an older Node'
const [sdk, sdkHttp, sdkStdio] = await Promise.all(['client/index.js', 'client/streamableHttp.js', 'client/stdio.js']
  .map((name) => import(`@modelcontextprotocol/sdk/${name}`)))
const modern = old ? null : { ...await import('@modelcontextprotocol/client'), ...await import('@modelcontextprotocol/client/stdio') }

const server = await serve()
const stdio = { command: CAISSON, args: ['mcp', '--set', `engine.socket=${server.socket}`, '--daemon', 'always'], env: environment(), stderr: 'inherit' }
const alone = { ...stdio, args: ['mcp', '--daemon', 'never'] }

const INFO = { name: 'test', version: '1' }
const of2026 = (mode) => new modern.Client(INFO, { versionNegotiation: { mode } })
const WAYS = [
  ['sdk 1, HTTP', '2025-11-25', () => [new sdk.Client(INFO), new sdkHttp.StreamableHTTPClientTransport(new URL(server.url))]],
  ['sdk 1, stdio', '2025-11-25', () => [new sdk.Client(INFO), new sdkStdio.StdioClientTransport(stdio)]],
  ['sdk 1, stdio, a daemon of its own', '2025-11-25', () => [new sdk.Client(INFO), new sdkStdio.StdioClientTransport(alone)]],
  ['sdk 2, HTTP', '2026-07-28', () => [of2026({ pin: '2026-07-28' }), new modern.StreamableHTTPClientTransport(new URL(server.url))]],
  ['sdk 2, HTTP, as it finds', '2026-07-28', () => [of2026('auto'), new modern.StreamableHTTPClientTransport(new URL(server.url))]],
  ['sdk 2, HTTP, the old way', '2025-11-25', () => [of2026('legacy'), new modern.StreamableHTTPClientTransport(new URL(server.url))]],
  ['sdk 2, stdio', '2026-07-28', () => [of2026({ pin: '2026-07-28' }), new modern.StdioClientTransport(stdio)]],
  ['sdk 2, stdio, as it finds', '2026-07-28', () => [of2026('auto'), new modern.StdioClientTransport(stdio)]],
]

const PLOT = `
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.savefig('plot.png')
print('drawn')
`

const call = (client, name, args, options) => client.callTool({ name, arguments: args }, ...(client instanceof sdk.Client ? [undefined, options] : [options]))

for (const [name, version, make] of WAYS) {
  const way = (title, body) => test(`${name}: ${title}`, name.startsWith('sdk 2') && old ? { skip: old } : {}, async () => {
    const [client, transport] = make()
    await client.connect(transport)
    try {
      await body(client, transport)
    } finally {
      await client.close()
    }
  })

  way('the revision is the one that was asked for', async (client, transport) => {
    assert.equal(client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? version, version)
    assert.equal(client.getServerVersion().name, 'caisson')
  })

  way('tools have schemas, annotations, and a description of what is here', async (client) => {
    const { tools } = await client.listTools()
    const run = tools.find((one) => one.name === 'run_code')
    assert.match(run.description, /Languages: python/)
    assert.deepEqual(run.inputSchema.required, ['code', 'language'])
    assert.equal(run.outputSchema.type, 'object')
    assert.equal(tools.find((one) => one.name === 'list_files').annotations.readOnlyHint, true)
    assert.equal(tools.find((one) => one.name === 'kill_sandbox').annotations.destructiveHint, true)
  })

  way('a program runs, and its record fits the output schema', async (client) => {
    await client.listTools()
    const good = await call(client, 'run_code', { language: 'python', code: 'print(6 * 7)' })
    assert.equal(good.content[0].text, '42\n')
    assert.equal(good.structuredContent.status, 'completed')
    assert.equal(good.isError, false)
    const bad = await call(client, 'run_code', { language: 'python', code: '1 / 0' })
    assert.equal(bad.isError, true)
    assert.match(bad.content[0].text, /ZeroDivisionError/)
    assert.equal(bad.structuredContent.status, 'failed')
  })

  way('the other tools fit their schemas, too', async (client) => {
    await client.listTools()
    const check = await call(client, 'check_code', { language: 'python', code: 'eval("1")' })
    assert.equal(check.structuredContent.verdict, 'deny')
    const grade = await call(client, 'grade_code', { language: 'python', code: 'def f(x): return x', function: 'f', cases: [{ args: [1], expected: 1 }] })
    assert.equal(grade.structuredContent.all_passed, true)
    const box = (await call(client, 'create_sandbox', { ttl_ms: 60000 })).structuredContent
    assert.ok((await call(client, 'list_sandboxes', {})).structuredContent.sandboxes.some((one) => one.id === box.id))
    const at = { sandbox: box.id }
    await call(client, 'write_file', { ...at, path: 'a/b.txt', content: 'some text' })
    assert.equal((await call(client, 'read_file', { ...at, path: 'a/b.txt' })).content[0].text, 'some text')
    const entries = (await call(client, 'list_files', { ...at, path: 'a' })).structuredContent.entries
    assert.deepEqual(entries.map((one) => one.name), ['b.txt'])
    const ls = (await call(client, 'run_command', { ...at, command: 'cat a/b.txt; exit 3' })).structuredContent
    assert.deepEqual([ls.stdout, ls.exit_code], ['some text', 3])
    const context = (await call(client, 'create_context', { ...at, language: 'python' })).structuredContent.id
    await call(client, 'run_code', { context, code: 'x = 20' })
    assert.equal((await call(client, 'run_code', { context, code: 'print(x + 1)' })).content[0].text, '21\n')
    const read = await client.readResource({ uri: `sandbox:/v1/sandboxes/${box.id}/files/a/b.txt` })
    assert.equal(read.contents[0].text, 'some text')
    assert.equal((await call(client, 'kill_sandbox', at)).isError, false)
    assert.equal((await call(client, 'read_file', { ...at, path: 'a/b.txt' })).isError, true)
  })

  way('a plot is an image, and a resource', async (client) => {
    await client.listTools()
    const result = await call(client, 'run_code', { language: 'python', code: PLOT })
    const image = result.content.find((one) => one.type === 'image'), link = result.content.find((one) => one.type === 'resource_link')
    assert.equal(image.mimeType, 'image/png')
    assert.equal(Buffer.from(image.data, 'base64').subarray(1, 4).toString(), 'PNG')
    assert.equal(link.name, 'plot.png')
    assert.ok((await client.listResources()).resources.some((one) => one.uri === link.uri))
    const read = (await client.readResource({ uri: link.uri })).contents[0]
    assert.deepEqual([read.blob, read.mimeType], [image.data, 'image/png'])
  })

  way('progress is told while it goes on, and who cancels a program ends it', async (client) => {
    const cancelled = async () => Number(/_total{language="python",status="cancelled"} (\d+)/.exec(await (await fetch(`${server.base}/metrics`)).text())?.[1] ?? 0)
    const before = await cancelled(), abort = new AbortController(), told = []
    const running = call(client, 'run_code', { language: 'python', code: 'import time\nwhile True:\n    print(1, flush=True)\n    time.sleep(0.1)' },
      { signal: abort.signal, onprogress: (one) => told.push(one.progress) === 2 && abort.abort() })
    await assert.rejects(running)
    assert.ok(told.length >= 2, `${told}`)
    assert.deepEqual(told, [...told].sort((a, b) => a - b))
    for (const end = Date.now() + 60_000; !name.includes('of its own') && await cancelled() === before; await new Promise((resolve) => setTimeout(resolve, 50)))
      assert.ok(Date.now() < end, 'it goes on')
  })

  way('prompts and completions are there', async (client) => {
    const { prompts } = await client.listPrompts()
    const got = await client.getPrompt({ name: prompts[0].name, arguments: { task: 'count', profile: 'data' } })
    assert.match(got.messages[0].content.text, /Limits: .*count/s)
    const done = await client.complete({ ref: { type: 'ref/prompt', name: prompts[0].name }, argument: { name: 'profile', value: 'da' } })
    assert.deepEqual(done.completion.values, ['data', 'data_processing'])
  })
}
