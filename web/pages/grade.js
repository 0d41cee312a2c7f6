// Grading: a problem, submissions, and what came of each case.

import { signal } from '@preact/signals'
import { html } from '../parts/view.js'
import { Problem, json } from '../parts/api.js'
import { Editor } from '../parts/editor.js'
import { bytes, milliseconds } from '../parts/format.js'
import { BoundaryTab } from '../parts/record.js'
import { Command, ProblemView, Status, Table, Tabs } from '../parts/ui.js'

const SUBMISSIONS_MAX = 20

const PROBLEMS = [
  {
    title: 'Values of a function',
    problem: { language: 'python', function: 'add', cases: [{ args: [1, 2], expected: 3 }, { args: [-1, 1], expected: 0 }, { args: ['a', 'b'], expected: 'ab' }] },
    code: 'def add(a, b):\n    return a + b\n',
  },
  {
    title: 'Standard input and output',
    problem: { language: 'python', compare: 'trimmed', cases: [{ stdin: '1 2\n', expected_stdout: '3\n' }, { stdin: '10 -4\n', expected_stdout: '6\n' }] },
    code: 'a, b = map(int, input().split())\nprint(a + b)\n',
  },
  {
    title: 'Test code',
    problem: { language: 'python', entry_point: 'is_even', tests: 'def check(candidate):\n    assert candidate(2)\n    assert not candidate(3), "3 is odd"\n' },
    code: 'def is_even(n):\n    return n % 2 == 0\n',
  },
]

/** JSON with a line for each member, and for each case. */
function text(problem) {
  const member = ([name, value]) => `  ${JSON.stringify(name)}: ${Array.isArray(value)
    ? `[\n${value.map((one) => `    ${JSON.stringify(one)}`).join(',\n')}\n  ]` : JSON.stringify(value)}`
  return `{\n${Object.entries(problem).map(member).join(',\n')}\n}\n`
}

const problemText = signal(text(PROBLEMS[0].problem))
const submissions = signal([PROBLEMS[0].code])
const at = signal('0')
const results = signal([])
const refused = signal(null)
const busy = signal(false)

function load(example) {
  problemText.value = text(example.problem)
  submissions.value = [example.code]
  at.value = '0'
  results.value = []
  refused.value = null
}

function languageOf() {
  try {
    return JSON.parse(problemText.value).language ?? 'python'
  } catch {
    return 'python'
  }
}

async function grade() {
  if (busy.value) return
  busy.value = true
  refused.value = null
  results.value = []
  try {
    let problem
    try {
      problem = JSON.parse(problemText.value)
    } catch (error) {
      throw new Problem(0, { detail: `The problem is no JSON: ${error.message}` })
    }
    const answers = await Promise.allSettled(submissions.value.map((code) => json('/v1/grade', { body: { ...problem, code } })))
    results.value = answers.map((one) => one.value ?? { refused: one.reason })
    if (answers.every((one) => one.status === 'rejected')) refused.value = answers[0].reason
  } catch (error) {
    refused.value = error
  }
  busy.value = false
}

const verdict = (result) => (result.refused ? 'refused' : result.all_passed ? 'passed' : result.status === 'completed' ? 'failed' : result.status)

function Cases({ result }) {
  if (!result.cases.length) return html`<p class="note">No case was run.</p>`
  return html`<${Table} label="Cases" head=${['Case', 'Verdict', 'Reason', 'Expected', 'Got', 'CPU', 'Memory']} numbers=${[5, 6]}
    rows=${result.cases.map((one, n) => ({ key: n, cells: [one.name, html`<${Status} status=${one.status} />`, one.detail, html`<code>${one.expected ?? ''}</code>`,
      html`<code>${one.output ?? one.stdout ?? ''}</code>`, milliseconds(one.cpu_ms), bytes(one.memory_peak_bytes)] }))} />`
}

