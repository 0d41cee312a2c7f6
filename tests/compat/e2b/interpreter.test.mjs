// E2B's code interpreter, by its own client: executions, what they show and print, contexts, and how they end.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Sandbox } from '@e2b/code-interpreter'

import { ask, needsRoot, serve, sleep } from './server.mjs'

const server = await serve()
const { options } = server

/** A sandbox for one test. */
async function make(t, more = {}) {
  const sandbox = await Sandbox.create({ ...options, ...more })
  t.after(() => sandbox.kill())
  return sandbox
}

/** A promise, and what keeps it. */
function deferred() {
  let resolve
  return { promise: new Promise((kept) => { resolve = kept }), resolve }
}

/** One for those that leave nothing behind that the next one could see. */
const shared = await Sandbox.create({ ...options, timeoutMs: 600_000 })
const run = (code, more = {}) => shared.runCode(code, more)

/** What the client would ask of the interpreter. */
const headers = { 'E2b-Sandbox-Id': shared.sandboxId, 'E2b-Sandbox-Port': '49999', 'X-Access-Token': shared.envdAccessToken ?? '' }
const raw = (method, path, body, more = {}) => ask(server, method, path, body, { 'Content-Type': 'application/json', ...headers, ...more })
const execute = (body) => fetch(`${server.url}/execute`, { method: 'POST', headers, body: JSON.stringify(body) })
async function answerOf(body) {
  const answer = await execute(body)
  return { answer, lines: (await answer.text()).trim().split('\n').map((line) => JSON.parse(line)) }
}

/** Code that goes on until the file is there; a test writes it when it has seen what it waits for. */
const waitFor = (name) => `import os, time\nwhile not os.path.exists('/tmp/${name}'): time.sleep(0.02)`
const say = (name, sandbox = shared) => sandbox.files.write(`/tmp/${name}`, '')

// ---- values

test('the value of the last expression is the result', async () => {
  const done = await run('x = 1; x')
  assert.equal(done.text, '1')
  assert.equal(done.results.length, 1)
  assert.equal(done.results[0].isMainResult, true)
  assert.equal(done.error, undefined)
  assert.deepEqual(done.logs, { stdout: [], stderr: [] })
})

test('a statement has no value', async () => {
  const done = await run('y = 2')
  assert.equal(done.text, undefined)
  assert.deepEqual(done.results, [])
})

test('a text loses its quotes, and only one pair of them', async () => {
  for (const [code, text] of [["'a'", 'a'], ['"it\'s"', "it's"], ['"\'a\'"', "'a'"], ["''", ''], ["['a']", "['a']"]])
    assert.equal((await run(code)).results[0].text, text, code)
})

test('long values are whole', async () => {
  const { text } = await run('list(range(5000))')
  assert.ok(text.endsWith('4998, 4999]') && !text.includes('...'))
})

test('variables last', async () => {
  await run('kept = [1]')
  assert.equal((await run('kept.append(2); kept')).text, '[1, 2]')
})

test('a text that is indented as a whole is run', async () => {
  const done = await run('\n    import sys\n    if True:\n        z = 3\n    z\n    ')
  assert.equal(done.text, '3')
})

test('what await gives is the value', async () => {
  assert.equal((await run('import asyncio\nawait asyncio.sleep(0, 5)')).text, '5')
})

test('commands and magics work', async () => {
  assert.deepEqual((await run('!echo one two')).logs.stdout, ['one two\n'])
  assert.equal((await run('!pwd')).logs.stdout.join('').trim(), '/home/user')
  assert.deepEqual((await run('%%bash\necho $((2 * 3))')).logs.stdout, ['6\n'])
  assert.equal((await run('%pwd')).text, '/home/user')
})

// ---- output

test('what print() writes is one line', async () => {
  const seen = []
  const done = await run('print("hello")', { onStdout: (one) => seen.push(one) })
  assert.deepEqual(done.logs.stdout, ['hello\n'])
  assert.equal(seen.length, 1)
  assert.equal(seen[0].line, 'hello\n')
  assert.equal(seen[0].error, false)
  assert.ok(Math.abs(Number(seen[0].timestamp) || Date.parse(seen[0].timestamp)) > 0)
})

