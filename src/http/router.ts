import type { Awaitable } from '../store.ts'
import type { Access } from './auth.ts'
import type { RequestContext } from './request.ts'
import type { Reply } from './response.ts'

export interface Operation {
  readonly id: 'listPets' | 'createPet' | 'getPet'
  readonly access: Access
  /** The query parameters that strict requests may have. */
  readonly parameters: readonly string[]
  /** Calls are counted for each key. */
  readonly deprecated?: true
  handle(context: RequestContext): Awaitable<Reply>
}

export interface Route {
  /** Under the version prefix, such as `/pets/{petId}`. */
  readonly path: string
  readonly operations: Readonly<Partial<Record<'GET' | 'POST', Operation>>>
}

export interface Match {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

interface Segment {
  readonly text: string
  readonly parameter: string | undefined
}

/** Matches paths segment by segment. A `{parameter}` matches any text that is not empty, and is decoded. */
export class Router {
  readonly #routes: readonly { readonly route: Route; readonly segments: readonly Segment[] }[]
  /** Routes without parameters, by path: found without splitting the path. */
  readonly #static: ReadonlyMap<string, Match>

  constructor(routes: readonly Route[]) {
    this.#routes = routes.map(route => ({ route, segments: route.path.split('/').map(segmentOf) }))
    const fixed = routes.filter(({ path }) => !path.includes('{'))
    this.#static = new Map(fixed.map(route => [route.path, { route, params: {} }]))
  }

  find(path: string): Match | undefined {
    const known = this.#static.get(path)
    if (known) return known
    // Split before decoding: an encoded slash is part of its segment.
    const split = path.split('/')
    const sent = path.includes('%') ? split.map(decode) : split
    for (const { route, segments } of this.#routes) {
      const params = match(segments, sent)
      if (params) return { route, params }
    }
    return undefined
  }
}

function segmentOf(text: string): Segment {
  return { text, parameter: /^\{(.+)\}$/.exec(text)?.[1] }
}

/** A malformed escape is taken literally. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function match(segments: readonly Segment[], sent: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== sent.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, { text, parameter }] of segments.entries()) {
    const value = sent[index] ?? ''
    if (parameter !== undefined && value !== '') params[parameter] = value
    else if (text !== value) return undefined
  }
  return params
}

export function operationFor({ operations }: Route, method: string): Operation | undefined {
  if (method === 'GET' || method === 'HEAD') return operations.GET
  return method === 'POST' ? operations.POST : undefined
}

export function allowedMethods({ operations }: Route): string {
  return Object.keys(operations)
    .flatMap(method => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
}
