import { show } from '../field.ts'
import { readJson } from '../json.ts'
import { withTimeout } from '../timeout.ts'
import { bodyBytesMax, bodyPiecesMax } from './operations.ts'
import { errorReply, type Reply } from './response.ts'

type ReadBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly refusal: Reply }

/**
 * Reads a JSON body that has to arrive within `bodyMs`. Checks media type, size, UTF-8 and JSON, in this order. A
 * missing body is reported before its type.
 */
export async function readJsonBody(request: Request, bodyMs: number): Promise<ReadBody> {
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  // `request.body` creates a stream, which costs more than a body of known length: ask only without a length.
  const body = Number.isNaN(length) ? request.body : undefined
  if (length === 0 || body === null) return refuse(missingBody())
  const typeRefusal = mediaTypeRefusal(request.headers)
  // Without a length, only reading shows whether the body is missing.
  if (typeRefusal && !body) return refuse(typeRefusal)
  if (length > bodyBytesMax) return refuse(tooLarge())
  const reading = body ? readChunks(body, request.signal) : request.bytes()
  const bytes = await withTimeout(reading, bodyMs, () => 'late' as const)
  if (bytes === 'late') {
    const message = `The body arrived too slowly: expected all of it within ${bodyMs / 1_000} s`
    return refuse(errorReply('request_timeout', message, { Connection: 'close' }))
  }
  if (!(bytes instanceof Uint8Array)) return refuse(typeRefusal ?? bytes)
  if (bytes.length === 0) return refuse(missingBody())
  return typeRefusal ? refuse(typeRefusal) : parse(bytes)
}

// Unlike request.text(), which replaces invalid bytes.
const utf8 = new TextDecoder('utf-8', { fatal: true })

function parse(bytes: Uint8Array): ReadBody {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return refuse(errorReply('invalid_json', 'The body is not valid UTF-8'))
  }
  const parsed = readJson(text)
  if (parsed.ok) return parsed
  const where = parsed.at ? ` at line ${parsed.at.line}, column ${parsed.at.column}` : ''
  return refuse(errorReply('invalid_json', `The body is not valid JSON: ${parsed.problem}${where}`))
}

/** All bytes of a body without a known length, or the refusal of one that is too large or in too many pieces. */
async function readChunks(body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<Uint8Array | Reply> {
  const pieces: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.byteLength
    pieces.push(read.value)
    if (length > bodyBytesMax || pieces.length > bodyPiecesMax) {
      // Not cancelled: discardBody may have to read the rest.
      reader.releaseLock()
      return length > bodyBytesMax ? tooLarge() : tooManyPieces()
    }
  }
  reader.releaseLock()
  // Bun refuses a trailer with 400 one event-loop tick after the end of the body: do not create an animal then.
  await new Promise(setImmediate)
  signal.throwIfAborted()
  return Buffer.concat(pieces)
}

const discardedBytesMax = 16 * 1024 ** 2
/** A body in more pieces than this, and in pieces of less than 1 KiB, is discarded patiently or not at all. */
const quickPiecesMax = 1_024
const patientBytesMax = 256 * 1024
const patientPauseMs = 5

/**
 * Reads and drops the rest of a body, and returns whether it has ended; if not, the connection has to be closed.
 * Closing it with unread data resets it, and the client may not receive the response (RFC 9112, section 9.6).
 */
export async function discardBody({ body }: Request, discardMs: number, isPatient: () => boolean): Promise<boolean> {
  if (!body) return true
  if (body.locked) return false
  const reader = body.getReader()
  let late = false
  const timer = setTimeout(() => {
    late = true
    void reader.cancel().catch(() => {})
  }, discardMs)
  try {
    let bytes = 0
    let pieces = 0
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      bytes += read.value.byteLength
      pieces++
      if (bytes > discardedBytesMax) return false
      if (pieces > quickPiecesMax + bytes / 1024) return isPatient() && (await discardPatiently(reader)) && !late
    }
    return !late
  } catch {
    // The client closed the connection.
    return false
  } finally {
    clearTimeout(timer)
  }
}

/** Bun joins the pieces that arrive during a pause, which costs a tenth of reading them one by one. */
async function discardPatiently(reader: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read'>): Promise<boolean> {
  for (let bytes = 0; bytes <= patientBytesMax; ) {
    await Bun.sleep(patientPauseMs)
    const { done, value } = await reader.read()
    if (done) return true
    bytes += value.byteLength
  }
  return false
}

/** A missing Content-Type means JSON. Parameters are allowed; the body is UTF-8 in any case. */
function mediaTypeRefusal(headers: Headers): Reply | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding !== null) {
    const message = `Content-Encoding is ${show(encoding)}: send the body uncompressed`
    return errorReply('unsupported_content_encoding', message, { 'Accept-Encoding': 'identity' })
  }
  const type = headers.get('content-type')
  if (!type || /^\s*application\/json\s*(?:;[^,]*)?$/i.test(type)) return undefined
  const message = `Content-Type is ${show(type)}: expected application/json`
  return errorReply('unsupported_media_type', message, { Accept: 'application/json' })
}

function missingBody(): Reply {
  return errorReply('missing_body', 'The body is missing: expected a JSON object with name and categoryId')
}

function tooLarge(): Reply {
  return errorReply('body_too_large', `The body is too large: expected at most ${bodyBytesMax} bytes`)
}

function tooManyPieces(): Reply {
  const message = `The body is in more than ${bodyPiecesMax} pieces: send larger chunks, or Content-Length`
  return errorReply('body_too_large', message, { Connection: 'close' })
}

function refuse(refusal: Reply): ReadBody {
  return { ok: false, refusal }
}
