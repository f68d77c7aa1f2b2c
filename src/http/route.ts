import type { Operation } from './operation.ts'

export interface Route {
  /** Under the version prefix, as the interface writes it: `/pets/{petId}`. */
  readonly path: string
  readonly operations: Readonly<Partial<Record<'GET' | 'POST', Operation>>>
}

export interface Match {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

interface Segment {
  readonly text: string
  /** The parameter that stands here; absent for plain text. */
  readonly name?: string
}

/** Finds the route whose every segment fits; a `{name}` fits any text that is not empty, and is handed on decoded. */
export function createRouter(routes: readonly Route[]): (path: string) => Match | undefined {
  const compiled = routes.map(route => ({ route, segments: route.path.split('/').map(segmentOf) }))
  const find = (path: string): Match | undefined => {
    const sent = decodeSegments(path)
    for (const { route, segments } of compiled) {
      const params = fit(segments, sent)
      if (params) return { route, params }
    }
    return undefined
  }
  // Most requests spell a route as it is written here: they need not be taken apart.
  const plain = routes.flatMap(({ path }) => (path.includes('{') ? [] : [{ path, match: find(path) }]))
  return path => {
    for (const known of plain) if (known.path === path) return known.match
    return find(path)
  }
}

function segmentOf(text: string): Segment {
  return text.startsWith('{') ? { text, name: text.slice(1, -1) } : { text }
}

/** Split first, then decoded: an encoded slash stays part of its segment. */
function decodeSegments(path: string): string[] {
  const segments = path.split('/')
  return path.includes('%') ? segments.map(decode) : segments
}

/** A malformed escape stands for nothing but itself. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function fit(segments: readonly Segment[], sent: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== sent.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, { text, name }] of segments.entries()) {
    const value = sent[index] ?? ''
    if (name !== undefined && value !== '') params[name] = value
    else if (text !== value) return undefined
  }
  return params
}

/** What a path takes, for the Allow header. HEAD is wherever GET is. */
export function allowedMethods(route: Route): string {
  return Object.keys(route.operations)
    .flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}