test('and so is what goes to standard error', async () => {
  const seen = []
  const done = await run('import sys; print("oh", file=sys.stderr)', { onStderr: (one) => seen.push(one) })
  assert.deepEqual(done.logs, { stdout: [], stderr: ['oh\n'] })
  assert.equal(seen[0].error, true)
})

test('output comes while the execution goes on', async () => {
  const seen = []
  await run(`print(1)\n${waitFor('heard')}\nprint(2)`, { onStdout: (one) => {
    seen.push(one.line)
    return say('heard')
  } })
  assert.deepEqual(seen, ['1\n', '2\n'])
})

test('characters are never cut', async () => {
  const done = await run('import os\nos.write(1, "ä".encode()[:1])\nos.write(1, "ä".encode()[1:]);')
  assert.equal(done.logs.stdout.join(''), 'ä')
})

test('much output is all there', async () => {
  const done = await run('print("x" * 3_000_000)')
  assert.equal(done.logs.stdout.join('').length, 3_000_001)
})

test('output, results and errors come in their order', async () => {
  const seen = []
  await run('print("a")\ndisplay(1)\nprint("b")\n1/0', {
    onStdout: (one) => seen.push(one.line), onResult: (one) => seen.push(one.text), onError: (one) => seen.push(one.name),
  })
  assert.deepEqual(seen, ['a\n', '1', 'b\n', 'ZeroDivisionError'])
})

test('what is printed before a display comes before it, and what is printed after it behind it', async () => {
  const seen = []
  await run('for i in range(90):\n    print(i)\n    display(i)', { onStdout: (one) => seen.push(one.line), onResult: (one) => seen.push(one.text) })
  assert.deepEqual(seen, Array.from({ length: 90 }, (_, i) => [`${i}\n`, `${i}`]).flat())
})

test('executions are counted', async (t) => {
  const sandbox = await make(t)
  assert.equal((await sandbox.runCode('1')).executionCount, 1)
  assert.equal((await sandbox.runCode('nothing')).executionCount, 2)
  assert.equal((await sandbox.runCode('pass')).executionCount, 3)
})

// ---- errors

test('an error has a name, a value and a traceback, and is not printed besides', async () => {
  const seen = []
  const done = await run('def f():\n    return undefined_name\nf()', { onError: (one) => seen.push(one) })
  assert.equal(done.error.name, 'NameError')
  assert.equal(done.error.value, "name 'undefined_name' is not defined")
  assert.match(done.error.traceback, /in f\n/)
  assert.match(done.error.traceback, /return undefined_name/)
  assert.equal(seen.length, 1)
  assert.deepEqual(done.logs, { stdout: [], stderr: [] })
})

test('an error in the syntax too', async () => {
  const done = await run('foo bar')
  assert.equal(done.error.name, 'SyntaxError')
  assert.match(done.error.traceback, /foo bar/)
  assert.deepEqual(done.logs.stderr, [])
})

test('an interpreter that is ended is told, and followed by another', async (t) => {
  const sandbox = await make(t)
  await sandbox.runCode('x = 1')
  const done = await sandbox.runCode('import os, signal; os.kill(os.getpid(), signal.SIGKILL)')
  assert.equal(done.error.name, 'UnexpectedEndOfExecution')
  const next = await sandbox.runCode('"x" in dir()')
  assert.equal(next.text, 'False')
  assert.equal(next.executionCount, 1)
})

for (const [language, show] of [['python', 'print(5)'], ['js', 'console.log(5)'], ['bash', 'echo 5']]) {
  test(`what comes to an interpreter of ${language} that was killed goes to the next one`, async (t) => {
    const sandbox = await make(t)
    for (let i = 0; i < 3; i++) {
      assert.deepEqual((await sandbox.runCode(show, { language })).logs.stdout, ['5\n'])
      await sandbox.commands.run('kill -9 -1', { user: 'user' }).catch(() => {})   // its own shell is among them
      const { logs, error, executionCount } = await sandbox.runCode(show, { language })
      assert.deepEqual([logs.stdout, error, executionCount], [['5\n'], undefined, 1])
    }
  })
}

