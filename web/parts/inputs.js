// Files that a person gives to a program: by a picker, or dropped anywhere on the area.

import { useSignal } from '@preact/signals'
import { html } from './view.js'
import { json } from './api.js'
import { base64 } from './files.js'
import { bytes } from './format.js'

const INLINE_MAX = 1024 * 1024         // larger files are uploaded first, where the key may keep files
const BODY_MAX = 40 * 1024 * 1024      // of files without an upload: base64 of them fits into 64 MiB

/** `files` of a request for the given File objects; uploads large ones. */
export async function inputFiles(files, mayKeep) {
  const list = []
  let inline = 0
  for (const file of files) {
    if (mayKeep && file.size > INLINE_MAX) {
      const stored = await json(`/v1/files?name=${encodeURIComponent(file.name)}`, { body: file })
      list.push({ name: file.name, id: stored.id })
      continue
    }
    inline += file.size
    if (inline > BODY_MAX) throw new Error(`${file.name}: files of one request have at most ${bytes(BODY_MAX)} together without an upload; the scope "files" of a key allows uploads.`)
    list.push({ name: file.name, content_base64: await base64(file) })
  }
  return list
}

/** Attributes of an element on which files can be dropped. */
export function dropTarget(over, add) {
  return {
    onDragOver: (event) => {
      if (![...event.dataTransfer.types].includes('Files')) return
      event.preventDefault()
      over.value = true
    },
    onDragLeave: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) over.value = false },
    onDrop: (event) => {
      if (!event.dataTransfer.files.length) return
      event.preventDefault()
      over.value = false
      add([...event.dataTransfer.files])
    },
  }
}

/** The list of chosen files, with the picker. */
export function Inputs({ files, add, remove }) {
  const over = useSignal(false)
  const pick = (event) => {
    add([...event.currentTarget.files])
    event.currentTarget.value = ''
  }
  return html`<div class="inputs ${over.value ? 'over' : ''}" ...${dropTarget(over, add)}>
    <label class="picker"><span class="button small">Add files</span><input type="file" multiple onChange=${pick} /></label>
    ${files.length === 0 && html`<span class="note">or drop them here, such as a CSV. The program finds them in its working folder.</span>`}
    ${files.length > 0 && html`<ul class="chips">${files.map((file) => html`<li key=${file.name}><span>${file.name}</span> <span
      class="note">${bytes(file.size)}</span><button type="button" class="small" aria-label="Remove ${file.name}"
      onClick=${() => remove(file)}>Remove</button></li>`)}</ul>`}
  </div>`
}
