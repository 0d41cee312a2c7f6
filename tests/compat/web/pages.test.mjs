// Each page and each thing on it is used, in Chromium.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { ROOT, at, axe, browse, openPage, program, serve, until, whyNot, write } from './server.mjs'

const server = await serve()
const reason = await whyNot(server.url)
const options = reason ? { skip: reason } : {}
const folder = mkdtempSync(path.join(tmpdir(), 'caisson-web-files-'))
const csv = path.join(folder, 'sales.csv')
writeFileSync(csv, 'month,north,south\nJan,120,90\nFeb,135,88\nMar,150,101\n')

let browser, page, seen

before(async () => {
  if (reason) return
  browser = await browse()
  ;({ page, seen } = await openPage(browser, server.url))
})
after(() => rmSync(folder, { recursive: true, force: true }))
afterEach(() => {
  if (!seen) return
  assert.deepEqual(seen.splice(0), [])
})

const button = (name, where = page) => where.getByRole('button', { name, exact: true })
const choice = (name) => page.getByRole('combobox', { name, exact: true })
const tab = (name) => page.getByRole('tab', { name }).last()
const result = () => page.locator('.result')
const editorText = () => page.getByRole('textbox', { name: 'Program', exact: true }).innerText()

/** Runs what is in the playground; the status of its record. */
async function run(by = () => button('Run').click()) {
  const before = await result().getAttribute('data-run')
  await by()
  await until(async () => {
    const now = await result().getAttribute('data-run')
    return now && now !== before
  })
  return result().locator('.summary .status').innerText()
}

test('a CSV in, a figure out', options, async () => {
  await at(page, server.url, 'playground')
  await page.locator('input[type=file]').setInputFiles(csv)
  await until(async () => (await editorText()).includes('read_csv("sales.csv"'))
  assert.equal(await run(() => page.keyboard.press('Control+Enter')), 'completed')
  const image = result().locator('figure img')
  await image.waitFor()
  assert.ok(await image.evaluate((one) => one.decode().then(() => one.naturalWidth)) > 300)
  await tab('Files').click()
  const [saved] = await Promise.all([page.waitForEvent('download'), button('Download figure.png').click()])
  assert.equal(saved.suggestedFilename(), 'figure.png')
  await button('Remove sales.csv').click()
})

test('a table that is dropped is offered when a program is there', options, async () => {
  await write(page, 'Program', 'print(1)')
  await page.evaluate(() => {
    const files = new DataTransfer()
    files.items.add(new File(['a,b\n1,2\n'], 'more.csv', { type: 'text/csv' }))
    const target = document.querySelector('.playground')
    for (const name of ['dragover', 'drop']) target.dispatchEvent(new DragEvent(name, { dataTransfer: files, bubbles: true, cancelable: true }))
  })
  await page.getByText('more.csv is among the files').waitFor()
  assert.equal(await editorText(), 'print(1)')
  await button('No').click()
  await button('Remove more.csv').click()
})

test('each example and each language runs, and streams', options, async () => {
  const examples = choice('Example')
  const titles = (await examples.locator('option').allInnerTexts()).slice(1)
  assert.ok(titles.length >= 8)
  for (const title of titles) {
    await examples.selectOption({ label: title })
    const status = await run()
    assert.equal(status, title === 'What is refused' ? 'memory exceeded' : 'completed', title)
    if (title === 'Figure') await result().locator('figure img').waitFor()
    if (title === 'Table') assert.equal(await result().locator('th').first().innerText(), 'city')
    if (title === 'Standard input') assert.match(await result().innerText(), /3 words/)
    if (title === 'What is refused') {
      await tab('Denials').click()
      assert.match(await page.locator('.denials').innerText(), /memory/i)
    }
  }
  await choice('Language').selectOption('bash')
  await write(page, 'Program', 'echo first; sleep 2; echo second')
  const over = run()
  await result().getByText('first').waitFor()
  assert.equal(await result().getByText('second').count(), 0)
  assert.equal(await over, 'completed')
})

test('a run is stopped', options, async () => {
  await write(page, 'Program', 'echo begun; sleep 60')
  const over = run()
  await result().getByText('begun').waitFor()
  await button('Stop').click()
  assert.equal(await over, 'cancelled')
})

