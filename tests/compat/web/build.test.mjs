// The built page: the same bytes everywhere, within its budget, with nothing from outside.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { buildPage, hashes, sizes } from '../../../web/build.mjs'

const WEB = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../../web')
const KIB = 1024
const folder = mkdtempSync(path.join(tmpdir(), 'caisson-page-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const made = await buildPage()
const named = (pattern) => made.find((one) => pattern.test(one.file))

test('the page has the hashes of web/HASHES', () => {
  assert.equal(hashes(made), readFileSync(path.join(WEB, 'HASHES'), 'utf8'), 'run: node web/build.mjs --hashes')
})

test('another folder gives the same bytes, and the manifest describes them', () => {
  const copy = path.join(folder, 'other', 'place')
  cpSync(WEB, copy, { recursive: true, filter: (source) => !/\/(node_modules|dist)(\/|$)/.test(source) })
  cpSync(path.join(WEB, 'node_modules'), path.join(copy, 'node_modules'), { recursive: true })
  execFileSync('node', ['build.mjs', path.join(folder, 'dist')], { cwd: copy })
  const manifest = JSON.parse(readFileSync(path.join(folder, 'dist/manifest.json'), 'utf8'))
  assert.deepEqual(manifest.map((one) => `${one.sha256}  ${one.file}\n`).join(''), hashes(made))
  assert.deepEqual(readdirSync(path.join(folder, 'dist')).sort(), [...manifest.map((one) => one.file), 'manifest.json'].sort())
  for (const one of manifest) {
    assert.match(one.path, /^\/ui\/[\w.-]*$/)
    assert.match(one.type, /^(text|image)\//)
    assert.equal(one.immutable, one.file !== 'index.html')
    assert.ok(one.file === 'index.html' || /^[a-z]+-[A-Z0-9]{8}\.(js|css|svg)$/.test(one.file), one.file)
  }
})

test('the first load has at most 200 KB and all assets at most 400 KB, compressed', () => {
  const { first, all } = sizes(made)
  assert.ok(first <= 200 * KIB, `the first load has ${first} bytes`)
  assert.ok(all <= 400 * KIB, `all assets have ${all} bytes`)
})

test('terminal, chart and other languages are no part of the first load', () => {
  for (const name of [/^xterm-/, /^plot-/, /^javascript-/, /^bash-/]) assert.equal(named(name)?.first, false, String(name))
  assert.equal(named(/^page-/).first, true)
})

test('index.html has a place for the nonce, and nothing inline or from outside', () => {
  const text = named(/^index\.html$/).bytes.toString()
  assert.match(text, /<meta name="csp-nonce" content="__CSP_NONCE__">/)
  assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/)
  for (const [, url] of text.matchAll(/\b(?:src|href)="([^"]*)"/g)) assert.match(url, /^\/(ui\/[\w.-]+|docs)$/)
})

test('no source writes HTML, evaluates text or names another host', () => {
  const own = readdirSync(WEB, { recursive: true }).filter((name) => /\.js$/.test(name) && !/node_modules|dist\//.test(name))
  assert.ok(own.length > 20, 'the sources are found')
  for (const name of own) {
    const text = readFileSync(path.join(WEB, name), 'utf8')
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|srcdoc|document\.cookie/, name)
    assert.doesNotMatch(text, /fetch\(['"`]https?:/, name)
  }
})