function Detail({ result }) {
  if (result.refused) return html`<${ProblemView} problem=${result.refused} />`
  const { reward, error } = result
  return html`<p class="summary"><${Status} status=${verdict(result)} /> <span>${result.passed} of ${result.total} passed · score ${
    result.score ?? 'none'} · reward ${reward ? `${reward.binary} / ${reward.partial.toFixed(2)}` : 'masked'} · CPU ${milliseconds(result.cpu_ms)}</span></p>
    ${result.mask && html`<p class="note">The engine or the checker is at fault: this result says nothing about the submission.</p>`}
    ${error && html`<div class="problem"><p><strong>${error.summary ?? error.message}</strong></p>${error.hint && html`<p>${error.hint}</p>`}</div>`}
    <${Tabs} label="Result of grading" tabs=${[
      { id: 'cases', title: 'Cases', note: result.cases.length || '', body: () => html`<${Cases} result=${result} />` },
      { id: 'feedback', title: 'Feedback', body: () => (result.feedback.length ? html`<ul>${result.feedback.map((one) => html`<li>${one}</li>`)}</ul>` : html`<p class="note">Nothing to say.</p>`) },
      { id: 'signs', title: 'Signs', note: result.signs.length || '', body: () => (result.signs.length ? html`<ul>${result.signs.map((one) => html`<li><code>${one.sign}</code> ${one.detail ?? ''} ${one.case_name ?? ''}</li>`)}</ul>`
        : html`<p class="note">No sign of cheating.</p>`) },
      { id: 'boundary', title: 'Boundary', body: () => html`<${BoundaryTab} boundary=${result.boundary} />` },
      { id: 'record', title: 'Record', body: () => html`<${Command} label="The result" text=${JSON.stringify(result, null, 2).slice(0, 400000)} />` },
    ]} />`
}

function Submission({ n }) {
  const change = (code) => { submissions.value = submissions.value.map((one, at) => (at === n ? code : one)) }
  const remove = () => {
    submissions.value = submissions.value.filter((_, one) => one !== n)
    results.value = results.value.filter((_, one) => one !== n)
    at.value = '0'
  }
  return html`<div key=${n}><${Editor} value=${submissions.value[n]} language=${languageOf()} label="Submission ${n + 1}" onChange=${change} onRun=${grade} />
    ${submissions.value.length > 1 && html`<p><button type="button" class="small" onClick=${remove}>Remove submission ${n + 1}</button></p>`}</div>`
}

export function Grade() {
  const add = () => {
    submissions.value = [...submissions.value, submissions.value[Number(at.value)] ?? '']
    at.value = String(submissions.value.length - 1)
  }
  return html`<div class="toolbar">
      <h1>Grade</h1>
      <label class="field"><span>Example</span><select value="" onChange=${(event) => { load(PROBLEMS[event.currentTarget.value]); event.currentTarget.value = '' }}>
        <option value="">choose</option>${PROBLEMS.map((one, n) => html`<option value=${n}>${one.title}</option>`)}</select></label>
      <span class="spacer"></span>
      <button type="button" onClick=${add} disabled=${submissions.value.length >= SUBMISSIONS_MAX}>Add submission</button>
      <button type="button" class="primary" onClick=${grade} disabled=${busy.value}>${busy.value ? 'Grading' : 'Grade'}</button>
    </div>
    <div class="halves">
      <section class="half" aria-label="Problem and submissions">
        <h2>Problem <span class="note">the members of <code>POST /v1/grade</code></span></h2>
        <${Editor} value=${problemText.value} language="json" label="Problem, as JSON" onChange=${(value) => { problemText.value = value }} onRun=${grade} />
        <h2>${submissions.value.length > 1 ? 'Submissions' : 'Submission'}</h2>
        <${Tabs} label="Submissions" current=${at} tabs=${submissions.value.map((_, n) => ({ id: String(n), title: `Submission ${n + 1}`,
          note: results.value[n] ? verdict(results.value[n]) : '', body: () => html`<${Submission} key=${n} n=${n} />` }))} />
      </section>
      <section class="half result" aria-label="Result">
        ${refused.value && html`<${ProblemView} problem=${refused.value} />`}
        ${!results.value.length && !refused.value && html`<div class="empty"><p>${busy.value ? 'The cases are being run.'
          : 'The verdict of each case appears here.'}</p>${!busy.value && html`<${Command} text="caisson grade request.json" />`}</div>`}
        ${results.value[Number(at.value)] && !refused.value && html`<h2>Submission ${Number(at.value) + 1}</h2><${Detail} key=${at.value} result=${results.value[Number(at.value)]} />`}
      </section>
    </div>`
}
