// The frame of the page: navigation, the key, the theme, and the page that the fragment names.

import { signal } from '@preact/signals'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { html } from './parts/view.js'
import { key, learnMe, may, me, needsKey, setKey } from './parts/api.js'
import { THEMES, theme } from './parts/theme.js'
import { Said } from './parts/ui.js'
import { Playground } from './pages/playground.js'
import { Grade } from './pages/grade.js'
import { Runs } from './pages/runs.js'
import { Sandboxes } from './pages/sandboxes.js'
import { Metrics } from './pages/metrics.js'
import { Layers } from './pages/layers.js'
import { Keys } from './pages/keys.js'

// `may` is the member of GET /v1/me that allows the page.
const PAGES = [
  { name: 'playground', title: 'Playground', may: 'run', page: Playground },
  { name: 'grade', title: 'Grade', may: 'grade', page: Grade },
  { name: 'runs', title: 'Runs', page: Runs },
  { name: 'sandboxes', title: 'Sandboxes', may: 'sandboxes', page: Sandboxes },
  { name: 'metrics', title: 'Metrics', may: 'metrics', page: Metrics },
  { name: 'layers', title: 'Layers', may: 'layers', page: Layers },
  { name: 'keys', title: 'Keys', page: Keys },
]

// ---- the address ----

/** #/NAME/PART?a=b as {name, parts, query}. */
function readAddress() {
  const [path, search = ''] = location.hash.replace(/^#\/?/, '').split('?')
  const [name, ...parts] = path.split('/').map(decodeURIComponent)
  return { name: PAGES.some((one) => one.name === name) ? name : 'playground', parts, query: Object.fromEntries(new URLSearchParams(search)) }
}

const address = signal(readAddress())
addEventListener('hashchange', () => { address.value = readAddress() })

// ---- the frame ----

function KeyForm() {
  const field = useRef()
  const submit = (event) => {
    event.preventDefault()
    setKey(field.current.value)
    me.value = null
    learnMe()
  }
  return html`<form class="keyform" onSubmit=${submit} autocomplete="off">
    <h1>A key is needed</h1>
    <p>${key.value ? 'The daemon does not accept this key.' : 'The daemon answers requests with a key only.'} It stays in this tab and ends with it.</p>
    <label class="field"><span>Key</span><input ref=${field} type="password" name="key" autocomplete="off" placeholder="csn_..." required autofocus /></label>
    <p><button class="primary">Use this key</button></p>
    <p class="note">Make one on the host of the daemon:</p>
    <pre tabindex="0" role="region" aria-label="Command">caisson keys create --name laptop --tenant me --scopes run,check,read,files,sandboxes</pre>
  </form>`
}

const menuOpen = signal(false)

function Frame() {
  const { name, parts, query } = address.value
  const shown = PAGES.filter((one) => !one.may || may(one.may))
  const current = shown.find((one) => one.name === name) ?? shown[0]
  const main = useRef()
  useEffect(() => {
    document.title = `${current.title} · Caisson`
    menuOpen.value = false
  }, [current.name])
  const skip = (event) => {
    event.preventDefault()
    main.current.focus()
  }
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/playground"><span class="mark" aria-hidden="true"></span>Caisson</a>
      <button type="button" class="menu" aria-expanded=${menuOpen.value ? 'true' : 'false'} aria-controls="nav"
        onClick=${() => { menuOpen.value = !menuOpen.value }}>Menu</button>
      <nav id="nav" class=${menuOpen.value ? 'open' : ''} aria-label="Pages">
        ${shown.map((one) => html`<a key=${one.name} href="#/${one.name}" aria-current=${one === current ? 'page' : undefined}>${one.title}</a>`)}
        <a href="/docs">Docs</a>
        <span class="spacer"></span>
        ${key.value && html`<button type="button" class="small" onClick=${() => { setKey(''); me.value = null; learnMe() }}>Forget key</button>`}
        <label class="theme"><span class="hidden">Theme</span><select value=${theme.value} onChange=${(event) => { theme.value = event.currentTarget.value }}>${THEMES.map((one) => html`<option
          value=${one} selected=${one === theme.value}>${one === 'system' ? 'Theme: system' : one}</option>`)}</select></label>
      </nav>
    </header>
    <main id="main" tabindex="-1" ref=${main}>
      ${needsKey.value ? html`<${KeyForm} />` : me.value && html`<${current.page} key=${current.name} parts=${parts} query=${query} />`}
    </main>
    <${Said} />`
}

learnMe()
render(html`<${Frame} />`, document.getElementById('app'))
