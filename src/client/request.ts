import * as errors from './errors.ts'
import type { DeprecationNotice, OperationName, RateLimit } from './headers.ts'
import { readDeprecation, readRateLimit, readRetryAfter } from './headers.ts'
import { InvalidResponse, orUndefined, parseJson, readError } from './json.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface CallOptions {
  /** Aborts the call, also between attempts. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Time for each attempt, until its response is complete. Default: of a client 30,000, of a call the client's. */
  readonly timeoutMs?: number | undefined
  /** How many attempts may follow the first. Default: of a client 2, of a call the client's. */
  readonly retries?: number | undefined
  /** Such as `traceparent`, but none that the client or `fetch` sets. A call's headers override the client's. */
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined
}

export interface RequestAttempt {
  readonly operation: OperationName
  readonly method: string
  readonly url: string
  /** Only Content-Type and Idempotency-Key, if the client adds them. */
  readonly requestHeaders: Fields
  /** Undefined without a body. */
  readonly requestBody: string | undefined
  /** 1 for the first attempt, 2 for the first retry. */
  readonly attempt: number
}

/** The response to a call. */
export interface ResponseDetails {
  readonly status: number
  /** Identifies the request in the operator's log. */
  readonly requestId: string | undefined
  /** Undefined if the service has no rate limit. */
  readonly rateLimit: RateLimit | undefined
  readonly headers: Headers
}

/** The response to `client.request`, whatever its status. */
export interface RawResponse extends ResponseDetails {
  readonly statusText: string
  /** The body as it came. */
  readonly text: string
}

export interface ResponseAttempt extends RequestAttempt, ResponseDetails {
  /** From the start of the attempt until its response was complete. */
  readonly durationMs: number
}

export interface RequestOptions extends Omit<CallOptions, 'signal'> {
  readonly apiKey: string
  /** The longest wait before the first retry; doubled for each further one. The actual wait is random. Default: 250. */
  readonly backoffMs?: number | undefined
  /** The longest wait before any retry. Default: 8,000. */
  readonly backoffMaxMs?: number | undefined
  /** If the server asks with Retry-After for a longer wait, the call fails. Default: 60,000. */
  readonly retryAfterMaxMs?: number | undefined
  /** Called and awaited before each attempt. If it throws, nothing is sent and the call rejects with that error. */
  readonly onRequest?: ((request: RequestAttempt) => unknown) | undefined
  /** Called and awaited for each complete response. If it throws, the call rejects with that error. */
  readonly onResponse?: ((response: ResponseAttempt) => unknown) | undefined
  /** Called and awaited before the wait for each retry. If it throws, the call rejects with that error. */
  readonly onRetry?: ((retry: { readonly error: errors.PetstoreError; readonly waitMs: number }) => unknown) | undefined
  /** Like `onResponse`, for each response with Deprecation or Sunset. */
  readonly onDeprecation?: ((notice: DeprecationNotice) => unknown) | undefined
  /** Replaces the runtime's own fetch. */
  readonly fetch?: Fetch | undefined
}

type Settings = { readonly [Name in keyof RequestOptions]-?: NonNullable<RequestOptions[Name]> }
export type RequestSettings = Omit<Settings, 'headers'> & Pick<CallOptions, 'signal'> & { readonly headers: Fields }
type Fields = Readonly<Record<string, string>>

interface Call extends Pick<RequestAttempt, 'operation' | 'method' | 'url'> {
  readonly headers?: Fields
  readonly body?: string | undefined
}

interface OperationCall extends Call {
  /** Default: 200. */
  readonly successStatus?: number
  /** Not to be repeated after an attempt that may have been executed. */
  readonly onlyOnce?: boolean
  /** The error code that is a success after such an attempt. */
  readonly doneCode?: string
}

/** `body` is undefined for a 204. Throws {@link InvalidResponse} for a response of another shape. */
type Read<T> = (body: unknown, headers: Headers) => T

interface Received {
  readonly response: Response
  readonly details: ResponseDetails
  readonly bytes: ArrayBuffer
}

/** Weak and outside of the animals, so that these stay plain objects. */
const responses = new WeakMap<object, ResponseDetails>()

/** The response that a call got for this animal or page; undefined for a copy and for an animal of a page. */
export function responseOf(petOrPage: object): ResponseDetails | undefined {
  return responses.get(petOrPage)
}

