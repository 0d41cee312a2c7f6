// Builds the page: `node build.mjs [FOLDER]` writes index.html, hashed assets and manifest.json (default: dist).
//
// The output depends on the sources and on package-lock.json alone, so two machines write the same bytes.  HASHES has
// the SHA-256 of each file; `node build.mjs --hashes` writes HASHES again, and --check compares.

import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const HERE = path.dirname(fileURLToPath(import.meta.url))
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html; charset=utf-8' }

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** All bundles of esbuild, with the imports of each. */
async function bundle() {
  const done = await build({
    absWorkingDir: HERE,
    entryPoints: { page: 'main.js', style: 'style.css', icon: 'icon.svg' },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    outdir: 'out',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['es2022', 'chrome109', 'firefox115', 'safari16'],
    minify: true,
    legalComments: 'none',
    charset: 'utf8',
    loader: { '.svg': 'copy' },
    metafile: true,
    write: false,
    logLevel: 'error',
  })
  return { files: done.outputFiles, outputs: done.metafile.outputs }
}

/** Names of the assets that a browser loads before anything is clicked: the entries and their static imports. */
function firstLoad(outputs, entries) {
  const found = new Set()
  const waiting = [...entries]
  for (let name = waiting.pop(); name; name = waiting.pop()) {
    if (found.has(name)) continue
    found.add(name)
    waiting.push(...outputs[name].imports.filter((one) => one.kind === 'import-statement').map((one) => one.path))
  }
  return found
}

export async function buildPage() {
  const { files, outputs } = await bundle()
  const entry = (source) => Object.keys(outputs).find((name) => outputs[name].entryPoint === source)
  const entries = { page: entry('main.js'), style: entry('style.css'), icon: entry('icon.svg') }
  const first = firstLoad(outputs, Object.values(entries))
  const url = (name) => `/ui/${path.basename(name)}`
  const made = files.map(({ path: full, contents }) => {
    const name = path.relative(HERE, full)
    return { path: url(name), file: path.basename(name), immutable: true, first: first.has(name), bytes: Buffer.from(contents) }
  })
  const preloads = [...first].filter((name) => name.endsWith('.js') && name !== entries.page).sort()
    .map((name) => `<link rel="modulepreload" href="${url(name)}">`).join('\n')
  const index = readFileSync(path.join(HERE, 'index.html'), 'utf8')
    .replace('PAGE_JS', url(entries.page)).replace('STYLE_CSS', url(entries.style)).replace('ICON_SVG', url(entries.icon))
    .replace('<!-- preloads -->', preloads)
  made.push({ path: '/ui/', file: 'index.html', immutable: false, first: true, bytes: Buffer.from(index) })
  return made.sort((a, b) => (a.file < b.file ? -1 : 1))
    .map((one) => ({ ...one, type: TYPES[path.extname(one.file)], sha256: sha256(one.bytes) }))
}

/** Bytes on the wire, as the daemon sends them: gzip, level 9. */
export function sizes(made) {
  const packed = (list) => list.reduce((sum, one) => sum + gzipSync(one.bytes, { level: 9 }).length, 0)
  return { first: packed(made.filter((one) => one.first)), all: packed(made) }
}

export const hashes = (made) => made.map((one) => `${one.sha256}  ${one.file}\n`).join('')

function write(made, folder) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const one of made) writeFileSync(path.join(folder, one.file), one.bytes)
  const list = made.map(({ path, file, type, immutable, first, sha256 }) => ({ path, file, type, immutable, first, sha256 }))
  writeFileSync(path.join(folder, 'manifest.json'), `${JSON.stringify(list, null, 2)}\n`)
}

async function main([argument]) {
  const made = await buildPage()
  const file = path.join(HERE, 'HASHES')
  if (argument === '--hashes') {
    writeFileSync(file, hashes(made))
  } else if (argument === '--check') {
    if (readFileSync(file, 'utf8') !== hashes(made)) {
      console.error('web/HASHES differs from the page that these sources give; run: node web/build.mjs --hashes')
      process.exitCode = 1
    }
  } else {
    write(made, path.resolve(argument ?? path.join(HERE, 'dist')))
    const { first, all } = sizes(made)
    console.log(`${made.length} files; gzip: first load ${(first / 1024).toFixed(1)} KiB, all ${(all / 1024).toFixed(1)} KiB`)
  }
}

if (process.argv[1] && path.resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
