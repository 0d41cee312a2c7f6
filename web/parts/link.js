// A program in the fragment of a link: JSON, deflated, as base64url.  A fragment is not sent to any server.

const TEXT_MAX = 1024 * 1024

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer())
}

export async function packProgram(program) {
  const packed = await through(new CompressionStream('deflate-raw'), new TextEncoder().encode(JSON.stringify(program)))
  let binary = ''
  for (let at = 0; at < packed.length; at += 32768) binary += String.fromCharCode(...packed.subarray(at, at + 32768))
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** The program of a link; null where the text is none.  Members that are not text are left out. */
export async function unpackProgram(text) {
  try {
    const packed = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader()
    const parts = []
    let length = 0
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      parts.push(value)
      length += value.length
      if (length > TEXT_MAX) {
        reader.cancel()
        return null
      }
    }
    const program = JSON.parse(await new Blob(parts).text())
    return Object.fromEntries(Object.entries(program).filter(([, value]) => typeof value === 'string'))
  } catch {
    return null
  }
}
