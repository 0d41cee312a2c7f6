// Output of hostile programs cannot run script in the page or break it; other origins and host names get nothing.
//
// The canary is `window.canary`, a dialog, a new window, or a request whose address has "canary"; openPage() records these.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import { at, browse, openPage, serve, sleep, until, whyNot, write } from './server.mjs'

const server = await serve()
const reason = await whyNot(server.url)
const options = reason ? { skip: reason } : {}
const MIB = 1024 * 1024

let browser, page, seen

before(async () => {
  if (reason) return
  browser = await browse()
  ;({ page, seen } = await openPage(browser, server.url))
  await at(page, server.url, 'playground')
})

afterEach(() => { if (seen) seen.length = 0 })

/** Runs a program in the playground, until its record is there. */
async function run(code, { language, keep } = {}) {
  if (language) await page.getByRole('combobox', { name: 'Language', exact: true }).selectOption(language)
  await page.getByLabel('Keep variables').setChecked(Boolean(keep))
  await write(page, 'Program', code)
  const before = await page.locator('.result').getAttribute('data-run')
  await page.getByRole('button', { name: 'Run', exact: true }).click()
  await until(async () => {
    const now = await page.locator('.result').getAttribute('data-run')
    return now && now !== before
  })
}

/** Nothing happened that a program must not be able to do. */
async function unharmed() {
  assert.equal(await page.evaluate(() => window.canary), undefined)
  assert.match(page.url(), /\/ui\/#\/playground/)
  assert.equal(await page.evaluate(() => Object.keys(localStorage).concat(Object.keys(sessionStorage)).filter((name) => name.includes('canary')).length), 0)
  assert.deepEqual(seen, [])
}

const MARKUP = [
  '<script>window.canary = 1; fetch("/canary")</script>', '<img src=x onerror="window.canary = 1; new Image().src = \'/canary\'">',
  '<svg onload="window.canary = 1"><script>window.canary = 1</script></svg>', '<iframe srcdoc="<script>parent.canary = 1</script>"></iframe>',
  '"><body onload=alert(1)>', '<a href="javascript:alert(1)">link</a>', '<style>body { display: none }</style>', '${alert(1)} {{constructor}} <%= 1 %>',
]

test('markup in the output, in errors, in values and in names of files is text', options, async () => {
  await run(`import sys
markup = ${JSON.stringify(MARKUP)}
print("\\n".join(markup))
print("\\n".join(markup), file=sys.stderr)
for n, one in enumerate(markup[:3]):
    open(f"{n} {one.replace('/', '_')}"[:200] + ".txt", "w").write(one)
[{one: one} for one in markup]`, { language: 'python' })
  const text = await page.locator('.result pre').first().textContent()
  for (const one of MARKUP) assert.ok(text.includes(one), one)
  assert.equal(await page.locator('.result').locator('script, svg, iframe, style, [onerror], [onload], a').count(), 0)
  for (const tab of ['Files', 'Denials', 'Timing', 'Record', 'Output']) await page.getByRole('tab', { name: tab }).last().click()
  await run(`raise ValueError(${JSON.stringify(MARKUP.join(' '))})`)
  assert.match(await page.locator('.result .problem').textContent(), /<script>/)
  await unharmed()
})

test('escapes of terminals colour text and do nothing else', options, async () => {
  await run(String.raw`import sys
sys.stdout.write("\x1b[31mred\x1b[0m \x1b[1;4mbold\x1b[m \x1b[38;2;1;2;3mrgb\x1b[m \x1b[38;5;999mbad\x1b[m\n")
sys.stdout.write("\x1b]0;canary title\x07\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x1b]52;c;Y2FuYXJ5\x07\n")
sys.stdout.write("\x1b]8;;http://canary.invalid/\x1b\\other\x1b]8;;\x1b\\ \x1b[2J\x1b[H\x1b[?1049h\x1bP+q\x1b\\ \x1b[999999999999m after\n")
sys.stdout.write("10%\r50%\r100%\n\x1b]unterminated \x1b[31")`)
  const text = await page.locator('.result pre').first().textContent()
  assert.match(text, /red bold rgb bad\n/)
  assert.match(text, /link \nother .* after\n100%\n/)
  assert.ok(!text.includes('canary') && !text.includes('50%') && !text.includes('\x1b'), JSON.stringify(text))
  assert.equal(await page.locator('.result .ansi-fg-1').first().textContent(), 'red')
  assert.equal(await page.title(), 'Playground · Caisson')
  assert.notEqual(await page.evaluate(() => navigator.clipboard.readText()), 'canary')
  await unharmed()
})

test('10 MB of output leave the page quick, and a part of it is shown', options, async () => {
  await run(`import sys
line = "\\x1b[3%dm" + "x" * 90 + "\\n"
for n in range(110000):
    sys.stdout.write(line % (n % 8))
sys.stdout.write("the end")`)
  const begin = Date.now()
  await page.getByRole('tab', { name: 'Limits' }).last().click()
  await page.getByRole('tab', { name: 'Output' }).last().click()
  await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve, 0)) }))
  assert.ok(Date.now() - begin < 3000, `two clicks took ${Date.now() - begin} ms`)
  const output = page.locator('.result pre').first()
  const shown = await output.textContent()
  assert.ok(shown.length < 200000, `${shown.length} characters are shown`)
  assert.ok(shown.endsWith('the end'))
  assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 10000)
  await page.getByRole('button', { name: 'Show more' }).click()
  assert.ok((await output.textContent()).length > shown.length)
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).first().click()])
  const stream = await saved.createReadStream()
  let size = 0
  for await (const piece of stream) size += piece.length
  assert.ok(size > 9.5 * MIB, `the download has ${size} bytes`)
  // The record is longer than an event may be, so the page asks for the record itself.
  await run('import sys\nfor file in (sys.stdout, sys.stderr): file.write("\\x01" * 3_000_000)')
  assert.match(await page.locator('.result pre').first().textContent(), /^\u2401+/)
  await page.getByRole('tab', { name: 'Limits' }).last().click()
  assert.match(await page.locator('.bars').innerText(), /2\.9 MiB of 977 KiB/)
  await run('print("x" * 10_000_000)')
  assert.ok((await page.locator('.result pre').first().textContent()).length < 200000)
  await unharmed()
})