test('one that cannot begin says why, and does when it can', needsRoot, async (t) => {
  const sandbox = await make(t)
  await sandbox.commands.run('mv /home/user /home/away', { user: 'root', cwd: '/' })
  assert.match((await sandbox.runCode('1', { language: 'js' })).error.value, /did not start/)
  await sandbox.commands.run('mv /home/away /home/user', { user: 'root', cwd: '/' })
  assert.equal((await sandbox.runCode('1', { language: 'js' })).text, '1')
})

// ---- results

const shown = async (code, more) => (await run(code, more)).results

test('a picture of matplotlib comes with its text, PNG and chart', async () => {
  const [result] = await shown('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()')
  assert.match(result.text, /^<Figure size/)
  assert.match(result.png, /^iVBOR/)
  assert.equal(result.chart.type, 'line')
  assert.equal(result.isMainResult, false)
  assert.deepEqual(Object.keys(result.raw).sort(), ['chart', 'png', 'text'])
})

test('a figure and a value are two results', async () => {
  const seen = []
  await run('import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\n7', { onResult: (one) => seen.push(one) })
  assert.deepEqual(seen.map((one) => one.isMainResult), [false, true])
})

test('a DataFrame has its columns', async () => {
  const [result] = await shown('import pandas as pd\npd.DataFrame({"a": [1, 2], "t": pd.to_datetime(["2024-01-02", "2024-01-03"])})')
  assert.deepEqual(result.data, { a: [1, 2], t: ['2024-01-02T00:00:00', '2024-01-03T00:00:00'] })
  assert.match(result.html, /<table/)
  assert.equal(result.json, undefined)
})

test('pictures of PIL come as a value, from show() and from save()', async () => {
  for (const last of ['image', 'image.show()', 'image.save("a.png")']) {
    const [result] = await shown(`from PIL import Image\nimage = Image.new("RGBA", (4, 4))\n${last}`)
    assert.match(result.png, /^iVBOR/, last)
  }
})

for (const [kind, member, mime, value] of [
  ['HTML', 'html', 'text/html', '<b>x</b>'], ['Markdown', 'markdown', 'text/markdown', '**x**'], ['Latex', 'latex', 'text/latex', '$x$'],
  ['Javascript', 'javascript', 'application/javascript', 'alert(1)'], ['SVG', 'svg', 'image/svg+xml', '<svg></svg>'],
]) {
  test(`${mime} is a result`, async () => {
    const [result] = await shown(`from IPython.display import ${kind}\n${kind}(${JSON.stringify(value)})`)
    assert.equal(result[member], value)
    const [other] = await shown(`display({${JSON.stringify(mime)}: ${JSON.stringify(value)}}, raw=True)`)
    assert.deepEqual(other.formats(), [member])
  })
}

test('JSON is an object', async () => {
  const [result] = await shown('from IPython.display import JSON\nJSON({"a": [1, None]})')
  assert.deepEqual(result.json, { a: [1, null] })
})

test('lists and dictionaries are JSON besides, where they can be', async () => {
  const raw = async (code) => (await shown(code))[0].raw
  assert.deepEqual(await raw("{'a': [1, None]}"), { text: "{'a': [1, None]}", json: { a: [1, null] } })
  assert.deepEqual(await raw("['a', {}]"), { text: "['a', {}]", json: ['a', {}] })
  for (const [code, text] of [['(1, 2)', '(1, 2)'], ['{1: object}', "{1: <class 'object'>}"], ['7', '7'], ['"[1]"', '[1]']])
    assert.deepEqual(await raw(code), { text }, code)
})

test('JPEG and PDF are base64', async () => {
  const [result] = await shown('class Both:\n    def _repr_jpeg_(self): return b"j"\n    def _repr_pdf_(self): return b"p"\nBoth()')
  assert.equal(result.jpeg, 'ag==')
  assert.equal(result.pdf, 'cA==')
})

test('other types are extra', async () => {
  const [result] = await shown('display({"application/x-own": "mine", "application/x.own+json": {"a": 1}}, raw=True)')
  assert.deepEqual(result.raw.extra, { 'application/x-own': 'mine', 'application/x.own+json': { a: 1 } })
})

// ---- charts

const chart = async (code) => (await shown(`import matplotlib.pyplot as plt\n${code}\nplt.show()`))[0].chart

