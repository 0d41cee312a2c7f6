// The key of this tab: what it may do, its quotas, and what models have cost.

import { useSignal } from '@preact/signals'
import { html } from '../parts/view.js'
import { json, key, learnMe, may, me, optional, setKey } from '../parts/api.js'
import { bytes, milliseconds } from '../parts/format.js'
import { Command, Empty, ProblemView, Table, Time, useLoad } from '../parts/ui.js'

const KEYS_PAGE = 100

const BY = ['component', 'model', 'key']

const words = (value) => (value === null || value === undefined ? 'no limit' : typeof value === 'object' ? JSON.stringify(value) : String(value))

function Own() {
  const { key: own, tenant, admin, scopes, may = {}, quotas, used, version, problem } = me.value
  const allowed = Object.entries(may).filter(([, yes]) => yes).map(([name]) => name)
  return html`<${ProblemView} problem=${problem} /><dl class="facts">
    <dt>Key</dt><dd>${own ? html`${own.name} <code>${own.id}</code>` : key.value ? 'the key of this tab' : 'none: this address is answered without a key'}</dd>
    ${tenant && html`<dt>Tenant</dt><dd>${tenant}</dd>`}
    ${admin !== null && html`<dt>Administrator</dt><dd>${admin ? 'yes' : 'no'}</dd>`}
    <dt>Scopes</dt><dd>${scopes ? scopes.join(', ') : 'all'}</dd>
    ${allowed.length > 0 && html`<dt>May use</dt><dd>${allowed.join(', ')}</dd>`}
    ${used && html`<dt>Used in 24 hours</dt><dd>CPU ${milliseconds(used.cpu_ms)}</dd><dt>Stored</dt><dd>${bytes(used.stored_bytes)}</dd>`}
    ${version && html`<dt>Daemon</dt><dd>${version}</dd>`}</dl>
    ${quotas && Object.keys(quotas).length > 0 && html`<h3>Quotas</h3><dl class="facts">${Object.entries(quotas).map(([name, value]) => html`<dt>${name.replaceAll('_', ' ')}</dt><dd>${words(value)}</dd>`)}</dl>`}`
}

function Change() {
  const text = useSignal('')
  const submit = (event) => {
    event.preventDefault()
    setKey(text.value)
    text.value = ''
    learnMe()
  }
  return html`<form class="toolbar" onSubmit=${submit} autocomplete="off"><label class="field wide"><span>Use another key in this tab</span><input type="password" autocomplete="off" value=${text.value}
    placeholder="csn_..." onInput=${(event) => { text.value = event.currentTarget.value }} required /></label><button>Use</button></form>`
}

function Usage() {
  const by = useSignal('component')
  const { value, problem } = useLoad(() => json(`/v1/usage?by=${by.value}`), [by.value])
  const rows = value?.usage ?? []
  return html`<div class="toolbar"><h2>Usage of models</h2><label class="field"><span>By</span><select value=${by.value}
      onChange=${(event) => { by.value = event.currentTarget.value }}>${BY.map((one) => html`<option value=${one}>${one}</option>`)}</select></label></div>
    ${problem?.status === 403 ? html`<p class="note">This key does not have the scope "read".</p>` : html`<${ProblemView} problem=${problem} />`}
    ${value && !rows.length && html`<${Empty} command="caisson stats --by model">No model was asked. Reviews by a model appear here${value.since ? html`, since <${Time} at=${value.since} />` : ''}.<//>`}
    ${rows.length > 0 && html`<${Table} label="Usage of models" head=${['Name', 'Calls', 'Without usage', 'Prompt tokens', 'Completion tokens', 'Cost, USD']} numbers=${[1, 2, 3, 4, 5]}
      rows=${[...rows, { ...value.total, total: true }].map((one, n) => ({ key: n, cells: [one.total ? 'all' : one.component ?? one.model ?? `${one.tenant ?? ''} ${one.key ?? ''}`,
        one.calls, one.usage_missing, one.prompt_tokens, one.completion_tokens, one.cost_usd] }))} />`}`
}

/** All keys, for an administrator; their texts are in no list. */
function All() {
  const { value, problem } = useLoad(() => optional(`/v1/keys?limit=${KEYS_PAGE}`))
  const older = useSignal([])
  const next = useSignal(undefined)
  if (!value) return html`<${ProblemView} problem=${problem} />`
  const more = next.value === undefined ? value.next : next.value
  const load = async () => {
    const answer = await json(`/v1/keys?limit=${KEYS_PAGE}&cursor=${encodeURIComponent(more)}`)
    older.value = [...older.value, ...answer.keys]
    next.value = answer.next ?? null
  }
  const state = (one) => (one.revoked_at ? 'revoked' : one.expires_at && new Date(one.expires_at) < new Date() ? 'expired' : 'valid')
  const rows = [...value.keys, ...older.value]
  if (!rows.length) return html`<p class="note">There is no key.</p>`
  return html`<${Table} label="Keys" head=${['Name', 'Key', 'Tenant', 'Scopes', 'State', 'Made', 'Used']} rows=${rows.map((one) => ({
      key: one.id, cells: [one.name, html`<code>${one.id}</code>`, one.tenant, one.scopes.join(', '), state(one), html`<${Time} at=${one.created_at} />`,
        one.used_at ? html`<${Time} at=${one.used_at} />` : 'never'] }))} />
    ${more && html`<p><button type="button" onClick=${load}>Older keys</button></p>`}`
}

export const Keys = () => html`<div class="toolbar"><h1>Keys and usage</h1></div>
  <h2>This key</h2><${Own} /><${Change} />
  <h3>Make and list keys</h3><p class="note">Keys are made on the host of the daemon, and are shown once.</p>
  <${Command} text=${'caisson keys create --name laptop --tenant me --scopes run,check,read\ncaisson keys list'} />
  ${may('keys') && html`<${All} />`}
  <${Usage} />`
