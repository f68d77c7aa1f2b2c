/** A longer header is nobody's preference, and its quotes would take long to pair. */
const charsMax = 1_024

/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts, as the RFC says. */
export function prefersStrict(header: string | null): boolean {
  if (header === null || header.length > charsMax) return false
  // A quoted string may hold commas; only its being "strict" matters.
  const plain = header.replace(/"(?:[^"\\]|\\.)*"/g, quoted => (/^"strict"$/i.test(quoted) ? 'strict' : '""'))
  for (const preference of plain.split(',')) {
    const [pair = ''] = preference.split(';', 1)
    const handling = /^handling\s*(?:=\s*(\S*))?$/i.exec(pair.trim())
    if (handling) return handling[1]?.toLowerCase() === 'strict'
  }
  return false
}
