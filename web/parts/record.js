// The record of a run in tabs: output, files, boundary, limits, denials, timing, and the JSON itself.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { html } from './view.js'
import { download, request } from './api.js'
import { base64 } from './files.js'
import { bytes, count, milliseconds } from './format.js'
import { Output, OutputView } from './output.js'
import { Bundle, DataTable, Picture, TextResult, Value, isPicture, parseCsv, pictureUrl } from './results.js'
import { Bar, Command, Empty, ProblemView, Status, Table, Tabs, Time } from './ui.js'

const PREVIEW_MAX = 8 * 1024 * 1024

// ---- files ----

/** Where a file of a run or of a sandbox can be fetched; null where its bytes are not kept. */
export const fileUrl = (file) => file.href ?? (file.url ? file.url.replace(/^sandbox:/, '') : null)

/** A file as this page can show it: a picture, a table or text. */
export function FilePreview({ file }) {
  const state = useSignal({})
  const url = fileUrl(file)
  const type = file.mime ?? ''
  useEffect(() => {
    if (!url || file.size_bytes > PREVIEW_MAX) return undefined
    const abort = new AbortController()
    const load = async () => {
      const blob = await (await request(url, { abort: abort.signal })).blob()
      if (isPicture(type)) {
        state.value = { picture: pictureUrl(type, type === 'image/svg+xml' ? await blob.text() : await base64(blob)) }
      } else if (/csv|tab-separated/.test(type) || /\.(csv|tsv)$/i.test(file.name)) {
        state.value = { table: parseCsv(await blob.text(), /tab|\.tsv$/i.test(type + file.name) ? '\t' : ',') }
      } else {
        state.value = { text: await blob.text() }
      }
    }
    load().catch((problem) => { if (problem.name !== 'AbortError') state.value = { problem } })
    return () => abort.abort()
  }, [url])
  const { picture, table, text, problem } = state.value
  if (problem) return html`<${ProblemView} problem=${problem} />`
  if (picture) return html`<${Picture} url=${picture} name=${file.name} />`
  if (picture === null) return html`<p class="note">${file.name} is no picture of the type ${type}.</p>`
  if (table) return html`<${DataTable} ...${table} label=${file.name} />`
  if (text !== undefined) return html`<${TextResult} text=${text} label=${file.name} />`
  return null
}

const isShown = (file) => isPicture(file.mime ?? '') && fileUrl(file) && file.size_bytes <= PREVIEW_MAX
const canShow = (file) => fileUrl(file) && file.size_bytes <= PREVIEW_MAX &&
  (isPicture(file.mime ?? '') || /^text\/|json|xml|csv/.test(file.mime ?? '') || /\.(csv|tsv|txt|md|json|log|py|js|ts|sh)$/i.test(file.name))

export function FileList({ files, empty }) {
  const opened = useSignal('')
  if (!files.length) return empty
  const shown = files.find((one) => one.name === opened.value)
  return html`<${Table} label="Files" head=${['Name', 'Size', 'Type', '']} numbers=${[1]} rows=${files.map((file) => ({
    key: file.name,
    cells: [file.name, bytes(file.size_bytes), file.mime ?? '', file.error ? html`<span class="note">${file.error}</span>`
      : fileUrl(file) ? html`<span class="actions">${canShow(file) && html`<button type="button" class="small"
          aria-expanded=${opened.value === file.name ? 'true' : 'false'} aria-label="Show ${file.name}"
          onClick=${() => { opened.value = opened.value === file.name ? '' : file.name }}>Show</button>`}<button type="button" class="small"
          aria-label="Download ${file.name}" onClick=${() => download(fileUrl(file), file.name)}>Download</button></span>`
        : html`<span class="note">its bytes were not kept</span>`],
  }))} />${shown && html`<h3>${shown.name}</h3><${FilePreview} key=${shown.name} file=${shown} />`}`
}

// ---- tabs ----

/** Streamed output, or what the record has of it. */
export function outputOf(record) {
  const output = new Output()
  output.add('stdout', record.stdout ?? '')
  output.add('stderr', record.stderr ?? '')
  return output
}