const FRAME = `<h1 id=here>frame</h1><script>
const tries = {}
const attempt = (name, act) => { try { act(); tries[name] = 'done' } catch (error) { tries[name] = error.name } }
attempt('parent', () => { parent.document.body.innerHTML = ''; parent.canary = 1 })
attempt('storage', () => localStorage.setItem('canary', '1'))
attempt('session', () => parent.sessionStorage.getItem('caisson.key'))
attempt('cookie', () => { document.cookie = 'canary=1' })
attempt('top', () => { top.location = '/canary' })
attempt('open', () => { if (!open('/canary')) throw new TypeError() })
attempt('alert', () => alert('canary'))
fetch('/canary').catch(() => { tries.fetch = 'refused' })
new Image().src = '/canary'
document.head.append(Object.assign(document.createElement('script'), { src: '/canary.js' }))
document.body.append(Object.assign(document.createElement('iframe'), { src: '/canary.html' }))
parent.postMessage({ canary: 1 }, '*')
window.tries = tries
</script>`

test('HTML of a result runs in a frame without an origin, and reaches nothing', options, async () => {
  await run(`class Hostile:
    def _repr_html_(self):
        return ${JSON.stringify(FRAME)}
    def _repr_mimebundle_(self, **more):
        return {"text/html": self._repr_html_(), "application/javascript": "window.canary = 1",
                "text/plain": "<script>window.canary = 1</script>", "image/png": "<script>", "image/svg+xml": "<svg onload='canary=1'",
                "text/markdown": "[x](javascript:alert(1)) <script>window.canary = 1</script>", "application/x-canary": "<script>"}
display(Hostile())
Hostile()`, { keep: true })
  const forms = page.locator('.bundle').first().getByRole('button')
  const names = await forms.allTextContents()
  assert.ok(names.includes('text/html') && !names.includes('image/png'), names.join())
  for (const name of names) {
    await forms.getByText(name, { exact: true }).or(page.locator('.bundle').first().getByRole('button', { name, exact: true })).first().click()
    await sleep(50)
  }
  await page.locator('.bundle').first().getByRole('button', { name: 'text/html', exact: true }).click()
  const element = page.locator('.bundle iframe').first()
  assert.equal(await element.getAttribute('sandbox'), 'allow-scripts')
  assert.match(await element.getAttribute('src'), /^\/v1\/previews\//)
  const frame = await (await element.elementHandle()).contentFrame()
  await frame.waitForSelector('#here')
  assert.equal(await frame.evaluate(() => self.origin), 'null')
  await sleep(300)
  const tries = await frame.evaluate(() => window.tries)
  for (const name of ['parent', 'storage', 'session', 'cookie', 'top', 'open']) assert.notEqual(tries[name], 'done', name)
  assert.equal(tries.fetch, 'refused')
  // The policy of the frame refuses what it tries to load, and Chromium reports each refusal on its console.
  const rest = seen.filter((one) => !/^console: .*(Content Security Policy|sandbox|unique origin|opaque origin|Unsafe attempt|Blocked|blocked)/.test(one))
  assert.deepEqual(rest, [])
  seen.length = 0
  await unharmed()
})

test('a preview opened as a page of its own has no origin either', options, async () => {
  const answer = await fetch(`${server.url}/v1/previews`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ html: '<h1 id=here>x</h1><script>window.mine = self.origin</script>' }) })
  const { url } = await answer.json()
  const other = await openPage(browser, server.url)
  await other.page.goto(server.url + url)
  assert.equal(await other.page.evaluate(() => window.mine), 'null')
  await other.close()
})

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="window.canary=1"><script>window.canary = 1; fetch('/canary')</script>
<image href="/canary.png" width="9" height="9"/><foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="parent.canary=1"></body></foreignObject><rect width="40" height="40"/></svg>`

test('an SVG is a picture that runs no script, as a file and as a display', options, async () => {
  await run(`open("drawing.svg", "w").write(${JSON.stringify(SVG)})
