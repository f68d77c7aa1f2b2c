import type { Exchange } from './exchange.ts'
import { type OperationId, type OperationRow, operations, versionPrefix } from './operations.ts'
import { Refusal, type Reply } from './response.ts'

/** What a caller has to be allowed to do. `public` needs no key. */
export type Access = OperationRow['access'] | 'public' | 'metrics'

/** What answers a method at a path: an operation, a page, a health check or the metrics. */
export interface Route {
  readonly method: OperationRow['method']
  readonly path: string
  readonly access: Access
  /** Absent for what the interface does not describe. */
  readonly operationId?: OperationId
  handle(exchange: Exchange, params: Params): Promise<Reply>
}

/** The parts of a path that stand for `{parameters}`. */
export type Params = Readonly<Record<string, string>>

export interface Match {
  /** Empty if there is nothing. */
  readonly routes: readonly Route[]
  /** The value of the Allow header. */
  readonly allow: string
  readonly params: Params
  /** Under the version prefix, where even a path with nothing needs a key. */
  readonly isVersioned: boolean
}

/** Finds the routes of a path. A `{parameter}` matches any segment that is not empty. */
export class Router {
  readonly #static = new Map<string, Match>()
  readonly #patterns: { readonly match: Match; readonly pattern: RegExp }[] = []

  constructor(routes: readonly Route[]) {
    for (const [path, at] of Map.groupBy(routes, ({ path }) => path)) {
      const allow = at.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
      const match = { routes: at, allow, params: {}, isVersioned: isVersioned(path) }
      const pattern = new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
      if (path.includes('{')) this.#patterns.push({ match, pattern })
      else this.#static.set(path, match)
    }
  }

  find(path: string): Match {
    const known = this.#static.get(path)
    if (known) return known
    for (const { match, pattern } of this.#patterns) {
      const { groups: params } = pattern.exec(path) ?? {}
      if (params && !path.includes('%')) return { ...match, params }
      if (params) return { ...match, params: Object.fromEntries(Object.entries(params).map(decode)) }
    }
    return { routes: [], allow: '', params: {}, isVersioned: isVersioned(path) }
  }
}

function isVersioned(path: string): boolean {
  return path === versionPrefix || path.startsWith(`${versionPrefix}/`)
}

/** Decoded after the path is split: an encoded slash is part of its segment. A malformed escape is taken literally. */
function decode([name, text]: [string, string]): [string, string] {
  try {
    return [name, decodeURIComponent(text)]
  } catch {
    return [name, text]
  }
}

const shownPathCharsMax = 80

export function findRoute({ routes, allow }: Match, exchange: Exchange): Route {
  if (routes.length === 0) {
    // A key that is cut could not be recognised.
    const path = exchange.mask(exchange.path)
    const shown = path.length > shownPathCharsMax ? `${path.slice(0, shownPathCharsMax)}…` : path
    const animals = `${versionPrefix}${operations.listPets.path}`
    const message = `Nothing is at ${shown}: animals are at ${animals}, the documentation is at /docs and /openapi.json`
    throw new Refusal('not_found', message)
  }
  const { method } = exchange.request
  const handled = method === 'HEAD' ? 'GET' : method
  const route = routes.find(route => route.method === handled)
  if (route) return route
  const message = `Method ${method} is not allowed here: expected ${allow}`
  throw new Refusal('method_not_allowed', message, { Allow: allow })
}