test('standard input, packages, limits, network and policy are in the request', options, async () => {
  await choice('Language').selectOption('python')
  await write(page, 'Program', 'import time\nprint(input())\ntime.sleep(30)\n')
  await tab('Standard input').click()
  await page.getByLabel('Standard input').last().fill('typed\n')
  await page.getByRole('tab', { name: 'Limits' }).first().click()
  await page.getByLabel('Time limit, seconds').fill('1')
  await page.getByLabel('Memory, MiB').fill('64')
  await choice('Network').selectOption('none')
  await choice('Source policy').selectOption('off')
  assert.equal(await run(), 'timeout')
  assert.match(await result().innerText(), /typed/)
  await page.getByRole('tab', { name: 'Limits' }).last().click()
  assert.match(await page.locator('.bars').innerText(), /of 1\.00 s[^]*of 64\.0 MiB/)
  await page.getByRole('tab', { name: 'Boundary' }).click()
  assert.match(await page.locator('.facts').innerText(), /Network\s+none/)
  await page.getByRole('tab', { name: 'Timing' }).click()
  assert.match(await page.locator('.facts').innerText(), /20\d\d-\d\d-\d\d \d\d:\d\d:\d\d \w+/)
  await page.getByRole('tab', { name: 'Record' }).click()
  assert.equal(JSON.parse(await page.getByRole('region', { name: 'The record' }).innerText()).limits.wall_ms, 1000)
  await page.getByRole('tab', { name: 'Packages' }).click()
  await page.getByLabel('Packages').last().fill('six==1.16.0')
  await button('Copy as').click()
  assert.match(await page.locator('dialog pre').innerText(), /"six==1\.16\.0"/)
  await button('Close').click()
  await page.getByLabel('Packages').last().fill('')
  await page.getByRole('tab', { name: 'Limits' }).first().click()
  await page.getByLabel('Time limit, seconds').fill('')
  await page.getByLabel('Memory, MiB').fill('')
})

test('what "copy as" gives does the same', options, async () => {
  const name = "it's $HOME `x`.csv"
  writeFileSync(path.join(folder, name), 'a,b\n1,2\n')
  await page.getByRole('tab', { name: 'Files' }).first().click()
  await page.locator('input[type=file]').setInputFiles(path.join(folder, name))
  await tab('Standard input').click()
  await page.getByLabel('Standard input').last().fill("it's $HOME\n")
  await write(page, 'Program', `print("it's \\\\ $HOME \`x\`", input(), open("${name}").readline())\nopen("made.txt", "w").write("made")\n`)
  assert.equal(await run(), 'completed')
  const printed = "it's \\ $HOME `x` it's $HOME a,b\n\n"
  const environment = { ...Object.fromEntries(Object.entries(process.env).filter(([one]) => !one.startsWith('CAISSON_'))),
    PATH: `${path.dirname(program('caisson'))}:${process.env.PATH}`, PYTHONPATH: path.join(ROOT, 'sdk/python') }
  const programs = { curl: ['bash', '-c'], Python: ['/usr/bin/python3', '-c'], 'Command line': ['bash', '-c'] }
  await button('Copy as').click()
  for (const title of Object.keys(programs)) {
    await page.locator('dialog').getByRole('tab', { name: title }).click()
    await page.locator('dialog').getByRole('button', { name: /^Copy/ }).click()
    const text = await page.evaluate(() => navigator.clipboard.readText())
    const done = spawnSync(programs[title][0], [programs[title][1], text], { encoding: 'utf8', cwd: folder, env: environment })
    assert.ok((title === 'curl' ? JSON.parse(done.stdout).stdout : done.stdout).includes(printed), `${text}\n${done.stdout}\n${done.stderr}`)
    if (title === 'curl') continue
    assert.equal(readFileSync(path.join(folder, 'made.txt'), 'utf8'), 'made', title)
    rmSync(path.join(folder, 'made.txt'))
  }
  await page.locator('dialog').getByRole('tab', { name: 'TypeScript' }).click()
  assert.match(await page.locator('dialog pre').innerText(), /import \{ Caisson \} from 'caisson-sandbox'/)
  await page.keyboard.press('Escape')
  await until(async () => (await page.locator('dialog[open]').count()) === 0)
  await page.getByRole('tab', { name: 'Files' }).first().click()
  await page.getByRole('button', { name: /^Remove/ }).click()
})

test('a session keeps variables, files and figures', options, async () => {
  await choice('Profile').selectOption('data')
  await page.getByLabel('Keep variables').check()
  await write(page, 'Program', 'x = 41\nopen("kept.txt", "w").write("here")\n')
  assert.equal(await run(), 'completed')
  await write(page, 'Program', 'import pandas as pd\ndisplay(pd.DataFrame({"n": [x, x + 1]}))\nprint(open("kept.txt").read())\n')
  assert.equal(await run(), 'completed')
  assert.match(await result().innerText(), /here/)
  assert.deepEqual(await result().locator('td').allInnerTexts(), ['41', '42'])
  await write(page, 'Program', 'print("begun", flush=True)\nwhile True: pass\n')
  const over = run()
  await result().getByText('begun').waitFor()
  await button('Stop').click()
  assert.notEqual(await over, 'completed')
  await write(page, 'Program', 'x')
  assert.equal(await run(), 'completed')
  assert.match(await result().innerText(), /Value int\s+41/)
  await tab('Files').click()
  await button('Show kept.txt').click()
  await page.getByRole('region', { name: 'kept.txt' }).getByText('here').waitFor()
  await button('End it').click()
  await page.getByLabel('Keep variables').uncheck()
})

