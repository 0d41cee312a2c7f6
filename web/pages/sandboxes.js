// Persistent sandboxes: the list, and one with its contexts, programs, files and a terminal.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { html } from '../parts/view.js'
import { json, optional, page, request } from '../parts/api.js'
import { filePath, sandboxFiles } from '../parts/files.js'
import { age, bytes, milliseconds } from '../parts/format.js'
import { Inputs } from '../parts/inputs.js'
import { useNews } from '../parts/live.js'
import { BoundaryTab, FileList, OutputTab, Summary, outputOf } from '../parts/record.js'
import { TerminalView } from '../parts/terminal.js'
import { Bar, Empty, ProblemView, Status, Sure, Table, Tabs, Time, useLoad } from '../parts/ui.js'

const METRICS_MS = 3000
const EXTENDED_MS = 3600000

const left = (at) => age(new Date(at) - Date.now())

// ---- the list ----

function List() {
  const cursors = useSignal([])
  const { value, problem, again } = useLoad(async () => page(await json('/v1/sandboxes?limit=200'), 'sandboxes'))
  useNews('sandbox.*,context.*', again)
  const refused = useSignal(null)
  const act = (work) => async () => {
    refused.value = null
    try {
      await work()
    } catch (error) {
      refused.value = error
    }
    again()
  }
  const make = act(async () => {
    const made = await json('/v1/sandboxes', { body: {} })
    location.hash = `#/sandboxes/${made.id}`
  })
  const older = act(async () => {
    const answer = page(await json(`/v1/sandboxes?limit=200&cursor=${encodeURIComponent(cursors.value.at(-1)?.next ?? value.next)}`), 'sandboxes')
    cursors.value = [...cursors.value, answer]
  })
  const rows = [...(value?.rows ?? []), ...cursors.value.flatMap((one) => one.rows)]
  const next = cursors.value.length ? cursors.value.at(-1).next : value?.next
  return html`<div class="toolbar"><h1>Sandboxes</h1><span class="spacer"></span><button type="button" class="primary" onClick=${make}>New sandbox</button></div>
    <${ProblemView} problem=${problem ?? refused.value} />
    ${value && !rows.length && html`<${Empty} command="caisson sandbox create --ttl 1h">No sandbox is open. This command makes one, too:<//>`}
    ${rows.length > 0 && html`<${Table} label="Sandboxes" head=${['Sandbox', 'State', 'Profile', 'Contexts', 'Created', 'Ends in', '']} numbers=${[3]}
      rows=${rows.map((one) => ({ key: one.id, cells: [html`<a href="#/sandboxes/${one.id}"><code>${one.id.slice(0, 16)}</code></a>`,
        html`<${Status} status=${one.state} />`, one.profile, one.contexts, html`<${Time} at=${one.created_at} />`, left(one.expires_at),
        html`<span class="actions">${one.state === 'paused'
          ? html`<button type="button" class="small" aria-label="Resume ${one.id}" onClick=${act(() => request(`/v1/sandboxes/${one.id}/resume`, { method: 'POST' }))}>Resume</button>`
          : html`<button type="button" class="small" aria-label="Pause ${one.id}" onClick=${act(() => request(`/v1/sandboxes/${one.id}/pause`, { method: 'POST' }))}>Pause</button>`}<${Sure}
          what=${one.id} act=${act(() => request(`/v1/sandboxes/${one.id}`, { method: 'DELETE' }))}>End<//></span>`] }))} />`}
    ${next && html`<p><button type="button" onClick=${older}>Older sandboxes</button></p>`}`
}

// ---- one sandbox ----

function Use({ id }) {
  const { value, again } = useLoad(() => optional(`/v1/sandboxes/${id}/metrics`), [id])
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) again() }, METRICS_MS)
    return () => clearInterval(timer)
  }, [id])
  const { value: description } = useLoad(() => json(`/v1/sandboxes/${id}`), [id])
  if (!value) return html`<p class="note">No counters yet.</p>`
  const limits = description?.limits ?? {}
  const row = (label, used, most, text) => html`<${Bar} label=${label} used=${used} most=${most} text=${most ? `${text(used)} of ${text(most)}` : text(used)} />`
  return html`<div class="bars">${row('Memory', value.memory_bytes, limits.memory_bytes, bytes)}${row('Memory, peak', value.memory_peak_bytes, limits.memory_bytes, bytes)}
    ${row('Processes', value.processes, limits.pids, String)}${row('Disk', value.disk_bytes, value.disk_bytes_max, bytes)}${row('Files', value.disk_files, value.disk_files_max, String)}</div>
    <p class="note">CPU time ${milliseconds(value.cpu_ms)}; ended by the memory limit ${value.oom_kills}, forks refused ${value.pids_hits}.</p>`
}

/** A line of code for a context, and what came of it. */
function Console({ context, done }) {
  const code = useSignal('')
  const state = useSignal({})
  const submit = async (event) => {
    event.preventDefault()
    if (state.value.busy || !code.value.trim()) return
    state.value = { busy: true }
    try {
      state.value = { record: await json(`/v1/contexts/${context.id}/runs`, { body: { code: code.value } }) }
    } catch (problem) {
      state.value = { problem }
    }
    done()
  }
  const keys = (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event) }
  const { record, problem, busy } = state.value
  return html`<form class="console" onSubmit=${submit}><label class="field wide"><span>Code for ${context.id.slice(0, 12)} (${context.language})</span>
      <textarea rows="3" value=${code.value} spellcheck="false" onKeyDown=${keys} onInput=${(event) => { code.value = event.currentTarget.value }}></textarea></label>
      <button class="small" disabled=${busy}>Execute</button></form>
    <${ProblemView} problem=${problem} />
    ${record && html`<${Summary} record=${record} /><${OutputTab} record=${record} output=${outputOf(record)} name="${record.id}.txt" />`}`
}

function Contexts({ id }) {
  const language = useSignal('python')
  const chosen = useSignal('')
  const refused = useSignal(null)
  const { value, problem, again } = useLoad(async () => page(await json(`/v1/sandboxes/${id}/contexts`), 'contexts').rows, [id])
  const act = (path, options) => async () => {
    refused.value = null
    await request(path, options).catch((error) => { refused.value = error })
    again()
  }
  const open = value?.find((one) => one.id === chosen.value) ?? value?.[0]
  return html`<${ProblemView} problem=${problem ?? refused.value} />
    <div class="toolbar"><label class="field"><span>Language</span><select value=${language.value} onChange=${(event) => { language.value = event.currentTarget.value }}>
      ${['python', 'javascript', 'typescript', 'bash'].map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
      <button type="button" onClick=${() => act(`/v1/sandboxes/${id}/contexts`, { body: { language: language.value } })()}>New context</button></div>
    ${value && !value.length && html`<${Empty} command="caisson context create ${id}">No context: an interpreter whose variables stay. This command makes one, too:<//>`}
    ${value?.length > 0 && html`<${Table} label="Contexts" head=${['Context', 'State', 'Language', 'Executions', 'Created', '']} numbers=${[3]} rows=${value.map((one) => ({
      key: one.id, cells: [html`<button type="button" class="small" aria-pressed=${open?.id === one.id ? 'true' : 'false'} aria-label="Choose ${one.id}"
        onClick=${() => { chosen.value = one.id }}><code>${one.id.slice(0, 16)}</code></button>`, html`<${Status} status=${one.state} />`, one.language, one.executions,
        html`<${Time} at=${one.created_at} />`, html`<span class="actions"><button type="button" class="small" aria-label="Interrupt ${one.id}"
          onClick=${act(`/v1/contexts/${one.id}/interrupt`, { method: 'POST' })}>Interrupt</button><button type="button" class="small" aria-label="Restart ${one.id}"
          onClick=${act(`/v1/contexts/${one.id}/restart`, { method: 'POST' })}>Restart</button><${Sure} what=${one.id}
          act=${act(`/v1/contexts/${one.id}`, { method: 'DELETE' })}>Close<//></span>`] }))} />
      <${Console} key=${open.id} context=${open} done=${again} />`}`
}

function Files({ id }) {
  const { value, problem, again } = useLoad(() => sandboxFiles(id), [id])
  const refused = useSignal(null)
  const add = async (files) => {
    refused.value = null
    try {
      for (const file of files) await request(filePath(id, file.name), { method: 'PUT', body: file })
    } catch (error) {
      refused.value = error
    }
    again()
  }
  return html`<${ProblemView} problem=${problem ?? refused.value} /><${Inputs} files=${[]} add=${add} remove=${() => {}} />
    <${FileList} files=${value ?? []} empty=${html`<${Empty} command="caisson sandbox cp data.csv ${id}:">The home folder is empty. This command copies a file into it:<//>`} />`
}

function Programs({ id }) {
  const { value, problem, again } = useLoad(async () => page(await json(`/v1/sandboxes/${id}/processes`), 'processes').rows, [id])
  const end = async (one) => {
    await request(`/v1/sandboxes/${id}/processes/${one.id}/signal`, { body: { signal: 'KILL' } }).catch(() => {})
    again()
  }
  return html`<${ProblemView} problem=${problem} />
    <p><button type="button" class="small" onClick=${again}>Refresh</button></p>
    ${value && !value.length && html`<${Empty} command="caisson sandbox exec ${id} -- python3 --version">No program was started. This command starts one:<//>`}
    ${value?.length > 0 && html`<${Table} label="Programs" head=${['Number', 'State', 'Command', 'Age', 'Exit status', '']} numbers=${[0, 4]} rows=${value.map((one) => ({
      key: one.id, cells: [one.id, html`<${Status} status=${one.state} />`, html`<code>${one.command}</code>`, age(one.age_ms), one.exit_code ?? one.signal ?? '',
        one.state === 'running' ? html`<${Sure} what=${`program ${one.id}`} act=${() => end(one)}>Kill<//>` : ''] }))} />`}`
}

function One({ id }) {
  const { value, problem, again } = useLoad(() => json(`/v1/sandboxes/${id}`), [id])
  const terminal = useSignal(false)
  const refused = useSignal(null)
  useNews('sandbox.*,context.*', again)
  const act = (path, options, then) => async () => {
    refused.value = null
    try {
      await request(path, options)
      then?.()
    } catch (error) {
      refused.value = error
    }
    again()
  }
  const path = `/v1/sandboxes/${id}`
  return html`<p><a href="#/sandboxes">All sandboxes</a></p>
    <div class="toolbar"><h1><code>${id}</code></h1><span class="spacer"></span>
      ${value && html`<button type="button" onClick=${act(path, { method: 'PATCH', body: { ttl_ms: EXTENDED_MS } })}>Keep for one hour</button>
      ${value.state === 'paused' ? html`<button type="button" onClick=${act(`${path}/resume`, { method: 'POST' })}>Resume</button>`
        : html`<button type="button" onClick=${act(`${path}/pause`, { method: 'POST' })}>Pause</button>`}
      <${Sure} what=${id} act=${act(path, { method: 'DELETE' }, () => { location.hash = '#/sandboxes' })}>End<//>`}</div>
    <${ProblemView} problem=${problem ?? refused.value} />
    ${value && html`<p class="summary"><${Status} status=${value.state} /> <span>profile ${value.profile} · created <${Time} at=${value.created_at} /> · ends <${Time} at=${value.expires_at} />${
      value.idle_ms ? `, or after ${age(value.idle_ms)} without use` : ''}</span></p>
    <${Tabs} label="The sandbox" tabs=${[
      { id: 'contexts', title: 'Contexts', note: value.contexts || '', body: () => html`<${Contexts} id=${id} />` },
      { id: 'terminal', title: 'Terminal', body: () => (terminal.value ? html`<${TerminalView} sandbox=${id} />`
        : html`<div class="empty"><p>A terminal is a shell in this sandbox.</p><p><button type="button" onClick=${() => { terminal.value = true }}>Open a terminal</button></p></div>`) },
      { id: 'use', title: 'Use', body: () => html`<${Use} id=${id} />` },
      { id: 'files', title: 'Files', body: () => html`<${Files} id=${id} />` },
      { id: 'programs', title: 'Programs', body: () => html`<${Programs} id=${id} />` },
      { id: 'boundary', title: 'Boundary', body: () => html`<${BoundaryTab} boundary=${value.boundary} />` },
    ]} />`}`
}

export const Sandboxes = ({ parts }) => (parts[0] ? html`<${One} key=${parts[0]} id=${parts[0]} />` : html`<${List} />`)
