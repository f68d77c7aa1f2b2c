import { show } from '../field.ts'
import { parseJson } from '../int64.ts'
import { type Answer, problem } from './answer.ts'

export const bodyBytesMax = 64 * 1024

/** A whole body has to be here by then; the server's idle time-out alone is satisfied by a byte now and then. */
const bodyMs = 10_000

export type ReadBody =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly answer: Answer }

/** Reads a JSON body: media type, then size, then encoding, then JSON; each failure is its own answer. */
export async function readJsonBody(request: Request): Promise<ReadBody> {
  // What the headers say alone is judged before a byte is read; only an empty body comes first, whatever its type.
  const announced = Number(request.headers.get('content-length') ?? Number.NaN)
  if (announced === 0 || isBodyless(request, announced)) return refused(missingBody())
  const refusal = mediaTypeRefusal(request.headers)
  if (refusal && announced > 0) return refused(refusal)
  if (announced > bodyBytesMax) return refused(tooLarge())
  const bytes = await withinTime(readBytes(request, announced))
  if (bytes === 'late') return refused(tooSlow())
  if (bytes?.length === 0) return refused(missingBody())
  if (refusal) return refused(refusal)
  return bytes ? parse(bytes) : refused(tooLarge())
}

/** Asking a Request for its body makes a stream of it, which takes longer to read than the body: not where one is announced. */
function isBodyless(request: Request, announced: number): boolean {
  return Number.isNaN(announced) && request.body === null
}

// A Request's own text() would replace invalid bytes and keep a name that nobody sent.
const utf8 = new TextDecoder('utf-8', { fatal: true })

function parse(bytes: Uint8Array): ReadBody {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return refused(problem('invalid_json', 'Cannot read the body: expected UTF-8, found bytes that are not'))
  }
  const parsed = parseJson(text)
  if (parsed.ok) return parsed
  return refused(problem('invalid_json', `Cannot read the body as JSON: ${parsed.problem}`))
}

/** All bytes of the body; undefined as soon as they are too many. */
function readBytes(request: Request, announced: number): Promise<Uint8Array | undefined> {
  return announced > 0 ? request.bytes() : readChunks(request)
}

async function withinTime<T>(work: Promise<T>): Promise<T | 'late'> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>()
  const timer = setTimeout(resolve, bodyMs, 'late')
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    // Whoever was too slow may also hang up later: nobody listens to that any more.
    work.catch(() => {})
  }
}

async function readChunks({ body, signal }: Request): Promise<Uint8Array | undefined> {
  if (!body) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.byteLength
    if (length > bodyBytesMax) {
      // Not cancelled: discardBody may have to read on.
      reader.releaseLock()
      return undefined
    }
    chunks.push(read.value)
  }
  // Bun refuses a trailer, with a 400 of its own, only after it has handed on the body: on the next turn that shows.
  await new Promise(setImmediate)
  signal.throwIfAborted()
  return Buffer.concat(chunks)
}

const discardedBytesMax = 16 * 1024 ** 2
const discardMs = 5_000

/**
 * Reads and drops the rest of a body, and says whether it has ended. Closing a connection with unread data resets it: the
 * client would see a broken connection instead of the response (RFC 9112, section 9.6).
 */
export async function discardBody({ body }: Request): Promise<boolean> {
  if (!body || body.locked) return true
  const reader = body.getReader()
  let late = false
  const timer = setTimeout(() => {
    late = true
    void reader.cancel().catch(() => {})
  }, discardMs)
  try {
    let discarded = 0
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      discarded += read.value.byteLength
      if (discarded > discardedBytesMax) return false
    }
    return !late
  } catch {
    // The client closed the connection.
    return false
  } finally {
    clearTimeout(timer)
  }
}

/** No Content-Type is taken as JSON; parameters such as charset are allowed, the body is UTF-8 in any case. */
function mediaTypeRefusal(headers: Headers): Answer | undefined {
  const encoding = headers.get('content-encoding')
  if (encoding !== null) {
    const message = `Cannot read a body with Content-Encoding ${show(encoding)}: expected none`
    return problem('unsupported_content_encoding', message, { 'Accept-Encoding': 'identity' })
  }
  const type = headers.get('content-type')
  if (!type || /^\s*application\/json\s*(?:;[^,]*)?$/i.test(type)) return undefined
  const message = `Cannot read a body of type ${show(type)}: expected application/json`
  return problem('unsupported_media_type', message, { Accept: 'application/json' })
}

function missingBody(): Answer {
  return problem('missing_body', 'The body is missing: expected a JSON object with name and categoryId')
}

function tooSlow(): Answer {
  const message = `The body came too slowly: expected all of it within ${bodyMs / 1_000} s`
  return problem('request_timeout', message, { Connection: 'close' })
}

function tooLarge(): Answer {
  return problem('body_too_large', `The body is too large: expected at most ${bodyBytesMax} bytes`)
}

function refused(answer: Answer): ReadBody {
  return { ok: false, answer }
}
