import { maskKeys } from '../api-key.ts'

/** Every error code: a published set that may grow. One code for each thing that a client would do differently. */
export const errorCodes = {
  missing_api_key: { status: 401, meaning: 'The request has no API key. Send one.' },
  invalid_api_key: { status: 401, meaning: 'The API key is unknown, expired or revoked. Use another one.' },
  read_only_key: { status: 403, meaning: 'The API key may only read. Use one that may write.' },
  insufficient_permission: {
    status: 403,
    meaning: 'The API key lacks the permission. Use a catalogue key for /v1, a metrics key for /metrics.',
  },
  not_found: { status: 404, meaning: 'There is nothing at this path. Correct the address.' },
  pet_not_found: { status: 404, meaning: 'No animal has this identifier.' },
  method_not_allowed: { status: 405, meaning: 'The path does not support this method. See the Allow header.' },
  request_timeout: { status: 408, meaning: 'The body arrived too slowly. Send it again.' },
  body_too_large: { status: 413, meaning: 'The body is larger than 64 KiB. Send less.' },
  unsupported_media_type: { status: 415, meaning: 'The body is not JSON. Send application/json.' },
  unsupported_content_encoding: { status: 415, meaning: 'The body is compressed. Send it uncompressed.' },
  missing_body: { status: 400, meaning: 'The body is missing or empty. Send the animal.' },
  invalid_json: { status: 400, meaning: 'The body is not valid JSON in UTF-8. Correct it.' },
  invalid_request: {
    status: 400,
    meaning: 'Parameters or properties are invalid. Correct those that the message names.',
  },
  invalid_cursor: { status: 400, meaning: 'The cursor does not belong to this list. Start again at the first page.' },
  idempotency_key_reused: {
    status: 422,
    meaning: 'The Idempotency-Key was used for another animal. Send a new key for a new animal.',
  },
  rate_limited: { status: 429, meaning: 'Too many requests. Retry after the seconds in Retry-After.' },
  internal_error: { status: 500, meaning: 'The service failed. Report the request id.' },
  ids_exhausted: { status: 503, meaning: 'The store has no id left. Do not retry; tell the operator.' },
  store_unavailable: { status: 503, meaning: 'The store is unavailable. Retry after the seconds in Retry-After.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type ErrorCode = keyof typeof errorCodes

/** A response before the pipeline adds what all of them share. */
export interface Reply {
  readonly status: number
  readonly body: string | Uint8Array | null
  /** Shared between replies: never modify them. A Response copies them faster than it sets them one by one. */
  readonly headers: Headers
}

type HeaderValues = Readonly<Record<string, string>>

const jsonHeaders = headersWith({})

/** The headers of a JSON reply, and these. */
export function headersWith(own: HeaderValues): Headers {
  return new Headers({
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...own,
  })
}

export function json(status: number, body: string, headers: Headers = jsonHeaders): Reply {
  return { status, body, headers }
}

/** `parameters` of the media type begin with a semicolon. */
export function plainText(status: number, body: string, parameters = ''): Reply {
  return { status, body, headers: headersWith({ 'Content-Type': `text/plain${parameters}; charset=utf-8` }) }
}

export function problem(code: ErrorCode, message: string, headers?: HeaderValues): Reply {
  const { status } = errorCodes[code]
  const body = JSON.stringify({ code, message: maskKeys(message), status })
  return json(status, body, headers && headersWith(headers))
}

/** The prefix of every operation: the interface's major version. */
export const versionPrefix = '/v1'
