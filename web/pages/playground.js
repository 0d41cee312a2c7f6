// The playground: a program, what it reads, and the record of its run.

import { computed, effect, signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { html } from '../parts/view.js'
import { Problem, events, hasScope, json, key, may, me, optional, request } from '../parts/api.js'
import { Editor } from '../parts/editor.js'
import { EXAMPLES, isTable, isUnchanged, plotProgram } from '../parts/examples.js'
import { filePath, sandboxFiles } from '../parts/files.js'
import { Inputs, dropTarget, inputFiles } from '../parts/inputs.js'
import { packProgram, unpackProgram } from '../parts/link.js'
import { Output } from '../parts/output.js'
import { OutputTab, RecordTabs, Summary } from '../parts/record.js'
import { snippets } from '../parts/snippets.js'
import { Command, Dialog, ProblemView, Status, Tabs, copy, say } from '../parts/ui.js'

const NARROW = 1000          // CSS pixels up to which the result is below the program

// What the page keeps while another page is open.
const language = signal('python')
const profile = signal('')
const code = signal(EXAMPLES[0].code)
const stdin = signal('')
const packages = signal('')
const seconds = signal('')
const memory = signal('')
const network = signal('')
const policy = signal('')
const files = signal([])
const keep = signal(false)

const lists = signal({ languages: [], profiles: [], policies: [] })
const run = signal(null)                   // {id, state, record, output, displays, files, abort}
const problem = signal(null)
const session = signal(null)               // {id, sandbox, context, shape, sent}
const tab = signal('output')
const inputTab = signal('files')
const dropping = signal(false)
const copying = signal(false)
const offered = signal(null)               // the table for which a program is offered

let written = ''                           // the program that the page wrote last

const running = computed(() => run.value?.state === 'running')

async function learnLists() {
  if (lists.value.languages.length) return
  const [languages, profiles, policies] = await Promise.all(['languages', 'profiles', 'policies'].map((name) => optional(`/v1/${name}`)))
  lists.value = {
    languages: languages?.languages ?? [{ name: 'python', title: 'Python' }],
    profiles: (profiles?.profiles ?? []).filter((one) => !one.internal),
    policies: policies?.policies ?? [],
  }
}

// ---- the request ----

// Modules that the image `data` has loaded; there show() writes a figure to a file.
const DATA_MODULES = /^\s*(?:import|from)\s+(?:matplotlib|numpy|pandas|plotly|seaborn)\b/m

const words = (text) => text.split(/[\s,]+/).filter(Boolean)

/** Everything but the files. */
function requestBody() {
  const body = { language: language.value, code: code.value }
  if (profile.value) body.profile = profile.value
  else if (language.value === 'python' && !words(packages.value).length && DATA_MODULES.test(code.value)) body.image = 'data'
  if (stdin.value && !keep.value) body.stdin = stdin.value
  if (words(packages.value).length) body.packages = words(packages.value)
  const limits = {}
  if (Number(seconds.value) > 0) limits.wall_ms = Math.round(Number(seconds.value) * 1000)
  if (Number(memory.value) > 0) limits.memory_bytes = Math.round(Number(memory.value) * 1024 * 1024)
  if (Object.keys(limits).length) body.limits = limits
  if (network.value) body.network = network.value
  if (policy.value) body.policy = policy.value
  if (hasScope('files') && !keep.value) body.exports = [{ pattern: '*' }]
  return body
}

// ---- sessions: variables and files that stay ----

async function endSession() {
  const old = session.value
  session.value = null
  if (old) await request(`/v1/sessions/${old.id}`, { method: 'DELETE' }).catch(() => {})
}

/** A session that fits the request; its files are written into the sandbox. */
async function openSession() {
  const { code: _code, policy: _policy, language: wanted, ...sandbox } = requestBody()
  const shape = JSON.stringify([wanted, sandbox])
  if (session.value && session.value.shape !== shape) await endSession()
  if (!session.value) {
    const made = await json('/v1/sessions', { body: { language: wanted, sandbox } })
    session.value = { id: made.id, sandbox: made.sandbox.id, context: made.context.id, shape, sent: new Set() }
  }
  const { sandbox: id, sent } = session.value
  for (const file of files.value.filter((one) => !sent.has(one))) {
    await request(filePath(id, file.name), { method: 'PUT', body: file })
    sent.add(file)
  }
  return session.value
}

// ---- running ----

async function start() {
  if (running.value) return
  problem.value = null
  const mine = { id: '', state: 'running', since: Date.now(), record: null, output: new Output(), displays: [], files: null, abort: new AbortController() }
  run.value = mine
  tab.value = 'output'
  if (innerWidth <= NARROW) document.querySelector('.result')?.scrollIntoView({ block: 'nearest' })
  const update = (more) => {
    Object.assign(mine, more)
    if (run.value?.output === mine.output) run.value = { ...mine }
  }
  try {
    let path = '/v1/runs'
    let body = requestBody()
    if (keep.value) {
      const { id } = await openSession()
      path = `/v1/sessions/${id}/runs`
      body = { code: body.code, ...(body.policy && { policy: body.policy }), ...(language.value === 'python' && { show_saved: true }) }
    } else if (files.value.length) {
      body.files = await inputFiles(files.value, hasScope('files'))
    }
    for await (const { data } of events(path, { body, abort: mine.abort.signal })) {
      if (data.type === 'start') update({ id: data.id })
      else if (data.type === 'stdout' || data.type === 'stderr') mine.output.add(data.type, data.text)
      else if (data.type === 'display') update({ displays: [...mine.displays, data] })
      else if (data.type === 'lost') mine.output.add('stderr', `\n[${data.events} events were lost]\n`)
      else if (data.type === 'end') {
        const record = data.record ?? (await json(`/v1/runs/${mine.id}`))
        const kept = keep.value && session.value ? await sandboxFiles(session.value.sandbox).catch(() => null) : null
        update({ state: 'over', record, files: kept })
      }
    }
    if (mine.state === 'running') throw new Problem(0, { detail: 'The stream of the run broke off.' })
    say(`The run has ended: ${mine.record.status}`, true)
  } catch (error) {
    if (error.name !== 'AbortError') problem.value = error
    if (error.status === 404 && session.value) session.value = null
    update({ state: mine.record ? 'over' : 'none' })
  }
}

async function stop() {
  const { id, abort } = run.value
  if (!id) return abort.abort()
  try {
    if (session.value) await request(`/v1/contexts/${session.value.context}/interrupt`, { method: 'POST' })
    else await request(`/v1/runs/${id}`, { method: 'DELETE' })
  } catch (error) {
    problem.value = error
    abort.abort()
  }
  return undefined
}

// ---- files, examples, links ----

function addFiles(added) {
  const names = new Set(added.map((one) => one.name))
  files.value = [...files.value.filter((one) => !names.has(one.name)), ...added]
  inputTab.value = 'files'
  const table = added.find((one) => isTable(one.name))
  if (table && (code.value === written || isUnchanged(code.value))) plot(table)
  else if (table) offered.value = table
}

async function plot(file) {
  offered.value = null
  written = await plotProgram(file)
  code.value = written
  language.value = 'python'
  if (lists.value.profiles.some((one) => one.name === 'data')) profile.value = 'data'
  say(`A program that draws ${file.name} is in the editor: Run, or Ctrl+Enter`)
}

function load(example) {
  language.value = example.language
  code.value = example.code
  profile.value = example.profile && lists.value.profiles.some((one) => one.name === example.profile) ? example.profile : ''
  stdin.value = example.stdin ?? ''
  if (stdin.value) inputTab.value = 'stdin'
}

async function link() {
  const text = await packProgram({ l: language.value, p: profile.value, c: code.value, i: stdin.value, k: packages.value })
  const url = `${location.origin}/ui/#/playground?program=${text}`
  history.replaceState(null, '', url)
  await copy(url, 'Link')
}

/** The program of a link goes into the editor; it is not run. */
async function openLink(text) {
  const program = await unpackProgram(text)
  if (!program) {
    problem.value = new Problem(0, { detail: 'The link holds no program: a part of it is missing.' })
    return
  }
  language.value = program.l || 'python'
  profile.value = program.p ?? ''
  code.value = program.c ?? ''
  stdin.value = program.i ?? ''
  packages.value = program.k ?? ''
}

// ---- the page ----

const Choice = ({ label, value, options, title }) => html`<label class="field"><span>${label}</span><select title=${title} value=${value.value}
  onChange=${(event) => { value.value = event.currentTarget.value }}>${options.map(([name, text]) => html`<option key=${name} value=${name}
  selected=${name === value.value}>${text}</option>`)}</select></label>`

function CopyDialog() {
  const body = requestBody()
  if (!run.value?.record?.files?.length) delete body.exports      // nothing is known that would be fetched
  const list = copying.value ? snippets(body, files.value.map((one) => one.name), location.origin, Boolean(key.value)) : {}
  return html`<${Dialog} open=${copying} title="This run elsewhere">${copying.value && html`<${Tabs} label="Copy as" tabs=${Object.keys(list).map((name) => (
    { id: name, title: name, body: () => html`<${Command} label=${name} text=${list[name]} />` }))} />`}<//>`
}

function More() {
  return html`<div class="fields">
    <label class="field"><span>Time limit, seconds</span><input type="number" min="0" step="any" inputmode="decimal" value=${seconds.value}
      placeholder="profile's" onInput=${(event) => { seconds.value = event.currentTarget.value }} /></label>
    <label class="field"><span>Memory, MiB</span><input type="number" min="0" step="any" inputmode="decimal" value=${memory.value} placeholder="profile's"
      onInput=${(event) => { memory.value = event.currentTarget.value }} /></label>
    <${Choice} label="Network" value=${network} options=${[['', "profile's"], ['none', 'none'], ['public', 'public addresses']]} />
    <${Choice} label="Source policy" value=${policy} options=${[['', "profile's"], ...lists.value.policies.map((one) => [one.name, one.name])]} />
  </div>`
}

const Text = ({ value, label, placeholder, rows, note }) => html`<label class="field wide"><span class="hidden">${label}</span><textarea rows=${rows}
  placeholder=${placeholder} value=${value.value} spellcheck="false" onInput=${(event) => { value.value = event.currentTarget.value }}></textarea>
  ${note && html`<span class="note">${note}</span>`}</label>`

const inputTabs = () => [
  { id: 'files', title: 'Files', note: files.value.length || '', body: () => html`<${Inputs} files=${files.value} add=${addFiles}
    remove=${(file) => { files.value = files.value.filter((one) => one !== file) }} />` },
  { id: 'stdin', title: 'Standard input', note: stdin.value ? '•' : '', body: () => (keep.value
    ? html`<p class="note">A session has no standard input: write a file, or switch "Keep variables" off.</p>`
    : html`<${Text} value=${stdin} label="Standard input" rows="4" placeholder="What the program reads" />`) },
  { id: 'packages', title: 'Packages', note: words(packages.value).length || '', body: () => html`<${Text} value=${packages} label="Packages" rows="2"
    placeholder="requests==2.31.*" note="Separated by spaces. They are installed in a layer where the settings name an index." />` },
  { id: 'more', title: 'Limits', body: () => html`<${More} />` },
]

/** Seconds since a run was started, while it goes on. */
function Elapsed({ since }) {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now() }, 100)
    return () => clearInterval(timer)
  }, [])
  return html`<span class="elapsed">${((now.value - since) / 1000).toFixed(1)} s</span>`
}

