import type { OperationId, OperationRow } from './operations.ts'
import type { Caller, Query } from './request.ts'
import type { Reply } from './response.ts'

/** A row of the table of operations, with its handler. */
export interface Operation extends Pick<OperationRow, 'method' | 'path' | 'access' | 'parameters' | 'deprecated'> {
  readonly id: OperationId
  handle(call: Call): Promise<Reply>
}

/** A request for an operation, after all checks that operations share. */
interface Call {
  readonly request: Request
  readonly caller: Caller
  readonly params: Match['params']
  readonly query: Query
  /** `Prefer: handling=strict`: unknown parameters and properties are errors. */
  readonly strict: boolean
}

/** The operations at one path. */
interface Route {
  readonly operations: readonly Operation[]
  /** The value of the Allow header. */
  readonly allow: string
}

export interface Match extends Route {
  readonly params: Readonly<Record<string, string>>
}

/** Finds the operations of a path. A `{parameter}` matches any segment that is not empty. */
export class Router {
  readonly #static = new Map<string, Match>()
  readonly #patterns: { readonly route: Route; readonly pattern: RegExp }[] = []

  constructor(operations: readonly Operation[]) {
    for (const [path, at] of Map.groupBy(operations, ({ path }) => path)) {
      const allow = at.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
      const route = { operations: at, allow }
      const pattern = new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
      if (path.includes('{')) this.#patterns.push({ route, pattern })
      else this.#static.set(path, { ...route, params: {} })
    }
  }

  find(path: string): Match | undefined {
    const isEncoded = path.includes('%')
    const plain = isEncoded ? path.replace(encodedUnreserved, decodeURIComponent) : path
    const known = this.#static.get(plain)
    if (known) return known
    for (const { route, pattern } of this.#patterns) {
      const { groups: params } = pattern.exec(plain) ?? {}
      if (params && isEncoded) return { ...route, params: Object.fromEntries(Object.entries(params).map(decoded)) }
      if (params) return { ...route, params }
    }
    return undefined
  }
}

/** Letters, digits, `-`, `.`, `_` and `~`, which need no encoding: a path means the same with and without it. */
const encodedUnreserved = /%(?:2[DE]|3\d|[46][1-9A-F]|[57][\dA]|5F|7E)/gi

/** Decoded after the path is split: an encoded slash is part of its segment. A malformed escape is taken literally. */
function decoded([name, text]: [string, string]): [string, string] {
  try {
    return [name, decodeURIComponent(text)]
  } catch {
    return [name, text]
  }
}

export function operationFor({ operations }: Match, method: string): Operation | undefined {
  const handled = method === 'HEAD' ? 'GET' : method
  return operations.find(operation => operation.method === handled)
}
