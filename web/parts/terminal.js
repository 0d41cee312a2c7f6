// A terminal in a persistent sandbox: a process with a terminal, its output as events, keys as requests to its stdin.

import { effect, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { html } from './view.js'
import { events, request } from './api.js'
import { colour, isDark } from './theme.js'
import { ProblemView } from './ui.js'

const SCROLLBACK = 5000

const nonce = () => document.querySelector('meta[name=csp-nonce]').content

/**
 * Makes document.createElement() fit for xterm.js under the policy, and returns what ends it: <style> elements carry the
 * nonce, and colours that are set as the attribute "style" of a <span> go through the object model.
 * Source: Viewport.ts, DomRenderer.ts and DomRendererRowFactory.ts of xterm.js 6.0.0.
 */
function allowStyles() {
  document.createElement = (...words) => {
    const element = Document.prototype.createElement.apply(document, words)
    if (element.nodeName === 'STYLE') element.nonce = nonce()
    if (element.nodeName === 'SPAN') {
      element.setAttribute = (name, value) => {
        if (name === 'style') element.style.cssText = value
        else Element.prototype.setAttribute.call(element, name, value)
      }
    }
    return element
  }
  return () => { delete document.createElement }
}

function colours() {
  const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
  const own = Object.fromEntries(names.flatMap((name, n) => {
    const bright = `bright${name[0].toUpperCase()}${name.slice(1)}`
    return [[name, colour(`--ansi-${n}`)], [bright, colour(`--ansi-${n}`)]]
  }))
  return { ...own, background: colour('--well'), foreground: colour('--ink'), cursor: colour('--ink'), selectionBackground: colour('--select') }
}

/** Bytes of keys, sent in order, one request at a time. */
function sender(path, onProblem) {
  let waiting = ''
  let busy = false
  return async (text) => {
    waiting += text
    if (busy) return
    busy = true
    while (waiting) {
      const body = new TextEncoder().encode(waiting)
      waiting = ''
      try {
        await request(`${path}/stdin`, { body })
      } catch (error) {
        onProblem(error)
      }
    }
    busy = false
  }
}

const bytesOf = (data) => (data.base64 ? Uint8Array.from(atob(data.base64), (c) => c.charCodeAt(0)) : data.text)

export function TerminalView({ sandbox }) {
  const place = useRef()
  const state = useSignal({ text: 'opening' })
  useEffect(() => {
    const abort = new AbortController()
    const ends = [() => abort.abort()]
    let path = null            // of the shell, while it runs
    const open = async () => {
      const { Terminal, FitAddon } = await import('./xterm.js')
      if (abort.signal.aborted) return
      const terminal = new Terminal({ fontFamily: 'ui-monospace, "DejaVu Sans Mono", monospace', fontSize: 13,
        scrollback: SCROLLBACK, minimumContrastRatio: 4.5, theme: colours(), screenReaderMode: true, cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
        linkHandler: { activate: () => {} }, windowOptions: {} })
      const fit = new FitAddon()
      terminal.loadAddon(fit)
      ends.push(allowStyles(), effect(() => {
        isDark.value          // again when it changes
        terminal.options.theme = colours()
      }), () => terminal.dispose())
      terminal.open(place.current)
      fit.fit()
      terminal.focus()
      const processes = `/v1/sandboxes/${sandbox}/processes`
      const body = { args: ['/bin/bash', '-l'], terminal: true, rows: terminal.rows, columns: terminal.cols }
      for await (const { data } of events(processes, { body, abort: abort.signal })) {
        if (data.type === 'start') {
          path = `${processes}/${data.id}`
          terminal.onData(sender(path, (problem) => { state.value = { problem } }))
          terminal.onResize(({ rows, cols }) => path && request(`${path}/size`, { body: { rows, columns: cols } }).catch(() => {}))
          const watcher = new ResizeObserver(() => fit.fit())
          watcher.observe(place.current)
          ends.push(() => watcher.disconnect())
          state.value = { text: 'open' }
        } else if (data.type === 'stdout') {
          terminal.write(bytesOf(data))
        } else if (data.type === 'end') {
          path = null
          terminal.options.disableStdin = true
          state.value = { text: `ended with exit status ${data.record?.exit_code ?? 'unknown'}` }
        }
      }
    }
    open().catch((problem) => { if (problem.name !== 'AbortError') state.value = { problem } })
    return () => {
      if (path) request(`${path}/signal`, { body: { signal: 'HUP' } }).catch(() => {})
      for (const end of ends) end()
    }
  }, [sandbox])
  return html`<div><div class="tty"><div ref=${place}></div></div><p class="note" role="status">Terminal: ${state.value.text ?? ''}. A shell ends with its view; programs started in the background stay.</p>
    <${ProblemView} problem=${state.value.problem} /></div>`
}
