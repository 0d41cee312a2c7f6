// Pools, and the last hour of the daemon in charts.

import { useEffect } from 'preact/hooks'
import { html } from '../parts/view.js'
import { json, optional, request } from '../parts/api.js'
import { Chart } from '../parts/chart.js'
import { bytes, milliseconds, time } from '../parts/format.js'
import { Empty, ProblemView, Table, useLoad } from '../parts/ui.js'

const STEP_MS = 10000

const number = (n) => (Number.isInteger(n) ? String(n) : n >= 100 ? n.toFixed(0) : n.toPrecision(2))
const rate = (n) => `${number(n)}/s`

const CHARTS = [
  { title: 'Runs', names: { runs_per_s: 'runs' }, text: rate },
  { title: 'Latency', names: { latency_p50_ms: 'p50', latency_p99_ms: 'p99' }, text: milliseconds },
  { title: 'Queue', names: { queue_depth: 'queued', running: 'running' }, text: number },
  { title: 'Pooled instances', names: { pool_ready: 'ready' }, text: number },
  { title: 'Memory', names: { memory_bytes: 'memory' }, text: bytes, steps: Array.from({ length: 50 }, (_, n) => 2 ** n) },
  { title: 'Denials and errors', names: { denials_per_s: 'denials', errors_per_s: 'errors' }, text: rate },
]

/** Samples of the text format of Prometheus: {name, labels, value}. */
export function* samples(text) {
  for (const line of text.split('\n')) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!found) continue
    const labels = Object.fromEntries([...(found[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((one) => [one[1], one[2]]))
    yield { name: found[1], labels, value: Number(found[3]) }
  }
}

/** One row for each pool: gauges and counters whose name begins with caisson_pool_, by their labels. */
function poolsOf(text) {
  const pools = new Map()
  const columns = new Set()
  for (const { name, labels, value } of samples(text)) {
    const kind = /^caisson_pool_(\w+)$/.exec(name)?.[1]
    if (!kind || /_(bucket|sum|count)$/.test(kind)) continue
    const { le: _le, ...own } = labels
    const pool = Object.values(own).join(' ') || 'all'
    columns.add(kind)
    pools.set(pool, { ...pools.get(pool), [kind]: value })
  }
  return { columns: [...columns], rows: [...pools] }
}

function Pools() {
  const { value, problem, again } = useLoad(async () => poolsOf(await (await request('/metrics')).text()))
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) again() }, STEP_MS)
    return () => clearInterval(timer)
  }, [])
  if (problem?.status === 403) return html`<p class="note">This key does not have the scope "metrics".</p>`
  if (problem) return html`<${ProblemView} problem=${problem} />`
  if (!value) return null
  if (!value.rows.length) return html`<${Empty} command="caisson run -l python -c 'print(1)'">No pool yet: the first run of a kind makes one.<//>`
  return html`<${Table} label="Pools" head=${['Pool', ...value.columns.map((one) => one.replace(/_(total|bytes)$/, '').replaceAll('_', ' '))]} numbers=${value.columns.map((_, n) => n + 1)}
    rows=${value.rows.map(([name, counts]) => ({ key: name, cells: [name, ...value.columns.map((one) => (counts[one] === undefined ? '' : /_bytes$/.test(one) ? bytes(counts[one]) : number(counts[one])))] }))} />`
}

export function Metrics() {
  const { value, problem, again } = useLoad(() => optional(`/v1/metrics/series?since=${encodeURIComponent(new Date(Date.now() - 3600000).toISOString())}`))
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) again() }, STEP_MS)
    return () => clearInterval(timer)
  }, [])
  const { value: ready } = useLoad(() => json('/readyz'))
  const series = value?.series ?? {}
  return html`<div class="toolbar"><h1>Metrics</h1><span class="note">the last hour, a point each ${value?.step_s ?? 10} s${ready?.tier ? `; tier ${ready.tier}` : ''}</span></div>
    <${ProblemView} problem=${problem} />
    ${value === null && html`<${Empty} command="curl -s ${location.origin}/metrics">This daemon or this key has no series. Counters are at:<//>`}
    ${value && html`<div class="charts">${CHARTS.filter((one) => Object.keys(one.names).some((name) => series[name])).map((one) => html`<${Chart} key=${one.title}
      title=${one.title} text=${one.text} steps=${one.steps} lines=${Object.entries(one.names).filter(([name]) => series[name]).map(([name, label]) => ({ label, points: series[name] }))} />`)}</div>
      ${value.from && html`<p class="note">From ${time(value.from)} on.</p>`}`}
    <h2>Pools</h2><${Pools} />`
}
