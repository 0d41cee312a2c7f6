// Programs to begin with, and the program that is offered for a file of data.

import { parseCsv } from './results.js'

export const EXAMPLES = [
  { title: 'Hello', language: 'python', code: `print("Hello from a sandbox.")\nprint(sum(range(10)))\n` },
  {
    title: 'Figure', language: 'python', profile: 'data', code: `import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 400)
plt.plot(x, np.sin(x), label="sin")
plt.plot(x, np.cos(x), label="cos")
plt.legend()
plt.show()
` },
  {
    title: 'Table', language: 'python', profile: 'data', code: `import pandas as pd

data = pd.DataFrame({"city": ["Bergen", "Oslo", "Tromsø"], "rain_mm": [2250, 763, 1031]})
print(data.describe())
data.sort_values("rain_mm").to_csv("rain.csv", index=False)
data.to_dict("records")          # the last value is a part of the record
` },
  { title: 'Standard input', language: 'python', stdin: 'one two\nthree\n', code: `import sys

words = sys.stdin.read().split()
print(len(words), "words")
` },
  { title: 'What is refused', language: 'python', code: `import socket

try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except OSError as error:
    print("network:", error)

try:
    open("/etc/passwd", "a")
except OSError as error:
    print("host files:", error)

memory = bytearray(4 << 30)      # more than the limit
` },
  { title: 'JavaScript', language: 'javascript', code: `const squares = [1, 2, 3].map((n) => n * n)\nconsole.log(squares)\nsquares\n` },
  { title: 'TypeScript', language: 'typescript', code: `type Point = { x: number; y: number }\n\nconst p: Point = { x: 3, y: 4 }\nconsole.log(Math.hypot(p.x, p.y))\n` },
  { title: 'Bash', language: 'bash', code: `for i in 1 2 3; do\n  printf '\\e[3%dmline %d\\e[0m\\n' "$i" "$i"\n  sleep 0.3\ndone\nuname -sr\n` },
]

/** Whether the editor has nothing of the person's own. */
export const isUnchanged = (code) => !code.trim() || EXAMPLES.some((one) => one.code === code)

export const isTable = (name) => /\.(csv|tsv)$/i.test(name)

const HEAD_BYTES = 65536
const isNumber = (cell) => cell.trim() !== '' && Number.isFinite(Number(cell))
const isDate = (cell) => /^\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d|$)/.test(cell)

/** A program that draws a table, by the first lines of the file: a line for each column of numbers, or bars of counts. */
export async function plotProgram(file) {
  const name = JSON.stringify(file.name)
  const tabs = /\.tsv$/i.test(file.name)
  const { columns, rows } = parseCsv(await file.slice(0, HEAD_BYTES).text(), tabs ? '\t' : ',')
  const is = (test, n) => rows.length > 0 && rows.every((row) => row[n] === undefined || row[n] === '' || test(row[n]))
  const numbers = columns.filter((_, n) => n > 0 && is(isNumber, n)).length
  const options = [name]
  if (tabs) options.push('sep="\\t"')
  if (numbers) options.push('index_col=0')
  if (numbers && is(isDate, 0)) options.push('parse_dates=True')
  const draw = numbers || (columns.length === 1 && is(isNumber, 0)) ? 'data.plot(figsize=(8, 4.5))'
    : 'data[data.columns[0]].value_counts().head(20).plot.bar(figsize=(8, 4.5))'
  return `import matplotlib.pyplot as plt
import pandas as pd

data = pd.read_csv(${options.join(', ')})
print(data.describe(include="all"))

${draw}
plt.title(${name})
plt.tight_layout()
plt.savefig("figure.png")
`
}
