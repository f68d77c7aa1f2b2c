import type { Awaitable } from '../store.ts'
import { type Authenticator, permissionRefusal } from './auth.ts'
import type { Health } from './health.ts'
import { openApiDocument, type PublishedUrls, publishedServers } from './openapi.ts'
import type { RequestContext } from './request.ts'
import { headersWith, plainText, type Reply } from './response.ts'

/** A file for browsers or tools, which is the same for every client. */
export interface Asset {
  readonly type: string
  read(): Promise<Uint8Array>
  /** Further response headers, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Serves GET and HEAD at one path outside of the version prefix. */
export type SiteHandler = (context: RequestContext) => Awaitable<Reply>

export interface SiteParts extends PublishedUrls {
  readonly health: Health
  readonly authenticator: Authenticator
  readonly pages?: ReadonlyMap<string, Asset> | undefined
  metricsText(isStoreUp: boolean): string
}

/** Everything outside of the version prefix, by path. Only the metrics need a key. */
export function siteHandlers(parts: SiteParts): ReadonlyMap<string, SiteHandler> {
  const document: Asset = {
    type: 'application/json',
    read: async () => new TextEncoder().encode(JSON.stringify(openApiDocument(publishedServers(parts)))),
  }
  const assets = new Map(parts.pages).set('/openapi.json', document)
  return new Map<string, SiteHandler>([
    ...[...assets].map(([path, asset]) => [path, serveAsset(asset)] as const),
    ['/livez', () => plainText(200, 'ok')],
    ['/readyz', () => parts.health.readyz()],
    ['/healthz', () => parts.health.healthz()],
    ['/metrics', context => metricsReply(parts, context)],
  ])
}

async function metricsReply(parts: SiteParts, context: RequestContext): Promise<Reply> {
  const refusal = (await parts.authenticator.authenticate(context)) ?? permissionRefusal(context.caller, 'metrics')
  if (refusal) return refusal
  return plainText(200, parts.metricsText(await parts.health.isStoreUp()), '; version=0.0.4')
}

const gzipBytesMin = 1_024

/** Bytes and their strong ETag, which differs between compressed and uncompressed bytes. */
interface Representation {
  readonly bytes: Uint8Array
  readonly etag: string
}

interface Representations {
  readonly plain: Representation
  /** Absent if compression gains nothing. */
  readonly gzip?: Representation
}

/** Serves an asset, compressed if the client accepts that. Read on the first request, so that the start is quick. */
function serveAsset({ type, read, headers }: Asset): SiteHandler {
  let loading: Promise<Representations> | undefined
  return async ({ request }) => {
    loading ??= read()
      .then(representationsOf)
      .catch(cause => {
        // The next request tries again.
        loading = undefined
        throw cause
      })
    const { plain, gzip } = await loading
    const compressed = gzip !== undefined && acceptsGzip(request.headers.get('accept-encoding'))
    const { bytes, etag } = compressed ? gzip : plain
    const isCurrent = matchesEtag(request.headers.get('if-none-match'), etag)
    const own = {
      ...headers,
      'Content-Type': type,
      'Cache-Control': 'no-cache',
      ETag: etag,
      Vary: 'Accept-Encoding',
      ...(compressed && !isCurrent && { 'Content-Encoding': 'gzip' }),
    }
    return { status: isCurrent ? 304 : 200, body: isCurrent ? null : bytes, headers: headersWith(own) }
  }
}

function representationsOf(bytes: Uint8Array): Representations {
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)
  const plain = { bytes, etag: `"${hash}"` }
  if (bytes.length < gzipBytesMin) return { plain }
  return { plain, gzip: { bytes: Bun.gzipSync(new Uint8Array(bytes)), etag: `"${hash}-gzip"` } }
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
