// The present request as a command or a program: curl, Python, TypeScript and the command line.
//
// Files of the request are read from the folder in which the command is given.  Files that the program makes are fetched.

const CLI_OPTIONS = {
  profile: (value) => ['--profile', value],
  network: (value) => ['--network', value],
  policy: (value) => ['--policy', value],
  packages: (value) => value.flatMap((one) => ['--packages', one]),
  limits: (value) => [...(value.wall_ms ? ['--timeout', `${value.wall_ms}ms`] : []), ...(value.memory_bytes ? ['--memory', String(value.memory_bytes)] : [])],
}

/** A word for a POSIX shell. */
const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** A value as a Python literal. */
function python(value) {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value === 'object') return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(', ')}}`
  return JSON.stringify(value)
}

/** Source text with its lines, where a long literal of the language can hold it as it is. */
const pythonText = (text) => (/\\|'''|\r/.test(text) || text.endsWith("'") || !text.includes('\n') ? JSON.stringify(text) : `'''\\\n${text}'''`)
const scriptText = (text) => (/[`\\\r]|\$\{/.test(text) || !text.includes('\n') ? JSON.stringify(text) : `\`\\\n${text}\``)

function curl(body, names, origin, hasKey) {
  const head = `curl -s ${origin}/v1/runs${hasKey ? ' -H "Authorization: Bearer $CAISSON_KEY"' : ''} -H 'Content-Type: application/json'`
  if (!names.length) return `${head} --data-binary ${quote(JSON.stringify(body, null, 2))}`
  // In a here-document the shell replaces $(...): JSON needs \ before \, $ and \`.
  const escaped = JSON.stringify(body, null, 2).replace(/[\\$`]/g, '\\$&').replace(/\n\}$/, '')
  const files = names.map((name) => `    {"name": ${JSON.stringify(name).replace(/[\\$`]/g, '\\$&')}, "content_base64": "$(base64 -w0 ${quote(name)})"}`)
  return `${head} --data-binary @- <<END\n${escaped},\n  "files": [\n${files.join(',\n')}\n  ]\n}\nEND`
}

function pythonProgram({ code, language, stdin, exports, ...rest }, names, origin, hasKey) {
  const words = ['code', JSON.stringify(language)]
  if (stdin) words.push(`stdin=${python(stdin)}`)
  if (names.length) words.push(`files={${names.map((name) => `${JSON.stringify(name)}: Path(${JSON.stringify(name)})`).join(', ')}}`)
  words.push(...Object.entries(rest).map(([name, value]) => `${name}=${python(value)}`))
  if (exports) words.push('download=["*"]')
  return `${hasKey ? 'import os\n' : ''}${exports || names.length ? 'from pathlib import Path\n' : ''}
import caisson

client = caisson.Client(${JSON.stringify(origin)}${hasKey ? ', os.environ["CAISSON_KEY"]' : ''})
code = ${pythonText(code)}
run = client.run(${words.join(', ')})
print(run.status, run.stdout)
${exports ? 'for file in run.files:\n    if file.content is not None:\n        Path(Path(file.name).name).write_bytes(file.content)\n' : ''}`.trimStart()
}

function typescriptProgram({ code, language, stdin, exports, ...rest }, names, origin, hasKey) {
  const members = Object.entries({ language, ...(stdin && { stdin }), ...rest }).map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`)
  if (names.length) members.push(`  files: { ${names.map((name) => `${JSON.stringify(name)}: await readFile(${JSON.stringify(name)})`).join(', ')} }`)
  if (exports) members.push("  download: ['*']")
  const functions = [...(names.length ? ['readFile'] : []), ...(exports ? ['writeFile'] : [])]
  return `${functions.length ? `import { ${functions.join(', ')} } from 'node:fs/promises'\n` : ''}${exports ? "import { basename } from 'node:path'\n" : ''}import { Caisson } from 'caisson-sandbox'

const client = new Caisson({ baseUrl: ${JSON.stringify(origin)}${hasKey ? ', key: process.env.CAISSON_KEY' : ''} })
const code = ${scriptText(code)}
const run = await client.run(code, {
${members.join(',\n')}
})
console.log(run.status, run.stdout)
${exports ? 'for (const file of run.files) if (file.content) await writeFile(basename(file.name), file.content)\n' : ''}`
}

function commandLine({ code, language, stdin, exports, ...rest }, names) {
  const words = ['-l', language, ...Object.entries(rest).flatMap(([name, value]) => CLI_OPTIONS[name]?.(value) ?? [])]
  for (const name of names) words.push('--file', name)
  if (exports) words.push('--export', '*:.')
  if (stdin) words.push('--stdin', '-')
  return `${stdin ? `printf %s ${quote(stdin)} | ` : ''}caisson run ${words.map(quote).join(' ')} -c ${quote(code)}`
}

/** By title: `body` is a request without its files, `names` are the names of these. */
export function snippets(body, names, origin, hasKey) {
  return {
    curl: curl(body, names, origin, hasKey),
    Python: pythonProgram(body, names, origin, hasKey),
    TypeScript: typescriptProgram(body, names, origin, hasKey),
    'Command line': commandLine(body, names),
  }
}