function ErrorView({ error }) {
  if (!error) return null
  const where = error.line ? ` (line ${error.line})` : ''
  return html`<div class="problem" role="alert"><p><strong>${error.summary ?? error.message}</strong>${where}</p>
    ${error.summary && error.message !== error.summary && !error.summary.endsWith(error.message) && html`<p>${error.message}</p>`}
    ${error.hint && html`<p>${error.hint}</p>`}</div>`
}

export function OutputTab({ record, output, live, name }) {
  const figures = (record?.files ?? []).filter(isShown)
  const nothing = record && !output.length && !record.result && !record.displays?.length && !figures.length && !record.error
  return html`
    <${OutputView} output=${output} name=${name} />
    ${record?.error && html`<${ErrorView} error=${record.error} />`}
    ${(live ?? record?.displays ?? []).map((one, n) => html`<${Bundle} key=${n} data=${one.data} label="Display ${n + 1}" />`)}
    ${record?.result && html`<h3>Value <span class="note">${record.result.type}</span></h3><${Value} key=${record.id} value=${record.result} />`}
    ${figures.map((file) => html`<h3 key="${record.id}-${file.name}">${file.name}</h3><${FilePreview} key=${file.sha256} file=${file} />`)}
    ${nothing && html`<p class="note">The program printed nothing.</p>`}`
}

const BOUNDARY = {
  backend: 'Where it ran', isolation: 'Isolation', namespaces: 'Namespaces of its own', seccomp: 'System call filter', landlock_abi: 'Landlock ABI',
  no_new_privileges: 'No new privileges', capabilities: 'Capabilities', cgroup: 'Control groups', controllers: 'Controllers', network: 'Network',
  host_uid: 'User id on the host', own_uid: 'User id of its own', rootless: 'Without privileges', overlay: 'Root file system of its own', strict_proc: 'Strict /proc',
}

const fact = (value) => (Array.isArray(value) ? value.join(', ') || 'none' : value === true ? 'yes' : value === false ? 'no' : value === null ? 'not limited' : String(value))

export function BoundaryTab({ boundary }) {
  if (!boundary) return html`<${Empty}>Nothing ran, so no boundary was made.<//>`
  return html`<p><${Status} status=${boundary.isolation} /></p>
    ${boundary.degraded?.length > 0 && html`<ul>${boundary.degraded.map((one) => html`<li>${one}</li>`)}</ul>`}
    <dl class="facts">${Object.keys(BOUNDARY).filter((name) => name in boundary).map((name) => html`<dt>${BOUNDARY[name]}</dt><dd>${fact(boundary[name])}</dd>`)}</dl>`
}

function LimitsTab({ record }) {
  const { limits = {}, usage = {}, truncated = {} } = record
  const rows = [
    ['Wall clock', usage.wall_ms, limits.wall_ms, milliseconds],
    ['CPU time', usage.cpu_ms, limits.cpu_ms, milliseconds],
    ['Memory, peak', usage.memory_peak_bytes, limits.memory_bytes, bytes],
    ['Processes, peak', usage.processes_peak, limits.pids, String],
    ['Disk', usage.disk_bytes, limits.disk_bytes, bytes],
    ['Files', usage.disk_files, limits.disk_files, String],
    ['Standard output', truncated.stdout_total_bytes, limits.output_bytes, bytes],
    ['Standard error', truncated.stderr_total_bytes, limits.output_bytes, bytes],
  ].filter((row) => row[1] !== undefined && row[1] !== null)
  return html`<div class="bars">${rows.map(([label, used, most, text]) => html`<${Bar} label=${label} used=${used} most=${most}
      text=${most ? `${text(used)} of ${text(most)}` : `${text(used)}, no limit`} />`)}</div>
    <p class="note">CPU share ${(limits.cpu_milli ?? 0) / 1000} of a core${usage.throttled_ms ? `; throttled for ${milliseconds(usage.throttled_ms)}` : ''}.
    ${usage.network_connections ? ` Connections ${usage.network_connections}, of them refused ${usage.network_refused ?? 0}.` : ''}</p>`
}

