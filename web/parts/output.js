// Output of programs: kept as text, shown with a ceiling, so that 10 MB of it do not stop the page.

import { signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { html } from './view.js'
import { ansiLook, ansiSpans } from './ansi.js'
import { saveAs } from './api.js'
import { bytes } from './format.js'

const HEAD = 64 * 1024        // characters that are shown at first
const TAIL = 16 * 1024        // and of the end, while more is hidden
const STEP = 256 * 1024       // characters that "Show more" adds
const SHOWN_MAX = 4 * 1024 * 1024
const KEPT_MAX = 64 * 1024 * 1024
const BLOCK = 16 * 1024       // characters of a block that the browser lays out by itself

/** The output of one program, in the order in which it came. */
export class Output {
  constructor() {
    this.pieces = []           // {stream, text}
    this.length = 0
    this.dropped = 0
    this.shown = signal(HEAD)
    this.version = signal(0)
    this.frame = 0
  }

  add(stream, text) {
    if (!text) return
    if (this.length >= KEPT_MAX) {
      this.dropped += text.length
    } else {
      const last = this.pieces[this.pieces.length - 1]
      if (last?.stream === stream && last.text.length < BLOCK) last.text += text
      else this.pieces.push({ stream, text })
      this.length += text.length
    }
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0
      this.version.value++
    })
  }

  /** Pieces of the characters from `from` to `to`. */
  part(from, to) {
    const found = []
    let at = 0
    for (const { stream, text } of this.pieces) {
      if (at >= to) break
      const piece = at + text.length > from && text.slice(Math.max(0, from - at), to - at)
      if (piece) found.push({ stream, text: piece })
      at += text.length
    }
    return found
  }

  blob() {
    return new Blob(this.pieces.map((one) => one.text), { type: 'text/plain' })
  }
}

/** Pieces cut after line feeds, about BLOCK characters each. */
function blocks(pieces) {
  const made = [[]]
  let size = 0
  for (const piece of pieces) {
    made[made.length - 1].push(piece)
    size += piece.text.length
    if (size >= BLOCK && piece.text.endsWith('\n')) {
      made.push([])
      size = 0
    }
  }
  return made.filter((one) => one.length)
}

export function Coloured({ text }) {
  const spans = useMemo(() => ansiSpans(text), [text])
  return spans.map(({ text: piece, style }) => {
    const look = ansiLook(style)
    return look.class || Object.keys(look.style).length ? html`<span ...${look}>${piece}</span>` : piece
  })
}

function Pieces({ pieces }) {
  return blocks(pieces).map((block, at) => html`<span class="block" key=${at}>${block.map(({ stream, text }, n) => html`<span
    key=${n} class=${stream === 'stderr' ? 'stderr' : undefined}><${Coloured} text=${text} /></span>`)}</span>`)
}

/** The output of a program; `name` is that of its download. */
export function OutputView({ output, name = 'output.txt', label = 'Output of the program' }) {
  output.version.value        // a new version renders again
  const shown = output.shown.value
  const whole = output.length <= shown + TAIL
  const hidden = output.length - shown - TAIL
  if (!output.length) return null
  return html`<div class="output">
    <pre class="text" tabindex="0" role="region" aria-label=${label}><${Pieces}
      pieces=${output.part(0, whole ? output.length : shown)} />${!whole && html`<span class="cut">
        <span>${bytes(hidden)} hidden</span>
        ${shown < SHOWN_MAX && html`<button type="button" onClick=${() => { output.shown.value += STEP }}>Show more</button>`}
        <button type="button" onClick=${() => saveAs(output.blob(), name)}>Download</button>
      </span>`}${!whole && html`<${Pieces} pieces=${output.part(output.length - TAIL, output.length)} />`}</pre>
    ${output.dropped > 0 && html`<p class="note">${bytes(output.dropped)} more are not kept by this page; the record has the counts.</p>`}
  </div>`
}
