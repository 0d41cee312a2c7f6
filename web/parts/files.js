// Files of sandboxes in the form of a record's files, and bytes as base64.

import { json } from './api.js'

const DEPTH = 4             // folders below the home folder
const TYPES = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', svg: 'image/svg+xml', csv: 'text/csv', txt: 'text/plain' }

export async function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onerror = () => reject(reader.error)
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1))
    reader.readAsDataURL(blob)
  })
}

/** The path of a file of a persistent sandbox. */
export const filePath = (sandbox, name) => `/v1/sandboxes/${sandbox}/files?path=${encodeURIComponent(name)}`

/** Files in the home folder of a persistent sandbox. */
export async function sandboxFiles(sandbox) {
  const { entries } = await json(`/v1/sandboxes/${sandbox}/entries?path=.&depth=${DEPTH}`)
  return entries.filter((one) => one.type === 'file').map(({ path, size_bytes }) => (
    { name: path, size_bytes, mime: TYPES[path.split('.').pop().toLowerCase()] ?? '', href: filePath(sandbox, path) }))
}
