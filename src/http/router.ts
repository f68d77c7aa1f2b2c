import type { OperationRow } from './operations.ts'
import type { Caller, Query } from './request.ts'
import type { Reply } from './response.ts'

/** A row of the table of operations, with its handler. */
export interface Operation extends Pick<OperationRow, 'method' | 'path' | 'access' | 'parameters' | 'deprecated'> {
  readonly id: string
  handle(call: Call): Promise<Reply>
}

/** A request for an operation, after all checks that operations share. */
export interface Call {
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
  readonly #routes: readonly { readonly route: Route; readonly pattern: RegExp }[]
  /** Routes without parameters, by path: found without a pattern, and first. */
  readonly #static = new Map<string, Match>()

  constructor(operations: readonly Operation[]) {
    const byPath = Map.groupBy(operations, ({ path }) => path)
    this.#routes = [...byPath].map(([path, operations]) => {
      const allow = operations.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
      const route = { operations, allow }
      if (!path.includes('{')) this.#static.set(path, { ...route, params: {} })
      return { route, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) }
    })
  }

  find(path: string): Match | undefined {
    const known = this.#static.get(path)
    if (known) return known
    const isEncoded = path.includes('%')
    const plain = isEncoded ? path.replace(encodedUnreserved, decodeURIComponent) : path
    for (const { route, pattern } of this.#routes) {
      const { groups: params } = pattern.exec(plain) ?? {}
      if (params && isEncoded) return { ...route, params: Object.fromEntries(Object.entries(params).map(decoded)) }
      if (params) return { ...route, params }
    }
    return this.#static.get(plain)
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