test('a chart of lines', async () => {
  const got = await chart(`import datetime
plt.plot([datetime.date(2023, 9, 1), datetime.date(2023, 9, 2)], [0.5, 1], label='sin(x)')
plt.xlabel("Time (s)")
plt.ylabel("Amplitude (Hz)")
plt.title('Plot')`)
  assert.deepEqual([got.type, got.title, got.x_label, got.x_unit, got.y_label, got.y_unit, got.x_scale, got.y_scale],
    ['line', 'Plot', 'Time (s)', 's', 'Amplitude (Hz)', 'Hz', 'datetime', 'linear'])
  assert.ok(got.x_ticks.every((tick) => typeof tick === 'string') && got.y_ticks.every((tick) => typeof tick === 'number'))
  assert.deepEqual(got.elements, [{ label: 'sin(x)', points: [['2023-09-01', 0.5], ['2023-09-02', 1]] }])
})

test('a chart of bars', async () => {
  const got = await chart("plt.bar(['A', 'B'], [100, 200], label='Sold')\nplt.ylabel('Number')")
  assert.deepEqual([got.type, got.x_label, got.y_label, got.x_unit, got.y_unit], ['bar', null, 'Number', null, null])
  assert.deepEqual(got.elements, [{ label: 'A', group: 'Sold', value: 100 }, { label: 'B', group: 'Sold', value: 200 }])
})

test('charts of markers, wedges and boxes, several axes, and something else', async () => {
  assert.deepEqual((await chart('plt.scatter([1], [2], label="d")')).elements, [{ label: 'd', points: [[1, 2]] }])
  assert.deepEqual((await chart('plt.pie([90, 10], labels=["p", "q"])')).elements,
    [{ label: 'p', angle: 324, radius: 1 }, { label: 'q', angle: 36, radius: 1 }])
  assert.deepEqual((await chart('plt.boxplot([[95, 89, 76, 91, 84, 87]], labels=["B"], patch_artist=True)')).elements,
    [{ label: 'B', min: 84, first_quartile: 84.75, median: 88, third_quartile: 90.5, max: 95, outliers: [76] }])
  const both = await chart('fig, axes = plt.subplots(1, 2)\nfig.suptitle("S")\naxes[0].plot([1])\naxes[1].scatter([1], [1])')
  assert.deepEqual([both.type, both.title, ...both.elements.map((one) => one.type)], ['superchart', 'S', 'line', 'scatter'])
  assert.deepEqual(await chart('plt.gca().add_artist(plt.Circle((0, 0), 1))\nplt.title("c")'), { type: 'unknown', title: 'c', elements: [] })
})

// ---- languages

test('JavaScript: values, output, imports, await, and names that last', async () => {
  const js = (code) => run(code, { language: 'js' })
  assert.deepEqual((await js('console.log("Hello World!")')).logs.stdout, ['Hello World!\n'])
  assert.equal((await js('const add = (a, b) => a + b\nadd(1, 2)')).text, '3')
  await js('const lasting = 1')
  assert.equal((await js('lasting')).text, '1')
  assert.equal((await js('import path from "path"\npath.basename("/a/b")')).text, 'b')
  assert.equal((await js('async function main() { return "Hello" }\nawait main()')).text, 'Hello')
  assert.equal((await js('process.cwd()')).text, '/home/user')
  assert.deepEqual((await js('({ a: 1 })')).results[0].raw, { text: '{ a: 1 }' })
  const { error, logs } = await js('nothing.at.all')
  assert.deepEqual([error.name, error.value], ['ReferenceError', 'nothing is not defined'])
  assert.deepEqual(logs.stderr, [])
  const [own] = (await js('({ [Symbol.for("Jupyter.display")]: () => ({ "text/plain": "p", "text/html": "<i>h</i>" }) })')).results
  assert.deepEqual([own.text, own.html], ['p', '<i>h</i>'])
})

test('TypeScript: types are taken out, in a context of its own', async () => {
  const ts = (code) => run(code, { language: 'ts' })
  assert.equal((await ts('function minus(x: number, y: number): number {\n  return x - y\n}\n\nminus(1, 2)')).text, '-1')
  assert.equal((await ts('interface P { x: number }\nconst p: P = { x: 3 }\np.x')).text, '3')
  assert.equal((await run('typeof minus', { language: 'javascript' })).text, 'undefined')
  const [own] = (await ts('{ [Symbol.for("Jupyter.display")](): object { return { "text/plain": "p", "text/html": "<i>h</i>" } } }')).results
  assert.deepEqual([own.text, own.html], ['p', '<i>h</i>'])
  assert.match((await ts('{ a(: 1 }')).error.name, /SyntaxError/)
})

