import { errorClassOf, RateLimitedError, ServiceUnavailableError, UnexpectedResponseError } from './errors.ts'
import { parseJson } from './json.ts'
import type { Call } from './request.ts'
import { readRetryAfter } from './retry.ts'
import { readError, WrongShape } from './wire.ts'

/** An answer as it came. */
export interface Received {
  readonly status: number
  readonly headers: Headers
  /** Browsers hide a redirect behind the type `opaqueredirect` and the status 0. */
  readonly type: string
  readonly bytes: ArrayBuffer
}

/** A success. */
export interface Answer {
  readonly headers: Headers
  /** Reads the body; where its shape is wrong, the error says what was answered to which request. */
  read<T>(reader: (value: unknown) => T): T
}

/** The success that an answer is; everything else is thrown. No error shows the key, even where the server does. */
export function interpret(call: Call, received: Received, apiKey: string): Answer {
  const { status, headers, type } = received
  const text = textOf(received.bytes)
  const withoutKey = (shown: string) => shown.replaceAll(apiKey, '…')
  const unexpected = (why: string) => unexpectedResponse(call, received, withoutKey(why))
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    throw unexpected(
      `redirects to ${headers.get('location') ?? 'another address'}: use that as the base address`,
    )
  }
  if (status >= 400) throw failureOf(call, received, text && withoutKey(text))
  if (status !== call.expected) throw unexpected(`expected ${call.expected}`)
  const body = jsonOf(headers, text)
  if (!body) throw unexpected(`is not JSON but ${describe(headers, text && withoutKey(text))}`)
  return { headers, read: reader => readWith(reader, body.value, unexpected) }
}

function readWith<T>(
  reader: (value: unknown) => T,
  value: unknown,
  unexpected: (why: string) => UnexpectedResponseError,
): T {
  try {
    return reader(value)
  } catch (error) {
    throw error instanceof WrongShape ? unexpected(error.message) : error
  }
}

/** A passing trouble is known by its status alone: proxies answer for a service that is away, with pages of their own. */
function failureOf(call: Call, received: Received, text: string | undefined): Error {
  const { status, headers } = received
  const ErrorClass = errorClassOf(status)
  const body = readError(jsonOf(headers, text)?.value)
  const details = detailsOf(received)
  if (body) return new ErrorClass(body.message, { ...details, code: body.code })
  const unexpected = unexpectedResponse(call, received, `is not an Error but ${describe(headers, text)}`)
  const mayPass = ErrorClass === RateLimitedError || ErrorClass === ServiceUnavailableError
  return mayPass ? new ErrorClass(unexpected.message, { ...details, code: unexpected.code }) : unexpected
}

function unexpectedResponse({ method, url }: Call, received: Received, why: string): UnexpectedResponseError {
  const details = { ...detailsOf(received), code: 'unexpected_response' }
  return new UnexpectedResponseError(`The answer to ${method} ${url} (${received.status}) ${why}`, details)
}

function detailsOf({ status, headers }: Received) {
  return {
    status,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: readRetryAfter(headers.get('retry-after'), new Date()),
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(bytes: ArrayBuffer): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** In an object of its own, since null is JSON too. The parser's error is dropped: it may quote the text. */
function jsonOf(headers: Headers, text: string | undefined): { readonly value: unknown } | undefined {
  if (text === undefined || !/^application\/json *(?:;|$)/i.test(headers.get('content-type') ?? ''))
    return undefined
  try {
    return { value: parseJson(text) }
  } catch {
    return undefined
  }
}

const shownCharsMax = 80

function describe(headers: Headers, text: string | undefined): string {
  const type = headers.get('content-type') ?? 'a body without a type'
  if (text === undefined) return `${type}, not in UTF-8`
  return `${type}: ${text.length > shownCharsMax ? `${JSON.stringify(text.slice(0, shownCharsMax))}…` : JSON.stringify(text)}`
}
