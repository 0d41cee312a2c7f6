// A chart of numbers by time.

import { useEffect, useRef } from 'preact/hooks'
import { html } from './view.js'
import { colour, isDark } from './theme.js'

const HEIGHT = 150
const SHORTEST_S = 600          // time that a chart shows at least
const FEW = 30                  // points that are drawn as dots, so that a single one is seen
const MINUTE_STEPS_S = [60, 120, 300, 600, 900]

const COLOURS = ['--accent', '--wait', '--good']

/** The times of the horizontal axis; without points: the time until now. */
function spread(first, last) {
  const end = last ?? Date.now() / 1000
  return [Math.min(first ?? end, end - SHORTEST_S), end]
}

/** `lines` is a list of {label, points: [[unix_s, value], ...]}; `text` writes a value; `steps` are the distances that lines of the grid may have. */
export function Chart({ title, lines, text, steps }) {
  const place = useRef()
  const plot = useRef()
  const times = [...new Set(lines.flatMap((one) => one.points.map(([at]) => at)))].sort((a, b) => a - b)
  const data = [times, ...lines.map((one) => {
    const values = new Map(one.points)
    return times.map((at) => values.get(at) ?? null)
  })]
  const last = (one) => one.points.at(-1)?.[1] ?? null
  const words = lines.map((one) => `${lines.length > 1 ? `${one.label} ` : ''}${last(one) === null ? 'none' : text(last(one))}`)

  useEffect(() => {
    const node = place.current
    let watcher
    let gone = false
    import('./plot.js').then(({ Plot }) => {
      if (gone) return
      const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 }, font: '11px system-ui' }
      const options = {
        width: node.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
        scales: { x: { range: (_, low, high) => spread(low, high) },
          y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
        axes: [{ ...axis, size: 28, incrs: MINUTE_STEPS_S, values: (_, ticks) => ticks.map((at) => new Date(at * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })) },
          { ...axis, size: 64, ...(steps && { incrs: steps }), values: (_, ticks) => ticks.map((one) => text(one)) }],
        series: [{}, ...lines.map((one, n) => ({ label: one.label, stroke: colour(COLOURS[n % COLOURS.length]), width: 1.5, points: { show: (one, at) => one.data[at].filter((value) => value !== null).length < FEW, size: 5 } }))],
      }
      plot.current = new Plot(options, data, node)
      watcher = new ResizeObserver(() => plot.current?.setSize({ width: node.clientWidth, height: HEIGHT }))
      watcher.observe(node)
    })
    return () => {
      gone = true
      watcher?.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [isDark.value])
  useEffect(() => { plot.current?.setData(data) }, [times.at(-1), times.length])

  return html`<figure class="chart"><figcaption><span>${title}</span> <strong>${words.map((one, n) => html`<span class=${lines.length > 1 ? `line-${n}` : undefined}>${one}</span>`)}</strong></figcaption>
    <div ref=${place} role="img" aria-label="${title}, the last hour; now ${words.join(', ')}"></div></figure>`
}
