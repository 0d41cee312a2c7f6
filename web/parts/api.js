// Requests to the daemon.  The key is in sessionStorage, is sent as Authorization and ends with the tab; there are no cookies.

import { signal } from '@preact/signals'

const STORED = 'caisson.key'

export const key = signal(sessionStorage.getItem(STORED) ?? '')
export const me = signal(null)         // GET /v1/me, or what stands in where the route is absent
export const needsKey = signal(false)  // the daemon has answered 401

export function setKey(text) {
  key.value = text.trim()
  if (key.value) sessionStorage.setItem(STORED, key.value)
  else sessionStorage.removeItem(STORED)
}

/** An answer above 399, as RFC 9457 has it. */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail ?? body.message ?? `The daemon answered with the status ${status}.`)
    this.status = status
    this.body = body
  }
}

async function problem(answer) {
  const text = await answer.text()
  try {
    return new Problem(answer.status, JSON.parse(text))
  } catch {
    return new Problem(answer.status, { detail: text.slice(0, 400) || undefined })
  }
}

/** A request; the answer, if its status is below 400.  A plain object as `body` is sent as JSON. */
export async function request(path, { method, body, headers = {}, abort } = {}) {
  const raw = body === undefined || typeof body === 'string' || body instanceof Blob || body instanceof Uint8Array
  const sent = { ...headers }
  if (key.value) sent.Authorization = `Bearer ${key.value}`
  if (!raw) sent['Content-Type'] = 'application/json'
  let answer
  try {
    answer = await fetch(path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'), headers: sent, body: raw ? body : JSON.stringify(body),
      signal: abort, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer',
    })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new Problem(0, { detail: 'The daemon does not answer. Start it again: caisson serve' })
  }
  if (answer.ok) return answer
  if (answer.status === 401) needsKey.value = true
  throw await problem(answer)
}

export async function json(path, options) {
  const answer = await request(path, options)
  const text = await answer.text()
  return text ? JSON.parse(text) : null
}

/** A list; null where the daemon has no such route, so that a page can leave a part out. */
export async function optional(path, options) {
  try {
    return await json(path, options)
  } catch (error) {
    if (error.status === 404 || error.status === 403 || error.status === 405) return null
    throw error
  }
}

/** Server-sent events over fetch, because EventSource cannot send a key: {id, event, data}. */
export async function* events(path, { headers, ...options } = {}) {
  const answer = await request(path, { ...options, headers: { ...headers, Accept: 'text/event-stream' } })
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  let event = { data: '' }
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const searched = rest.length
      rest += value
      let start = 0
      for (let end = rest.indexOf('\n', searched); end >= 0; end = rest.indexOf('\n', start)) {
        const line = rest.slice(start, end)
        start = end + 1
        if (line === '') {
          if (event.data) yield { ...event, data: JSON.parse(event.data) }
          event = { data: '' }
        } else if (line.startsWith('data: ')) {
          event.data += line.slice(6)
        } else if (line.startsWith('event: ')) {
          event.event = line.slice(7)
        } else if (line.startsWith('id: ')) {
          event.id = line.slice(4)
        }
      }
      rest = rest.slice(start)
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** A member that all lists have: the array of entries, whatever it is called, and the cursor of the next page. */
export function page(answer, name) {
  return { rows: answer?.data ?? answer?.[name] ?? [], next: answer?.next_cursor ?? answer?.next ?? null }
}

/** What this key may do.  Before a daemon has /v1/me, everything is shown and the daemon refuses. */
export async function learnMe() {
  try {
    me.value = (await optional('/v1/me')) ?? { key: null, admin: null, scopes: null, may: {}, quotas: null }
    needsKey.value = false
  } catch (error) {
    if (error.status !== 401) me.value = { key: null, admin: null, scopes: null, may: {}, quotas: null, problem: error }
  }
}

export const may = (what) => me.value?.may?.[what] !== false
export const hasScope = (scope) => !me.value?.scopes || me.value.scopes.includes(scope) || Boolean(me.value.admin)

/** The bytes of an answer as a download. */
export function saveAs(blob, name) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name.split('/').pop()
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60000)
}

export async function download(path, name) {
  saveAs(await (await request(path)).blob(), name)
}