test('submissions are graded', options, async () => {
  await at(page, server.url, 'grade')
  await choice('Example').selectOption({ index: 1 })
  await button('Add submission').click()
  await write(page, 'Submission 2', 'def add(a, b):\n    return a - b\n')
  await button('Grade').click()
  await page.locator('td').first().waitFor()
  assert.match(await result().innerText(), /failed[^]*Expected 3, got -1/)
  for (const name of ['Feedback', 'Signs', 'Boundary', 'Record', 'Cases']) await tab(name).click()
  await page.getByRole('tab', { name: /^Submission 1/ }).click()
  assert.match(await result().innerText(), /3 of 3 passed/)
  for (const index of [2, 3]) {
    await choice('Example').selectOption({ index })
    await button('Grade').click()
    await result().locator('.summary').getByText('passed').first().waitFor()
  }
  await write(page, 'Problem, as JSON', '{"function": ')
  await button('Grade').click()
  await result().getByText('The problem is no JSON').waitFor()
})

test('runs are listed live, filtered, opened and cancelled', options, async () => {
  await at(page, server.url, 'runs')
  await page.locator('tbody tr').first().waitFor()
  await page.getByText('live', { exact: true }).waitFor()
  const started = await fetch(`${server.url}/v1/runs`, { method: 'POST', headers: { 'Content-Type': 'application/json', Prefer: 'respond-async' },
    body: JSON.stringify({ language: 'bash', code: 'echo going; sleep 50' }) })
  const { id } = await started.json()
  const row = page.locator('tbody tr').filter({ has: page.locator(`a[href="#/runs/${id}"]`) })
  await row.getByText('running').waitFor()
  await row.getByRole('link').click()
  await page.getByText('going').waitFor()
  await page.getByRole('link', { name: 'All runs' }).click()
  await row.getByRole('button', { name: /^Cancel/ }).click()
  await row.getByRole('button', { name: /^Really/ }).click()
  await until(async () => !(await row.innerText()).includes('running'))
  await row.getByRole('link').click()
  for (const name of ['Files', 'Boundary', 'Limits', 'Denials', 'Timing', 'Record', 'Output']) await page.getByRole('tab', { name }).click()
  assert.match(await page.locator('.summary').innerText(), /cancelled/)
  await page.getByRole('link', { name: 'All runs' }).click()
  await choice('Status').selectOption('cancelled')
  await until(async () => (await page.locator('tbody .status').allInnerTexts()).every((one) => one === 'cancelled'))
  await choice('Language').selectOption('typescript')
  await page.getByText('No run fits these filters').waitFor()
  await choice('Status').selectOption('')
  await until(async () => (await page.locator('tbody tr').count()) === 1)
  await choice('Language').selectOption('')
  await page.getByLabel('Profile').fill('none such')
  await page.getByLabel('Profile').press('Enter')
  await page.getByText('No run fits these filters').waitFor()
  await page.getByLabel('Profile').fill('')
  await page.getByLabel('Profile').press('Enter')
  await page.getByLabel('Key').fill('no such key')
  await page.getByLabel('Key').press('Enter')
  await page.getByText('No run fits these filters').waitFor()
  await page.getByLabel('Key').fill('')
  await page.getByLabel('Key').press('Enter')
  for (const name of ['All of the audit', 'All tenants']) {
    await page.getByLabel(name).check()
    await page.locator('tbody tr').first().waitFor()
  }
})

