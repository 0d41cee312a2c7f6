// News of the daemon (GET /v1/events), for pages that show a list: `onNews` is called soon after an event.

import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { events } from './api.js'

const SETTLE_MS = 250      // several events in a row are one call
const POLL_MS = 5000       // where the daemon has no events
const RETRY_MS = 3000

export const live = signal('off')      // off, live, polling

async function follow(types, abort, soon) {
  let last
  while (!abort.aborted) {
    try {
      live.value = 'live'
      for await (const event of events(`/v1/events?types=${types}`, { abort, headers: last ? { 'Last-Event-ID': last } : {} })) {
        last = event.id ?? last
        soon()
      }
    } catch (error) {
      if (abort.aborted) return
      if (error.status === 404 || error.status === 403) {
        live.value = 'polling'
        const timer = setInterval(soon, POLL_MS)
        abort.addEventListener('abort', () => clearInterval(timer))
        return
      }
    }
    live.value = 'off'
    await new Promise((resolve) => { setTimeout(resolve, RETRY_MS) })
    if (!abort.aborted) soon()
  }
}

/** Calls `onNews` after events of the types, such as "run.*" or "run.*&tenant=*", as long as the page is open. */
export function useNews(types, onNews) {
  useEffect(() => {
    const abort = new AbortController()
    let timer = 0
    const soon = () => {
      timer ||= setTimeout(() => {
        timer = 0
        if (!abort.signal.aborted && !document.hidden) onNews()
      }, SETTLE_MS)
    }
    follow(types, abort.signal, soon)
    return () => {
      abort.abort()
      clearTimeout(timer)
      live.value = 'off'
    }
  }, [types])
}
