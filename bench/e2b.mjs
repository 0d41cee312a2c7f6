// Sandbox.create() to the first result of runCode('1+1') by E2B's SDK as npm has it: e2b.mjs URL RUNS.  Prints nanoseconds as a JSON list.

import { Sandbox } from '../tests/compat/e2b/node_modules/@e2b/code-interpreter/dist/index.mjs'

const [url, runs] = process.argv.slice(2)
const options = { apiKey: `e2b_${'0'.repeat(40)}`, apiUrl: url, sandboxUrl: url }
const took = []
for (let i = -2; i < Number(runs); i++) {              // the first two open connections, and tell the daemon what to keep ready
  await new Promise((resolve) => setTimeout(resolve, 250))
  const start = process.hrtime.bigint()
  const sandbox = await Sandbox.create(options)
  const run = await sandbox.runCode('1+1')
  const ns = process.hrtime.bigint() - start
  await sandbox.kill()
  if (run.text !== '2') throw new Error(`not the expected result: ${JSON.stringify(run)}`)
  if (i >= 0) took.push(Number(ns))
}
console.log(JSON.stringify(took))
