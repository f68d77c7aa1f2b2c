import { maskKeys, type Permission } from '../api-key.ts'
import type { KeyUsage } from './key-usage.ts'
import type { OperationId } from './operations.ts'

/** Who sent a request. */
export interface Caller {
  readonly keyName: string
  readonly permission: Permission | 'all' | 'none'
  /** The key's hash: the owner of idempotency keys and of a rate limit. */
  readonly keyHash: string
  /** Only of a key in the store. */
  readonly usage?: KeyUsage
}

const nobody: Caller = { keyName: '', permission: 'none', keyHash: '' }

/** The part of Bun's server that knows the peer of a request. */
export interface PeerLookup {
  requestIP(request: Request): { readonly address: string } | null
}

export const requestIdCharsMax = 128
const safeId = new RegExp(`^[A-Za-z0-9._~:/+=@-]{1,${requestIdCharsMax}}$`)

/** A request, and the findings of the steps on its way. */
export class Exchange {
  readonly request: Request
  readonly startedMs = performance.now()
  readonly #environmentKey: string | undefined
  readonly path: string
  readonly query: string
  /** The client's own id if it is safe in headers and logs and holds no key; otherwise a new one. */
  readonly id: string
  /** The address of the client or of the last proxy; undefined if the connection is closed already. */
  readonly peer: string | undefined
  /** Nobody until a key is verified. */
  caller = nobody
  /** Undefined for a page, and until the operation is known. */
  operationId: OperationId | undefined
  /** `Prefer: handling=strict`: unknown parameters and properties are errors. */
  isStrict = false
  /** Headers of the response, also of a refusal. */
  readonly headers: Record<string, string>

  constructor(request: Request, peers: PeerLookup | undefined, environmentKey: string | undefined) {
    this.request = request
    this.#environmentKey = environmentKey
    const { path, query } = splitUrl(request.url)
    this.path = path
    this.query = query
    this.peer = peers?.requestIP(request)?.address
    const sentId = request.headers.get('x-request-id') ?? ''
    this.id = safeId.test(sentId) && this.mask(sentId) === sentId ? sentId : crypto.randomUUID()
    this.headers = { 'X-Request-Id': this.id }
  }

  /** Hides API keys in a text. */
  mask(text: string): string {
    return maskKeys(text, this.#environmentKey)
  }
}

/** `new URL` throws for some Host headers that Bun accepts, so path and query are taken from the text. */
export function splitUrl(url: string): { readonly path: string; readonly query: string } {
  const pathStart = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3)
  const queryStart = url.indexOf('?', pathStart)
  const hash = url.indexOf('#', pathStart)
  const end = hash === -1 ? url.length : hash
  if (queryStart === -1 || queryStart > end) return { path: url.slice(pathStart, end), query: '' }
  return { path: url.slice(pathStart, queryStart), query: url.slice(queryStart + 1, end) }
}
