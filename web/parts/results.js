// Results of programs by MIME type.  Everything in them is hostile: text becomes text nodes, pictures become <img> with a
// checked type, and HTML is shown only in a frame without the page's origin, from a link of the daemon (POST /v1/previews).

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { html } from './view.js'
import { json } from './api.js'
import { Coloured } from './output.js'
import { ProblemView, Table } from './ui.js'

const TEXT_MAX = 200000        // characters of a text that are shown
const ROWS_MAX = 100
const COLUMNS_MAX = 50
const CELL_MAX = 400
const PICTURE_MAX = 16 * 1024 * 1024

// The first bytes of each picture, as base64 begins with them.
const PICTURES = { 'image/png': 'iVBORw0KGgo', 'image/jpeg': '/9j/', 'image/gif': 'R0lGOD' }

const toBase64 = (text) => {
  let binary = ''
  const raw = new TextEncoder().encode(text)
  for (let at = 0; at < raw.length; at += 32768) binary += String.fromCharCode(...raw.subarray(at, at + 32768))
  return btoa(binary)
}

/** A data: URL of a picture, or null.  A browser runs no script of an SVG that an <img> shows. */
export function pictureUrl(type, content) {
  if (typeof content !== 'string' || content.length > PICTURE_MAX) return null
  if (type === 'image/svg+xml') return `data:image/svg+xml;base64,${toBase64(content)}`
  const base64 = content.replace(/\s+/g, '')
  return PICTURES[type] && base64.startsWith(PICTURES[type]) && /^[A-Za-z0-9+/]+=*$/.test(base64) ? `data:${type};base64,${base64}` : null
}

export const isPicture = (type) => type in PICTURES || type === 'image/svg+xml'

export const Picture = ({ url, name }) => html`<figure><img src=${url} alt=${name} loading="lazy" /></figure>`

