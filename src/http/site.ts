import type { Health } from './health.ts'
import type { Metrics } from './metrics.ts'
import { listServers, openApiDocument, type PublishedUrls } from './openapi.ts'
import { headersWith, plainText } from './response.ts'
import type { Route } from './router.ts'

/** A file for browsers or tools, which is the same for every client. */
interface Asset {
  readonly type: string
  read(): Promise<Uint8Array>
  /** Further response headers, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface SiteParts extends PublishedUrls {
  readonly pages: ReadonlyMap<string, Asset>
}

/** Everything outside of the version prefix. */
export function createSiteRoutes(parts: SiteParts, health: Health, metrics: Metrics): readonly Route[] {
  const document: Asset = {
    type: 'application/json',
    read: async () => new TextEncoder().encode(JSON.stringify(openApiDocument(listServers(parts)))),
  }
  const assets = [...parts.pages, ['/openapi.json', document] as const]
  const scrape: Route['handle'] = async () =>
    plainText(200, metrics.text(await health.isStoreUp()), 'text/plain; version=0.0.4')
  return [
    ...assets.map(([path, asset]) => createPublicRoute(path, serveAsset(asset))),
    createPublicRoute('/livez', async () => plainText(200, 'ok')),
    createPublicRoute('/readyz', () => health.readyz()),
    createPublicRoute('/healthz', () => health.healthz()),
    { method: 'GET', path: '/metrics', access: 'metrics', handle: scrape },
  ]
}

function createPublicRoute(path: string, handle: Route['handle']): Route {
  return { method: 'GET', path, access: 'public', handle }
}

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

async function load(read: Asset['read']) {
  const bytes = await read()
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)
  // Compressed once and sent often, so at the highest level.
  return { bytes, hash, gzip: Bun.gzipSync(new Uint8Array(bytes), { library: 'libdeflate', level: 12 }) }
}

/** The weak comparison that RFC 9110 prescribes for If-None-Match. */
function matchesEtag(ifNoneMatch: string | null, etag: string): boolean {
  const held = ifNoneMatch?.split(',').map(tag => tag.trim()) ?? []
  return [etag, `W/${etag}`, '*'].some(tag => held.includes(tag))
}

function acceptsGzip(acceptEncoding: string | null): boolean {
  return acceptEncoding !== null && /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(acceptEncoding)
}
