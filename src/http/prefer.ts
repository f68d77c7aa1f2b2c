/** Whether a Prefer header (RFC 7240) asks for `handling=strict`. The first `handling` counts, as the RFC says. */
export function prefersStrict(header: string | null): boolean {
  if (header === null) return false
  // A quoted string may hold commas; only its being "strict" matters.
  const plain = header.replace(/"(?:[^"\\]|\\.)*"/g, quoted => (/^"strict"$/i.test(quoted) ? 'strict' : '""'))
  for (const preference of plain.split(',')) {
    const [pair = ''] = preference.split(';', 1)
    const handling = /^\s*handling\s*(?:=\s*(.*?)\s*)?$/i.exec(pair)
    if (handling) return handling[1]?.toLowerCase() === 'strict'
  }
  return false
}