const cellText = (cell) => {
  if (cell === null || cell === undefined) return ''
  const text = typeof cell === 'object' ? JSON.stringify(cell) : String(cell)
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX)}…` : text
}

/** A table of values: {columns, rows, total}. */
export function DataTable({ columns, rows, total, label = 'Table' }) {
  const kept = columns.slice(0, COLUMNS_MAX)
  const shown = rows.slice(0, ROWS_MAX)
  const numbers = kept.map((_, n) => n).filter((n) => shown.some((row) => row[n] !== '' && row[n] !== null) &&
    shown.every((row) => row[n] === '' || row[n] === null || row[n] === undefined || Number.isFinite(Number(row[n]))))
  return html`<div><${Table} label=${label} head=${kept.map(cellText)} numbers=${numbers}
    rows=${shown.map((row, key) => ({ key, cells: kept.map((_, n) => cellText(row[n])) }))} />
    ${(total > shown.length || columns.length > kept.length) && html`<p class="note">The first ${shown.length} of ${total} rows${
      columns.length > kept.length ? `, the first ${kept.length} of ${columns.length} columns` : ''}.</p>`}</div>`
}

/** A JSON value as {columns, rows, total}, where it is a table: an array of flat objects, or of arrays of one length. */
export function asTable(value) {
  if (!Array.isArray(value) || value.length === 0) return null
  const flat = (one) => one === null || typeof one !== 'object'
  if (value.every((row) => Array.isArray(row) && row.length === value[0].length && row.length > 0 && row.every(flat))) {
    return { columns: value[0].map((_, n) => n), rows: value, total: value.length }
  }
  if (value.every((row) => row && !Array.isArray(row) && typeof row === 'object' && Object.values(row).every(flat))) {
    const columns = [...new Set(value.slice(0, ROWS_MAX).flatMap(Object.keys))]
    return columns.length ? { columns, rows: value.map((row) => columns.map((name) => row[name])), total: value.length } : null
  }
  return null
}

/** Columns by name, as application/vnd.caisson.table+json has them: JSON as text in a record, and as it is in an event. */
function columnTable(content) {
  try {
    const table = typeof content === 'string' ? JSON.parse(content) : content
    const columns = Object.keys(table)
    if (!columns.length || !columns.every((name) => Array.isArray(table[name]))) return null
    const total = Math.max(...columns.map((name) => table[name].length))
    const rows = Array.from({ length: Math.min(total, ROWS_MAX) }, (_, n) => columns.map((name) => table[name][n]))
    return { columns, rows, total }
  } catch {
    return null
  }
}

/** Comma- or tab-separated text as {columns, rows, total}; quotes as RFC 4180 has them. */
export function parseCsv(text, separator = ',') {
  const rows = []
  let row = []
  let cell = ''
  let quoted = false
  let total = 0
  const end = () => {
    row.push(cell)
    cell = ''
    if (row.length > 1 || row[0] !== '') {
      if (rows.length <= ROWS_MAX) rows.push(row)
      total++
    }
    row = []
  }
  for (let at = 0; at < text.length; at++) {
    const c = text[at]
    if (quoted) {
      if (c !== '"') cell += c
      else if (text[at + 1] === '"') cell += text[++at]
      else quoted = false
    } else if (c === '"' && cell === '') quoted = true
    else if (c === separator) {
      row.push(cell)
      cell = ''
    } else if (c === '\n') end()
    else if (c !== '\r') cell += c
  }
  if (cell || row.length) end()
  const [columns = [], ...rest] = rows
  return { columns, rows: rest, total: Math.max(0, total - 1) }
}

export const TextResult = ({ text, label = 'Result' }) => html`<div class="output"><pre class="text" tabindex="0" role="region" aria-label=${label}><${Coloured}
  text=${text.slice(0, TEXT_MAX)} /></pre>${text.length > TEXT_MAX && html`<p class="note">The first ${TEXT_MAX} characters.</p>`}</div>`

/** HTML of a program, in a frame that has no origin of its own and no access to this page. */
function Frame({ text }) {
  const state = useSignal({})
  useEffect(() => {
    const abort = new AbortController()
    json('/v1/previews', { body: { html: text }, abort: abort.signal })
      .then(({ url }) => { if (/^\/v1\/previews\/[^/\\]+$/.test(url)) state.value = { url } })
      .catch((problem) => { if (problem.name !== 'AbortError') state.value = { problem } })
    return () => abort.abort()
  }, [text])
  const { url, problem } = state.value
  if (problem?.status === 404) return html`<p class="note">This daemon shows no HTML; the text of the result:</p><${TextResult} text=${text} />`
  if (problem) return html`<${ProblemView} problem=${problem} />`
  return url ? html`<iframe sandbox="allow-scripts" src=${url} title="HTML of the program" referrerpolicy="no-referrer"></iframe>`
    : html`<p class="note">The frame is loading.</p>`
}

/** One bundle of MIME types: the richest form that is safe here, and the others on request. */
export function Bundle({ data, label }) {
  const forms = []
  for (const type of Object.keys(PICTURES)) {
    const url = data[type] && pictureUrl(type, data[type])
    if (url) forms.push([type, () => html`<${Picture} url=${url} name="${label}: picture" />`])
  }
  const svg = data['image/svg+xml'] && pictureUrl('image/svg+xml', data['image/svg+xml'])
  if (svg) forms.push(['image/svg+xml', () => html`<${Picture} url=${svg} name="${label}: drawing" />`])
  const table = data['application/vnd.caisson.table+json'] && columnTable(data['application/vnd.caisson.table+json'])
  if (table) forms.push(['table', () => html`<${DataTable} ...${table} label=${label} />`])
  if (typeof data['text/html'] === 'string') forms.push(['text/html', () => html`<${Frame} text=${data['text/html']} />`])
  for (const [type, content] of Object.entries(data)) {
    if (type === 'text/html' || isPicture(type) || type.startsWith('application/vnd.caisson.')) continue
    forms.push([type, () => html`<${TextResult} text=${typeof content === 'string' ? content : JSON.stringify(content)} label=${label} />`])
  }
  const chosen = useSignal(0)
  if (!forms.length) return html`<p class="note">A result of the type ${Object.keys(data).join(', ')}, which this page does not show.</p>`
  const at = Math.min(chosen.value, forms.length - 1)
  return html`<section class="bundle" aria-label=${label}>
    ${forms.length > 1 && html`<div class="forms" role="group" aria-label="Form of ${label}">${forms.map(([type], n) => html`<button type="button"
      class="small" aria-pressed=${n === at ? 'true' : 'false'} onClick=${() => { chosen.value = n }}>${type}</button>`)}</div>`}
    <div key=${forms[at][0]}>${forms[at][1]()}</div></section>`
}

/** The value of a run. */
export function Value({ value }) {
  if (value.data && Object.keys(value.data).length) return html`<${Bundle} data=${value.data} label="Value" />`
  const table = asTable(value.value)
  if (table) return html`<${DataTable} ...${table} label="Value" />`
  const text = value.repr ?? (typeof value.value === 'string' ? value.value : JSON.stringify(value.value, null, 2))
  return html`<${TextResult} text=${text ?? ''} label="Value" />`
}
