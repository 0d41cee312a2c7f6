// The present request as a command or a program: curl, Python, TypeScript and the command line.

const indent = (text, by) => text.split('\n').join(`\n${' '.repeat(by)}`)

/** A word for a POSIX shell. */
export const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** A value as a Python literal. */
export function python(value) {
  if (value === null) return 'None'
  if (value === true) return 'True'
  if (value === false) return 'False'
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
  if (typeof value === 'object') return `{${Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one)}`).join(', ')}}`
  return JSON.stringify(value)
}

/** Source text with real lines, where the language's long string can hold it as it is. */
const pythonText = (text) => (/\\|'''|\r/.test(text) || text.endsWith("'") || !text.includes('\n') ? JSON.stringify(text) : `'''\\\n${text}'''`)
const scriptText = (text) => (text.includes('\n') && !/[`\\]|\$\{|\r/.test(text) ? `\`${text}\`` : JSON.stringify(text))

const CLI_LIMITS = { wall_ms: ['timeout', (n) => `${n}ms`], memory_bytes: ['memory', (n) => `${n}`] }

/** `names` are the files of the request, which the texts read from the caller's folder. */
export function snippets(body, names, origin, hasKey) {
  const { code, language, limits, stdin, packages, ...others } = body
  delete others.exports
  const auth = hasKey ? ' \\\n  -H "Authorization: Bearer $CAISSON_KEY"' : ''
  const fields = { ...body }
  delete fields.files

  const curlFiles = names.length
    ? `\nfiles=$(for f in ${names.map(quote).join(' ')}; do jq -n --arg name "$f" --arg content "$(base64 -w0 "$f")" '{name: $name, content_base64: $content}'; done | jq -s .)` : ''
  const data = quote(JSON.stringify(fields, null, 2))
  const curl = names.length
    ? `request=${data}${curlFiles}\njq -n --argjson request "$request" --argjson files "$files" '$request + {files: $files}' |\n  curl -s ${origin}/v1/runs${auth} \\\n  -H 'Content-Type: application/json' --data-binary @-`
    : `curl -s ${origin}/v1/runs${auth} \\\n  -H 'Content-Type: application/json' \\\n  --data-binary ${data}`

  const rest = Object.entries({ ...others, ...(limits && { limits }), ...(packages && { packages }) })
  const pythonFiles = names.length
    ? [`files=[{"name": name, "content_base64": base64.b64encode(open(name, "rb").read()).decode()} for name in ${python(names)}]`] : []
  const py = `${names.length ? 'import base64\n' : ''}${hasKey ? 'import os\n' : ''}import caisson

client = caisson.Client(${JSON.stringify(origin)}${hasKey ? ', os.environ["CAISSON_KEY"]' : ''})
code = ${pythonText(code)}
run = client.run(${['code', JSON.stringify(language), ...(stdin ? [`stdin=${python(stdin)}`] : []), ...rest.map(([name, value]) => `${name}=${python(value)}`),
    ...pythonFiles].join(', ')})
print(run.status, run.stdout)
`

  const options = { ...(stdin && { stdin }), ...Object.fromEntries(rest) }
  const tsFiles = names.length
    ? `\nconst files = await Promise.all(${JSON.stringify(names)}.map(async (name) => (\n  { name, content_base64: (await readFile(name)).toString('base64') })))` : ''
  const typescript = `${names.length ? "import { readFile } from 'node:fs/promises'\n" : ''}import { Caisson } from 'caisson'

const client = new Caisson({ baseUrl: ${JSON.stringify(origin)}${hasKey ? ', key: process.env.CAISSON_KEY' : ''} })
const code = ${scriptText(code)}${tsFiles}
const run = await client.run(code, ${indent(JSON.stringify({ language, ...options }, null, 2), 0).replace(/\n?\}$/, names.length ? ',\n  files\n}' : '\n}')})
console.log(run.status, run.stdout)
`

  const flags = ['-l', language]
  if (body.profile) flags.push('--profile', body.profile)
  if (body.network) flags.push('--network', body.network)
  if (body.policy) flags.push('--policy', body.policy)
  for (const [name, value] of Object.entries(limits ?? {})) if (CLI_LIMITS[name]) flags.push(`--${CLI_LIMITS[name][0]}`, CLI_LIMITS[name][1](value))
  for (const one of packages ?? []) flags.push('--packages', one)
  for (const name of names) flags.push('--file', name)
  const cli = `${stdin ? `printf %s ${quote(stdin)} | ` : ''}caisson run ${flags.map(quote).join(' ')}${stdin ? ' --stdin -' : ''}${
    body.exports ? " --export '*:.'" : ''} -c ${quote(code)}`

  return { curl, Python: py, TypeScript: typescript, 'Command line': cli }
}
