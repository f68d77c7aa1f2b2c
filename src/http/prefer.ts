/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts, as the RFC says. */
export function prefersStrict(header: string | null): boolean {
  if (header === null) return false
  for (const preference of header.split(',')) {
    const [pair = ''] = preference.split(';', 1)
    const [name = '', value = ''] = pair.split('=', 2)
    if (name.trim().toLowerCase() === 'handling') return /^\s*(?:strict|"strict")\s*$/i.test(value)
  }
  return false
}
