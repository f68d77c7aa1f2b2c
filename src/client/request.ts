import { type OperationName, readDeprecation } from './deprecation.ts'
import { ConnectionError, PetstoreError, TimeoutError } from './errors.ts'
import { type ClientSettings, readTimeoutMs } from './options.ts'
import { type Answer, interpret, type Received } from './response.ts'
import { wait, waitMsBeforeRetry } from './retry.ts'

/** What every call takes beside its own arguments. */
export interface CallOptions {
  /** Its abort rejects the call with the signal's reason, at once and for good. */
  readonly signal?: AbortSignal | undefined
  /** In place of the client's own. */
  readonly timeoutMs?: number | undefined
}

export interface Call extends CallOptions {
  readonly operation: OperationName
  readonly url: string
  /** The status of success. */
  readonly expected: 200 | 201
  readonly method: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends a call until it is answered or there is no hope left. */
export async function send(call: Call, settings: ClientSettings): Promise<Answer> {
  for (let attemptsMade = 1; ; attemptsMade++) {
    try {
      return await attempt(call, settings)
    } catch (error) {
      if (!(error instanceof PetstoreError)) throw error
      const waitMs = waitMsBeforeRetry(error, attemptsMade, settings)
      if (waitMs === undefined) throw error
      await wait(waitMs, call.signal)
    }
  }
}

async function attempt(call: Call, settings: ClientSettings): Promise<Answer> {
  const received = await exchange(call, settings)
  const notice = readDeprecation(call.operation, received.headers, call.url)
  if (notice) settings.onDeprecation(notice)
  return interpret(call, received, settings.apiKey)
}

/** One request and its whole answer, within the time that an attempt has. */
async function exchange(call: Call, settings: ClientSettings): Promise<Received> {
  const { signal, url } = call
  signal?.throwIfAborted()
  const timeoutMs = readTimeoutMs(call.timeoutMs ?? settings.timeoutMs)
  const controller = new AbortController()
  const abort = () => controller.abort()
  signal?.addEventListener('abort', abort)
  const timer = setTimeout(abort, timeoutMs)
  try {
    const response = await settings.fetch(url, requestOf(call, settings, controller.signal))
    const { status, headers, type } = response
    return { status, headers, type, bytes: await response.arrayBuffer() }
  } catch (cause) {
    signal?.throwIfAborted()
    if (controller.signal.aborted) {
      throw new TimeoutError(`No whole answer from ${url} within ${timeoutMs} ms`, { code: 'timeout', cause })
    }
    throw new ConnectionError(`Cannot reach ${url}: ${reasonOf(cause)}`, { code: 'connection_failed', cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function requestOf({ method, headers, body }: Call, { apiKey }: ClientSettings, signal: AbortSignal) {
  return {
    method,
    headers: { accept: 'application/json', authorization: `Bearer ${apiKey}`, ...headers },
    ...(body !== undefined && { body }),
    // Followed, a redirect could take the key elsewhere, and would make a GET of a POST.
    redirect: 'manual',
    signal,
  } as const
}

/** Node says only `fetch failed`, and why in the cause of that. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  return cause.cause instanceof Error ? reasonOf(cause.cause) : cause.message
}
