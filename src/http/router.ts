import type { Awaitable } from '../store.ts'
import type { OperationRow } from './operations.ts'
import type { RequestContext } from './request.ts'
import type { Reply } from './response.ts'

/** A row of the table of operations, with its handler. */
export interface Operation extends Pick<OperationRow, 'method' | 'path' | 'access' | 'parameters' | 'deprecated'> {
  readonly id: string
  handle(context: RequestContext): Awaitable<Reply>
}

/** The operations at one path. */
interface Route {
  readonly operations: readonly Operation[]
  /** For the Allow header. */
  readonly methods: string
}

export interface Match extends Route {
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
  readonly #static = new Map<string, Match>()

  constructor(operations: readonly Operation[]) {
    const byPath = Map.groupBy(operations, ({ path }) => path)
    this.#routes = [...byPath].map(([path, operations]) => {
      const route = { operations, methods: methodsOf(operations) }
      if (!path.includes('{')) this.#static.set(path, { ...route, params: {} })
      return { route, segments: path.split('/').map(segmentOf) }
    })
  }

  find(path: string): Match | undefined {
    const known = this.#static.get(path)
    if (known) return known
    // Split before decoding: an encoded slash is part of its segment.
    const split = path.split('/')
    const sent = path.includes('%') ? split.map(decode) : split
    for (const { route, segments } of this.#routes) {
      const params = match(segments, sent)
      if (params) return { ...route, params }
    }
    return undefined
  }
}

function methodsOf(operations: readonly Operation[]): string {
  return operations.map(({ method }) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
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

export function operationFor({ operations }: Match, method: string): Operation | undefined {
  const handled = method === 'HEAD' ? 'GET' : method
  return operations.find(operation => operation.method === handled)
}
