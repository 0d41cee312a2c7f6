/* Bytes, base64 and lines, by what every runtime has. */

export type Content = string | Uint8Array | ArrayBuffer | Blob

const PIECE = 0x8000

export async function bytesOf(content: Content): Promise<Uint8Array> {
  if (typeof content === 'string') return new TextEncoder().encode(content)
  if (content instanceof Uint8Array) return content
  return new Uint8Array(content instanceof ArrayBuffer ? content : await content.arrayBuffer())
}

export function toBase64(bytes: Uint8Array): string {
  let text = ''
  for (let begin = 0; begin < bytes.length; begin += PIECE) text += String.fromCharCode(...bytes.subarray(begin, begin + PIECE))
  return btoa(text)
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0))
}

/** `NAME` for a text, `NAME_base64` for bytes. */
export async function member(name: string, content: Content): Promise<Record<string, string>> {
  return typeof content === 'string' ? { [name]: content } : { [`${name}_base64`]: toBase64(await bytesOf(content)) }
}
