// How the page looks: axe-core finds nothing serious in both themes, no page is wider than 360 px, and keys alone are enough.

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { at, axe, browse, openPage, serve, sleep, whyNot } from './server.mjs'

const server = await serve()
const reason = await whyNot(server.url)
const options = reason ? { skip: reason } : {}

let browser, page

before(async () => {
  if (reason) return
  browser = await browse()
  ;({ page } = await openPage(browser, server.url))
})

test('the theme follows the switch and stays', options, async () => {
  await at(page, server.url, 'playground')
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await ground()
  await page.getByRole('combobox', { name: 'Theme', exact: true }).selectOption('dark')
  const dark = await ground()
  assert.notEqual(dark, light)
  await page.reload()
  await page.waitForSelector('main h1', { state: 'attached' })
  assert.equal(await ground(), dark)
  await page.getByRole('combobox', { name: 'Theme', exact: true }).selectOption('system')
  assert.equal(await ground(), light)
})

test('keys alone: skip link, tabs by arrows, a way out of the editor', options, async () => {
  await page.goto(`${server.url}/ui/`)
  await page.waitForSelector('.cm-content')
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
  await page.getByRole('tab', { name: 'Files' }).first().focus()
  await page.keyboard.press('ArrowRight')
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), 'Standard input')
  await page.getByRole('textbox', { name: 'Program', exact: true }).focus()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'tab')
})

const PAGES = ['playground', 'grade', 'runs', 'sandboxes', 'metrics', 'layers', 'keys']

for (const scheme of ['light', 'dark']) {
  test(`axe-core finds nothing serious in the ${scheme} theme`, options, async () => {
    const own = await openPage(browser, server.url, { scheme })
    const found = []
    const look = async (name, part) => found.push(...(await axe(own.page, part)).map((one) => `${name}: ${one}`))
    for (const name of PAGES) {
      await at(own.page, server.url, name)
      await sleep(600)
      await look(name)
    }
    await at(own.page, server.url, 'playground')
    await own.page.getByRole('combobox', { name: 'Example', exact: true }).selectOption({ label: 'What is refused' })
    await own.page.getByRole('button', { name: 'Run', exact: true }).click()
    await own.page.locator('.result .summary .status.bad').waitFor()
    for (const name of ['Files', 'Boundary', 'Limits', 'Denials', 'Timing', 'Record', 'Output']) {
      await own.page.getByRole('tab', { name }).last().click()
      await look(`playground, ${name}`, '.result')
    }
    await own.page.getByRole('button', { name: 'Copy as' }).click()
    await look('copy as', 'dialog')
    await own.page.keyboard.press('Escape')
    await own.page.getByRole('combobox', { name: 'Example', exact: true }).selectOption({ label: 'Bash' })
    await own.page.getByRole('button', { name: 'Run', exact: true }).click()
    await own.page.locator('.result .summary .status.good').waitFor()
    await look('colours', '.result')
    assert.deepEqual(found, [])
    await own.close()
  })
}

test('no page is wider than 360 px', options, async () => {
  const own = await openPage(browser, server.url, { width: 360 })
  for (const name of PAGES) {
    await at(own.page, server.url, name)
    await sleep(600)
    const width = await own.page.evaluate(() => document.documentElement.scrollWidth)
    assert.ok(width <= 360, `${name} is ${width} px wide`)
  }
  await own.page.getByRole('button', { name: 'Menu' }).click()
  await own.page.getByRole('link', { name: 'Playground' }).click()
  await own.page.getByRole('button', { name: 'Run', exact: true }).click()
  await own.page.locator('.result .summary .status').waitFor()
  assert.ok(await own.page.evaluate(() => document.documentElement.scrollWidth) <= 360)
  await own.close()
})