/** Sends a request, with retries. Returns what `read` makes of the response. */
export async function send<T>(call: OperationCall, settings: RequestSettings, read: Read<T>): Promise<T> {
  let mayBeExecuted = false
  for (let attempt = 1; ; attempt++) {
    const received = await attemptOnce(call, settings, attempt)
    const result =
      received instanceof errors.PetstoreError ? received : readResult(call, received, settings.apiKey, read)
    if (!(result instanceof errors.PetstoreError)) return result
    if (mayBeExecuted && result.code === call.doneCode) return read(undefined, new Headers())
    mayBeExecuted ||= isOutcomeUnknown(result)
    if (mayBeExecuted && call.onlyOnce) {
      const message = `The change may be stored: fetch the animal, then decide (${result.message})`
      throw new errors.OutcomeUnknownError(message, { ...result, code: 'outcome_unknown', cause: result })
    }
    const waitMs = waitMsBeforeRetry(result, attempt, settings)
    if (waitMs === undefined) throw result
    await settings.onRetry({ error: result, waitMs })
    await wait(waitMs, settings.signal)
  }
}

/** Sends a request once. Returns any response. */
export async function sendOnce(call: Call, settings: RequestSettings): Promise<RawResponse> {
  const received = await attemptOnce(call, settings, 1)
  if (received instanceof errors.PetstoreError) throw received
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(received.bytes)
  return { ...received.details, statusText: received.response.statusText, text }
}

/** Returns a failure instead of throwing it: a thrown error is a hook's or the signal's, and ends the call. */
async function attemptOnce(call: Call, settings: RequestSettings, attempt: number) {
  const { operation, method, url, body } = call
  const { signal } = settings
  signal?.throwIfAborted()
  // Not the caller's own headers, which may be secret.
  const request = { operation, method, url, requestHeaders: call.headers ?? {}, requestBody: body, attempt }
  await settings.onRequest(request)
  // A hook may have aborted it.
  signal?.throwIfAborted()
  const startMs = performance.now()
  const received = await exchange(call, settings)
  if (received instanceof errors.PetstoreError) return received
  const { details } = received
  await settings.onResponse({ ...request, ...details, durationMs: performance.now() - startMs })
  const notice = readDeprecation(operation, details.headers, url)
  if (notice) await settings.onDeprecation(notice)
  signal?.throwIfAborted()
  return received
}