test('a sandbox: contexts, terminal, use, files, programs, pause, end', options, async () => {
  await at(page, server.url, 'sandboxes')
  await button('New sandbox').click()
  await page.getByText('No context').waitFor()
  await button('New context').click()
  await page.getByLabel(/^Code for/).fill('x = 20\nx + 1')
  await button('Execute').click()
  await page.getByRole('region', { name: 'Value' }).getByText('21').waitFor()
  await page.getByRole('button', { name: /^Interrupt/ }).click()
  await page.getByRole('button', { name: /^Restart/ }).click()
  await tab('Terminal').click()
  await button('Open a terminal').click()
  await page.locator('.xterm-rows').getByText('$').first().waitFor()
  await page.keyboard.type('echo typed > typed.txt; tty; stty size\n')
  await page.locator('.xterm-rows').getByText('/dev/pts/').waitFor()
  await page.keyboard.type('exit 3\n')
  await page.getByText('ended with exit status 3').waitFor()
  await tab('Use').click()
  await page.getByRole('meter', { name: 'Memory', exact: true }).waitFor()
  await tab('Files').click()
  await page.locator('input[type=file]').setInputFiles(csv)
  await button('Show sales.csv').click()
  await page.getByRole('region', { name: 'sales.csv' }).getByText('Feb').waitFor()
  await button('Show typed.txt').click()
  await page.getByRole('region', { name: 'typed.txt' }).getByText('typed').waitFor()
  await tab('Programs').click()
  await page.getByText('/bin/bash -l').waitFor()
  await button('Refresh').click()
  await tab('Boundary').click()
  await page.getByText('Namespaces of its own').waitFor()
  await button('Keep for one hour').click()
  await button('Pause').click()
  await button('Resume').click()
  await button('Pause').waitFor()
  await tab('Contexts').click()
  await page.getByRole('button', { name: /^Close ctx/ }).click()
  await page.getByRole('button', { name: /^Really Close ctx/ }).click()
  await page.getByText('No context').waitFor()
  await page.getByRole('link', { name: 'All sandboxes' }).click()
  await page.getByRole('button', { name: /^Pause sbx/ }).click()
  await page.getByRole('button', { name: /^Resume sbx/ }).click()
  await page.getByRole('button', { name: /^Pause sbx/ }).waitFor()
  await page.getByRole('button', { name: /^End sbx/ }).click()
  await page.getByRole('button', { name: /^Really End sbx/ }).click()
  await page.getByText('No sandbox is open').waitFor()
})

test('metrics are drawn, and pools are listed', options, async () => {
  await at(page, server.url, 'metrics')
  await page.locator('.chart canvas').first().waitFor()
  assert.ok(await page.locator('.chart').count() >= 5)
  await page.getByRole('region', { name: 'Pools' }).getByText('python').first().waitFor()
})

test('layers, images, keys and usage', options, async () => {
  await at(page, server.url, 'layers')
  await page.getByText('No layers').waitFor()
  await page.getByText('No imported images').waitFor()
  await page.getByLabel('Packages of a new layer').fill('six')
  await button('Build').click()
  await page.locator('.problem').waitFor()
  await at(page, server.url, 'keys')
  await page.getByText('No model was asked').waitFor()
  for (const by of ['model', 'key', 'component']) await choice('By').selectOption(by)
  assert.match(await page.locator('.facts').first().innerText(), /Scopes/)
  await page.getByText('There is no key').waitFor()
})

test('a daemon with keys asks for one, and the page shows what the key may do', options, async () => {
  let key
  const closed = await serve({
    settings: ['engine.http_keyless=false'],
    prepare: (state) => {
      const made = spawnSync(program('caisson'), ['keys', 'create', '--json', '--name', 'reader', '--scopes', 'run,read', '--set', `engine.state_dir=${state}`],
        { encoding: 'utf8' })
      key = JSON.parse(made.stdout).key
    },
  })
  const own = await openPage(browser, closed.url)
  await own.page.goto(`${closed.url}/ui/`)
  await own.page.getByRole('heading', { name: 'A key is needed' }).waitFor()
  assert.deepEqual(await axe(own.page), [])
  await own.page.getByLabel('Key').fill(`csn_${'0'.repeat(40)}`)
  await own.page.getByRole('button', { name: 'Use this key' }).click()
  await own.page.getByText('does not accept this key').waitFor()
  await own.page.getByLabel('Key').fill(key)
  await own.page.getByRole('button', { name: 'Use this key' }).click()
  await own.page.getByRole('button', { name: 'Run', exact: true }).click()
  await own.page.locator('.result .summary .status.good').waitFor()
  assert.equal(await own.page.getByRole('link', { name: 'Sandboxes' }).count(), 0)
  await own.page.getByRole('link', { name: 'Keys' }).click()
  assert.match(await own.page.locator('.facts').first().innerText(), /reader[^]*run, read/)
  await own.page.reload()
  await own.page.locator('.facts').first().waitFor()
  assert.deepEqual(await own.page.evaluate(() => [Object.keys(sessionStorage), document.cookie]), [['caisson.key'], ''])
  await own.page.getByRole('button', { name: 'Forget key' }).click()
  await own.page.getByRole('heading', { name: 'A key is needed' }).waitFor()
  assert.deepEqual(own.seen, [])
  await own.close()
})
