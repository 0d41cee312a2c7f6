// Runs, newest first, and the record of one.

import { signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { html } from '../parts/view.js'
import { Problem, events, json, me, page, request } from '../parts/api.js'
import { age, milliseconds } from '../parts/format.js'
import { live, useNews } from '../parts/live.js'
import { Output } from '../parts/output.js'
import { OutputTab, RecordTabs, Summary, outputOf } from '../parts/record.js'
import { Empty, ProblemView, Status, Sure, Table, Time, useLoad } from '../parts/ui.js'

const PAGE = 50
// As schema/run_result.json has them, with `running` for those that go on.
const STATUSES = ['running', 'completed', 'failed', 'blocked', 'syntax_error', 'timeout', 'memory_exceeded', 'disk_exceeded', 'process_limit', 'output_limit',
  'crashed', 'cancelled', 'dependency_failed', 'unsupported_language', 'isolation_unavailable', 'capacity', 'bad_request', 'engine_error']
const LANGUAGES = ['python', 'javascript', 'typescript', 'bash']

const filter = signal({ status: '', language: '', profile: '', key: '' })
const everybody = signal(false) // runs of all tenants, for an administrator
const history = signal(false)   // also runs of the audit, whose records may be gone
const more = signal([])         // pages behind the first one
const next = signal(null)

function listPath(cursor) {
  const query = new URLSearchParams({ limit: PAGE })
  for (const [name, value] of Object.entries(filter.value)) if (value) query.set(name, value)
  if (everybody.value) query.set('tenant', '*')
  if (history.value) query.set('history', 'true')
  if (cursor) query.set('cursor', cursor)
  return `/v1/runs?${query}`
}

const isLive = (run) => run.state !== 'over'

function Filter({ name, label, options }) {
  const change = (event) => {
    more.value = []
    filter.value = { ...filter.value, [name]: event.currentTarget.value }
  }
  return html`<label class="field"><span>${label}</span>${options ? html`<select value=${filter.value[name]} onChange=${change}>
    <option value="">all</option>${options.map((one) => html`<option value=${one} selected=${filter.value[name] === one}>${one.replaceAll('_', ' ')}</option>`)}</select>`
    : html`<input value=${filter.value[name]} placeholder="all" onChange=${change} />`}</label>`
}

function List() {
  const { value, problem, again } = useLoad(async () => {
    const answer = page(await json(listPath()), 'runs')
    if (!more.value.length) next.value = answer.next
    return answer.rows
  }, [filter.value, history.value, everybody.value])
  useNews(`run.*${everybody.value ? '&tenant=*' : ''}`, again)
  const refused = useSignal(null)
  const end = async (run) => {
    refused.value = null
    await request(`/v1/runs/${run.id}`, { method: 'DELETE' }).catch((error) => { refused.value = error })
    again()
  }
  const loadMore = async () => {
    const answer = page(await json(listPath(next.value)), 'runs')
    more.value = [...more.value, ...answer.rows]
    next.value = answer.next
  }
  const seen = new Set()
  const rows = [...(value ?? []), ...more.value].filter((run) => !seen.has(run.id) && seen.add(run.id))
  const filtered = Object.values(filter.value).some(Boolean)
  return html`<div class="toolbar">
      <h1>Runs</h1><span class="note">${{ live: 'live', polling: 'each 5 s', off: '' }[live.value]}</span>
      <span class="spacer"></span>
      <${Filter} name="status" label="Status" options=${STATUSES} />
      <${Filter} name="language" label="Language" options=${LANGUAGES} />
      <${Filter} name="profile" label="Profile" />
      <${Filter} name="key" label="Key" />
      <label class="check"><input type="checkbox" checked=${history.value} onChange=${(event) => { more.value = []; history.value = event.currentTarget.checked }} />
        <span title="Runs of the audit, whose records may be gone">All of the audit</span></label>
      ${me.value.admin && html`<label class="check"><input type="checkbox" checked=${everybody.value} onChange=${(event) => { more.value = []; everybody.value = event.currentTarget.checked }} />
        <span>All tenants</span></label>`}
    </div>
    <${ProblemView} problem=${problem ?? refused.value} />
    ${value && !rows.length && (filtered ? html`<${Empty}>No run fits these filters.<//>`
      : html`<${Empty} command="curl -s ${location.origin}/v1/runs -H 'Prefer: respond-async' -d '{&quot;language&quot;: &quot;python&quot;, &quot;code&quot;: &quot;print(6 * 7)&quot;}'">No runs yet. The playground starts one, or this command:<//>`)}
    ${rows.length > 0 && html`<${Table} label="Runs" head=${['Run', 'Status', 'Language', 'Profile', 'Key', 'Started', 'Time', '']} numbers=${[6]} rows=${rows.map((run) => ({
      key: run.id,
      cells: [html`<a href="#/runs/${run.id}"><code>${run.id.slice(0, 16)}</code></a>`, html`<${Status} status=${isLive(run) ? run.state : run.status ?? 'over'} />`, run.language ?? '', run.profile ?? '',
        run.key_id ?? '', html`<${Time} at=${run.created_at} />`,
        isLive(run) ? age(run.age_ms) : milliseconds(run.total_ms),
        isLive(run) ? html`<${Sure} what=${run.id} act=${() => end(run)}>Cancel<//>` : ''],
    }))} />`}
    ${next.value && html`<p><button type="button" onClick=${loadMore}>Older runs</button></p>`}`
}

/** One run: its record, or its events while it goes on. */
function One({ id }) {
  const state = useSignal({ output: new Output() })
  useEffect(() => {
    const abort = new AbortController()
    const output = new Output()
    state.value = { output }
    const follow = async () => {
      const answer = await json(`/v1/runs/${id}`, { abort: abort.signal })
      if (answer.stages || answer.boundary !== undefined) return { record: answer, output: outputOf(answer) }
      for await (const { data } of events(`/v1/runs/${id}/events`, { abort: abort.signal })) {
        if (data.type === 'stdout' || data.type === 'stderr') output.add(data.type, data.text)
        if (data.type === 'end') return { record: data.record ?? (await json(`/v1/runs/${id}`)), output }
      }
      throw new Problem(0, { detail: 'The stream of the run broke off.' })
    }
    follow().then((done) => { state.value = done })
      .catch((problem) => { if (problem.name !== 'AbortError') state.value = { ...state.value, problem } })
    return () => abort.abort()
  }, [id])
  const { record, output, problem } = state.value
  return html`<p><a href="#/runs">All runs</a></p><h1><code>${id}</code></h1>
    <${ProblemView} problem=${problem} />
    ${record ? html`<p class="note">${record.language}, profile ${record.profile}</p><${Summary} record=${record} /><${RecordTabs} record=${record} output=${output} />`
      : !problem && html`<p class="summary"><${Status} status="running" /></p><${OutputTab} output=${output} />`}`
}

export const Runs = ({ parts }) => (parts[0] ? html`<${One} key=${parts[0]} id=${parts[0]} />` : html`<${List} />`)
