import type { Asset } from '../asset.ts'
import type { Awaitable } from '../awaitable.ts'
import type { Answer } from './answer.ts'

/** What stands beside the interface, by its path: it takes GET and HEAD, and needs no key unless it asks for one itself. */
export type Site = ReadonlyMap<string, (request: Request) => Awaitable<Answer>>

const gzipBytesMin = 1_024

/** Serves an asset compressed where the client takes that, and not at all where the client has it already. */
export function serveAsset({ type, read, headers }: Asset): (request: Request) => Promise<Answer> {
  let copies: Promise<Copies> | undefined
  return async request => {
    // Made when they are first asked for: a start does not wait for what perhaps nobody looks at.
    copies ??= read().then(copiesOf)
    const { bytes, zipped, etag } = await copies
    const typed = {
      ...headers,
      'Content-Type': type,
      ETag: etag,
      'Cache-Control': 'no-cache',
      Vary: 'Accept-Encoding',
    }
    if (holds(request.headers.get('if-none-match'), etag)) return { status: 304, body: null, headers: typed }
    if (!zipped || !takesGzip(request.headers.get('accept-encoding')))
      return { status: 200, body: bytes, headers: typed }
    return { status: 200, body: zipped, headers: { ...typed, 'Content-Encoding': 'gzip' } }
  }
}

interface Copies {
  readonly bytes: Uint8Array
  /** Absent where it would gain nothing. */
  readonly zipped?: Uint8Array
  readonly etag: string
}

function copiesOf(bytes: Uint8Array): Copies {
  const etag = `"${new Bun.CryptoHasher('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
  if (bytes.length < gzipBytesMin) return { bytes, etag }
  return { bytes, etag, zipped: Bun.gzipSync(new Uint8Array(bytes)) }
}

function holds(ifNoneMatch: string | null, etag: string): boolean {
  return ifNoneMatch !== null && (ifNoneMatch.trim() === '*' || ifNoneMatch.includes(etag))
}

function takesGzip(acceptEncoding: string | null): boolean {
  return acceptEncoding !== null && /(?:^|[\s,])gzip(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(acceptEncoding)
}
