// Small elements that all pages share.

import { signal, useSignal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { html } from './view.js'
import { time } from './format.js'

// A sentence for screen readers, for some seconds also at the bottom of the page: "Link copied".
const said = signal({ text: '' })
let silence

/** `quiet`: for screen readers only, because the page shows the same elsewhere. */
export function say(text, quiet = false) {
  said.value = { text, quiet }
  clearTimeout(silence)
  silence = setTimeout(() => { said.value = { text: '' } }, 4000)
}

export const Said = () => html`<div class="said" role="status" aria-live="polite">${said.value.text && html`<span
  class=${said.value.quiet ? 'hidden' : undefined}>${said.value.text}</span>`}</div>`

export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text)
    say(`${what} copied`)
  } catch {
    say('The browser does not allow copying here: select the text and copy it.')
  }
}

export const Time = ({ at }) => (at ? html`<time datetime=${at}>${time(at)}</time>` : null)

const GOOD = new Set(['completed', 'passed', 'running', 'idle', 'ready', 'full', 'ok'])
const WAITS = new Set(['queued', 'starting', 'paused', 'busy', 'cancelled', 'skipped', 'not_run', 'degraded', 'new', 'checking', 'waiting'])

/** A status as a word with a mark, so that colour is not all that says it. */
export function Status({ status }) {
  const kind = GOOD.has(status) ? 'good' : WAITS.has(status) ? 'wait' : status === 'over' ? 'over' : 'bad'
  return html`<span class="status ${kind}">${String(status).replaceAll('_', ' ')}</span>`
}

/** A problem of the interface: what is wrong, the field, and the id that the log has. */
export function ProblemView({ problem }) {
  if (!problem) return null
  const { field, request_id: id } = problem.body ?? {}
  return html`<div class="problem" role="alert">
    <p><strong>${problem.status ? `${problem.body?.title ?? 'Refused'} (${problem.status})` : 'No answer'}</strong></p>
    <p>${problem.message}</p>
    ${field && html`<p class="note">Field: <code>${field}</code></p>`}
    ${id && html`<p class="note">Request: <code>${id}</code></p>`}
  </div>`
}

/** What stands where a list is empty, with the command that would fill it. */
export const Empty = ({ children, command }) => html`<div class="empty"><p>${children}</p>${command && html`<${Command} text=${command} />`}</div>`

export const Command = ({ text, label = 'Command' }) => html`<div class="command"><pre tabindex="0" role="region" aria-label=${label}>${text}</pre><button
  type="button" onClick=${() => copy(text, label)} aria-label="Copy: ${label}">Copy</button></div>`

/** Tabs: `tabs` is a list of {id, title, note?, body}.  Arrow keys move, as the ARIA pattern has it. */
export function Tabs({ tabs, label, current }) {
  const id = useId()
  const own = useSignal(tabs[0]?.id)
  const chosen = current ?? own
  const at = Math.max(0, tabs.findIndex((one) => one.id === chosen.value))
  const keys = (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    chosen.value = tabs[(to + tabs.length) % tabs.length].id
    document.getElementById(`${id}-${chosen.value}`)?.focus()
  }
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} onKeyDown=${keys}>${tabs.map((one, n) => html`<button type="button" role="tab" key=${one.id}
      id="${id}-${one.id}" aria-selected=${n === at ? 'true' : 'false'} aria-controls="${id}-panel" tabindex=${n === at ? 0 : -1}
      onClick=${() => { chosen.value = one.id }}>${one.title}${one.note ? html` <span class="tally">${one.note}</span>` : null}</button>`)}</div>
    <div role="tabpanel" id="${id}-panel" aria-labelledby="${id}-${tabs[at]?.id}" class="panel">${tabs[at]?.body()}</div>
  </div>`
}

/** A table that scrolls sideways in its own frame.  Cells are text or elements, never HTML. */
export const Table = ({ head, rows, label, numbers = [] }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
  <table><thead><tr>${head.map((one, n) => html`<th scope="col" class=${numbers.includes(n) ? 'number' : undefined}>${one}</th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr key=${row.key}>${row.cells.map((cell, n) => html`<td
    class=${numbers.includes(n) ? 'number' : undefined}>${cell}</td>`)}</tr>`)}</tbody></table></div>`

/** A button that asks once more before it acts. */
export function Sure({ children, act, what }) {
  const asked = useSignal(false)
  const click = () => {
    if (!asked.value) {
      asked.value = true
      setTimeout(() => { asked.value = false }, 4000)
    } else {
      asked.value = false
      act()
    }
  }
  return html`<button type="button" class=${asked.value ? 'small danger' : 'small'} onClick=${click}
    aria-label="${asked.value ? 'Really ' : ''}${children} ${what}">${asked.value ? `Really ${children.toLowerCase()}?` : children}</button>`
}

/** A modal dialog of the browser: focus stays in it, Escape closes it. */
export function Dialog({ open, title, children }) {
  const element = useRef()
  const id = useId()
  useEffect(() => {
    if (open.value && !element.current.open) element.current.showModal()
    if (!open.value && element.current.open) element.current.close()
  }, [open.value])
  return html`<dialog ref=${element} aria-labelledby=${id} onClose=${() => { open.value = false }}>
    <header><h2 id=${id}>${title}</h2><button type="button" class="small" onClick=${() => { open.value = false }}>Close</button></header>
    ${open.value && children}
  </dialog>`
}

/** A bar: how much of a limit was used.  The text has both numbers. */
export function Bar({ label, used, most, text }) {
  const part = most > 0 ? Math.min(1, used / most) : 0
  const kind = part >= 0.98 ? 'bad' : part >= 0.8 ? 'wait' : 'good'
  return html`<div class="bar-row"><span class="bar-label">${label}</span><div class="bar" role="meter" aria-label=${label} aria-valuemin="0"
    aria-valuemax="100" aria-valuenow=${Math.round(100 * part)} aria-valuetext=${text}><div class="fill ${kind}"
    style=${{ width: `${Math.max(part * 100, used > 0 ? 1 : 0)}%` }}></div></div><span class="bar-text">${text}</span></div>`
}

/** Loads with `load` when the page opens and each time `again` is called; {value, problem, loading, again}. */
export function useLoad(load, inputs = []) {
  const state = useSignal({ loading: true })
  const number = useRef(0)
  const again = async () => {
    const mine = ++number.current
    try {
      const value = await load()
      if (mine === number.current) state.value = { value, loading: false }
    } catch (problem) {
      if (mine === number.current) state.value = { value: state.value.value, problem, loading: false }
    }
  }
  useEffect(() => {
    again()
    return () => { number.current++ }
  }, inputs)
  return { ...state.value, again }
}
