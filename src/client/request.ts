import * as errors from './errors.ts'
import { type DeprecationNotice, type OperationName, readDeprecation, readRetryAfter } from './headers.ts'
import { InvalidResponse, parseJson, readError } from './json.ts'
import { mask, type ResponseDetails, readDetails } from './response.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, also between attempts. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Default: the client's `timeoutMs`. */
  readonly timeoutMs?: number | undefined
  /** Default: the client's `retries`. */
  readonly retries?: number | undefined
  /**
   * Further headers, such as `traceparent` or `Prefer`, but none that the client or `fetch` sets. A call's headers
   * override the client's.
   */
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined
}

/** One attempt of a call. */
export interface RequestAttempt {
  readonly operation: OperationName
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** 1 for the first attempt, 2 for the first retry. */
  readonly attempt: number
}

/** The response to one attempt. */
export interface ResponseAttempt extends RequestAttempt, ResponseDetails {
  /** From the start of the attempt until its response was complete. */
  readonly durationMs: number
}

/** Options of every client. */
export interface RequestOptions {
  readonly apiKey: string
  /** Time for each attempt, until its response is complete. Default: 30,000. */
  readonly timeoutMs?: number | undefined
  /** How many attempts may follow the first. Default: 2. */
  readonly retries?: number | undefined
  /** The longest wait before the first retry; it doubles for each further one. The actual wait is random. Default: 250. */
  readonly backoffMs?: number | undefined
  /** The longest wait before any retry. Default: 8,000. */
  readonly backoffMaxMs?: number | undefined
  /** If the server asks with Retry-After for a longer wait, the call fails. Default: 60,000. */
  readonly retryAfterMaxMs?: number | undefined
  /** Called and awaited before each attempt. If it throws, nothing is sent and the call rejects with that error. */
  readonly onRequest?: ((request: RequestAttempt) => unknown) | undefined
  /** Called and awaited for each complete response. If it throws, the call rejects with that error. */
  readonly onResponse?: ((response: ResponseAttempt) => unknown) | undefined
  /** Like `onResponse`, for each response with Deprecation or Sunset. */
  readonly onDeprecation?: ((notice: DeprecationNotice) => unknown) | undefined
  /** Replaces the runtime's own fetch. */
  readonly fetch?: Fetch | undefined
}

/** The options, checked and with their defaults. */
export type RequestSettings = { readonly [Name in keyof RequestOptions]-?: NonNullable<RequestOptions[Name]> }

export interface Call<T> {
  readonly operation: OperationName
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal | undefined
  /** Throws {@link InvalidResponse} for a response of another shape. */
  read(body: unknown, headers: Headers): T
}

/** Browsers report a redirect as the type `opaqueredirect` with status 0. */
interface Received extends Pick<Response, 'status' | 'headers' | 'type'> {
  /** Undefined if the body is not UTF-8. */
  readonly text: string | undefined
  readonly details: ResponseDetails
}

interface Answer<T> {
  readonly result: T
  readonly details: ResponseDetails
}

/** Sends a request, with retries. Returns what `read` makes of the response, and the response's details. */
export async function send<T>(call: Call<T>, settings: RequestSettings): Promise<Answer<T>> {
  for (let attempt = 1; ; attempt++) {
    const answer = await attemptOnce(call, settings, attempt)
    if (!(answer instanceof errors.PetstoreError)) return answer
    const waitMs = waitMsBeforeRetry(answer, attempt, settings)
    if (waitMs === undefined) throw answer
    await wait(waitMs, call.signal)
  }
}

/** Returns a failure instead of throwing it: a thrown error is a hook's or the signal's, and ends the call. */
async function attemptOnce<T>(call: Call<T>, settings: RequestSettings, attempt: number) {
  const { operation, method, url, signal } = call
  signal?.throwIfAborted()
  const request = { operation, method, url, attempt }
  await settings.onRequest(request)
  const startMs = performance.now()
  const received = await exchange(call, settings)
  if (received instanceof errors.PetstoreError) return received
  const { details } = received
  await settings.onResponse({ ...request, ...details, durationMs: performance.now() - startMs })
  const notice = readDeprecation(operation, details.headers, url)
  if (notice) await settings.onDeprecation(notice)
  // A hook may have aborted it.
  signal?.throwIfAborted()
  const result = resultOf(call, received, settings.apiKey)
  return result instanceof errors.PetstoreError ? result : { result, details }
}

