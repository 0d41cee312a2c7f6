// Layers of packages and imported images.

import { useSignal } from '@preact/signals'
import { html } from '../parts/view.js'
import { json, optional, request } from '../parts/api.js'
import { bytes } from '../parts/format.js'
import { Empty, ProblemView, Sure, Table, Time, useLoad } from '../parts/ui.js'

function LayerList() {
  const { value, problem, again } = useLoad(() => optional('/v1/layers'))
  const packages = useSignal('')
  const busy = useSignal(false)
  const refused = useSignal(null)
  const build = async (event) => {
    event.preventDefault()
    busy.value = true
    refused.value = null
    try {
      await json('/v1/layers', { body: { packages: packages.value.split(/[\s,]+/).filter(Boolean) } })
      packages.value = ''
    } catch (error) {
      refused.value = error
    }
    busy.value = false
    again()
  }
  const remove = async (layer) => {
    refused.value = null
    await request(`/v1/layers/${layer.id}`, { method: 'DELETE' }).catch((error) => { refused.value = error })
    again()
  }
  const rows = value?.data ?? value?.layers ?? []
  return html`<form class="toolbar" onSubmit=${build}><label class="field wide"><span>Packages of a new layer</span><input value=${packages.value} required
      placeholder="requests==2.31.* node:left-pad@1" onInput=${(event) => { packages.value = event.currentTarget.value }} /></label>
      <button disabled=${busy.value}>${busy.value ? 'Building' : 'Build'}</button></form>
    <${ProblemView} problem=${problem ?? refused.value} />
    ${value !== undefined && !rows.length && html`<${Empty} command="caisson layers build requests==2.31.*">No layers. A run that names packages makes one, and so does:<//>`}
    ${rows.length > 0 && html`<${Table} label="Layers" head=${['Layer', 'Language', 'Packages', 'Size', 'Files', 'Used', '']} numbers=${[3, 4]} rows=${rows.map((one) => ({
      key: one.id, cells: [html`<code>${one.id.slice(0, 16)}</code>`, `${one.language} ${one.runtime}`, one.packages.join(', '), bytes(one.size_bytes), one.files,
        html`<${Time} at=${one.used_at} />`, one.own ? html`<${Sure} what=${one.id} act=${() => remove(one)}>Remove<//>` : 'for all'] }))} />`}`
}

function ImageList() {
  const { value, problem } = useLoad(() => optional('/v1/images'))
  const rows = value?.data ?? value?.images ?? []
  return html`<${ProblemView} problem=${problem} />
    ${value !== undefined && !rows.length && html`<${Empty} command="caisson image import rootfs.tar">No imported images; programs find the host's own file system. This command imports one:<//>`}
    ${rows.length > 0 && html`<${Table} label="Images" head=${['Image', 'Kind', 'Interpreters', 'Size', 'Files', 'Imported']} numbers=${[3, 4]} rows=${rows.map((one) => ({
      key: one.name, cells: [one.name, one.kind, one.interpreters.map((each) => `${each.name} ${each.version}`).join(', '), bytes(one.size_bytes), one.files,
        html`<${Time} at=${one.created_at} />`] }))} />`}`
}

export const Layers = () => html`<div class="toolbar"><h1>Layers and images</h1></div>
  <h2>Layers <span class="note">immutable folders of packages</span></h2><${LayerList} />
  <h2>Images <span class="note">root file systems for programs</span></h2><${ImageList} />`
