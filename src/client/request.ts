import {
  ConnectionError,
  errorClassOf,
  PetstoreError,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError,
  UnexpectedResponseError,
} from './errors.ts'
import { type DeprecationNotice, type OperationName, readDeprecation, readRetryAfter } from './headers.ts'
import { InvalidResponse, parseJson, readError } from './json.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, also between attempts. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Overrides the client's own. */
  readonly timeoutMs?: number | undefined
}

/** As in ClientOptions. */
export interface RequestSettings {
  readonly apiKey: string
  readonly retries: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly retryAfterMaxMs: number
  readonly fetch: Fetch
  onDeprecation(notice: DeprecationNotice): void
}

export interface Call<T> {
  readonly operation: OperationName
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal | undefined
  /** Of each attempt. */
  readonly timeoutMs: number
  readonly expectedStatus: 200 | 201
  /** Throws {@link InvalidResponse} for a response of another shape. */
  read(body: unknown, headers: Headers): T
}

interface Received {
  readonly status: number
  readonly headers: Headers
  /** Browsers report a redirect as the type `opaqueredirect` with status 0. */
  readonly type: string
  /** Undefined if the body is not UTF-8. */
  readonly text: string | undefined
}

/** Sends a request, with retries, and returns what `read` makes of the response. */
export async function send<T>(call: Call<T>, settings: RequestSettings): Promise<T> {
  for (let attemptsMade = 1; ; attemptsMade++) {
    try {
      const received = await exchange(call, settings)
      const notice = readDeprecation(call.operation, received.headers, call.url)
      if (notice) settings.onDeprecation(notice)
      return resultOf(call, received, settings.apiKey)
    } catch (error) {
      if (!(error instanceof PetstoreError)) throw error
      const waitMs = waitMsBeforeRetry(error, attemptsMade, settings)
      if (waitMs === undefined) throw error
      await wait(waitMs, call.signal)
    }
  }
}

/** One attempt: sends the request and receives the complete response, within the time-out. */
async function exchange(call: Call<unknown>, settings: RequestSettings): Promise<Received> {
  const { signal, url, timeoutMs } = call
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort()
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(abort, timeoutMs)
  try {
    const response = await settings.fetch(url, requestOf(call, settings.apiKey, controller.signal))
    const { status, headers, type } = response
    return { status, headers, type, text: decode(await response.arrayBuffer()) }
  } catch (cause) {
    signal?.throwIfAborted()
    if (controller.signal.aborted) {
      const message = `No complete response from ${url} within ${timeoutMs} ms`
      throw new TimeoutError(message, { code: 'timeout', cause })
    }
    throw new ConnectionError(`Cannot reach ${url}: ${reasonOf(cause)}`, { code: 'connection_failed', cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function requestOf({ method, headers, body }: Call<unknown>, apiKey: string, signal: AbortSignal) {
  return {
    method,
    headers: { accept: 'application/json', authorization: `Bearer ${apiKey}`, ...headers },
    ...(body !== undefined && { body }),
    // Following a redirect could send the key to another server, and would turn a POST into a GET.
    redirect: 'manual',
    signal,
  } as const
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: ArrayBuffer): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Node's own message is only `fetch failed`; the reason is in its cause. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return cause.cause instanceof Error ? reasonOf(cause.cause) : cause.message
}

/** Throws unless the response is a success. No error contains the key, even if the server echoes it. */
function resultOf<T>(call: Call<T>, received: Received, apiKey: string): T {
  const { status, headers, type, text } = received
  const masked = (message: string) => message.replaceAll(apiKey, '…')
  const unexpected = (problem: string) => unexpectedResponse(call, received, masked(problem))
  // Masked before it is cut, so that no part of the key remains.
  const shown = () => ({ ...received, text: text && masked(text) })
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    const location = headers.get('location') ?? 'another address'
    throw unexpected(`a redirect to ${location}; correct the base address`)
  }
  if (status >= 400) throw errorOf(call, shown())
  if (status !== call.expectedStatus) throw unexpected(`expected ${call.expectedStatus}`)
  const json = jsonIn(received)
  if (!json) throw unexpected(`the body is not JSON ${describe(shown())}`)
  try {
    return call.read(json.value, headers)
  } catch (error) {
    throw error instanceof InvalidResponse ? unexpected(error.message) : error
  }
}

/** For 429, 502, 503 and 504 the status decides alone, because proxies send them with pages of their own. */
function errorOf(call: Call<unknown>, received: Received): PetstoreError {
  const ErrorClass = errorClassOf(received.status)
  const body = readError(jsonIn(received)?.value)
  if (body) return new ErrorClass(body.message, detailsOf(received, body.code))
  const unexpected = unexpectedResponse(call, received, `the body is not an Error ${describe(received)}`)
  const temporary = ErrorClass === RateLimitedError || ErrorClass === ServiceUnavailableError
  return temporary ? new ErrorClass(unexpected.message, detailsOf(received, unexpected.code)) : unexpected
}

function unexpectedResponse({ method, url }: Call<unknown>, received: Received, problem: string) {
  const message = `Unexpected response to ${method} ${url}: ${received.status}, ${problem}`
  return new UnexpectedResponseError(message, detailsOf(received, 'unexpected_response'))
}

function detailsOf({ status, headers }: Received, code: string) {
  const requestId = headers.get('x-request-id') ?? undefined
  const retryAfterSeconds = readRetryAfter(headers.get('retry-after'), new Date())
  return { code, status, requestId, retryAfterSeconds }
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

function describe({ headers, text }: Received): string {
  const type = headers.get('content-type') ?? 'no Content-Type'
  if (text === undefined) return `(${type}, not UTF-8)`
  return `(${type}): ${JSON.stringify(text.slice(0, shownCharsMax))}${text.length > shownCharsMax ? '…' : ''}`
}

/** Undefined if there is no further attempt. The random part spreads the retries of many clients. */
export function waitMsBeforeRetry(
  error: PetstoreError,
  attemptsMade: number,
  settings: Pick<RequestSettings, 'retries' | 'backoffMs' | 'backoffMaxMs' | 'retryAfterMaxMs'>,
): number | undefined {
  const { retries, backoffMs, backoffMaxMs, retryAfterMaxMs } = settings
  if (attemptsMade > retries || !isTemporary(error)) return undefined
  const retryAfterMs = (error.retryAfterSeconds ?? 0) * 1_000
  if (retryAfterMs > retryAfterMaxMs) return undefined
  return retryAfterMs + Math.random() * Math.min(backoffMaxMs, backoffMs * 2 ** (attemptsMade - 1))
}

/** Repeating is always safe: reads change nothing, and creations carry an Idempotency-Key. */
function isTemporary(error: PetstoreError): boolean {
  return (
    error instanceof ConnectionError ||
    error instanceof TimeoutError ||
    error instanceof RateLimitedError ||
    // Waiting does not give a store new ids.
    (error instanceof ServiceUnavailableError && error.code !== 'ids_exhausted')
  )
}

/** Rejects with the signal's reason when it is aborted. */
function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort, { once: true })
  })
}