open("fake.png", "w").write("<script>window.canary = 1</script>")
open("page.html", "w").write("<script>window.canary = 1</script>")
print("done")`, { keep: false })
  const image = page.locator('.result figure img').first()
  await image.waitFor()
  assert.match(await image.getAttribute('src'), /^data:image\/svg\+xml;base64,/)
  assert.equal(await image.evaluate((one) => one.decode().then(() => one.naturalWidth)), 40)
  await page.getByRole('tab', { name: 'Files' }).last().click()
  for (const name of ['page.html', 'drawing.svg']) await page.getByRole('button', { name: `Show ${name}` }).click()
  await run(`class Drawing:
    def _repr_svg_(self):
        return ${JSON.stringify(SVG)}
Drawing()`, { keep: true })
  await page.locator('.result figure img').first().waitFor()
  await unharmed()
})

test('a link holds a program, and does not run it', options, async () => {
  await run('print(6 * 7)', { keep: false })
  await page.getByRole('button', { name: 'Link' }).click()
  const link = await until(() => page.evaluate(() => location.href.includes('program=') && location.href))
  const other = await openPage(browser, server.url)
  await other.page.goto(link)
  await until(async () => (await other.page.getByRole('textbox', { name: 'Program' }).textContent()) === 'print(6 * 7)')
  await sleep(300)
  assert.equal(await other.page.locator('.result .summary').count(), 0)
  await other.page.goto(`${server.url}/ui/#/playground?program=${'A'.repeat(5000)}`)
  await other.page.locator('.problem').waitFor()
  assert.deepEqual(other.seen, [])
  await other.close()
})

