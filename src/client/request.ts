import * as errors from './errors.ts'
import { orUndefined, parseJson, readError } from './json.ts'
import type { Attempt, Settings } from './options.ts'

interface Call extends Pick<Attempt, 'operation' | 'method' | 'url'> {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Default: 200. */
  readonly successStatus?: number
  /** Not to be repeated after an attempt that may have been executed. */
  readonly onlyOnce?: boolean
  /** The error code that is a success after such an attempt. */
  readonly doneCode?: string
}

interface Received {
  readonly status: number
  readonly requestId: string | undefined
  readonly headers: Headers
  readonly bytes: ArrayBuffer
}

type Read<T> = (received: Received, mayBeExecuted: boolean) => T | errors.PetstoreError

/** Sends a request, with retries. Returns what `read` makes of a response, or throws the error that it returns. */
export async function send<T>(call: Call, settings: Settings, read: Read<T>): Promise<T> {
  const { operation, method, url } = call
  const { apiKey, signal, onAttempt } = settings
  if ([apiKey, encodeURIComponent(apiKey)].some(key => url.includes(key))) {
    throw new TypeError('The address contains the API key: remove it')
  }
  let mayBeExecuted = false
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted()
    const startMs = performance.now()
    const received = await exchange(call, settings)
    const durationMs = performance.now() - startMs
    const result = 'bytes' in received ? read(received, mayBeExecuted) : received
    const error = result instanceof errors.PetstoreError ? withOutcome(result, call) : undefined
    const retryInMs = error && waitMsBeforeRetry(error, attempt, settings.retries)
    const { status, requestId } = received
    const deprecation = 'bytes' in received ? readDeprecation(received.headers) : undefined
    const ended = { operation, method, url, attempt, durationMs, status, requestId, error, retryInMs, deprecation }
    // An async function, because a hook may also reject.
    ;(async () => onAttempt(ended))().catch(() => {})
    if (!(result instanceof errors.PetstoreError)) return result
    if (retryInMs === undefined) throw error
    if (isOutcomeUnknown(result)) mayBeExecuted = true
    await wait(retryInMs, signal)
  }
}

/** The error, or that the outcome of a call is unknown that must not be repeated. */
function withOutcome(error: errors.PetstoreError, { onlyOnce }: Call): errors.PetstoreError {
  if (!onlyOnce || !isOutcomeUnknown(error)) return error
  const message = `The change may be stored: fetch the animal, then decide (${error.message})`
  return new errors.OutcomeUnknownError(message, { ...error, code: 'outcome_unknown', cause: error })
}

/** From Deprecation (RFC 9745) and Sunset (RFC 8594). */
function readDeprecation(headers: Headers): Attempt['deprecation'] {
  if (!headers.has('deprecation') && !headers.has('sunset')) return undefined
  const sunset = new Date(headers.get('sunset') ?? '')
  return { sunset: Number.isNaN(sunset.getTime()) ? undefined : sunset }
}

