// Colours of terminals in the output of programs.  The result is a list of {text, style}; nothing here makes HTML.
//
// Only SGR (ESC [ ... m) has an effect.  Other sequences are dropped: cursor, titles, links, clipboard.  A carriage return
// begins the line again, as progress bars need it; other control characters are shown as their pictures (U+2400).

// CSI, OSC and other strings, two-character sequences.  A sequence without its end does not match, and its ESC is shown.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/y
const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false })
const SPANS_MAX = 4000

const CUBE = [0, 95, 135, 175, 215, 255]

function palette(n) {
  if (n < 16) return n
  if (n >= 232) return `rgb(${Array(3).fill(8 + (n - 232) * 10).join(',')})`
  const at = n - 16
  return `rgb(${CUBE[Math.floor(at / 36)]},${CUBE[Math.floor(at / 6) % 6]},${CUBE[at % 6]})`
}

/** The colour after 38 or 48: a palette's number or "rgb(...)"; the parameters that it used are shifted out. */
function extended(codes) {
  const kind = codes.shift()
  if (kind === 5) {
    const n = codes.shift()
    return n >= 0 && n < 256 ? palette(n) : null
  }
  if (kind !== 2) return null
  const rgb = [codes.shift(), codes.shift(), codes.shift()]
  return rgb.every((one) => one >= 0 && one < 256) ? `rgb(${rgb.join(',')})` : null
}

function changed(style, parameters) {
  const codes = parameters.split(/[;:]/).map(Number)
  let next = { ...style }
  while (codes.length) {
    const code = codes.shift()
    if (code === 0) next = { ...PLAIN }
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underline = true
    else if (code === 7) next.inverse = true
    else if (code === 22) next.bold = next.dim = false
    else if (code === 23) next.italic = false
    else if (code === 24) next.underline = false
    else if (code === 27) next.inverse = false
    else if (code >= 30 && code <= 37) next.fg = code - 30
    else if (code === 38) next.fg = extended(codes)
    else if (code === 39) next.fg = null
    else if (code >= 40 && code <= 47) next.bg = code - 40
    else if (code === 48) next.bg = extended(codes)
    else if (code === 49) next.bg = null
    else if (code >= 90 && code <= 97) next.fg = code - 82
    else if (code >= 100 && code <= 107) next.bg = code - 92
  }
  return next
}

/** Everything of the present line is taken back: a carriage return without a line feed. */
function restartLine(spans) {
  while (spans.length) {
    const last = spans[spans.length - 1]
    const cut = last.text.lastIndexOf('\n')
    if (cut >= 0) {
      last.text = last.text.slice(0, cut + 1)
      return
    }
    spans.pop()
  }
}

/** Text with escapes as spans.  Above SPANS_MAX changes of style the rest is plain. */
export function ansiSpans(text) {
  const spans = []
  let style = PLAIN
  const add = (piece) => {
    const last = spans[spans.length - 1]
    if (last && (last.style === style || spans.length >= SPANS_MAX)) last.text += piece
    else spans.push({ text: piece, style })
  }
  // eslint-disable-next-line no-control-regex
  const special = /[\x00-\x08\x0b-\x1f\x7f]/g
  let from = 0
  for (let hit = special.exec(text); hit; hit = special.exec(text)) {
    if (hit.index > from) add(text.slice(from, hit.index))
    from = hit.index + 1
    if (hit[0] === '\r') {
      if (text[from] !== '\n' && from < text.length) restartLine(spans)
    } else if (hit[0] === '\x1b') {
      SEQUENCE.lastIndex = hit.index
      const found = SEQUENCE.exec(text)
      if (found) {
        from = SEQUENCE.lastIndex
        if (found[2] === 'm') style = changed(style, found[1])
      } else {
        add('\u241b')
      }
    } else if (hit[0] !== '\x07') {
      add(String.fromCharCode(hit[0] === '\x7f' ? 0x2421 : 0x2400 + hit[0].charCodeAt(0)))
    }
    special.lastIndex = from
  }
  if (from < text.length) add(text.slice(from))
  return spans
}

/** Class names and inline colours of a style: colours of the palette follow the theme, others are as the program says. */
export function ansiLook(style) {
  let { fg, bg } = style
  if (style.inverse) [fg, bg] = [bg ?? 'ground', fg ?? 'ink']
  const names = []
  const look = {}
  for (const [kind, colour] of [['fg', fg], ['bg', bg]]) {
    if (colour === null) continue
    if (typeof colour === 'string' && colour.startsWith('rgb')) look[kind === 'fg' ? 'color' : 'backgroundColor'] = colour
    else names.push(`ansi-${kind}-${colour}`)
  }
  for (const name of ['bold', 'dim', 'italic', 'underline']) if (style[name]) names.push(`ansi-${name}`)
  return { class: names.join(' ') || undefined, style: look }
}
