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

/** Finds the route whose every segment fits; a `{name}` fits any text that is not empty, and is handed on decoded. */
export function createRouter(routes: readonly Route[]): (path: string) => Match | undefined {
  const compiled = routes.map(route => ({ route, segments: route.path.split('/') }))
  return path => {
    const sent = decodeSegments(path)
    for (const { route, segments } of compiled) {
      const params = fit(segments, sent)
      if (params) return { route, params }
    }
    return undefined
  }
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

function fit(segments: readonly string[], sent: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== sent.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, segment] of segments.entries()) {
    const value = sent[index] ?? ''
    if (segment.startsWith('{') && value !== '') params[segment.slice(1, -1)] = value
    else if (segment !== value) return undefined
  }
  return params
}

/** What a path takes, for the Allow header. HEAD is wherever GET is. */
export function allowedMethods(route: Route): string {
  return Object.keys(route.operations)
    .flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}