/** Everything that was refused or that the caller should know: {what, text, hint}. */
export function denials(record) {
  const list = []
  for (const one of record.findings ?? []) {
    list.push({ what: `${one.rule} (${one.severity}, line ${one.line})`, text: one.message, hint: one.advice })
  }
  if (record.review) {
    const { verdict, reason, error, findings = [] } = record.review
    if (verdict !== 'secure') list.push({ what: `review: ${verdict}`, text: reason ?? error ?? '', hint: findings.map((one) => one.why).filter(Boolean).join(' ') })
  }
  if (record.error && !record.error.type && record.status !== 'failed') {      // an exception of the program is no denial
    list.push({ what: record.error.limit ?? record.error.code ?? record.status, text: record.error.message, hint: record.error.hint })
  }
  for (const one of record.warnings ?? []) list.push({ what: one.code, text: one.text })
  for (const one of record.boundary?.degraded ?? []) list.push({ what: 'degraded', text: one })
  if (record.usage?.network_refused) list.push({ what: 'network', text: `${count(record.usage.network_refused, 'connection')} refused by the proxy.` })
  return list
}

function DenialsTab({ record }) {
  const list = denials(record)
  if (!list.length) return html`<${Empty}>Nothing was refused, and there is no warning.<//>`
  return html`<ul class="denials">${list.map((one) => html`<li><code>${one.what}</code> ${one.text}${one.hint && html`<p class="hint">${one.hint}</p>`}</li>`)}</ul>
    ${record.feedback?.length > 0 && html`<h3>Sentences for a model that tries again</h3><ul>${record.feedback.map((one) => html`<li>${one}</li>`)}</ul>`}`
}

function TimingTab({ record }) {
  const stages = record.stages ?? []
  const total = record.timings?.total_ms ?? stages.reduce((sum, one) => sum + one.ms, 0)
  return html`<div class="bars">${stages.map((one) => html`<div class="bar-row"><span class="bar-label">${one.name}</span><div class="bar"
      role="meter" aria-label=${one.name} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(100 * Math.min(1, one.ms / (total || 1)))}
      aria-valuetext=${milliseconds(one.ms)}><div class="fill good" style=${{ width: `${Math.min(100, (100 * one.ms) / (total || 1))}%` }}></div></div><span
      class="bar-text">${one.verdict === 'skipped' ? 'skipped' : milliseconds(one.ms)}</span></div>`)}</div>
    <dl class="facts"><dt>From request to record</dt><dd>${milliseconds(total)}</dd>
    <dt>Started</dt><dd><${Time} at=${record.started_at} /></dd><dt>Finished</dt><dd><${Time} at=${record.finished_at} /></dd></dl>`
}

/** One line above the tabs: how it ended, and what it took. */
export function Summary({ record }) {
  const { usage = {} } = record
  const parts = [
    record.exit_code !== null && record.exit_code !== undefined && `exit ${record.exit_code}`,
    record.signal && `signal ${record.signal}`,
    usage.wall_ms !== undefined && milliseconds(usage.wall_ms),
    usage.cpu_ms !== undefined && `CPU ${milliseconds(usage.cpu_ms)}`,
    usage.memory_peak_bytes !== undefined && `memory ${bytes(usage.memory_peak_bytes)}`,
  ].filter(Boolean)
  return html`<p class="summary"><${Status} status=${record.status} /> <span>${parts.join(' · ')}</span></p>`
}

export function RecordTabs({ record, output, live, files, current }) {
  const listed = files ?? record.files ?? []
  const refused = denials(record).length
  const tabs = [
    { id: 'output', title: 'Output', body: () => html`<${OutputTab} record=${record} output=${output} live=${live} name="${record.id}.txt" />` },
    { id: 'files', title: 'Files', note: listed.length || '', body: () => html`<${FileList} files=${listed}
      empty=${html`<${Empty}>The program made no files.<//>`} />` },
    { id: 'boundary', title: 'Boundary', body: () => html`<${BoundaryTab} boundary=${record.boundary} />` },
    { id: 'limits', title: 'Limits', body: () => html`<${LimitsTab} record=${record} />` },
    { id: 'denials', title: 'Denials', note: refused || '', body: () => html`<${DenialsTab} record=${record} />` },
    { id: 'timing', title: 'Timing', body: () => html`<${TimingTab} record=${record} />` },
    { id: 'record', title: 'Record', body: () => html`<${Command} label="The record" text=${JSON.stringify(record, null, 2).slice(0, 400000)} />` },
  ]
  return html`<${Tabs} tabs=${tabs} label="The record" current=${current} />`
}