/** Sends the request and receives the complete response, within the time-out. */
async function exchange(call: Call<unknown>, settings: RequestSettings): Promise<Received | errors.PetstoreError> {
  const { method, url, body, signal } = call
  const { apiKey, fetch, timeoutMs } = settings
  // A hook may have aborted it.
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort()
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(abort, timeoutMs)
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: 'application/json', authorization: `Bearer ${apiKey}`, ...call.headers },
      ...(body !== undefined && { body }),
      // Following a redirect could send the key to another server, and would turn a POST into a GET.
      redirect: 'manual',
      signal: controller.signal,
    })
    const { status, headers, type } = response
    const text = decode(await response.arrayBuffer())
    return { status, headers, type, text, details: readDetails(response, apiKey) }
  } catch (error) {
    signal?.throwIfAborted()
    if (controller.signal.aborted) {
      const message = `No complete response from ${url} within ${timeoutMs} ms`
      return new errors.TimeoutError(message, { code: 'timeout' })
    }
    const cause = safeCopy(error, apiKey)
    return new errors.ConnectionError(`Cannot reach ${url}: ${reasonOf(cause)}`, { code: 'connection_failed', cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: ArrayBuffer): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Copies only these fields, because others may hold the request with its key. */
function safeCopy(error: unknown, apiKey: string): Error {
  const { name, stack, code, message = error, cause } = Object(error)
  // Node gives an error about several addresses a code, and no message.
  const copy = new Error(mask(String(message || code || name), apiKey))
  for (const [field, value] of Object.entries({ name, stack, code })) {
    if (typeof value === 'string') Object.assign(copy, { [field]: mask(value, apiKey) })
  }
  if (cause instanceof Error) copy.cause = safeCopy(cause, apiKey)
  return copy
}

/** Node's own message is only `fetch failed`; the reason is in its cause. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? reasonOf(cause) : message
}

/** An error unless the response is a success. */
function resultOf<T>(call: Call<T>, received: Received, apiKey: string): T | errors.PetstoreError {
  const { status, type, text, details } = received
  const expectedStatus = call.method === 'POST' ? 201 : 200
  const masked = (message: string) => mask(message, apiKey)
  const unexpected = (problem: string, ErrorClass: typeof errors.PetstoreError = errors.UnexpectedResponseError) => {
    const message = `Unexpected response to ${call.method} ${call.url}: ${status}, ${masked(problem)}`
    return new ErrorClass(message, detailsOf(received, 'unexpected_response'))
  }
  // Masked before it is cut, so that no part of the key remains.
  const shown = () => describe(details.headers, text && masked(text))
  if (type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(status)) {
    const location = details.headers.get('location') ?? 'another address'
    return unexpected(`a redirect to ${location}; correct the base address`)
  }
  const json = jsonIn(received)
  if (status >= 400) {
    const ErrorClass = errorClasses.get(status) ?? (status < 500 ? errors.InvalidRequestError : errors.ServerError)
    const error = readError(json?.value)
    if (error) return new ErrorClass(masked(error.message), detailsOf(received, masked(error.code)))
    // Proxies send these with pages of their own.
    const fromProxy = ErrorClass === errors.RateLimitedError || ErrorClass === errors.ServiceUnavailableError
    return unexpected(`the body is not an Error ${shown()}`, fromProxy ? ErrorClass : undefined)
  }
  if (status !== expectedStatus) return unexpected(`expected ${expectedStatus}`)
  if (!json) return unexpected(`the body is not JSON ${shown()}`)
  try {
    return call.read(json.value, received.headers)
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
  [429, errors.RateLimitedError],
  [502, errors.ServiceUnavailableError],
  [503, errors.ServiceUnavailableError],
  [504, errors.ServiceUnavailableError],
])

function detailsOf({ headers, details: { status, requestId, rateLimit } }: Received, code: string) {
  const retryAfterSeconds = readRetryAfter(headers.get('retry-after'), new Date())
  return { code, status, requestId, retryAfterSeconds, rateLimit }
}

/** Wrapped in an object, because null is valid JSON. Drops the parser's error: it may quote the text. */
function jsonIn({ headers, text }: Received): { readonly value: unknown } | undefined {
  const isJson = /^application\/json *(?:;|$)/i.test(headers.get('content-type') ?? '')
  if (text === undefined || !isJson) return undefined
  try {
    return { value: parseJson(text) }
  } catch {
    return undefined
  }
}

const shownCharsMax = 80

function describe(headers: Headers, text: string | undefined): string {
  const type = headers.get('content-type') ?? 'no Content-Type'
  if (text === undefined) return `(${type}, not UTF-8)`
  return `(${type}): ${JSON.stringify(text.slice(0, shownCharsMax))}${text.length > shownCharsMax ? '…' : ''}`
}

/** Undefined if there is no further attempt. The random part spreads the retries of many clients. */
export function waitMsBeforeRetry(error: errors.PetstoreError, attemptsMade: number, settings: RequestSettings) {
  const { retries, backoffMs, backoffMaxMs, retryAfterMaxMs } = settings
  if (attemptsMade > retries || !isTemporary(error)) return undefined
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000
  if (retryAfterMs > retryAfterMaxMs) return undefined
  return retryAfterMs + Math.random() * Math.min(backoffMaxMs, backoffMs * 2 ** (attemptsMade - 1))
}

const temporary = [errors.ConnectionError, errors.TimeoutError, errors.RateLimitedError, errors.ServiceUnavailableError]

/** Repeating is always safe: reads change nothing, and creations carry an Idempotency-Key. */
function isTemporary(error: errors.PetstoreError): boolean {
  // Waiting does not give a store new ids.
  return error.code !== 'ids_exhausted' && temporary.some(ErrorClass => error instanceof ErrorClass)
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
