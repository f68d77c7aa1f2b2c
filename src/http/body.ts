import { oneOfText, show } from '../field.ts'
import { readJson } from '../json.ts'
import { withTimeout } from '../timeout.ts'
import { type BodyRow, bodyBytesMax, bodyPiecesMax, bodySecondsMax } from './operations.ts'
import { Refusal } from './response.ts'

/** Checks media type, size, UTF-8 and JSON, in this order. A missing body is reported before its type. */
export async function readJsonBody(request: Request, row: BodyRow): Promise<unknown> {
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  // `request.body` creates a stream, which costs more than a body of known length: ask only without a length.
  const body = Number.isNaN(length) ? request.body : undefined
  if (length === 0 || body === null) throw new Refusal('missing_body')
  if (!body) checkMediaType(request.headers, row)
  if (length > bodyBytesMax) throw new Refusal('body_too_large')
  const reading = body ? readChunks(body, request, row) : request.bytes()
  const bytes = await withTimeout(reading, bodySecondsMax * 1_000, () => {
    throw new Refusal('request_timeout', undefined, { Connection: 'close' })
  })
  if (bytes.length === 0) throw new Refusal('missing_body')
  const parsed = readJson(decode(bytes))
  if (parsed.ok) return parsed.value
  const where = parsed.at ? ` at line ${parsed.at.line}, column ${parsed.at.column}` : ''
  throw new Refusal('invalid_json', `The body is not valid JSON: ${parsed.problem}${where}`)
}

// Unlike request.text(), which replaces invalid bytes.
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new Refusal('invalid_json', 'The body is not valid UTF-8')
  }
}

/** All bytes of a body without a known length, unless it is too large or in too many pieces. */
async function readChunks(body: ReadableStream<Uint8Array>, { headers, signal }: Request, row: BodyRow) {
  const pieces: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      // Only now it is known that the body is not missing.
      if (pieces.length === 0) checkMediaType(headers, row)
      length += read.value.byteLength
      pieces.push(read.value)
      if (length > bodyBytesMax) throw new Refusal('body_too_large')
      if (pieces.length > bodyPiecesMax) throw new Refusal('body_too_large', undefined, { Connection: 'close' })
    }
  } finally {
    // Not cancelled: the rest may have to be discarded.
    reader.releaseLock()
  }
  // Bun refuses a trailer with 400 one event-loop tick after the end of the body: do not create an animal then.
  await new Promise(setImmediate)
  signal.throwIfAborted()
  return Buffer.concat(pieces)
}

/** A missing Content-Type means JSON. Parameters are allowed; the body is UTF-8 in any case. */
function checkMediaType(headers: Headers, { mediaTypes, mediaTypesHeader }: BodyRow): void {
  const encoding = headers.get('content-encoding')
  if (encoding !== null) {
    const message = `Content-Encoding is ${show(encoding)}: send the body uncompressed`
    throw new Refusal('unsupported_content_encoding', message, { 'Accept-Encoding': 'identity' })
  }
  const sent = headers.get('content-type')
  if (!sent) return
  const [type = '', parameters = ''] = sent.split(/;(.*)/s)
  if (mediaTypes.includes(type.trim().toLowerCase()) && !parameters.includes(',')) return
  const message = `Content-Type is ${show(sent)}: expected ${oneOfText(mediaTypes)}`
  throw new Refusal('unsupported_media_type', message, { [mediaTypesHeader]: mediaTypes.join(', ') })
}
