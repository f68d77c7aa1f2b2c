import type { Asset } from '../asset.ts'
import type { Awaitable } from '../store.ts'
import type { Answer } from './answer.ts'
import type { Passage } from './observe.ts'

/** What stands beside the interface, by its path: it takes GET and HEAD, and needs no key unless it asks for one itself. */
export type Site = ReadonlyMap<string, (request: Request, passage: Passage) => Awaitable<Answer>>

const gzipBytesMin = 1_024

/** Serves an asset compressed where the client takes that, and not at all where the client has it already. */
export function serveAsset({ type, read, headers }: Asset): (request: Request) => Promise<Answer> {
  let copies: Promise<Copies> | undefined
  return async request => {
    // Made for the first request, so that a start does not wait for them. A failure is not remembered.
    copies ??= read()
      .then(copiesOf)
      .catch(cause => {
        copies = undefined
        throw cause
      })
    const { plain, zipped } = await copies
    const isZipped = zipped !== undefined && takesGzip(request.headers.get('accept-encoding'))
    const { bytes, etag } = isZipped ? zipped : plain
    const typed = {
      ...headers,
      'Content-Type': type,
      ETag: etag,
      'Cache-Control': 'no-cache',
      Vary: 'Accept-Encoding',
    }
    if (matches(request.headers.get('if-none-match'), etag))
      return { status: 304, body: null, headers: typed }
    return { status: 200, body: bytes, headers: isZipped ? { ...typed, 'Content-Encoding': 'gzip' } : typed }
  }
}

/** Bytes and their strong ETag: compressed or not, other bytes have another one. */
interface Copy {
  readonly bytes: Uint8Array
  readonly etag: string
}

interface Copies {
  readonly plain: Copy
  /** Absent if it would gain nothing. */
  readonly zipped?: Copy
}

function copiesOf(bytes: Uint8Array): Copies {
  const hash = new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)
  const plain = { bytes, etag: `"${hash}"` }
  if (bytes.length < gzipBytesMin) return { plain }
  return { plain, zipped: { bytes: Bun.gzipSync(new Uint8Array(bytes)), etag: `"${hash}-gzip"` } }
}

/** The weak comparison that RFC 9110 wants for If-None-Match: `*`, or a list that holds the tag. */
function matches(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  const tags: readonly string[] = ifNoneMatch.match(/"[^"]*"/g) ?? []
  return ifNoneMatch.trim() === '*' || tags.includes(etag)
}

function takesGzip(acceptEncoding: string | null): boolean {
  return acceptEncoding !== null && /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(acceptEncoding)
}