test('Bash', async () => {
  const bash = (code, more) => run(code, { language: 'bash', ...more })
  assert.deepEqual((await bash('v=3; echo $((v * 2))')).logs.stdout, ['6\n'])
  assert.equal((await bash('echo $v; pwd')).logs.stdout.join(''), '3\n/home/user\n')
  const { error } = await bash('(exit 3)')
  assert.match(error.value, /3/)
})

test('another language is refused by name', async () => {
  await assert.rejects(run('1', { language: 'cobol' }), /400/)
})

// ---- environment

for (const [language, read, other] of [
  ['python', "import os; os.getenv('FOO', 'none')", (done) => done.text], ['javascript', "process.env.FOO ?? 'none'", (done) => done.text],
  ['typescript', "process.env.FOO ?? 'none'", (done) => done.text], ['bash', 'echo ${FOO:-none}', (done) => done.logs.stdout.join('').trim()],
]) {
  test(`${language}: variables of an execution, of the sandbox, and both`, async (t) => {
    const got = async (sandbox, envs) => other(await sandbox.runCode(read, { language, envs }))
    assert.equal(await got(shared, { FOO: 'bar' }), 'bar')
    assert.equal(await got(shared), 'none')
    const sandbox = await make(t, { envs: { FOO: 'of the sandbox' } })
    assert.equal(await got(sandbox), 'of the sandbox')
    assert.equal(await got(sandbox, { FOO: 'over' }), 'over')
    assert.equal(await got(sandbox), 'of the sandbox')
  })
}

test('what a program sets itself is what is restored', async () => {
  await run("import os; os.environ['OWN'] = 'mine'")
  assert.equal((await run("os.getenv('OWN')", { envs: { OWN: 'over' } })).text, 'over')
  assert.equal((await run("os.getenv('OWN')")).text, 'mine')
})

// ---- contexts

test('contexts are made, listed, used and removed', async (t) => {
  const sandbox = await make(t)
  const first = await sandbox.listCodeContexts()
  assert.deepEqual(first.map((one) => [one.language, one.cwd]), [['python', '/home/user'], ['javascript', '/home/user']])
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  assert.deepEqual([context.language, context.cwd], ['python', '/tmp'])
  assert.deepEqual((await sandbox.listCodeContexts()).at(-1), context)
  assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp')
  assert.equal((await sandbox.runCode('import os; os.getcwd()')).text, '/home/user')
  await sandbox.runCode('x = 1')
  assert.equal((await sandbox.runCode('x', { context })).error.value, "name 'x' is not defined")
  await sandbox.removeCodeContext(context)
  assert.deepEqual((await sandbox.listCodeContexts()).map((one) => one.id), first.map((one) => one.id))
  await assert.rejects(sandbox.runCode('1', { context }), /not found/)
})

test('a context has its language and folder', async () => {
  const context = await shared.createCodeContext({ language: 'js', cwd: '/' })
  assert.equal(context.language, 'javascript')
  assert.equal((await run('process.cwd()', { context })).text, '/')
  await shared.removeCodeContext(context.id)
})

test('a context in the home of root', needsRoot, async () => {
  const context = await shared.createCodeContext({ cwd: '/root' })
  assert.equal((await run('import os; os.getcwd()', { context })).text, '/root')
  await shared.removeCodeContext(context)
})

test('a context that is restarted is a new one of the same name', async (t) => {
  const sandbox = await make(t)
  const context = await sandbox.createCodeContext()
  await sandbox.runCode('x = 1', { context })
  await sandbox.restartCodeContext(context)
  const done = await sandbox.runCode('"x" in dir()', { context })
  assert.deepEqual([done.text, done.executionCount], ['False', 1])
  const [python] = await sandbox.listCodeContexts()
  await sandbox.restartCodeContext(python.id)
  const begun = deferred()
  const waiting = sandbox.runCode('import time; print(1, flush=True); time.sleep(60)', { timeoutMs: 50_000, onStdout: begun.resolve })
  await begun.promise
  await sandbox.restartCodeContext(python.id)
  assert.equal((await waiting).error.name, 'ContextRestarting')
})

