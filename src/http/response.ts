// What handlers return, and how they refuse a request.
import { type ErrorCode, errorCodes } from './operations.ts'

/** A response without the headers that all responses share. */
export interface Reply {
  readonly status: number
  readonly body: string | Uint8Array | null
  /** Shared between replies: never modify them. A Response copies them faster than it sets them one by one. */
  readonly headers: Headers
}

export type HeaderValues = Readonly<Record<string, string>>

/** Thrown by a step that refuses a request. */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly headers: HeaderValues | undefined

  /** A message only if it says more than the code's meaning and action. */
  constructor(code: ErrorCode, message = explainCode(code), headers?: HeaderValues) {
    super(message)
    this.code = code
    this.headers = headers
  }
}

const jsonHeaders = new Headers({
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
})

/** The headers of a JSON reply, replaced and completed by these. Copying is twice as fast as building new ones. */
export function headersWith(own: HeaderValues): Headers {
  const headers = new Headers(jsonHeaders)
  for (const name in own) headers.set(name, own[name] ?? '')
  return headers
}

export function json(status: number, body: string, headers: Headers = jsonHeaders): Reply {
  return { status, body, headers }
}

/** Without content there is no type. */
export function noContent(own: HeaderValues = {}): Reply {
  const headers = headersWith(own)
  headers.delete('Content-Type')
  return { status: 204, body: null, headers }
}

export function plainText(status: number, body: string, type = 'text/plain'): Reply {
  return { status, body, headers: headersWith({ 'Content-Type': `${type}; charset=utf-8` }) }
}

export function errorReply(code: ErrorCode, message = explainCode(code), headers?: HeaderValues): Reply {
  const { status } = errorCodes[code]
  return json(status, JSON.stringify({ code, message, status }), headers && headersWith(headers))
}

/** What happened and what to do, for people. Like every message, it ends without a full stop. */
export function explainCode(code: ErrorCode): string {
  const { meaning, action } = errorCodes[code]
  return `${meaning} ${action.slice(0, -1)}`
}