/** Sends the request and receives the complete response, within the time-out. */
async function exchange(call: Call, settings: Settings): Promise<Received | errors.PetstoreError> {
  const { method, url, body } = call
  const { apiKey, fetch, timeoutMs, signal } = settings
  const controller = new AbortController()
  const abort = () => controller.abort()
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(abort, timeoutMs)
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: 'application/json', authorization: `Bearer ${apiKey}`, ...settings.headers, ...call.headers },
      ...(body !== undefined && { body }),
      // Following a redirect could send the key to another server, and would turn a POST into a GET.
      redirect: 'manual',
      signal: controller.signal,
    })
    const { status, headers } = response
    const bytes = await readBytes(response)
    const requestId = headers.get('x-request-id') ?? undefined
    if (bytes) return { status, requestId, headers, bytes }
    const message = `Unexpected response to ${method} ${url}: ${status}, more than ${bodyBytesMax} bytes or ${bodyChunksMax} chunks`
    return new errors.UnexpectedResponseError(message, { status, requestId, code: 'unexpected_response' })
  } catch (error) {
    signal?.throwIfAborted()
    const late = `No complete response from ${url} within ${timeoutMs} ms`
    if (controller.signal.aborted) return new errors.TemporaryError(late, { code: 'timeout' })
    const { message, code, name } = findInnermost(error)
    const reason = mask(String(message || code || name || error), apiKey)
    // Not the error itself: that of a fetch of the caller's may contain the key.
    const cause = typeof code === 'string' ? mask(code, apiKey) : undefined
    return new errors.TemporaryError(`Cannot reach ${url}: ${reason}`, { code: 'connection_failed', cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

/** A page of 100 animals takes less than 1.3 MB, even if the server escapes every character. */
export const bodyBytesMax = 16 * 1024 ** 2
/** Each chunk takes memory, however small it is. */
const bodyChunksMax = 100_000

/** Undefined if the body is longer. */
export async function readBytes(response: Response): Promise<ArrayBuffer | undefined> {
  // A fetch of the caller's may have no stream.
  if (!response.body?.getReader) return response.arrayBuffer()
  const reader = response.body.getReader()
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0
  for (let read = await reader.read(); read.value; read = await reader.read()) {
    length += read.value.length
    if (length > bodyBytesMax || chunks.push(read.value) > bodyChunksMax) return void reader.cancel().catch(() => {})
  }
  return new Blob(chunks).arrayBuffer()
}

/** For what a message repeats of the server's or of `fetch`'s words. */
function mask(text: string, apiKey: string): string {
  return text.replaceAll(apiKey, '***')
}

/** The message of Node's own error is only `fetch failed`: the reason is in its cause, which may have no message. */
function findInnermost(error: unknown): Partial<Readonly<Record<'message' | 'code' | 'name', unknown>>> {
  const { cause } = Object(error)
  return cause instanceof Error ? findInnermost(cause) : Object(error)
}

/** Undefined if the response has another shape. `body` is undefined for a 204. */
type ReadBody<T> = (body: unknown, headers: Headers) => T | undefined

/** Sends a request whose response is JSON, with retries. Throws a PetstoreError unless the response is a success. */
export function sendJson<T>(call: Call, settings: Settings, read: ReadBody<T>): Promise<T> {
  const { apiKey } = settings
  return send(call, settings, (received, mayBeExecuted) => {
    const { status, requestId, headers, bytes } = received
    // Drops the parser's error, which may quote the text.
    const json = orUndefined(() => parseJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
    const error = status >= 400 ? readError(json) : undefined
    const isDone = mayBeExecuted && error !== undefined && error.code === call.doneCode
    const result = isDone || status === (call.successStatus ?? 200) ? read(json, headers) : undefined
    if (result !== undefined) return result
    const retryAfterSeconds = readRetryAfter(headers.get('retry-after') ?? '')
    const details = { status, requestId, retryAfterSeconds, code: error?.code ?? 'unexpected_response' }
    const unexpected = `Unexpected response to ${call.method} ${call.url}: ${status}, ${describe(received, apiKey)}`
    const message = error ? mask(error.message, apiKey) : unexpected
    // Proxies send temporary errors with pages of their own.
    if (temporaryStatuses.includes(status) && !permanentCodes.includes(details.code)) {
      return new errors.TemporaryError(message, details)
    }
    if (!error) return new errors.UnexpectedResponseError(message, details)
    return status < 500 ? new errors.RefusedError(message, details) : new errors.PetstoreError(message, details)
  })
}

/** From a number of seconds or a date; undefined if it is neither. */
function readRetryAfter(text: string): number | undefined {
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds))
}

const temporaryStatuses = [408, 429, 502, 503, 504]
/** Codes of a 503 that only the operator can end. */
const permanentCodes = ['ids_exhausted', 'store_damaged']

function describe({ status, headers, bytes }: Received, apiKey: string): string {
  // Browsers report a redirect as status 0.
  if (status === 0 || (status >= 300 && status < 400)) {
    return `a redirect to ${mask(headers.get('location') ?? 'another address', apiKey)}; correct the base address`
  }
  // Masked before it is cut, so that no part of the key remains.
  const text = mask(new TextDecoder().decode(bytes), apiKey)
  const type = mask(headers.get('content-type') ?? 'no Content-Type', apiKey)
  return `${type}: ${JSON.stringify(text.slice(0, 80))}${text.length > 80 ? '…' : ''}`
}

/** No connection, or none with TLS. Node and Bun have these codes; browsers have none. */
const unsentCodes = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPROTO)$|CERT|ALTNAME|UNABLE_TO/

/** Whether the server may have executed the request, although it failed. With a 4xx, it says that it did not. */
function isOutcomeUnknown({ status = 0, cause }: errors.PetstoreError): boolean {
  return (status < 400 || status >= 500) && !unsentCodes.test(String(cause))
}

/** The longest wait before the first retry, doubled for each further one, and the longest that a server may ask for. */
const backoffMs = 250
const backoffMaxMs = 8_000
const retryAfterMaxMs = 60_000

/** Undefined if there is no further attempt. */
export function waitMsBeforeRetry(error: errors.PetstoreError, attemptsMade: number, retries: number) {
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000
  const mayRetry = error instanceof errors.TemporaryError && attemptsMade <= retries
  if (!mayRetry || retryAfterMs > retryAfterMaxMs) return undefined
  // The random part spreads the retries of many clients.
  return retryAfterMs + Math.random() * Math.min(backoffMaxMs, backoffMs * 2 ** (attemptsMade - 1))
}

/** Ends early when the signal is aborted; the next attempt then throws the signal's reason. */
function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
    if (signal?.aborted) end()
  })
}