test('a context that is not there is told so', async () => {
  await assert.rejects(shared.removeCodeContext('nope'), /not found/)
  await assert.rejects(shared.restartCodeContext('nope'), /not found/)
})

test('a context in a folder that is none is not made', async () => {
  const { length } = await shared.listCodeContexts()
  for (const language of ['python', 'javascript', 'bash']) {
    await assert.rejects(shared.createCodeContext({ language, cwd: '/nowhere' }), /400/)
    for (const [cwd, why] of [['/nowhere', 'No such file or directory'], ['/etc/passwd', 'Not a directory'], ['/etc/passwd/x', 'Not a directory']]) {
      const got = await raw('POST', '/contexts', { language, cwd })
      assert.deepEqual([got.status, got.body.code], [400, 400])
      assert.ok(got.body.message.includes(`${cwd}: ${why}`), got.body.message)
    }
  }
  assert.equal((await shared.listCodeContexts()).length, length)
  await shared.commands.run('mkdir -p sub && ln -sfn /tmp link')
  for (const [cwd, there] of [['sub', '/home/user/sub'], ['~/sub', '/home/user/sub'], ['/home/user/link', '/tmp']]) {
    const context = await shared.createCodeContext({ cwd })
    assert.equal((await run('import os; os.getcwd()', { context })).text, there)
    await shared.removeCodeContext(context)
  }
})

test('contexts that do not begin take nothing away', needsRoot, async (t) => {
  const sandbox = await make(t)
  await sandbox.commands.run('mkdir -m 700 /closed', { user: 'root' })
  for (let i = 0; i < 40; i++)
    await assert.rejects(sandbox.createCodeContext({ language: 'bash', cwd: '/closed' }), /400/)
  assert.equal((await sandbox.listCodeContexts()).length, 2)
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp')
})

test('executions of one context wait for each other', async () => {
  const begun = deferred()
  const first = run('import time; print(1, flush=True); time.sleep(0.4); order = ["first"]', { onStdout: begun.resolve })
  await begun.promise
  assert.equal((await run('order.append("second"); order')).text, "['first', 'second']")
  await first
})

test('executions of two contexts do not', async () => {
  const context = await shared.createCodeContext()
  const slow = run(`${waitFor('other')}\n1`)
  assert.equal((await run(`open('/tmp/other', 'w').close(); 2`, { context })).text, '2')
  assert.equal((await slow).text, '1')
  await shared.removeCodeContext(context)
})

// ---- from inside

test('programs inside hear from its port that it is there, on every address and through a proxy or not', async (t) => {
  const sandbox = await make(t)
  const asked = (where, of = sandbox) => of.commands.run(`curl -s -w ' %{http_code}' http://${where} || true`)
  for (const host of ['0.0.0.0', '127.0.0.1', 'localhost'])
    assert.equal((await asked(`${host}:49999/health`)).stdout, '"OK" 200', host)
  assert.equal((await asked('0.0.0.0:49999/execute')).stdout, ' 404')
  await sandbox.pause()
  const again = await Sandbox.connect(sandbox.sandboxId, options)
  assert.equal((await asked('0.0.0.0:49999/health', again)).stdout, '"OK" 200')
  await again.pause({ keepMemory: false })
  assert.equal((await asked('0.0.0.0:49999/health', await Sandbox.connect(sandbox.sandboxId, options))).stdout, '"OK" 200')
})

test('in a sandbox of base the port is for anybody, and code is executed all the same', async (t) => {
  const plain = await Sandbox.create('base', options)
  t.after(() => plain.kill())
  await plain.commands.run('python3 -m http.server 49999 --directory /tmp', { background: true })
  const { stdout } = await plain.commands.run('for i in {1..500}; do curl -sf 127.0.0.1:49999/ && break; sleep 0.1; done')
  assert.match(stdout, /Directory listing/)
  assert.equal((await plain.runCode('1')).text, '1')
})

// ---- their end