test('a terminal of a hostile program opens no links and writes no clipboard', options, async () => {
  const own = await openPage(browser, server.url)
  await at(own.page, server.url, 'sandboxes')
  await own.page.getByRole('button', { name: 'New sandbox' }).click()
  await own.page.getByRole('tab', { name: 'Terminal' }).click()
  await own.page.getByRole('button', { name: 'Open a terminal' }).click()
  await own.page.locator('.xterm-rows').getByText('$').first().waitFor()
  await own.page.keyboard.type(`printf '\\e]8;;javascript:alert(1)\\aLINK\\e]8;;\\a \\e]52;c;Y2FuYXJ5\\a\\e]0;canary\\a\\e[38;2;9;9;9mrgb\\e[m<img src=x onerror=alert(1)>\\n'; echo en''d\n`)
  await own.page.locator('.xterm-rows').getByText('end', { exact: true }).waitFor()
  await own.page.locator('.xterm-rows').getByText('LINK').last().click({ force: true })
  assert.equal(await own.page.locator('.xterm img').count(), 0)
  assert.match(await own.page.title(), /^Sandboxes/)
  assert.notEqual(await own.page.evaluate(() => navigator.clipboard.readText()), 'canary')
  assert.deepEqual(own.seen, [])
  await own.close()
})

// ---- other origins, other names ----

/** A raw GET, because fetch() does not send another Host. */
function get(path, headers) {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    http.get({ hostname, port, path, headers }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer))
    }).on('error', reject)
  })
}

test('another host name gets neither the page nor an answer', options, async () => {
  for (const path of ['/ui/', '/v1/me', '/v1/runs']) {
    const { statusCode } = await get(path, { Host: 'rebound.example:80' })
    assert.ok([403, 421].includes(statusCode), `${path}: ${statusCode}`)
  }
})

test('the page has its policy, a nonce that changes, and no answer for other origins', options, async () => {
  const [one, two] = [await get('/ui/', {}), await get('/ui/', {})]
  const policy = one.headers['content-security-policy']
  for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "img-src 'self' data:", "frame-src 'self'", "base-uri 'none'",
    "form-action 'self'", "frame-ancestors 'none'"]) assert.ok(policy.includes(part), part)
  assert.match(policy, /style-src 'self' 'nonce-[\w+/=-]{16,}'/)
  assert.notEqual(policy, two.headers['content-security-policy'])
  assert.equal(one.headers['x-content-type-options'], 'nosniff')
  assert.equal(one.headers['referrer-policy'], 'no-referrer')
  assert.ok(one.headers['cross-origin-opener-policy'])
  assert.equal(one.headers['access-control-allow-origin'], undefined)
  const cross = await get('/v1/runs', { Origin: 'http://evil.example' })
  assert.equal(cross.statusCode, 403)
})

test('a page of another origin cannot read, run or frame anything', options, async () => {
  const evil = http.createServer((request, answer) => {
    answer.writeHead(200, { 'Content-Type': 'text/html' })
    answer.end('<h1 id=here>evil</h1>')
  })
  await new Promise((resolve) => { evil.listen(0, '127.0.0.1', resolve) })
  after(() => evil.close())
  const context = await browser.newContext()
  const other = await context.newPage()
  await other.goto(`http://127.0.0.1:${evil.address().port}/`)
  const tries = await other.evaluate(async (url) => {
    const attempt = async (path, how) => fetch(url + path, how).then((answer) => `${answer.type} ${answer.status}`, () => 'refused')
    const simple = { method: 'POST', mode: 'no-cors', body: '{"language": "python", "code": "print(1)"}' }
    return { read: await attempt('/v1/me'), run: await attempt('/v1/runs', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }),
      simple: await attempt('/v1/runs', simple) }
  }, server.url)
  assert.equal(tries.read, 'refused')
  assert.equal(tries.run, 'refused')
  const { runs, data } = await (await fetch(`${server.url}/v1/runs`)).json()
  const before = (runs ?? data).length
  await other.evaluate((url) => fetch(`${url}/v1/runs`, { method: 'POST', mode: 'no-cors', body: '{"language": "python", "code": "print(1)"}' }).catch(() => {}), server.url)
  const now = await (await fetch(`${server.url}/v1/runs`)).json()
  assert.equal((now.runs ?? now.data).length, before)
  await other.evaluate((url) => { document.body.append(Object.assign(document.createElement('iframe'), { src: `${url}/ui/` })) }, server.url)
  await sleep(500)
  const frames = await Promise.all(other.frames().slice(1).map((frame) => frame.evaluate(() => Boolean(document.querySelector('#app'))).catch(() => false)))
  assert.deepEqual(frames.filter(Boolean), [])
  await context.close()
})
