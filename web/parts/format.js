// Numbers and times as text.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

export function bytes(n) {
  if (n === undefined || n === null) return ''
  let unit = 0
  while (n >= 1024 && unit < UNITS.length - 1) {
    n /= 1024
    unit++
  }
  return `${unit && n < 100 ? n.toFixed(1) : Math.round(n)} ${UNITS[unit]}`
}

export function milliseconds(ms) {
  if (ms === undefined || ms === null) return ''
  if (ms === 0) return '0 ms'
  if (ms < 10) return `${ms.toFixed(2)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 120000) return `${(ms / 1000).toFixed(2)} s`
  return age(ms)
}

export function age(ms) {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`
}

const CLOCK = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short',
})

/** A time of RFC 3339 in the browser's zone, with the zone: 2026-11-30 09:12:01 CET. */
export function time(rfc3339) {
  const date = new Date(rfc3339)
  if (!rfc3339 || Number.isNaN(date.getTime())) return ''
  const part = Object.fromEntries(CLOCK.formatToParts(date).map(({ type, value }) => [type, value]))
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`
}

export const count = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`
