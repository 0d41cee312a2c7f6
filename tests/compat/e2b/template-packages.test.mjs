// Templates with packages: pipInstall() and npmInstall() install in layers, from an index of the administrator.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { Sandbox as Interpreter } from '@e2b/code-interpreter'
import { BuildError, Sandbox, Template } from 'e2b'

import { needsRoot, serve } from './server.mjs'

const LIBRARY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../lib')
// The private index of the tests in Python, until its standard input ends.
const INDEX = `
import sys
from private_index import PrivateIndex
with PrivateIndex() as index:
    for version in ('1.0', '2.0'):
        index.add_wheel('six', version, {'six.py': f'VERSION = {version!r}\\n'})
    index.add_wheel('emoji', '1.0')
    index.add_npm('left', '1.0.0')
    print(index.url, index.npm_url, flush=True)
    sys.stdin.read()
`
const index = spawn('/usr/bin/python3', ['-c', INDEX], { env: { ...process.env, PYTHONPATH: LIBRARY }, stdio: ['pipe', 'pipe', 'inherit'] })
after(() => index.stdin.end())
const [line] = await once(createInterface(index.stdout), 'line')
const [python, npm] = line.split(' ')
const { options } = await serve(`packages.python.index_url=${python}`, `packages.node.registry_url=${npm}`)

let made = 0
async function build(template) {
  const lines = []
  const name = `packages-${++made}`
  await Template.build(template, name, { ...options, onBuildLogs: (one) => lines.push(one.message) })
  return { name, log: lines.join('\n') }
}

async function start(t, name, kind = Sandbox) {
  const sandbox = await kind.create(name, options)
  t.after(() => sandbox.kill())
  return sandbox
}

const out = async (sandbox, command) => (await sandbox.commands.run(command)).stdout

test('packages of Python and Node are in each sandbox of the template, and in its contexts', needsRoot, async (t) => {
  const { name, log } = await build(Template().fromBaseImage().pipInstall(['six==1.0', 'emoji']).npmInstall('left@1', { g: true })
    .runCmd('python3 -c "import six; print(six.VERSION)" > version.txt'))
  assert.match(log, /RUN pip install six==1.0 emoji/)
  assert.match(log, /the packages are in a layer/)
  for (let i = 0; i < 2; i++) {
    const sandbox = await start(t, name, Interpreter)
    assert.equal(await out(sandbox, 'cat version.txt; python3 -c "import emoji; print(emoji.__file__)"; node -e "console.log(require(\'left\'))"'),
      '1.0\n/opt/packages/emoji.py\n1.0.0\n')
    const context = await sandbox.createCodeContext({ language: 'python' })
    for (const where of [{}, { context }]) {
      const run = await sandbox.runCode('import six; six.VERSION', where)
      assert.equal(run.text, '1.0', JSON.stringify(run.error))
    }
    assert.equal((await sandbox.runCode('console.log(require("left"))', { language: 'javascript' })).logs.stdout.join(''), '1.0.0\n')
  }
})

test('a template that is built from another one has its packages, too', needsRoot, async (t) => {
  const first = await build(Template().fromBaseImage().pipInstall('six==1.0'))
  const second = await build(Template().fromTemplate(first.name).pipInstall('emoji').npmInstall('left'))
  const sandbox = await start(t, second.name)
  assert.equal(await out(sandbox, 'python3 -c "import six, emoji; print(six.VERSION, emoji.VERSION)"; node -p "require(\'left\')"'), '1.0 1.0\n1.0.0\n')
  const { snapshotId } = await sandbox.createSnapshot()
  assert.equal(await out(await start(t, snapshotId), 'python3 -c "import six; print(six.VERSION)"'), '1.0\n')
})

test('a package that the index has not ends the build', needsRoot, async () => {
  await assert.rejects(build(Template().fromBaseImage().pipInstall('made-up-by-a-model')),
    (error) => error instanceof BuildError && /package_not_found/.test(error.message))
})

test('an installation with more than packages is for the shell', needsRoot, async () => {
  for (const command of ['pip install six; exit 7', 'pip install --index-url http://127.0.0.1:9 six && exit 7', 'pip install ./six; exit 7', 'npm install; exit 7'])
    await assert.rejects(build(Template().fromBaseImage().runCmd(command)), (error) => error instanceof BuildError && /exit status 7|exit status 1/.test(error.message), command)
})
