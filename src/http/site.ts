import type { Stores } from '../store.ts'
import { withTimeout } from '../timeout.ts'
import { openApiDocument, type PublishedUrls, publishedServers } from './openapi.ts'
import { headersWith, plainText, type Reply } from './response.ts'

/** A file for browsers or tools, which is the same for every client. */
export interface Asset {
  readonly type: string
  read(): Promise<Uint8Array>
  /** Further response headers, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Serves GET and HEAD at one path outside of the version prefix. */
type SiteHandler = (request: Request) => Promise<Reply>

export interface SiteRoute {
  readonly handle: SiteHandler
  /** Whether it needs a key with the permission to read the metrics. */
  readonly isForScrapers?: true
}

interface SiteParts {
  readonly health: Health
  readonly urls: PublishedUrls
  readonly pages: ReadonlyMap<string, Asset>
  metricsText(isStoreUp: boolean): string
}

/** Everything outside of the version prefix, by path. */
export function siteRoutes({ health, urls, pages, metricsText }: SiteParts): ReadonlyMap<string, SiteRoute> {
  const document: Asset = {
    type: 'application/json',
    read: async () => new TextEncoder().encode(JSON.stringify(openApiDocument(publishedServers(urls)))),
  }
  const metrics: SiteHandler = async () =>
    plainText(200, metricsText(await health.isStoreUp()), 'text/plain; version=0.0.4')
  const assets = new Map(pages).set('/openapi.json', document)
  return new Map<string, SiteRoute>([
    ...[...assets].map(([path, asset]) => [path, { handle: serveAsset(asset) }] as const),
    ['/livez', { handle: async () => plainText(200, 'ok') }],
    ['/readyz', { handle: () => health.readyz() }],
    ['/healthz', { handle: () => health.healthz() }],
    ['/metrics', { handle: metrics, isForScrapers: true }],
  ])
}

interface HealthParts {
  readonly stores: Pick<Stores, 'pets' | 'keys' | 'activity'>
  readonly checkMs: number
  readonly checkedForMs: number
  isDraining(): boolean
}

/** Checks whether the store can be read, once for all who ask at the same time: anyone may ask, without a key. */
export class Health {
  readonly #parts: HealthParts
  #checking: Promise<boolean> | undefined
  #checkedMs = Number.NEGATIVE_INFINITY
  #isUp = false
  #hasBeenUp = false

  constructor(parts: HealthParts) {
    this.#parts = parts
  }

  /** Whether animals and keys can be read, now or a moment ago. */
  async isStoreUp(): Promise<boolean> {
    if (performance.now() - this.#checkedMs < this.#parts.checkedForMs) return this.#isUp
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** For people and alerts: whether everything works, the store included. */
  async healthz(): Promise<Reply> {
    if (this.#parts.isDraining()) return plainText(503, 'draining')
    return plainText((await this.isStoreUp()) ? 200 : 503, this.#storeState)
  }

  /**
   * For load balancers. A store that is down changes nothing, because all instances share it. Only an instance that has
   * never read the store waits for it, and is refused: it must not replace others.
   */
  async readyz(): Promise<Reply> {
    if (this.#parts.isDraining()) return plainText(503, 'draining')
    const checking = this.isStoreUp()
    if (!this.#hasBeenUp && !(await checking)) return plainText(503, 'starting')
    return plainText(200, this.#storeState)
  }

  /** As of the last check. */
  get #storeState(): string {
    if (!this.#isUp) return 'store'
    return this.#parts.stores.activity().isWritable ? 'ok' : 'read-only'
  }

  async #check(): Promise<boolean> {
    const { stores, checkMs } = this.#parts
    try {
      // Both: animals and keys may come from different servers.
      const reads = Promise.all([stores.pets.list({ limit: 1 }), stores.keys.find('')]).then(() => true)
      this.#isUp = await withTimeout(reads, checkMs, () => false)
    } catch {
      this.#isUp = false
    }
    this.#hasBeenUp ||= this.#isUp
    this.#checkedMs = performance.now()
    return this.#isUp
  }
}

const gzipBytesMin = 256

/** Serves an asset, compressed if the client accepts that. Loaded on the first request, so that the start is quick. */
function serveAsset({ type, read, headers }: Asset): SiteHandler {
  let loading: ReturnType<typeof load> | undefined
  return async request => {
    loading ??= load(read).catch(cause => {
      // The next request tries again.
      loading = undefined
      throw cause
    })
    const { bytes, hash, gzip } = await loading
    const compressed = acceptsGzip(request.headers.get('accept-encoding')) ? gzip : undefined
    // Strong, so it differs between compressed and uncompressed bytes.
    const etag = compressed ? `"${hash}-gzip"` : `"${hash}"`
    const isCurrent = matchesEtag(request.headers.get('if-none-match'), etag)
    const own = {
      ...headers,
      'Content-Type': type,
      'Cache-Control': 'no-cache',
      ETag: etag,
      Vary: 'Accept-Encoding',
      ...(compressed && !isCurrent && { 'Content-Encoding': 'gzip' }),
    }
    return { status: isCurrent ? 304 : 200, body: isCurrent ? null : (compressed ?? bytes), headers: headersWith(own) }
  }
}

/** `gzip` is absent for a small file. */
async function load(read: Asset['read']) {
  const bytes = await read()
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)
  // Compressed once and sent often, so at the highest level.
  const compress = () => Bun.gzipSync(new Uint8Array(bytes), { library: 'libdeflate', level: 12 })
  return { bytes, hash, gzip: bytes.length < gzipBytesMin ? undefined : compress() }
}

/** The weak comparison that RFC 9110 prescribes for If-None-Match. */
function matchesEtag(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  const tags: readonly string[] = ifNoneMatch.match(/"[^"]*"/g) ?? []
  return ifNoneMatch.trim() === '*' || tags.includes(etag)
}

function acceptsGzip(acceptEncoding: string | null): boolean {
  return acceptEncoding !== null && /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(acceptEncoding)
}
