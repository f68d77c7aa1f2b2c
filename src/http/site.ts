import type { Health } from './health.ts'
import { openApiDocument, type PublishedUrls, publishedServers } from './openapi.ts'
import { headersWith, plainText } from './response.ts'
import type { Route } from './router.ts'

/** A file for browsers or tools, which is the same for every client. */
export interface Asset {
  readonly type: string
  read(): Promise<Uint8Array>
  /** Further response headers, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}

interface SiteParts {
  readonly health: Health
  readonly urls: PublishedUrls
  readonly pages: ReadonlyMap<string, Asset>
  metricsText(isStoreUp: boolean): string
}

/** Everything outside of the version prefix. */
export function siteRoutes({ health, urls, pages, metricsText }: SiteParts): readonly Route[] {
  const document: Asset = {
    type: 'application/json',
    read: async () => new TextEncoder().encode(JSON.stringify(openApiDocument(publishedServers(urls)))),
  }
  const assets = [...pages, ['/openapi.json', document] as const]
  const metrics: Route['handle'] = async () =>
    plainText(200, metricsText(await health.isStoreUp()), 'text/plain; version=0.0.4')
  return [
    ...assets.map(([path, asset]) => publicRoute(path, serveAsset(asset))),
    publicRoute('/livez', async () => plainText(200, 'ok')),
    publicRoute('/readyz', () => health.readyz()),
    publicRoute('/healthz', () => health.healthz()),
    { method: 'GET', path: '/metrics', access: 'metrics', handle: metrics },
  ]
}

function publicRoute(path: string, handle: Route['handle']): Route {
  return { method: 'GET', path, access: 'public', handle }
}

const gzipBytesMin = 256

/** Serves an asset, compressed if the client accepts that. Loaded on the first request, so that the start is quick. */
function serveAsset({ type, read, headers }: Asset): Route['handle'] {
  let loading: ReturnType<typeof load> | undefined
  return async ({ request }) => {
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