test('who goes away takes the execution back, and the next one works', async (t) => {
  const sandbox = await make(t)
  await sandbox.runCode('x = 7')
  await assert.rejects(sandbox.runCode('import time; time.sleep(55)', { timeoutMs: 700 }))
  assert.equal((await sandbox.runCode('x', { timeoutMs: 50_000 })).text, '7')
})

test('a sandbox that is killed breaks off the answer', async () => {
  const sandbox = await Sandbox.create({ ...options })
  const begun = deferred()
  const rejected = assert.rejects(sandbox.runCode('import time; print(1, flush=True); time.sleep(60)', { timeoutMs: 50_000, onStdout: begun.resolve }),
    /sandbox was killed|terminated|timeout/i)
  await begun.promise
  await sandbox.kill()
  await rejected
  await assert.rejects(sandbox.runCode('1', { timeoutMs: 5000, requestTimeoutMs: 5000 }), (error) => error.name === 'TimeoutError' || error.name === 'SandboxNotFoundError')
})

// ---- what the client does not show

test('the lines of an answer', async () => {
  const { answer, lines } = await answerOf({ code: 'print(1)\n2' })
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type'), /^application\/x-ndjson/)
  assert.deepEqual(lines.map((one) => one.type), ['number_of_executions', 'stdout', 'result', 'end_of_execution'])
  assert.deepEqual(lines[2], { type: 'result', text: '2', is_main_result: true })
})

test('a sign of life is sent while nothing happens', async () => {
  const answer = await execute({ code: waitFor('alive') })
  let text = ''
  for await (const part of answer.body) {
    text += Buffer.from(part)
    if (text.includes('"keepalive"')) await say('alive')
  }
  assert.match(text, /"keepalive"[^]*"end_of_execution"/)
})

test('what is no request is refused', async () => {
  assert.equal((await raw('POST', '/execute', { code: 1 })).status, 422)
  assert.equal((await raw('POST', '/execute', {})).status, 422)
  assert.equal((await raw('POST', '/execute', { code: '1', env_vars: { A: 1 } })).status, 422)
  assert.equal((await raw('POST', '/execute', { code: '1', language: 'python', context_id: 'x' })).status, 400)
  const missing = await raw('POST', '/execute', { code: '1', context_id: 'zz' })
  assert.deepEqual([missing.status, missing.body], [404, 'Context zz not found'])
  assert.equal((await raw('POST', '/contexts', { language: 'cobol' })).status, 400)
  for (const [path, body] of [['/contexts', { cwd: 5 }], ['/contexts', { language: 5 }], ['/execute', { code: '1', language: 5 }], ['/execute', { code: '1', context_id: 5 }]]) {
    const wrong = await raw('POST', path, body)
    assert.equal(wrong.status, 422)
  }
})

test('the access token is asked for', async () => {
  assert.equal((await raw('POST', '/execute', { code: '1' }, { 'X-Access-Token': 'wrong' })).status, 401)
  assert.equal((await raw('GET', '/contexts', undefined, { 'X-Access-Token': 'wrong' })).status, 200)
})

test('unknown query names are ignored, and it says that it is well', async () => {
  assert.equal((await raw('GET', '/contexts?source=x')).status, 200)
  assert.deepEqual((await raw('GET', '/health')).body, 'OK')
})

test('with a traffic token only who has it may come in', async (t) => {
  const sandbox = await make(t, { network: { allowPublicTraffic: false } })
  assert.equal((await sandbox.runCode('1')).text, '1')
  const own = { 'E2b-Sandbox-Id': sandbox.sandboxId }
  assert.equal((await raw('GET', '/contexts', undefined, own)).status, 403)
  assert.equal((await raw('GET', '/contexts', undefined, { ...own, 'E2B-Traffic-Access-Token': sandbox.trafficAccessToken })).status, 200)
})

test('what is printed is whole, however much it is and however slowly it is read', async () => {
  const answer = await fetch(`${server.url}/execute`, { method: 'POST', headers, body: JSON.stringify({ code: 'for _ in range(40): print("x" * 999_999)' }) })
  let size = 0
  let last = ''
  for await (const part of answer.body) {
    if (size === 0) await sleep(1500)
    size += part.length
    last = Buffer.concat([Buffer.from(last), part]).subarray(-60).toString()
  }
  assert.ok(size > 40_000_000, `${size}`)
  assert.match(last, /"end_of_execution"\}\n$/)
})
