// What a program may pass to the client. Each TypeError names the option.

import type { PetstoreError } from './errors.ts'
import { orUndefined } from './json.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface CallOptions {
  /** Aborts the call, also between attempts. The call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Time for each attempt, until its response is complete. Default: of a client 30,000, of a call the client's. */
  readonly timeoutMs?: number | undefined
  /** How many attempts may follow the first. Default: of a client 2, of a call the client's. */
  readonly retries?: number | undefined
  /** Such as `traceparent`, but none that the client sets. A call's headers override the client's. */
  readonly headers?: Headers | Readonly<Record<string, string>> | undefined
}

/** A request, and its response or error. */
export interface Attempt {
  /** `request` is a call of `client.request`. */
  readonly operation: 'listPets' | 'createPet' | 'getPet' | 'updatePet' | 'deletePet' | 'request'
  readonly method: string
  readonly url: string
  /** 1 for the first attempt, 2 for the first retry. */
  readonly attempt: number
  /** Until the response was complete. */
  readonly durationMs: number
  /** Undefined without a response. */
  readonly status: number | undefined
  /** Identifies the request in the operator's log. */
  readonly requestId: string | undefined
  /** Undefined after a success. */
  readonly error: PetstoreError | undefined
  /** Undefined after the last attempt. */
  readonly retryInMs: number | undefined
  /** Undefined if the operation is not deprecated. `sunset` is the date of its removal. */
  readonly deprecation: { readonly sunset: Date | undefined } | undefined
}

export interface ClientOptions extends Omit<CallOptions, 'signal'> {
  /** Such as `https://pets.example.com/v1`; `/v1` is added if it is missing. */
  readonly baseUrl: string | URL
  readonly apiKey: string
  /** Called after each attempt, except one that a signal aborts. The call ignores what it returns or throws. */
  readonly onAttempt?: ((attempt: Attempt) => unknown) | undefined
  /** Replaces the runtime's own fetch. */
  readonly fetch?: Fetch | undefined
}

export const callOptions: readonly (keyof CallOptions)[] = ['signal', 'timeoutMs', 'retries', 'headers']

/** Throws a TypeError that names the option and never contains the key. */
export function readOptions(options: ClientOptions) {
  checkNames(options, ['baseUrl', 'apiKey', 'headers', 'timeoutMs', 'retries', 'onAttempt', 'fetch'])
  const { baseUrl, apiKey, headers = {}, timeoutMs = 30_000, retries = 2, onAttempt = () => {} } = options
  // Called as a method of the global object, because browsers refuse any other `this`.
  const { fetch = (url: string, init: RequestInit) => globalThis.fetch(url, init) } = options
  checkNumbers(timeoutMs, retries)
  // Any other character would fail in fetch, whose message may contain the key.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey is empty or invalid: expected visible ASCII characters')
  }
  return { baseUrl: readBaseUrl(baseUrl), apiKey, headers: readHeaders(headers), timeoutMs, retries, onAttempt, fetch }
}

/** The options of the client and of a call, checked. */
export type Settings = ReturnType<typeof readOptions> & Pick<CallOptions, 'signal'>

/** Throws a TypeError for a property that is not known: a JavaScript program may have mistyped it. */
export function checkNames(options: object, known: readonly string[]): void {
  const letters = (name: string) => [...name.toLowerCase()].sort().join('')
  for (const name of Object.keys(options).filter(name => !known.includes(name))) {
    const meant = known.find(other => other === `${name}Ms` || letters(other) === letters(name))
    const advice = meant ? `did you mean ${meant}?` : `expected ${known.join(', ')}`
    throw new TypeError(`Unknown property ${name}: ${advice}`)
  }
}

function checkNumbers(timeoutMs: number, retries: number): void {
  // A timer fires at once above 2^31 - 1 ms.
  const max = 2 ** 31 - 1
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > max) {
    throw new TypeError(`timeoutMs is ${timeoutMs}: expected an integer from 1 to ${max}`)
  }
  if (!Number.isInteger(retries) || retries < 0) throw new TypeError(`retries is ${retries}: expected 0 or more`)
}

const hostAndPort =
  /^(?:(?:(https)|h\w*)?:?\/\/)?((?:localhost|[\w-]+(?:\.[\w-]+)+|[\w-]+(?=:\d))(?::\d+)?)(?:\/[^@?#]*)?$/i

/** `did you mean http://localhost:8080?` Nothing else is shown, because an invalid address may contain a password. */
export function addressSuggestion(address: string): string | undefined {
  const [, secure, host] = hostAndPort.exec(address) ?? []
  return host && `did you mean http${secure ? 's' : ''}://${host}?`
}

/** The base address, with /v1 added if it is missing. The TypeError does not show it: it may contain a password. */
function readBaseUrl(address: unknown): string {
  // Node 20 has no URL.parse.
  const url = orUndefined(() => new URL(String(address)))
  if (!url || !/^https?:$/.test(url.protocol)) {
    const advice = addressSuggestion(String(address)) ?? 'expected one such as https://example.com/v1'
    throw new TypeError(`baseUrl is not an http or https address: ${advice}`)
  }
  if (url.username + url.password + url.search + url.hash !== '') {
    throw new TypeError('baseUrl has a user, password, query or fragment: remove it')
  }
  return `${url.origin}${url.pathname}`.replace(/(\/v1)?\/*$/, '/v1')
}

/** The settings of a call, which may have options of its own. */
export function mergeSettings(settings: Settings, options: CallOptions, ...own: readonly string[]): Settings {
  checkNames(options, [...callOptions, ...own])
  const { signal, timeoutMs = settings.timeoutMs, retries = settings.retries, headers = {} } = options
  checkNumbers(timeoutMs, retries)
  return { ...settings, signal, timeoutMs, retries, headers: { ...settings.headers, ...readHeaders(headers) } }
}

const ownHeaders = ['accept', 'authorization', 'content-type', 'idempotency-key']

/** Throws a TypeError for a header that cannot be sent. The message does not show the value: it may be a secret. */
export function readHeaders(headers: Headers | Readonly<Record<string, string>>, refused = ownHeaders) {
  if (headers !== Object(headers)) throw new TypeError('headers is invalid: expected an object or Headers')
  const all = new Headers()
  for (const [name, value] of Symbol.iterator in headers ? headers : Object.entries(headers)) {
    const shown = `headers[${JSON.stringify(name)}]`
    if (refused.includes(name.toLowerCase())) throw new TypeError(`${shown} is not allowed: remove it`)
    const isText = typeof value === 'string' && /^[\t -~]*$/.test(value)
    const isName = /^[\w!#$%&'*+.^`|~-]+$/.test(name)
    if (!isName) throw new TypeError(`${shown} is invalid: expected a header name`)
    if (!isText) throw new TypeError(`${shown} is invalid: expected a string of visible ASCII characters and spaces`)
    all.set(name, value)
  }
  // In lower case, so that a call's headers replace the client's.
  return Object.fromEntries(all)
}
