/** A request's path and query, as they were sent: nothing is decoded yet. */
export interface Target {
  readonly path: string
  readonly query: string
}

/**
 * Bun gives a whole address, or the bare target where the Host header is too odd to make an address of; `new URL`
 * throws for some of either. So they are taken from the text.
 */
export function targetOf(url: string): Target {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const queryStart = url.indexOf('?', pathStart)
  const hash = url.indexOf('#', pathStart)
  const end = hash === -1 ? url.length : hash
  if (queryStart === -1 || queryStart > end) return { path: url.slice(pathStart, end), query: '' }
  return { path: url.slice(pathStart, queryStart), query: url.slice(queryStart + 1, end) }
}