/** Sends the request and receives the complete response, within the time-out. */
async function exchange(call: Call, settings: RequestSettings): Promise<Received | errors.PetstoreError> {
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
    const bytes = await readBytes(response)
    const details = readDetails(response)
    if (bytes) return { response, details, bytes }
    const { status, requestId } = details
    const message = `Unexpected response to ${method} ${url}: ${status}, more than ${bodyBytesMax} bytes or ${bodyChunksMax} chunks`
    return new errors.UnexpectedResponseError(message, { status, requestId, code: 'unexpected_response' })
  } catch (error) {
    signal?.throwIfAborted()
    const late = `No complete response from ${url} within ${timeoutMs} ms`
    if (controller.signal.aborted) return new errors.TimeoutError(late, { code: 'timeout' })
    const message = `Cannot reach ${url}: ${mask(findReason(error), apiKey)}`
    return new errors.ConnectionError(message, { code: 'connection_failed', cause: error })
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

function readDetails({ status, headers }: Response): ResponseDetails {
  const requestId = headers.get('x-request-id') ?? undefined
  return { status, requestId, rateLimit: readRateLimit(headers), headers }
}

/** Messages show URLs, but never the key. A service has no key of less than 16 characters. */
export function hasKey(text: string, apiKey: string): boolean {
  return apiKey.length >= 16 && text.includes(apiKey)
}

/** For what a message repeats of the server's or of `fetch`'s words. */
function mask(text: string, apiKey: string): string {
  return hasKey(text, apiKey) ? text.replaceAll(apiKey, '***') : text
}

/** Node's own message is only `fetch failed`: the reason is in its cause, which may have a code and no message. */
function findReason(error: unknown): string {
  const { message, code, name } = findInnermost(error)
  return String(message || code || name || error)
}

function findInnermost(error: unknown): Partial<Readonly<Record<'message' | 'code' | 'name', unknown>>> {
  const { cause } = Object(error)
  return cause instanceof Error ? findInnermost(cause) : Object(error)
}

/** An error unless the response is a success. */
function readResult<T>(call: OperationCall, received: Received, apiKey: string, read: Read<T>) {
  const { response, bytes } = received
  // Undefined if it is not UTF-8.
  const text = orUndefined(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  const { status, requestId, rateLimit, headers } = received.details
  const retryAfterSeconds = readRetryAfter(response.headers.get('retry-after'), new Date())
  const known = { status, requestId, retryAfterSeconds, rateLimit }
  const unexpected = (problem: string, ErrorClass: typeof errors.PetstoreError = errors.UnexpectedResponseError) => {
    const message = `Unexpected response to ${call.method} ${call.url}: ${status}, ${mask(problem, apiKey)}`
    return new ErrorClass(message, { ...known, code: 'unexpected_response' })
  }
  // Browsers report a redirect as this type with status 0.
  if (response.type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(status)) {
    return unexpected(`a redirect to ${headers.get('location') ?? 'another address'}; correct the base address`)
  }
  const isJson = /^application\/json *(?:;|$)/i.test(headers.get('content-type') ?? '')
  // Drops the parser's error, which may quote the text.
  const json = orUndefined(() => parseJson((isJson && text) || ''))
  if (status >= 400) {
    const ErrorClass = errorClasses.get(status) ?? (status < 500 ? errors.InvalidRequestError : errors.ServerError)
    const error = readError(json)
    if (error) return new ErrorClass(mask(error.message, apiKey), { ...known, code: error.code })
    const problem = `the body is not an Error ${describe(headers, text, apiKey)}`
    // Proxies send these with pages of their own.
    return [429, 502, 503, 504].includes(status) ? unexpected(problem, ErrorClass) : unexpected(problem)
  }
  const { successStatus = 200 } = call
  if (status !== successStatus) return unexpected(`expected ${successStatus}`)
  if (json === undefined && status !== 204) return unexpected(`the body is not JSON ${describe(headers, text, apiKey)}`)
  try {
    const result = read(json, response.headers)
    if (typeof result === 'object' && result !== null) responses.set(result, received.details)
    return result
  } catch (error) {
    if (error instanceof InvalidResponse) return unexpected(error.message)
    throw error
  }
}

const errorClasses = new Map<number, typeof errors.PetstoreError>([
  [401, errors.UnauthorizedError],
  [403, errors.ForbiddenError],
  [404, errors.NotFoundError],
  [408, errors.TimeoutError],
  [409, errors.ConflictError],
  [429, errors.RateLimitedError],
  [502, errors.ServiceUnavailableError],
  [503, errors.ServiceUnavailableError],
  [504, errors.ServiceUnavailableError],
])

/** The start of the body. Masked before it is cut, so that no part of the key remains. */
function describe(headers: Headers, text: string | undefined, apiKey: string): string {
  const type = headers.get('content-type') ?? 'no Content-Type'
  if (text === undefined) return `(${type}, not UTF-8)`
  const masked = mask(text, apiKey)
  return `(${type}): ${JSON.stringify(masked.slice(0, 80))}${masked.length > 80 ? '…' : ''}`
}

/** Codes of a 503 that only the operator can end. */
const permanent = ['ids_exhausted', 'store_damaged']
const temporary = [errors.ConnectionError, errors.TimeoutError, errors.RateLimitedError, errors.ServiceUnavailableError]

/** No connection, or none with TLS. Node and Bun have these codes; browsers have none. */
const unsentCodes = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPROTO)$|CERT|ALTNAME|UNABLE_TO/

/** Whether the server may have executed the request, although it failed. With a 4xx, it says that it did not. */
function isOutcomeUnknown({ status = 0, cause }: errors.PetstoreError): boolean {
  return (status < 400 || status >= 500) && !unsentCodes.test(String(findInnermost(cause).code))
}

/** Undefined if there is no further attempt. */
export function waitMsBeforeRetry(error: errors.PetstoreError, attemptsMade: number, settings: RequestSettings) {
  const { retries, backoffMs, backoffMaxMs, retryAfterMaxMs } = settings
  const isTemporary = !permanent.includes(error.code) && temporary.some(ErrorClass => error instanceof ErrorClass)
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000
  if (!isTemporary || attemptsMade > retries || retryAfterMs > retryAfterMaxMs) return undefined
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