function Result() {
  const now = run.value
  if (problem.value) return html`<${ProblemView} problem=${problem.value} />`
  if (!now || now.state === 'none') {
    return html`<div class="empty"><p>The result appears here. <kbd>Ctrl</kbd>+<kbd>Enter</kbd> runs the program.</p>
      <p>Drop a CSV onto this page, and a program that draws it is written for you.</p></div>`
  }
  if (!now.record) {
    return html`<p class="summary"><${Status} status="running" /> <${Elapsed} since=${now.since} /> <span class="note">${now.id}</span></p>
      <${OutputTab} output=${now.output} live=${now.displays} />`
  }
  return html`<${Summary} record=${now.record} /><${RecordTabs} key=${now.record.id} record=${now.record} output=${now.output} live=${now.displays.length ? now.displays : undefined}
    files=${now.files ?? undefined} current=${tab} />`
}

export function Playground({ query }) {
  useEffect(() => { learnLists().catch((error) => { problem.value = error }) }, [me.value])
  useEffect(() => { if (query.program) openLink(query.program) }, [query.program])
  useEffect(() => effect(() => { if (!keep.value && session.value) endSession() }), [])
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.defaultPrevented || document.querySelector('dialog[open]')) return
      event.preventDefault()
      start()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  const { languages, profiles } = lists.value
  const chosen = profiles.find((one) => one.name === profile.value)
  return html`<div class="playground ${dropping.value ? 'over' : ''}" ...${dropTarget(dropping, addFiles)}>
    <h1 class="hidden">Playground</h1>
    <div class="toolbar">
      <${Choice} label="Language" value=${language} options=${languages.length ? languages.map((one) => [one.name, one.title]) : [['python', 'Python']]} />
      <${Choice} label="Profile" value=${profile} title=${chosen?.description} options=${[['', 'default'], ...profiles.map((one) => [one.name, one.name])]} />
      <label class="field"><span>Example</span><select value="" onChange=${(event) => { load(EXAMPLES[event.currentTarget.value]); event.currentTarget.value = '' }}>
        <option value="">choose</option>${EXAMPLES.map((one, n) => html`<option value=${n}>${one.title}</option>`)}</select></label>
      ${may('sandboxes') && html`<label class="check"><input type="checkbox" checked=${keep.value}
        onChange=${(event) => { keep.value = event.currentTarget.checked }} /> <span title="Runs go on in one sandbox: variables and files stay">Keep variables</span></label>`}
      <span class="spacer"></span>
      <button type="button" onClick=${() => { copying.value = true }}>Copy as</button>
      <button type="button" onClick=${link}>Link</button>
      ${running.value ? html`<button type="button" class="primary" onClick=${stop}>Stop</button>`
        : html`<button type="button" class="primary" onClick=${start} disabled=${!may('run')} title="Ctrl+Enter">Run</button>`}
    </div>
    ${offered.value && html`<p class="offer"><span>${offered.value.name} is among the files.</span> <button type="button" class="small"
      onClick=${() => plot(offered.value)}>Write a program that draws it</button> <button type="button" class="small"
      onClick=${() => { offered.value = null }}>No</button></p>`}
    <div class="halves">
      <section class="half" aria-label="Program">
        <${Editor} value=${code.value} language=${language.value} label="Program" onChange=${(text) => { code.value = text }} onRun=${start} />
        <${Tabs} tabs=${inputTabs()} label="What the program gets" current=${inputTab} />
        ${session.value && html`<p class="note">Session <code>${session.value.id}</code> <button type="button" class="small" onClick=${endSession}>End it</button></p>`}
      </section>
      <section class="half result" aria-label="Result" data-run=${run.value?.record?.id}><${Result} /></section>
    </div>
    <${CopyDialog} />
  </div>`
}
